//! What a baseline does when nodes fail, limits end and people change their minds, as its log tells it.

use crate::driver::{Job, equal_teams, node, set_up, spec};
use std::sync::Arc;
use stipend_core::entry::{Class, Entry};
use stipend_core::event::{Event, Exit, Rejection};
use stipend_core::id::{BudgetId, LeaseId, NodeId, PoolId, WorkloadId};
use stipend_core::quantity::{Span, Time};
use stipend_core::spec::{Gang, OnPreempt, Severity, WorkloadSpec};
use stipend_sim::baseline::{self, Estimate};
use stipend_sim::policy::Policy;

/// A pool of two nodes of 8, and what its log said.
struct Story {
    policy: Box<dyn Policy>,
    /// Whether all members run at once after a start.
    starts_run: bool,
    lines: Vec<String>,
}

impl Story {
    fn fifo() -> Story {
        Story::of(Box::new(baseline::fifo()))
    }

    fn of(mut policy: Box<dyn Policy>) -> Story {
        set_up(&mut *policy, &[node(8, 0), node(8, 0)], 1, &mut Vec::new());
        Story { policy, starts_run: true, lines: Vec::new() }
    }

    /// Tells an event and lets the policy decide.
    fn tell(&mut self, second: i64, event: Event) -> Result<(), Rejection> {
        let at = Time(second * 1000);
        let mut log = Vec::new();
        self.policy.apply(at, event, &mut log)?;
        self.policy.decide(at, &mut log);
        let started = log.iter().filter_map(|entry| if let Entry::Started { lease, .. } = entry { Some(*lease) } else { None });
        for lease in started.filter(|_| self.starts_run).collect::<Vec<_>>() {
            self.policy.apply(at, Event::LeaseRunning { lease }, &mut log)?;
        }
        self.lines.extend(log.iter().filter_map(|entry| line(entry).map(|line| format!("{second} {line}"))));
        Ok(())
    }

    fn submit(&mut self, second: i64, number: u32, gang: Gang, change: impl Fn(&mut WorkloadSpec)) -> Result<(), Rejection> {
        let job = Job { submit: Time(0), gang, run: Span::ZERO, time_limit: Span::hours(1), team: 1 };
        let mut spec = Arc::unwrap_or_clone(spec(&job));
        change(&mut spec);
        self.tell(second, Event::Submitted { workload: WorkloadId(number), spec: Arc::new(spec) })
    }

    fn end(&mut self, second: i64, workload: u32, attempt: u32, exit: Exit) -> Result<(), Rejection> {
        self.tell(second, Event::LeaseEnded { lease: lease(workload, attempt), exit })
    }

    /// What the log said since the last look.
    fn said(&mut self) -> Vec<String> {
        std::mem::take(&mut self.lines)
    }
}

fn lease(workload: u32, attempt: u32) -> LeaseId {
    LeaseId { workload: WorkloadId(workload), attempt }
}

/// An entry in a few words; what every story has is left out.
fn line(entry: &Entry) -> Option<String> {
    Some(match entry {
        Entry::Started { lease, placement, .. } => {
            let slots: Vec<String> = placement.iter().map(|slot| format!("{}:{}", slot.node, slot.gpus.0.count_ones())).collect();
            format!("start {lease} on {}", slots.join(" "))
        }
        Entry::Stopping { lease, grace } => format!("stop {lease} within {grace}"),
        Entry::Ended { workload, outcome, lost, .. } => format!("end {workload} {outcome:?}, lost {} GPU-s", lost.0 / 1000),
        Entry::Requeued { workload } => format!("requeue {workload}"),
        Entry::Preempting { lease, licence, .. } => format!("preempt {lease} {licence:?}"),
        Entry::Node { node, state, drain_until, .. } => match drain_until {
            Some(until) => format!("{node} {state:?} until {}", until.0 / 1000),
            None => format!("{node} {state:?}"),
        },
        Entry::Held { workload, .. } => format!("hold {workload}"),
        _ => return None,
    })
}

