//! What the order by completion brings: the same work under each order of its leaves, beside an oracle that knows how work ends.
//!
//! `cargo run --release -p stipend-sim --example completion -- SCENARIO SEEDS [KEY=VALUE]…` takes a scenario with invented failures
//! (`[lab]` or `[trace]`: `fails`, `families`) or a trace that tells them, and prints for each order, over what was submitted while it
//! measured: completions a day, GPU-hours that completed and that failed, waits of work that completes and of work that fails, and waits
//! by class; then how good the estimates were that the records would have given at each submission.

use std::collections::BTreeMap;
use std::path::Path;
use stipend_core::Scheduler;
use stipend_core::entry::{Class, Entry, Outcome};
use stipend_core::id::WorkloadId;
use stipend_core::quantity::{Span, Time};
use stipend_core::record::{Estimate, Kin, Records};
use stipend_core::spec::LeafOrder;
use stipend_sim::engine;
use stipend_sim::observer::Observer;
use stipend_sim::scenario::Scenario;

/// The orders that are compared, and whether an oracle tells.
const ORDERS: [(&str, LeafOrder, bool); 5] = [
    ("fifo", LeafOrder::Fifo, false),
    ("priority", LeafOrder::Priority, false),
    ("shortest-contract", LeafOrder::ShortestContract, false),
    ("completion", LeafOrder::Completion, false),
    ("oracle", LeafOrder::Completion, true),
];

fn main() {
    let mut arguments = std::env::args().skip(1);
    let usage = "completion SCENARIO SEEDS [KEY=VALUE]…";
    let file = arguments.next().expect(usage);
    let seeds: u64 = arguments.next().and_then(|seeds| seeds.parse().ok()).expect(usage);
    let overrides: Vec<String> = arguments.collect();
    println!(
        "{:18} {:>9} {:>9} {:>9}  {:>14} {:>14}  {:>16} {:>16}",
        "", "done/day", "GPU-h ok", "failed", "ok wait", "failed wait", "medium", "unallocated"
    );
    println!(
        "{:18} {:>9} {:>9} {:>9}  {:>14} {:>14}  {:>16} {:>16}",
        "order", "", "", "", "mean p99 h", "mean p99 h", "p50 p90 p99 h", "p50 p90 p99 h"
    );
    let mut judged = Vec::new();
    for (name, order, oracle) in ORDERS {
        let mut rows = Vec::new();
        for seed in 1..=seeds {
            let watch = run(&file, &overrides, (order, oracle), seed);
            rows.push(watch.row());
            if order == LeafOrder::Fifo {
                judged.extend(watch.judged());
            }
        }
        print(name, &rows);
    }
    calibration(&judged);
}

fn run(file: &str, overrides: &[String], (order, oracle): (LeafOrder, bool), seed: u64) -> Watch {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let oracle = oracle.then(|| if text.contains("\n[lab]\n") { "lab.oracle=true" } else { "trace.oracle=true" });
    let all: Vec<String> = overrides.iter().cloned().chain(oracle.map(String::from)).collect();
    let scenario = Scenario::load(Path::new(file), &all);
    let mut scenario = scenario.unwrap_or_else(|error| panic!("{error}"));
    scenario.budgets.iter_mut().for_each(|budget| budget.order = order);
    let mut watch = Watch { from: scenario.measure_from(), to: scenario.measure_to(), ..Watch::default() };
    engine::run(&scenario, seed, &mut Scheduler::new(Time(0)), &mut [&mut watch], None);
    watch
}

/// One workload.
#[derive(Clone, Copy)]
struct Work {
    submitted: Time,
    class: Class,
    kin: Kin,
    gpus: u32,
    estimate: Estimate,
    started: Option<Time>,
    running: Option<Time>,
    ran: Span,
    ended: Option<(Time, bool)>,
}

#[derive(Default)]
struct Watch {
    from: Time,
    to: Time,
    works: BTreeMap<WorkloadId, Work>,
    /// What a scheduler knows that sees the same outcomes.
    records: Records,
}

impl Observer for Watch {
    fn entry(&mut self, at: Time, entry: &Entry) {
        match entry {
            Entry::Submitted { workload, spec, class, .. } => {
                let kin = Kin::from(&**spec);
                let estimate = self.records.estimate(kin, Span::ZERO);
                let gpus = spec.gang.gpus().0;
                let work =
                    Work { submitted: at, class: *class, kin, gpus, estimate, started: None, running: None, ran: Span::ZERO, ended: None };
                self.works.insert(*workload, work);
            }
            Entry::Started { lease, .. } => {
                self.of(lease.workload).started.get_or_insert(at);
            }
            Entry::Running { lease, .. } => self.of(lease.workload).running = Some(at),
            Entry::Ended { workload, outcome, .. } => self.ended(at, *workload, *outcome),
            _ => {}
        }
    }
}

impl Watch {
    fn of(&mut self, id: WorkloadId) -> &mut Work {
        self.works.get_mut(&id).expect("it was submitted")
    }

