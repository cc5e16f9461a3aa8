//! Claims: GPUs held for a workload until those who still occupy them are gone.

use crate::changeset::{follow, keep_closed};
use crate::entry::{ChargeKind, Entry, Licence, Occupancy, Placement};
use crate::explain::Why;
use crate::id::{NodeId, PoolId, WorkloadId};
use crate::lease::{commit_plan, occupy, spare};
use crate::pool::Pool;
use crate::quantity::{Gpus, Time};
use crate::queue::{ask, join_queues, leave_queues};
use crate::scheduler::Scheduler;
use crate::workload::{Claim, Phase, StopCause, Workload};

/// Holds a placement for a waiting workload; its contract is committed from now on.
pub(crate) fn claim(s: &mut Scheduler, id: WorkloadId, placement: &Placement, licence: Licence, log: &mut Vec<Entry>) {
    let now = s.now;
    let pool = s.pool_of(placement[0].node).expect("a known node has a pool");
    let workload = s.workloads.get_mut(id.0).expect("it is live");
    leave_queues(&mut s.pools, id, workload, &s.tree);
    workload.enter(pool);
    let pool = &mut s.pools[pool.index()];
    pool.cluster.hold(placement, &workload.spec.gang, 1);
    commit_plan(pool, workload, placement, 1);
    occupy(pool, workload, 1);
    let vacant: Gpus = placement.iter().map(|slot| Gpus(slot.gpus.minus(pool.cluster.at(slot.node).leased).count())).sum();
    let mut claim = Claim { placement: placement.clone(), licence, planned: now, charges: Vec::new() };
    charge_hold(pool, workload, &mut claim, now, vacant);
    workload.phase = Phase::Claiming(claim);
    pool.claims.insert(id);
    log.push(Entry::Hold { claimant: id, placement: placement.clone() });
}

/// From `at` on these vacant GPUs are charged to the claimant; unallocated work is never charged.
fn charge_hold(pool: &mut Pool, workload: &Workload, claim: &mut Claim, at: Time, vacant: Gpus) {
    if vacant.0 > 0 && workload.is_allocated() {
        pool.ledger.charge(at, &workload.terms.charge, i64::from(vacant.0));
        claim.charges.push((at, vacant));
    }
}

/// A lease left these GPUs: what is held for a claimant is charged to it from now on.
pub(crate) fn vacated(s: &mut Scheduler, left: &Placement, by: WorkloadId) {
    let now = s.now;
    let Some(pool) = s.workloads.get(by.0).map(|w| w.terms.pool) else { return };
    let pool = &mut s.pools[pool.index()];
    for id in pool.claims.clone() {
        let workload = s.workloads.get_mut(id.0).expect("a claimant is live");
        let Phase::Claiming(claim) = &workload.phase else { unreachable!("it is listed as claiming") };
        let in_common = |slot: &crate::entry::Slot| {
            let of_left = left.iter().filter(|l| l.node == slot.node).map(|l| l.gpus.and(slot.gpus).count());
            of_left.sum::<u32>()
        };
        let vacant = Gpus(claim.placement.iter().map(in_common).sum());
        if vacant.0 > 0 {
            let mut claim = claim.clone();
            charge_hold(pool, workload, &mut claim, now, vacant);
            workload.phase = Phase::Claiming(claim);
        }
    }
}

/// Whether nobody occupies a claim's GPUs any more, nor the CPUs and memory that go with them.
pub(crate) fn is_complete(pool: &Pool, claim: &Claim) -> bool {
    claim.placement.iter().all(|slot| {
        let node = pool.cluster.at(slot.node);
        slot.gpus.and(node.leased).0 == 0 && node.host_free.cpus >= 0 && node.host_free.memory >= 0
    })
}

/// The charges for a claim's vacant GPUs end now.
pub(crate) fn settle_hold_charges(pool: &mut Pool, id: WorkloadId, workload: &Workload, claim: &Claim, now: Time, log: &mut Vec<Entry>) {
    let budget = workload.spec.budget;
    for (from, gpus) in &claim.charges {
        pool.ledger.charge(now, &workload.terms.charge, -i64::from(gpus.0));
        if *from < now {
            let attempt = workload.attempts + 1;
            let gpu_ms = gpus.over(now - *from);
            log.push(Entry::Charged { workload: id, attempt, budget, pool: pool.id, kind: ChargeKind::Hold, from: *from, to: now, gpu_ms });
        }
    }
}

/// A claim is given up: its workload waits again, victims that have not been signalled are spared, and if the claimant is gone those that
/// have been have first right to their GPUs.
pub(crate) fn unclaim(s: &mut Scheduler, id: WorkloadId, why: &Why, log: &mut Vec<Entry>) {
    let now = s.now;
    let workload = s.workloads.get_mut(id.0).expect("it is live");
    let pool_index = workload.terms.pool.index();
    let pool = &mut s.pools[pool_index];
    let Phase::Claiming(claim) = std::mem::replace(&mut workload.phase, Phase::Waiting) else { unreachable!("only a claim is given up") };
    settle_hold_charges(pool, id, workload, &claim, now, log);
    pool.claims.remove(&id);
    pool.cluster.hold(&claim.placement, &workload.spec.gang, -1);
    commit_plan(pool, workload, &claim.placement, -1);
    occupy(pool, workload, -1);
    pool.stir();
    follow(&mut s.pools, workload, &s.tree);
    join_queues(&mut s.pools, &mut s.completion, id, workload, &s.tree);
    log.push(Entry::Unhold { claimant: id, why: why.clone() });
    unbar(s, pool_index, id, log);
    for victim in s.pools[pool_index].leaving.clone() {
        let lease = s.workloads.get_mut(victim.0).and_then(|w| w.lease_mut()).expect("a lease on its way out");
        let Some(stop) = &lease.stop else { continue };
        if stop.cause != (StopCause::Preempted { claimant: id }) {
            continue;
        }
        if !stop.signalled {
            spare(s, victim, log);
        } else if *why == Why::ClaimantGone && lease.occupancy == Occupancy::Allocated {
            // Unallocated work has no such right: what waits with a contract could take it again in the instant of its start.
            lease.first_right = true;
            let placement = lease.placement.clone();
            s.pools[pool_index].cluster.mark(&placement, None);
        }
    }
}

/// A claim is over: victims that have ended meanwhile wait in their queues again, or are held if their budget was closed.
pub(crate) fn unbar(s: &mut Scheduler, pool: usize, claimant: WorkloadId, log: &mut Vec<Entry>) {
    for id in s.pools[pool].barred.remove(&claimant).unwrap_or_default() {
        let Some(workload) = s.workloads.get_mut(id.0) else { continue };
        if matches!(workload.phase, Phase::Barred) {
            ask(&mut s.pools, workload, -1);
            if s.tree.closed_by(workload.spec.budget).is_some() {
                keep_closed(workload, id, &s.tree, log);
                continue;
            }
            workload.phase = Phase::Waiting;
            join_queues(&mut s.pools, &mut s.completion, id, workload, &s.tree);
            s.pools[pool].stirred = true;
        }
    }
}

/// All claims that hold GPUs of a node that leaves service are given up.
pub(crate) fn drop_claims_on(s: &mut Scheduler, pool: PoolId, node: NodeId, why: &Why, log: &mut Vec<Entry>) {
    for id in s.pools[pool.index()].claims.clone() {
        let workload = s.workloads.get(id.0).expect("a claimant is live");
        let Phase::Claiming(claim) = &workload.phase else { unreachable!("it is listed as claiming") };
        if claim.placement.iter().any(|slot| slot.node == node) {
            unclaim(s, id, why, log);
        }
    }
}
