mod fifo;

use super::*;
use crate::baseline;
use crate::job::Ends;
use crate::labels::Labels;
use fifo::Fifo;
use stipend_core::Scheduler;
use stipend_core::entry::Occupancy;
use stipend_core::explain::Names;
use stipend_core::id::LeaseId;
use stipend_core::quantity::GpuMs;

/// Writes down what happens, one line a thing.
struct Timeline<'a> {
    labels: &'a Labels,
    lines: Vec<String>,
    banked: i64,
    lost: i64,
}

impl Timeline<'_> {
    fn line(&mut self, at: Time, what: &str, lease: LeaseId) {
        self.lines.push(format!("{} {what} {}#{}", self.labels.time(at), self.labels.workload(lease.workload), lease.attempt));
    }
}

impl Observer for Timeline<'_> {
    fn entry(&mut self, at: Time, entry: &Entry) {
        match entry {
            Entry::Started { lease, .. } => self.line(at, "start", *lease),
            Entry::Running { lease, .. } => self.line(at, "run", *lease),
            Entry::Checkpoint { lease } => self.line(at, "checkpoint", *lease),
            Entry::Stopping { lease, .. } => self.line(at, "stop", *lease),
            Entry::Ended { workload, attempt, outcome, .. } => {
                let what = format!("{outcome:?}").to_lowercase();
                self.line(at, &what, LeaseId { workload: *workload, attempt: attempt.unwrap_or(0) });
            }
            Entry::Node { node, state, .. } => self.lines.push(format!("{} {node} {state:?}", self.labels.time(at))),
            Entry::Refused { .. } => self.lines.push(format!("{} refused", self.labels.time(at))),
            _ => {}
        }
    }
    fn banked(&mut self, _at: Time, _lease: LeaseId, gpu_ms: GpuMs) {
        self.banked += gpu_ms.0;
    }
    fn lost(&mut self, _at: Time, _lease: LeaseId, _occupancy: Occupancy, gpu_ms: GpuMs) {
        self.lost += gpu_ms.0;
    }
}

/// Runs a scenario of 2 nodes × 8 GPUs and compares its timeline and its banked and lost GPU minutes.
fn check(policy: &mut Fifo, scenario: &str, expected: &[&str], banked: i64, lost: i64) -> RunSummary {
    let text = format!("name = \"t\"\ndescription = \"a test\"\n{scenario}\n[pool]\nnodes = 2\n[[budgets]]\npath = \"lab\"\n");
    let scenario = Scenario::parse("t.toml", &text, &[]).expect("the scenario is right");
    let mut timeline = Timeline { labels: &scenario.labels, lines: Vec::new(), banked: 0, lost: 0 };
    let summary = run(&scenario, 1, policy, &mut [&mut timeline], None);
    assert_eq!(timeline.lines, expected);
    assert_eq!((timeline.banked / 60_000, timeline.lost / 60_000), (banked, lost), "banked and lost GPU minutes");
    assert_eq!(summary.faults, 0, "{:?}", summary.fault_examples);
    summary
}

fn workload(name: &str, rest: &str) -> String {
    format!("[[workloads]]\nname = \"{name}\"\nbudget = \"lab\"\n{rest}\n")
}

#[test]
fn work_starts_runs_banks_and_completes() {
    let scenario = String::from("measure = \"6h\"\n")
        + &workload("a", "at = \"0:30\"\ngang = \"2x8\"\nmin_runtime = \"1h\"\nwork = \"90m\"")
        + &workload("b", "at = \"1:00\"\ngang = \"1x4\"\non_preempt = \"restart\"\nmin_runtime = \"1h\"\nwork = \"30m\"\nfails = true");
    let expected = [
        "0:30 start a#1",
        "0:30 run a#1",
        "1:30 checkpoint a#1",
        "2:00 completed a#1",
        "2:00 start b#1",
        "2:00 run b#1",
        "2:30 failed b#1",
    ];
    let summary = check(&mut Fifo::default(), &scenario, &expected, 16 * 90, 4 * 30);
    assert_eq!((summary.submitted, summary.completed, summary.failed, summary.unfinished), (2, 1, 1, 0));
    assert_eq!(summary.end, Time(Span::hours(6).0));
}

#[test]
fn a_stop_loses_what_is_not_banked_and_the_next_lease_pays_its_restart() {
    let scenario = String::from("measure = \"6h\"\n[model]\nrestart_cost = \"5m\"\nexit_after = \"1m\"\n")
        + &workload("a", "gang = \"1x8\"\nmin_runtime = \"1h\"\nwork = \"90m\"");
    let mut policy = Fifo::stopping(Span::minutes(70), Span::minutes(2));
    let expected = [
        "0:00 start a#1",
        "0:00 run a#1",
        "1:00 checkpoint a#1",
        "1:10 stop a#1",
        "1:11 preempted a#1",
        "1:11 start a#2",
        "1:11 run a#2",
        "1:46 completed a#2",
    ];
    check(&mut policy, &scenario, &expected, 8 * 90, 8 * (11 + 5));
}

