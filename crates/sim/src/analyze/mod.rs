//! What became of a log's jobs: what completed, what was lost, by whom and at what, and what would save most.
//!
//! What counts as lost:
//! - All the time of a job that failed, ran out of memory, reached its time limit, or ended with its node or by a preemption for good. Some of
//!   it may have left a checkpoint or a result; no log knows, so this is the most that can have been lost.
//! - Of a job that was preempted or requeued and went on, what its earlier attempts lost, as far as the log tells ([`Row::redone_ms`]).
//! - What somebody cancelled stands apart and is never in the sum: much of it is meant.
//!
//! What still ran or waited when the log was written, and what a log does not tell the end of, is neither lost nor completed.

mod families;
mod findings;
mod lengths;
mod limits;
mod loss;
mod owners;
mod rate;
#[cfg(test)]
mod tests;
mod waits;
pub mod whatif;

use crate::trace::outcome::Outcome;
use crate::trace::overview::{Bad, OutcomePart, Part, Reason};
use crate::trace::{Row, Trace, tells_outcomes};
use serde::Serialize;

pub use families::{Death, Families, FamilyLoss};
pub use findings::{Finding, Kind};
pub use lengths::{Length, Period};
pub use limits::Limits;
pub use loss::{Cause, CauseLoss};
pub use owners::{Owner, Owners};
pub use rate::Rate;
pub use waits::SizeWait;

const HOUR_MS: f64 = 3_600_000.0;

/// What became of a log's jobs.
#[derive(Clone, Debug, Serialize)]
pub struct Analysis {
    /// The form it was read as.
    pub form: String,
    /// What the file says about itself.
    pub about: Vec<String>,
    /// The first arrival, ms since 1970 by the file's own clock; `null` where it has no dates.
    pub first_unix_ms: Option<i64>,
    /// From the first arrival to the last end, days.
    pub span_days: f64,
    /// What its hours are hours of.
    pub unit: Unit,
    /// Jobs, those that never ran included.
    pub jobs: u64,
    /// Those of them that never ran.
    pub never_ran: u64,
    /// The hours of all.
    pub hours: f64,
    /// Jobs without GPUs beside such with GPUs, and their CPU-hours; they are in no other figure.
    pub without_gpus: Part,
    /// Whether the log tells how jobs ended, as far as any did; if not, nothing can be said of completion and loss.
    pub tells_outcomes: bool,
    /// How they ended.
    pub outcomes: Vec<OutcomePart>,
    /// Of those that ran and ended; `null` of none, and where the log does not tell how.
    pub completion: Option<Completion>,
    /// By cause, the largest first; what was cancelled last.
    pub lost: Vec<CauseLoss>,
    /// The hours of all causes but cancellation.
    pub lost_hours: f64,
    /// Whether the log tells what preempted work had banked.
    pub tells_banked: bool,
    /// Teams (accounts, budgets), those that lost most first.
    pub budgets: Owners,
    /// The same of users; `null` where the log names none.
    pub users: Option<Owners>,
    /// Attempts at the same thing.
    pub families: Families,
    /// Time limits against run times; `null` where no job has one.
    pub limits: Option<Limits>,
    /// From arrival to start, by size; empty where the log does not tell starts.
    pub waits: Vec<SizeWait>,
    /// By how long jobs ran.
    pub lengths: Vec<Length>,
    /// In equal parts of the span.
    pub periods: Vec<Period>,
    /// What would save most, the largest first, at most five. They overlap: their sum is no figure.
    pub findings: Vec<Finding>,
    /// Records that were read and are no job of their own.
    pub skipped: Vec<Reason>,
    /// Records of which a part was settled by a rule.
    pub ruled: Vec<Reason>,
    /// Records that cannot be read.
    pub bad_rows: u64,
    /// The first of them.
    pub bad_examples: Vec<Bad>,
}

/// What hours are hours of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// GPUs.
    Gpu,
    /// CPUs: the log has no GPUs.
    Cpu,
}

impl Unit {
    /// `GPU`.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Gpu => "GPU",
            Unit::Cpu => "CPU",
        }
    }
}

/// How much of what ran and ended was completed.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Completion {
    /// Of the jobs.
    pub jobs: Rate,
    /// Of their hours.
    pub hours: f64,
    /// Of the jobs that nobody cancelled.
    pub kept_jobs: Rate,
    /// Of their hours.
    pub kept_hours: f64,
}

/// A sum of jobs and their time.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    jobs: u64,
    ms: u128,
}

impl Tally {
    fn add(&mut self, ms: u128) {
        self.jobs += 1;
        self.ms += ms;
    }

    fn hours(self) -> f64 {
        self.ms as f64 / HOUR_MS
    }

    fn part(self) -> Part {
        Part { jobs: self.jobs, gpu_hours: self.hours() }
    }
}

/// A trace with what its hours are hours of.
struct Log<'t> {
    trace: &'t Trace,
    /// Whether GPUs are counted, and jobs without them left aside.
    of_gpus: bool,
}

