//! `stipend usage`.

use super::budget::percent;
use crate::failure::{Answer, Outcome};
use crate::moment::{Length, date, now_ms};
use crate::names::{self, word};
use crate::output::{self, Format};
use crate::remote::{Query, Remote};
use crate::table::{Column, Table};
use clap::Args;
use stipend_core::quantity::Span;
use stipend_server::wire::usage::{BudgetUsage, Step, Usage, UsageStep};

/// Show what budgets were owed and got, over time.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct UsageCommand {
    /// Only this budget and those below it, with a bar for each day or hour
    #[arg(value_name = "BUDGET", add = names::budgets())]
    budget: Option<String>,
    /// How far back; up to two days are shown by the hour
    #[arg(long, value_name = "TIME", default_value = "30d")]
    since: Length,
    /// Only in this pool
    #[arg(long, value_name = "NAME", add = names::pools())]
    pool: Option<String>,
    /// How to print it; `json` is one object
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    format: Format,
    #[command(flatten)]
    remote: Remote,
}

const EXAMPLES: &str = "\
Examples:
  stipend usage
  stipend usage lab/nlp --since 24h
  stipend usage --since 90d --format json

owed       GPU-hours: at each moment the lesser of a budget's claim and what it
           asked for
delivered  GPU-hours that its allocated work got, less refunds
standing   now, over the lookback; 100 % is what it is entitled to
the chart  what was delivered day by day (or hour by hour), the highest full";

/// Parts of a cell that is filled from below.
const LEVELS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Parts of a cell that is filled from the left.
const EIGHTHS: [char; 9] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];

/// Steps in a row's chart at most; the latest.
const STEPS_MAX: usize = 16;

/// Cells of a bar.
const BAR: usize = 40;

impl UsageCommand {
    pub(super) fn run(self) -> Outcome {
        let step = if self.since.0 <= Span::days(2) { Step::Hour } else { Step::Day };
        let query = Query::default()
            .with("budget", self.budget.as_deref())
            .with("pool", self.pool)
            .with("from_ms", Some(now_ms() - self.since.0.0))
            .with("by", Some(word(step)));
        let usage = self.remote.daemon()?.get::<Usage>(&query.of("/v1/usage"))?;
        match self.format {
            Format::Table => {
                output::text(&table(&usage).text(output::width()))?;
                if let Some(one) = usage.budgets.first().filter(|_| self.budget.is_some()) {
                    output::text(&format!("\n{}", bars(one, usage.step_ms)))?;
                }
            }
            Format::Json => output::json(&usage)?,
        }
        Ok(Answer::Yes)
    }
}

fn table(usage: &Usage) -> Table {
    let mut table = Table::new(&[
        ("budget", Column::Shrinks),
        ("pool", Column::Words),
        ("claim", Column::Figures),
        ("standing", Column::Figures),
        ("owed", Column::Figures),
        ("delivered", Column::Figures),
        ("of owed", Column::Figures),
        ("chart", Column::Words),
    ]);
    for row in &usage.budgets {
        let of_owed = row.owed_gpu_hours.filter(|owed| *owed > 0.0).map(|owed| (row.delivered_gpu_hours / owed * 100.0).min(100.0));
        table.row([
            row.budget.clone(),
            row.pool.clone(),
            percent(row.claim * 100.0),
            row.standing.map_or("–".into(), |standing| percent(standing * 100.0)),
            row.owed_gpu_hours.map_or("–".into(), hours),
            hours(row.delivered_gpu_hours),
            of_owed.map_or("–".into(), percent),
            chart(&row.steps),
        ]);
    }
    table
}

/// GPU-hours: whole ones from ten on.
fn hours(hours: f64) -> String {
    match hours {
        0.0 => "0".into(),
        small if small < 0.0995 => format!("{small:.3}"),
        some if some < 9.995 => format!("{some:.2}"),
        many => format!("{many:.0}"),
    }
}

