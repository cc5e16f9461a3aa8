//! The table of a sweep: one row a combination, folded so that it fits the width.

use super::figures::{Cell, Column, columns, rows};
use super::title;
use crate::report::cell::{NOTHING, Unit};
use crate::report::table::{WIDTH, align, bare};
use crate::sweep::SweepResult;

/// Blanks between two columns.
const BLANKS: usize = 2;

/// The whole text. The sweep has at least one combination, each with at least one seed and the same policies.
pub fn table(sweep: &SweepResult) -> String {
    let rows = rows(sweep);
    let columns = columns(&rows);
    let mut heads: Vec<Vec<String>> = Vec::new();
    for (index, axis) in sweep.axes.iter().enumerate() {
        heads.push(std::iter::once(axis.key.clone()).chain(rows.iter().map(|row| row.values[index].clone())).collect());
    }
    if rows.iter().any(|row| row.policy != rows[0].policy) {
        heads.push(std::iter::once("policy".to_owned()).chain(rows.iter().map(|row| row.policy.to_owned())).collect());
    }
    let texts: Vec<Vec<String>> = columns.iter().map(texts).collect();
    let room = usize::from(WIDTH).saturating_sub(width_of(&heads));
    let parts = fold(&texts, room).into_iter().map(|part| block(&heads, &texts[part], rows.len()));
    let mut text = vec![title(sweep), legend(&columns)];
    text.extend(parts);
    text.join("\n\n")
}

/// What the short names and the mark mean.
fn legend(columns: &[Column]) -> String {
    let names =
        "arrears, and the waits of debug, all and largest work, are p90; x is slowdown,\nof medium work p90, of the largest gangs p50";
    let is_marked = columns.iter().any(|column| column.cells.iter().any(|cell| cell.is_best));
    let has_worst = columns.iter().any(|column| column.cells.iter().any(|cell| cell.worst.is_some()));
    let marks = [(has_worst, "in each cell the median of the seeds, below it the worst"), (is_marked, "* is the best of its column")];
    let marks = marks.into_iter().filter(|(is_there, _)| *is_there).map(|(_, mark)| mark);
    marks.chain([names]).collect::<Vec<_>>().join("\n")
}

/// A column's header and its cells; a cell of several seeds has two lines.
fn texts(column: &Column) -> Vec<String> {
    let unit = column.measure.unit;
    let header = if unit == Unit::Percent { format!("{} %", column.short) } else { column.short.to_owned() };
    std::iter::once(header).chain(column.cells.iter().map(|cell| cell_text(unit, cell))).collect()
}

/// The percent sign stands in the header; every figure leaves room for the mark.
fn cell_text(unit: Unit, cell: &Cell) -> String {
    let figure = |value: Option<f64>| value.map_or(NOTHING.to_owned(), |value| unit.text(value).trim_end_matches(" %").to_owned());
    let mark = if cell.is_best { "*" } else { " " };
    let median = format!("{}{mark}", figure(cell.median));
    if cell.worst.is_some() { format!("{median}\n{} ", figure(cell.worst)) } else { median }
}

fn width(column: &[String]) -> usize {
    column.iter().flat_map(|text| text.lines()).map(|line| line.chars().count()).max().unwrap_or(0)
}

fn width_of(columns: &[Vec<String>]) -> usize {
    columns.iter().map(|column| width(column) + BLANKS).sum::<usize>().saturating_sub(BLANKS)
}

/// As many columns below each other as fit into the room, at least one.
fn fold(columns: &[Vec<String>], room: usize) -> Vec<std::ops::Range<usize>> {
    let (mut parts, mut first, mut used) = (Vec::new(), 0, 0);
    for (index, column) in columns.iter().enumerate() {
        let more = width(column) + BLANKS;
        if first < index && room < used + more {
            parts.push(first..index);
            (first, used) = (index, 0);
        }
        used += more;
    }
    parts.push(first..columns.len());
    parts
}

fn block(heads: &[Vec<String>], columns: &[Vec<String>], rows: usize) -> String {
    let line = |index: usize| heads.iter().chain(columns).map(move |column| column[index].clone());
    let mut table = bare();
    table.set_header(line(0));
    (1..=rows).for_each(|index| _ = table.add_row(line(index)));
    align(&mut table, BLANKS as u16);
    for column in table.column_iter_mut().take(heads.len()) {
        column.set_cell_alignment(comfy_table::CellAlignment::Left);
    }
    table.trim_fmt()
}
