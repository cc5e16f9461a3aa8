//! The screen: the sums, what was lost to what and by whom, the worst families, limits, waits, and what would save most.

use crate::analyze::{Analysis, Cause, CauseLoss, Completion, Death, FamilyLoss, Finding, Owners, Rate, SizeWait, Unit as Counted};
use crate::report::cell::{NOTHING, Unit};
use crate::report::table::{WIDTH, align, bare, wrap};
use crate::report::words::{count, date, duration, item, rows, shortened};
use crate::trace::outcome::Outcome;
use crate::trace::overview::Reason;

/// So many teams, users and families fit on a screen.
const OWNERS: usize = 5;
const FAMILIES: usize = 6;

/// Rates of fewer cases are shown as such, with what the rate behind them may be.
const FEW: u64 = 30;

pub(super) fn text(file: &str, found: &Analysis) -> String {
    let mut parts = vec![head(file, found)];
    if found.jobs > 0 && found.tells_outcomes {
        parts.push(lost(found));
        parts.extend(owners(if found.form == "event log" { "budget" } else { "team" }, &found.budgets, found));
        parts.extend(found.users.as_ref().and_then(|users| owners("user", users, found)));
        parts.extend(families(found));
    }
    parts.extend(limits(found));
    parts.extend(waits(found));
    parts.extend(findings(found));
    parts.extend(aside(found));
    parts.join("\n\n")
}

pub(super) fn head(file: &str, found: &Analysis) -> String {
    let unit = found.unit.name();
    let from = found.first_unix_ms.map(|ms| format!(", from {}", date(ms))).unwrap_or_default();
    let mut lines = vec![format!("{file}: {}{from}, {}", found.form, duration(found.span_days * 86_400.0)), String::new()];
    if found.jobs == 0 {
        lines.push("The log has no job that can be counted.".into());
        return lines.join("\n");
    }
    let never = if found.never_ran > 0 { format!("; {} of them never ran", count(found.never_ran)) } else { String::new() };
    lines.push(wrap("", "  ", &format!("{}, {} {unit}-hours{never}", jobs(found.jobs), hours(found.hours))));
    if found.unit == Counted::Cpu {
        lines.push("The log has no GPUs: CPUs are counted.".into());
    }
    if found.without_gpus.jobs > 0 {
        let cpus = hours(found.without_gpus.gpu_hours);
        lines.push(wrap("", "  ", &format!("Jobs without GPUs are left aside: {}, {cpus} CPU-hours", count(found.without_gpus.jobs))));
    }
    match &found.completion {
        Some(completion) => {
            let Completion { jobs, hours, kept_jobs, kept_hours } = completion;
            let kept = match kept_jobs.of {
                0 => "; all were cancelled".into(),
                of if of == jobs.of => String::new(),
                _ => format!("; of those that nobody cancelled {} and {}", rate(kept_jobs), Unit::Percent.text(*kept_hours)),
            };
            let text = format!(
                "Completed: {} of the jobs that ran and ended, {} of their {unit}-hours{kept}",
                rate(jobs),
                Unit::Percent.text(*hours)
            );
            lines.push(wrap("", "  ", &text));
        }
        None => lines.push(wrap("", "  ", untold(found))),
    }
    lines.join("\n")
}

/// Why there is no rate of completion.
pub(super) fn untold(found: &Analysis) -> &'static str {
    match found.tells_outcomes {
        true => "No job has run and ended: nothing can be said of completion.",
        false => "The log does not tell how jobs ended: nothing can be said of completion and loss.",
    }
}

/// `67.1 %`, or of few cases how many they are.
pub(super) fn rate(rate: &Rate) -> String {
    if rate.of == 0 {
        return NOTHING.into();
    }
    if rate.of >= FEW {
        return Unit::Percent.text(rate.rate);
    }
    format!("{} of {} ({:.0} to {:.0} %)", rate.count, rate.of, rate.low * 100.0, rate.high * 100.0)
}

/// The same where there is room for a few characters.
pub(super) fn short_rate(rate: &Rate) -> String {
    match rate.of {
        0 => NOTHING.into(),
        of if of < FEW => format!("{} of {of}", rate.count),
        _ => Unit::Percent.text(rate.rate),
    }
}

