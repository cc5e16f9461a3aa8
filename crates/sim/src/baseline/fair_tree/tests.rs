//! The backfill against its one promise, that whoever is first in the queue starts no later than it was told, whatever is started beside it;
//! and its search against a slow one.

use super::*;
use crate::engine;
use crate::log::LogWriter;
use crate::scenario::Scenario;
use stipend_core::entry::Entry;
use stipend_core::event::{Event, Rejection};

/// A fair tree whose head is watched.
struct Watched {
    inner: Baseline<FairTree>,
    /// Who is first in the queue, and by when it has its nodes.
    head: Option<(WorkloadId, Time)>,
    /// How often a reservation was looked at again, and how many were kept.
    looks: u32,
    kept: u32,
}

impl Watched {
    fn look(&mut self, at: Time) {
        let queue = &self.inner.pools[0].queue;
        if let Some((id, by)) = self.head {
            let waits = queue.pending.iter().any(|job| job.id == id);
            assert!(!waits || at <= by, "{id} was to start by {by:?} and waits at {at:?}");
            self.kept += u32::from(!waits);
        }
        let head = queue.pending.first().and_then(|job| Some((job.id, queue.reservations.of(job.id)?)));
        if let (Some((was, by)), Some((is, from))) = (self.head, head) {
            assert!(was != is || from <= by, "{is} was to start by {by:?}, now by {from:?}");
            self.looks += u32::from(was == is);
        }
        self.head = head.or(self.head.filter(|(id, _)| queue.pending.iter().any(|job| job.id == *id)));
    }
}

impl Policy for Watched {
    fn apply(&mut self, at: Time, event: Event, log: &mut Vec<Entry>) -> Result<(), Rejection> {
        self.inner.apply(at, event, log)
    }

    fn decide(&mut self, at: Time, log: &mut Vec<Entry>) {
        self.inner.decide(at, log);
        self.look(at);
    }

    fn next_wakeup(&self) -> Option<Time> {
        self.inner.next_wakeup()
    }
}

const SCENARIO: &str = r#"
name = "t"
description = "d"
measure = "6d"
[pool]
nodes = 9
nodes_per_block = 3
[[budgets]]
path = "lab"
[[streams]]
budget = "lab"
outstanding = 14
think = "20m"
gangs = ["1x1", "1x4", "1x8", "2x8", "5x8"]
weights = [4, 3, 3, 2, 1]
work = "2h"
spread = 1.0
min_runtimes = ["1h"]
resume = 0
restart = 1
time_limit = 1.4
"#;

#[test]
fn backfill_never_delays_the_head_s_reservation() {
    let scenario = Scenario::parse("t.toml", SCENARIO, &[]).expect("the scenario is right");
    for reservations in [1, 3, 20] {
        for seed in 0..8 {
            // By age alone, so that whoever is first stays first.
            let settings = FairTreeSettings {
                weight_fairshare: 0,
                weight_qos: 0,
                weight_age: 1000,
                max_age: Span::days(30),
                backfill_interval: Span::ZERO,
                backfill_reservations: reservations,
                preempt: PreemptFor::Nobody,
                ..FairTreeSettings::default()
            };
            let inner = Baseline::new(move || FairTree::new(settings), Estimate::default());
            let mut watched = Watched { inner, head: None, looks: 0, kept: 0 };
            let summary = engine::run(&scenario, seed, &mut watched, &mut [], None);
            assert_eq!(summary.faults, 0, "{:?}", summary.fault_examples);
            assert!(watched.looks > 30 && watched.kept > 10, "seed {seed}: {} looks, {} kept", watched.looks, watched.kept);
        }
    }
}

/// Hosts that fail, gangs of all sizes, some of which need a block of their own, or most of the CPUs of a node.
const CROWDED: &str = r#"
name = "t"
description = "d"
measure = "3d"
[pool]
nodes = 9
nodes_per_block = 3
cpus = 64
[failures]
host_mtbf = "2d"
repair = "3h"
lost = 1
critical = 1
sick = 1
maintenance = 1
[[budgets]]
path = "lab"
[[budgets]]
path = "lab/a"
share = 60
[[budgets]]
path = "lab/b"
share = 40
[[streams]]
budget = "lab/a"
outstanding = 14
think = "20m"
gangs = ["1x1", "1x4", "1x8", "2x8", "6x8"]
weights = [4, 3, 3, 2, 1]
work = "2h"
spread = 1.0
min_runtimes = ["1h"]
resume = 0
restart = 1
[[streams]]
budget = "lab/b"
outstanding = 9
think = "5m"
gangs = ["2x4", "3x2", "4x8"]
work = "70m"
spread = 1.0
min_runtimes = ["0s", "30m"]
[[workloads]]
name = "block"
budget = "lab/b"
gang = "3x6"
same_block = true
min_runtime = "1h"
work = "3h"
count = 12
[[workloads]]
at = "20h"
name = "cpus"
budget = "lab/a"
gang = "3x1"
cpus_per_member = 48
min_runtime = "1h"
work = "2h"
count = 12
"#;

#[test]
fn reservations_are_those_of_the_reference_and_make_the_same_decisions_when_made_late() {
    let mut agreed = [0, 0];
    for preempt in [PreemptFor::Nobody, PreemptFor::Share] {
        for (reservations, window) in [(2, Span::hours(6)), (8, Span::days(4)), (40, Span::hours(3))] {
            let settings = FairTreeSettings {
                backfill_interval: Span::ZERO,
                backfill_reservations: reservations,
                backfill_window: window,
                exempt: Span::minutes(10),
                preempt,
                ..FairTreeSettings::default()
            };
            for seed in 0..3 {
                let scenario = Scenario::parse("t.toml", CROWDED, &[]).expect("the scenario is right");
                let [lazy, eager] = [false, true].map(|eager| {
                    let mut policy = Baseline::new(move || FairTree { eager, ..FairTree::new(settings) }, Estimate::default());
                    let mut log = LogWriter::new(Vec::new(), &scenario.labels);
                    let summary = engine::run(&scenario, seed, &mut policy, &mut [&mut log], None);
                    assert_eq!(summary.faults, 0, "{:?}", summary.fault_examples);
                    // Every search was held against the reference where it was made.
                    let of_run = policy.pools[0].queue.reservations.agreed;
                    assert!(of_run[0] > 500, "{of_run:?}");
                    agreed = [agreed[0] + of_run[0], agreed[1] + of_run[1]];
                    log.finish().expect("a vector takes everything")
                });
                assert!(lazy == eager, "it decides otherwise where reservations are made only when needed");
            }
        }
    }
    assert!(agreed[1] > 500, "searches that found nothing: {agreed:?}");
}
