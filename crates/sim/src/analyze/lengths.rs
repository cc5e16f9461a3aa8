//! By how long jobs ran, and over time: what completed and what was lost.

use super::{HOUR_MS, Log, Tally, loss};
use crate::trace::Row;
use crate::trace::outcome::Outcome;
use serde::Serialize;

const MINUTE: i64 = 60_000;

/// Where classes of run times end, ms; the last has no end.
const ENDS: [i64; 6] = [MINUTE, 10 * MINUTE, 60 * MINUTE, 360 * MINUTE, 1440 * MINUTE, i64::MAX];

/// So many equal parts of the span are shown.
const PERIODS: usize = 48;

/// Jobs that ran about as long.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Length {
    /// They ran less than this, s; `null` of the longest.
    pub below_s: Option<f64>,
    /// How many completed.
    pub completed: u64,
    /// How many were lost, but for cancellation.
    pub lost: u64,
    /// How many were cancelled.
    pub cancelled: u64,
    /// Hours of the first.
    pub completed_hours: f64,
    /// Of the second.
    pub lost_hours: f64,
    /// Of the third.
    pub cancelled_hours: f64,
}

/// What ran in one of equal parts of the span, in hours.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Period {
    /// It led to a completion.
    pub completed: f64,
    /// It was lost, but for cancellation.
    pub lost: f64,
    /// It was cancelled.
    pub cancelled: f64,
    /// It still ran when the log was written, or nobody knows.
    pub unknown: f64,
}

/// What became of a job as a whole.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Completed,
    Lost,
    Cancelled,
    Unknown,
}

fn fate(row: &Row) -> Fate {
    match (row.outcome, loss::Cause::of(row)) {
        (Outcome::Completed, _) => Fate::Completed,
        (_, Some(loss::Cause::Cancelled)) => Fate::Cancelled,
        (_, Some(_)) => Fate::Lost,
        (_, None) => Fate::Unknown,
    }
}

/// By classes of run times.
pub(super) fn of(log: &Log<'_>) -> Vec<Length> {
    let mut classes = [[Tally::default(); 4]; ENDS.len()];
    for row in log.rows().filter(|row| row.work_ms > 0) {
        let class = ENDS.partition_point(|&end| end <= row.work_ms).min(ENDS.len() - 1);
        classes[class][fate(row) as usize].add(log.last_time(row));
        classes[class][Fate::Lost as usize].ms += loss::redone(log, row);
    }
    let length = |(end, tallies): (i64, [Tally; 4])| {
        let [completed, lost, cancelled, _] = tallies;
        Length {
            below_s: (end < i64::MAX).then_some(end as f64 / 1000.0),
            completed: completed.jobs,
            lost: lost.jobs,
            cancelled: cancelled.jobs,
            completed_hours: completed.hours(),
            lost_hours: lost.hours(),
            cancelled_hours: cancelled.hours(),
        }
    };
    ENDS.into_iter().zip(classes).map(length).collect()
}

/// Hours in each part of the span. Where the log does not tell when a job started, it counts from its arrival.
pub(super) fn periods(log: &Log<'_>, span_ms: i64) -> Vec<Period> {
    let part_ms = (span_ms as f64 / PERIODS as f64).max(1.0);
    let mut periods = [[0.0; 4]; PERIODS];
    for row in log.rows().filter(|row| row.work_ms > 0) {
        let from = row.start_ms.unwrap_or_else(|| row.arrival_ms()).max(0) as f64;
        // What stood still in between ran on the whole as long as it did.
        let to = row.end_ms.map_or(from + row.work_ms as f64, |end| end as f64).max(from + 1.0);
        // Its earlier attempts are lost whatever came of it; where they lie in between the row does not tell.
        let density = |ms: u128| ms as f64 / (to - from) / HOUR_MS;
        let (own, earlier) = (density(log.last_time(row)), density(loss::redone(log, row)));
        let last = ((to / part_ms) as usize).min(PERIODS - 1);
        for (part, sums) in periods.iter_mut().enumerate().take(last + 1).skip((from / part_ms) as usize) {
            let (begin, end) = (part as f64 * part_ms, (part + 1) as f64 * part_ms);
            let within = (to.min(end) - from.max(begin)).max(0.0);
            sums[fate(row) as usize] += within * own;
            sums[Fate::Lost as usize] += within * earlier;
        }
    }
    periods.into_iter().map(|[completed, lost, cancelled, unknown]| Period { completed, lost, cancelled, unknown }).collect()
}
