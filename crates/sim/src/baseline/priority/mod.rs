//! Levels of priority with a limit on what a team may protect: what Ai2 ran before it scheduled by budget.
//!
//! 1. **Order.** The higher level first, inside a level what will be protected before what will not, then the order of submission. Whoever does
//!    not fit is skipped: everybody behind may start.
//! 2. **Protection.** A lease is protected if its level is high or urgent, its owner opted out of preemption, and all protected leases of
//!    its team together hold at most claim × capacity GPUs. Above the limit it runs preemptible. When a protected lease ends, the
//!    protection passes to the team's longest running lease that would have it and fits under the limit.
//! 3. **Preemption.** A claimant takes GPUs of unprotected leases of a lower level, and, if it will be protected itself, of other teams'
//!    unprotected leases of its own level. The lowest level goes first, then the youngest lease. Protected leases are never taken. So a
//!    victim can never take from whom it yielded to, and no chain closes.
//! 4. **Grace and requeue** as everywhere: the pool's grace, then the old place in the order of submission.
//!
//! Which level a workload has is what people make of such rules: see [`PrioritySettings`].

mod level;
mod lines;
mod running;

use super::book::{Estimate, Workload};
use super::claims::{Claims, Settled};
use super::common::{Baseline, Desk, GUEST, Queue};
use super::victims::Prey;
use crate::policy::Policy;
use level::Level;
pub use level::PrioritySettings;
use lines::{Key, Lines};
use running::{Limits, Reach, Running};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use stipend_core::entry::Licence;
use stipend_core::id::{BudgetId, WorkloadId};
use stipend_core::quantity::{Claim, Ppm, Span};

/// Levels of priority with a limit on what a team may protect.
pub fn priority(settings: PrioritySettings) -> impl Policy {
    Baseline::new(move || Priority::new(settings), Estimate::default())
}

const FREE: &str = "the highest level, then the longest waiting, that fits on free GPUs";
const LOWER: &str = "a higher level takes GPUs of a lower one";
const PROTECTED: &str = "work within its team's limit takes GPUs of work that is not protected";

/// The level, whether it will not be protected, the rank, the line.
type Turn = (Reverse<Level>, bool, u32, Key);

struct Priority {
    settings: PrioritySettings,
    lines: Lines,
    running: Running,
    claims: Claims,
    /// Claimants that will be protected, with their team and GPUs.
    promised: BTreeMap<WorkloadId, (BudgetId, u32)>,
    prey: Prey,
    limits: Limits,
    /// The version of the tree and the GPUs for which the limits were computed.
    limited: (u32, u64),
    /// The state of the pool after the last pass.
    version: Option<u64>,
}

impl Priority {
    fn new(settings: PrioritySettings) -> Priority {
        Priority {
            settings,
            lines: Lines::default(),
            running: Running::default(),
            claims: Claims::default(),
            promised: BTreeMap::new(),
            prey: Prey::default(),
            limits: Limits::default(),
            limited: (0, 0),
            version: None,
        }
    }
}

impl Queue for Priority {
    fn push(&mut self, id: WorkloadId, workload: &Workload, _: &Estimate) {
        if !self.claims.has(id) {
            self.lines.push(id, workload, self.settings.asked(id, workload));
        }
    }

    fn park(&mut self, id: WorkloadId) -> bool {
        self.claims.park(id)
    }

    fn unpark(&mut self, id: WorkloadId) -> bool {
        self.claims.forget(id)
    }

    fn remove(&mut self, id: WorkloadId, workload: &Workload) {
        self.lines.remove(workload, self.settings.asked(id, workload));
    }

    fn ended(&mut self, id: WorkloadId, _: &Workload) {
        self.running.end(id);
    }

    /// Protection depends on what others of the team hold, not on time.
    fn protects(&self, _: WorkloadId, _: &Workload) -> Option<Span> {
        None
    }

    fn decide(&mut self, desk: &mut Desk<'_>) {
        self.limit(desk);
        for settled in self.claims.settle(desk) {
            let (Settled::Started(id) | Settled::Lost(id) | Settled::Gone(id) | Settled::Back(id)) = settled;
            if let Some((leaf, gpus)) = self.promised.remove(&id) {
                self.running.promise(leaf, gpus, -1);
            }
            match settled {
                Settled::Started(id) => self.started(desk, id),
                Settled::Gone(_) => {}
                Settled::Lost(id) | Settled::Back(id) => {
                    let workload = desk.book.get(id).expect("it waits again");
                    self.lines.push(id, workload, self.settings.asked(id, workload));
                }
            }
        }
        self.running.pass_protection_on(&self.limits);
        // Where nothing became free and nobody's expected end changed, only those who came since can start.
        let all = self.version != Some(desk.version());
        self.pass(desk, all);
        self.version = Some(desk.version());
    }

