//! One field is swept: a panel for each figure, a line for each policy.

use super::figures::{Cell, Column, Row};
use super::picture::{ACROSS, Canvas, PANEL, escape, short};
use crate::sweep::Axis;

/// The height of a panel, and the margins in it around the plot.
const HEIGHT: usize = 190;
const LEFT: usize = 62;
const RIGHT: usize = 24;
const TOP: usize = 34;
const BOTTOM: usize = 34;

/// So many colours there are.
const COLOURS: usize = 6;

pub(super) fn draw(canvas: &mut Canvas, axis: &Axis, rows: &[Row<'_>], columns: &[Column]) {
    let mut policies: Vec<&str> = Vec::new();
    rows.iter().for_each(|row| {
        if !policies.contains(&row.policy) {
            policies.push(row.policy)
        }
    });
    legend(canvas, axis, &policies, columns.iter().any(|column| column.cells.iter().any(|cell| cell.worst.is_some())));
    let top = canvas.height;
    for (number, column) in columns.iter().enumerate() {
        let plot = Plot::new(number % ACROSS * PANEL, top + number / ACROSS * HEIGHT, axis, column);
        plot.frame(canvas);
        for (series, policy) in policies.iter().enumerate() {
            let cells = rows.iter().zip(&column.cells).filter(|(row, _)| row.policy == *policy);
            let cells: Vec<(usize, &Cell)> = cells.map(|(row, cell)| (row.combination, cell)).collect();
            plot.series(canvas, series % COLOURS, policy, &cells);
        }
    }
    canvas.height = top + columns.len().div_ceil(ACROSS) * HEIGHT;
}

fn legend(canvas: &mut Canvas, axis: &Axis, policies: &[&str], has_worst: bool) {
    let y = canvas.height + 8;
    let mut x = 12;
    for (series, policy) in policies.iter().enumerate().filter(|_| 1 < policies.len()) {
        let class = format!("line series s{}", series % COLOURS);
        canvas.draw(&format!("<path d=\"M{x} {}h18\" class=\"{class}\"/>", y - 4));
        canvas.text(x + 24, y, "", policy);
        x += 40 + 8 * policy.chars().count();
    }
    let seeds = if has_worst { "; the median of the seeds, dashed the worst" } else { "" };
    canvas.text(x, y, "faint", &format!("across: {}; a larger dot: the best of the sweep{seeds}", axis.key));
    canvas.height += 18;
}

/// One panel.
struct Plot<'a> {
    x: usize,
    y: usize,
    axis: &'a Axis,
    column: &'a Column,
    least: f64,
    most: f64,
}

impl<'a> Plot<'a> {
    fn new(x: usize, y: usize, axis: &'a Axis, column: &'a Column) -> Plot<'a> {
        let figures = column.cells.iter().flat_map(|cell| [cell.median, cell.worst]).flatten();
        let (least, most) = figures.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), value| (least.min(value), most.max(value)));
        Plot { x, y, axis, column, least, most }
    }

    fn across(&self, value: usize) -> usize {
        let last = self.axis.values.len().saturating_sub(1).max(1);
        self.x + LEFT + (PANEL - LEFT - RIGHT) * value / last
    }

    /// Higher figures are higher, whichever is better; equal ones lie in the middle.
    fn down(&self, value: f64) -> f64 {
        let part = if self.least < self.most { (value - self.least) / (self.most - self.least) } else { 0.5 };
        self.y as f64 + TOP as f64 + (HEIGHT - TOP - BOTTOM) as f64 * (1.0 - part)
    }

    fn frame(&self, canvas: &mut Canvas) {
        canvas.text(self.x + 12, self.y + 18, "group", self.column.measure.name);
        let ends = if self.least < self.most { vec![self.most, self.least] } else { vec![self.least] };
        for value in ends {
            let y = self.down(value);
            canvas.draw(&format!("<path d=\"M{} {y:.1}H{}\" class=\"rule\"/>", self.x + LEFT, self.x + PANEL - RIGHT));
            canvas.text_at(self.x + LEFT - 6, y as usize + 4, "faint", "end", &self.column.measure.unit.text(value));
        }
        // With many values only some are written.
        let every = self.axis.values.len().div_ceil(6).max(1);
        for (number, value) in self.axis.values.iter().enumerate().step_by(every) {
            canvas.text_at(self.across(number), self.y + HEIGHT - BOTTOM + 16, "faint", "middle", &short(value, 9));
        }
    }

    fn series(&self, canvas: &mut Canvas, colour: usize, policy: &str, cells: &[(usize, &Cell)]) {
        let path = |figure: fn(&Cell) -> Option<f64>| {
            let points = cells.iter().filter_map(|(place, cell)| Some((*place, figure(cell)?)));
            let points: Vec<String> = points.map(|(place, value)| format!("{} {:.1}", self.across(place), self.down(value))).collect();
            format!("M{}", points.join("L"))
        };
        if cells.iter().any(|(_, cell)| cell.worst.is_some()) {
            canvas.draw(&format!("<path d=\"{}\" class=\"line worst series s{colour}\"/>", path(|cell| cell.worst)));
        }
        if cells.iter().all(|(_, cell)| cell.median.is_none()) {
            return;
        }
        canvas.draw(&format!("<path d=\"{}\" class=\"line series s{colour}\"/>", path(|cell| cell.median)));
        for (place, cell) in cells {
            let Some(value) = cell.median else { continue };
            let unit = self.column.measure.unit;
            let worst = cell.worst.map_or(String::new(), |worst| format!(", worst {}", unit.text(worst)));
            let said = format!("{policy}, {} = {}: {}{worst}", self.axis.key, self.axis.values[*place], unit.text(value));
            let radius = if cell.is_best { 5 } else { 3 };
            let (x, y) = (self.across(*place), self.down(value));
            canvas.draw(&format!(
                "<circle cx=\"{x}\" cy=\"{y:.1}\" r=\"{radius}\" class=\"dot s{colour}\"><title>{}</title></circle>",
                escape(&said)
            ));
        }
    }
}