#[test]
fn work_is_stopped_at_its_time_limit_and_has_a_grace() -> Result<(), Rejection> {
    let mut story = Story::fifo();
    story.submit(0, 0, Gang::new(1, 4), |_| {})?;
    assert_eq!(story.policy.next_wakeup(), Some(Time(3_600_000)));
    story.tell(3599, Event::Tick)?;
    assert_eq!(story.said(), ["0 start w0#1 on n0:4"]);
    story.tell(3600, Event::Tick)?;
    story.end(3650, 0, 1, Exit::Failed)?;
    assert_eq!(story.said(), ["3600 stop w0#1 within 2 min", "3650 end w0 TimedOut, lost 14600 GPU-s"]);
    assert_eq!(story.end(3651, 0, 1, Exit::Failed), Err(Rejection::LeaseUnknown(lease(0, 1))));
    Ok(())
}

#[test]
fn the_limit_counts_over_all_attempts_and_a_checkpoint_bounds_the_loss() -> Result<(), Rejection> {
    let mut story = Story::fifo();
    story.submit(0, 0, Gang::new(2, 8), |spec| spec.on_preempt = OnPreempt::Resume)?;
    story.tell(1700, Event::Checkpointed { lease: lease(0, 1) })?;
    story.tell(1800, Event::NodeLost { node: NodeId(1) })?;
    story.end(1800, 0, 1, Exit::Infrastructure)?;
    story.tell(2000, Event::NodeReady { node: NodeId(1) })?;
    story.tell(3800, Event::Tick)?;
    let said = [
        "0 start w0#1 on n0:8 n1:8",
        "1800 n1 Lost",
        "1800 stop w0#1 within 0 ms",
        "1800 end w0 NodeLost, lost 1600 GPU-s",
        "1800 requeue w0",
        "2000 n1 Ready",
        "2000 start w0#2 on n0:8 n1:8",
        "3800 stop w0#2 within 2 min",
    ];
    assert_eq!(story.said(), said);
    Ok(())
}

#[test]
fn work_that_cannot_go_on_ends_with_its_node() -> Result<(), Rejection> {
    let mut story = Story::fifo();
    story.submit(0, 0, Gang::new(1, 8), |spec| spec.on_preempt = OnPreempt::End)?;
    story.tell(10, Event::NodeLost { node: NodeId(0) })?;
    story.end(40, 0, 1, Exit::Infrastructure)?;
    let said = ["0 start w0#1 on n0:8", "10 n0 Lost", "10 stop w0#1 within 0 ms", "40 end w0 NodeLost, lost 320 GPU-s"];
    assert_eq!(story.said(), said);
    Ok(())
}

#[test]
fn a_drain_waits_for_its_occupants_unless_it_is_critical() -> Result<(), Rejection> {
    let mut story = Story::fifo();
    story.submit(0, 0, Gang::new(1, 8), |_| {})?;
    let drain = |node, severity| Event::NodeDrainRequested { node: NodeId(node), severity, reason: "ECC".into() };
    story.tell(5, drain(0, Severity::Maintenance))?;
    story.submit(6, 1, Gang::new(1, 8), |_| {})?;
    story.submit(7, 2, Gang::new(1, 1), |_| {})?;
    story.end(20, 0, 1, Exit::Completed)?;
    story.tell(30, drain(1, Severity::Critical))?;
    story.end(40, 1, 1, Exit::Failed)?;
    story.tell(50, Event::NodeRepairing { node: NodeId(0) })?;
    story.tell(60, Event::NodeReady { node: NodeId(0) })?;
    let said = [
        "0 start w0#1 on n0:8",
        "5 n0 Draining(Maintenance) until 3600",
        "6 start w1#1 on n1:8",
        "20 end w0 Completed, lost 0 GPU-s",
        "20 n0 Drained",
        "30 n1 Draining(Critical) until 3606",
        "30 preempt w1#1 Critical",
        "30 stop w1#1 within 2 min",
        "40 end w1 Preempted, lost 272 GPU-s",
        "40 requeue w1",
        "40 n1 Drained",
        "50 n0 Repairing",
        "60 n0 Ready",
        "60 start w1#2 on n0:8",
    ];
    assert_eq!(story.said(), said);
    Ok(())
}

