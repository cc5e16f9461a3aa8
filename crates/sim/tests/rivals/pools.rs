//! Every policy on several pools, with work that accepts them in all orders: pools that nobody likes best, pools of one node, nodes that fail.

use super::audited;
use std::fmt::Write;
use stipend_core::Scheduler;
use stipend_core::quantity::Time;
use stipend_sim::baseline::{self, Estimate, FairTreeSettings, PrioritySettings};
use stipend_sim::policy::Policy;
use stipend_sim::random::mix;
use stipend_sim::scenario::Scenario;

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

fn policies() -> Vec<(&'static str, Box<dyn Policy>)> {
    let estimate = Estimate::default();
    vec![
        ("budget", Box::new(Scheduler::new(Time(0)))),
        ("priority", Box::new(baseline::priority(PrioritySettings::default()))),
        ("fair-tree", Box::new(baseline::fair_tree(FairTreeSettings::default(), estimate))),
        ("easy", Box::new(baseline::easy(estimate))),
        ("fifo", Box::new(baseline::fifo())),
        ("partition", Box::new(baseline::partition())),
    ]
}

/// Two to four pools of one to four nodes, two teams, and streams of work that each accept some of the pools in some order.
fn scenario(seed: u64) -> String {
    let mut state = mix(seed);
    let mut below = |n: u64| {
        state = mix(state);
        state % n
    };
    let pools = 2 + below(3) as usize;
    let mut text = String::from(
        "name = \"t\"\ndescription = \"d\"\nmeasure = \"5d\"\n[failures]\nhost_mtbf = \"6d\"\nrepair = \"2h\"\nlost = 1\nsick = 1\n",
    );
    for name in &NAMES[..pools] {
        writeln!(text, "[[pools]]\nname = \"{name}\"\nnodes = {}\ngpus_per_node = {}", 1 + below(4), [2, 4, 8][below(3) as usize]).unwrap();
    }
    text.push_str("[[budgets]]\npath = \"t\"\n[[budgets]]\npath = \"t/x\"\nshare = 60\n[[budgets]]\npath = \"t/y\"\nshare = 40\n");
    for stream in 0..4 {
        let mut order: Vec<&str> = NAMES[..pools].to_vec();
        for place in (1..pools).rev() {
            order.swap(place, below(place as u64 + 1) as usize);
        }
        order.truncate(1 + below(pools as u64) as usize);
        let (team, contract) = (["x", "y"][stream % 2], ["min_runtimes = [\"1h\"]", ""][usize::from(below(4) == 0)]);
        let outstanding = 2 + below(6);
        writeln!(text, "[[streams]]\nbudget = \"t/{team}\"\nuser = \"u{stream}\"\npools = {order:?}\noutstanding = {outstanding}").unwrap();
        writeln!(text, "gangs = [\"1x1\", \"1x2\"]\nwork = \"2h\"\nspread = 0.8\nthink = \"{}m\"\n{contract}", [1, 90][below(2) as usize])
            .unwrap();
    }
    text
}

#[test]
fn on_several_pools_the_laws_of_any_scheduler_hold() {
    for seed in 1..=24 {
        let text = scenario(seed);
        let scenario = Scenario::parse("t.toml", &text, &[]).expect("the scenario is right");
        for (name, mut policy) in policies() {
            let report = audited(&scenario, seed, name, policy.as_mut());
            assert!(report.is_clean() && report.summary.starts > 50, "{name} with seed {seed}: {report}\n{text}");
        }
    }
}
