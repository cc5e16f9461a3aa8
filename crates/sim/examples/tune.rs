//! The sweep by which the rivals were tuned: `cargo run --release --example tune -- scenarios/lab.toml [SETTING…]`.
//!
//! Every setting is changed by itself, on the seeds 1 to 5 of the lab (the held-out ones are 11 to 20), and each row of the table it prints is
//! the median of the seeds. The best is the row with the most owed time delivered; of rows within 0.3 points of it, the one with the most useful
//! work. With settings given (`fair-tree rivals.fair_tree.exempt=4h,8h`: a policy, and values to try) those are tried instead.

use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use stipend_sim::baseline::{easy, fair_tree, priority};
use stipend_sim::engine;
use stipend_sim::metrics::Metrics;
use stipend_sim::policy::Policy;
use stipend_sim::result::PolicyResult;
use stipend_sim::scenario::Scenario;

/// What is tried where nothing is given.
const SWEEP: &[(&str, &str)] = &[
    ("easy", "rivals.estimate.contracts=2"),
    ("priority", "rivals.priority.protected_max=0.5,0.75,1,1.25,1.5"),
    ("priority", "rivals.priority.preempt=false"),
    ("fair-tree", "rivals.fair_tree.preempt=nobody,scavenger,share"),
    ("fair-tree", "rivals.fair_tree.exempt=10m,1h,4h,8h"),
    ("fair-tree", "rivals.fair_tree.share_max=0.75,1,1.25"),
    ("fair-tree", "rivals.fair_tree.half_life=1d,84h,7d,14d"),
    ("fair-tree", "rivals.fair_tree.weight_qos=0,100000,1000000"),
    ("fair-tree", "rivals.fair_tree.weight_age=0,1000,30000"),
    ("fair-tree", "rivals.fair_tree.weight_size=0,30000"),
    ("fair-tree", "rivals.fair_tree.backfill_reservations=1,2,4,16"),
    ("fair-tree", "rivals.fair_tree.backfill_jobs=100,500"),
];

const SEEDS: [u64; 5] = [1, 2, 3, 4, 5];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some((path, given)) = args.split_first().filter(|(_, given)| given.len() % 2 == 0) else {
        eprintln!("tune SCENARIO [POLICY FIELD=VALUE,VALUE]...");
        return ExitCode::from(2);
    };
    let given: Vec<(&str, &str)> = given.chunks(2).map(|pair| (pair[0].as_str(), pair[1].as_str())).collect();
    println!("| policy | setting | owed | worst team | day by day | useful | lost | debug p90 | medium slowdown p90 |");
    println!("|---|---|---|---|---|---|---|---|---|");
    for (policy, setting) in if given.is_empty() { SWEEP } else { &given } {
        let (field, values) = setting.split_once('=').expect("a setting is FIELD=VALUE,VALUE");
        for value in values.split(',') {
            let scenario = Scenario::load(Path::new(path), &[format!("{field}={value}")]).unwrap_or_else(|error| panic!("{error}"));
            row(policy, &format!("{} = {value}", field.rsplit('.').next().unwrap_or(field)), &scenario);
        }
    }
    ExitCode::SUCCESS
}

/// One row: the medians of all seeds.
fn row(policy: &str, setting: &str, scenario: &Scenario) {
    let next = AtomicUsize::new(0);
    let work = || {
        let seeds = std::iter::from_fn(|| SEEDS.get(next.fetch_add(1, Ordering::Relaxed)));
        seeds.map(|&seed| run(policy, scenario, seed)).collect::<Vec<PolicyResult>>()
    };
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let results: Vec<PolicyResult> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("a run does not panic")).collect()
    });
    let median = |figure: fn(&PolicyResult) -> Option<f64>| {
        let mut figures: Vec<f64> = results.iter().map(|result| figure(result).unwrap_or(f64::NAN)).collect();
        figures.sort_by(f64::total_cmp);
        figures[figures.len() / 2]
    };
    let worst: fn(&PolicyResult) -> Option<f64> = |result| {
        let leaves = result.budgets.iter().filter(|budget| budget.leaf);
        leaves.filter_map(|budget| budget.delivered_of_owed).min_by(f64::total_cmp)
    };
    println!(
        "| `{policy}` | `{setting}` | {:.1} % | {:.1} % | {:.1} % | {:.1} % | {:.1} % | {:.0} s | {:.1} |",
        100.0 * median(|result| result.delivered_of_owed),
        100.0 * median(worst),
        100.0 * median(|result| result.delivered_of_owed_daily),
        100.0 * median(|result| Some(result.useful_fraction)),
        100.0 * median(|result| Some(result.lost_fraction)),
        median(|result| result.waits.debug.p90_s),
        median(|result| result.slowdown.medium.p90),
    );
}

fn run(policy: &str, scenario: &Scenario, seed: u64) -> PolicyResult {
    let rivals = &scenario.rivals;
    let mut decides: Box<dyn Policy> = match policy {
        "easy" => Box::new(easy(rivals.estimate)),
        "priority" => Box::new(priority(rivals.priority)),
        "fair-tree" => Box::new(fair_tree(rivals.fair_tree, rivals.estimate)),
        _ => panic!("`{policy}` has nothing to tune; there are easy, priority, fair-tree"),
    };
    let mut metrics = Metrics::new(scenario.window(false));
    engine::run(scenario, seed, decides.as_mut(), &mut [&mut metrics], None);
    metrics.result(policy, Duration::ZERO)
}
