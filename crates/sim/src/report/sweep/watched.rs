//! What a sweep brings somebody and what it costs the others: the watched budgets, each combination beside the first.

use super::figures::{Row, rows};
use crate::report::cell::NOTHING;
use crate::report::table::{WIDTH, align, bare};
use crate::result::{BudgetResult, PolicyResult};
use crate::sweep::SweepResult;

/// The whole text, for leaf budgets by their paths.
pub fn watched(sweep: &SweepResult, paths: &[String]) -> String {
    let rows = rows(sweep);
    let has_policies = rows.iter().any(|row| row.policy != rows[0].policy);
    let mut table = bare();
    let axes = sweep.axes.iter().map(|axis| axis.key.clone()).chain(has_policies.then(|| "policy".to_owned()));
    let figures = ["useful GPU-h", "gain %", "owed %", "their owed", "their useful"].map(str::to_owned);
    let heads = sweep.axes.len() + usize::from(has_policies);
    table.set_header(axes.chain(figures));
    for row in &rows {
        let first = rows.iter().find(|first| first.policy == row.policy).unwrap_or(row);
        let names = row.values.iter().cloned().chain(has_policies.then(|| row.policy.to_owned()));
        table.add_row(names.chain(cells(row, first, paths)));
    }
    align(&mut table, 2);
    table.set_width(WIDTH);
    for column in table.column_iter_mut().take(heads) {
        column.set_cell_alignment(comfy_table::CellAlignment::Left);
    }
    let of_seeds = match rows.iter().map(|row| row.seeds.len()).max() {
        Some(2..) => "means of the seeds, ± their standard error",
        _ => "one seed, which says little: name some, as in --seed 1,2,3,4,5",
    };
    format!(
        "{}, beside the first row:\n{of_seeds}\n\
         their: all other leaf budgets'; owed in percentage points, useful in %\n\n{}",
        paths.join(" and "),
        table.trim_fmt()
    )
}

/// The figures of one row; differences are of the same seed under the same policy.
fn cells(row: &Row<'_>, first: &Row<'_>, paths: &[String]) -> [String; 5] {
    let is_watched = |budget: &BudgetResult| paths.contains(&budget.path);
    let own = |run: &PolicyResult| Sums::of(run, is_watched);
    let others = |run: &PolicyResult| Sums::of(run, |budget| !is_watched(budget));
    let of = |figure: &dyn Fn(&PolicyResult) -> f64| Mean::of(row.seeds.iter().map(|run| figure(run)));
    let pairs = || row.seeds.iter().zip(&first.seeds);
    let gain = Mean::of(pairs().map(|(run, before)| 100.0 * (own(run).useful / own(before).useful - 1.0)));
    let cost = Mean::of(pairs().map(|(run, before)| 100.0 * (others(run).owed() - others(before).owed())));
    let others_gain = Mean::of(pairs().map(|(run, before)| 100.0 * (others(run).useful / others(before).useful - 1.0)));
    let is_first = std::ptr::eq(row, first);
    let beside = |mean: Mean, decimals| if is_first { NOTHING.to_owned() } else { mean.signed(decimals) };
    [
        format!("{:.0}", of(&|run| own(run).useful).mean),
        beside(gain, 1),
        format!("{:.1}", of(&|run| 100.0 * own(run).owed()).mean),
        beside(cost, 2),
        beside(others_gain, 2),
    ]
}

/// Sums over some leaves.
#[derive(Default)]
struct Sums {
    useful: f64,
    owed: f64,
    met: f64,
}

impl Sums {
    fn of(run: &PolicyResult, belongs: impl Fn(&BudgetResult) -> bool) -> Sums {
        run.budgets.iter().filter(|budget| budget.leaf && belongs(budget)).fold(Sums::default(), |sums, budget| Sums {
            useful: sums.useful + budget.useful_gpu_hours,
            owed: sums.owed + budget.owed_gpu_hours,
            met: sums.met + budget.owed_gpu_hours * budget.delivered_of_owed.unwrap_or(1.0),
        })
    }

    /// The part that was delivered of what was owed.
    fn owed(&self) -> f64 {
        if self.owed > 0.0 { self.met / self.owed } else { 1.0 }
    }
}

/// A mean with its standard error.
#[derive(Clone, Copy)]
struct Mean {
    mean: f64,
    error: Option<f64>,
}

impl Mean {
    fn of(figures: impl Iterator<Item = f64>) -> Mean {
        let figures: Vec<f64> = figures.collect();
        let count = figures.len() as f64;
        let mean = figures.iter().sum::<f64>() / count;
        let square = figures.iter().map(|figure| (figure - mean) * (figure - mean)).sum::<f64>();
        let error = (figures.len() > 1).then(|| libm::sqrt(square / (count - 1.0) / count));
        Mean { mean, error }
    }

    /// `+1.2 ±0.3`
    fn signed(self, decimals: usize) -> String {
        let error = self.error.map_or(String::new(), |error| format!(" ±{error:.decimals$}"));
        format!("{:+.decimals$}{error}", self.mean)
    }
}

#[cfg(test)]
mod tests {
    use super::Mean;

    #[test]
    fn a_mean_has_an_error_where_there_are_several() {
        assert_eq!(Mean::of([1.0, 2.0, 3.0].into_iter()).signed(2), "+2.00 ±0.58");
        assert_eq!(Mean::of([-0.25].into_iter()).signed(1), "-0.2");
    }
}
