//! A workload comes in: its request is checked, its contract clamped, its charge found.

use crate::budget::{Budget, BudgetTree};
use crate::entry::{Class, Entry, InPool, Outcome};
use crate::event::Rejection;
use crate::id::{BudgetId, PoolId, WorkloadId};
use crate::pool::Pool;
use crate::quantity::{GpuMs, Gpus, Span, Time};
use crate::queue::{Shape, ask, join_queues, leave_queues};
use crate::scheduler::Scheduler;
use crate::session;
use crate::spec::{OnPreempt, Start, WorkloadSpec};
use crate::workload::{Phase, StopCause, Terms, Workload};
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

/// Whether a request would be accepted, and what each pool says of it.
fn check(s: &Scheduler, spec: &WorkloadSpec) -> Result<Accepted, Rejection> {
    for pool in spec.pools.iter() {
        s.pools.get(pool.index()).ok_or(Rejection::PoolUnknown(pool))?;
    }
    let budget = s.tree.get(spec.budget).ok_or(Rejection::BudgetUnknown(spec.budget))?;
    check_open(&s.tree, spec.budget)?;
    check_budget(spec, budget, spec.pools.iter())?;
    check_request(spec)?;
    session::check(s, spec)?;
    let accepted = accepted(s, spec, budget)?;
    check_budget(spec, budget, std::iter::once(accepted.first.0).chain(accepted.others.iter().map(|(pool, _)| *pool)))?;
    Ok(accepted)
}

impl Scheduler {
    /// Whether a request would be accepted now; changes nothing.
    ///
    /// # Errors
    /// What [`Event::Submitted`](crate::event::Event::Submitted) would be refused for.
    pub fn check(&self, spec: &WorkloadSpec) -> Result<(), Rejection> {
        check(self, spec).map(|_| ())
    }
}

pub(crate) fn submit(s: &mut Scheduler, id: WorkloadId, spec: &Arc<WorkloadSpec>, log: &mut Vec<Entry>) -> Result<(), Rejection> {
    if id.0 < s.next_workload {
        return Err(Rejection::WorkloadKnown(id));
    }
    let Accepted { first, others, skipped } = check(s, spec)?;
    let budget = s.tree.get(spec.budget).ok_or(Rejection::BudgetUnknown(spec.budget))?;

    let mut terms = |(pool, contract): (PoolId, Span)| {
        let pool = &mut s.pools[pool.index()];
        let charge = pool.ledger.charge_line(s.now, budget, spec.user);
        let shape = pool.queue.shape_id(Shape::new(spec, pool.id, contract, 0, &pool.knobs));
        Terms { pool: pool.id, charge, charged: pool.cluster.charged(&spec.gang), contract, shape }
    };
    let (terms, others) = (terms(first), others.into_iter().map(&mut terms).collect::<Box<[Terms]>>());
    let class = Class::of(spec, terms.contract, s.pools[terms.pool.index()].cluster.gpus());
    let entry = submitted(id, spec, &terms, &others, skipped, class);
    let mut workload = Workload {
        spec: Arc::clone(spec),
        terms,
        others,
        class,
        eligible: s.now,
        estimate: s.waits.estimate(spec, class, Span::ZERO),
        waiting_since: s.now,
        head_start: Span::ZERO,
        ran: Span::ZERO,
        attempts: 0,
        preemptions: 0,
        yielded: 0,
        served: false,
        last_preempted: Time::MIN,
        reservation: None,
        phase: Phase::Waiting,
    };
    join_queues(&mut s.pools, &mut s.completion, id, &mut workload, &s.tree);
    session::list(&mut s.pools, id, &workload, true);
    log.push(entry);
    log.push(Entry::Eligible { workload: id, estimate: workload.estimate });
    s.workloads.insert(id.0, workload);
    s.next_workload = id.0 + 1;
    Ok(())
}

fn submitted(
    workload: WorkloadId,
    spec: &Arc<WorkloadSpec>,
    first: &Terms,
    others: &[Terms],
    skipped: Vec<(PoolId, Rejection)>,
    class: Class,
) -> Entry {
    let in_pool = |terms: &Terms| InPool { pool: terms.pool, charged_gpus: terms.charged, min_runtime: terms.contract };
    let InPool { pool, charged_gpus, min_runtime } = in_pool(first);
    let others = others.iter().map(in_pool).collect();
    Entry::Submitted { workload, spec: Arc::clone(spec), pool, charged_gpus, min_runtime, class, others, skipped: skipped.into() }
}

/// The pools that take a workload, each with the contract it gets there, and why the others never could.
struct Accepted {
    first: (PoolId, Span),
    others: Vec<(PoolId, Span)>,
    skipped: Vec<(PoolId, Rejection)>,
}

/// If no pool could take it, it is refused for what the first one says.
fn accepted(s: &Scheduler, spec: &WorkloadSpec, budget: &Budget) -> Result<Accepted, Rejection> {
    let (mut first, mut others, mut skipped) = (None, Vec::new(), Vec::new());
    for id in spec.pools.iter() {
        let pool = &s.pools[id.index()];
        let contract = contract(spec, budget, pool, &s.tree);
        match check_in_pool(spec, contract, pool) {
            Ok(()) if first.is_none() => first = Some((id, contract)),
            Ok(()) => others.push((id, contract)),
            Err(rejection) => skipped.push((id, rejection)),
        }
    }
    match first {
        Some(first) => Ok(Accepted { first, others, skipped }),
        None => Err(skipped.swap_remove(0).1),
    }
}

