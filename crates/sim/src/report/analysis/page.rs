//! The analysis as one page that opens offline: the figures, and pictures of them.

use super::picture::{self, Share};
use super::text::{died, hours, name, rate, short_rate, size, untold};
use crate::analyze::{Analysis, Cause, FamilyLoss, Owners};
use crate::report::cell::{NOTHING, Unit};
use crate::report::sweep::escape;
use crate::report::words::{count, date, duration, rows};

const STYLE: &str = "\
:root{color-scheme:light dark;--page:#f6f7f9;--surface:#fff;--text:#1b1f24;--soft:#56606b;--rule:#d9dee4;--completed:#0b67a8;--lost:#c8430e;--cancelled:#b08a2e;--unknown:#c3c9d0}
@media (prefers-color-scheme:dark){:root{--page:#14171b;--surface:#1d2126;--text:#e8ebee;--soft:#a5afb9;--rule:#363d45;--completed:#3d97dc;--lost:#ff8a4c;--cancelled:#d9b95a;--unknown:#4a525b}}
*{box-sizing:border-box}body{margin:0 auto;max-width:1100px;padding:0 16px 40px;background:var(--page);color:var(--text);font:15px/1.5 system-ui,sans-serif}
h1{font-size:1.4rem;margin:20px 0 4px;overflow-wrap:anywhere}h2{font-size:1.15rem;margin:0 0 8px}p{max-width:75em;margin:0 0 8px}.soft{color:var(--soft)}
section{background:var(--surface);border:1px solid var(--rule);border-radius:8px;padding:16px;margin:16px 0}
.tiles{display:flex;flex-wrap:wrap;gap:12px;margin:16px 0}.tile{background:var(--surface);border:1px solid var(--rule);border-radius:8px;padding:10px 16px;flex:1 1 150px}
.tile b{display:block;font-size:1.5rem;font-variant-numeric:tabular-nums}.wide{overflow-x:auto}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;width:100%}th,td{padding:3px 10px;text-align:right;white-space:nowrap}
th:first-child,td:first-child{text-align:left;padding-left:0;white-space:normal;overflow-wrap:anywhere;min-width:9em}thead th{border-bottom:2px solid var(--rule);font-weight:600}td.bar{width:35%;min-width:140px;text-align:left}
.track{display:flex;height:14px}.track i{display:block;height:100%;min-width:1px}.completed{background:var(--completed);fill:var(--completed)}.lost{background:var(--lost);fill:var(--lost)}
.cancelled{background:var(--cancelled);fill:var(--cancelled)}.unknown{background:var(--unknown);fill:var(--unknown)}
.key{display:inline-block;width:12px;height:12px;margin:0 4px 0 12px;vertical-align:-1px}.keys{margin:0 0 8px -12px}
svg{width:100%;height:auto;display:block}svg text{fill:var(--soft);font:11px system-ui,sans-serif}svg .rule{stroke:var(--rule)}svg .mark{stroke:var(--text);stroke-width:2}svg .range{stroke:var(--lost);stroke-width:6;opacity:.55}
ol{margin:0;padding-left:22px}li{margin:0 0 8px}li b{font-variant-numeric:tabular-nums}
@media (max-width:600px){body{padding:0 8px 24px;font-size:14px}section{padding:10px}th,td{padding:3px 5px}}
@media print{:root{color-scheme:light}section{border:0;padding:0;break-inside:avoid}}";

/// The page of the analysis of `file`.
pub(super) fn page(file: &str, found: &Analysis) -> String {
    let unit = found.unit.name();
    let title = escape(&format!("{file}: what became of its jobs"));
    let from = found.first_unix_ms.map(|ms| format!(", from {}", date(ms))).unwrap_or_default();
    let about = escape(&format!("{}{from}, {}", found.form, duration(found.span_days * 86_400.0)));
    let mut parts = vec![tiles(found)];
    if found.unit == crate::analyze::Unit::Cpu {
        parts.push("<p class=\"soft\">The log has no GPUs: CPUs are counted.</p>".into());
    }
    if found.completion.is_none() {
        parts.push(format!("<p>{}</p>", untold(found)));
    }
    parts.extend(findings(found));
    parts.push(section(&format!("{unit}-hours over time"), &format!("{}{}", keys(), picture::over_time(found))));
    if found.tells_outcomes {
        parts.push(lost(found));
        parts.push(section("By how long jobs ran", &format!("{}{}", keys(), lengths(found))));
        parts.extend(owners("By team", &found.budgets, found));
        parts.extend(found.users.as_ref().and_then(|users| owners("By user", users, found)));
        parts.extend(families(found));
    }
    parts.extend(limits(found));
    parts.extend(waits(found));
    parts.extend(aside(found));
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n\
         <style>{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n<p class=\"soft\">{about}</p>\n{}\n</body>\n</html>\n",
        parts.join("\n")
    )
}

fn section(title: &str, body: &str) -> String {
    format!("<section>\n<h2>{}</h2>\n{body}\n</section>", escape(title))
}

fn keys() -> String {
    let names = [("completed", "completed"), ("lost", "lost"), ("cancelled", "cancelled"), ("unknown", "still running, or not known")];
    let keys: String = names.iter().map(|(class, name)| format!("<span class=\"key {class}\"></span>{name}")).collect();
    format!("<p class=\"keys soft\">{keys}</p>\n")
}

fn tiles(found: &Analysis) -> String {
    let unit = found.unit.name();
    let mut tiles = vec![(count(found.jobs), "jobs".to_owned()), (hours(found.hours), format!("{unit}-hours"))];
    if let Some(completion) = &found.completion {
        tiles.push((rate(&completion.jobs), "of the jobs that ran and ended completed".into()));
        tiles.push((Unit::Percent.text(completion.hours), format!("of their {unit}-hours led to a completion")));
        tiles.push((hours(found.lost_hours), format!("{unit}-hours lost at most, cancelled ones left aside")));
    }
    let tile = |(figure, what): &(String, String)| format!("<div class=\"tile\"><b>{}</b>{}</div>", escape(figure), escape(what));
    format!("<div class=\"tiles\">{}</div>", tiles.iter().map(tile).collect::<String>())
}

fn findings(found: &Analysis) -> Option<String> {
    let unit = found.unit.name();
    let line = |one: &crate::analyze::Finding| {
        let most = one.hours.map(|most| format!("<b>{} {unit}-hours</b>: ", hours(most))).unwrap_or_default();
        let few = if one.few { " <span class=\"soft\">(few cases: it may be chance)</span>" } else { "" };
        format!("<li>{most}{}{few}<br><span class=\"soft\">→ {}</span></li>", escape(&one.what), escape(&one.next))
    };
    let list: String = found.findings.iter().map(line).collect();
    let note = "<p class=\"soft\">Each at most. They overlap: their sum is no figure.</p>";
    (!list.is_empty()).then(|| section("What would save most", &format!("<ol>{list}</ol>{note}")))
}

fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    let head: String = header.iter().map(|name| format!("<th>{}</th>", escape(name))).collect();
    // A cell that is a bar is markup already.
    let cell = |cell: &String| match cell.strip_prefix('\0') {
        Some(bar) => format!("<td class=\"bar\">{bar}</td>"),
        None => format!("<td>{}</td>", escape(cell)),
    };
    let body: String = rows.iter().map(|row| format!("<tr>{}</tr>\n", row.iter().map(cell).collect::<String>())).collect();
    format!("<div class=\"wide\"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n</table></div>")
}

