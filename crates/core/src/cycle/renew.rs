//! Sessions past their contract that somebody uses get it once more, if nobody waiting could take their GPUs.

use super::Cycle;
use crate::explain::{Blocker, Why};
use crate::id::WorkloadId;
use crate::plan::Decision;
use crate::quantity::Gpus;

impl Cycle<'_> {
    /// After a walk: whoever waits and could take such a lease was tried, and did not. Where not all were tried it comes another time.
    pub(super) fn renew(&mut self) {
        let pool = &self.s.pools[self.pool];
        if pool.sessions.is_empty() || self.left_to_others || self.is_cut_short {
            return;
        }
        for id in pool.sessions.values().copied().collect::<Vec<_>>() {
            if self.check_renewal(id).is_ok() {
                self.decide(Decision::Renew { workload: id, why: Why::InUse });
            }
        }
    }

    /// A renewal counts as a start: it is allowed only where a start with that contract would be.
    fn check_renewal(&self, id: WorkloadId) -> Result<(), Blocker> {
        let workload = self.workload(id);
        // A session that accepts several pools runs in one of them.
        let lease = workload.lease().filter(|_| workload.terms.pool.index() == self.pool);
        if !lease.is_some_and(|lease| lease.past_contract && lease.input) {
            return Err(Blocker::Leaving);
        }
        let leaf = self.s.tree.get(workload.spec.budget).expect("work runs in a budget");
        if let Some(budget) = leaf.closed_by {
            return Err(Blocker::BudgetClosed { budget });
        }
        if leaf.claim(workload.terms.pool).0 == 0 {
            return Err(Blocker::ZeroClaim { budget: leaf.spec.id });
        }
        // It is counted in the caps already.
        self.check_room(leaf, Gpus(0))?;
        self.check_ground(id)
    }
}
