//! Who holds GPUs at which level, and which of it is protected.

use super::level::{Asked, Level};
use std::collections::{BTreeMap, BTreeSet};
use stipend_core::id::{BudgetId, WorkloadId};

/// The most GPUs that each team may protect.
pub(super) type Limits = BTreeMap<BudgetId, u32>;

/// One lease.
#[derive(Clone, Copy, Debug)]
struct Row {
    asked: Asked,
    leaf: BudgetId,
    gpus: u32,
    protected: bool,
    /// It was told to stop, for a claimant.
    yields: bool,
    /// Its place in the order of starts.
    order: u64,
}

/// All leases.
#[derive(Debug, Default)]
pub(super) struct Running {
    rows: BTreeMap<WorkloadId, Row>,
    starts: u64,
    protected: BTreeMap<BudgetId, u32>,
    /// GPUs of leases that are neither protected nor yielding, by level and team.
    open: BTreeMap<(Level, BudgetId), u32>,
    /// Teams with room for more protection than before.
    freed: BTreeSet<BudgetId>,
}

/// What a claimant may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Reach {
    /// Every level below this one,
    pub(super) below: Level,
    /// and this level itself of all teams but this one, if the claimant will be protected.
    pub(super) and_of_others: Option<BudgetId>,
}

impl Reach {
    fn covers(&self, level: Level, leaf: BudgetId) -> bool {
        level < self.below || (level == self.below && self.and_of_others.is_some_and(|own| own != leaf))
    }
}

impl Running {
    /// Whether so many more GPUs of a team would be protected.
    pub(super) fn would_protect(&self, leaf: BudgetId, gpus: u32, limits: &Limits) -> bool {
        let limit = limits.get(&leaf).copied().unwrap_or(0);
        self.protected.get(&leaf).copied().unwrap_or(0).saturating_add(gpus) <= limit
    }

    /// A lease starts.
    pub(super) fn start(&mut self, id: WorkloadId, asked: Asked, leaf: BudgetId, gpus: u32, limits: &Limits) {
        let protected = asked.opts_out && self.would_protect(leaf, gpus, limits);
        self.starts += 1;
        self.count(Row { asked, leaf, gpus, protected, yields: false, order: self.starts }, 1);
        self.rows.insert(id, Row { asked, leaf, gpus, protected, yields: false, order: self.starts });
    }

    /// So many GPUs of a team will be protected, as soon as they are vacated; or no longer will.
    pub(super) fn promise(&mut self, leaf: BudgetId, gpus: u32, sign: i32) {
        let protected = self.protected.entry(leaf).or_default();
        *protected = protected.saturating_add_signed(sign * gpus as i32);
        if sign < 0 {
            self.freed.insert(leaf);
        }
    }

    /// A lease has ended.
    pub(super) fn end(&mut self, id: WorkloadId) {
        let Some(row) = self.rows.remove(&id) else { return };
        self.count(row, -1);
        if row.protected {
            self.freed.insert(row.leaf);
        }
    }

    /// A lease was told to stop for a claimant.
    pub(super) fn yields(&mut self, id: WorkloadId) {
        let row = *self.rows.get(&id).expect("only running work yields");
        self.count(row, -1);
        self.rows.insert(id, Row { yields: true, ..row });
    }

    /// Where a team holds less protected GPUs than before, the protection passes to its longest running leases that would have it and fit.
    pub(super) fn pass_protection_on(&mut self, limits: &Limits) {
        for leaf in std::mem::take(&mut self.freed) {
            let would = |(_, row): &(&WorkloadId, &Row)| row.leaf == leaf && row.asked.opts_out && !row.protected && !row.yields;
            let mut rows: Vec<(u64, WorkloadId)> = self.rows.iter().filter(would).map(|(&id, row)| (row.order, id)).collect();
            rows.sort_unstable();
            for (_, id) in rows {
                let row = self.rows[&id];
                if self.would_protect(leaf, row.gpus, limits) {
                    self.count(row, -1);
                    let row = Row { protected: true, ..row };
                    self.count(row, 1);
                    self.rows.insert(id, row);
                }
            }
        }
    }

    /// GPUs within reach of a claimant.
    pub(super) fn within(&self, reach: Reach) -> u32 {
        self.open.iter().filter(|((level, leaf), _)| reach.covers(*level, *leaf)).map(|(_, gpus)| gpus).sum()
    }

    /// The leases within reach of a claimant: the lowest level first, then the youngest.
    pub(super) fn prey(&self, reach: Reach) -> Vec<WorkloadId> {
        let open = self.rows.iter().filter(|(_, row)| !row.protected && !row.yields && reach.covers(row.asked.level, row.leaf));
        let mut prey: Vec<_> = open.map(|(&id, row)| (row.asked.level, std::cmp::Reverse(row.order), id)).collect();
        prey.sort_unstable();
        prey.into_iter().map(|(_, _, id)| id).collect()
    }

    fn count(&mut self, row: Row, sign: i64) {
        let of = match row {
            Row { protected: true, .. } => self.protected.entry(row.leaf).or_default(),
            Row { yields: false, .. } => self.open.entry((row.asked.level, row.leaf)).or_default(),
            _ => return,
        };
        *of = of.saturating_add_signed((sign * i64::from(row.gpus)) as i32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: BudgetId = BudgetId(1);
    const B: BudgetId = BudgetId(2);

    fn asked(level: Level) -> Asked {
        Asked { level, opts_out: level >= Level::High }
    }

    #[test]
    fn protection_ends_at_the_limit_and_passes_on() {
        let limits = Limits::from([(A, 16)]);
        let mut running = Running::default();
        for id in 0..3 {
            running.start(WorkloadId(id), asked(Level::High), A, 8, &limits);
        }
        let of_b = Reach { below: Level::High, and_of_others: Some(B) };
        assert_eq!((running.prey(of_b), running.within(of_b)), (vec![WorkloadId(2)], 8), "the third is above the limit");
        running.end(WorkloadId(0));
        running.pass_protection_on(&limits);
        assert_eq!((running.prey(of_b), running.within(of_b)), (vec![], 0), "and then it no longer is");
    }

    #[test]
    fn who_is_not_protected_itself_takes_lower_levels_only_and_the_youngest_of_the_lowest_first() {
        let limits = Limits::new();
        let mut running = Running::default();
        for (id, level) in [(0, Level::High), (1, Level::Normal), (2, Level::Low), (3, Level::Low)] {
            running.start(WorkloadId(id), asked(level), A, 1, &limits);
        }
        let reach = Reach { below: Level::High, and_of_others: None };
        assert_eq!(running.prey(reach), [3, 2, 1].map(WorkloadId));
        assert_eq!(running.prey(Reach { and_of_others: Some(B), ..reach }), [3, 2, 1, 0].map(WorkloadId));
        assert_eq!(running.prey(Reach { and_of_others: Some(A), ..reach }), [3, 2, 1].map(WorkloadId), "its own team's equals stay");
        running.yields(WorkloadId(3));
        assert_eq!(running.prey(reach), [2, 1].map(WorkloadId), "nobody yields twice");
        assert_eq!(running.within(reach), 2);
    }
}
