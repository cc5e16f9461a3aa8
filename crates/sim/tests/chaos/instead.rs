//! What is said to start waiting work does start it: each counterfactual is done to a replay of the history, by events alone.

use crate::driver::{self, History, Step};
use crate::population::{PLAIN, POOL};
use std::collections::BTreeMap;
use std::sync::Arc;
use stipend_core::Scheduler;
use stipend_core::counterfactual::{Change, Counterfactual, Instead};
use stipend_core::entry::Entry;
use stipend_core::event::Event;
use stipend_core::id::WorkloadId;
use stipend_core::inquiry::Answer;
use stipend_core::quantity::{GpuMs, Time};
use stipend_core::spec::{Changeset, WorkloadSpec};

/// The latest so many workloads are asked about.
const ASKED: usize = 40;

/// What was looked at, so that a test of nothing is no test.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) asked: u32,
    pub(crate) without: u32,
    pub(crate) starts: u32,
    pub(crate) takes: u32,
    /// Thresholds whose next step was tried.
    pub(crate) thresholds: u32,
    pub(crate) by_kind: BTreeMap<&'static str, u32>,
    pub(crate) takers: u32,
}

/// A history's last state once more, from its journal.
fn replayed(history: &History<Scheduler>) -> Scheduler {
    let mut scheduler = Scheduler::new(Time(0));
    for (at, step) in &history.journal {
        match step {
            Step::Event(event) => scheduler.apply(*at, event, &mut Vec::new()).expect("it was taken before"),
            Step::Plan(plan) => scheduler.commit(plan, &mut Vec::new()),
        }
    }
    assert_eq!(scheduler.digest(), history.subject.digest());
    scheduler
}

/// Asks about workloads that wait and run at the end of a history.
pub(crate) fn check(seed: u64, events: u64, seen: &mut Seen) {
    let history = driver::run(seed, events, PLAIN, Scheduler::new(Time(0)));
    let specs: BTreeMap<WorkloadId, Arc<WorkloadSpec>> = history
        .log
        .iter()
        .filter_map(|(_, entry)| match entry {
            Entry::Submitted { workload, spec, .. } => Some((*workload, Arc::clone(spec))),
            _ => None,
        })
        .collect();
    let (replayed, digest) = (replayed(&history), history.subject.digest());
    let next = specs.last_key_value().map_or(WorkloadId(0), |(last, _)| WorkloadId(last.0 + 1));
    for (id, spec) in specs.iter().rev().take(ASKED) {
        match history.subject.inquire(*id) {
            Some(Answer::Waiting(wait)) => {
                seen.asked += 1;
                seen.without += u32::from(wait.counterfactuals.is_empty());
                for one in &wait.counterfactuals {
                    holds(&replayed, *id, spec, next, one, seen)
                        .unwrap_or_else(|wrong| panic!("seed {seed}, {events} events, {id}: {wrong}"));
                }
            }
            Some(Answer::Running(run)) => {
                seen.takers += run.takers.len() as u32;
                assert!(run.takers.is_empty() || run.protected_until.is_none_or(|until| until <= replayed.now()), "{id} is protected");
                assert!(run.loss >= GpuMs(0));
            }
            _ => {}
        }
    }
    assert_eq!(history.subject.digest(), digest, "seed {seed}: to ask changes nothing");
}

/// The change is made, one cycle decided, and it does what was said; the step beyond a threshold does not.
fn holds(
    s: &Scheduler,
    id: WorkloadId,
    spec: &WorkloadSpec,
    next: WorkloadId,
    one: &Counterfactual,
    seen: &mut Seen,
) -> Result<(), String> {
    *seen.by_kind.entry(kind(&one.change)).or_default() += 1;
    let log = match &one.change {
        Change::Cap { budget, to, .. } => {
            let mut capped = s.tree().get(*budget).expect("it has a cap").spec.clone();
            let share = &mut capped.pools[POOL.index()];
            *(if spec.min_runtime.0 > 0 { &mut share.gpus_max } else { &mut share.unallocated_gpus_max }) = Some(*to);
            let change = Changeset { based_on: s.tree().version(), author: "m".into(), reason: "r".into(), budgets: vec![capped] };
            done(s, &[Event::BudgetsChanged(change)])
        }
        change => anew(s, id, next, change.spec(spec).expect("it changes the request")),
    };
    let begins = if matches!(one.change, Change::Cap { .. }) { id } else { next };
    match (&one.instead, begun(&log, begins)) {
        (Instead::Starts { placement, .. }, Some((true, is))) if *placement == is => seen.starts += 1,
        (Instead::Takes { placement, .. }, Some((false, is))) if *placement == is => seen.takes += 1,
        (_, is) => return Err(format!("{one:?} is not so: {is:?}")),
    }
    let Some(beyond) = beyond(&one.change) else { return Ok(()) };
    seen.thresholds += 1;
    let log = anew(s, id, next, beyond.spec(spec).expect("it changes the request"));
    begun(&log, next).map_or(Ok(()), |_| Err(format!("{one:?}: {beyond:?} does it, too")))
}

fn anew(s: &Scheduler, id: WorkloadId, next: WorkloadId, spec: WorkloadSpec) -> Vec<Entry> {
    done(s, &[Event::Cancelled { workload: id }, Event::Submitted { workload: next, spec: Arc::new(spec) }])
}

/// These events at the present time, and one cycle.
fn done(s: &Scheduler, events: &[Event]) -> Vec<Entry> {
    let (mut s, mut log) = (s.clone(), Vec::new());
    let now = s.now();
    for event in events {
        // The next step may be refused; then it does not start, either.
        let _ = s.apply(now, event, &mut log);
    }
    s.decide(now, &mut log);
    log
}

/// Where a workload starts (`true`) or has GPUs held for it (`false`).
fn begun(log: &[Entry], id: WorkloadId) -> Option<(bool, stipend_core::entry::Placement)> {
    let started = log.iter().find_map(|entry| match entry {
        Entry::Started { lease, placement, .. } if lease.workload == id => Some((true, placement.clone())),
        _ => None,
    });
    let held = || {
        log.iter().find_map(|entry| match entry {
            Entry::Hold { claimant, placement } if *claimant == id => Some((false, placement.clone())),
            _ => None,
        })
    };
    started.or_else(held)
}

/// The step beyond a threshold.
fn beyond(change: &Change) -> Option<Change> {
    Some(match change {
        Change::MinRuntime { fails: Some(to), .. } => Change::MinRuntime { to: *to, fails: None },
        Change::TimeLimit { fails: Some(to), .. } => Change::TimeLimit { to: *to, fails: None },
        Change::Members { to } => Change::Members { to: to + 1 },
        Change::GpusPerMember { to } => Change::GpusPerMember { to: to + 1 },
        _ => return None,
    })
}

fn kind(change: &Change) -> &'static str {
    match change {
        Change::Anew => "anew",
        Change::MinRuntime { .. } => "min runtime",
        Change::TimeLimit { .. } => "time limit",
        Change::OnPreempt { .. } => "on_preempt",
        Change::AnyBlock => "any block",
        Change::AnyFeatures => "any features",
        Change::HostPart => "host part",
        Change::Members { .. } => "members",
        Change::GpusPerMember { .. } => "GPUs",
        Change::Priority { .. } => "priority",
        Change::Unallocated => "unallocated",
        Change::Cap { .. } => "cap",
    }
}
