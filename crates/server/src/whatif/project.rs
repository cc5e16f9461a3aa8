//! The queue projected forward: the live state, forked, with everything running for as long as its owner or its past lets expect.
//!
//! The loop is the daemon's own with an engine that only keeps time. What comes out is an estimate: it knows no future submissions and no
//! faults, and work may end sooner or later than expected.

use std::collections::{BTreeMap, BTreeSet};
use stipend_core::Scheduler;
use stipend_core::entry::{Entry, Occupancy};
use stipend_core::event::{Event, Exit};
use stipend_core::id::{LeaseId, WorkloadId};
use stipend_core::quantity::{Span, Time};
use stipend_core::spec::OnPreempt;

/// How a live workload goes on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expected {
    /// How long it still runs, undisturbed.
    pub remaining: Span,
    /// All that it has to do, for work that starts from nothing.
    pub whole: Span,
    /// What a preemption leaves of its progress.
    pub on_preempt: OnPreempt,
    /// GPUs of the gang.
    pub gpus: u32,
    /// Since when its present attempt runs, if it does.
    pub running: Option<LeaseId>,
}

/// What became of one workload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Fate {
    /// When it next starts, or has started; `None` if not within the horizon.
    pub start: Option<Time>,
    /// When it is done.
    pub end: Option<Time>,
    /// Preemptions on the way.
    pub preemptions: u32,
    /// GPU time of its allocated leases, in GPU-milliseconds.
    pub allocated_gpu_ms: i64,
    /// GPU time of its unallocated leases.
    pub unallocated_gpu_ms: i64,
}

struct Projection {
    scheduler: Scheduler,
    expected: BTreeMap<WorkloadId, Expected>,
    fates: BTreeMap<WorkloadId, Fate>,
    /// What the engine will report, and when.
    agenda: BTreeSet<(Time, LeaseId, Due)>,
    running: BTreeMap<LeaseId, (Time, Occupancy)>,
    log: Vec<Entry>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Runs,
    Done,
    Stopped,
}

/// More cycles than this in one projection: it stops there, and what has not started has no estimate.
const CYCLES_MAX: u32 = 200_000;

/// Projects until everything has ended or `until`; `changes` are applied first.
pub(super) fn project(
    scheduler: Scheduler,
    changes: &[Event],
    expected: BTreeMap<WorkloadId, Expected>,
    until: Time,
) -> BTreeMap<WorkloadId, Fate> {
    let now = scheduler.now();
    let fates = expected.keys().map(|id| (*id, Fate::default())).collect();
    let mut projection = Projection { scheduler, expected, fates, agenda: BTreeSet::new(), running: BTreeMap::new(), log: Vec::new() };
    for event in changes {
        // The same change was checked before the fork; a refusal here would be one of the live system's, too.
        let _ = projection.scheduler.apply(now, event, &mut projection.log);
    }
    projection.begin(now);
    projection.go(now, until);
    projection.fates
}

impl Projection {
    /// What runs goes on.
    fn begin(&mut self, now: Time) {
        let running: Vec<(LeaseId, Span)> =
            self.expected.values().filter_map(|expected| Some((expected.running?, expected.remaining))).collect();
        for (lease, remaining) in running {
            self.running.insert(lease, (now, Occupancy::Allocated));
            self.fate(lease.workload).start = Some(now);
            self.agenda.insert((now + remaining, lease, Due::Done));
        }
    }

    fn go(&mut self, mut now: Time, until: Time) {
        for _ in 0..CYCLES_MAX {
            let _ = self.scheduler.decide(now, &mut self.log);
            self.act(now);
            let due = self.agenda.first().map(|(at, ..)| *at);
            let wakeup = self.scheduler.next_wakeup().filter(|_| due.is_some() || self.scheduler.live_workloads() > 0);
            let Some(next) = due.into_iter().chain(wakeup).min().filter(|next| *next <= until) else { break };
            now = next.max(now + Span(1));
            while let Some((at, lease, due)) = self.agenda.first().copied().filter(|(at, ..)| *at <= now) {
                self.agenda.remove(&(at, lease, due));
                self.happens(now, lease, due);
            }
            if self.fates.len() == self.fates.values().filter(|fate| fate.end.is_some()).count() {
                break;
            }
        }
    }

    fn happens(&mut self, now: Time, lease: LeaseId, due: Due) {
        let event = match due {
            Due::Runs => {
                if let Some(running) = self.running.get_mut(&lease) {
                    running.0 = now;
                }
                let remaining = self.expected.get(&lease.workload).map_or(Span::ZERO, |expected| expected.remaining);
                self.agenda.insert((now + remaining, lease, Due::Done));
                Event::LeaseRunning { lease }
            }
            Due::Done => Event::LeaseEnded { lease, exit: Exit::Done },
            Due::Stopped => Event::LeaseEnded { lease, exit: Exit::Failed },
        };
        let _ = self.scheduler.apply(now, &event, &mut self.log);
        self.act(now);
    }

