//! Two replays of a log beside each other, for people.

use super::text::{hours, name, size};
use crate::analyze::SizeWait;
use crate::analyze::whatif::{Replayed, WhatIf};
use crate::report::cell::{NOTHING, Unit};
use crate::report::table::{align, bare, wrap};
use crate::report::words::{count, duration, item, shortened};

/// So many teams are named.
const TEAMS: usize = 8;

/// What such a replay cannot know.
const CAVEATS: [&str; 4] = [
    "What failed in the log fails again after the same time, what was cancelled is cancelled again, and what completed completes: the order changes when work runs, not what becomes of it.",
    "Work comes in when it did, whatever became of earlier work; where the log asks for more than the cluster has, waits only grow, and what has not ended by the end of the log is in neither sum.",
    "Teams have the shares that they used; contracts are the run times up to 8 h, eight in ten jobs resume, one restarts and one ends, unless the log says otherwise.",
    "People who would have seen an earlier failure would have sent other work: a replay knows nothing of that.",
];

/// The figures, by team and by size, and the caveats. There is at least one replay.
pub(super) fn text(found: &WhatIf) -> String {
    let cluster = found.cluster;
    let head = format!(
        "Replayed on {} × {} GPUs, of which the log asks for {}:",
        count(cluster.nodes.into()),
        cluster.gpus_per_node,
        Unit::Percent.text(found.demand_ratio)
    );
    let mut parts = vec![format!("{head}\n{}", sums(found)), waits(found), teams(found)];
    let unknown = (!found.tells_outcomes).then_some(
        "The log does not tell how jobs ended: all are taken to complete, and what is lost here is lost to preemptions and restarts.",
    );
    let mut lines: Vec<String> = unknown.iter().chain(&CAVEATS).map(|caveat| wrap("- ", "  ", caveat)).collect();
    if !found.left_out.is_empty() {
        lines.push("Left out or settled by a rule:".into());
        lines.extend(found.left_out.iter().map(|reason| item(reason)));
    }
    parts.push(lines.join("\n"));
    parts.join("\n\n")
}

fn header(first: &str, found: &WhatIf) -> Vec<String> {
    let orders = found.orders.iter().map(|replayed| replayed.order.clone());
    std::iter::once(first.to_owned()).chain(orders).chain((found.orders.len() > 1).then(|| "change".to_owned())).collect()
}

/// A row of figures with what changed from the first to the last.
fn row(label: &str, found: &WhatIf, of: impl Fn(&Replayed) -> f64, text: impl Fn(f64) -> String) -> Vec<String> {
    let figures: Vec<f64> = found.orders.iter().map(of).collect();
    let mut cells: Vec<String> = std::iter::once(label.to_owned()).chain(figures.iter().map(|figure| text(*figure))).collect();
    if let [first, .., last] = figures.as_slice() {
        cells.push(change(*first, *last));
    }
    cells
}

fn change(from: f64, to: f64) -> String {
    match to - from {
        _ if from <= 0.0 => NOTHING.into(),
        0.0 => "same".into(),
        by => format!("{:+.1} %", by / from * 100.0),
    }
}

fn sums(found: &WhatIf) -> String {
    let mut table = bare();
    table.set_header(header("", found));
    table.add_row(row("jobs done a day", found, |one| one.completed_per_day, |figure| Unit::Number.text(figure)));
    table.add_row(row("jobs done", found, |one| one.completed as f64, |figure| count(figure as u64)));
    table.add_row(row("of those that ended", found, |one| one.of_ended.rate, |figure| Unit::Percent.text(figure)));
    table.add_row(row("GPU-hours that led to a completion", found, |one| one.completed_gpu_hours, hours));
    table.add_row(row("GPU-hours lost", found, |one| one.lost_gpu_hours, hours));
    table.add_row(row("GPU-hours of what was cancelled", found, |one| one.cancelled_gpu_hours, hours));
    table.add_row(row("GPU-hours of what had not ended", found, |one| one.open_gpu_hours, hours));
    align(&mut table, 2);
    table.trim_fmt()
}

fn waits(found: &WhatIf) -> String {
    let mut table = bare();
    table.set_header(header("wait by GPUs: half/9 in 10/99 in 100", found).into_iter().take(1 + found.orders.len()));
    let figures = |wait: &SizeWait| match wait.started {
        0 => NOTHING.to_owned(),
        _ => [wait.p50_s, wait.p90_s, wait.p99_s].map(duration).join("/"),
    };
    let never = |wait: &SizeWait| if wait.waiting > 0 { format!(", {} never", count(wait.waiting)) } else { String::new() };
    for (index, first) in found.orders[0].waits.iter().enumerate() {
        let cells = found.orders.iter().map(|one| one.waits.get(index).map_or(NOTHING.into(), |wait| figures(wait) + &never(wait)));
        table.add_row(std::iter::once(size(first.from, first.to)).chain(cells));
    }
    align(&mut table, 2);
    table.trim_fmt()
}

fn teams(found: &WhatIf) -> String {
    let mut table = bare();
    table.set_header(header("team: GPU-hours held/done/lost", found).into_iter().take(1 + found.orders.len()));
    for team in found.orders[0].teams.iter().take(TEAMS) {
        let of = |one: &Replayed| {
            let same = one.teams.iter().find(|other| other.name == team.name);
            same.map_or(NOTHING.into(), |team| [team.gpu_hours, team.completed_gpu_hours, team.lost_gpu_hours].map(hours).join("/"))
        };
        table.add_row(std::iter::once(shortened(&name(&team.name), 30)).chain(found.orders.iter().map(of)));
    }
    align(&mut table, 2);
    let more = found.orders[0].teams.len().saturating_sub(TEAMS);
    if more > 0 { format!("{}\nand {more} others", table.trim_fmt()) } else { table.trim_fmt() }
}