    fn ended(&mut self, at: Time, id: WorkloadId, outcome: Outcome) {
        let work = self.of(id);
        if let Some(running) = work.running.take() {
            work.ran = work.ran + (at - running);
        }
        let completed = match outcome {
            Outcome::Completed => true,
            Outcome::Failed | Outcome::TimedOut => false,
            _ => return,
        };
        work.ended = Some((at, completed));
        let (kin, ran) = (work.kin, work.ran);
        self.records.ended(kin, ran, completed);
    }

    /// What was submitted while it measured.
    fn measured(&self) -> impl Iterator<Item = &Work> {
        self.works.values().filter(|work| self.from <= work.submitted && work.submitted < self.to)
    }

    /// Waits until the first start in hours; of what never started, until the end.
    fn waits(&self, of: impl Fn(&Work) -> bool) -> Vec<f64> {
        let mut waits: Vec<f64> =
            self.measured().filter(|work| of(work)).map(|work| hours(work.started.unwrap_or(self.to) - work.submitted)).collect();
        waits.sort_by(f64::total_cmp);
        waits
    }

    fn row(&self) -> Vec<f64> {
        let days = hours(self.to - self.from) / 24.0;
        let ended = |completed: bool| {
            let of = |work: &&Work| {
                work.class != Class::Debug && work.ended.is_some_and(|(at, well)| well == completed && self.from <= at && at < self.to)
            };
            self.works.values().filter(of).map(|work| hours(work.ran) * f64::from(work.gpus)).collect::<Vec<f64>>()
        };
        let (good, bad) = (ended(true), ended(false));
        let of_outcome =
            |completed: bool| self.waits(|work| work.class != Class::Debug && work.ended.is_some_and(|(_, well)| well == completed));
        let mut row = vec![good.len() as f64 / days, good.iter().sum(), bad.iter().sum()];
        for waits in [of_outcome(true), of_outcome(false)] {
            row.extend([waits.iter().sum::<f64>() / waits.len().max(1) as f64, rank(&waits, 99)]);
        }
        for class in [Class::Medium, Class::Unallocated] {
            let waits = self.waits(|work| work.class == class);
            row.extend([50, 90, 99].map(|percent| rank(&waits, percent)));
        }
        row
    }

    /// What was expected of each that ended by its own doing, and whether it completed.
    fn judged(&self) -> Vec<(f64, bool)> {
        let of = |work: &Work| Some((f64::from(work.estimate.completes.0) / 1e6, work.ended?.1));
        self.measured().filter(|work| work.class != Class::Debug).filter_map(of).collect()
    }
}

/// The mean over seeds and, of the first three, its standard error.
fn print(name: &str, rows: &[Vec<f64>]) {
    let seeds = rows.len() as f64;
    let mean = |place: usize| rows.iter().map(|row| row[place]).sum::<f64>() / seeds;
    let error = |place: usize| {
        let variance = rows.iter().map(|row| (row[place] - mean(place)).powi(2)).sum::<f64>() / (seeds - 1.0).max(1.0);
        (variance / seeds).sqrt()
    };
    let few = |places: &[usize]| places.iter().map(|place| format!("{:.1}", mean(*place))).collect::<Vec<_>>().join(" ");
    println!(
        "{name:18} {:>9.1} {:>9.0} {:>9.0}  {:>14} {:>14}  {:>16} {:>16}",
        mean(0),
        mean(1),
        mean(2),
        few(&[3, 4]),
        few(&[5, 6]),
        few(&[7, 8, 9]),
        few(&[10, 11, 12])
    );
    println!("{:18} {:>9} {:>9} {:>9}", "", format!("±{:.1}", error(0)), format!("±{:.0}", error(1)), format!("±{:.0}", error(2)));
}

/// How good the estimates were: the Brier score against that of the base rate, and what was seen of what was expected.
fn calibration(judged: &[(f64, bool)]) {
    let count = judged.len().max(1) as f64;
    let base = judged.iter().filter(|(_, well)| *well).count() as f64 / count;
    let score = |expected: &dyn Fn(f64) -> f64| {
        judged.iter().map(|(p, well)| (expected(*p) - f64::from(u8::from(*well))).powi(2)).sum::<f64>() / count
    };
    println!("\n{count} estimates: Brier score {:.4}, base rate ({base:.3}) {:.4}", score(&|p| p), score(&|_| base));
    println!("expected   how many   expected   seen");
    for tenth in 0..10 {
        let these: Vec<&(f64, bool)> = judged.iter().filter(|(p, _)| ((p * 10.0) as usize).min(9) == tenth).collect();
        if these.is_empty() {
            continue;
        }
        let of = these.len() as f64;
        let seen = these.iter().filter(|(_, well)| *well).count() as f64 / of;
        println!(
            "0.{tenth} to {:.1} {:>9} {:>10.3} {seen:>6.3}",
            (tenth + 1) as f64 / 10.0,
            these.len(),
            these.iter().map(|(p, _)| p).sum::<f64>() / of
        );
    }
}

fn hours(span: Span) -> f64 {
    span.0 as f64 / 3_600_000.0
}

fn rank(sorted: &[f64], percent: usize) -> f64 {
    sorted.get((sorted.len() * percent).div_ceil(100).max(1) - 1).copied().unwrap_or(0.0)
}
