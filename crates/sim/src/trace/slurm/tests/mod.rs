//! Logs written by hand, each with one oddity of the real ones.

mod changed;
mod json;
mod nodes;
mod text;
mod values;

use crate::trace::{Reading, Trace};

/// Reads a log.
fn read(log: impl AsRef<[u8]>) -> Trace {
    Trace::read(log.as_ref(), Reading::default()).expect("the form is known")
}

/// The rows in short: team, user, gang, seconds of work, limit in minutes, how it ended.
fn rows(trace: &Trace) -> Vec<String> {
    let shown = trace.rows.iter().map(|row| {
        let (team, user) = (&trace.teams[row.team as usize], &trace.users[row.user as usize]);
        let gang = if row.members > 0 { format!("{}x{}", row.members, row.gpus) } else { row.gpus.to_string() };
        format!("{team} {user} {gang} {}s {}m {}", row.work_ms / 1000, row.limit_ms / 60_000, row.outcome.name())
    });
    shown.collect()
}

/// What was left aside or settled by a rule: how many records, and the beginning of the reason.
fn reasons(trace: &Trace) -> Vec<String> {
    let short = |reason: &str| reason.split(':').next().unwrap_or_default().to_owned();
    trace.skipped.iter().chain(&trace.ruled).map(|counted| format!("{} {}", counted.rows, short(counted.reason))).collect()
}

/// What could not be read.
fn bad(trace: &Trace) -> Vec<String> {
    trace.bad_examples.iter().map(|bad| format!("{}: {}", bad.line, bad.reason)).collect()
}
