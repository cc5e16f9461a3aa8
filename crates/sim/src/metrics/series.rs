//! The same figures over time and by rank, for pictures: what the summary sums up, hour by hour and workload by workload.

use super::delivery::Meter;
use super::figures::arrears_by_hour;
use super::hours::{Fine, Hour};
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
        let by_pool: Vec<(f64, Vec<&Meter>)> =
            self.counted().map(|books| (f64::from(books.nodes.all().0), books.delivery.in_tree_order())).collect();
        let budgets = by_pool.first().map_or(0, |(_, meters)| meters.len());
        let of_all_pools = |place: usize| by_pool.iter().map(|(gpus, meters)| (*gpus, meters[place])).collect::<Vec<_>>();
        (0..budgets).map(|place| self.one_series(&of_all_pools(place))).collect()
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

    /// One budget by its meter in each pool, with the pool's GPUs.
    fn one_series(&self, meters: &[(f64, &Meter)]) -> BudgetSeries {
        let last = self.last_hour();
        let hours = meters.iter().map(|(_, meter)| meter.hours.len()).max().unwrap_or(0);
        let gpus = |of: fn(&Hour) -> Fine| {
            let at = |index| meters.iter().filter_map(|(_, meter)| meter.hours.get(index)).map(|hour| of(hour).0).sum::<i128>();
            let length = |index| if index + 1 == hours { last } else { HOUR };
            (0..hours).map(|index| at(index) as f64 / Claim::WHOLE.0 as f64 / length(index).0 as f64).collect()
        };
        let claimed: Vec<f64> = meters.iter().map(|(gpus, meter)| gpus * meter.claim.0 as f64 / Claim::WHOLE.0 as f64).collect();
        let by_pool: Vec<_> = meters.iter().map(|(_, meter)| arrears_by_hour(&meter.hours, last)).collect();
        // In hours of the whole claim: each pool's arrears count as much as the claim there does.
        let arrears = |index: usize| {
            let known = by_pool.iter().zip(&claimed).filter_map(|(hours, gpus)| Some((hours.get(index).copied()?? as f64 * gpus, gpus)));
            let (sum, gpus) = known.fold((0.0, 0.0), |(sum, all), (part, gpus)| (sum + part, all + gpus));
            (0.0 < gpus).then(|| sum / gpus / HOUR_MS)
        };
        BudgetSeries {
            path: meters[0].1.path.clone(),
            leaf: meters[0].1.children.is_empty(),
            claim: claimed.iter().sum::<f64>() / meters.iter().map(|(gpus, _)| gpus).sum::<f64>().max(1.0),
            owed_gpus: gpus(|hour| hour.owed),
            delivered_gpus: gpus(|hour| Fine::of(hour.delivered)),
            arrears_claim_hours: (0..hours).map(arrears).collect(),
        }
    }
}
