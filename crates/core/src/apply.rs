//! Facts come in: each is checked whole before anything changes.

use crate::changeset::change_budgets;
use crate::entry::{Entry, Licence, Unreserved};
use crate::event::{Event, Exit, Rejection};
use crate::explain::Why;
use crate::id::{LeaseId, NodeId, PoolId, WorkloadId};
use crate::knobs::Knobs;
use crate::lease::{cancel_lease, end_lease, preempt, signal};
use crate::plan::Preemption;
use crate::pool::Pool;
use crate::quantity::{Span, Time};
use crate::queue::{join_queues, leave_queues};
use crate::recovery::Recovery;
use crate::scheduler::Scheduler;
use crate::spec::{Changeset, NodeSpec, NodeState, Severity};
use crate::submit::{check_open, submit};
use crate::workload::{Phase, StopCause};

pub(crate) fn apply(s: &mut Scheduler, event: &Event, log: &mut Vec<Entry>) -> Result<(), Rejection> {
    match event {
        Event::KnobsSet { pool, knobs } => set_knobs(s, *pool, knobs, log),
        Event::BudgetsChanged(change) => change_budgets(s, change, log),
        Event::NodeJoined { node, spec } => join_node(s, *node, spec, log),
        Event::NodeDrainRequested { node, severity, reason } => drain(s, *node, *severity, reason, log),
        Event::NodeRepairing { node } => repairing(s, *node, log),
        Event::NodeReady { node } => ready(s, *node, log),
        Event::NodeLost { node } => lost(s, *node, log),
        Event::Submitted { workload, spec } => submit(s, *workload, spec, log),
        Event::Held { workload, why } => hold(s, *workload, why, log),
        Event::Released { workload } => release(s, *workload, log),
        Event::Cancelled { workload } => cancel(s, *workload, &StopCause::Owner, log),
        Event::Stopped { workload, reason } => cancel(s, *workload, &StopCause::Administrator { reason: reason.clone() }, log),
        Event::MemberRunning { lease, node } => member_running(s, *lease, *node, log),
        Event::LeaseRunning { lease } => lease_running(s, *lease, log),
        Event::Checkpointed { lease } => checkpointed(s, *lease, log),
        Event::Input { lease } => {
            check_lease(s, *lease)?;
            crate::session::input(s, *lease, log)
        }
        Event::LeaseEnded { lease, exit } => lease_ended(s, *lease, *exit, log),
        Event::Tick => Ok(()),
        Event::Gap { from } => gap(s, *from, log),
    }
}

fn set_knobs(s: &mut Scheduler, id: PoolId, knobs: &Knobs, log: &mut Vec<Entry>) -> Result<(), Rejection> {
    let expected = PoolId(s.pools.len() as u16);
    if id > expected {
        return Err(Rejection::PoolNumber { pool: id, expected });
    }
    check_knobs(knobs)?;
    match s.pools.get_mut(id.index()) {
        Some(pool) => {
            pool.knobs = knobs.clone();
            pool.ledger.set_knobs(s.now, knobs);
            pool.stir();
        }
        None => {
            s.pools.push(Pool::new(id, s.now, knobs.clone()));
            // The tree's claims are by pool: they are made anew for the pool that is new.
            if s.tree.root().is_some() {
                let change = Changeset { based_on: s.tree.version(), author: String::new(), reason: String::new(), budgets: Vec::new() };
                s.tree = s.tree.changed(&change, s.pools.len())?;
                s.pools[id.index()].ledger.set_tree(s.now, &Default::default(), &s.tree, id);
            }
        }
    }
    log.push(Entry::Policy { pool: id, knobs: Box::new(knobs.clone()) });
    Ok(())
}

