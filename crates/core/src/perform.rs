//! Decisions are done: one place for the live cycle and for the replay of a journal.

use crate::apply::{drain, node_changed};
use crate::claim::{claim, unbar, unclaim};
use crate::entry::Entry;
use crate::explain::Why;
use crate::lease::{preempt, promote, signal, start, stop_now};
use crate::plan::{Decision, PassedOver};
use crate::pool::Pool;
use crate::reservation;
use crate::scheduler::Scheduler;
use crate::session;
use crate::spec::{NodeState, Severity};
use crate::workload::Phase;

pub(crate) fn perform(s: &mut Scheduler, decision: &Decision, log: &mut Vec<Entry>) {
    match decision {
        Decision::Start { workload, placement, occupancy, licence, why } => {
            start(s, *workload, placement, (*occupancy, *licence), why.clone(), log)
        }
        Decision::Promote { workload, why } => promote(s, *workload, why.clone(), log),
        Decision::Renew { workload, why } => session::renew(s, *workload, why.clone(), log),
        Decision::Claim { workload, placement, licence } => claim(s, *workload, placement, *licence, log),
        Decision::StartClaimed { workload } => {
            let Phase::Claiming(claim) = &s.workloads.get(workload.0).expect("it is live").phase else { unreachable!("it claims") };
            let (placement, licence, planned) = (claim.placement.clone(), claim.licence, claim.planned);
            let claimant = s.workloads.get(workload.0).expect("it is live");
            let (pool, occupancy) = (claimant.terms.pool, claimant.occupancy());
            start(s, *workload, &placement, (occupancy, licence), Why::HoldComplete { pool, planned }, log);
            log.push(Entry::Unhold { claimant: *workload, why: Why::ClaimantStarted });
            s.pools[pool.index()].stirred = true;
            unbar(s, pool.index(), *workload);
        }
        Decision::Reserve(reserve) => reservation::reserve(s, reserve, log),
        Decision::Unreserve { pool, reservation, why } => reservation::unreserve(s, *pool, *reservation, *why, log),
        Decision::LookedAtReservations { pool, keep_at, grant_at } => {
            let pool = &mut s.pools[pool.index()];
            pool.reservations.looked_at(*keep_at, *grant_at, pool.queue.gangs);
        }
        Decision::Preempt { lease, preemption } => preempt(s, lease.workload, preemption, log),
        Decision::Signal { lease } => signal(s, lease.workload, log),
        Decision::Stop { lease, cause } => stop_now(s, lease.workload, cause.clone(), log),
        Decision::PassOver(passed) => pass_over(&mut s.pools[passed.pool.index()], passed),
        Decision::Licensed(note) => {
            if let Some(queue) = s.pools[note.pool.index()].queue.allocated.get_mut(&note.leaf) {
                queue.licensed = Some(note.licensed);
            }
        }
        Decision::Walked { pool, retry_at, too_dear } => s.pools[pool.index()].walked(*retry_at, *too_dear),
        Decision::Stuck { lease } => stuck(s, lease.workload, log),
        Decision::Drained { node } => {
            let pool = s.pool_of(*node).expect("a known node has a pool");
            let pool = &mut s.pools[pool.index()];
            pool.draining.remove(node);
            pool.cluster.change(*node, |node| {
                node.state = NodeState::Drained;
                node.drain_until = None;
            });
            node_changed(s, *node, log);
        }
    }
}

fn pass_over(pool: &mut Pool, passed: &PassedOver) {
    let Some(leaf) = pool.queue.leaf_queue_mut(passed.allocated, passed.leaf) else { return };
    match passed.early {
        true => leaf.filled(passed.shape, passed.blocked.reach),
        false => leaf.block(passed.shape, passed.blocked),
    }
}

/// A victim outlived its grace: its nodes drain critically, and whoever waited for its GPUs is planned again.
fn stuck(s: &mut Scheduler, id: crate::id::WorkloadId, log: &mut Vec<Entry>) {
    let workload = s.workloads.get_mut(id.0).expect("it is live");
    let pool = workload.terms.pool;
    let lease = workload.lease_mut().expect("it holds a lease");
    let lease_id = lease.id(id);
    lease.stop.as_mut().expect("it is on its way out").stuck = true;
    let nodes: Vec<_> = lease.placement.iter().map(|slot| slot.node).collect();
    s.pools[pool.index()].set_timer(id, s.workloads.get_mut(id.0).expect("it is live"));
    for claimant in s.pools[pool.index()].claims.clone() {
        let Phase::Claiming(claim) = &s.workloads.get(claimant.0).expect("it is live").phase else { continue };
        if claim.placement.iter().any(|slot| nodes.contains(&slot.node)) {
            unclaim(s, claimant, &Why::VictimStuck { lease: lease_id }, log);
        }
    }
    for node in nodes {
        let reason = "a lease on it did not end within its grace";
        // Refused only if the node is out of service already.
        let _ = drain(s, node, Severity::Critical, reason, log);
    }
}