/// One cell a step, the highest full; what is above nothing at all shows.
fn chart(steps: &[UsageStep]) -> String {
    let most = steps.iter().map(|step| step.delivered_gpu_hours).fold(0.0, f64::max);
    let level = |step: &UsageStep| match step.delivered_gpu_hours {
        some if some > 0.0 => LEVELS[((some / most * 8.0).round() as usize).clamp(1, 8)],
        _ => LEVELS[0],
    };
    steps[steps.len().saturating_sub(STEPS_MAX)..].iter().map(level).collect()
}

/// A bar a step: what was delivered, and a mark where what was owed ends.
fn bars(usage: &BudgetUsage, step_ms: i64) -> String {
    let owed = |step: &UsageStep| step.owed_gpu_hours.unwrap_or(0.0);
    let most = usage.steps.iter().map(|step| step.delivered_gpu_hours.max(owed(step))).fold(0.0, f64::max);
    let line = |step: &UsageStep| {
        let cells = |hours: f64| if most > 0.0 { hours / most * BAR as f64 } else { 0.0 };
        let filled = cells(step.delivered_gpu_hours);
        let mut bar: Vec<char> = vec!['█'; filled as usize];
        bar.push(EIGHTHS[((filled.fract() * 8.0) as usize).min(8)]);
        bar.resize(BAR + 2, ' ');
        let mark = cells(owed(step)).round() as usize;
        if step.owed_gpu_hours.is_some() && bar[mark] == ' ' {
            bar[mark] = '│';
        }
        let said = match step.owed_gpu_hours {
            Some(owed) => format!("{} of {}", hours(step.delivered_gpu_hours), hours(owed)),
            None => hours(step.delivered_gpu_hours),
        };
        format!("{} {} {said}", date(step.from_ms, step_ms), bar.into_iter().collect::<String>())
    };
    let head = format!("{} in {}, GPU-hours delivered of those owed (│):", usage.budget, usage.pool);
    std::iter::once(head).chain(usage.steps.iter().map(line)).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage() -> BudgetUsage {
        let step = |delivered_gpu_hours: f64, owed: f64| UsageStep { from_ms: 0, delivered_gpu_hours, owed_gpu_hours: Some(owed) };
        BudgetUsage {
            budget: "lab/nlp".into(),
            pool: "gpu".into(),
            claim: 0.6,
            standing: Some(0.9),
            delivered_gpu_hours: 47.75,
            owed_gpu_hours: Some(50.0),
            steps: vec![step(0.0, 0.0), step(40.0, 40.0), step(7.75, 10.0)],
        }
    }

    #[test]
    fn a_row_with_its_chart() {
        let usage = Usage { from_ms: 0, to_ms: 3 * 86_400_000, step_ms: 86_400_000, budgets: vec![usage()] };
        let text = table(&usage).text(None);
        assert_eq!(text.lines().last(), Some("lab/nlp  gpu    60 %      90 %    50         48   95.5 %   █▂"), "{text}");
    }

    #[test]
    fn bars_with_a_mark_for_what_was_owed() {
        let text = bars(&usage(), 86_400_000);
        let lines: Vec<&str> = text.lines().map(|line| line.split_once(' ').map_or("", |(_, rest)| rest)).skip(1).collect();
        assert!(lines[0].ends_with(" 0 of 0") && lines[0].contains('│'), "{text}");
        assert!(lines[1].contains(&"█".repeat(40)) && lines[1].ends_with("│ 40 of 40") || lines[1].ends_with("40 of 40"), "{text}");
        assert!(lines[2].contains("███████▊  │") && lines[2].ends_with("7.75 of 10"), "{text}");
    }

    #[test]
    fn nothing_at_all_is_an_empty_chart() {
        let none = BudgetUsage { steps: vec![UsageStep::default()], ..usage() };
        assert_eq!(chart(&none.steps), " ");
        assert!(bars(&none, 3_600_000).ends_with(" 0"));
    }
}
