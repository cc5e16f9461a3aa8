//! From arrival to start, by size.

use super::Log;
use crate::family::size_class;
use crate::percentile::nearest_rank;
use crate::trace::outcome::Outcome;
use serde::Serialize;
use std::collections::BTreeMap;

/// The waits of jobs of similar size; 0 where none started.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SizeWait {
    /// The least GPUs (or CPUs).
    pub from: u64,
    /// The most.
    pub to: u64,
    /// How many started.
    pub started: u64,
    /// How many still waited, or were never started.
    pub waiting: u64,
    /// Half of them waited at most this, s.
    pub p50_s: f64,
    /// Nine in ten.
    pub p90_s: f64,
    /// 99 in 100.
    pub p99_s: f64,
    /// The longest.
    pub max_s: f64,
}

/// By size class; none where the log does not tell starts.
pub(super) fn of(log: &Log<'_>) -> Vec<SizeWait> {
    let mut classes: BTreeMap<u64, (Vec<i64>, u64)> = BTreeMap::new();
    for row in log.rows() {
        let (waits, waiting) = classes.entry(size_class(log.size(row))).or_default();
        match row.start_ms {
            Some(start) => waits.push(start.saturating_sub(row.arrival_ms()).max(0)),
            None => *waiting += u64::from(row.outcome == Outcome::Waiting),
        }
    }
    if classes.values().all(|(waits, _)| waits.is_empty()) {
        return Vec::new();
    }
    classes.into_iter().map(class).filter(|class| class.started + class.waiting > 0).collect()
}

/// The waits in ms of one size class, and how many of it never started.
pub(super) fn class((to, (mut waits, waiting)): (u64, (Vec<i64>, u64))) -> SizeWait {
    waits.sort_unstable();
    let at = |percent| nearest_rank(&waits, percent).unwrap_or(0) as f64 / 1000.0;
    let started = waits.len() as u64;
    SizeWait { from: to / 2 + 1, to, started, waiting, p50_s: at(50), p90_s: at(90), p99_s: at(99), max_s: at(100) }
}
