//! What is said to start waiting work does start it: each counterfactual is done to a replay of the history, by events alone.

use crate::dice::Dice;
use crate::driver::{self, History, Step};
use crate::population::{PLAIN, POOL};
use std::collections::BTreeMap;
use std::sync::Arc;
use stipend_core::Scheduler;
use stipend_core::counterfactual::{Change, Counterfactual, Instead};
use stipend_core::entry::{Entry, Occupancy};
use stipend_core::event::Event;
use stipend_core::id::{BlockId, NodeId, PoolId, WorkloadId};
use stipend_core::inquiry::Answer;
use stipend_core::knobs::Knobs;
use stipend_core::quantity::{GpuMs, Gpus, Span, Time};
use stipend_core::spec::{BudgetSpec, Changeset, Features, NodeSpec, PoolShare, Pools, WorkloadSpec};

/// A pool that comes at the end of every other history.
const SECOND: PoolId = PoolId(1);

/// What work accepts then.
const ORDERS: [&[PoolId]; 4] = [&[POOL, SECOND], &[SECOND, POOL], &[SECOND], &[POOL]];

/// The latest so many workloads are asked about.
const ASKED: usize = 40;

/// What was looked at, so that a test of nothing is no test.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) asked: u32,
    /// Of those, how many wait in several pools.
    pub(crate) several_pools: u32,
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

/// A second pool with work that accepts it, beside the other or alone: what was submitted before, once more. Returns the accepted.
fn second_pool(s: &mut Scheduler, log: &[(Time, Entry)], seed: u64) -> Vec<(WorkloadId, Arc<WorkloadSpec>)> {
    let mut dice = Dice::new(seed);
    let tell = |s: &mut Scheduler, event| s.apply(s.now(), &event, &mut Vec::new());
    let knobs = Knobs { min_runtime_max: Span::minutes(dice.from(5, 480)), ..Knobs::default() };
    tell(s, Event::KnobsSet { pool: SECOND, knobs: Box::new(knobs) }).expect("it is the next pool");
    let nodes = log.iter().filter_map(|(_, entry)| if let Entry::Node { node, .. } = entry { Some(node.0 + 1) } else { None });
    let first = nodes.max().unwrap_or(0);
    for node in first..first + dice.from(1, 4) as u32 {
        let (gpus, express) = (*dice.pick(&[2, 4, 8]), dice.once_in(4));
        let spec = NodeSpec { pool: SECOND, gpus, cpus: 0, memory: 0, block: BlockId(0), features: Features(0), express };
        tell(s, Event::NodeJoined { node: NodeId(node), spec }).expect("it is the next node");
    }
    let budgets: Vec<BudgetSpec> = s.tree().top_down().map(|budget| with_share(&budget.spec, &mut dice)).collect();
    let change = Changeset { based_on: s.tree().version(), author: "m".into(), reason: "r".into(), budgets };
    tell(s, Event::BudgetsChanged(change)).expect("shares as in the first pool");
    let before: Vec<&Arc<WorkloadSpec>> =
        log.iter().filter_map(|(_, entry)| if let Entry::Submitted { spec, .. } = entry { Some(spec) } else { None }).collect();
    let next = log.iter().filter_map(|(_, entry)| if let Entry::Submitted { workload, .. } = entry { Some(workload.0 + 1) } else { None });
    let (mut next, mut accepted) = (next.max().unwrap_or(0), Vec::new());
    for _ in 0..3 {
        for _ in 0..if before.is_empty() { 0 } else { 8 } {
            let order = dice.pick(&ORDERS);
            let pools = Pools::from_order(order).expect("there is one");
            let spec = Arc::new(WorkloadSpec { pools, ..WorkloadSpec::clone(*dice.pick(&before)) });
            if tell(s, Event::Submitted { workload: WorkloadId(next), spec: Arc::clone(&spec) }).is_ok() {
                accepted.push((WorkloadId(next), spec));
                next += 1;
            }
        }
        let mut entries = Vec::new();
        s.decide(s.now(), &mut entries);
        for entry in entries {
            if let Entry::Started { lease, .. } = entry {
                tell(s, Event::LeaseRunning { lease }).expect("it starts");
            }
        }
        let later = s.now() + Span::minutes(dice.from(0, 600));
        s.apply(later, &Event::Tick, &mut Vec::new()).expect("time goes on");
    }
    accepted
}

