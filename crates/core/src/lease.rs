//! The life of a lease: it starts, runs, is told to stop, and ends; the ledger and the cluster follow.

use crate::apply::{drain, node_changed, recount};
use crate::changeset::{follow, keep_closed};
use crate::claim;
use crate::completion::learn;
use crate::doubt;
use crate::entry::{By, ChargeKind, Entry, Licence, Occupancy, Outcome, Placement, Slot, Unreserved};
use crate::event::Exit;
use crate::explain::Why;
use crate::id::{LeaseId, WorkloadId};
use crate::plan::Preemption;
use crate::pool::Pool;
use crate::quantity::{GpuMs, Span, Time};
use crate::queue::{Shape, ask, ask_in, join_queues, leave_queues};
use crate::reservation::{give_up, gone_by, shorten};
use crate::scheduler::Scheduler;
use crate::session;
use crate::spec::{NodeState, OnPreempt, Severity};
use crate::workload::{Lease, Phase, Stop, StopCause, Workload, is_fault, outcome};

/// A workload that waits (its GPUs are free) or claims (they are held for it) starts. With an occupancy below its contract it goes on
/// waiting for its turn where it is.
pub(crate) fn start(
    s: &mut Scheduler,
    id: WorkloadId,
    placement: &Placement,
    (occupancy, licence): (Occupancy, Licence),
    why: Why,
    log: &mut Vec<Entry>,
) {
    let now = s.now;
    let pool = s.pool_of(placement[0].node).expect("a known node has a pool");
    let workload = s.workloads.get_mut(id.0).expect("it is live");
    if matches!(workload.phase, Phase::Waiting) {
        leave_queues(&mut s.pools, id, workload, &s.tree);
        workload.enter(pool);
    }
    let pool = &mut s.pools[pool.index()];
    match &workload.phase {
        Phase::Waiting if occupancy == Occupancy::Unallocated => {}
        Phase::Waiting => {
            commit_plan(pool, workload, placement, 1);
            occupy(pool, workload, 1);
        }
        Phase::Claiming(claim) => {
            claim::settle_hold_charges(pool, id, workload, claim, now, log);
            pool.claims.remove(&id);
        }
        Phase::Held { .. } | Phase::Barred | Phase::Leased(_) => unreachable!("only waiting or claiming work starts"),
    }
    match occupancy {
        Occupancy::Allocated => pool.ledger.charge(now, &workload.terms.charge, i64::from(workload.terms.charged.0)),
        Occupancy::Unallocated => pool.ledger.use_unallocated(now, &workload.terms.charge, i64::from(workload.spec.gang.gpus().0)),
    }
    pool.cluster.lease(id, placement, &workload.spec.gang);
    workload.attempts += 1;
    let lease = Lease {
        attempt: workload.attempts,
        occupancy,
        placement: placement.clone(),
        started: now,
        start_by: now + pool.knobs.start_timeout,
        running: None,
        promoted: None,
        silent: placement.iter().map(|slot| slot.node).collect(),
        protected_until: None,
        past_contract: false,
        last_checkpoint: None,
        input: false,
        doubted: s.doubts.is_doubted(workload, now),
        stop: None,
        first_right: false,
        timer: Time::MAX,
    };
    pool.list_takeable(id, workload, &lease, true);
    let until = lease.protected_until_latest(workload.terms.contract);
    let own = workload.reservation_in(pool.id);
    // Unallocated work leaves when it is told to: it is in nobody's way.
    placement.iter().filter(|_| occupancy == Occupancy::Allocated).for_each(|slot| shorten(pool, slot.node, own, until));
    let lease_id = lease.id(id);
    workload.phase = Phase::Leased(Box::new(lease));
    pool.set_timer(id, workload);
    if workload.is_early() {
        let shape = pool.queue.shape(workload.terms.shape).early();
        workload.terms.shape = pool.queue.shape_id(shape);
        pool.queue.insert(id, workload, &s.tree);
        ask_in(pool, &workload.terms, 1);
    }
    log.push(Entry::Started { lease: lease_id, pool: pool.id, occupancy, placement: placement.clone(), licence, why });
    give_up(s, id, Unreserved::Started, log);
    recount_drained(s, placement);
}

