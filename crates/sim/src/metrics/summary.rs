//! From exact sums to the result: the only place where figures become floating point.

use super::delivery::Meter;
use super::estimates::EstimateLog;
use super::figures::{Score, Sums, arrears};
use super::hours::Fine;
use super::promises::PromiseLog;
use super::totals::Totals;
use super::waits::{SlowdownLog, WaitLog};
use super::{Books, Metrics, PoolWindow, Truth};
use crate::percentile::nearest_rank;
use crate::result::{Arrears, BudgetResult, Estimates, PolicyResult, PoolResult, Promises, Slowdown, Slowdowns, Waits, WaitsByClass};
use std::time::Duration;
use stipend_core::quantity::{Claim, GpuMs, Span};

impl Metrics {
    /// The result, once the run has ended; `wall` is how long it took.
    pub fn result(&self, policy: &str, wall: Duration) -> PolicyResult {
        let leaves: Vec<&Meter> = self.counted().flat_map(Books::leaves).collect();
        let owed = Fine(self.counted().map(|books| books.owed().0).sum());
        let delivered = Fine(self.counted().map(|books| books.delivered().0).sum());
        let bound: i128 = self.counted().map(|books| Fine::of(books.totals.fillable).0.min(books.owed().0)).sum();
        let total = |score: fn(&[_]) -> Score| leaves.iter().map(|meter| score(&meter.hours)).fold(Score::default(), Score::plus);
        let (totals, truth) = self.counted().map(|books| (books.totals, books.truth)).fold(Default::default(), Books::plus);
        let counts = &self.counts;
        let lost = truth.lost_allocated + truth.lost_unallocated;
        let of_capacity = |part: GpuMs| fraction(part.0, totals.capacity.0);
        PolicyResult {
            policy: policy.to_owned(),
            wall_seconds: round(wall.as_secs_f64(), 3),
            demand_ratio: of_capacity(totals.demand),
            occupancy: of_capacity(totals.allocated + totals.unallocated),
            useful_fraction: of_capacity(truth.useful),
            lost_fraction: of_capacity(lost),
            lost_allocated_fraction: of_capacity(truth.lost_allocated),
            lost_unallocated_fraction: of_capacity(truth.lost_unallocated),
            allocated_fraction: of_capacity(totals.allocated),
            unallocated_fraction: of_capacity(totals.unallocated),
            owed_bound: ratio(bound, owed.0).unwrap_or(1.0),
            owed_gpu_hours: fine_gpu_hours(owed),
            delivered_gpu_hours: fine_gpu_hours(delivered),
            delivered_of_owed: part(total(Score::period)),
            delivered_of_owed_daily: part(total(Score::daily)),
            budgets: self.budgets(),
            pools: self.books.iter().zip(&self.window.pools).map(|(books, pool)| books.result(pool)).collect(),
            arrears_claim_hours: self.arrears(&leaves),
            slowdown: Slowdowns {
                debug: slowdown(&self.waits.slowdown_debug),
                medium: slowdown(&self.waits.slowdown_medium),
                largest: slowdown(&self.waits.slowdown_largest),
            },
            waits: self.waits(),
            gangs_over_claim: waits(self.waits.over_claim.clone()),
            preemptions: counts.preemptions,
            preemptions_allocated: counts.preemptions_allocated,
            lost_gpu_hours: gpu_hours(lost),
            useful_gpu_hours: gpu_hours(truth.useful),
            promises: promises(&self.promises),
            estimates: estimates(&self.estimates),
            submitted: counts.submitted,
            completed: counts.completed,
            failed: counts.failed,
        }
    }

    /// How many days were measured.
    pub fn measured_days(&self) -> f64 {
        round(self.measured().0 as f64 / (24.0 * HOUR_MS), 6)
    }

    /// Every budget over all pools, each of which keeps its own account of it.
    fn budgets(&self) -> Vec<BudgetResult> {
        let by_pool: Vec<Vec<&Meter>> = self.counted().map(|books| books.delivery.in_tree_order()).collect();
        let first = by_pool.first().map_or(0, Vec::len);
        (0..first).map(|place| self.budget(&by_pool.iter().map(|meters| meters[place]).collect::<Vec<_>>())).collect()
    }