fn check_knobs(knobs: &Knobs) -> Result<(), Rejection> {
    let bad = |knob, message: &str| Err(Rejection::Knob { knob, message: message.into() });
    if knobs.lookback < Span::minutes(1) || knobs.lookback > Span::days(400) {
        return bad("lookback", "must be from 1 minute to 400 days");
    }
    if knobs.min_runtime_max < Span::minutes(1) || knobs.min_runtime_max > Span::days(30) {
        return bad("min_runtime_max", "must be from 1 minute to 30 days");
    }
    if knobs.below_share.0 < 1_000_000 {
        return bad("below_share", "must be at least 1 (a leaf below its share goes first)");
    }
    let spans = [
        ("credit_max", knobs.credit_max),
        ("quantum", knobs.quantum),
        ("end_max", knobs.end_max),
        ("start_timeout", knobs.start_timeout),
        ("kill_timeout", knobs.kill_timeout),
        ("restart_cost", knobs.restart_cost),
        ("age_min", knobs.age_min),
        ("head_start_max", knobs.head_start_max),
        ("refund_max", knobs.refund_max),
        ("express_contract_max", knobs.express_contract_max),
    ];
    if let Some((knob, _)) = spans.into_iter().find(|(_, span)| *span < Span::ZERO || *span > Span::days(400)) {
        return bad(knob, "must be from 0 to 400 days");
    }
    // What is stopped must be gone in a later instant: it claims nothing in the one in which it is preempted.
    let graces = [("grace_allocated", knobs.grace_allocated), ("grace_unallocated", knobs.grace_unallocated)];
    if let Some((knob, _)) = graces.into_iter().find(|(_, grace)| *grace < Span::seconds(1) || *grace > Span::days(400)) {
        return bad(knob, "must be from 1 second to 400 days");
    }
    // Who waits longer for a checkpoint may be there still at the date of a promise.
    if knobs.checkpoint_wait_max < Span::ZERO || knobs.checkpoint_wait_max > Span::hours(1) {
        return bad("checkpoint_wait_max", "must be from 0 to 1 hour");
    }
    if knobs.shapes_max < 16 {
        return bad("shapes_max", "must be at least 16 (what is not tried waits beside idle GPUs)");
    }
    if knobs.retry_every < Span::seconds(1) {
        return bad("retry_every", "must be at least 1 second");
    }
    Ok(())
}

fn join_node(s: &mut Scheduler, node: NodeId, spec: &NodeSpec, log: &mut Vec<Entry>) -> Result<(), Rejection> {
    if s.pools.get(spec.pool.index()).is_none() {
        return Err(Rejection::PoolUnknown(spec.pool));
    }
    if s.pool_of(node).is_some() {
        return Err(Rejection::NodeKnown(node));
    }
    if spec.gpus == 0 || spec.gpus > 64 {
        return Err(Rejection::Request { field: "gpus", value: spec.gpus.to_string(), expected: "from 1 to 64".into() });
    }
    if s.node_pools.len() <= node.index() {
        s.node_pools.resize(node.index() + 1, None);
    }
    s.node_pools[node.index()] = Some(spec.pool);
    s.pools[spec.pool.index()].cluster.join(node, spec.clone());
    node_changed(s, node, log);
    Ok(())
}

/// After a node's state changed: its capacity is counted anew, and the log shows it.
pub(crate) fn node_changed(s: &mut Scheduler, id: NodeId, log: &mut Vec<Entry>) {
    recount(s, id);
    let pool = pool_mut(s, id);
    pool.stir();
    let node = pool.cluster.at(id);
    log.push(Entry::Node {
        node: id,
        spec: node.spec.clone(),
        state: node.state,
        drain_until: node.drain_until,
        reason: node.reason.clone(),
    });
}

/// Counts a node's part of the pool's capacity anew.
pub(crate) fn recount(s: &mut Scheduler, id: NodeId) {
    let pool_id = s.pool_of(id).expect("a known node has a pool");
    let pool = &mut s.pools[pool_id.index()];
    let node = pool.cluster.at(id);
    let (now, before) = (node.capacity(), node.counted);
    if now != before {
        pool.cluster.change(id, |node| node.counted = now);
        pool.ledger.capacity_changed(s.now, i64::from(now) - i64::from(before), &s.tree, pool_id);
    }
}

fn pool_mut(s: &mut Scheduler, node: NodeId) -> &mut Pool {
    let pool = s.pool_of(node).expect("a known node has a pool");
    &mut s.pools[pool.index()]
}

fn node_state(s: &Scheduler, node: NodeId) -> Result<NodeState, Rejection> {
    let pool = s.pool_of(node).ok_or(Rejection::NodeUnknown(node))?;
    Ok(s.pools[pool.index()].cluster.at(node).state)
}

pub(crate) fn drain(s: &mut Scheduler, id: NodeId, severity: Severity, reason: &str, log: &mut Vec<Entry>) -> Result<(), Rejection> {
    match node_state(s, id)? {
        NodeState::Ready | NodeState::Draining(_) => {}
        _ => return Err(Rejection::NodeState { node: id, message: "it is out of service already" }),
    }
    let now = s.now;
    let pool_id = s.pool_of(id).expect("checked");
    let pool = &mut s.pools[pool_id.index()];
    let until = |w: &WorkloadId| {
        let workload = s.workloads.get(w.0).expect("a lease's workload is live");
        workload.lease().expect("it holds a lease").protected_until_latest(workload.terms.contract)
    };
    let last = pool.cluster.at(id).leases.iter().map(until).max().unwrap_or(now);
    let drain_until = if severity == Severity::Critical { now } else { last.max(now) };
    pool.draining.insert(id);
    pool.cluster.change(id, |node| {
        node.state = NodeState::Draining(severity);
        node.drain_until = Some(drain_until);
        node.reason = reason.to_string();
    });
    crate::reservation::shorten(pool, id, None, Time::MAX);
    crate::claim::drop_claims_on(s, pool_id, id, &Why::HoldNodeGone { node: id }, log);
    node_changed(s, id, log);
    if severity == Severity::Critical {
        stop_all(s, id, &StopCause::Critical, &Why::NodeCritical { node: id }, log);
    }
    Ok(())
}