#[test]
fn work_that_completes_within_the_grace_is_done() {
    let scenario = String::from("measure = \"6h\"\n")
        + &workload("a", "gang = \"1x8\"\non_preempt = \"restart\"\nmin_runtime = \"1h\"\nwork = \"61m\"");
    let mut policy = Fifo::stopping(Span::minutes(60), Span::minutes(2));
    let expected = ["0:00 start a#1", "0:00 run a#1", "1:00 stop a#1", "1:01 completed a#1"];
    check(&mut policy, &scenario, &expected, 8 * 61, 0);
}

#[test]
fn a_process_that_ignores_the_signal_stays() {
    let scenario = String::from("measure = \"2h\"\n")
        + &workload("a", "gang = \"1x8\"\non_preempt = \"end\"\ntime_limit = \"10h\"\nwork = \"9h\"")
        + "[[happenings]]\nat = \"0:10\"\nwhat = \"stick\"\nworkload = \"a\"\nlasts = \"30m\"\n";
    let mut policy = Fifo::stopping(Span::minutes(60), Span::minutes(2));
    let expected = ["0:00 start a#1", "0:00 run a#1", "1:00 stop a#1", "1:30 preempted a#1"];
    let summary = check(&mut policy, &scenario, &expected, 0, 8 * 90);
    assert_eq!(summary.other_ends, 1);
}

#[test]
fn a_lost_node_kills_its_gang_which_goes_on_once_it_is_fenced() {
    let scenario = String::from("measure = \"9h\"\n[model]\nfence_after = \"3m\"\nstart_delay = \"1m\"\n")
        + &workload("a", "gang = \"2x8\"\nmin_runtime = \"1h\"\nwork = \"2h\"")
        + "[[happenings]]\nat = \"1:31\"\nwhat = \"lose\"\nnode = 1\nlasts = \"1h\"\n";
    let expected = [
        "0:00 start a#1",
        "0:01 run a#1",
        "1:01 checkpoint a#1",
        "1:31 n1 Lost",
        "1:34 nodelost a#1",
        "2:31 n1 Ready",
        "2:31 start a#2",
        "2:32 run a#2",
        "3:32 checkpoint a#2",
        "3:37 completed a#2",
    ];
    check(&mut Fifo::default(), &scenario, &expected, 16 * 120, 16 * (34 + 6));
}

#[test]
fn a_drained_node_is_repaired_and_comes_back() {
    let scenario = String::from("measure = \"9h\"\n")
        + &workload("a", "gang = \"1x8\"\nmin_runtime = \"1h\"\nwork = \"1h\"")
        + "[[happenings]]\nat = \"0:10\"\nwhat = \"drain\"\nnode = 0\nlasts = \"20m\"\nreason = \"fan\"\n";
    let expected = [
        "0:00 start a#1",
        "0:00 run a#1",
        "0:10 n0 Draining(Sick)",
        "1:00 completed a#1",
        "1:00 n0 Drained",
        "1:00 n0 Repairing",
        "1:20 n0 Ready",
    ];
    check(&mut Fifo::default(), &scenario, &expected, 8 * 60, 0);
}

#[test]
fn a_slow_start_is_lost_time_and_a_waiting_workload_can_be_cancelled() {
    let scenario = String::from("measure = \"9h\"\n")
        + &workload("a", "gang = \"2x8\"\nmin_runtime = \"1h\"\nwork = \"1h\"")
        + &workload("b", "at = \"0:05\"\ngang = \"2x8\"\nmin_runtime = \"1h\"\nwork = \"1h\"")
        + "[[happenings]]\nat = \"0:00\"\nwhat = \"slow-start\"\nworkload = \"a\"\nlasts = \"6m\"\n"
        + "[[happenings]]\nat = \"0:30\"\nwhat = \"cancel\"\nworkload = \"b\"\n";
    let expected = ["0:00 start a#1", "0:06 run a#1", "0:30 cancelled b#0", "1:06 completed a#1"];
    check(&mut Fifo::default(), &scenario, &expected, 16 * 60, 16 * 6);
}