/// Nodes out of service count what is leased on them.
fn recount_drained(s: &mut Scheduler, placement: &Placement) {
    for slot in placement.iter() {
        let pool = s.pool_of(slot.node).expect("a known node has a pool");
        if s.pools[pool.index()].cluster.at(slot.node).state != NodeState::Ready {
            recount(s, slot.node);
        }
    }
}

/// A plan is made for waiting work (`sign` = 1) or given up (−1). The contract of work that is reserved in the pool is committed already.
pub(crate) fn commit_plan(pool: &mut Pool, workload: &Workload, placement: &Placement, sign: i64) {
    commit(pool, workload, placement, sign);
    if workload.reservation_in(pool.id).is_some() {
        commit(pool, workload, &[], -sign);
    }
}

/// Counts a contract as committed and its GPUs as taken (`sign` = 1), or undoes both (−1). Unallocated work commits nothing.
pub(crate) fn commit(pool: &mut Pool, workload: &Workload, placement: &[Slot], sign: i64) {
    if !workload.is_allocated() {
        return;
    }
    let terms = workload.in_pool(pool.id);
    pool.ledger.commit_whole(&terms.charge, GpuMs(sign * terms.contract_gpu_ms().0));
    hold_gpus(pool, workload, placement, sign);
}

/// Allocated work has GPUs, or has them held for it (`sign` = 1), or no longer (−1): what its budget asks for while it does not wait.
pub(crate) fn occupy(pool: &mut Pool, workload: &Workload, sign: i64) {
    if workload.is_allocated() {
        pool.ledger.occupy(&workload.terms.charge, workload.terms.charged, sign);
    }
}

fn hold_gpus(pool: &mut Pool, workload: &Workload, placement: &[Slot], sign: i64) {
    let on_express = placement.iter().filter(|slot| pool.cluster.at(slot.node).spec.express);
    let express: u32 = on_express.map(|slot| slot.gpus.count()).sum();
    let terms = workload.in_pool(pool.id);
    pool.ledger.hold_gpus(&terms.charge, sign * i64::from(terms.charged.0), sign * i64::from(express));
}

/// All members run: protection begins.
pub(crate) fn running(s: &mut Scheduler, id: LeaseId, log: &mut Vec<Entry>) {
    let now = s.now;
    let workload = s.workloads.get_mut(id.workload.0).expect("checked");
    let pool = &mut s.pools[workload.terms.pool.index()];
    let lease = workload.lease_mut().expect("checked");
    lease.running = Some(now);
    lease.silent.clear();
    if id.attempt == 1 {
        s.waits.first_ran(workload, now);
    }
    let lease = workload.lease_mut().expect("checked");
    // Who was told to stop while starting gets no protection any more.
    let protected = lease.occupancy == Occupancy::Allocated && lease.stop.is_none();
    let protected_until = protected.then(|| protect(pool, id.workload, workload, now));
    pool.set_timer(id.workload, workload);
    serve(pool, workload, now);
    log.push(Entry::Running { lease: id, protected_until });
    if let Some(until) = protected_until {
        let placement = workload.lease().expect("checked").placement.clone();
        placement.iter().for_each(|slot| shorten(pool, slot.node, None, until));
        extend_drains(s, &placement, until, log);
    }
}

/// Protection for a whole contract begins, which is committed already; until when.
fn protect(pool: &mut Pool, id: WorkloadId, workload: &mut Workload, now: Time) -> Time {
    pool.ledger.commit_whole(&workload.terms.charge, GpuMs(-workload.terms.contract_gpu_ms().0));
    protect_anew(pool, id, workload, now)
}

/// Protection for a whole contract begins, and commits it; until when.
pub(crate) fn protect_anew(pool: &mut Pool, id: WorkloadId, workload: &mut Workload, now: Time) -> Time {
    let until = now + workload.terms.contract;
    workload.lease_mut().expect("it holds a lease").protected_until = Some(until);
    pool.ledger.commit_running(&workload.terms.charge, workload.terms.charged, until, 1);
    pool.protections.insert((until, id));
    until
}

/// Its first wait is over, unless what runs still waits for its turn.
fn serve(pool: &mut Pool, workload: &mut Workload, now: Time) {
    if !workload.served && !workload.is_early() {
        workload.served = true;
        pool.queue.waited(workload, now - workload.eligible);
    }
}