/// Everything on a node is told to stop now.
pub(crate) fn stop_all(s: &mut Scheduler, id: NodeId, cause: &StopCause, why: &Why, log: &mut Vec<Entry>) {
    let pool = s.pool_of(id).expect("a known node has a pool");
    let licence = if *cause == StopCause::Drain { Licence::Drain } else { Licence::Critical };
    for workload in s.pools[pool.index()].cluster.at(id).leases.clone() {
        let preemption = Preemption { cause: cause.clone(), node: Some(id), licence, signal_at: s.now, why: why.clone() };
        preempt(s, workload, &preemption, log);
        signal(s, workload, log);
    }
}

fn repairing(s: &mut Scheduler, id: NodeId, log: &mut Vec<Entry>) -> Result<(), Rejection> {
    match node_state(s, id)? {
        NodeState::Drained | NodeState::Lost => {}
        _ => return Err(Rejection::NodeState { node: id, message: "only a drained or lost node is repaired" }),
    }
    pool_mut(s, id).cluster.change(id, |node| node.state = NodeState::Repairing);
    node_changed(s, id, log);
    Ok(())
}

fn ready(s: &mut Scheduler, id: NodeId, log: &mut Vec<Entry>) -> Result<(), Rejection> {
    let state = node_state(s, id)?;
    let pool = pool_mut(s, id);
    let is_draining = matches!(state, NodeState::Draining(_));
    if state == NodeState::Ready {
        return Err(Rejection::NodeState { node: id, message: "it is ready already" });
    }
    if !is_draining && !pool.cluster.at(id).leases.is_empty() {
        return Err(Rejection::NodeState { node: id, message: "an old attempt on it has not been reported as ended (fenced) yet" });
    }
    pool.draining.remove(&id);
    pool.cluster.change(id, |node| {
        node.state = NodeState::Ready;
        node.drain_until = None;
        node.reason.clear();
        node.suspected_by.clear();
    });
    node_changed(s, id, log);
    Ok(())
}

fn lost(s: &mut Scheduler, id: NodeId, log: &mut Vec<Entry>) -> Result<(), Rejection> {
    if node_state(s, id)? == NodeState::Lost {
        return Err(Rejection::NodeState { node: id, message: "it is lost already" });
    }
    let pool_id = s.pool_of(id).expect("checked");
    let pool = &mut s.pools[pool_id.index()];
    pool.draining.remove(&id);
    pool.cluster.change(id, |node| {
        node.state = NodeState::Lost;
        node.drain_until = None;
        node.reason = "lost".into();
    });
    crate::reservation::shorten(pool, id, None, Time::MAX);
    crate::claim::drop_claims_on(s, pool_id, id, &Why::HoldNodeGone { node: id }, log);
    node_changed(s, id, log);
    stop_all(s, id, &StopCause::NodeLost, &Why::NodeLost { node: id }, log);
    Ok(())
}

fn hold(s: &mut Scheduler, id: WorkloadId, why: &str, log: &mut Vec<Entry>) -> Result<(), Rejection> {
    let workload = s.workloads.get(id.0).ok_or(Rejection::WorkloadUnknown(id))?;
    if !matches!(workload.phase, Phase::Waiting) {
        return Err(Rejection::WorkloadState { workload: id, message: "only waiting work can be held" });
    }
    crate::reservation::give_up(s, id, Unreserved::Owner, log);
    let workload = s.workloads.get_mut(id.0).expect("checked");
    workload.phase = Phase::Held { why: why.to_string(), by_closing: false };
    leave_queues(&mut s.pools, id, workload, &s.tree);
    log.push(Entry::Held { workload: id, why: why.to_string() });
    Ok(())
}

fn release(s: &mut Scheduler, id: WorkloadId, log: &mut Vec<Entry>) -> Result<(), Rejection> {
    let workload = s.workloads.get_mut(id.0).ok_or(Rejection::WorkloadUnknown(id))?;
    if !matches!(workload.phase, Phase::Held { .. }) {
        return Err(Rejection::WorkloadState { workload: id, message: "it is not held" });
    }
    check_open(&s.tree, workload.spec.budget)?;
    wait_anew(s, id, log);
    Ok(())
}

