//! Small stories with expected starts and preemptions, on two nodes of 8 for two teams with equal shares.

use stipend_core::entry::Entry;
use stipend_core::quantity::{Ppm, Time};
use stipend_sim::baseline::{Estimate, FairTreeSettings, PreemptFor, PrioritySettings, fair_tree, priority};
use stipend_sim::engine;
use stipend_sim::observer::Observer;
use stipend_sim::policy::Policy;
use stipend_sim::scenario::Scenario;

const POOL: &str = "name = \"t\"\ndescription = \"d\"\nmeasure = \"12h\"\n[pool]\nnodes = 2\n[model]\nexit_after = \"1m\"\n\
    [[budgets]]\npath = \"lab\"\n[[budgets]]\npath = \"lab/a\"\nshare = 50\n[[budgets]]\npath = \"lab/b\"\nshare = 50\n";

/// Starts, preemptions and ends in a few words.
struct Told<'a> {
    scenario: &'a Scenario,
    lines: Vec<String>,
}

impl Observer for Told<'_> {
    fn entry(&mut self, at: Time, entry: &Entry) {
        let name = |id: stipend_core::id::WorkloadId| self.scenario.labels.workloads[id.index()].clone();
        let what = match entry {
            Entry::Started { lease, .. } => format!("start {}", name(lease.workload)),
            Entry::Preempting { lease, claimant: Some(by), .. } => format!("{} yields to {}", name(lease.workload), name(*by)),
            Entry::Ended { workload, outcome, .. } => format!("{} {}", name(*workload), format!("{outcome:?}").to_lowercase()),
            _ => return,
        };
        let minutes = at.0 / 60_000;
        self.lines.push(format!("{}:{:02} {what}", minutes / 60, minutes % 60));
    }
}

/// What a policy does with this work, a line each: when, name, team, gang, priority, contract, how long it takes.
fn told(mut policy: impl Policy, work: &[&str]) -> Vec<String> {
    let mut text = POOL.to_owned();
    for line in work {
        let [at, name, team, gang, priority, min_runtime, work] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        text += &format!(
            "[[workloads]]\nat = \"{at}\"\nname = \"{name}\"\nbudget = \"lab/{team}\"\ngang = \"{gang}\"\npriority = {priority}\n\
             min_runtime = \"{min_runtime}\"\nwork = \"{work}\"\n"
        );
    }
    let scenario = Scenario::parse("t.toml", &text, &[]).unwrap_or_else(|error| panic!("{error}"));
    let mut told = Told { scenario: &scenario, lines: Vec::new() };
    engine::run(&scenario, 1, &mut policy, &mut [&mut told], None);
    told.lines
}

/// With everybody's priority stated; priority 1 is high, -1 normal; nothing high is left to chance, and a team may protect its whole claim.
fn levels() -> impl Policy {
    priority(PrioritySettings { opt_out: Ppm(1_000_000), protected_max: Ppm(1_000_000), ..PrioritySettings::default() })
}

#[test]
fn work_within_its_team_s_limit_takes_what_another_team_holds_beyond_its_own() {
    let work = ["0:00 a1 a 1x8 1 4h 4h", "0:00 a2 a 1x8 1 4h 4h", "1:00 b1 b 1x8 1 2h 2h", "1:30 b2 b 1x8 1 2h 2h"];
    let expected = [
        "0:00 start a1",
        "0:00 start a2",
        "1:00 a2 yields to b1",
        "1:01 a2 preempted",
        "1:01 start b1",
        "3:01 b1 completed",
        "3:01 start b2",
        "4:00 a1 completed",
        "4:00 start a2",
        "5:01 b2 completed",
        "7:05 a2 completed",
    ];
    assert_eq!(told(levels(), &work), expected);
}

#[test]
fn a_higher_level_takes_a_lower_one_and_never_the_other_way() {
    let work = ["0:00 normal a 2x8 -1 4h 2h", "0:10 low b 1x8 0 0s 1h", "0:20 high b 1x8 1 1h 1h", "0:30 low-2 a 1x8 -2 1h 1h"];
    let expected = [
        "0:00 start normal",
        "0:20 normal yields to high",
        "0:21 normal preempted",
        "0:21 start high",
        "0:21 start low",
        "1:21 high completed",
        "1:21 low completed",
        "1:21 start normal",
        "3:26 normal completed",
        "3:26 start low-2",
        "4:26 low-2 completed",
    ];
    assert_eq!(told(levels(), &work), expected);
}

fn slurm(preempt: PreemptFor) -> impl Policy {
    fair_tree(FairTreeSettings { preempt, ..FairTreeSettings::default() }, Estimate::default())
}

/// One team holds both nodes when the other comes.
const BEYOND_ITS_SHARE: [&str; 4] = ["0:00 a1 a 1x8 0 4h 4h", "0:00 a2 a 1x8 0 4h 4h", "0:30 b1 b 1x8 0 1h 1h", "1:30 fill b 1x8 0 0s 4h"];

#[test]
fn the_share_qos_takes_normal_work_after_its_exempt_time_and_scavengers_at_once() {
    let expected = [
        "0:00 start a1",
        "0:00 start a2",
        "1:00 a2 yields to b1",
        "1:01 a2 preempted",
        "1:01 start b1",
        "2:01 b1 completed",
        "2:01 start a2",
        "4:00 a1 completed",
        "4:00 start fill",
        "5:06 a2 completed",
        "8:00 fill completed",
    ];
    assert_eq!(told(slurm(PreemptFor::Share), &BEYOND_ITS_SHARE), expected);
}

#[test]
fn where_qos_do_not_preempt_whoever_is_within_its_share_waits() {
    let expected = [
        "0:00 start a1",
        "0:00 start a2",
        "4:00 a1 completed",
        "4:00 a2 completed",
        "4:00 start b1",
        "4:00 start fill",
        "5:00 b1 completed",
        "8:00 fill completed",
    ];
    assert_eq!(told(slurm(PreemptFor::Nobody), &BEYOND_ITS_SHARE), expected);
}

#[test]
fn who_used_less_goes_first() {
    let work = ["0:00 a1 a 2x8 0 2h 2h", "0:10 a2 a 2x8 0 2h 2h", "0:20 b1 b 2x8 0 2h 2h"];
    let expected = ["0:00 start a1", "2:00 a1 completed", "2:00 start b1", "4:00 b1 completed", "4:00 start a2", "6:00 a2 completed"];
    assert_eq!(told(slurm(PreemptFor::Nobody), &work), expected);
}
