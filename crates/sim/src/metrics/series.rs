//! The same figures over time and by rank, for pictures: what the summary sums up, hour by hour and workload by workload.

use super::delivery::{Fine, Meter};
use super::figures::arrears_by_hour;
use super::summary::HOUR_MS;
use super::waits::{SlowdownLog, WaitLog};
use super::{HOUR, Metrics};
use stipend_core::quantity::{Claim, Span};

/// So many points draw a distribution.
const POINTS: usize = 400;

/// One budget, hour by hour from the end of the warm-up on.
#[derive(Clone, Debug, PartialEq)]
pub struct BudgetSeries {
    /// Its full path.
    pub path: String,
    /// Whether work is charged to it directly.
    pub leaf: bool,
    /// The fraction of the pool that it is funded with, at the end.
    pub claim: f64,
    /// GPUs that it was owed, the mean of each hour.
    pub owed_gpus: Vec<f64>,
    /// GPUs that it got, the mean of each hour; a refund of an earlier hour may take it below zero.
    pub delivered_gpus: Vec<f64>,
    /// Arrears at the end of each hour in hours of its claim; `None` where it had no claim.
    pub arrears_claim_hours: Vec<Option<f64>>,
}

/// A distribution as some of its values in ascending order, evenly spaced by rank, with the least and the greatest.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ranks {
    /// How many values there are.
    pub count: u64,
    /// How many of them are waits that had not ended.
    pub never_started: u64,
    /// At most 400 of them: milliseconds of a wait, millionths of a slowdown.
    pub values: Vec<u64>,
}

impl Ranks {
    fn of(mut values: Vec<u64>, never_started: u64) -> Ranks {
        values.sort_unstable();
        let count = values.len();
        if POINTS < count {
            values = (0..POINTS).map(|point| values[point * (count - 1) / (POINTS - 1)]).collect();
        }
        Ranks { count: count as u64, never_started, values }
    }

    fn waits(log: &WaitLog) -> Ranks {
        let ms = |wait: &Span| u64::try_from(wait.0).unwrap_or(0);
        Ranks::of(log.waits.iter().map(ms).collect(), log.never_started)
    }

    fn slowdowns(log: &SlowdownLog) -> Ranks {
        Ranks::of(log.0.clone(), 0)
    }
}

impl Metrics {
    /// Every budget over time, parents before children.
    pub fn series(&self) -> Vec<BudgetSeries> {
        self.delivery.in_tree_order().into_iter().map(|meter| self.one_series(meter)).collect()
    }

    /// First waits by class, and waits after a requeue; a wait that never ended counts as long as it lasted, as in the result.
    pub fn wait_ranks(&self) -> Vec<(&'static str, Ranks)> {
        let logs = &self.waits;
        let classes = [
            ("debug", &logs.debug),
            ("medium", &logs.medium),
            ("largest", &logs.largest),
            ("unallocated", &logs.unallocated),
            ("requeued", &logs.requeued),
        ];
        classes.into_iter().map(|(class, log)| (class, Ranks::waits(log))).collect()
    }

    /// Slowdowns by class.
    pub fn slowdown_ranks(&self) -> Vec<(&'static str, Ranks)> {
        let logs = &self.waits;
        let classes = [("debug", &logs.slowdown_debug), ("medium", &logs.slowdown_medium), ("largest", &logs.slowdown_largest)];
        classes.into_iter().map(|(class, log)| (class, Ranks::slowdowns(log))).collect()
    }

    fn one_series(&self, meter: &Meter) -> BudgetSeries {
        let last = self.last_hour();
        let gpus = |of: fn(&super::delivery::Hour) -> Fine| {
            let hours = meter.hours.iter().enumerate();
            let length = |index| if index + 1 == meter.hours.len() { last } else { HOUR };
            hours.map(|(index, hour)| of(hour).0 as f64 / Claim::WHOLE.0 as f64 / length(index).0 as f64).collect()
        };
        let arrears = arrears_by_hour(&meter.hours, last).into_iter();
        BudgetSeries {
            path: meter.path.clone(),
            leaf: meter.children.is_empty(),
            claim: meter.claim.0 as f64 / Claim::WHOLE.0 as f64,
            owed_gpus: gpus(|hour| hour.owed),
            delivered_gpus: gpus(|hour| Fine::of(hour.delivered)),
            arrears_claim_hours: arrears.map(|ms| ms.map(|ms| ms as f64 / HOUR_MS)).collect(),
        }
    }
}