/// A lease that runs unallocated gets its contract where it is: charged, committed and protected from now on. Nothing restarts.
pub(crate) fn promote(s: &mut Scheduler, id: WorkloadId, why: Why, log: &mut Vec<Entry>) {
    let now = s.now;
    let workload = s.workloads.get_mut(id.0).expect("it is live");
    let pool = &mut s.pools[workload.terms.pool.index()];
    pool.queue.remove(id, workload, &s.tree);
    ask_in(pool, &workload.terms, -1);
    pool.list_takeable(id, workload, workload.lease().expect("it holds a lease"), false);
    pool.ledger.use_unallocated(now, &workload.terms.charge, -i64::from(workload.spec.gang.gpus().0));
    // As a start would be, its contract is charged to the ancestors that its leaf has now.
    workload.terms.charge.line = pool.ledger.line(s.tree.line(workload.spec.budget));
    occupy(pool, workload, 1);
    workload.terms.contract = workload.contract_left(now);
    let lease = workload.lease_mut().expect("it holds a lease");
    lease.occupancy = Occupancy::Allocated;
    lease.promoted = Some(now);
    let (lease_id, runs, placement) = (lease.id(id), lease.running.is_some(), lease.placement.clone());
    pool.cluster.mark(&placement, None);
    commit(pool, workload, &placement, 1);
    pool.ledger.charge(now, &workload.terms.charge, i64::from(workload.terms.charged.0));
    // One that still starts is protected as all that starts, and its contract begins when it runs.
    let protected_until = runs.then(|| protect(pool, id, workload, now));
    if runs {
        serve(pool, workload, now);
    }
    log.push(Entry::Promoted { lease: lease_id, protected_until, why });
}

/// A report that came after the start timeout, but before anybody acted on it, begins a protection that ends later than a drain reckoned
/// with: a drain never takes a protected lease, so it ends later, too.
fn extend_drains(s: &mut Scheduler, placement: &Placement, until: Time, log: &mut Vec<Entry>) {
    for slot in placement.iter() {
        let pool = s.pool_of(slot.node).expect("a known node has a pool");
        let cluster = &mut s.pools[pool.index()].cluster;
        if cluster.at(slot.node).drain_until.is_some_and(|drain_until| drain_until < until) {
            cluster.change(slot.node, |node| node.drain_until = Some(until));
            node_changed(s, slot.node, log);
        }
    }
}

/// A lease will be preempted: its stop signal goes out at `signal_at`. One that is on its way out already stays so, but a fault of the
/// infrastructure becomes its cause.
pub(crate) fn preempt(s: &mut Scheduler, id: WorkloadId, preemption: &Preemption, log: &mut Vec<Entry>) {
    let now = s.now;
    let Preemption { cause, node, licence, signal_at, why } = preemption.clone();
    let workload = s.workloads.get_mut(id.0).expect("it is live");
    let pool = &mut s.pools[workload.terms.pool.index()];
    let (lost, gpus) = (cause == StopCause::NodeLost, workload.spec.gang.gpus());
    let lease = workload.lease_mut().expect("it holds a lease");
    if let Some(stop) = &mut lease.stop {
        // Who outlives its own grace has itself to blame.
        let own_fault = stop.stuck || matches!(stop.cause, StopCause::Owner | StopCause::Administrator { .. } | StopCause::TimeLimit);
        if cause.is_fault() && !own_fault {
            stop.cause = cause;
            stop.signal_at = stop.signal_at.min(signal_at);
            // Nobody waits for a lost node's processes: the engine fences them.
            stop.stuck |= lost;
        }
        pool.set_timer(id, workload);
        return;
    }
    let grace = match (lost, lease.occupancy) {
        (true, _) => Span::ZERO,
        (false, Occupancy::Allocated) => pool.knobs.grace_allocated,
        (false, Occupancy::Unallocated) => pool.knobs.grace_unallocated,
    };
    let claimant = if let StopCause::Preempted { claimant } = cause { Some(claimant) } else { None };
    if let Some(recovery) = pool.recovery.as_mut().filter(|_| claimant.is_some()) {
        recovery.evicted(now, gpus);
    }
    let stop = Stop { cause, signal_at, signalled: false, grace, stuck: lost };
    let lease_id = lease.id(id);
    let stop_by = stop.stop_by();
    log.push(Entry::Preempting { lease: lease_id, claimant, node, licence, stop_by, why });
    begin_stop(pool, id, workload, stop);
}

