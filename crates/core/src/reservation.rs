//! Reservations: promised latest starts, the nodes they keep, and how they end.
//!
//! A reserved workload stays in its queue and may start earlier, like all others. Its promise is that from a date on some nodes are its
//! alone: until then other allocated work runs there only if it has certainly left by then, and unallocated work always.

pub(crate) mod choice;
pub(crate) mod survey;

use crate::entry::{Entry, Unreserved};
use crate::id::{BudgetId, NodeId, PoolId, ReservationId, WorkloadId};
use crate::knobs::Knobs;
use crate::lease::commit;
use crate::plan::Reserve;
use crate::pool::Pool;
use crate::quantity::{Span, Time};
use crate::scheduler::Scheduler;
use crate::workload::{Phase, Terms};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Promises look for an earlier start, and gangs that could not have one for one, every so often: what they wait for is hours away.
pub(crate) const LOOK_EVERY: Span = Span::minutes(15);

/// A promise to one workload.
#[derive(Clone, Debug, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Reservation {
    pub workload: WorkloadId,
    pub leaf: BudgetId,
    /// Sorted.
    pub nodes: Arc<[NodeId]>,
    /// By then the last protection on its nodes has ended: what is still there is told to leave.
    pub clears: Time,
    pub latest_start: Time,
    /// By then the contract that it promises is over at the latest: what a later grant reckons with.
    pub ends: Time,
    /// It cannot have one of its nodes in time any more.
    pub is_short: bool,
}

/// The promises of one pool.
#[derive(Clone, Debug, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Reservations {
    pub by_id: BTreeMap<ReservationId, Reservation>,
    /// When to look for earlier starts.
    pub keep_at: Time,
    /// When to look for gangs that could have one.
    pub grant_at: Time,
    /// Counts promises that ended: what they kept from others is free for all.
    pub ended: u64,
    /// How many gangs had been queued when that was last looked at.
    seen: u64,
}

impl Default for Reservations {
    fn default() -> Reservations {
        Reservations { by_id: BTreeMap::new(), keep_at: Time::MIN, grant_at: Time::MAX, ended: 0, seen: 0 }
    }
}

impl Reservations {
    pub(crate) fn looked_at(&mut self, keep_at: Time, grant_at: Time, gangs: u64) {
        (self.keep_at, self.grant_at, self.seen) = (keep_at, grant_at, gangs);
    }

    /// Whether gangs may be looked at that could have a reservation now and could not when that was last looked at.
    pub(crate) fn may_grant(&self, now: Time, gangs: u64) -> bool {
        now >= self.grant_at || self.seen != gangs
    }

    /// When something about them is due after `now`.
    pub(crate) fn next_look(&self, now: Time, max: u32) -> Time {
        let grant = (self.by_id.len() < max as usize).then_some(self.grant_at);
        let keep = self.by_id.values().flat_map(|one| [one.clears, self.keep_at]);
        keep.chain(grant).filter(|at| *at > now).min().unwrap_or(Time::MAX)
    }

    pub(crate) fn has(&self, leaf: BudgetId) -> bool {
        self.by_id.values().any(|one| one.leaf == leaf)
    }
}

/// The longest that GPUs are held before the last victim is gone or its nodes drain.
pub(crate) fn hold_max(knobs: &Knobs) -> Span {
    knobs.checkpoint_wait_max + grace_max(knobs) + knobs.kill_timeout
}

/// What a reservation leaves those who must go at its date.
pub(crate) fn grace_max(knobs: &Knobs) -> Span {
    knobs.grace_allocated.max(knobs.grace_unallocated)
}

/// When a workload that starts at `at` on these terms has certainly left, by its contract: `end` work ends by then, other work is preempted.
pub(crate) fn gone_by(knobs: &Knobs, terms: &Terms, at: Time) -> Time {
    at + knobs.start_timeout + terms.contract + grace_max(knobs)
}

