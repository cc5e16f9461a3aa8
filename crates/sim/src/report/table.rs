//! The one table, policies side by side; with several seeds each cell shows the median and, below it, the worst.

use super::rows::{Better, Content, ROWS};
use super::seeds::{median, worst};
use super::{budgets, meaning, pools};
use crate::result::{PolicyResult, RunResult};
use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};

/// How wide a report may be, in characters.
pub(super) const WIDTH: u16 = 80;

/// One line below the header, nothing else.
const STYLE: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('─'));

/// Breaks a text at blanks into lines of the report's width, the first behind `first` and the others behind `next`; a figure is never parted
/// from its unit, and a word that is too long for a line is cut.
pub(super) fn wrap(first: &str, next: &str, text: &str) -> String {
    let (mut lines, width) = (vec![first.to_owned()], usize::from(WIDTH));
    let mut is_empty = true;
    for word in text.replace(" %", "\u{a0}%").split(' ') {
        let mut rest = word;
        loop {
            let line = lines.last_mut().expect("there is always a line");
            let room = width.saturating_sub(line.chars().count() + usize::from(!is_empty));
            if rest.chars().count() <= room || (is_empty && room == 0) {
                line.push_str(if is_empty { "" } else { " " });
                line.push_str(rest);
                is_empty = false;
                break;
            }
            if is_empty {
                let cut = rest.char_indices().nth(room).map_or(rest.len(), |(place, _)| place);
                line.push_str(&rest[..cut]);
                rest = &rest[cut..];
            }
            lines.push(next.to_owned());
            is_empty = true;
        }
    }
    lines.join("\n").replace('\u{a0}', " ")
}

/// The whole report. `runs` is one result a seed, each with the same policies in the same order; at least one of each.
/// `with_budgets` adds a table of the budgets under the first policy.
pub fn report(runs: &[RunResult], with_budgets: bool) -> String {
    let blocks: Vec<String> = blocks(runs[0].policies.len()).iter().map(|block| policies(runs, block).trim_fmt()).collect();
    let by_pool = pools::table(runs).map(|table| format!("{table}\n\n")).unwrap_or_default();
    let mut report = format!("{}\n\n{}\n\n{by_pool}{}", title(runs), blocks.join("\n\n"), meaning::sentences(runs));
    if with_budgets {
        report.push_str(&format!("\n\n{}", budgets::table(runs)));
    }
    report
}

/// `lab: 1024 GPUs, 30 days, seed 1`
pub(crate) fn title(runs: &[RunResult]) -> String {
    let run = &runs[0];
    let days = (run.sim_days * 10.0).round() / 10.0;
    let unit = if days == 1.0 { "day" } else { "days" };
    let pools = run.policies.first().map_or(&[][..], |policy| &policy.pools);
    let (capacity, counted) = match pools {
        [_, ..] if pools.iter().all(|pool| pool.unit == "cpu") => (pools.iter().map(|pool| pool.capacity).sum(), "CPUs"),
        _ => (run.capacity_gpus, "GPUs"),
    };
    let what = format!("{}: {capacity} {counted}, {days} {unit}", run.scenario);
    match runs {
        [_] => format!("{what}, seed {}", run.seed),
        _ => format!("{what}, {} seeds: in each cell the median, below it the worst", runs.len()),
    }
}

/// So many policies fit beside each other.
pub(super) const BESIDE: usize = 4;

/// Which policies stand beside each other: where there are more than fit, the first is there in every block, as all are compared with it.
fn blocks(policies: usize) -> Vec<Vec<usize>> {
    if policies <= BESIDE {
        return vec![(0..policies).collect()];
    }
    let others: Vec<usize> = (1..policies).collect();
    others.chunks(BESIDE - 1).map(|some| [&[0], some].concat()).collect()
}

fn policies(runs: &[RunResult], block: &[usize]) -> Table {
    let mut table = bare();
    let names = block.iter().map(|&index| runs[0].policies[index].policy.clone());
    table.set_header(std::iter::once(String::new()).chain(names));
    for (label, cells) in cells(runs) {
        table.add_row(std::iter::once(label.to_owned()).chain(block.iter().map(|&index| cells[index].clone())));
    }
    align(&mut table, 1);
    table
}

/// Each row's label, and its cells policy by policy.
pub(crate) fn cells(runs: &[RunResult]) -> impl Iterator<Item = (&'static str, Vec<String>)> {
    ROWS.iter().map(|(label, content)| {
        let cells = (0..runs[0].policies.len()).map(|index| {
            let results: Vec<&PolicyResult> = runs.iter().map(|run| &run.policies[index]).collect();
            cell(&results, *content)
        });
        (*label, cells.collect())
    })
}

/// One policy's cell, over all seeds.
fn cell(results: &[&PolicyResult], content: Content) -> String {
    match content {
        Content::Text(text) => text(results),
        Content::Figures(unit, better, figures) => {
            let columns = transpose(&results.iter().map(|result| figures(result)).collect::<Vec<_>>());
            let middle = unit.cell(&columns.iter().map(|column| median(column)).collect::<Vec<_>>());
            if results.len() == 1 || columns.is_empty() {
                return middle;
            }
            let below = match better {
                Better::Neither => {
                    format!("{} to {}", unit.cell(&[worst(&columns[0], Better::Higher)]), unit.cell(&[worst(&columns[0], Better::Lower)]))
                }
                better => unit.cell(&columns.iter().map(|column| worst(column, better)).collect::<Vec<_>>()),
            };
            format!("{middle}\n{below}")
        }
    }
}

/// From figures by seed to seeds by figure.
fn transpose(by_seed: &[Vec<Option<f64>>]) -> Vec<Vec<Option<f64>>> {
    (0..by_seed[0].len()).map(|index| by_seed.iter().map(|figures| figures[index]).collect()).collect()
}

/// A table without ornament that fits the width.
pub(super) fn bare() -> Table {
    let mut table = Table::new();
    table.load_style(STYLE).set_content_arrangement(ContentArrangement::Dynamic).set_width(WIDTH);
    table
}

/// Figures to the right, labels to the left, `blanks` between.
pub(super) fn align(table: &mut Table, blanks: u16) {
    for (index, column) in table.column_iter_mut().enumerate() {
        if index == 0 {
            column.set_padding((0, 0));
        } else {
            column.set_padding((blanks, 0)).set_cell_alignment(CellAlignment::Right);
        }
    }
}
