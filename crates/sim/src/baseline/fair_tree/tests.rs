//! The backfill against its one promise: whoever is first in the queue starts no later than it was told, whatever is started beside it.

use super::*;
use crate::engine;
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
