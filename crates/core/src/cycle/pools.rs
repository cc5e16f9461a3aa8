//! Several pools in one instant: in which order they are gone through, and work that waits in more than one of them.
//!
//! A workload goes to the first of its pools that has GPUs for it. So a pool that waiting work likes better is gone through before the ones
//! it likes less. Where two pools are each liked better by somebody, one must come first: work whose turn it is there is left to the other
//! pool if that could start it now, and comes back if others were before it there.

use super::Cycle;
use crate::entry::Entry;
use crate::explain::{Blocker, Tier};
use crate::id::{PoolId, WorkloadId};
use crate::plan::Plan;
use crate::scheduler::Scheduler;

/// Whether nothing of a pool is due, held or leaving service: most instants are an end or a submission.
pub(super) fn is_settled(s: &Scheduler, pool: usize) -> bool {
    let pool = &s.pools[pool];
    pool.claims.is_empty() && pool.draining.is_empty() && pool.timers.first().is_none_or(|(due, _)| *due > s.now)
}

/// The pools of one instant that are still to be gone through.
pub(super) struct Round {
    pending: Vec<usize>,
    /// Pools in which work was left to others: they are gone through again.
    again: Vec<usize>,
    is_first: bool,
    /// How many promises had ended in each pool when it was last gone through.
    ended: Vec<u64>,
}

impl Round {
    /// The pools in which something was freed, queued or is due to be looked at again.
    pub(super) fn new(s: &mut Scheduler) -> Round {
        let mut pending = std::mem::take(&mut s.round);
        pending.extend((0..s.pools.len()).filter(|pool| s.pools[*pool].stirred || s.now >= s.pools[*pool].retry_at));
        let ended = s.pools.iter().map(|pool| pool.reservations.ended).collect();
        Round { pending, again: Vec::new(), is_first: true, ended }
    }

    /// Gives the memory back for the next instant.
    pub(super) fn rest(self, s: &mut Scheduler) {
        s.round = self.pending;
    }

    /// The next pool: the first in which nobody waits who likes a pending one better, else the first.
    pub(super) fn take_next(&mut self, s: &Scheduler) -> Option<usize> {
        if self.pending.is_empty() {
            self.pending.append(&mut self.again);
            self.is_first = false;
        }
        if self.pending.is_empty() {
            return None;
        }
        let is_last_resort = |pool: usize| s.pools[pool].queue.before.keys().any(|other| self.pending.contains(&other.index()));
        let place = self.pending.iter().position(|pool| !is_last_resort(*pool)).unwrap_or(0);
        Some(self.pending.remove(place))
    }

    /// The pools that work may be left to now. In a later round these are only the ones that still come in it, so that the last of a
    /// round leaves nothing: there are at most as many rounds as pools.
    pub(super) fn pending(&self) -> Vec<usize> {
        let again = if self.is_first { &self.again[..] } else { &[] };
        self.pending.iter().chain(again).copied().collect()
    }

    pub(super) fn went_through(&mut self, pool: usize, left_to_others: bool) {
        if left_to_others {
            self.again.push(pool);
        }
    }

    /// A start in one pool ends a promise in another and leaves nodes there to others: that pool is gone through again.
    pub(super) fn look_again(&mut self, s: &Scheduler) {
        for (pool, seen) in self.ended.iter_mut().enumerate() {
            let ended = s.pools[pool].reservations.ended;
            if ended != *seen && !self.pending.contains(&pool) && !self.again.contains(&pool) {
                self.pending.push(pool);
            }
            *seen = ended;
        }
    }
}

/// What would stop a waiting workload in a pool if it were its turn now, found by trying it on a copy; `None` if nothing would.
pub(crate) fn judge(s: &Scheduler, id: WorkloadId, pool: PoolId) -> Option<Blocker> {
    let mut copy = s.clone();
    let (mut log, mut plan) = (Vec::<Entry>::new(), Plan::default());
    let mut cycle = Cycle { explains: true, trial: true, ..Cycle::new(&mut copy, &mut log, &mut plan, pool.index()) };
    cycle.probe(id).err()
}

impl Cycle<'_> {
    /// Whether a pool that a workload likes better is still to be gone through, and could start it now. One in which a start here just ended
    /// a promise is gone through again.
    pub(super) fn is_better_off_elsewhere(&mut self, id: WorkloadId) -> bool {
        let (pending, given_back) = (self.pending, std::mem::take(&mut self.given_back));
        let is_better = pending.iter().chain(&given_back).any(|other| self.likes_better(id, *other) && self.could_start_in(*other, id));
        self.given_back = given_back;
        is_better
    }

    fn likes_better(&self, id: WorkloadId, other: usize) -> bool {
        let (other, workload) = (PoolId(other as u16), self.workload(id));
        let here = workload.in_pool(PoolId(self.pool as u16));
        self.s.pools[self.pool].queue.shape(here.shape).before.contains(&other) && workload.all_terms().any(|terms| terms.pool == other)
    }

    fn could_start_in(&mut self, other: usize, id: WorkloadId) -> bool {
        let mut there = Cycle { trial: true, ..Cycle::new(self.s, self.log, self.plan, other) };
        there.probe(id).is_ok()
    }

    /// Tries a workload out of its turn and does nothing.
    fn probe(&mut self, id: WorkloadId) -> Result<(), Blocker> {
        self.begin_walk();
        let (budget, allocated, now) = (self.workload(id).spec.budget, self.workload(id).is_allocated(), self.now());
        if !allocated {
            return self.try_fill(id);
        }
        let standing = self.standings.of(&mut self.s.pools[self.pool], now, budget);
        let tier = if self.pool().is_below_share(standing) { Tier::OwnShare } else { Tier::Tree };
        self.try_turn(id, tier)
    }
}
