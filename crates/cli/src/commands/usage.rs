//! `stipend usage`.

use super::budget::percent;
use crate::failure::{Answer, Outcome};
use crate::moment::{Length, date, now_ms};
use crate::names::{self, word};
use crate::output;
use crate::remote::{Query, Remote};
use crate::table::{Column, Table};
use clap::{Args, ValueEnum};
use jiff::Timestamp;
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
    /// How to print it; `json` is one object, `csv` a row for each budget, pool and day (or hour)
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    format: Form,
    #[command(flatten)]
    remote: Remote,
}

const EXAMPLES: &str = "\
Examples:
  stipend usage
  stipend usage lab/nlp --since 24h
  stipend usage --since 90d --format csv

owed       GPU-hours: at each moment the lesser of a budget's claim and what it
           asked for
delivered  GPU-hours that its allocated work got, less refunds
standing   now, over the lookback; 100 % is what it is entitled to
the chart  what was delivered day by day (or hour by hour), the highest full";

/// Parts of a cell that is filled from below.
const LEVELS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Parts of a cell that is filled from the left.
const EIGHTHS: [char; 9] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];

/// Steps in a row's chart at most, the latest, and where the terminal is narrow.
const STEPS_MAX: usize = 16;
const STEPS_MIN: usize = 4;

/// Cells of a bar.
const BAR: usize = 40;

/// How usage is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Form {
    /// For people.
    #[default]
    Table,
    /// For programs.
    Json,
    /// For spreadsheets.
    Csv,
}

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
            Form::Table => {
                output::text(&fitting(&usage, output::width()))?;
                if let Some(one) = usage.budgets.first().filter(|_| self.budget.is_some()) {
                    output::text(&format!("\n{}", bars(one, usage.step_ms)))?;
                }
            }
            Form::Json => output::json(&usage)?,
            Form::Csv => output::bytes(csv(&usage).as_bytes())?,
        }
        Ok(Answer::Yes)
    }
}

/// The table with as much of a chart as there is room for. Names of budgets are never cut: rather is a line too wide.
fn fitting(usage: &Usage, width: Option<usize>) -> String {
    let text = |steps: usize| table(usage, steps).text(width);
    let fits = |text: &String| width.is_none_or(|width| text.lines().all(|line| line.chars().count() <= width));
    (STEPS_MIN..=STEPS_MAX).rev().map(text).find(fits).unwrap_or_else(|| text(STEPS_MIN))
}

/// A row for each budget, pool and step. Times are UTC's; what is not known is empty.
fn csv(usage: &Usage) -> String {
    let mut text = "budget,pool,from,delivered_gpu_hours,owed_gpu_hours\n".to_owned();
    for row in &usage.budgets {
        for step in &row.steps {
            let from = Timestamp::from_millisecond(step.from_ms).map_or_else(|_| step.from_ms.to_string(), |at| at.to_string());
            let owed = step.owed_gpu_hours.map_or(String::new(), |owed| owed.to_string());
            text += &format!("{},{},{from},{},{owed}\n", row.budget, row.pool, step.delivered_gpu_hours);
        }
    }
    text
}

fn table(usage: &Usage, steps: usize) -> Table {
    let mut table = Table::new(&[
        ("budget", Column::Words),
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
            chart(&row.steps, steps),
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
fn chart(steps: &[UsageStep], count: usize) -> String {
    let most = steps.iter().map(|step| step.delivered_gpu_hours).fold(0.0, f64::max);
    let level = |step: &UsageStep| match step.delivered_gpu_hours {
        some if some > 0.0 => LEVELS[((some / most * 8.0).round() as usize).clamp(1, 8)],
        _ => LEVELS[0],
    };
    steps[steps.len().saturating_sub(count)..].iter().map(level).collect()
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
        let text = fitting(&usage, None);
        assert_eq!(text.lines().last(), Some("lab/nlp  gpu    60 %      90 %    50         48   95.5 %   █▂"), "{text}");
    }

    #[test]
    fn the_chart_makes_room_for_names() {
        let mut row = usage();
        row.budget = "lab/language/pretraining".into();
        row.steps = vec![row.steps[1].clone(); 30];
        let usage = Usage { from_ms: 0, to_ms: 30 * 86_400_000, step_ms: 86_400_000, budgets: vec![row] };
        for width in [80, 90, 100] {
            let text = fitting(&usage, Some(width));
            assert!(text.contains("lab/language/pretraining  gpu") && text.lines().all(|line| line.chars().count() <= width), "{text}");
        }
        assert!(fitting(&usage, Some(40)).contains("lab/language/pretraining  gpu"));
    }

    #[test]
    fn a_sheet_has_a_row_a_step() {
        let usage = Usage { from_ms: 0, to_ms: 3 * 86_400_000, step_ms: 86_400_000, budgets: vec![usage()] };
        let text = csv(&usage);
        assert_eq!(text.lines().nth(2), Some("lab/nlp,gpu,1970-01-01T00:00:00Z,40,40"), "{text}");
        assert_eq!(text.lines().count(), 4);
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
        assert_eq!(chart(&none.steps, STEPS_MAX), " ");
        assert!(bars(&none, 3_600_000).ends_with(" 0"));
    }
}
