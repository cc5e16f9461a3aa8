//! `stipend whatif`.

use crate::failure::{Answer, Outcome};
use crate::moment::{clock, now_ms, short};
use crate::names::Id;
use crate::output::{self, Format};
use crate::remote::Remote;
use crate::table::{Column, Table, wrap};
use anyhow::Context;
use clap::Args;
use std::path::PathBuf;
use stipend_server::wire::whatif::{Figures, Gain, Move, WhatIf, WhatIfRequest};
use stipend_sim::harmless::harmless;
use stipend_sim::scenario::parse_part;

/// Say who would gain and who would lose by a change of budgets or knobs, and touch nothing.
///
/// The submissions of the last days are replayed by the same scheduler, as things are and with the change; and the queue as it is now is
/// projected forward in both ways. The same file can then be applied: `stipend budget apply FILE`; knobs go into the daemon's configuration.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct WhatIfCommand {
    /// The changes (TOML), as `stipend budget apply` takes them
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// How many days are replayed, 1 to 90 [default: 30]
    #[arg(long, value_name = "N")]
    days: Option<u32>,
    /// How to print it; `json` is one object
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    format: Format,
    #[command(flatten)]
    remote: Remote,
}

const EXAMPLES: &str = "\
Examples:
  stipend whatif changes.toml
  stipend whatif changes.toml --days 7
  stipend budget apply changes.toml --reason 'as tried'