    fn act(&mut self, now: Time) {
        for entry in std::mem::take(&mut self.log) {
            match entry {
                Entry::Started { lease, occupancy, .. } => {
                    self.running.insert(lease, (now, occupancy));
                    self.fate(lease.workload).start.get_or_insert(now);
                    self.agenda.insert((now, lease, Due::Runs));
                }
                Entry::Promoted { lease, .. } => {
                    if let Some((since, before)) = self.running.insert(lease, (now, Occupancy::Allocated)) {
                        self.account(lease.workload, since, now, before);
                    }
                }
                Entry::Stopping { lease, grace } => {
                    self.agenda.insert((now + grace, lease, Due::Stopped));
                }
                Entry::Ended { workload, attempt: Some(attempt), .. } => self.ended(now, LeaseId { workload, attempt }),
                Entry::Ended { workload, attempt: None, .. } => self.fate(workload).end = Some(now),
                Entry::Requeued { workload } => self.fate(workload).end = None,
                _ => {}
            }
        }
    }

    fn ended(&mut self, now: Time, lease: LeaseId) {
        self.agenda.retain(|(_, other, _)| *other != lease);
        self.fate(lease.workload).end = Some(now);
        let Some((since, occupancy)) = self.running.remove(&lease) else { return };
        self.account(lease.workload, since, now, occupancy);
        let Some(expected) = self.expected.get_mut(&lease.workload) else { return };
        let left = (expected.remaining - (now - since)).max(Span::ZERO);
        expected.remaining = if expected.on_preempt == OnPreempt::Resume { left } else { expected.whole };
        if left > Span::ZERO {
            self.fate(lease.workload).preemptions += 1;
        }
    }

    fn account(&mut self, id: WorkloadId, since: Time, now: Time, occupancy: Occupancy) {
        let gpus = self.expected.get(&id).map_or(0, |expected| i64::from(expected.gpus));
        let fate = self.fate(id);
        let sum = if occupancy == Occupancy::Allocated { &mut fate.allocated_gpu_ms } else { &mut fate.unallocated_gpu_ms };
        *sum += gpus * (now - since).0;
    }

    fn fate(&mut self, id: WorkloadId) -> &mut Fate {
        self.fates.entry(id).or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use stipend_core::id::{BlockId, BudgetId, NodeId, PoolId, UserId};
    use stipend_core::quantity::Ppm;
    use stipend_core::spec::{BudgetSpec, Changeset, Features, Gang, LeafOrder, NodeSpec, PoolShare, WorkloadSpec};

    fn budget(id: u32, parent: Option<u32>, name: &str, percent: u32) -> BudgetSpec {
        let share = PoolShare { share: Ppm(percent * 10_000), ..PoolShare::default() };
        let parent = parent.map(BudgetId);
        BudgetSpec { id: BudgetId(id), parent, name: name.into(), pools: vec![share], order: LeafOrder::Priority, closed: false }
    }

    fn change(based_on: u32, budgets: Vec<BudgetSpec>) -> Event {
        Event::BudgetsChanged(Changeset { based_on, author: "t".into(), reason: "t".into(), budgets })
    }

    /// Two leaves on one node of 8 GPUs, each with two workloads of the whole node.
    fn cluster() -> (Scheduler, BTreeMap<WorkloadId, Expected>) {
        let mut scheduler = Scheduler::new(Time(0));
        let pool = PoolId(0);
        let node = NodeSpec { pool, gpus: 8, cpus: 0, memory: 0, block: BlockId(0), features: Features(0), express: false };
        let mut events = vec![
            Event::KnobsSet { pool, knobs: Box::default() },
            Event::NodeJoined { node: NodeId(0), spec: node },
            change(0, vec![budget(0, None, "lab", 100), budget(1, Some(0), "a", 90), budget(2, Some(0), "b", 10)]),
        ];
        let mut expected = BTreeMap::new();
        for id in 0..4 {
            let leaf = BudgetId(1 + id % 2);
            let spec = WorkloadSpec::new(leaf, UserId(leaf.0), pool, Gang::new(1, 8), Span::hours(1));
            events.push(Event::Submitted { workload: WorkloadId(id), spec: Arc::new(spec) });
            let whole = Span::hours(1);
            let one = Expected { remaining: whole, whole, on_preempt: OnPreempt::Resume, gpus: 8, running: None };
            expected.insert(WorkloadId(id), one);
        }
        for event in events {
            scheduler.apply(Time(0), &event, &mut Vec::new()).unwrap();
        }
        (scheduler, expected)
    }

    #[test]
    fn everything_runs_in_turn_and_a_cap_changes_the_turns() {
        let (scheduler, expected) = cluster();
        let as_it_is = project(scheduler.clone(), &[], expected.clone(), Time(Span::days(1).0));
        let ends: Vec<i64> = as_it_is.values().map(|fate| fate.end.unwrap().0 / 3_600_000).collect();
        let mut sorted = ends.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, [1, 2, 3, 4], "one after the other: {ends:?}");
        assert!(as_it_is.values().all(|fate| fate.allocated_gpu_ms == 8 * 3_600_000));

        let mut capped = budget(1, Some(0), "a", 90);
        capped.pools[0].gpus_max = Some(stipend_core::quantity::Gpus(0));
        let changed = project(scheduler, &[change(1, vec![capped])], expected, Time(Span::days(1).0));
        let start = |fates: &BTreeMap<WorkloadId, Fate>, id: u32| fates[&WorkloadId(id)].start;
        assert!(start(&changed, 3) < start(&as_it_is, 3), "b's second starts sooner");
        assert_eq!((start(&changed, 0), start(&changed, 2)), (None, None), "a may hold nothing");
    }
}