/// A cell with a bar: each share with its class, of a whole.
fn bar(shares: &[Share], whole: f64) -> String {
    format!("\0{}", picture::bar(shares, whole))
}

fn lost(found: &Analysis) -> String {
    let unit = found.unit.name();
    let most = found.lost.iter().map(|loss| loss.hours).fold(0.0, f64::max);
    let row = |loss: &crate::analyze::CauseLoss| {
        let class = if loss.cause == Cause::Cancelled { "cancelled" } else { "lost" };
        let cells = [loss.cause.name().into(), count(loss.jobs), hours(loss.hours), Unit::Percent.text(loss.of_hours)];
        cells.into_iter().chain([bar(&[(class, loss.hours)], most)]).collect()
    };
    let table = table(&["cause", "jobs", &format!("{unit}-hours"), "of all", ""], &found.lost.iter().map(row).collect::<Vec<_>>());
    let note = "<p class=\"soft\">At most: what did not end well may have left a checkpoint or a result; no log tells. Much of what was cancelled is meant.</p>";
    section("Lost, by cause", &format!("{table}{note}"))
}

fn lengths(found: &Analysis) -> String {
    let sum = |one: &crate::analyze::Length| one.completed_hours + one.lost_hours + one.cancelled_hours;
    let most = found.lengths.iter().map(sum).fold(0.0, f64::max);
    let row = |one: &crate::analyze::Length| {
        let shares = [("completed", one.completed_hours), ("lost", one.lost_hours), ("cancelled", one.cancelled_hours)];
        let length = one.below_s.map_or("longer".into(), |below| format!("less than {}", duration(below)));
        vec![length, count(one.completed), count(one.lost), count(one.cancelled), hours(one.lost_hours), bar(&shares, most)]
    };
    let unit = found.unit.name();
    let header = ["ran", "completed", "lost", "cancelled", &format!("{unit}-hours lost"), &format!("{unit}-hours")];
    table(&header, &found.lengths.iter().map(row).collect::<Vec<_>>())
}