/// Whole hours; what is less than one, and something, is no zero.
pub(super) fn hours(hours: f64) -> String {
    if hours > 0.0 && hours < 0.95 { format!("{hours:.1}").replace("0.0", "<0.1") } else { count(hours.round() as u64) }
}

fn jobs(number: u64) -> String {
    if number == 1 { "1 job".into() } else { format!("{} jobs", count(number)) }
}

fn lost(found: &Analysis) -> String {
    let unit = found.unit.name();
    let mut table = bare();
    table.set_header(["lost at most".into(), "jobs".into(), format!("{unit}-hours"), format!("of {unit}-hours")]);
    let row = |loss: &CauseLoss| [loss.cause.name().into(), count(loss.jobs), hours(loss.hours), Unit::Percent.text(loss.of_hours)];
    let of = |part: f64| if found.hours > 0.0 { Unit::Percent.text(part / found.hours) } else { NOTHING.into() };
    let (lost, cancelled): (Vec<&CauseLoss>, Vec<&CauseLoss>) = found.lost.iter().partition(|loss| loss.cause != Cause::Cancelled);
    lost.iter().for_each(|loss| {
        table.add_row(row(loss));
    });
    if lost.len() > 1 {
        table.add_row(["together".into(), String::new(), hours(found.lost_hours), of(found.lost_hours)]);
    }
    for loss in cancelled {
        let [_, jobs, hours, part] = row(loss);
        table.add_row(["cancelled while it ran; much is meant".into(), jobs, hours, part]);
    }
    let is_open = |outcome| matches!(outcome, Outcome::Running | Outcome::Waiting | Outcome::Unknown);
    let open = found.outcomes.iter().filter(|one| is_open(one.outcome) && one.part.gpu_hours > 0.0);
    for one in open {
        table.add_row([one.outcome.name().into(), count(one.part.jobs), hours(one.part.gpu_hours), of(one.part.gpu_hours)]);
    }
    if table.is_empty() {
        return "Nothing was lost.".into();
    }
    align(&mut table, 2);
    let earlier = found.lost.iter().any(|loss| matches!(loss.cause, Cause::Preempted | Cause::Requeued));
    let known = match (earlier, found.tells_banked) {
        (true, true) => " What preempted attempts lost is counted since their last checkpoint.",
        (true, false) => " Of what was requeued all earlier attempts count, as if nothing had been saved.",
        _ => "",
    };
    let meaning = format!("At most: what did not end well may have left a checkpoint or a result; no log tells.{known}");
    format!("{}\n{}", table.trim_fmt(), wrap("", "", &meaning))
}

/// A name, or that there is none.
pub(super) fn name(name: &str) -> String {
    if name.is_empty() { "(none)".into() } else { name.into() }
}

fn owners(title: &str, owners: &Owners, found: &Analysis) -> Option<String> {
    if owners.count < 2 {
        return None;
    }
    let mut table = bare();
    let unit = found.unit.name();
    let header = [
        format!("{title} ({})", count(owners.count)),
        "jobs".into(),
        "completed".into(),
        format!("{unit}-hours"),
        "lost".into(),
        "of its".into(),
        "cancelled".into(),
    ];
    table.set_header(header);
    for owner in owners.first.iter().take(OWNERS) {
        table.add_row([
            shortened(&name(&owner.name), 24),
            count(owner.jobs),
            short_rate(&owner.completed),
            hours(owner.hours),
            hours(owner.lost_hours),
            Unit::Percent.text(owner.lost_of_hours),
            hours(owner.cancelled_hours),
        ]);
    }
    align(&mut table, 2);
    Some(table.trim_fmt())
}

fn families(found: &Analysis) -> Option<String> {
    let families = &found.families;
    if families.worst.is_empty() {
        return None;
    }
    let mut table = bare();
    let unit = found.unit.name();
    let name = if families.named { "name" } else { "" };
    let header = ["user", name, &format!("{unit}s"), "completed", "lost", "mostly", "half died by"];
    table.set_header(header);
    for family in families.worst.iter().take(FAMILIES) {
        table.add_row([
            shortened(&family.user, 12),
            shortened(if family.name().is_empty() { NOTHING } else { family.name() }, 20),
            size(family.from, family.to),
            short_rate(&family.completed),
            hours(family.lost_hours),
            family.cause.name().into(),
            died(family),
        ]);
    }
    align(&mut table, 2);
    let how = if families.named {
        "one user's jobs of one size whose names differ in numbers, dates and hashes only"
    } else {
        "the log has no names, so all jobs of one user and size"
    };
    Some(format!(
        "{}\n{}",
        table.trim_fmt(),
        wrap("", "", &format!("The worst of {} families ({how}), with the {unit}-hours lost.", count(families.count)))
    ))
}