/// What was held waits from now on.
pub(crate) fn wait_anew(s: &mut Scheduler, id: WorkloadId, log: &mut Vec<Entry>) {
    let workload = s.workloads.get_mut(id.0).expect("checked");
    workload.phase = Phase::Waiting;
    workload.eligible = s.now;
    workload.estimate = if workload.attempts == 0 { s.waits.estimate(&workload.spec, workload.class, Span::ZERO) } else { None };
    workload.waiting_since = s.now;
    join_queues(&mut s.pools, &mut s.completion, id, workload, &s.tree);
    log.push(Entry::Eligible { workload: id, estimate: workload.estimate });
}

fn cancel(s: &mut Scheduler, id: WorkloadId, cause: &StopCause, log: &mut Vec<Entry>) -> Result<(), Rejection> {
    let workload = s.workloads.get(id.0).ok_or(Rejection::WorkloadUnknown(id))?;
    match &workload.phase {
        Phase::Leased(_) => return cancel_lease(s, id, cause, log),
        Phase::Claiming(_) => crate::claim::unclaim(s, id, &Why::ClaimantGone, log),
        Phase::Held { .. } | Phase::Waiting | Phase::Barred => {}
    }
    crate::reservation::give_up(s, id, Unreserved::Owner, log);
    crate::submit::withdraw(s, id, cause, log);
    Ok(())
}

/// The workload's present lease, or why a report about it is refused.
fn check_lease(s: &Scheduler, id: LeaseId) -> Result<&crate::workload::Lease, Rejection> {
    let workload = s.workloads.get(id.workload.0).ok_or(Rejection::LeaseUnknown(id))?;
    workload.lease().filter(|lease| lease.attempt == id.attempt).ok_or(Rejection::LeaseUnknown(id))
}

fn member_running(s: &mut Scheduler, id: LeaseId, node: NodeId, log: &mut Vec<Entry>) -> Result<(), Rejection> {
    if !check_lease(s, id)?.silent.contains(&node) {
        return Err(Rejection::LeaseState { lease: id, message: "no member of it is starting there" });
    }
    let lease = s.workloads.get_mut(id.workload.0).and_then(|w| w.lease_mut()).expect("checked");
    lease.silent.retain(|n| *n != node);
    if lease.silent.is_empty() {
        return lease_running(s, id, log);
    }
    Ok(())
}

fn lease_running(s: &mut Scheduler, id: LeaseId, log: &mut Vec<Entry>) -> Result<(), Rejection> {
    if check_lease(s, id)?.running.is_some() {
        return Err(Rejection::LeaseState { lease: id, message: "it runs already" });
    }
    crate::lease::running(s, id, log);
    Ok(())
}

fn checkpointed(s: &mut Scheduler, id: LeaseId, log: &mut Vec<Entry>) -> Result<(), Rejection> {
    if check_lease(s, id)?.running.is_none() {
        return Err(Rejection::LeaseState { lease: id, message: "it does not run yet" });
    }
    let now = s.now;
    let lease = s.workloads.get_mut(id.workload.0).and_then(|w| w.lease_mut()).expect("checked");
    lease.last_checkpoint = Some(now);
    let may_be_taken = lease.past_contract && lease.stop.is_none();
    log.push(Entry::Checkpoint { lease: id });
    if may_be_taken {
        // To evict it costs least now: what was not worth it a moment ago may be.
        let pool = s.workloads.get(id.workload.0).expect("checked").terms.pool;
        let pool = &mut s.pools[pool.index()];
        if std::mem::take(&mut pool.too_dear) {
            pool.takeable += 1;
            pool.stirred = true;
        }
    }
    Ok(())
}

fn gap(s: &mut Scheduler, from: Time, log: &mut Vec<Entry>) -> Result<(), Rejection> {
    if from > s.now {
        return Err(Rejection::Request { field: "from", value: from.0.to_string(), expected: "a time in the past".into() });
    }
    if s.now - from > Span::seconds(60) {
        for pool in &mut s.pools {
            pool.recovery = Some(Recovery::new(s.now));
            pool.stirred = true;
        }
    }
    if from < s.now {
        log.push(Entry::Gap { from });
    }
    Ok(())
}

fn lease_ended(s: &mut Scheduler, id: LeaseId, exit: Exit, log: &mut Vec<Entry>) -> Result<(), Rejection> {
    check_lease(s, id)?;
    end_lease(s, id, exit, log);
    Ok(())
}
