//! What is in a trace, for people: on 80 columns, the largest parts first, and what to do next.

use super::cell::Unit;
use super::table::{WIDTH, align, bare, wrap};
use super::words::{count, date, item, rows, shortened};
use crate::trace::overview::{Overview, Part, Percentiles, Ranking, Reason};

/// The widest scale that fits beside the chart.
const SCALE: usize = 6;

/// Rows of the chart.
const HEIGHT: usize = 5;

/// Parts of a filled cell, from empty to full.
const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The whole overview of `file`.
pub fn overview(file: &str, trace: &Overview) -> String {
    let mut parts = vec![head(file, trace), teams(trace)];
    parts.extend(trace.users.as_ref().map(|users| ranking("user", users, trace)));
    parts.extend(trace.pools.as_ref().map(|pools| ranking("accepts", pools, trace)));
    parts.push(sizes(trace));
    parts.push(outcomes(trace));
    parts.extend(lengths(trace));
    parts.push(chart(trace));
    parts.extend(aside(trace));
    parts.push(if trace.jobs > trace.never_ran { next(file, trace) } else { "No job ran: there is nothing to simulate.".into() });
    parts.join("\n\n")
}

fn head(file: &str, trace: &Overview) -> String {
    let from = trace.first_unix_ms.map(|ms| format!(", from {}", date(ms))).unwrap_or_default();
    let arrived = format!(
        "{} jobs arrived in {} days{from}; the last ended after {}",
        count(trace.jobs),
        Unit::Number.text(trace.arrivals_days),
        Unit::Number.text(trace.span_days)
    );
    let work =
        format!("{} GPU-hours, {} GPUs at work on average", count(trace.gpu_hours.round() as u64), Unit::Number.text(trace.mean_gpus));
    let mut lines = vec![format!("{file}: {}", trace.form), String::new(), wrap("", "  ", &arrived), wrap("", "  ", &work)];
    let also = [(trace.never_ran, "never ran"), (trace.depends, "waited for another job to end")];
    lines.extend(also.iter().filter(|(jobs, _)| *jobs > 0).map(|(jobs, what)| format!("{} {what}", count(*jobs))));
    lines.extend(trace.about.iter().map(|about| shortened(about, WIDTH.into())));
    lines.join("\n")
}

fn teams(trace: &Overview) -> String {
    let mut table = ranking("team", &trace.teams, trace);
    if trace.users.is_none() {
        table.push_str("\n\nThe trace names no users.");
    }
    table
}

fn ranking(title: &str, ranking: &Ranking, trace: &Overview) -> String {
    let mut table = bare();
    table.set_header([format!("{title} ({})", count(ranking.count)).as_str(), "jobs", "of jobs", "GPU-hours", "of GPU-hours"]);
    for named in &ranking.first {
        let name = if named.name.is_empty() { "(none)" } else { &named.name };
        table.add_row(row(&shortened(name, 30), &named.part, trace));
    }
    if let Some(rest) = &ranking.rest {
        table.add_row(row(&format!("{} others", count(ranking.count - ranking.first.len() as u64)), rest, trace));
    }
    align(&mut table, 2);
    table.trim_fmt()
}

fn sizes(trace: &Overview) -> String {
    let mut table = bare();
    table.set_header(["GPUs", "jobs", "of jobs", "GPU-hours", "of GPU-hours"]);
    for size in &trace.sizes {
        let label =
            if size.from_gpus == size.to_gpus { size.to_gpus.to_string() } else { format!("{} to {}", size.from_gpus, size.to_gpus) };
        table.add_row(row(&label, &size.part, trace));
    }
    align(&mut table, 2);
    table.trim_fmt()
}

fn outcomes(trace: &Overview) -> String {
    let mut table = bare();
    table.set_header(["outcome", "jobs", "of jobs", "GPU-hours", "of GPU-hours"]);
    for outcome in &trace.outcomes {
        table.add_row(row(outcome.outcome.name(), &outcome.part, trace));
    }
    align(&mut table, 2);
    table.trim_fmt()
}

