//! Time limits against run times.

use super::{Log, Tally, part_of};
use crate::percentile::nearest_rank;
use crate::trace::outcome::Outcome;
use serde::Serialize;

/// What jobs with a time limit made of it: those that ran and ended.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Limits {
    /// How many there are.
    pub jobs: u64,
    /// How many ran and ended without one.
    pub without: u64,
    /// One in ten used at most this part of its limit.
    pub used_p10: f64,
    /// Half.
    pub used_p50: f64,
    /// Nine in ten.
    pub used_p90: f64,
    /// Jobs that used less than a tenth of it.
    pub under_tenth: u64,
    /// Of all time that limits asked for, the part that was used.
    pub used_of_asked: f64,
    /// Jobs that reached it.
    pub reached: u64,
    /// Their hours.
    pub reached_hours: f64,
    /// Jobs that completed in its last tenth.
    pub close: u64,
}

/// `None` where no job has one.
pub(super) fn of(log: &Log<'_>) -> Option<Limits> {
    let (mut used, mut without, mut close) = (Vec::new(), 0, 0);
    let [mut reached, mut ran, mut asked] = [Tally::default(); 3];
    for row in log.rows().filter(|row| row.work_ms > 0 && !matches!(row.outcome, Outcome::Running | Outcome::Waiting)) {
        if row.limit_ms <= 0 {
            without += 1;
            continue;
        }
        // Whole ten-thousandths, so that they can be sorted.
        let (ran_ms, time) = if row.limit_of_attempt { (row.last_ms(), log.last_time(row)) } else { (row.work_ms, log.time(row)) };
        let part = u64::try_from(i128::from(ran_ms) * 10_000 / i128::from(row.limit_ms)).unwrap_or(u64::MAX);
        used.push(part);
        ran.add(time);
        asked.add(u128::from(log.size(row)) * u128::from(row.limit_ms.unsigned_abs()));
        if row.outcome == Outcome::TimedOut {
            reached.add(time);
        }
        close += u64::from(row.outcome == Outcome::Completed && part >= 9000);
    }
    used.sort_unstable();
    let at = |percent| Some(nearest_rank(&used, percent)? as f64 / 10_000.0);
    Some(Limits {
        jobs: used.len() as u64,
        without,
        used_p10: at(10)?,
        used_p50: at(50)?,
        used_p90: at(90)?,
        under_tenth: used.partition_point(|&part| part < 1000) as u64,
        used_of_asked: part_of(ran.hours(), asked.hours()),
        reached: reached.jobs,
        reached_hours: reached.hours(),
        close,
    })
}