pub(super) fn died(family: &FamilyLoss) -> String {
    match family.died {
        Some(Death { count: 1, p50_s, .. }) => format!("{} (once)", duration(p50_s)),
        Some(death) => duration(death.p50_s),
        None => NOTHING.into(),
    }
}

pub(super) fn size(from: u64, to: u64) -> String {
    if from >= to { to.to_string() } else { format!("{from} to {to}") }
}

pub(super) fn limits(found: &Analysis) -> Option<String> {
    let limits = found.limits.as_ref()?;
    let percent = |part: f64| format!("{:.0} %", part * 100.0);
    let without = if limits.without > 0 { format!("; {} had none", count(limits.without)) } else { String::new() };
    let text = format!(
        "Time limits: half of {} used at most {} of theirs, nine in ten {}; {} less than a tenth, {} reached it ({} {}-hours), {} completed in its last tenth; of the time asked for {} was used{without}.",
        jobs(limits.jobs),
        percent(limits.used_p50),
        percent(limits.used_p90),
        count(limits.under_tenth),
        count(limits.reached),
        hours(limits.reached_hours),
        found.unit.name(),
        count(limits.close),
        percent(limits.used_of_asked),
    );
    Some(wrap("", "", &text))
}

fn waits(found: &Analysis) -> Option<String> {
    if found.waits.is_empty() {
        return None;
    }
    let mut table = bare();
    let unit = found.unit.name();
    table.set_header([&format!("wait by {unit}s"), "started", "half", "9 in 10", "99 in 100", "longest", "never started"]);
    for wait in &found.waits {
        let SizeWait { from, to, started, waiting, .. } = *wait;
        let figure = |seconds: f64| if started > 0 { duration(seconds) } else { NOTHING.into() };
        let [p50, p90, p99, max] = [wait.p50_s, wait.p90_s, wait.p99_s, wait.max_s].map(figure);
        table.add_row([size(from, to), count(started), p50, p90, p99, max, if waiting > 0 { count(waiting) } else { String::new() }]);
    }
    align(&mut table, 2);
    Some(table.trim_fmt())
}

fn findings(found: &Analysis) -> Option<String> {
    if found.findings.is_empty() {
        return None;
    }
    let mut lines = vec!["What would save most, each at most (they overlap):".to_owned()];
    for (number, finding) in found.findings.iter().enumerate() {
        let Finding { hours: most, what, next, few, .. } = finding;
        let most = most.map(|most| format!("{} {}-hours: ", hours(most), found.unit.name())).unwrap_or_default();
        let few = if *few { " (few cases: it may be chance)" } else { "" };
        lines.push(wrap(&format!("{}. ", number + 1), "   ", &format!("{most}{what}{few}")));
        lines.push(wrap("   ", "   ", &format!("→ {next}")));
    }
    Some(lines.join("\n"))
}

/// What was left aside, and why.
fn aside(found: &Analysis) -> Option<String> {
    let line = |line: u64| if line > 0 { format!("; the first is in line {line}") } else { String::new() };
    let reason = |one: &Reason| item(&format!("{}: {}{}", rows(one.rows), one.reason, line(one.first_line)));
    let mut lines: Vec<String> = Vec::new();
    for (title, reasons) in [("Left aside:", &found.skipped), ("Settled by a rule:", &found.ruled)] {
        if !reasons.is_empty() {
            lines.push(title.into());
            lines.extend(reasons.iter().map(reason));
        }
    }
    if found.bad_rows > 0 {
        lines.push(format!("{} cannot be read, such as:", rows(found.bad_rows)));
        lines.extend(found.bad_examples.iter().map(|bad| item(&format!("line {}: {}", bad.line, bad.reason))));
    }
    lines.extend(found.about.iter().map(|about| shortened(about, WIDTH.into())));
    (!lines.is_empty()).then(|| lines.join("\n"))
}
