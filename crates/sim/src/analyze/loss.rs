//! What was lost, and by what.

use super::{HOUR_MS, Log, Tally, part_of};
use crate::trace::Row;
use crate::trace::outcome::Outcome;
use serde::Serialize;

/// Why time led to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// It ended with an error.
    Failed,
    /// It used more memory than it had asked for.
    OutOfMemory,
    /// It reached its time limit.
    TimedOut,
    /// Its node failed: what did not come back, and what earlier attempts lost.
    NodeFailed,
    /// Others took its place: what did not come back, and what earlier attempts lost.
    Preempted,
    /// It was requeued for another reason: what earlier attempts lost.
    Requeued,
    /// Somebody withdrew it while it ran: much of it is meant.
    Cancelled,
}

impl Cause {
    /// All, as they are listed.
    pub const ALL: [Cause; 7] =
        [Cause::Failed, Cause::OutOfMemory, Cause::TimedOut, Cause::NodeFailed, Cause::Preempted, Cause::Requeued, Cause::Cancelled];

    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Cause::Failed => "failed",
            Cause::OutOfMemory => "out of memory",
            Cause::TimedOut => "timed out",
            Cause::NodeFailed => "node failed",
            Cause::Preempted => "preempted",
            Cause::Requeued => "requeued",
            Cause::Cancelled => "cancelled",
        }
    }

    /// What ended the whole job, if it led to nothing.
    pub(super) fn of(row: &Row) -> Option<Cause> {
        match row.outcome {
            _ if row.work_ms == 0 => None,
            Outcome::Failed => Some(Cause::Failed),
            Outcome::OutOfMemory => Some(Cause::OutOfMemory),
            Outcome::TimedOut => Some(Cause::TimedOut),
            Outcome::NodeFailed => Some(Cause::NodeFailed),
            Outcome::Preempted => Some(Cause::Preempted),
            Outcome::Cancelled => Some(Cause::Cancelled),
            Outcome::Completed | Outcome::Running | Outcome::Waiting | Outcome::Unknown => None,
        }
    }
}

/// Time that one cause took.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct CauseLoss {
    /// Which.
    pub cause: Cause,
    /// Jobs that it took time from; one that was requeued and then failed is counted under both.
    pub jobs: u64,
    /// Hours.
    pub hours: f64,
    /// Of the hours of all jobs.
    pub of_hours: f64,
}

/// Of a job's time what its earlier attempts lost.
pub(super) fn redone(log: &Log<'_>, row: &Row) -> u128 {
    u128::from(log.size(row)) * u128::from(row.redone_ms.clamp(0, row.work_ms.max(0)).unsigned_abs())
}

/// What of a job's time was lost, by cause: its end, and its earlier attempts. One cause for one job counts once.
pub(super) fn losses(log: &Log<'_>, row: &Row) -> impl Iterator<Item = (Cause, u128)> {
    let redone = redone(log, row);
    let of = |ms: i64, most: u128| (u128::from(log.size(row)) * u128::from(ms.max(0).unsigned_abs())).min(most);
    let nodes = of(row.redone_nodes_ms, redone);
    let preempted = of(row.redone_preempted_ms, redone - nodes);
    let mut earlier = [(Cause::NodeFailed, nodes), (Cause::Preempted, preempted), (Cause::Requeued, redone - nodes - preempted)];
    let mut last = Cause::of(row).map(|cause| (cause, log.last_time(row)));
    if let Some((cause, ms)) = &mut last {
        for (_, same) in earlier.iter_mut().filter(|(earlier, _)| earlier == cause) {
            *ms += std::mem::take(same);
        }
    }
    last.into_iter().chain(earlier.into_iter().filter(|(_, ms)| *ms > 0))
}

/// What of a job's time was lost, but for cancellation.
pub(super) fn lost(log: &Log<'_>, row: &Row) -> u128 {
    losses(log, row).filter(|(cause, _)| *cause != Cause::Cancelled).map(|(_, ms)| ms).sum()
}

/// All losses by cause, the largest first; what was cancelled last.
pub(super) fn by_cause(log: &Log<'_>) -> Vec<CauseLoss> {
    let (mut tallies, mut all) = ([Tally::default(); Cause::ALL.len()], 0);
    for row in log.rows() {
        all += log.time(row);
        losses(log, row).for_each(|(cause, ms)| tallies[cause as usize].add(ms));
    }
    let loss = |cause: Cause| {
        let tally = tallies[cause as usize];
        CauseLoss { cause, jobs: tally.jobs, hours: tally.hours(), of_hours: part_of(tally.hours(), all as f64 / HOUR_MS) }
    };
    let mut found: Vec<CauseLoss> = Cause::ALL.into_iter().map(loss).filter(|loss| loss.jobs > 0).collect();
    found.sort_by(|a, b| (a.cause == Cause::Cancelled).cmp(&(b.cause == Cause::Cancelled)).then(b.hours.total_cmp(&a.hours)));
    found
}