    /// One budget, by its meter in each pool. What one pool gives beyond what is owed there makes up for nothing in another.
    fn budget(&self, meters: &[&Meter]) -> BudgetResult {
        let sums: Vec<Sums> = meters.iter().map(|meter| Sums::of(&meter.hours)).collect();
        let sum = |part: fn(&Sums) -> i128| fine_gpu_hours(Fine(sums.iter().map(part).sum()));
        let score = |score: fn(&[_]) -> Score| meters.iter().map(|meter| score(&meter.hours)).fold(Score::default(), Score::plus);
        let gpus: Vec<i128> = self.counted().map(|books| books.nodes.all().0.into()).collect();
        let claimed: i128 = meters.iter().zip(&gpus).map(|(meter, gpus)| i128::from(meter.claim.0) * gpus).sum();
        let demand: i128 = meters.iter().map(|meter| i128::from(meter.demand.0)).sum();
        let all: i128 = gpus.iter().sum::<i128>().max(1);
        BudgetResult {
            path: meters[0].path.clone(),
            leaf: meters[0].children.is_empty(),
            claim: round(claimed as f64 / (all * i128::from(Claim::WHOLE.0)) as f64, 9),
            mean_demand_gpus: round(ratio(demand, self.measured().0.into()).unwrap_or(0.0), 3),
            owed_gpu_hours: sum(|sums| sums.owed.0),
            delivered_gpu_hours: sum(|sums| sums.delivered.0),
            delivered_of_owed: part(score(Score::period)),
            delivered_of_owed_daily: part(score(Score::daily)),
            beyond_owed_gpu_hours: sum(|sums| (sums.delivered.0 - sums.owed.0).max(0)),
            useful_gpu_hours: gpu_hours(GpuMs(meters.iter().map(|meter| meter.useful.0).sum())),
            lapsed_gpu_hours: meters.iter().filter_map(|meter| meter.lapsed).reduce(|sum, lapsed| sum + lapsed).map(gpu_hours),
        }
    }

    fn arrears(&self, leaves: &[&Meter]) -> Arrears {
        let last = self.last_hour();
        let mut samples: Vec<i64> = leaves.iter().flat_map(|meter| arrears(&meter.hours, last)).collect();
        samples.sort_unstable();
        let at = |percent| nearest_rank(&samples, percent).map(|ms| round(ms as f64 / HOUR_MS, 3));
        Arrears { p50: at(50), p90: at(90), max: at(100) }
    }

    /// How long the last hour bucket is.
    pub(super) fn last_hour(&self) -> Span {
        match self.measured().0 % super::HOUR.0 {
            0 => super::HOUR,
            rest => Span(rest),
        }
    }

    fn waits(&self) -> WaitsByClass {
        let logs = &self.waits;
        WaitsByClass {
            all: waits(WaitLog::together(&[&logs.debug, &logs.medium, &logs.largest])),
            debug: waits(logs.debug.clone()),
            medium: waits(logs.medium.clone()),
            largest: waits(logs.largest.clone()),
            unallocated: waits(logs.unallocated.clone()),
            requeued: waits(logs.requeued.clone()),
        }
    }
}

impl Books {
    fn leaves(&self) -> impl Iterator<Item = &Meter> {
        self.delivery.in_tree_order().into_iter().filter(|meter| meter.children.is_empty())
    }

    fn owed(&self) -> Fine {
        Fine(self.leaves().map(|meter| Sums::of(&meter.hours).owed.0).sum())
    }

    fn delivered(&self) -> Fine {
        Fine(self.leaves().map(|meter| Sums::of(&meter.hours).delivered.0).sum())
    }

    fn plus((totals, truth): (Totals, Truth), (more, true_too): (Totals, Truth)) -> (Totals, Truth) {
        let truth = Truth {
            useful: truth.useful + true_too.useful,
            lost_allocated: truth.lost_allocated + true_too.lost_allocated,
            lost_unallocated: truth.lost_unallocated + true_too.lost_unallocated,
        };
        (totals.plus(&more), truth)
    }