#[test]
fn a_start_that_takes_too_long_is_stopped_and_requeued() -> Result<(), Rejection> {
    let mut story = Story::fifo();
    story.starts_run = false;
    story.submit(0, 0, Gang::new(1, 8), |_| {})?;
    assert_eq!(story.policy.next_wakeup(), Some(Time(600_000)));
    story.tell(600, Event::Tick)?;
    story.end(601, 0, 1, Exit::Failed)?;
    let said = [
        "0 start w0#1 on n0:8",
        "600 stop w0#1 within 2 min",
        "601 end w0 StartTimeout, lost 4808 GPU-s",
        "601 requeue w0",
        "601 start w0#2 on n0:8",
    ];
    assert_eq!(story.said(), said);
    Ok(())
}

#[test]
fn backfill_estimates_work_without_a_limit_and_corrects_itself() -> Result<(), Rejection> {
    let mut story = Story::of(Box::new(baseline::easy(Estimate { contracts: 2, least: Span::hours(1) })));
    let unlimited = |spec: &mut WorkloadSpec| {
        spec.time_limit = None;
        spec.min_runtime = Span::hours(1);
    };
    let limit = |minutes| move |spec: &mut WorkloadSpec| spec.time_limit = Some(Span::minutes(minutes));
    story.submit(0, 0, Gang::new(1, 8), unlimited)?;
    story.submit(1, 1, Gang::new(2, 8), |_| {})?;
    story.submit(2, 2, Gang::new(1, 8), limit(120))?;
    story.submit(3, 3, Gang::new(1, 8), limit(119))?;
    story.end(100, 3, 1, Exit::Completed)?;
    assert_eq!(story.policy.next_wakeup(), Some(Time(7_200_000)));
    story.tell(7200, Event::Tick)?;
    let said = ["0 start w0#1 on n0:8", "3 start w3#1 on n1:8", "100 end w3 Completed, lost 0 GPU-s", "7200 start w2#1 on n1:8"];
    assert_eq!(story.said(), said);
    Ok(())
}

#[test]
fn backfill_believes_the_lesser_of_limit_and_expectation_and_stops_nobody_for_it() -> Result<(), Rejection> {
    let mut story = Story::of(Box::new(baseline::easy(Estimate::default())));
    let expects = |limit: Option<i64>, minutes| {
        move |spec: &mut WorkloadSpec| {
            spec.time_limit = limit.map(Span::minutes);
            spec.expected_runtime = Some(Span::minutes(minutes));
        }
    };
    // It outlives its 30 minutes, is then given an hour in all, and its limit ends it after 70 minutes.
    story.submit(0, 0, Gang::new(1, 8), expects(Some(70), 30))?;
    story.submit(1, 1, Gang::new(2, 8), |_| {})?;
    story.submit(2, 2, Gang::new(1, 8), expects(None, 30))?;
    story.submit(3, 3, Gang::new(1, 8), expects(None, 29))?;
    story.end(100, 3, 1, Exit::Completed)?;
    assert_eq!(story.policy.next_wakeup(), Some(Time(1_800_000)));
    story.tell(1800, Event::Tick)?;
    assert_eq!(story.policy.next_wakeup(), Some(Time(3_600_000)));
    story.tell(3600, Event::Tick)?;
    assert_eq!(story.policy.next_wakeup(), Some(Time(4_200_000)));
    story.tell(4200, Event::Tick)?;
    let said = story.said();
    assert_eq!(
        said[..4],
        ["0 start w0#1 on n0:8", "3 start w3#1 on n1:8", "100 end w3 Completed, lost 0 GPU-s", "1800 start w2#1 on n1:8"]
    );
    assert!(said[4..].iter().all(|line| line.starts_with("4200 ") && line.contains("w0")), "{said:?}");
    Ok(())
}