/// A lease is on its way out: nobody else may take it.
fn begin_stop(pool: &mut Pool, id: WorkloadId, workload: &mut Workload, stop: Stop) {
    if let Phase::Leased(lease) = &workload.phase {
        pool.list_takeable(id, workload, lease, false);
    }
    let claimed = stop.cause.clone();
    workload.lease_mut().expect("it holds a lease").stop = Some(stop);
    pool.list_leaving(id, workload.lease().expect("it holds a lease"), true);
    if !matches!(claimed, StopCause::Preempted { .. }) {
        // Its GPUs are promised to nobody yet.
        pool.reach += 1;
        pool.stirred = true;
    }
    pool.set_timer(id, workload);
}

/// The stop signal goes out; from then on nothing is committed for the lease.
pub(crate) fn signal(s: &mut Scheduler, id: WorkloadId, log: &mut Vec<Entry>) {
    let now = s.now;
    let workload = s.workloads.get_mut(id.0).expect("it is live");
    let pool = &mut s.pools[workload.terms.pool.index()];
    let lease = workload.lease_mut().expect("it holds a lease");
    let lease_id = lease.id(id);
    let stop = lease.stop.as_mut().expect("it is on its way out");
    if stop.signalled {
        return;
    }
    stop.signalled = true;
    stop.signal_at = now;
    let grace = stop.grace;
    if let Phase::Leased(lease) = &workload.phase {
        uncommit(pool, id, workload, lease);
    }
    pool.set_timer(id, workload);
    log.push(Entry::Stopping { lease: lease_id, grace });
}

/// What a lease still has committed is so no longer.
fn uncommit(pool: &mut Pool, id: WorkloadId, workload: &Workload, lease: &Lease) {
    if lease.occupancy == Occupancy::Unallocated || lease.past_contract {
        return;
    }
    match lease.protected_until {
        Some(until) if pool.protections.remove(&(until, id)) => {
            pool.ledger.commit_running(&workload.terms.charge, workload.terms.charged, until, -1)
        }
        Some(_) => {}
        None => pool.ledger.commit_whole(&workload.terms.charge, GpuMs(-workload.terms.contract_gpu_ms().0)),
    }
}

/// A limit, an owner or an administrator ends a lease: it is told to stop now.
pub(crate) fn stop_now(s: &mut Scheduler, id: WorkloadId, cause: StopCause, log: &mut Vec<Entry>) {
    let now = s.now;
    let workload = s.workloads.get_mut(id.0).expect("it is live");
    let pool = &mut s.pools[workload.terms.pool.index()];
    let lease = workload.lease_mut().expect("it holds a lease");
    match &mut lease.stop {
        Some(stop) => stop.cause = cause,
        None => {
            let grace = match lease.occupancy {
                Occupancy::Allocated => pool.knobs.grace_allocated,
                Occupancy::Unallocated => pool.knobs.grace_unallocated,
            };
            begin_stop(pool, id, workload, Stop { cause, signal_at: now, signalled: false, grace, stuck: false });
        }
    }
    signal(s, id, log);
}

/// The owner or an administrator ends a lease.
pub(crate) fn cancel_lease(
    s: &mut Scheduler,
    id: WorkloadId,
    cause: &StopCause,
    log: &mut Vec<Entry>,
) -> Result<(), crate::event::Rejection> {
    let lease = s.workloads.get_mut(id.0).and_then(|w| w.lease_mut()).expect("checked");
    if let Some(stop) = &lease.stop
        && matches!(stop.cause, StopCause::Owner | StopCause::Administrator { .. })
    {
        return Err(crate::event::Rejection::WorkloadState { workload: id, message: "it is being stopped for that already" });
    }
    lease.first_right = false;
    stop_now(s, id, cause.clone(), log);
    Ok(())
}

/// A victim whose claimant went away before its signal goes on as if nothing had been.
pub(crate) fn spare(s: &mut Scheduler, id: WorkloadId, log: &mut Vec<Entry>) {
    let workload = s.workloads.get_mut(id.0).expect("it is live");
    let pool = &mut s.pools[workload.terms.pool.index()];
    pool.list_leaving(id, workload.lease().expect("it holds a lease"), false);
    let lease = workload.lease_mut().expect("it holds a lease");
    lease.stop = None;
    log.push(Entry::Spared { lease: lease.id(id) });
    if let Phase::Leased(lease) = &workload.phase {
        pool.list_takeable(id, workload, lease, true);
    }
    pool.takeable += 1;
    pool.stirred = true;
    pool.set_timer(id, workload);
}