fn owners(title: &str, owners: &Owners, found: &Analysis) -> Option<String> {
    let most = owners.first.iter().map(|owner| owner.hours).fold(0.0, f64::max);
    let row = |owner: &crate::analyze::Owner| {
        let rest = (owner.hours - owner.lost_hours - owner.cancelled_hours).max(0.0);
        let shares = [("lost", owner.lost_hours), ("cancelled", owner.cancelled_hours), ("unknown", rest)];
        let figures = [
            count(owner.jobs),
            short_rate(&owner.completed),
            hours(owner.hours),
            hours(owner.lost_hours),
            Unit::Percent.text(owner.lost_of_hours),
        ];
        [name(&owner.name)].into_iter().chain(figures).chain([bar(&shares, most)]).collect()
    };
    let unit = found.unit.name();
    let first = format!("{} in all", count(owners.count));
    let header = [first.as_str(), "jobs", "completed", &format!("{unit}-hours"), "lost", "of its", "lost, cancelled, all"];
    (owners.count > 1).then(|| section(title, &table(&header, &owners.first.iter().map(row).collect::<Vec<_>>())))
}

fn families(found: &Analysis) -> Option<String> {
    let worst = &found.families.worst;
    let longest = worst.iter().filter_map(|family| family.died).map(|death| death.p90_s).fold(60.0, f64::max);
    let row = |family: &FamilyLoss| {
        let what = format!("{} {}", name(&family.user), family.name());
        let death = family.died.map_or(String::new(), |death| format!("\0{}", picture::death(&death, longest)));
        let figures = [
            size(family.from, family.to),
            short_rate(&family.completed),
            hours(family.lost_hours),
            family.cause.name().into(),
            died(family),
        ];
        [what].into_iter().chain(figures).chain([death]).collect()
    };
    let unit = found.unit.name();
    let header = [
        "user and name",
        &format!("{unit}s"),
        "completed",
        &format!("{unit}-hours lost"),
        "mostly",
        "half died by",
        "1 in 10, half, 9 in 10 died by",
    ];
    let note = "<p class=\"soft\">A family is one user's jobs of one size whose names differ in numbers, dates and hashes only. The scale of the last column is logarithmic.</p>";
    (!worst.is_empty())
        .then(|| section("The worst families", &format!("{}{note}", table(&header, &worst.iter().map(row).collect::<Vec<_>>()))))
}

fn limits(found: &Analysis) -> Option<String> {
    let text = super::text::limits(found)?.replace('\n', " ");
    Some(section("Time limits", &format!("<p>{}</p>", escape(text.trim_start_matches("Time limits: ")))))
}

fn waits(found: &Analysis) -> Option<String> {
    let longest = found.waits.iter().map(|wait| wait.max_s).fold(60.0, f64::max);
    let row = |wait: &crate::analyze::SizeWait| {
        let figure = |seconds: f64| if wait.started > 0 { duration(seconds) } else { NOTHING.into() };
        let shown = if wait.started > 0 { picture::range(wait.p50_s, wait.p90_s, wait.p99_s, longest) } else { String::new() };
        let figures =
            [count(wait.started), figure(wait.p50_s), figure(wait.p90_s), figure(wait.p99_s), figure(wait.max_s), count(wait.waiting)];
        [size(wait.from, wait.to)].into_iter().chain(figures).chain([format!("\0{shown}")]).collect()
    };
    let unit = found.unit.name();
    let header =
        [&format!("{unit}s") as &str, "started", "half", "9 in 10", "99 in 100", "longest", "never started", "half, 9 in 10, 99 in 100"];
    let note = "<p class=\"soft\">From arrival to start. The scale of the last column is logarithmic.</p>";
    (!found.waits.is_empty())
        .then(|| section("Waits, by size", &format!("{}{note}", table(&header, &found.waits.iter().map(row).collect::<Vec<_>>()))))
}

fn aside(found: &Analysis) -> Option<String> {
    let reason = |one: &crate::trace::overview::Reason| format!("{}: {}", rows(one.rows), one.reason);
    let mut lines: Vec<String> = found.skipped.iter().chain(&found.ruled).map(reason).collect();
    if found.without_gpus.jobs > 0 {
        lines.push(format!(
            "jobs without GPUs are left aside: {}, {} CPU-hours",
            count(found.without_gpus.jobs),
            hours(found.without_gpus.gpu_hours)
        ));
    }
    if found.bad_rows > 0 {
        lines.push(format!("{} cannot be read", rows(found.bad_rows)));
        lines.extend(found.bad_examples.iter().map(|bad| format!("line {}: {}", bad.line, bad.reason)));
    }
    let list: String = lines.iter().map(|line| format!("<li>{}</li>", escape(line))).collect();
    (!list.is_empty()).then(|| section("Left aside, settled by a rule, or not readable", &format!("<ul>{list}</ul>")))
}
