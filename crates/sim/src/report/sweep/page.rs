//! A sweep as one page that opens offline: the picture, and the table under it.

use super::figures::{Column, Row, columns, rows};
use super::picture::{escape, picture};
use super::title;
use crate::report::cell::{NOTHING, Unit};
use crate::sweep::{Axis, SweepResult};

const STYLE: &str = "\
:root{color-scheme:light dark}body{font:14px/1.45 system-ui,sans-serif;max-width:1100px;margin:1.5rem auto;padding:0 1rem}
svg{width:100%;height:auto}div{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums;white-space:nowrap}
th,td{padding:.25rem .7rem;text-align:right;border-bottom:1px solid #8884}th.key,td.key{text-align:left}
td.best{font-weight:700}small{display:block;opacity:.7}";

/// The whole page. The sweep has at least one combination, each with at least one seed and the same policies.
pub fn page(sweep: &SweepResult, description: &str) -> String {
    let rows = rows(sweep);
    let columns = columns(&rows);
    let lines: Vec<String> = rows.iter().enumerate().map(|(index, row)| line(row, index, &columns)).collect();
    let title = escape(&title(sweep));
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<p>{}</p>\n{}<div><table>\n<thead>{}</thead>\n<tbody>\n{}\n</tbody>\n</table></div>\n\
         <p>Bold is the best of a column. Where there are several seeds, the median stands above the worst.</p>\n</body>\n</html>\n",
        escape(description),
        picture(sweep),
        header(&sweep.axes, &columns),
        lines.join("\n"),
    )
}

fn header(axes: &[Axis], columns: &[Column]) -> String {
    let keys = axes.iter().map(|axis| axis.key.as_str()).chain(["policy"]);
    let keys = keys.map(|key| format!("<th class=\"key\">{}</th>", escape(key)));
    let figures = columns.iter().map(|column| format!("<th title=\"{}\">{}</th>", escape(column.measure.name), escape(column.short)));
    format!("<tr>{}</tr>", keys.chain(figures).collect::<String>())
}

fn line(row: &Row<'_>, index: usize, columns: &[Column]) -> String {
    let keys = row.values.iter().map(String::as_str).chain([row.policy]);
    let keys = keys.map(|key| format!("<td class=\"key\">{}</td>", escape(key)));
    let text = |unit: Unit, value: Option<f64>| value.map_or(NOTHING.to_owned(), |value| unit.text(value));
    let figure = |column: &Column| {
        let (cell, unit) = (column.cells[index], column.measure.unit);
        let class = if cell.is_best { " class=\"best\"" } else { "" };
        let worst = cell.worst.map_or(String::new(), |worst| format!("<small>{}</small>", text(unit, Some(worst))));
        format!("<td{class}>{}{worst}</td>", text(unit, cell.median))
    };
    format!("<tr>{}</tr>", keys.chain(columns.iter().map(figure)).collect::<String>())
}
