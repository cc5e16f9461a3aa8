//! The table of budgets under one policy.

use super::cell::Unit;
use super::rows::{Better, last_part};
use super::seeds::{median, worst};
use super::table::{align, bare};
use crate::result::{BudgetResult, RunResult};

/// Every budget under the first policy, children indented; medians over the seeds.
pub(super) fn table(runs: &[RunResult]) -> String {
    let policy = &runs[0].policies[0];
    let several = 1 < runs.len();
    let mut table = bare();
    let mut header = vec!["budget", "claim", "demand", "owed", "delivered", "of owed", "by day"];
    header.extend(several.then_some("worst seed"));
    table.set_header(header);
    for (index, budget) in policy.budgets.iter().enumerate() {
        let seeds: Vec<&BudgetResult> = runs.iter().map(|run| &run.policies[0].budgets[index]).collect();
        let mut cells = row(budget, &seeds);
        if several {
            let parts: Vec<Option<f64>> = seeds.iter().map(|seed| seed.delivered_of_owed).collect();
            cells.push(Unit::Percent.cell(&[worst(&parts, Better::Higher)]));
        }
        table.add_row(cells);
    }
    align(&mut table, 2);
    format!("budgets under {}: mean demand in GPUs, owed and delivered in GPU-hours\n\n{}", policy.policy, table.trim_fmt())
}

fn row(budget: &BudgetResult, seeds: &[&BudgetResult]) -> Vec<String> {
    let middle = |unit: Unit, of: fn(&BudgetResult) -> Option<f64>| {
        let figures: Vec<Option<f64>> = seeds.iter().map(|seed| of(seed)).collect();
        unit.cell(&[median(&figures)])
    };
    vec![
        format!("{}{}", "  ".repeat(budget.path.matches('/').count()), last_part(&budget.path)),
        middle(Unit::Percent, |budget| Some(budget.claim)),
        middle(Unit::Number, |budget| Some(budget.mean_demand_gpus)),
        middle(Unit::GpuHours, |budget| Some(budget.owed_gpu_hours)),
        middle(Unit::GpuHours, |budget| Some(budget.delivered_gpu_hours)),
        middle(Unit::Percent, |budget| budget.delivered_of_owed),
        middle(Unit::Percent, |budget| budget.delivered_of_owed_daily),
    ]
}
