//! Idle GPUs go to unallocated work, and to work that a cap keeps from its turn.

use super::Cycle;
use crate::cluster::Lane;
use crate::explain::{Blocker, Tier};
use crate::id::WorkloadId;
use crate::order::{Turn, next_unallocated};
use crate::placement::{Ground, lanes, place, place_before_drain};
use crate::pool::Pool;
use crate::quantity::{Span, Time};
use crate::reservation::gone_by;

impl Cycle<'_> {
    /// Idle GPUs go to unallocated work and to work that a cap keeps from its turn, by the tree. In a leaf the latter goes first.
    pub(super) fn fill(&mut self) {
        let now = self.now();
        let idle = |pool: &Pool| {
            pool.cluster.free(Lane::General).0 + pool.cluster.free(Lane::Express).0 > 0 || !pool.cluster.maintenance.is_empty()
        };
        // What was left to others may come back, and with a contract it goes first.
        if self.left_to_others || !idle(self.pool()) {
            return;
        }
        let mut open = self.open_early();
        let mut later = if self.pool().queue.unallocated.is_empty() { Vec::new() } else { self.open(false) };
        let mut still: Option<Turn> = None;
        while idle(self.pool()) {
            let ready = later.extract_if(.., |leaf| open.iter().all(|other| other.leaf != leaf.leaf)).collect::<Vec<_>>();
            still = still.filter(|_| ready.is_empty());
            open.extend(ready);
            if open.is_empty() {
                break;
            }
            let pool = &mut self.s.pools[self.pool];
            let turn = still.take().or_else(|| next_unallocated(&open, pool, &self.s.tree, &mut self.standings, now));
            let Some(Turn { index, by_age, .. }) = turn else { break };
            let (leaf, id) = (open[index].leaf, self.head(&mut open[index]));
            if self.is_better_off_elsewhere(id) || self.may_still_start_elsewhere(id) {
                self.leave_to_others(&mut open, index, id);
                continue;
            }
            let result = self.try_fill(id);
            self.close(&mut open, index, id, result, true);
            // Neither a start nor a try in vain changes whose turn it is.
            still = turn.filter(|_| !by_age && open.get(index).is_some_and(|open| open.leaf == leaf));
        }
    }

    /// Tries one workload on idle GPUs, unallocated.
    pub(super) fn try_fill(&mut self, id: WorkloadId) -> Result<(), Blocker> {
        self.check_unpromised(id)?;
        self.check_unallocated_caps(id)?;
        let workload = self.s.workloads.get(id.0).expect("it is live");
        let pool = &self.s.pools[self.pool];
        let gang = workload.spec.gang;
        let slots = if workload.is_allocated() {
            // Where it could never be promoted it would only be in the way, and lose what it did when others take the node.
            let (express, gone_by) = (self.may_use_express(id), gone_by(&pool.knobs, workload.in_pool(pool.id), self.s.now));
            let ground = Ground { lanes: &[], gone_by, own: None, only: None };
            lanes(express).iter().find_map(|lanes| place(&pool.cluster, &Ground { lanes, ..ground }, &gang))
        } else {
            let lanes: [&[Lane]; 3] = [&[Lane::General], &[Lane::Express], &[Lane::General, Lane::Express]];
            let ground = Ground { lanes: &[], gone_by: Time::MIN, own: None, only: None };
            let slots = lanes.iter().find_map(|lanes| place(&pool.cluster, &Ground { lanes, ..ground }, &gang));
            slots.or_else(|| place_before_drain(&pool.cluster, &gang, self.s.now + Span(1), true))
        };
        let Some(slots) = slots else {
            let free = pool.cluster.free(Lane::General) + pool.cluster.free(Lane::Express);
            let (needed, protected_until) = (gang.gpus(), None);
            return Err(pool.out_of_service(needed).unwrap_or(Blocker::InUse { needed, reachable: free, protected_until }));
        };
        self.start(id, Tier::Idle, slots);
        Ok(())
    }
}
