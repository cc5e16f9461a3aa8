//! Two fields are swept: a heat map for each figure, the first field down and the second across; further fields and policies make groups.

use super::figures::{Cell, Column, Row};
use super::picture::{ACROSS, Canvas, PANEL, escape, short};
use crate::report::cell::NOTHING;
use crate::report::rows::Better;
use crate::sweep::Axis;

/// The height of a row of cells.
const ROW: usize = 24;

/// Room left of the cells for the values of the first field, and right of them.
const LEFT: usize = 78;
const RIGHT: usize = 18;

/// Room above the cells for the figure's name and the values of the second field.
const TOP: usize = 42;

/// A cell narrower than this has no room for its figure.
const WRITTEN: usize = 36;

/// The strongest colour leaves the figure on it readable.
const STRONGEST: f64 = 0.6;

pub(super) fn draw(canvas: &mut Canvas, axes: &[Axis], rows: &[Row<'_>], columns: &[Column]) {
    let across = format!("across: {}; the stronger the colour, the better; outlined: the best of the sweep", axes[1].key);
    canvas.text(12, canvas.height + 8, "faint", &across);
    canvas.height += 26;
    // Rows of one policy and of the same values of the further fields belong together.
    let mut groups: Vec<(Vec<String>, Vec<usize>)> = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        let further = axes.iter().zip(row.values).skip(2).map(|(axis, value)| format!("{} = {value}", axis.key));
        let several = rows.iter().any(|other| other.policy != row.policy);
        let key: Vec<String> = several.then(|| row.policy.to_owned()).into_iter().chain(further).collect();
        match groups.iter_mut().find(|(other, _)| *other == key) {
            Some((_, members)) => members.push(index),
            None => groups.push((key, vec![index])),
        }
    }
    for (key, members) in &groups {
        group(canvas, axes, &key.join(", "), rows, members, columns);
    }
}

fn group(canvas: &mut Canvas, axes: &[Axis], name: &str, rows: &[Row<'_>], members: &[usize], columns: &[Column]) {
    if !name.is_empty() {
        canvas.text(12, canvas.height + 14, "title", name);
        canvas.height += 24;
    }
    let height = TOP + ROW * axes[0].values.len() + 26;
    let top = canvas.height;
    for (number, column) in columns.iter().enumerate() {
        let map = Map { x: number % ACROSS * PANEL, y: top + number / ACROSS * height, axes, column };
        map.frame(canvas);
        for index in members {
            let place = |axis: usize| axes[axis].values.iter().position(|value| *value == rows[*index].values[axis]).unwrap_or(0);
            map.cell(canvas, place(0), place(1), &rows[*index], &column.cells[*index]);
        }
    }
    canvas.height = top + columns.len().div_ceil(ACROSS) * height;
}

/// One heat map.
struct Map<'a> {
    x: usize,
    y: usize,
    axes: &'a [Axis],
    column: &'a Column,
}

impl Map<'_> {
    fn width(&self) -> usize {
        (PANEL - LEFT - RIGHT) / self.axes[1].values.len()
    }

    fn frame(&self, canvas: &mut Canvas) {
        canvas.text(self.x + 12, self.y + 16, "group", self.column.measure.name);
        let width = self.width();
        canvas.text_at(self.x + LEFT - 6, self.y + TOP - 8, "faint", "end", &short(&self.axes[0].key, 12));
        for (number, value) in self.axes[1].values.iter().enumerate() {
            let x = self.x + LEFT + number * width + width / 2;
            canvas.text_at(x, self.y + TOP - 8, "faint", "middle", &short(value, (width / 7).max(2)));
        }
        for (number, value) in self.axes[0].values.iter().enumerate() {
            canvas.text_at(self.x + LEFT - 6, self.y + TOP + number * ROW + 16, "faint", "end", &short(value, 11));
        }
    }

    fn cell(&self, canvas: &mut Canvas, down: usize, across: usize, row: &Row<'_>, cell: &Cell) {
        let (width, unit) = (self.width(), self.column.measure.unit);
        let (x, y) = (self.x + LEFT + across * width, self.y + TOP + down * ROW);
        let text = cell.median.map_or(NOTHING.to_owned(), |value| unit.text(value));
        let worst = cell.worst.map_or(String::new(), |worst| format!(", worst {}", unit.text(worst)));
        let values = self.axes.iter().zip(row.values).map(|(axis, value)| format!("{} = {value}", axis.key));
        let said = format!("{}, {}: {text}{worst}", row.policy, values.collect::<Vec<_>>().join(", "));
        let strength = self.goodness(cell) * STRONGEST;
        let area = format!("x=\"{x}\" y=\"{y}\" width=\"{}\" height=\"{}\"", width - 1, ROW - 1);
        canvas.draw(&format!("<rect {area} class=\"cell\" fill-opacity=\"{strength:.2}\"><title>{}</title></rect>", escape(&said)));
        if cell.is_best {
            canvas.draw(&format!("<rect {area} class=\"best\"/>"));
        }
        if WRITTEN <= width {
            let text = text.trim_end_matches(" %");
            canvas.text_at(x + width / 2, y + 16, if cell.is_best { "bold" } else { "" }, "middle", text);
        }
    }

    /// From 0, the worst of the sweep, to 1, the best of it.
    fn goodness(&self, cell: &Cell) -> f64 {
        let medians = || self.column.cells.iter().filter_map(|cell| cell.median);
        let (least, most) = (medians().fold(f64::INFINITY, f64::min), medians().fold(f64::NEG_INFINITY, f64::max));
        match (cell.median, self.column.measure.better) {
            (Some(value), Better::Higher) if least < most => (value - least) / (most - least),
            (Some(value), Better::Lower) if least < most => (most - value) / (most - least),
            _ => 0.0,
        }
    }
}
