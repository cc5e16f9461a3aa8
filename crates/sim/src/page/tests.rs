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

fn made() -> String {
    let scenario = Scenario::parse("two.toml", SCENARIO, &[]).expect("a scenario");
    let mut metrics = Metrics::new(Window { pool: PoolId(0), from: Time(0), express_kept: true });
    let mut recorder = Recorder::new(&scenario.labels, Time(0));
    engine::run(&scenario, 1, &mut Scheduler::new(Time(0)), &mut [&mut metrics, &mut recorder], None);
    let result = metrics.result("budget", Duration::ZERO);
    let drawn = Drawn::new("budget", &recorder, &metrics);
    let run = RunResult { scenario: "two".into(), seed: 1, capacity_gpus: 16, sim_days: 0.5, policies: vec![result] };
    page(&scenario, &[run], &[drawn])
}

#[test]
fn nothing_is_fetched_and_nothing_breaks_out_of_its_place() {
    let page = made();
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
fn the_same_run_makes_the_same_page() {
    assert_eq!(made(), made());
}
