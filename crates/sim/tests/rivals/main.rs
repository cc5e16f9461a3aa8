//! The rivals that preempt, against the laws that hold for any scheduler and against their own rules, on a small pool where hosts fail often.

mod pools;
mod stories;

use std::collections::BTreeMap;
use stipend_core::entry::{Entry, Occupancy};
use stipend_core::id::{LeaseId, WorkloadId};
use stipend_core::quantity::{Span, Time};
use stipend_core::spec::OnPreempt;
use stipend_sim::audit::{self, Law};
use stipend_sim::baseline::{FairTreeSettings, PreemptFor, PrioritySettings, fair_tree, priority};
use stipend_sim::engine;
use stipend_sim::log::LogWriter;
use stipend_sim::observer::Observer;
use stipend_sim::policy::Policy;
use stipend_sim::scenario::Scenario;

/// Three teams that want twice the pool, hosts that fail every few days in every way, processes that take their time.
const SCENARIO: &str = r#"
name = "t"
description = "d"
measure = "10d"
[pool]
nodes = 12
nodes_per_block = 4
[model]
start_delay = "40s"
exit_after = "30s"
[failures]
host_mtbf = "4d"
repair = "2h"
lost = 1
critical = 1
sick = 1
maintenance = 1
[lab]
demand = 2
large = 0
users = 12
debug_think = "2h"
[[budgets]]
path = "lab"
[[budgets]]
path = "lab/a"
share = 50
[[budgets]]
path = "lab/b"
share = 35
[[budgets]]
path = "lab/c"
share = 15
"#;

/// The laws that do not speak of budgets.
const LAWS: [Law; 9] =
    [Law::TimeOrder, Law::Sequence, Law::GpuTwice, Law::Gang, Law::Node, Law::NamedStart, Law::ReEntry, Law::Chain, Law::Requeue];

fn policies() -> Vec<(&'static str, Box<dyn Policy>)> {
    let preempting = |preempt| FairTreeSettings { preempt, ..FairTreeSettings::default() };
    let estimate = stipend_sim::baseline::Estimate::default();
    vec![
        ("priority", Box::new(priority(PrioritySettings::default()))),
        ("fair-tree that preempts", Box::new(fair_tree(preempting(PreemptFor::Share), estimate))),
        ("fair-tree that preempts scavengers only", Box::new(fair_tree(preempting(PreemptFor::Scavenger), estimate))),
    ]
}

/// Runs a policy, which must take every fact, and holds its log against the laws of any scheduler.
fn audited(scenario: &Scenario, seed: u64, name: &str, policy: &mut dyn Policy) -> audit::Report {
    let mut log = LogWriter::new(Vec::new(), &scenario.labels);
    let summary = engine::run(scenario, seed, policy, &mut [&mut log], None);
    assert_eq!((summary.faults, summary.refused), (0, 0), "{name}: {:?} {:?}", summary.fault_examples, summary.refusals);
    let log = log.finish().expect("a vector takes everything");
    audit::check_only(log.as_slice(), &LAWS).expect("the log can be read")
}

#[test]
fn the_laws_of_any_scheduler_hold() {
    let scenario = Scenario::parse("t.toml", SCENARIO, &[]).expect("the scenario is right");
    for seed in 1..=4 {
        for (name, mut policy) in policies() {
            let report = audited(&scenario, seed, name, policy.as_mut());
            assert!(report.is_clean(), "{name} with seed {seed}: {report}");
            let seen = &report.summary;
            assert!(seen.starts > 500 && seen.holds_started > 20 && seen.preemptions_for_claimants > 50, "{name}: {seen}");
        }
    }
}

/// Looks at whom `fair-tree` preempts.
#[derive(Default)]
struct Exempt {
    exempt: Span,
    on_preempt: BTreeMap<WorkloadId, OnPreempt>,
    started: BTreeMap<LeaseId, (Time, Occupancy)>,
    /// Preempted leases with a contract.
    seen: u32,
}

impl Observer for Exempt {
    fn entry(&mut self, at: Time, entry: &Entry) {
        match entry {
            Entry::Submitted { workload, spec, .. } => {
                self.on_preempt.insert(*workload, spec.on_preempt);
            }
            Entry::Started { lease, occupancy, .. } => {
                self.started.insert(*lease, (at, *occupancy));
            }
            Entry::Running { lease, .. } => self.started.get_mut(lease).expect("it started").0 = at,
            Entry::Preempting { lease, claimant: Some(_), .. } => {
                let (since, occupancy) = self.started[lease];
                if occupancy == Occupancy::Allocated {
                    assert!(self.exempt <= at - since, "{lease} ran from {since:?} and yields at {at:?}");
                    assert_ne!(self.on_preempt[&lease.workload], OnPreempt::End, "{lease} cannot go on");
                    self.seen += 1;
                }
            }
            _ => {}
        }
    }
}

#[test]
fn preemption_by_qos_respects_the_exempt_time_and_who_cannot_be_requeued() {
    let scenario = Scenario::parse("t.toml", SCENARIO, &[]).expect("the scenario is right");
    for exempt in [Span::ZERO, Span::minutes(30), Span::hours(4)] {
        let settings = FairTreeSettings { preempt: PreemptFor::Share, exempt, ..FairTreeSettings::default() };
        let mut policy = fair_tree(settings, stipend_sim::baseline::Estimate::default());
        let mut watch = Exempt { exempt, ..Exempt::default() };
        engine::run(&scenario, 5, &mut policy, &mut [&mut watch], None);
        assert!(watch.seen > 10, "only {} to look at", watch.seen);
    }
}

#[test]
fn without_preemption_nobody_yields() {
    let scenario = Scenario::parse("t.toml", SCENARIO, &[]).expect("the scenario is right");
    let estimate = stipend_sim::baseline::Estimate::default();
    let policies: [Box<dyn Policy>; 2] = [
        Box::new(fair_tree(FairTreeSettings::default(), estimate)),
        Box::new(priority(PrioritySettings { preempt: false, ..PrioritySettings::default() })),
    ];
    for mut policy in policies {
        let mut log = LogWriter::new(Vec::new(), &scenario.labels);
        engine::run(&scenario, 5, policy.as_mut(), &mut [&mut log], None);
        let log = log.finish().expect("a vector takes everything");
        let report = audit::check_only(log.as_slice(), &LAWS).expect("the log can be read");
        assert!(report.is_clean(), "{report}");
        assert_eq!((report.summary.holds, report.summary.preemptions_for_claimants), (0, 0));
    }
}
