//! Each knob at the ends of what is accepted, on the first day and a half of the lab: the laws hold there, too. Beyond the ends it is refused.

use std::path::Path;
use stipend_core::Scheduler;
use stipend_core::event::{Event, Rejection};
use stipend_core::id::PoolId;
use stipend_core::knobs::Knobs;
use stipend_core::quantity::{Span, Time};
use stipend_sim::audit;
use stipend_sim::engine;
use stipend_sim::log::LogWriter;
use stipend_sim::scenario::Scenario;

/// Knobs and their least and greatest values, or values so far out that more would change nothing.
const ENDS: [(&str, [&str; 2]); 23] = [
    ("lookback", ["1m", "400d"]),
    ("kernel", ["fading", "sliding"]),
    ("commitments", ["true", "false"]),
    ("credit_max", ["0s", "400d"]),
    ("below_share", ["1", "1000"]),
    ("quantum", ["0s", "400d"]),
    ("min_runtime_max", ["1m", "30d"]),
    ("end_max", ["1m", "400d"]),
    ("start_timeout", ["1s", "1d"]),
    ("grace_allocated", ["1s", "2h"]),
    ("grace_unallocated", ["1s", "2h"]),
    ("checkpoint_wait_max", ["0s", "1h"]),
    ("kill_timeout", ["0s", "1d"]),
    ("worth_it", ["0", "1000"]),
    ("age_min", ["0s", "400d"]),
    ("refund_max", ["0s", "400d"]),
    ("express_gpus_max", ["0", "64"]),
    ("express_budget_max", ["0", "1"]),
    ("reservations_max", ["0", "1000"]),
    ("reservation_gang_min", ["0", "1"]),
    ("shapes_max", ["16", "100000"]),
    ("searches_max", ["0", "100000"]),
    ("retry_every", ["1s", "400d"]),
];

#[test]
fn the_laws_hold_at_the_ends_of_every_knob() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/lab.toml");
    let mut promised = 0;
    for (knob, value) in ENDS.into_iter().flat_map(|(knob, values)| values.map(|value| (knob, value))) {
        let set = ["warmup=6h", "measure=30h"].map(String::from).into_iter().chain([format!("{knob}={value}")]);
        let scenario = Scenario::load(&file, &set.collect::<Vec<_>>()).unwrap_or_else(|error| panic!("{error}"));
        let mut log = LogWriter::new(Vec::new(), &scenario.labels);
        engine::run(&scenario, 3, &mut Scheduler::new(Time(0)), &mut [&mut log], None);
        let log = log.finish().expect("memory has room");
        let report = audit::check(log.as_slice()).expect("the log can be read");
        assert!(report.violations.is_empty(), "{knob} = {value}: {:#?}", report.violations);
        promised += String::from_utf8_lossy(&log).matches("\"reserved\"").count();
    }
    assert!(promised > 40, "{promised}");
}

type Change = fn(&mut Knobs);

#[test]
fn what_is_beyond_them_is_refused() {
    let far: [(&str, Change); 6] = [
        ("grace_allocated", |knobs| knobs.grace_allocated = Span::ZERO),
        ("grace_unallocated", |knobs| knobs.grace_unallocated = Span(999)),
        ("checkpoint_wait_max", |knobs| knobs.checkpoint_wait_max = Span::hours(1) + Span(1)),
        ("shapes_max", |knobs| knobs.shapes_max = 15),
        ("retry_every", |knobs| knobs.retry_every = Span(999)),
        ("lookback", |knobs| knobs.lookback = Span::seconds(59)),
    ];
    for (knob, change) in far {
        let mut knobs = Knobs::default();
        change(&mut knobs);
        let told = Scheduler::new(Time(0)).apply(Time(0), &Event::KnobsSet { pool: PoolId(0), knobs: Box::new(knobs) }, &mut Vec::new());
        assert!(matches!(told, Err(Rejection::Knob { knob: of, .. }) if of == knob), "{knob}: {told:?}");
    }
}