/// All members of a lease are gone: it is settled, and its workload ends or waits again.
pub(crate) fn end_lease(s: &mut Scheduler, id: LeaseId, exit: Exit, log: &mut Vec<Entry>) {
    let now = s.now;
    let workload = s.workloads.get_mut(id.workload.0).expect("checked");
    let pool = &mut s.pools[workload.terms.pool.index()];
    if workload.is_early() {
        pool.queue.remove(id.workload, workload, &s.tree);
        ask_in(pool, &workload.terms, -1);
    }
    let Phase::Leased(lease) = std::mem::replace(&mut workload.phase, Phase::Waiting) else { unreachable!("checked") };
    match &lease.stop {
        Some(_) => pool.list_leaving(id.workload, &lease, false),
        None => pool.list_takeable(id.workload, workload, &lease, false),
    }
    if lease.stop.as_ref().is_none_or(|stop| !stop.signalled) {
        uncommit(pool, id.workload, workload, &lease);
    }
    pool.timers.remove(&(lease.timer, id.workload));
    pool.cluster.release(id.workload, &lease.placement, &workload.spec.gang);
    pool.freed += 1;
    pool.stirred = true;
    // Before a promise's date there may be time to start on what is free and not to wait for it, so what was within reach counts anew.
    let may_help = !pool.reservations.by_id.is_empty() || now < pool.unsearched_until;
    if lease.occupancy == Occupancy::Allocated || lease.stop.is_some() || may_help {
        pool.reach += 1;
    }
    let outcome = outcome(exit, lease.stop.as_ref().map(|stop| &stop.cause));
    let lost =
        if outcome == Outcome::Completed { GpuMs(0) } else { workload.spec.gang.gpus().over(now - workload.at_stake_since(&lease, now)) };
    let by = lease.stop.as_ref().map_or(By::Itself, |stop| stop.cause.by());
    log.push(Entry::Ended { workload: id.workload, attempt: Some(id.attempt), outcome, lost, by });
    settle_charge(pool, id, workload, &lease, now, log);
    if is_fault(exit, &lease) && lease.occupancy == Occupancy::Allocated {
        refund(pool, id, workload, &lease, now, log);
    }
    claim::vacated(s, &lease.placement, id.workload);
    recount_drained(s, &lease.placement);
    after_end(s, id.workload, &lease, outcome, log);
    if outcome == Outcome::StartTimeout {
        suspect_silent(s, id.workload, &lease, log);
    }
}

/// Requeues a workload whose attempt was cut short and that can go on, or forgets one that is over.
fn after_end(s: &mut Scheduler, id: WorkloadId, lease: &Lease, outcome: Outcome, log: &mut Vec<Entry>) {
    let now = s.now;
    let ran = lease.running.map_or(Span::ZERO, |running| now - running);
    doubt::attempt_ended(s, id, lease, ran, outcome, log);
    let workload = s.workloads.get_mut(id.0).expect("it is live");
    workload.ran = workload.ran + ran;
    let can_go_on = workload.spec.on_preempt != OnPreempt::End || lease.running.is_none();
    let cut_short = matches!(outcome, Outcome::Preempted | Outcome::NodeLost | Outcome::StartTimeout);
    let left = workload.limit_left();
    if !(cut_short && can_go_on && left.is_none_or(|left| left > Span::ZERO)) {
        session::list(&mut s.pools, id, workload, false);
        let ended = s.workloads.remove(id.0).expect("it was live");
        return learn(s, &ended, outcome);
    }
    if outcome == Outcome::Preempted {
        workload.preemptions += 1;
        workload.yielded += u32::from(lease.occupancy == Occupancy::Allocated);
        workload.last_preempted = now;
    }
    // Who ran before its turn has waited for it all the time.
    if lease.occupancy == Occupancy::Allocated || !workload.is_allocated() {
        workload.waiting_since = now;
    }
    let (spec, yielded) = (workload.spec.clone(), workload.yielded);
    for terms in workload.all_terms_mut() {
        let Pool { queue, knobs, .. } = &mut s.pools[terms.pool.index()];
        terms.contract = terms.contract.min(left.unwrap_or(Span(i64::MAX)));
        terms.shape = queue.shape_id(Shape::new(&spec, terms.pool, terms.contract, yielded, knobs));
    }
    log.push(Entry::Requeued { workload: id });
    follow(&mut s.pools, workload, &s.tree);
    if let Some(Stop { cause: StopCause::Preempted { claimant }, .. }) = &lease.stop
        && s.pools[workload.terms.pool.index()].claims.contains(claimant)
    {
        workload.phase = Phase::Barred;
        ask(&mut s.pools, workload, 1);
        s.pools[workload.terms.pool.index()].barred.entry(*claimant).or_default().push(id);
        return;
    }
    if s.tree.closed_by(workload.spec.budget).is_some() {
        return keep_closed(workload, id, &s.tree, log);
    }
    workload.phase = Phase::Waiting;
    join_queues(&mut s.pools, &mut s.completion, id, workload, &s.tree);
    let pool = &s.pools[workload.terms.pool.index()];
    let gone_by = gone_by(&pool.knobs, &workload.terms, now);
    let usable = |slot: &Slot| {
        let node = pool.cluster.at(slot.node);
        let is_promised = node.promised_from(None).is_some_and(|from| gone_by > from);
        node.state == NodeState::Ready && slot.gpus.minus(node.free).0 == 0 && !is_promised
    };
    if lease.first_right && lease.placement.iter().all(usable) {
        claim::claim(s, id, &lease.placement, Licence::Free, log);
    }
}

