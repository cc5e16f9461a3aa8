//! The pictures of the page: bars, ranges, and what became of the hours over time.

use crate::analyze::{Analysis, Death, Period};
use crate::report::words::duration;

/// A class of the page's style, and how much.
pub(super) type Share = (&'static str, f64);

/// The picture over time, in its own units.
const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 180.0;
const LEFT: f64 = 56.0;
const BELOW: f64 = 20.0;

/// The width of a range.
const RANGE: f64 = 200.0;

/// A bar of several shares, together at most the whole.
pub(super) fn bar(shares: &[Share], whole: f64) -> String {
    let part = |&(class, value): &Share| {
        let percent = if whole > 0.0 { (value / whole * 100.0).clamp(0.0, 100.0) } else { 0.0 };
        format!("<i class=\"{class}\" style=\"width:{percent:.2}%\"></i>")
    };
    format!("<div class=\"track\">{}</div>", shares.iter().filter(|(_, value)| *value > 0.0).map(part).collect::<String>())
}

/// When attempts died, on a scale of logarithms from a second to the longest.
pub(super) fn death(death: &Death, longest_s: f64) -> String {
    range_of([death.p10_s, death.p50_s, death.p90_s], longest_s, 1)
}

/// Half, nine in ten and 99 in 100.
pub(super) fn range(p50_s: f64, p90_s: f64, p99_s: f64, longest_s: f64) -> String {
    range_of([p50_s, p90_s, p99_s], longest_s, 1)
}

/// A line from the first to the last of three times, with a mark at one of them.
fn range_of(times_s: [f64; 3], longest_s: f64, mark: usize) -> String {
    let place = |seconds: f64| 2.0 + (RANGE - 4.0) * libm::log(seconds.max(0.0) + 1.0) / libm::log(longest_s.max(1.0) + 1.0);
    let [from, _, to] = times_s.map(place);
    let at = place(times_s[mark]);
    let title = times_s.map(duration).join(", ");
    format!(
        "<svg viewBox=\"0 0 {RANGE} 14\" role=\"img\"><title>{title}</title><line class=\"rule\" x1=\"0\" x2=\"{RANGE}\" y1=\"7\" y2=\"7\"/>\
         <line class=\"range\" x1=\"{from:.1}\" x2=\"{:.1}\" y1=\"7\" y2=\"7\"/><line class=\"mark\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"1\" y2=\"13\"/></svg>",
        to.max(from + 1.0)
    )
}

/// What became of the GPUs at work in each part of the span, stacked.
pub(super) fn over_time(found: &Analysis) -> String {
    let shares = |period: &Period| {
        [("completed", period.completed), ("lost", period.lost), ("cancelled", period.cancelled), ("unknown", period.unknown)]
    };
    let step_hours = found.span_days * 24.0 / found.periods.len().max(1) as f64;
    let sum = |period: &Period| shares(period).iter().map(|(_, value)| value).sum::<f64>();
    let most = found.periods.iter().map(sum).fold(0.0, f64::max);
    let (floor, width) = (HEIGHT - BELOW, (WIDTH - LEFT) / found.periods.len().max(1) as f64);
    let mut body = format!("<line class=\"rule\" x1=\"{LEFT}\" x2=\"{WIDTH}\" y1=\"{floor}\" y2=\"{floor}\"/>\n");
    for (number, period) in found.periods.iter().enumerate() {
        let mut top = floor;
        for (class, value) in shares(period).into_iter().filter(|(_, value)| *value > 0.0 && most > 0.0) {
            let height = value / most * (floor - 8.0);
            top -= height;
            let x = LEFT + number as f64 * width;
            body += &format!("<rect class=\"{class}\" x=\"{x:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{height:.1}\"/>\n", width - 1.0);
        }
    }
    let unit = found.unit.name();
    // Hours in a step over the step's length: what was at work on average.
    let scale = if step_hours > 0.0 { most / step_hours } else { 0.0 };
    body += &format!("<text x=\"{}\" y=\"16\" text-anchor=\"end\">{scale:.0} {unit}s</text>\n", LEFT - 4.0);
    body += &format!("<text x=\"{}\" y=\"{floor}\" text-anchor=\"end\">0</text>\n", LEFT - 4.0);
    body += &format!("<text x=\"{LEFT}\" y=\"{}\">0</text>\n", HEIGHT - 5.0);
    body += &format!("<text x=\"{WIDTH}\" y=\"{}\" text-anchor=\"end\">{}</text>\n", HEIGHT - 5.0, duration(found.span_days * 86_400.0));
    let title = format!("{unit}s at work on average, each bar {}", duration(step_hours * 3600.0));
    format!("<p class=\"soft\">{title}</p>\n<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\"><title>{title}</title>\n{body}</svg>")
}
