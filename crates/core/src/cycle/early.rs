//! Work that a cap keeps from its turn may start before it: unallocated on idle GPUs, and promoted in place when its turn comes.

use super::Cycle;
use crate::entry::Occupancy;
use crate::explain::{Blocker, Tier, Why};
use crate::id::{PoolId, WorkloadId};
use crate::order::{OpenLeaf, standings_down_to};
use crate::plan::Decision;
use crate::quantity::Span;
use crate::queue::ShapeId;
use crate::reservation::grace_max;
use crate::spec::NodeState;

impl Cycle<'_> {
    /// Its turn has come where it runs already. A promotion counts as a start: it is allowed only where a start with that contract would be.
    pub(super) fn try_promote(&mut self, id: WorkloadId, tier: Tier) -> Result<(), Blocker> {
        let now = self.now();
        self.check_caps(self.workload(id))?;
        self.check_ground(id)?;
        let leaf = self.s.tree.get(self.workload(id).spec.budget).expect("work runs in a budget");
        let standings = standings_down_to(leaf, &mut self.s.pools[self.pool], &mut self.standings, now);
        let why = Why::Turn { tier, standings };
        self.decide(Decision::Promote { workload: id, why });
        Ok(())
    }

    /// Whether its contract may begin, or begin anew, on the nodes of its lease.
    pub(super) fn check_ground(&self, id: WorkloadId) -> Result<(), Blocker> {
        let (now, workload) = (self.s.now, self.workload(id));
        let (pool, lease) = (&self.s.pools[self.pool], workload.lease().expect("it holds GPUs"));
        let contract = workload.contract_left(now);
        if lease.stop.is_some() || contract <= Span::ZERO {
            return Err(Blocker::Leaving);
        }
        // What is there by its contract already is counted in the bound.
        let express = match lease.occupancy {
            Occupancy::Allocated => pool.queue.shape(workload.terms.shape).express,
            Occupancy::Unallocated => self.may_use_express(id),
        };
        let gone_by = lease.running.map_or(lease.start_by, |_| now) + contract + grace_max(&pool.knobs);
        for slot in lease.placement.iter() {
            let node = pool.cluster.at(slot.node);
            if node.state != NodeState::Ready || (node.spec.express && !express) {
                return Err(Blocker::NotThere { node: slot.node });
            }
            if let Some((reservation, from)) = node.promises.iter().min_by_key(|(_, from)| *from).filter(|(_, from)| gone_by > *from) {
                let workload = pool.reservations.by_id[reservation].workload;
                return Err(Blocker::Reserved { workload, from: *from, gone_by });
            }
        }
        Ok(())
    }

    /// The leaves with shapes that may start before their turn, for which GPUs became free since they were last tried. What no cap keeps
    /// from its turn found no GPUs in its turn, and would find none now.
    pub(super) fn open_early(&self) -> Vec<OpenLeaf> {
        let pool = &self.s.pools[self.pool];
        let capped = pool.queue.allocated.iter().filter(|(_, queue)| queue.is_capped());
        let leaves = capped.map(|(leaf, queue)| {
            let mut open = OpenLeaf::new(*leaf, true);
            queue.capped(pool.freed).for_each(|shape| open.push(shape, None));
            open
        });
        leaves.filter(|open| !open.shapes.is_empty()).collect()
    }

    /// Whether work with a contract might start with it in a pool that is still to be gone through: that is better than to start without.
    pub(super) fn may_still_start_elsewhere(&self, id: WorkloadId) -> bool {
        let workload = self.workload(id);
        let accepts = |pool: &usize| *pool != self.pool && workload.all_terms().any(|terms| terms.pool == PoolId(*pool as u16));
        workload.is_allocated() && self.pending.iter().any(accepts)
    }

    /// Who is promised a start waits for it: it would have to be stopped again at its date.
    pub(super) fn check_unpromised(&self, id: WorkloadId) -> Result<(), Blocker> {
        let Some((pool, reservation)) = self.workload(id).reservation else { return Ok(()) };
        let latest_start = self.s.pools[pool.index()].reservations.by_id[&reservation].latest_start;
        Err(Blocker::DateNear { latest_start })
    }

    /// Whether what stops a workload says nothing of others of its shape: where it runs already, or what it alone was promised.
    pub(super) fn stops_it_alone(&self, id: WorkloadId, blocker: &Blocker, filling: bool) -> bool {
        match blocker {
            Blocker::Leaving | Blocker::NotThere { .. } => true,
            Blocker::Reserved { .. } => self.workload(id).is_early(),
            Blocker::DateNear { .. } => filling,
            _ => false,
        }
    }

    /// A workload is left out of the rest of this walk; whether there is more of its shape.
    pub(super) fn skip(&self, open: &mut OpenLeaf, id: WorkloadId, shape: ShapeId) -> bool {
        open.skip.insert(id);
        open.firsts.clear();
        self.s.pools[self.pool].queue.allocated.get(&open.leaf).is_some_and(|queue| queue.has_more(shape, &open.skip))
    }
}