fn settle_charge(pool: &mut Pool, id: LeaseId, workload: &Workload, lease: &Lease, now: Time, log: &mut Vec<Entry>) {
    if lease.occupancy == Occupancy::Unallocated {
        pool.ledger.use_unallocated(now, &workload.terms.charge, -i64::from(workload.spec.gang.gpus().0));
        return;
    }
    pool.ledger.charge(now, &workload.terms.charge, -i64::from(workload.terms.charged.0));
    hold_gpus(pool, workload, &lease.placement, -1);
    occupy(pool, workload, -1);
    let LeaseId { workload: workload_id, attempt } = id;
    let from = lease.charged_from();
    let gpu_ms = workload.terms.charged.over(now - from);
    let budget = workload.spec.budget;
    log.push(Entry::Charged { workload: workload_id, attempt, budget, pool: pool.id, kind: ChargeKind::Run, from, to: now, gpu_ms });
}

/// Cancels the part of a lease's charge that a fault took: at most since the last checkpoint, the last multiple of min runtime, or the
/// knob's limit, whichever is least.
fn refund(pool: &mut Pool, id: LeaseId, workload: &Workload, lease: &Lease, now: Time, log: &mut Vec<Entry>) {
    let charged_from = lease.charged_from();
    let last_checkpoint = lease.last_checkpoint.unwrap_or(charged_from);
    // The contract that it got: what it asked for may have been clamped.
    let every = workload.terms.contract.0.max(1);
    let multiple = lease.contract_from().map_or(charged_from, |began| began + Span((now - began).0 / every * every));
    let from = last_checkpoint.max(multiple).max(now - pool.knobs.refund_max).max(charged_from);
    if from >= now {
        return;
    }
    pool.ledger.refund(&workload.terms.charge, from, now, workload.terms.charged);
    let gpu_ms = workload.terms.charged.over(now - from);
    let LeaseId { workload: id, attempt } = id;
    log.push(Entry::Refunded {
        workload: id,
        attempt,
        budget: workload.spec.budget,
        pool: pool.id,
        kind: ChargeKind::Run,
        from,
        to: now,
        gpu_ms,
    });
}

/// Nodes whose members never reported are suspected of the timeout; one that two workloads suspect drains.
fn suspect_silent(s: &mut Scheduler, id: WorkloadId, lease: &Lease, log: &mut Vec<Entry>) {
    for node in &lease.silent {
        let pool = s.pool_of(*node).expect("a known node has a pool");
        let suspects = s.pools[pool.index()].cluster.change(*node, |node| {
            if !node.suspected_by.contains(&id) {
                node.suspected_by.push(id);
            }
            node.suspected_by.len()
        });
        if suspects >= 2 {
            // Refused only if it is out of service already, which is what is wanted.
            let _ = drain(s, *node, Severity::Sick, "two workloads timed out starting here", log);
        }
    }
}