A file of changes:
  [[budgets]]
  path = \"lab/nlp\"
  share = 45
  [policy]                  # knobs of all pools
  quantum = \"30m\"
  [[pools]]                 # and of single ones
  name = \"h100\"
  policy = { min_runtime_max = \"4h\" }";

/// So many workloads are shown.
const SHOWN: usize = 20;

impl WhatIfCommand {
    pub(super) fn run(self) -> Outcome {
        let text = std::fs::read_to_string(&self.file).with_context(|| format!("cannot read {}", self.file.display()))?;
        let mut request: WhatIfRequest = parse_part(&self.file.display().to_string(), &text)?;
        request.days = self.days.or(request.days);
        let answer = self.remote.daemon()?.post::<WhatIf>("/v1/whatif", &request, &[])?;
        output::data(self.format, &answer, || page(&answer, now_ms(), output::width()))?;
        Ok(Answer::Yes)
    }
}

fn page(answer: &WhatIf, now_ms: i64, width: Option<usize>) -> String {
    let difference = answer.difference.iter().map(|line| format!("  {}", harmless(line)));
    let head = match answer.difference.len() {
        0 => "nothing would be changed".to_owned(),
        _ => format!("with\n{}", difference.collect::<Vec<_>>().join("\n")),
    };
    let replayed = format!("the last {} days again, {} workloads, as things are -> with the change:", days(answer.days), answer.replayed);
    let mut parts = vec![head, format!("{}\n\n{}", wrap("", "", &replayed, width), gains(&answer.budgets).text(width))];
    let mut moved: Vec<&Move> = answer.queue.iter().filter(|one| differs(one)).collect();
    moved.sort_by_key(|one| (std::cmp::Reverse(shift(one).map_or(i64::MAX, i64::abs)), one.workload));
    let same = answer.queue.len() - moved.len();
    if moved.is_empty() {
        parts.push(format!("the queue as it is now: nothing would start at another time ({same} workloads)"));
    } else {
        let more = moved.len().saturating_sub(SHOWN);
        let more = if more > 0 { format!("\nand {more} more") } else { String::new() };
        moved.truncate(SHOWN);
        parts.push(format!(
            "the queue as it is now, an estimate; {same} others would start as before:\n\n{}{more}",
            moves(&moved, now_ms).text(width)
        ));
    }
    parts.extend(answer.notes.iter().map(|note| wrap("- ", "  ", note, width)));
    parts.join("\n\n")
}

fn days(days: f64) -> String {
    format!("{days:.1}").trim_end_matches(".0").to_owned()
}

fn gains(budgets: &[Gain]) -> Table {
    let mut table = Table::new(&[
        ("budget", Column::Shrinks),
        ("GPU-hours", Column::Figures),
        ("gain", Column::Figures),
        ("owed", Column::Figures),
        ("starts", Column::Figures),
        ("wait p50", Column::Figures),
        ("wait p90", Column::Figures),
    ]);
    for gain in budgets {
        let change = gain.after.delivered_gpu_hours - gain.before.delivered_gpu_hours;
        let both = |figure: fn(&Figures) -> String| pair(figure(&gain.before), figure(&gain.after));
        table.row([
            gain.budget.clone(),
            both(|figures| format!("{:.0}", figures.delivered_gpu_hours)),
            if change.abs() < 0.5 { "0".into() } else { format!("{change:+.0}") },
            both(|figures| format!("{:.0}", figures.owed_gpu_hours)),
            both(|figures| figures.starts.to_string()),
            both(|figures| wait(figures.wait_p50_s)),
            both(|figures| wait(figures.wait_p90_s)),
        ]);
    }
    table
}

/// `12 -> 15`, or one of them where they are the same.
fn pair(before: String, after: String) -> String {
    if before == after { before } else { format!("{before} -> {after}") }
}

fn wait(seconds: Option<f64>) -> String {
    seconds.map_or("–".into(), |seconds| short((seconds * 1000.0) as i64))
}

fn differs(one: &Move) -> bool {
    one.start_before_ms != one.start_after_ms || one.preemptions_before != one.preemptions_after
}

/// By how much it starts later.
fn shift(one: &Move) -> Option<i64> {
    Some(one.start_after_ms? - one.start_before_ms?)
}

fn moves(moved: &[&Move], now_ms: i64) -> Table {
    let mut table = Table::new(&[
        ("id", Column::Figures),
        ("name", Column::Shrinks),
        ("budget", Column::Shrinks),
        ("starts", Column::Figures),
        ("then", Column::Figures),
        ("change", Column::Figures),
        ("preempted", Column::Figures),
    ]);
    let at = |ms: Option<i64>| ms.map_or("not in sight".into(), |ms| clock(ms, now_ms));
    for one in moved {
        let change = match shift(one) {
            Some(later) if later > 0 => format!("{} later", short(later)),
            Some(sooner) if sooner < 0 => format!("{} sooner", short(-sooner)),
            _ => String::new(),
        };
        table.row([
            Id(one.workload).to_string(),
            one.name.clone(),
            one.budget.clone(),
            at(one.start_before_ms),
            at(one.start_after_ms),
            change,
            pair(one.preemptions_before.to_string(), one.preemptions_after.to_string()),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::NOON;

    #[test]
    fn who_gains_and_who_loses() {
        let figures = |delivered: f64, starts: u64, wait: f64| Figures {
            delivered_gpu_hours: delivered,
            owed_gpu_hours: 100.0,
            starts,
            wait_p50_s: Some(wait),
            wait_p90_s: None,
        };
        let gain = Gain { budget: "lab/nlp".into(), before: figures(90.0, 12, 60.0), after: figures(95.4, 12, 30.0) };
        let one = |workload: u32, after: Option<i64>| Move {
            workload,
            name: "train".into(),
            budget: "lab/nlp".into(),
            start_before_ms: Some(NOON + 7_200_000),
            start_after_ms: after,
            preemptions_before: 0,
            preemptions_after: 0,
        };
        let answer = WhatIf {
            difference: vec!["lab/nlp share 40 % -> 45 %".into()],
            days: 30.0,
            replayed: 1200,
            budgets: vec![gain],
            queue: vec![one(1, Some(NOON + 7_200_000)), one(2, Some(NOON + 3_600_000)), one(3, None)],
            notes: vec!["users are taken to submit the same".into()],
        };
        let text = page(&answer, NOON, Some(78));
        let row = |word: &str| text.lines().find(|line| line.trim_start().starts_with(word)).unwrap_or_default().trim().to_owned();
        assert!(text.starts_with("with\n  lab/nlp share 40 % -> 45 %\n\nthe last 30 days again, 1200 workloads, as things are"), "{text}");
        assert_eq!(row("lab/nlp  "), "lab/nlp   90 -> 95    +5   100      12  60s -> 30s         –");
        assert!(
            text.contains("1 others would start as before") && row("w2").contains("60m sooner") && row("w3").contains("not in sight"),
            "{text}"
        );
        assert!(text.ends_with("- users are taken to submit the same"), "{text}");
    }
}
