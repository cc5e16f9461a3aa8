//! Work that says it begins anew after a preemption is believed, until some of its leaf completes in less than half of what its earlier
//! attempts ran on average. The log says so at once, and only then; for a lookback the loss of such work counts as if it resumed.

use super::world::{Id, Phase, Workload};
use super::{Auditor, Law};
use crate::log::line::{Doubted, OnPreempt, Outcome};

impl Auditor {
    /// An attempt ended that ran for so long.
    pub(super) fn note_run(&mut self, id: Id, attempt: u32, outcome: Outcome, ran: i64) {
        let workload = &self.world.workloads[&id];
        let earlier = workload.ran - ran;
        let says_restart = workload.asked.on_preempt == OnPreempt::Restart;
        if says_restart && outcome == Outcome::Completed && earlier > 2 * ran * i64::from(attempt - 1) {
            self.instant.doubts.insert(id);
        }
    }

    pub(super) fn doubted(&mut self, line: &Doubted) {
        let Some(id) = self.known(&line.workload) else { return };
        let workload = &self.world.workloads[&id];
        let (now, leaf) = (self.now(), workload.leaf);
        let lookback = self.world.knobs(workload.pool).map_or(0, |knobs| knobs.lookback_ms);
        if !self.instant.doubts.remove(&id) || line.until_ms != now + lookback {
            let seen = format!("{} is said not to have begun anew, and doubted until {} ms", line.workload, line.until_ms);
            self.findings.add(Law::Doubt, seen, "it completed in less than half of what its earlier attempts ran; for a lookback");
        }
        self.findings.count().doubts += 1;
        // The leaf is a row in the tree of each pool.
        let path = &self.world.budgets.rows[leaf].path;
        let rows = self.world.budgets.rows.iter().enumerate().filter(|(_, row)| row.path == *path).map(|(row, _)| row);
        let leaves: Vec<usize> = rows.collect();
        let of_leaf = |workload: &&mut Workload| leaves.contains(&workload.leaf);
        self.world.workloads.values_mut().filter(of_leaf).for_each(Workload::doubt);
        self.world.doubted.extend(leaves.into_iter().map(|row| (row, line.until_ms)));
    }

    /// A lease begins.
    pub(super) fn begin_in_doubt(&mut self, id: Id) {
        let now = self.now();
        let workload = self.world.workloads.get_mut(&id).expect("it starts");
        if self.world.doubted.get(&workload.leaf).is_some_and(|until| now < *until) {
            workload.doubt();
        }
    }

    /// At an instant's end.
    pub(super) fn check_doubts(&mut self) {
        for id in std::mem::take(&mut self.instant.doubts) {
            let seen = format!("{} completed in less than half of what its earlier attempts ran", self.world.label(id));
            self.findings.add(Law::Doubt, seen, "the log says that it did not begin anew");
        }
    }
}

impl Workload {
    /// Its lease is taken to resume, if it says that it begins anew.
    fn doubt(&mut self) {
        let says_restart = self.asked.on_preempt == OnPreempt::Restart;
        if let Phase::Leased(lease) = &mut self.phase {
            lease.is_doubted = says_restart;
        }
    }
}
