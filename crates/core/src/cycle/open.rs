//! Which waiting work a walk looks at: what was never tried, and what something could have helped since it was.

use super::Cycle;
use crate::cluster::Depth;
use crate::id::{BudgetId, PoolId};
use crate::licence::Judge;
use crate::order::OpenLeaf;
use crate::plan::{Decision, LicensedLeaf};
use crate::quantity::{Span, Time};
use crate::queue::{Gate, LeafQueue, Licensed};

impl Cycle<'_> {
    /// The leaves with shapes that something could have helped since they were last tried, at most so many of each leaf, rotating.
    pub(super) fn open(&mut self, allocated: bool) -> Vec<OpenLeaf> {
        let pool = &mut self.s.pools[self.pool];
        let mut queues = std::mem::take(if allocated { &mut pool.queue.allocated } else { &mut pool.queue.unallocated });
        let (mut open, mut spare) = (Vec::new(), None::<OpenLeaf>);
        for (leaf, queue) in queues.iter_mut().filter(|(_, queue)| queue.waiting > 0) {
            let mut of_leaf = spare.take().unwrap_or_else(|| OpenLeaf::new(*leaf, allocated));
            of_leaf.leaf = *leaf;
            if allocated {
                self.open_allocated(queue, &mut of_leaf)
            } else {
                self.open_unallocated(queue, &mut of_leaf)
            }
            self.rotate(&mut of_leaf);
            match of_leaf.shapes.is_empty() {
                true => spare = Some(of_leaf),
                false => open.push(of_leaf),
            }
        }
        let pool = &mut self.s.pools[self.pool];
        *(if allocated { &mut pool.queue.allocated } else { &mut pool.queue.unallocated }) = queues;
        open
    }

    /// A blocked shape is worth another try if GPUs came within reach on which it may fit, or if its licences may reach further now.
    fn open_allocated(&mut self, queue: &mut LeafQueue, open: &mut OpenLeaf) {
        let now = self.s.now;
        let mut licensed = None;
        for Gate { shape, size, blocked, .. } in &queue.gates {
            let pool = &self.s.pools[self.pool];
            let Some(blocked) = blocked else {
                open.push(*shape, None);
                continue;
            };
            if blocked.reach != pool.reach && pool.cluster.may_fit(*size, Depth::Yielding) {
                open.push(*shape, Some(Depth::Yielding));
                continue;
            }
            let due = blocked.takeable != pool.takeable || now >= blocked.retry_at;
            if !due || !pool.cluster.may_fit(*size, Depth::PastContract) {
                // What is not due is looked at again when it is; what cannot fit waits for an event.
                self.retry_at = self.retry_at.min(if due { Time::MAX } else { blocked.retry_at });
                continue;
            }
            let within_reach = pool.cluster.reachable(size.express);
            let licensed = *licensed.get_or_insert_with(|| self.licensed(open.leaf, queue));
            self.retry_at = self.retry_at.min(licensed.until);
            if size.express || within_reach + licensed.gpus >= size.gpus() {
                open.push(*shape, Some(Depth::PastContract));
            }
        }
        if licensed.is_some() {
            queue.licensed = licensed;
        }
    }

    /// What the licences of a leaf reach: looked at anew when leases became takeable, and now and then as standings drift.
    /// The caller writes it down at the queue, which is not in its place here.
    fn licensed(&mut self, leaf: BudgetId, queue: &LeafQueue) -> Licensed {
        let at = self.s.now;
        let pool = &mut self.s.pools[self.pool];
        if let Some(licensed) = queue.licensed.filter(|l| l.takeable == pool.takeable && at < l.until) {
            return licensed;
        }
        let (takeable, until) = (pool.takeable, at + pool.knobs.retry_every);
        let mut judge = Judge { pool, tree: &self.s.tree, standings: &mut self.standings, at };
        let licensed = Licensed { gpus: judge.reachable_past(leaf, queue, &self.s.workloads), takeable, until };
        self.plan.decisions.push(Decision::Licensed(LicensedLeaf { pool: PoolId(self.pool as u16), leaf, licensed }));
        licensed
    }

    /// The same for a leaf whose queue is in its place.
    pub(super) fn licensed_now(&mut self, leaf: BudgetId) -> u32 {
        let mut queues = std::mem::take(&mut self.s.pools[self.pool].queue.allocated);
        let gpus = queues.get_mut(&leaf).map_or(0, |queue| {
            let licensed = self.licensed(leaf, queue);
            queue.licensed = Some(licensed);
            licensed.gpus
        });
        self.s.pools[self.pool].queue.allocated = queues;
        gpus
    }

    fn open_unallocated(&self, queue: &LeafQueue, open: &mut OpenLeaf) {
        let freed = self.s.pools[self.pool].freed;
        let is_open = |gate: &&Gate| gate.blocked.is_none_or(|blocked| blocked.reach != freed);
        queue.gates.iter().filter(is_open).for_each(|gate| open.push(gate.shape, None));
    }

    /// Of more shapes than one cycle tries, those whose turn it is; over some cycles all are tried.
    fn rotate(&mut self, open: &mut OpenLeaf) {
        let pool = &self.s.pools[self.pool];
        let (count, shapes_max) = (open.shapes.len(), pool.knobs.shapes_max.max(1) as usize);
        if count > shapes_max {
            let first = (pool.walks as usize).wrapping_mul(shapes_max) % count;
            let mut place = 0;
            open.retain(|_, _| {
                place += 1;
                (place - 1 + count - first) % count < shapes_max
            });
            self.is_cut_short = true;
            self.retry_at = self.retry_at.min(self.s.now + Span::seconds(1));
        }
    }
}
