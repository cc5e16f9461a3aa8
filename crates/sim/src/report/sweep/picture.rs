//! The picture of a sweep as SVG: lines where one field is swept, heat maps where two are, and one group of them for each value of a
//! further field. Light and dark follow the reader's system.

use super::figures::{columns, rows};
use super::{heat, lines, title};
use crate::sweep::SweepResult;

/// The width of the picture in its own units; it scales to the page.
pub(super) const WIDTH: usize = 960;

/// Panels beside each other.
pub(super) const ACROSS: usize = 3;

/// The width of one panel.
pub(super) const PANEL: usize = WIDTH / ACROSS;

/// Colours by role; a reader who prefers dark gets the second set.
const STYLE: &str = "\
svg.sweep{--ground:#fff;--ink:#1c1e21;--faint:#6b7280;--rule:#d8dbe0;--good:#1f77b4;font-family:system-ui,sans-serif;background:var(--ground)}
svg.sweep text{fill:var(--ink);font-size:12px}svg.sweep .title{font-size:16px;font-weight:600}svg.sweep .group{font-weight:600}
svg.sweep .faint{fill:var(--faint);font-size:11px}svg.sweep .rule{stroke:var(--rule);stroke-width:1}svg.sweep .cell{fill:var(--good)}
svg.sweep .best{fill:none;stroke:var(--ink);stroke-width:1.5}svg.sweep .bold{font-weight:700}
svg.sweep .line{fill:none;stroke-width:2}svg.sweep .worst{stroke-width:1;stroke-dasharray:3 3}
svg.sweep .s0{--c:#1f77b4}svg.sweep .s1{--c:#d9730d}svg.sweep .s2{--c:#2c8a4b}svg.sweep .s3{--c:#9457b8}svg.sweep .s4{--c:#8c6d1f}svg.sweep .s5{--c:#c43d5b}
svg.sweep .series{stroke:var(--c)}svg.sweep .dot{fill:var(--c);stroke:var(--ground);stroke-width:1}
@media (prefers-color-scheme:dark){svg.sweep{--ground:#16181c;--ink:#e8eaed;--faint:#9aa1ab;--rule:#3a3f47;--good:#4ea3e0}
svg.sweep .s0{--c:#5fb0ea}svg.sweep .s1{--c:#f29a4a}svg.sweep .s2{--c:#5cc07d}svg.sweep .s3{--c:#c08ae0}svg.sweep .s4{--c:#cfae55}svg.sweep .s5{--c:#f07a93}}";

/// The whole picture, complete in itself. The sweep has at least one combination, each with at least one seed and the same policies.
pub fn picture(sweep: &SweepResult) -> String {
    let rows = rows(sweep);
    let columns = columns(&rows);
    let mut canvas = Canvas::default();
    canvas.text(12, 24, "title", &title(sweep));
    canvas.height = 40;
    match sweep.axes.as_slice() {
        [axis] => lines::draw(&mut canvas, axis, &rows, &columns),
        axes => heat::draw(&mut canvas, axes, &rows, &columns),
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"sweep\" viewBox=\"0 0 {WIDTH} {}\" role=\"img\">\n<style>{STYLE}</style>\n{}</svg>\n",
        canvas.height, canvas.body
    )
}

/// What has been drawn, and down to where.
#[derive(Default)]
pub(super) struct Canvas {
    pub body: String,
    pub height: usize,
}

impl Canvas {
    /// A text that begins at `x`.
    pub(super) fn text(&mut self, x: usize, y: usize, class: &str, text: &str) {
        self.body += &format!("<text x=\"{x}\" y=\"{y}\" class=\"{class}\">{}</text>\n", escape(text));
    }

    /// A text around `x` (`middle`) or that ends there (`end`).
    pub(super) fn text_at(&mut self, x: usize, y: usize, class: &str, anchor: &str, text: &str) {
        self.body += &format!("<text x=\"{x}\" y=\"{y}\" class=\"{class}\" text-anchor=\"{anchor}\">{}</text>\n", escape(text));
    }

    /// An element of its own.
    pub(super) fn draw(&mut self, element: &str) {
        self.body += element;
        self.body.push('\n');
    }
}

/// Text that cannot be taken for markup.
pub(in crate::report) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// At most so many characters, with a sign where some are missing.
pub(super) fn short(text: &str, most: usize) -> String {
    if text.chars().count() <= most { text.to_owned() } else { text.chars().take(most - 1).chain(['…']).collect() }
}