/// The same share of the second pool, sometimes with a cap.
fn with_share(budget: &BudgetSpec, dice: &mut Dice) -> BudgetSpec {
    let gpus_max = dice.once_in(4).then(|| Gpus(dice.from(0, 12) as u32));
    let mut budget = budget.clone();
    budget.pools.resize(SECOND.index() + 1, PoolShare::default());
    budget.pools[SECOND.index()] = PoolShare { share: budget.pools[POOL.index()].share, gpus_max, ..PoolShare::default() };
    budget
}

/// Asks about workloads that wait and run at the end of a history.
pub(crate) fn check(seed: u64, events: u64, seen: &mut Seen) {
    let mut history = driver::run(seed, events, PLAIN, Scheduler::new(Time(0)));
    let mut specs: BTreeMap<WorkloadId, Arc<WorkloadSpec>> = history
        .log
        .iter()
        .filter_map(|(_, entry)| match entry {
            Entry::Submitted { workload, spec, .. } => Some((*workload, Arc::clone(spec))),
            _ => None,
        })
        .collect();
    let mut replayed = replayed(&history);
    if seed % 2 == 1 {
        second_pool(&mut history.subject, &history.log, seed);
        specs.extend(second_pool(&mut replayed, &history.log, seed));
    }
    let digest = history.subject.digest();
    assert_eq!(replayed.digest(), digest);
    let next = specs.last_key_value().map_or(WorkloadId(0), |(last, _)| WorkloadId(last.0 + 1));
    for (id, spec) in specs.iter().rev().take(ASKED) {
        match history.subject.inquire(*id) {
            Some(Answer::Waiting(wait)) => {
                seen.asked += 1;
                seen.several_pools += u32::from(wait.pools.len() > 1);
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
        Change::Cap { pool, budget, to, .. } => {
            let mut capped = s.tree().get(*budget).expect("it has a cap").spec.clone();
            let share = &mut capped.pools[pool.index()];
            *(if spec.min_runtime.0 > 0 { &mut share.gpus_max } else { &mut share.unallocated_gpus_max }) = Some(*to);
            let change = Changeset { based_on: s.tree().version(), author: "m".into(), reason: "r".into(), budgets: vec![capped] };
            done(s, &[Event::BudgetsChanged(change)])
        }
        change => anew(s, id, next, change.spec(spec).expect("it changes the request")),
    };
    let begins = if matches!(one.change, Change::Cap { .. }) { id } else { next };
    // What would only run before its turn was not meant.
    let due = |spec: &WorkloadSpec| if spec.min_runtime.0 > 0 { Occupancy::Allocated } else { Occupancy::Unallocated };
    match (&one.instead, begun(&log, begins, due(&one.change.spec(spec).unwrap_or_else(|| spec.clone())))) {
        (Instead::Starts { placement, .. }, Some((true, is))) if *placement == is => seen.starts += 1,
        (Instead::Takes { placement, .. }, Some((false, is))) if *placement == is => seen.takes += 1,
        (_, is) => return Err(format!("{one:?} is not so: {is:?}")),
    }
    let Some(beyond) = beyond(&one.change) else { return Ok(()) };
    seen.thresholds += 1;
    let beyond_spec = beyond.spec(spec).expect("it changes the request");
    let due = due(&beyond_spec);
    let log = anew(s, id, next, beyond_spec);
    begun(&log, next, due).map_or(Ok(()), |_| Err(format!("{one:?}: {beyond:?} does it, too")))
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
fn begun(log: &[Entry], id: WorkloadId, due: Occupancy) -> Option<(bool, stipend_core::entry::Placement)> {
    let started = log.iter().find_map(|entry| match entry {
        Entry::Started { lease, placement, occupancy, .. } if lease.workload == id && *occupancy == due => Some((true, placement.clone())),
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
        Change::Pools { .. } => "pools",
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