impl Log<'_> {
    /// The jobs that count.
    fn rows(&self) -> impl Iterator<Item = &Row> {
        self.trace.rows.iter().filter(|row| !self.of_gpus || row.gpus > 0)
    }

    /// Its GPUs, or CPUs.
    fn size(&self, row: &Row) -> u64 {
        if self.of_gpus { row.all_gpus() } else { u64::from(row.cpus) }
    }

    /// The same without what its earlier attempts lost.
    fn last_time(&self, row: &Row) -> u128 {
        self.time(row) - loss::redone(self, row)
    }

    /// Its GPU time, or CPU time, ms.
    fn time(&self, row: &Row) -> u128 {
        u128::from(self.size(row)) * u128::from(row.work_ms.unsigned_abs())
    }
}

/// Whether it ran, and the log tells how it ended.
fn is_attempt(row: &Row) -> bool {
    row.work_ms > 0 && !matches!(row.outcome, Outcome::Unknown | Outcome::Running | Outcome::Waiting)
}

/// A part of a whole; 0 of nothing.
fn part_of(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

impl Analysis {
    /// Looks through a whole trace. It should have been read with jobs that need no GPUs, so that those can be told.
    pub fn of(trace: &Trace) -> Analysis {
        let log = Log { trace, of_gpus: trace.rows.iter().any(|row| row.gpus > 0) };
        let (mut all, mut aside) = (Tally::default(), Tally::default());
        log.rows().for_each(|row| all.add(log.time(row)));
        trace.rows.iter().filter(|row| log.of_gpus && row.gpus == 0).for_each(|row| aside.add(row.cpu_ms()));
        let lost = loss::by_cause(&log);
        let lost_hours = lost.iter().filter(|one| one.cause != Cause::Cancelled).map(|one| one.hours).sum();
        let span_ms = log.rows().map(Row::over_ms).max().unwrap_or(0).max(1);
        let (families, limits) = (families::Found::of(&log), limits::of(&log));
        let owners = |names: &[String], of: fn(&Row) -> u32| owners::of(&log, names, of);
        let (budgets, users) = (owners(&trace.teams, |row| row.team), trace.names_users.then(|| owners(&trace.users, |row| row.user)));
        let findings = findings::Sources {
            log: &log,
            lost: &lost,
            hours: all.hours(),
            families: &families,
            budgets: &budgets,
            users: users.as_ref(),
            limits: limits.as_ref(),
        };
        let reason = |one: &crate::trace::Counted| Reason { reason: one.reason.into(), rows: one.rows, first_line: one.first_line };
        Analysis {
            form: trace.form.into(),
            about: trace.about.clone(),
            first_unix_ms: trace.epoch_ms,
            span_days: span_ms as f64 / HOUR_MS / 24.0,
            unit: if log.of_gpus && !trace.counts_processors { Unit::Gpu } else { Unit::Cpu },
            jobs: all.jobs,
            never_ran: log.rows().filter(|row| row.work_ms == 0).count() as u64,
            hours: all.hours(),
            without_gpus: aside.part(),
            tells_outcomes: tells_outcomes(log.rows()),
            outcomes: outcomes(&log),
            completion: completion(&log),
            lost_hours,
            tells_banked: trace.form == "event log",
            findings: findings.find(),
            lost,
            budgets,
            users,
            families: families.shown(&log),
            limits,
            waits: waits::of(&log),
            lengths: lengths::of(&log),
            periods: lengths::periods(&log, span_ms),
            skipped: trace.skipped.iter().map(reason).collect(),
            ruled: trace.ruled.iter().map(reason).collect(),
            bad_rows: trace.bad_rows,
            bad_examples: trace.bad_examples.iter().map(|bad| Bad { line: bad.line, reason: bad.reason.clone() }).collect(),
        }
    }
}

fn outcomes(log: &Log<'_>) -> Vec<OutcomePart> {
    let of = |outcome: Outcome| {
        let mut tally = Tally::default();
        // What still runs or waits is open but for the attempts that it has lost already.
        let is_open = matches!(outcome, Outcome::Running | Outcome::Waiting | Outcome::Unknown);
        let time = |row: &Row| if is_open { log.last_time(row) } else { log.time(row) };
        log.rows().filter(|row| row.outcome == outcome).for_each(|row| tally.add(time(row)));
        OutcomePart { outcome, part: tally.part() }
    };
    Outcome::ALL.into_iter().map(of).filter(|outcome| outcome.part.jobs > 0).collect()
}

fn completion(log: &Log<'_>) -> Option<Completion> {
    let [mut completed, mut ended, mut kept] = [Tally::default(); 3];
    for row in log.rows().filter(|row| is_attempt(row)) {
        let time = log.time(row);
        ended.add(time);
        if row.outcome != Outcome::Cancelled {
            kept.add(time);
        }
        if row.outcome == Outcome::Completed {
            completed.jobs += 1;
            completed.ms += log.last_time(row);
        }
    }
    (ended.jobs > 0).then(|| Completion {
        jobs: Rate::of(completed.jobs, ended.jobs),
        hours: part_of(completed.hours(), ended.hours()),
        kept_jobs: Rate::of(completed.jobs, kept.jobs),
        kept_hours: part_of(completed.hours(), kept.hours()),
    })
}