#[test]
fn a_partition_follows_the_budgets() -> Result<(), Rejection> {
    let mut story = Story::of(Box::new(baseline::partition()));
    let mut change = equal_teams(2);
    change.based_on = 1;
    story.submit(0, 0, Gang::new(1, 8), |_| {})?;
    story.tell(1, Event::BudgetsChanged(change))?;
    story.submit(2, 1, Gang::new(1, 8), |spec| spec.budget = BudgetId(2))?;
    story.submit(3, 2, Gang::new(1, 1), |_| {})?;
    story.submit(4, 3, Gang::new(2, 8), |_| {})?;
    story.end(5, 0, 1, Exit::Completed)?;
    let said = ["0 start w0#1 on n0:8", "2 start w1#1 on n1:8", "5 end w0 Completed, lost 0 GPU-s", "5 start w2#1 on n0:1"];
    assert_eq!(story.said(), said, "each has a node now, and the gang of two waits for ever");
    Ok(())
}

#[test]
fn waiting_work_is_held_released_and_withdrawn() -> Result<(), Rejection> {
    let mut story = Story::fifo();
    story.submit(0, 0, Gang::new(2, 8), |_| {})?;
    story.submit(1, 1, Gang::new(2, 8), |_| {})?;
    story.submit(2, 2, Gang::new(1, 8), |_| {})?;
    story.tell(3, Event::Held { workload: WorkloadId(1), why: "its owner".into() })?;
    story.tell(4, Event::Cancelled { workload: WorkloadId(0) })?;
    story.end(5, 0, 1, Exit::Failed)?;
    story.tell(6, Event::Released { workload: WorkloadId(1) })?;
    story.tell(7, Event::Cancelled { workload: WorkloadId(1) })?;
    let said = [
        "0 start w0#1 on n0:8 n1:8",
        "3 hold w1",
        "4 stop w0#1 within 2 min",
        "5 end w0 Cancelled, lost 80 GPU-s",
        "5 start w2#1 on n0:8",
        "7 end w1 Cancelled, lost 0 GPU-s",
    ];
    assert_eq!(story.said(), said);
    Ok(())
}

#[test]
fn what_can_never_run_is_refused_with_the_largest_that_could() {
    let mut story = Story::fifo();
    let refused = story.submit(0, 0, Gang::new(5, 4), |_| {});
    assert_eq!(refused, Err(Rejection::GangNeverFits { pool: PoolId(0), gang: Gang::new(5, 4), members_max: 4 }));
    assert!(story.submit(0, 0, Gang::new(4, 4), |_| {}).is_ok(), "a refused number can be used again");
    assert_eq!(story.submit(0, 0, Gang::new(1, 1), |_| {}), Err(Rejection::WorkloadKnown(WorkloadId(0))));
}

#[test]
fn classes_come_from_the_clamped_contract() {
    let class = |gang: Gang, min_runtime: Span, limit: Option<Span>| {
        let mut policy = baseline::fifo();
        let mut log = Vec::new();
        set_up(&mut policy, &vec![node(8, 0); 9], 1, &mut log);
        let job = Job { submit: Time(0), gang, run: Span::ZERO, time_limit: Span::hours(1), team: 1 };
        let spec = WorkloadSpec { min_runtime, time_limit: limit, ..Arc::unwrap_or_clone(spec(&job)) };
        policy.apply(Time(0), Event::Submitted { workload: WorkloadId(0), spec: Arc::new(spec) }, &mut log).expect("it fits");
        log.into_iter().find_map(|entry| if let Entry::Submitted { class, .. } = entry { Some(class) } else { None })
    };
    assert_eq!(class(Gang::new(1, 8), Span::hours(8), Some(Span::minutes(15))), Some(Class::Debug));
    assert_eq!(class(Gang::new(1, 8), Span::minutes(16), None), Some(Class::Medium));
    assert_eq!(class(Gang::new(9, 1), Span::minutes(5), None), Some(Class::Largest));
    assert_eq!(class(Gang::new(9, 8), Span::ZERO, None), Some(Class::Unallocated));
}
