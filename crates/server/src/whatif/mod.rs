//! What would become of the queue, and would have become of the past, under other budgets and knobs.
//!
//! Two answers side by side: the live state forked and projected forward, and the submissions of the last days replayed from nothing. Both run
//! twice, as things are and with the change, and nothing of the live system is touched.

mod past;
mod project;
mod replay;

use crate::service::Directory;
use crate::store::Reader;
use crate::wire::error::{Code, Problem};
use crate::wire::whatif::{Gain, Move, WhatIf};
use crate::wire::workload::{OnPreempt, Workload};
use past::{budgets_of, past};
use project::{Expected, Fate, project};
use replay::replay;
use std::collections::BTreeMap;
use stipend_core::Scheduler;
use stipend_core::event::Event;
use stipend_core::id::{LeaseId, PoolId, WorkloadId};
use stipend_core::knobs::Knobs;
use stipend_core::quantity::{Span, Time};
use stipend_core::spec::{self, Changeset, NodeSpec};

/// How far the queue is projected.
const HORIZON: Span = Span::days(14);

/// Work that says nothing of its length, and has no past, is taken to run for this or twice its contract.
const UNKNOWN: Span = Span::hours(1);

/// The live state and the change, as the service hands them out.
pub struct Fork {
    /// All of it.
    pub(crate) scheduler: Scheduler,
    /// The change of the tree, found to be right.
    pub(crate) change: Changeset,
    /// The changed knobs, by pool.
    pub(crate) knobs: Vec<(PoolId, Knobs)>,
    /// What it changes, a line each.
    pub(crate) difference: Vec<String>,
    /// What has not ended.
    pub(crate) live: Vec<Workload>,
    /// What numbers are called.
    pub(crate) directory: Directory,
    /// The nodes as they are.
    pub(crate) nodes: Vec<NodeSpec>,
    /// How much of the past is replayed.
    pub(crate) days: u32,
}

/// Runs everything twice and compares; the past comes from the store. It takes seconds where much was submitted.
///
/// # Errors
/// The store cannot be read.
pub fn whatif(fork: Fork, reader: &Reader) -> Result<WhatIf, Problem> {
    let (past, left_out) = past(&fork, reader)?;
    let pools = past.pools.len();
    let tree = fork.scheduler.tree();
    let changed = tree.changed(&fork.change, pools).map_err(|_| Problem::new(Code::Conflict, "the tree has changed meanwhile"))?;
    let now = fork.scheduler.now();
    let expected: BTreeMap<WorkloadId, Expected> = fork.live.iter().map(|view| (WorkloadId(view.id), expected(view, now))).collect();
    let until = now + HORIZON;
    let before = project(fork.scheduler.clone(), &[], expected.clone(), until);
    let knobs = fork.knobs.iter().map(|(pool, knobs)| Event::KnobsSet { pool: *pool, knobs: Box::new(knobs.clone()) });
    let budgets = (!fork.change.budgets.is_empty()).then_some(Event::BudgetsChanged(fork.change));
    let changes: Vec<Event> = budgets.into_iter().chain(knobs).collect();
    let after = project(fork.scheduler.clone(), &changes, expected, until);
    let queue = fork.live.iter().map(|view| moved(view, &before, &after)).collect();

    let (days, replayed) = (past.measure.0 as f64 / Span::days(1).0 as f64, past.jobs.len() as u64);
    let mut other = past.clone();
    (other.budgets, other.labels.budgets) = budgets_of(&changed);
    for (pool, knobs) in fork.knobs {
        other.pools[pool.index()].knobs = knobs;
    }
    let (as_it_was, with_it) = (replay(past), replay(other));
    let budgets = with_it.iter().map(|(budget, after)| {
        let before = as_it_was.get(budget).copied().unwrap_or_default();
        Gain { budget: budget.clone(), before, after: *after }
    });
    let mut notes =
        vec!["the projection of the queue knows no future submissions and no faults; the replay begins with empty books".to_string()];
    if replayed == 0 {
        notes.push("nothing was submitted in that time, so the replay says nothing".into());
    }
    if left_out > 0 {
        notes.push(format!("{left_out} submissions of budgets, pools or users that are no more were left out"));
    }
    Ok(WhatIf { difference: fork.difference, days, replayed, budgets: budgets.collect(), queue, notes })
}

fn moved(view: &Workload, before: &BTreeMap<WorkloadId, Fate>, after: &BTreeMap<WorkloadId, Fate>) -> Move {
    let of = |fates: &BTreeMap<WorkloadId, Fate>| fates.get(&WorkloadId(view.id)).copied().unwrap_or_default();
    let (before, after) = (of(before), of(after));
    Move {
        workload: view.id,
        name: view.name.clone(),
        budget: view.budget.clone(),
        start_before_ms: before.start.map(|at| at.0),
        start_after_ms: after.start.map(|at| at.0),
        preemptions_before: before.preemptions,
        preemptions_after: after.preemptions,
    }
}

/// How long a workload will run: as it said, else its limit, else twice its contract.
fn length(view: &Workload) -> Span {
    let (stated, limit) = (view.expected_runtime_ms.map(Span), view.time_limit_ms.map(Span));
    stated.or(limit).unwrap_or_else(|| Span(view.min_runtime_ms * 2).max(UNKNOWN))
}

fn expected(view: &Workload, now: Time) -> Expected {
    let whole = length(view);
    let is_leased = view.state.is_leased();
    let ran = Span(view.ran_ms) + view.started_ms.filter(|_| is_leased).map_or(Span::ZERO, |started| now - Time(started));
    let ran = if view.on_preempt == OnPreempt::Resume || is_leased { ran } else { Span::ZERO };
    Expected {
        remaining: (whole - ran).max(Span::minutes(1)),
        whole,
        on_preempt: on_preempt(view.on_preempt),
        gpus: view.members * view.gpus_per_member,
        running: is_leased.then_some(LeaseId { workload: WorkloadId(view.id), attempt: view.attempts }),
    }
}

/// The core's word for it.
fn on_preempt(of: OnPreempt) -> spec::OnPreempt {
    match of {
        OnPreempt::Resume => spec::OnPreempt::Resume,
        OnPreempt::Restart => spec::OnPreempt::Restart,
        OnPreempt::End => spec::OnPreempt::End,
    }
}
