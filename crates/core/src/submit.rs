//! A workload comes in: its request is checked, its contract clamped, its charge found.

use crate::budget::Budget;
use crate::entry::{Class, Entry, Outcome};
use crate::event::Rejection;
use crate::id::WorkloadId;
use crate::pool::Pool;
use crate::quantity::{GpuMs, Gpus, Span, Time};
use crate::queue::Shape;
use crate::scheduler::Scheduler;
use crate::spec::{OnPreempt, WorkloadSpec};
use crate::workload::{Phase, StopCause, Workload};
use std::sync::Arc;

impl Class {
    /// The class of a request in a pool of this many GPUs.
    pub fn of(spec: &WorkloadSpec, contract: Span, pool_gpus: Gpus) -> Class {
        let gpus = spec.gang.gpus().0;
        if contract == Span::ZERO {
            Class::Unallocated
        } else if gpus <= 8 && contract <= Span::minutes(15) {
            Class::Debug
        } else if gpus * 8 >= pool_gpus.0 {
            Class::Largest
        } else {
            Class::Medium
        }
    }
}

pub(crate) fn submit(s: &mut Scheduler, id: WorkloadId, spec: &Arc<WorkloadSpec>, log: &mut Vec<Entry>) -> Result<(), Rejection> {
    if id.0 < s.next_workload {
        return Err(Rejection::WorkloadKnown(id));
    }
    let pool = s.pools.get(spec.pool.index()).ok_or(Rejection::PoolUnknown(spec.pool))?;
    let budget = s.tree.get(spec.budget).ok_or(Rejection::BudgetUnknown(spec.budget))?;
    check_budget(spec, budget)?;
    check_request(spec, pool)?;
    let contract = contract(spec, budget, pool, &s.tree);
    check_fits(spec, contract, pool)?;

    let pool = &mut s.pools[spec.pool.index()];
    let charge = pool.ledger.charge_line(s.now, budget, spec.user);
    let shape = pool.queue.shape_id(Shape::new(spec.gang, spec.on_preempt, contract, 0, &pool.knobs));
    let class = Class::of(spec, contract, pool.cluster.gpus());
    let charged = pool.cluster.charged(&spec.gang);
    let workload = Workload {
        spec: Arc::clone(spec),
        charge,
        charged,
        contract,
        class,
        shape,
        eligible: s.now,
        waiting_since: s.now,
        ran: Span::ZERO,
        attempts: 0,
        preemptions: 0,
        last_preempted: Time::MIN,
        reservation: None,
        phase: Phase::Waiting,
    };
    pool.stirred |= pool.queue.insert(id, &workload, &s.tree);
    s.workloads.insert(id.0, workload);
    s.next_workload = id.0 + 1;
    log.push(Entry::Submitted { workload: id, spec: Arc::clone(spec), charged_gpus: charged, min_runtime: contract, class });
    log.push(Entry::Eligible { workload: id });
    Ok(())
}

fn check_budget(spec: &WorkloadSpec, budget: &Budget) -> Result<(), Rejection> {
    if !budget.is_leaf() {
        return Err(Rejection::BudgetNotALeaf { path: budget.path.clone() });
    }
    if budget.claim(spec.pool).0 == 0 && spec.min_runtime > Span::ZERO {
        return Err(Rejection::ZeroClaim { path: budget.path.clone() });
    }
    Ok(())
}

fn check_request(spec: &WorkloadSpec, pool: &Pool) -> Result<(), Rejection> {
    let bad = |field, value: String, expected: String| Err(Rejection::Request { field, value, expected });
    let gang = &spec.gang;
    if gang.members == 0 || gang.members > 1_000_000 {
        return bad("members", gang.members.to_string(), "from 1 to 1,000,000".into());
    }
    if gang.gpus_per_member == 0 || gang.gpus_per_member > 64 {
        return bad("gpus_per_member", gang.gpus_per_member.to_string(), "from 1 to 64".into());
    }
    if spec.min_runtime != Span::ZERO && spec.min_runtime < Span::seconds(60) {
        return bad("min_runtime", spec.min_runtime.to_string(), "0 for unallocated work, or at least 1 min".into());
    }
    if let Some(limit) = spec.time_limit
        && (limit < Span::seconds(1) || limit > Span::days(3650))
    {
        return bad("time_limit", limit.to_string(), "from 1 s to 3650 d".into());
    }
    if let Some(expected) = spec.expected_runtime
        && (expected < Span::seconds(1) || expected > Span::days(3650))
    {
        return bad("expected_runtime", expected.to_string(), "from 1 s to 3650 d".into());
    }
    if spec.on_preempt == OnPreempt::End && spec.min_runtime > Span::ZERO {
        let expected = format!(
            "a time limit of at most {} for work that cannot go on after a preemption: its contract is its limit",
            pool.knobs.end_max
        );
        match spec.time_limit {
            None => return bad("time_limit", "none".into(), expected),
            Some(limit) if limit > pool.knobs.end_max => return bad("time_limit", limit.to_string(), expected),
            Some(_) => {}
        }
    }
    Ok(())
}

/// The min runtime that a lease gets: `end` work its whole limit; other work what it asks for, at most the caps and its limit.
pub(crate) fn contract(spec: &WorkloadSpec, budget: &Budget, pool: &Pool, tree: &crate::budget::BudgetTree) -> Span {
    if spec.min_runtime == Span::ZERO {
        return Span::ZERO;
    }
    let limit = spec.time_limit.unwrap_or(Span(i64::MAX));
    if spec.on_preempt == OnPreempt::End {
        return limit;
    }
    let caps = budget.line.iter().filter_map(|id| tree.get(*id)?.share(pool.id).min_runtime_max);
    let cap = caps.min().unwrap_or(pool.knobs.min_runtime_max).min(pool.knobs.min_runtime_max);
    spec.min_runtime.min(cap).min(limit)
}

fn check_fits(spec: &WorkloadSpec, contract: Span, pool: &Pool) -> Result<(), Rejection> {
    let shape = Shape::new(spec.gang, spec.on_preempt, contract, 0, &pool.knobs);
    // Nodes are never taken away for good, so what fitted once fits for ever.
    if pool.queue.is_known(&shape) {
        return Ok(());
    }
    let largest = pool.cluster.largest(&spec.gang, shape.express);
    if largest >= spec.gang.members {
        return Ok(());
    }
    let asked = format!("{} members of {} GPUs", spec.gang.members, spec.gang.gpus_per_member);
    let what = if spec.gang.same_block { " in one block" } else { "" };
    let largest = match largest {
        0 => format!("no node of the pool holds one member of {} GPUs with its CPUs, memory and features", spec.gang.gpus_per_member),
        n => format!("{n} members of {} GPUs{what}", spec.gang.gpus_per_member),
    };
    Err(Rejection::GangNeverFits { asked, largest })
}

/// A workload that holds no lease ends.
pub(crate) fn withdraw(s: &mut Scheduler, id: WorkloadId, cause: &StopCause, log: &mut Vec<Entry>) {
    let workload = s.workloads.remove(id.0).expect("checked");
    if matches!(workload.phase, Phase::Waiting) {
        s.pools[workload.spec.pool.index()].queue.remove(id, &workload, &s.tree);
    }
    let by = cause.by();
    log.push(Entry::Ended { workload: id, attempt: None, outcome: Outcome::Cancelled, lost: GpuMs(0), by });
}