fn row(label: &str, part: &Part, trace: &Overview) -> [String; 5] {
    let of = |part: f64, whole: f64| if whole > 0.0 { Unit::Percent.text(part / whole) } else { super::cell::NOTHING.into() };
    [
        label.into(),
        count(part.jobs),
        of(part.jobs as f64, trace.jobs as f64),
        count(part.gpu_hours.round() as u64),
        of(part.gpu_hours, trace.gpu_hours),
    ]
}

fn lengths(trace: &Overview) -> Option<String> {
    let rows = [("run time", trace.durations_s), ("wait", trace.waits_s)];
    let known: Vec<(&str, Percentiles)> = rows.into_iter().filter_map(|(name, values)| Some((name, values?))).collect();
    if known.is_empty() {
        return None;
    }
    let mut table = bare();
    table.set_header(["", "jobs", "1 in 10", "half", "9 in 10", "99 in 100", "longest"]);
    for (name, values) in known {
        let figures = [values.p10, values.p50, values.p90, values.p99, values.max].map(|seconds| Unit::Seconds.text(seconds));
        table.add_row([name.into(), count(values.count)].into_iter().chain(figures));
    }
    align(&mut table, 2);
    Some(table.trim_fmt())
}

/// The demand over time.
fn chart(trace: &Overview) -> String {
    let most = trace.demand.iter().copied().fold(0.0, f64::max);
    let step = Unit::Seconds.text(trace.span_days * 86_400.0 / trace.demand.len().max(1) as f64);
    let what = if trace.demand_as_run { "GPUs at work" } else { "GPUs at work if nothing had waited" };
    let mut lines = vec![format!("{what}, each column {step}")];
    if most <= 0.0 {
        return format!("{}\n(none)", lines[0]);
    }
    // Where the scale leaves no room beside the columns, it stands above them.
    let mut label = Unit::GpuHours.text(most);
    if label.chars().count() > SCALE {
        lines[0] += &format!(", the highest {label}");
        label = String::from("top");
    }
    let width = label.chars().count().max(1);
    for level in (0..HEIGHT).rev() {
        let cells: String = trace.demand.iter().map(|gpus| block(gpus / most * HEIGHT as f64 - level as f64)).collect();
        let side = match level {
            _ if level + 1 == HEIGHT => label.as_str(),
            0 => "0",
            _ => "",
        };
        lines.push(format!("{side:>width$} │{}", cells.trim_end()).trim_end().to_string());
    }
    lines.join("\n")
}

/// How much of one cell is filled; what is above zero at all shows.
fn block(filled: f64) -> char {
    // Less than this is the noise of sums.
    let eighths = (filled.clamp(0.0, 1.0) * 8.0 - 1e-6).ceil() as usize;
    BLOCKS[eighths.min(8)]
}

/// What was left aside, and why.
fn aside(trace: &Overview) -> Option<String> {
    let reason = |one: &Reason| item(&format!("{}: {}; the first is in line {}", rows(one.rows), one.reason, one.first_line));
    let mut lines: Vec<String> = Vec::new();
    if !trace.skipped.is_empty() {
        lines.push("Left aside:".into());
        lines.extend(trace.skipped.iter().map(reason));
    }
    if !trace.ruled.is_empty() {
        lines.push("Settled by a rule:".into());
        lines.extend(trace.ruled.iter().map(reason));
    }
    if trace.bad_rows > 0 {
        lines.push(format!("{} cannot be read, such as:", rows(trace.bad_rows)));
        lines.extend(trace.bad_examples.iter().map(|bad| item(&format!("line {}: {}", bad.line, bad.reason))));
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// How to simulate it: as many nodes as its work would fill.
fn next(file: &str, trace: &Overview) -> String {
    let days = trace.arrivals_days.ceil().max(1.0);
    let nodes = (trace.gpu_hours / 24.0 / days / 8.0).ceil().max(1.0);
    format!(
        "Simulate it on a cluster that it would just fill, each team with the share that\nit used:\n  \
         stipend sim run scenarios/trace.toml --set trace={file} \\\n    --set nodes={nodes} --set measure={days}d"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_fill_from_below() {
        assert_eq!([-1.0, 0.0, 0.01, 0.5, 1.0, 2.0].map(block), [' ', ' ', '▁', '▄', '█', '█']);
    }
}
