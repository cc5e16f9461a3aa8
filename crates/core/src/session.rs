//! Sessions: interactive work, few and small, that may renew its contract while somebody uses it.

use crate::entry::Entry;
use crate::event::Rejection;
use crate::explain::Why;
use crate::id::{LeaseId, WorkloadId};
use crate::lease::protect_anew;
use crate::pool::Pool;
use crate::scheduler::Scheduler;
use crate::spec::{WorkloadKind, WorkloadSpec};
use crate::workload::Workload;

/// The most GPUs that a session may have.
const GPUS_MAX: u32 = 8;

/// A session is small, and its user has no other in the pools that it names.
pub(crate) fn check(s: &Scheduler, spec: &WorkloadSpec) -> Result<(), Rejection> {
    if spec.kind != WorkloadKind::Session {
        return Ok(());
    }
    let gpus = spec.gang.gpus().0;
    if gpus > GPUS_MAX {
        let expected = format!("at most {GPUS_MAX} GPUs for a session");
        return Err(Rejection::Request { field: "gpus", value: gpus.to_string(), expected });
    }
    let open = spec.pools.iter().find_map(|pool| s.pools[pool.index()].sessions.get(&spec.user));
    open.map_or(Ok(()), |open| Err(Rejection::SessionOpen { workload: *open }))
}

/// A session is its user's one in each of its pools (`present`), or no longer.
pub(crate) fn list(pools: &mut [Pool], id: WorkloadId, workload: &Workload, present: bool) {
    if workload.spec.kind != WorkloadKind::Session {
        return;
    }
    for pool in workload.all_terms().map(|terms| terms.pool.index()) {
        if present {
            pools[pool].sessions.insert(workload.spec.user, id);
        } else {
            pools[pool].sessions.remove(&workload.spec.user);
        }
    }
}

/// Somebody uses a session. Once for each of its contracts is enough to know.
pub(crate) fn input(s: &mut Scheduler, id: LeaseId, log: &mut Vec<Entry>) -> Result<(), Rejection> {
    let workload = s.workloads.get_mut(id.workload.0).expect("checked");
    if workload.spec.kind != WorkloadKind::Session {
        return Err(Rejection::LeaseState { lease: id, message: "only a session has input" });
    }
    let pool = workload.terms.pool;
    let lease = workload.lease_mut().expect("checked");
    if lease.running.is_none() {
        return Err(Rejection::LeaseState { lease: id, message: "it does not run yet" });
    }
    if !std::mem::replace(&mut lease.input, true) {
        log.push(Entry::Input { lease: id });
        s.pools[pool.index()].stirred = true;
    }
    Ok(())
}

/// A session gets its contract once more, from now on.
pub(crate) fn renew(s: &mut Scheduler, id: WorkloadId, why: Why, log: &mut Vec<Entry>) {
    let now = s.now;
    let workload = s.workloads.get_mut(id.0).expect("it is live");
    let pool = &mut s.pools[workload.terms.pool.index()];
    pool.list_takeable(id, workload, workload.lease().expect("it holds a lease"), false);
    workload.terms.contract = workload.contract_left(now);
    let lease = workload.lease_mut().expect("it holds a lease");
    (lease.past_contract, lease.input) = (false, false);
    let (lease_id, placement) = (lease.id(id), lease.placement.clone());
    pool.cluster.mark(&placement, None);
    let protected_until = protect_anew(pool, id, workload, now);
    log.push(Entry::Renewed { lease: lease_id, protected_until, why });
}