    /// The pool by itself, in what it is counted in.
    fn result(&self, pool: &PoolWindow) -> PoolResult {
        let each = f64::from(pool.cpus_per_gpu.unwrap_or(1));
        let of_capacity = |part: GpuMs| fraction(part.0, self.totals.capacity.0);
        let total = self.leaves().map(|meter| Score::period(&meter.hours)).fold(Score::default(), Score::plus);
        PoolResult {
            pool: pool.name.clone(),
            unit: if pool.cpus_per_gpu.is_some() { "cpu" } else { "gpu" }.into(),
            capacity: self.nodes.all().0 * pool.cpus_per_gpu.unwrap_or(1),
            demand_ratio: of_capacity(self.totals.demand),
            occupancy: of_capacity(self.totals.allocated + self.totals.unallocated),
            useful_fraction: of_capacity(self.truth.useful),
            lost_fraction: of_capacity(self.truth.lost_allocated + self.truth.lost_unallocated),
            owed_hours: round(fine_gpu_hours(self.owed()) * each, 3),
            delivered_hours: round(fine_gpu_hours(self.delivered()) * each, 3),
            delivered_of_owed: part(total),
        }
    }
}

/// Milliseconds in an hour.
pub(super) const HOUR_MS: f64 = 3_600_000.0;

/// `None` where no promise was given.
fn promises(log: &PromiseLog) -> Option<Promises> {
    let mut times = log.waits.clone();
    times.sort_unstable();
    let at = |percent| nearest_rank(&times, percent).map(|wait: Span| wait.0 as f64 / 1000.0);
    (!times.is_empty()).then(|| Promises {
        given: times.len() as u64,
        kept: log.kept,
        early: log.early,
        broken_nodes: log.broken_nodes,
        broken_owner: log.broken_owner,
        broken_policy: log.broken_policy,
        late_max_s: log.late_max.0 as f64 / 1000.0,
        time_to_promise_p50_s: at(50),
        time_to_promise_p90_s: at(90),
    })
}

/// `None` where no estimate was given.
fn estimates(log: &EstimateLog) -> Option<Estimates> {
    (log.given > 0).then_some(Estimates { given: log.given, held: log.held })
}

fn waits(mut log: WaitLog) -> Waits {
    log.waits.sort_unstable();
    let at = |percent| nearest_rank(&log.waits, percent).map(|wait: Span| wait.0 as f64 / 1000.0);
    Waits { count: log.waits.len() as u64, never_started: log.never_started, p50_s: at(50), p90_s: at(90), p99_s: at(99), max_s: at(100) }
}

fn slowdown(log: &SlowdownLog) -> Slowdown {
    let mut values = log.0.clone();
    values.sort_unstable();
    let at = |percent| nearest_rank(&values, percent).map(|ppm| round(ppm as f64 / 1e6, 3));
    Slowdown { count: values.len() as u64, p50: at(50), p90: at(90) }
}

/// What was met of what was owed; `None` where nothing was owed.
pub(super) fn part(score: Score) -> Option<f64> {
    ratio(score.met, score.owed)
}

fn fraction(part: i64, whole: i64) -> f64 {
    ratio(part.into(), whole.into()).unwrap_or(0.0)
}

/// `part / whole` to six decimals, `None` of nothing.
fn ratio(part: i128, whole: i128) -> Option<f64> {
    (whole != 0).then(|| round(part as f64 / whole as f64, 6))
}

fn gpu_hours(time: GpuMs) -> f64 {
    round(time.0 as f64 / HOUR_MS, 3)
}

fn fine_gpu_hours(time: Fine) -> f64 {
    round(time.0 as f64 / (Claim::WHOLE.0 as f64 * HOUR_MS), 3)
}

fn round(value: f64, decimals: i32) -> f64 {
    let scale = 10_f64.powi(decimals);
    (value * scale).round() / scale
}
