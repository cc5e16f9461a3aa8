//! The table of pools, where there is more than one: each by itself, under every policy.

use super::cell::Unit;
use super::seeds::median;
use super::table::{align, bare};
use crate::result::{PoolResult, RunResult};

/// Every pool under every policy; medians over the seeds. `None` if there is one pool.
pub(super) fn table(runs: &[RunResult]) -> Option<String> {
    let pools = &runs[0].policies[0].pools;
    if pools.len() < 2 {
        return None;
    }
    let mut table = bare();
    table.set_header(["pool", "policy", "demand", "occupancy", "useful", "lost", "owed delivered"]);
    for (index, pool) in pools.iter().enumerate() {
        let unit = if pool.unit == "cpu" { "CPUs" } else { "GPUs" };
        for (place, policy) in runs[0].policies.iter().enumerate() {
            let seeds: Vec<&PoolResult> = runs.iter().map(|run| &run.policies[place].pools[index]).collect();
            let name = if place == 0 { format!("{}: {} {unit}", pool.pool, pool.capacity) } else { String::new() };
            table.add_row([vec![name, policy.policy.clone()], row(&seeds)].concat());
        }
    }
    align(&mut table, 2);
    Some(table.trim_fmt())
}

fn row(seeds: &[&PoolResult]) -> Vec<String> {
    let middle = |unit: Unit, of: fn(&PoolResult) -> Option<f64>| {
        let figures: Vec<Option<f64>> = seeds.iter().map(|seed| of(seed)).collect();
        unit.cell(&[median(&figures)])
    };
    vec![
        middle(Unit::Number, |pool| Some(pool.demand_ratio)),
        middle(Unit::Percent, |pool| Some(pool.occupancy)),
        middle(Unit::Percent, |pool| Some(pool.useful_fraction)),
        middle(Unit::Percent, |pool| Some(pool.lost_fraction)),
        middle(Unit::Percent, |pool| pool.delivered_of_owed),
    ]
}
