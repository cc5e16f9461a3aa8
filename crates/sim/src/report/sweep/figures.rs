//! The figures of a sweep: which, how they are called in little room, and which of a column is the best.

use crate::report::rows::{Better, MEASURES, Measure};
use crate::report::seeds::{median, worst};
use crate::result::PolicyResult;
use crate::sweep::SweepResult;

/// The measures that a sweep shows, with their short names.
const SHORT: &[(&str, &str)] = &[
    ("owed time delivered", "owed"),
    ("owed time delivered day by day", "by day"),
    ("the worst team's owed time", "worst team"),
    ("arrears (p90)", "arrears"),
    ("occupancy", "occupancy"),
    ("useful work", "useful"),
    ("lost work", "lost"),
    ("waits of debug work (p90)", "debug"),
    ("waits of all work (p90)", "all"),
    ("waits of the largest gangs (p90)", "largest"),
    ("slowdown of medium work (p90)", "medium x"),
    ("slowdown of the largest gangs (p50)", "largest x"),
    ("work that never started", "never"),
];

/// One combination under one policy.
pub(super) struct Row<'a> {
    /// Its place in the sweep.
    pub combination: usize,
    pub values: &'a [String],
    pub policy: &'a str,
    /// By seed.
    pub seeds: Vec<&'a PolicyResult>,
}

/// A figure of every row.
pub(super) struct Column {
    pub short: &'static str,
    pub measure: &'static Measure,
    pub cells: Vec<Cell>,
}

/// A figure of one row.
#[derive(Clone, Copy)]
pub(super) struct Cell {
    /// Of the seeds.
    pub median: Option<f64>,
    /// Of the seeds, where there are several.
    pub worst: Option<f64>,
    /// No row shows a better one, and some row shows a worse one.
    pub is_best: bool,
}

/// Every combination under every policy, in order.
pub(super) fn rows(sweep: &SweepResult) -> Vec<Row<'_>> {
    let of = |combination: usize| {
        let one = &sweep.combinations[combination];
        (0..one.results[0].policies.len()).map(move |index| Row {
            combination,
            values: &one.values,
            policy: &one.results[0].policies[index].policy,
            seeds: one.results.iter().map(|run| &run.policies[index]).collect(),
        })
    };
    (0..sweep.combinations.len()).flat_map(of).collect()
}

/// The figures of the rows; those that no row has are left out.
pub(super) fn columns(rows: &[Row<'_>]) -> Vec<Column> {
    let measures = SHORT.iter().filter_map(|(name, short)| Some((MEASURES.iter().find(|measure| measure.name == *name)?, *short)));
    let columns = measures.map(|(measure, short)| column(rows, measure, short));
    columns.filter(|column| column.cells.iter().any(|cell| cell.median.is_some())).collect()
}

fn column(rows: &[Row<'_>], measure: &'static Measure, short: &'static str) -> Column {
    let cell = |row: &Row<'_>| {
        let figures: Vec<Option<f64>> = row.seeds.iter().map(|seed| (measure.of)(seed)).collect();
        let worst = if figures.len() == 1 { None } else { worst(&figures, measure.better) };
        Cell { median: median(&figures), worst, is_best: false }
    };
    let mut cells: Vec<Cell> = rows.iter().map(cell).collect();
    let medians = cells.iter().filter_map(|cell| cell.median);
    let best = match measure.better {
        Better::Higher => medians.max_by(f64::total_cmp),
        Better::Lower => medians.min_by(f64::total_cmp),
        Better::Neither => None,
    };
    // Differences that the table does not show are none.
    let shown = |cell: &Cell| cell.median.map(|value| measure.unit.text(value));
    let best = best.map(|value| measure.unit.text(value));
    if cells.iter().any(|cell| shown(cell) != best) {
        cells.iter_mut().for_each(|cell| cell.is_best = best.is_some() && shown(cell) == best);
    }
    Column { short, measure, cells }
}

#[cfg(test)]
mod tests {
    use super::{MEASURES, SHORT};

    #[test]
    fn every_short_name_is_of_a_measure() {
        for (name, short) in SHORT {
            assert!(MEASURES.iter().any(|measure| measure.name == *name), "{name} ({short}) is no measure");
        }
    }
}