/// A promise is made, or moves to an earlier start or other nodes.
pub(crate) fn reserve(s: &mut Scheduler, reserve: &Reserve, log: &mut Vec<Entry>) {
    let Reserve { reservation: id, workload: of, nodes, clears, latest_start, why } = reserve.clone();
    let pool = s.pool_of(nodes[0]).expect("a known node has a pool");
    let workload = s.workloads.get_mut(of.0).expect("it is live");
    let pool = &mut s.pools[pool.index()];
    match pool.reservations.by_id.remove(&id) {
        Some(before) => list(pool, id, &before, false),
        None => {
            workload.reservation = Some((pool.id, id));
            commit(pool, workload, &[], 1);
            s.next_reservation = id.0 + 1;
        }
    }
    let ends = latest_start + pool.knobs.start_timeout + workload.in_pool(pool.id).contract;
    let leaf = workload.spec.budget;
    let reservation = Reservation { workload: of, leaf, nodes: Arc::clone(&nodes), clears, latest_start, ends, is_short: false };
    list(pool, id, &reservation, true);
    pool.reservations.by_id.insert(id, reservation);
    pool.stir();
    log.push(Entry::Reserved { reservation: id, workload: of, pool: pool.id, latest_start, nodes, why });
}

/// Writes a promise down at its nodes, or strikes it out.
fn list(pool: &mut Pool, id: ReservationId, reservation: &Reservation, present: bool) {
    for node in reservation.nodes.iter() {
        pool.cluster.change(*node, |node| {
            node.promises.retain(|(other, _)| *other != id);
            if present {
                node.promises.push((id, reservation.latest_start));
            }
        });
    }
}

/// A promise is over.
pub(crate) fn unreserve(s: &mut Scheduler, pool: PoolId, id: ReservationId, why: Unreserved, log: &mut Vec<Entry>) {
    let pool = &mut s.pools[pool.index()];
    let reservation = pool.reservations.by_id.remove(&id).expect("it is made");
    list(pool, id, &reservation, false);
    let workload = s.workloads.get_mut(reservation.workload.0).expect("it is live");
    // The contract of a plan in this pool took the place of the promised one.
    if matches!(workload.phase, Phase::Waiting) || workload.terms.pool != pool.id {
        commit(pool, workload, &[], -1);
    }
    workload.reservation = None;
    pool.reservations.grant_at = Time::MIN;
    pool.reservations.ended += 1;
    pool.stir();
    log.push(Entry::Unreserved { reservation: id, workload: reservation.workload, why });
}

/// The promise to a workload that waits is over, if it has one.
pub(crate) fn give_up(s: &mut Scheduler, of: WorkloadId, why: Unreserved, log: &mut Vec<Entry>) {
    let Some(workload) = s.workloads.get(of.0) else { return };
    if let Some((pool, id)) = workload.reservation {
        unreserve(s, pool, id, why, log);
    }
}

/// A node leaves service, or something on it is protected for longer than was reckoned with.
pub(crate) fn shorten(pool: &mut Pool, node: NodeId, own: Option<ReservationId>, protected_until: Time) {
    if pool.reservations.by_id.is_empty() {
        return;
    }
    for (id, _) in pool.cluster.at(node).promises.clone().into_iter().filter(|(id, _)| Some(*id) != own) {
        let reservation = pool.reservations.by_id.get_mut(&id).expect("it is made");
        reservation.is_short |= protected_until > reservation.clears;
    }
}

/// Promises that their budgets may not keep any more: the claim is gone, or a cap is too low.
pub(crate) fn drop_unfunded(s: &mut Scheduler, log: &mut Vec<Entry>) {
    for pool in 0..s.pools.len() {
        // The latest grant goes first.
        let ids: Vec<ReservationId> = s.pools[pool].reservations.by_id.keys().rev().copied().collect();
        for id in ids {
            let pool = &s.pools[pool];
            let leaf = s.tree.get(pool.reservations.by_id[&id].leaf).expect("work runs in a budget");
            let is_over_cap = leaf.line.iter().any(|budget| {
                let limit = s.tree.get(*budget).and_then(|b| b.share(pool.id).gpus_max);
                limit.is_some_and(|limit| pool.ledger.account(*budget).gpus > limit)
            });
            if leaf.claim(pool.id).0 == 0 || is_over_cap {
                unreserve(s, pool.id, id, Unreserved::Budget, log);
            }
        }
    }
}