/// Why a pool could never take a workload, whatever happens in it.
pub(crate) fn check_in_pool(spec: &WorkloadSpec, contract: Span, pool: &Pool) -> Result<(), Rejection> {
    check_end(spec, pool)?;
    check_fits(spec, contract, pool)
}

/// A budget that is closed, or below one that is, takes no work.
pub(crate) fn check_open(tree: &BudgetTree, budget: BudgetId) -> Result<(), Rejection> {
    match tree.closed_by(budget).and_then(|closed| tree.get(closed)) {
        Some(closed) => Err(Rejection::BudgetClosed { path: closed.path.clone() }),
        None => Ok(()),
    }
}

fn check_budget(spec: &WorkloadSpec, budget: &Budget, mut pools: impl Iterator<Item = PoolId>) -> Result<(), Rejection> {
    if !budget.is_leaf() {
        return Err(Rejection::BudgetNotALeaf { path: budget.path.clone() });
    }
    // Where it has a claim in one pool it waits in the others, too: shares change any day.
    if spec.min_runtime > Span::ZERO && pools.all(|pool| budget.claim(pool).0 == 0) {
        return Err(Rejection::ZeroClaim { path: budget.path.clone() });
    }
    Ok(())
}

fn check_request(spec: &WorkloadSpec) -> Result<(), Rejection> {
    let bad = |field, value: String, expected: String| Err(Rejection::Request { field, value, expected });
    if let Some(twice) =
        spec.pools.others.iter().enumerate().find(|(n, pool)| **pool == spec.pools.first || spec.pools.others[..*n].contains(pool))
    {
        return bad("pools", twice.1.to_string(), "every pool once".into());
    }
    let gang = &spec.gang;
    if gang.members == 0 || gang.members > 1_000_000 {
        return bad("members", gang.members.to_string(), "from 1 to 1,000,000".into());
    }
    if gang.gpus_per_member == 0 || gang.gpus_per_member > 64 {
        return bad("gpus", gang.gpus_per_member.to_string(), "from 1 to 64 for each member".into());
    }
    if spec.min_runtime != Span::ZERO && spec.min_runtime < Span::seconds(60) {
        return bad("min_runtime", spec.min_runtime.to_string(), "0 for unallocated work, or at least 1 min".into());
    }
    if spec.start == Start::Whenever && spec.on_preempt == OnPreempt::End && spec.min_runtime > Span::ZERO {
        let expected =
            "guaranteed for work that cannot go on after a preemption: until its turn comes anybody with a contract may take its GPUs";
        return bad("start", "whenever".into(), expected.into());
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
    Ok(())
}

/// What cannot go on after a preemption has its time limit for its contract, and a pool bounds that.
fn check_end(spec: &WorkloadSpec, pool: &Pool) -> Result<(), Rejection> {
    let end_max = pool.knobs.end_max;
    if spec.on_preempt != OnPreempt::End || spec.min_runtime == Span::ZERO || spec.time_limit.is_some_and(|limit| limit <= end_max) {
        return Ok(());
    }
    let value = spec.time_limit.map_or("none".into(), |limit| limit.to_string());
    let expected = format!("a time limit of at most {end_max} for work that cannot go on after a preemption: its contract is its limit");
    Err(Rejection::Request { field: "time_limit", value, expected })
}

/// The min runtime that a lease gets: `end` work its whole limit; other work what it asks for, at most the caps and its limit.
pub(crate) fn contract(spec: &WorkloadSpec, budget: &Budget, pool: &Pool, tree: &BudgetTree) -> Span {
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
    let shape = Shape::new(spec, pool.id, contract, 0, &pool.knobs);
    // Nodes are never taken away for good, so what fitted once fits for ever.
    if pool.queue.is_known(&shape) {
        return Ok(());
    }
    let largest = pool.cluster.largest(&spec.gang, shape.express);
    if largest >= spec.gang.members {
        return Ok(());
    }
    Err(Rejection::GangNeverFits { pool: pool.id, gang: spec.gang, members_max: largest })
}

/// A workload that holds no lease ends.
pub(crate) fn withdraw(s: &mut Scheduler, id: WorkloadId, cause: &StopCause, log: &mut Vec<Entry>) {
    let workload = s.workloads.remove(id.0).expect("checked");
    match workload.phase {
        Phase::Waiting => leave_queues(&mut s.pools, id, &workload, &s.tree),
        Phase::Barred => ask(&mut s.pools, &workload, -1),
        _ => {}
    }
    session::list(&mut s.pools, id, &workload, false);
    s.waits.given_up(&workload, s.now);
    let by = cause.by();
    log.push(Entry::Ended { workload: id, attempt: None, outcome: Outcome::Cancelled, lost: GpuMs(0), by });
}
