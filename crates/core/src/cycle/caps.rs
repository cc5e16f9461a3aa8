//! How much a budget may hold at once: its caps and its ancestors', and the bound on express nodes.

use super::Cycle;
use crate::budget::Budget;
use crate::explain::Blocker;
use crate::id::WorkloadId;
use crate::quantity::Gpus;
use crate::workload::Workload;

impl Cycle<'_> {
    /// Whether a workload may use express GPUs; a budget's contracts may hold only so many.
    pub(super) fn may_use_express(&self, id: WorkloadId) -> bool {
        let pool = &self.s.pools[self.pool];
        let workload = self.workload(id);
        if pool.cluster.express_gpus() == Gpus(0) || !pool.queue.shape(self.terms(id).shape).express {
            return false;
        }
        let held = pool.ledger.account(workload.spec.budget).express_gpus + workload.spec.gang.gpus();
        held.0 <= pool.express_bound()
    }

    /// Whether the caps on contracts, and a claim that may be gone, let it start.
    pub(super) fn check_caps(&self, workload: &Workload) -> Result<(), Blocker> {
        let pool = &self.s.pools[self.pool];
        let leaf = self.s.tree.get(workload.spec.budget).expect("work runs in a budget");
        // Only what runs before its turn is tried there at all.
        if let Some(budget) = leaf.closed_by {
            return Err(Blocker::BudgetClosed { budget });
        }
        // Its share was taken away since the submission, which would be refused now.
        if leaf.claim(pool.id).0 == 0 {
            return Err(Blocker::ZeroClaim { budget: leaf.spec.id });
        }
        // What is reserved counts as in use already.
        if workload.reservation_in(pool.id).is_some() {
            return Ok(());
        }
        self.check_room(leaf, workload.in_pool(pool.id).charged)
    }

    /// Whether the caps of a leaf and its ancestors have room for so many more GPUs.
    pub(super) fn check_room(&self, leaf: &Budget, more: Gpus) -> Result<(), Blocker> {
        let pool = &self.s.pools[self.pool];
        for budget in &leaf.line {
            let (limit, in_use) = (pool.ledger.cap(*budget), pool.ledger.account(*budget).gpus);
            if let Some(limit) = limit.filter(|limit| in_use + more > *limit) {
                return Err(Blocker::Cap { budget: *budget, limit, in_use });
            }
        }
        Ok(())
    }

    /// Whether the caps on work without a contract let it start.
    pub(super) fn check_unallocated_caps(&self, id: WorkloadId) -> Result<(), Blocker> {
        let pool = &self.s.pools[self.pool];
        let spec = &self.workload(id).spec;
        for budget in &self.s.tree.get(spec.budget).expect("work runs in a budget").line {
            let limit = self.s.tree.get(*budget).and_then(|b| b.share(pool.id).unallocated_gpus_max);
            let in_use = pool.ledger.account(*budget).unallocated_gpus;
            if let Some(limit) = limit.filter(|limit| in_use + spec.gang.gpus() > *limit) {
                return Err(Blocker::Cap { budget: *budget, limit, in_use });
            }
        }
        Ok(())
    }
}