/// Neither done nor failed: the policy is told that its owner cancels it, and it leaves within its grace.
#[test]
fn what_its_owner_cancelled_is_cancelled_after_the_time_that_it_ran() {
    let text = String::from("name = \"t\"\ndescription = \"d\"\nmeasure = \"6h\"\n[pool]\nnodes = 2\n[[budgets]]\npath = \"lab\"\n")
        + "[model]\nexit_after = \"0s\"\n"
        + &workload("a", "gang = \"1x8\"\nmin_runtime = \"1h\"\nwork = \"90m\"");
    let policies: [Box<dyn Policy>; 3] = [Box::new(Scheduler::new(Time(0))), Box::new(baseline::fifo()), Box::new(baseline::partition())];
    for mut policy in policies {
        let mut scenario = Scenario::parse("t.toml", &text, &[]).expect("the scenario is right");
        scenario.listed[0].job.ends = Ends::Cancelled;
        let mut timeline = Timeline { labels: &scenario.labels, lines: Vec::new(), banked: 0, lost: 0 };
        let summary = run(&scenario, 1, policy.as_mut(), &mut [&mut timeline], None);
        timeline.lines.retain(|line| line.contains('#'));
        let expected = ["0:00 start a#1", "0:00 run a#1", "1:00 checkpoint a#1", "1:30 stop a#1", "1:30 cancelled a#1"];
        assert_eq!((timeline.lines, summary.completed, summary.faults), (expected.map(String::from).to_vec(), 0, 0));
    }
}

#[test]
fn a_closed_loop_keeps_its_workloads_outstanding() {
    let text = "name = \"t\"\ndescription = \"d\"\nmeasure = \"10d\"\n[pool]\nnodes = 4\n[[budgets]]\npath = \"lab\"\n\
        [[streams]]\nbudget = \"lab\"\noutstanding = 3\nthink = \"1h\"\ngangs = [\"1x8\"]\nwork = \"1h\"\nmin_runtimes = [\"1h\"]\n";
    let scenario = Scenario::parse("t.toml", text, &[]).expect("the scenario is right");
    let summary = run(&scenario, 1, &mut Fifo::default(), &mut [], None);
    assert!((300..420).contains(&summary.submitted), "3 streams of 240 h, 2 h a round: {}", summary.submitted);
    let again = run(&scenario, 1, &mut Fifo::default(), &mut [], None);
    assert_eq!((summary.submitted, summary.events), (again.submitted, again.events), "the same seed gives the same run");
    assert_ne!(summary.events, run(&scenario, 2, &mut Fifo::default(), &mut [], None).events);
}

#[test]
fn refused_submissions_are_counted_and_the_stream_goes_on() {
    let text = "name = \"t\"\ndescription = \"d\"\nmeasure = \"1d\"\ndrain = true\n[pool]\nnodes = 4\n[[budgets]]\npath = \"lab\"\n\
        [[streams]]\nbudget = \"lab\"\nevery = \"1h\"\ngangs = [\"1x8\", \"1x2\"]\nwork = \"5h\"\nmin_runtimes = [\"1h\"]\n";
    let scenario = Scenario::parse("t.toml", text, &[]).expect("the scenario is right");
    let mut policy = Fifo::refusing_above(4);
    let summary = run(&scenario, 1, &mut policy, &mut [], None);
    assert!(summary.refused > 3 && summary.submitted > summary.refused, "{summary:?}");
    assert_eq!(summary.refusals.len(), 5.min(summary.refused as usize));
    assert_eq!((summary.unfinished, summary.completed), (0, summary.submitted - summary.refused));
}

#[test]
fn hosts_fail_about_as_often_as_the_scenario_says() {
    let text = "name = \"t\"\ndescription = \"d\"\nmeasure = \"100d\"\n[pool]\nnodes = 50\n[[budgets]]\npath = \"lab\"\n\
        [failures]\nhost_mtbf = \"20d\"\nrepair = \"4h\"\nlost = 0.5\nsick = 0.5\n\
        [[streams]]\nbudget = \"lab\"\noutstanding = 1\ngangs = [\"1x8\"]\nwork = \"1h\"\nmin_runtimes = [\"1h\"]\n";
    let scenario = Scenario::parse("t.toml", text, &[]).expect("the scenario is right");
    let mut timeline = Timeline { labels: &scenario.labels, lines: Vec::new(), banked: 0, lost: 0 };
    let summary = run(&scenario, 1, &mut Fifo::default(), &mut [&mut timeline], None);
    let count = |state: &str| timeline.lines.iter().filter(|line| line.ends_with(state)).count();
    assert_eq!(summary.faults, 0, "{:?}", summary.fault_examples);
    assert!(
        (80..170).contains(&count("Lost")) && (80..170).contains(&count("Repairing")),
        "{} lost, {} repaired",
        count("Lost"),
        count("Repairing")
    );
    assert!(count("Ready") + 50 > count("Lost") + count("Repairing"));
}
