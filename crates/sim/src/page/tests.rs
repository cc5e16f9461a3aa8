//! Pages of small runs.

use super::{Drawn, Recorder, page};
use crate::engine;
use crate::metrics::{Metrics, Window};
use crate::result::RunResult;
use crate::scenario::Scenario;
use std::time::Duration;
use stipend_core::Scheduler;
use stipend_core::id::PoolId;
use stipend_core::quantity::Time;

const SCENARIO: &str = r#"
name = "two"
description = "a </script> & \"quotes\""
measure = "12h"
[pool]
nodes = 2
[[budgets]]
path = "lab"
[[budgets]]
path = "lab/a"
share = 50
[[budgets]]
path = "lab/b"
share = 50
[[workloads]]
name = "long"
budget = "lab/a"
gang = "2x8"
min_runtime = "1h"
work = "9h"
[[workloads]]
name = "late"
at = "3:00"
budget = "lab/b"
gang = "1x8"
min_runtime = "1h"
work = "2h"
"#;

fn run<'n>(scenario: &'n Scenario) -> (Metrics, Recorder<'n>) {
    let mut metrics = Metrics::new(Window { pool: PoolId(0), from: Time(0), express_kept: true });
    let mut recorder = Recorder::new(&scenario.labels, Time(0));
    engine::run(scenario, 1, &mut Scheduler::new(Time(0)), &mut [&mut metrics, &mut recorder], None);
    (metrics, recorder)
}

fn made() -> String {
    let scenario = Scenario::parse("two.toml", SCENARIO, &[]).expect("a scenario");
    let (metrics, recorder) = run(&scenario);
    let result = metrics.result("budget", Duration::ZERO);
    let drawn = Drawn::new("budget", &recorder, &metrics);
    let run = RunResult { scenario: "two".into(), seed: 1, capacity_gpus: 16, sim_days: 0.5, policies: vec![result] };
    page(&scenario, &[run], &[drawn])
}

#[test]
fn nothing_is_fetched_and_nothing_breaks_out_of_its_place() {
    // The name of SVG's namespace is no address.
    let page = made().replace("http://www.w3.org/2000/svg", "");
    for forbidden in ["http://", "https://", "src=", "@import", "url(", "{{"] {
        assert!(!page.contains(forbidden), "{forbidden} in the page");
    }
    assert!(page.contains("a &lt;/script&gt; &amp; &quot;quotes&quot;"));
    assert_eq!(page.matches("<script").count(), page.matches("</script>").count());
}

#[test]
fn reasons_are_the_core_s_own_with_their_numbers_apart() {
    let page = made();
    assert!(page.contains("yields to late: a leaf below its share takes past-contract GPUs (lab/b \\u0001.\\u0001 %"), "{page}");
}

#[test]
fn the_hours_add_up_to_the_result() {
    let scenario = Scenario::parse("two.toml", SCENARIO, &[]).expect("a scenario");
    let (metrics, _) = run(&scenario);
    let result = metrics.result("budget", Duration::ZERO);
    let sum = |gpus: &[f64]| gpus.iter().sum::<f64>();
    for (series, budget) in metrics.series().iter().zip(&result.budgets) {
        assert_eq!((&series.path, series.leaf), (&budget.path, budget.leaf));
        assert_eq!(series.owed_gpus.len(), 12);
        assert!((sum(&series.owed_gpus) - budget.owed_gpu_hours).abs() < 0.01, "{}", series.path);
        assert!((sum(&series.delivered_gpus) - budget.delivered_gpu_hours).abs() < 0.01, "{}", series.path);
    }
    let worst = metrics
        .series()
        .iter()
        .filter(|series| series.leaf)
        .flat_map(|series| series.arrears_claim_hours.clone())
        .flatten()
        .fold(0.0, f64::max);
    assert!((worst - result.arrears_claim_hours.max.expect("somebody was owed")).abs() < 0.01);
    let waits: Vec<u64> = metrics.wait_ranks().iter().map(|(_, ranks)| ranks.count).collect();
    assert_eq!(waits[1], result.waits.medium.count);
}

#[test]
fn the_same_run_makes_the_same_page() {
    assert_eq!(made(), made());
}
