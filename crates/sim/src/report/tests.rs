//! Reports made of hand-made results, compared as a whole.

use super::table::report;
use crate::result::{Arrears, BudgetResult, PolicyResult, RunResult, Slowdown, Slowdowns, Waits, WaitsByClass};

fn budget(path: &str, leaf: bool, claim: f64, part: Option<f64>) -> BudgetResult {
    BudgetResult {
        path: path.into(),
        leaf,
        claim,
        mean_demand_gpus: claim * 2000.0,
        owed_gpu_hours: claim * 700_000.0,
        delivered_gpu_hours: part.unwrap_or(0.0) * claim * 700_000.0,
        delivered_of_owed: part,
        delivered_of_owed_daily: part.map(|part| part * 0.9),
        beyond_owed_gpu_hours: 0.0,
        useful_gpu_hours: 0.0,
        lapsed_gpu_hours: None,
    }
}

fn waits(count: u64, p50: f64, p90: f64, p99: f64) -> Waits {
    Waits { count, never_started: 0, p50_s: Some(p50), p90_s: Some(p90), p99_s: Some(p99), max_s: Some(p99) }
}

fn policy(name: &str, owed: f64, useful: f64, debug_p90: f64) -> PolicyResult {
    let leaf = |path: &str, claim: f64, part: f64| budget(path, true, claim, Some(part));
    PolicyResult {
        policy: name.into(),
        wall_seconds: 1.25,
        demand_ratio: 2.51,
        occupancy: 0.9997,
        useful_fraction: useful,
        lost_fraction: 1.0 - useful,
        lost_allocated_fraction: 1.0 - useful,
        lost_unallocated_fraction: 0.0,
        allocated_fraction: 0.97,
        unallocated_fraction: 0.0297,
        owed_bound: 0.998,
        owed_gpu_hours: 700_000.0,
        delivered_gpu_hours: 700_000.0 * owed,
        delivered_of_owed: Some(owed),
        delivered_of_owed_daily: Some(owed * 0.93),
        budgets: vec![
            budget("lab", false, 1.0, Some(owed)),
            budget("lab/nlp", false, 0.6, Some(owed)),
            leaf("lab/nlp/olmo", 0.4, owed),
            leaf("lab/nlp/tulu", 0.2, owed * 0.98),
            leaf("lab/vision", 0.4, 1.0),
        ],
        pools: Vec::new(),
        arrears_claim_hours: Arrears { p50: Some(0.0), p90: Some(18.0), max: Some(50.0) },
        slowdown: Slowdowns {
            debug: Slowdown { count: 30_000, p50: Some(1.0), p90: Some(1.1) },
            medium: Slowdown { count: 9_000, p50: Some(1.2), p90: Some(3.6) },
            largest: Slowdown { count: 0, p50: None, p90: None },
        },
        waits: WaitsByClass {
            all: waits(39_000, 10.0, 120.0, 14_000.0),
            debug: waits(30_000, 5.0, debug_p90, 180.0),
            medium: waits(9_000, 60.0, 7_200.0, 90_000.0),
            largest: Waits::default(),
            unallocated: waits(9_000, 600.0, 20_000.0, 400_000.0),
            requeued: waits(4_000, 600.0, 20_000.0, 400_000.0),
        },
        gangs_over_claim: Waits::default(),
        preemptions: 12_345,
        preemptions_allocated: 2_345,
        lost_gpu_hours: (1.0 - useful) * 737_280.0,
        useful_gpu_hours: useful * 737_280.0,
        promises: None,
        estimates: None,
        submitted: 40_000,
        completed: 39_000,
        failed: 12,
    }
}

fn run(seed: u64, policies: Vec<PolicyResult>) -> RunResult {
    RunResult { scenario: "lab".into(), seed, capacity_gpus: 1024, sim_days: 30.0, policies }
}

pub(super) fn four(seed: u64, worse: f64) -> RunResult {
    let policies = vec![
        policy("budget", 0.9975 - worse, 0.933, 10.0 + 1000.0 * worse),
        policy("fifo", 0.746, 0.948, 198_000.0),
        policy("easy", 0.81, 0.994, 16_200.0),
        policy("partition", 0.69, 0.947, 3_840.0),
    ];
    run(seed, policies)
}

fn check(actual: &str, expected: snapbox::Data) {
    let widest = actual.lines().map(|line| line.chars().count()).max();
    assert!(widest <= Some(80), "a line is {widest:?} characters wide:\n{actual}");
    snapbox::assert_data_eq!(format!("{actual}\n"), expected.raw());
}

#[test]
fn four_policies_side_by_side() {
    check(&report(&[four(1, 0.0)], true), snapbox::file!["snapshots/four.txt"]);
}

#[test]
fn six_policies_in_two_blocks_and_short_sentences() {
    let mut six = four(1, 0.0);
    six.policies.insert(1, policy("priority", 0.88, 0.86, 3_000.0));
    six.policies.insert(2, policy("fair-tree", 0.95, 0.84, 19.0));
    check(&report(&[six], false), snapbox::file!["snapshots/six.txt"]);
}

#[test]
fn the_median_and_the_worst_of_three_seeds() {
    check(&report(&[four(1, 0.0), four(2, 0.04), four(3, 0.01)], true), snapbox::file!["snapshots/seeds.txt"]);
}

#[test]
fn one_policy_alone() {
    let alone = run(1, vec![policy("easy", 0.8, 0.994, 60.0)]);
    check(&report(&[alone], false), snapbox::file!["snapshots/alone.txt"]);
}