    fn guest(&mut self, id: WorkloadId, desk: &mut Desk<'_>) -> bool {
        let Some(choice) = desk.place(id) else { return false };
        desk.start(id, &choice, GUEST);
        self.started(desk, id);
        true
    }
}

impl Priority {
    /// What each team may protect, computed anew where budgets or nodes changed.
    fn limit(&mut self, desk: &Desk<'_>) {
        let now = (desk.tree.version(), desk.cluster.gpus());
        if self.limited != now {
            self.limited = now;
            let (whole, part) = (u128::from(Claim::WHOLE.0), u128::from(self.settings.protected_max.0));
            let limit = |claim: Claim| u128::from(claim.0) * u128::from(now.1) * part / (whole * u128::from(Ppm::ONE.0));
            self.limits = desk.tree.claims(desk.pool).into_iter().map(|(leaf, claim)| (leaf, limit(claim) as u32)).collect();
        }
    }

    /// Tries everybody in order: free GPUs, then others'. What fails for one fails for all behind it that need and may the same, as every
    /// start leaves less.
    fn pass(&mut self, desk: &mut Desk<'_>, all: bool) {
        let keys = self.lines.take_turns(all);
        let mut next: BinaryHeap<_> = keys.into_iter().filter_map(|key| self.turn(key)).collect();
        let mut full = vec![false; self.lines.shapes()];
        let mut hopeless = BTreeSet::new();
        while let Some(turn) = next.pop() {
            let key = turn.0.3;
            let Some((first, id)) = self.lines.first(&key) else { continue };
            if self.turn(key) != Some(turn) {
                // Its team has reached its limit since.
                next.extend(self.turn(key));
                continue;
            }
            if !self.start(desk, &key, id, &mut full) && !self.claim(desk, &key, id, &mut hopeless) {
                continue;
            }
            self.lines.take(&key, first);
            next.extend(self.turn(key));
        }
    }

    /// When it is the turn of a line's first, the earliest being the greatest.
    fn turn(&self, key: Key) -> Option<Reverse<Turn>> {
        let (rank, _) = self.lines.first(&key)?;
        Some(Reverse((key.level, !self.will_be_protected(&key), rank, key)))
    }

    /// Whether work of this line would be protected if it started now.
    fn will_be_protected(&self, key: &Key) -> bool {
        key.opts_out && self.running.would_protect(key.leaf, self.lines.gang(key).gpus().0, &self.limits)
    }

    /// Starts it on free GPUs.
    fn start(&mut self, desk: &mut Desk<'_>, key: &Key, id: WorkloadId, full: &mut [bool]) -> bool {
        if full[key.shape] {
            return false;
        }
        let Some(choice) = desk.cluster.place(desk.cluster.free(0), self.lines.gang(key)) else {
            full[key.shape] = true;
            return false;
        };
        desk.start(id, &choice, FREE);
        self.started(desk, id);
        true
    }

    /// Takes others' GPUs for it.
    fn claim(&mut self, desk: &mut Desk<'_>, key: &Key, id: WorkloadId, hopeless: &mut BTreeSet<(usize, Reach)>) -> bool {
        let gang = *self.lines.gang(key);
        let gpus = gang.gpus().0;
        let protected = self.will_be_protected(key);
        let reach = Reach { below: key.level.0, and_of_others: protected.then_some(key.leaf) };
        let free = desk.cluster.free(0).members_at_most(1);
        if !self.settings.preempt || hopeless.contains(&(key.shape, reach)) || free + self.running.within(reach) < gpus {
            return false;
        }
        let prey = self.running.prey(reach);
        let may_stop = |id: &WorkloadId| desk.book.get(*id).is_ok_and(|w| w.lease().is_some_and(|lease| lease.may_yield(desk.at)));
        self.prey.gather(desk, prey.into_iter().filter(may_stop));
        let eviction = if self.prey.may_fit(&gang) { self.prey.evict(desk, &gang) } else { None };
        let Some(eviction) = eviction.filter(|eviction| !eviction.victims.is_empty()) else {
            hopeless.insert((key.shape, reach));
            return false;
        };
        eviction.victims.iter().for_each(|&victim| self.running.yields(victim));
        let (licence, rule) = if protected { (Licence::Share, PROTECTED) } else { (Licence::Tree, LOWER) };
        self.claims.make(desk, id, eviction, licence, rule);
        if protected {
            self.running.promise(key.leaf, gpus, 1);
            self.promised.insert(id, (key.leaf, gpus));
        }
        true
    }

    fn started(&mut self, desk: &Desk<'_>, id: WorkloadId) {
        let workload = desk.book.get(id).expect("it has just started");
        let asked = self.settings.asked(id, workload);
        self.running.start(id, asked, workload.spec.budget, workload.spec.gang.gpus().0, &self.limits);
    }
}
