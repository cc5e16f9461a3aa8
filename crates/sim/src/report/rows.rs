//! The rows of the table, and the figures that sentences compare: which, in which unit, and which way is better.

use super::cell::{NOTHING, Unit};
use crate::result::{BudgetResult, PolicyResult, Promises, Slowdown, Waits};
use std::cmp::Ordering;

/// A team counts as served when at least this part of what it was owed was delivered.
const SERVED: f64 = 0.95;

/// The most characters of a team's name that a cell has room for.
const NAME_MAX: usize = 14;

/// Which way is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Better {
    Higher,
    Lower,
    /// It describes the run rather than the policy.
    Neither,
}

impl Better {
    /// The better of two first.
    pub(super) fn first(self, a: f64, b: f64) -> Ordering {
        match self {
            Better::Higher => b.total_cmp(&a),
            Better::Lower => a.total_cmp(&b),
            Better::Neither => Ordering::Equal,
        }
    }
}

/// What a row shows of one policy.
#[derive(Clone, Copy)]
pub(super) enum Content {
    Figures(Unit, Better, fn(&PolicyResult) -> Vec<Option<f64>>),
    /// Made of all seeds.
    Text(fn(&[&PolicyResult]) -> String),
}

/// All rows, from the whole down to the details.
pub(super) const ROWS: &[(&str, Content)] = &[
    ("demand / capacity", Content::Figures(Unit::Number, Better::Neither, |p| vec![Some(p.demand_ratio)])),
    ("occupancy", Content::Figures(Unit::Percent, Better::Higher, |p| vec![Some(p.occupancy)])),
    ("useful", Content::Figures(Unit::Percent, Better::Higher, |p| vec![Some(p.useful_fraction)])),
    ("lost", Content::Figures(Unit::Percent, Better::Lower, |p| vec![Some(p.lost_fraction)])),
    ("owed delivered", Content::Figures(Unit::Percent, Better::Higher, |p| vec![p.delivered_of_owed])),
    ("  day by day", Content::Figures(Unit::Percent, Better::Higher, |p| vec![p.delivered_of_owed_daily])),
    ("  worst team", Content::Figures(Unit::Percent, Better::Higher, |p| vec![worst(p)])),
    ("    which is", Content::Text(worst_name)),
    ("  teams >= 95 %", Content::Figures(Unit::Teams, Better::Higher, teams)),
    ("arrears p50/90/max", Content::Figures(Unit::ClaimHours, Better::Lower, arrears)),
    ("wait p50/90/99", Content::Figures(Unit::Seconds, Better::Lower, |p| wait(&p.waits.all))),
    ("  debug", Content::Figures(Unit::Seconds, Better::Lower, |p| wait(&p.waits.debug))),
    ("  medium", Content::Figures(Unit::Seconds, Better::Lower, |p| wait(&p.waits.medium))),
    ("  largest", Content::Figures(Unit::Seconds, Better::Lower, |p| wait(&p.waits.largest))),
    ("  unallocated", Content::Figures(Unit::Seconds, Better::Lower, |p| wait(&p.waits.unallocated))),
    ("  requeued", Content::Figures(Unit::Seconds, Better::Lower, |p| wait(&p.waits.requeued))),
    ("  never started", Content::Figures(Unit::Count, Better::Lower, |p| vec![Some(p.waits.all.never_started as f64)])),
    ("slowdown p50/90", Content::Figures(Unit::Number, Better::Neither, |_| Vec::new())),
    ("  debug", Content::Figures(Unit::Number, Better::Lower, |p| slowdown(&p.slowdown.debug))),
    ("  medium", Content::Figures(Unit::Number, Better::Lower, |p| slowdown(&p.slowdown.medium))),
    ("  largest", Content::Figures(Unit::Number, Better::Lower, |p| slowdown(&p.slowdown.largest))),
    ("promises/kept", Content::Figures(Unit::Count, Better::Neither, promises)),
    ("  given p50/90", Content::Figures(Unit::Seconds, Better::Lower, times_to_promise)),
    ("estimates held", Content::Figures(Unit::Percent, Better::Neither, |p| vec![p.estimates.map(|of| of.held as f64 / of.given as f64)])),
    ("preemptions", Content::Figures(Unit::Count, Better::Lower, |p| vec![Some(p.preemptions as f64)])),
    ("lost GPU-hours", Content::Figures(Unit::GpuHours, Better::Lower, |p| vec![Some(p.lost_gpu_hours)])),
    ("completed", Content::Figures(Unit::Count, Better::Higher, |p| vec![Some(p.completed as f64)])),
    ("wall seconds", Content::Figures(Unit::Number, Better::Lower, |p| vec![Some(p.wall_seconds)])),
];

/// A figure by which policies are compared in words.
pub(super) struct Measure {
    pub name: &'static str,
    pub unit: Unit,
    pub better: Better,
    pub of: fn(&PolicyResult) -> Option<f64>,
}

const fn higher(name: &'static str, unit: Unit, of: fn(&PolicyResult) -> Option<f64>) -> Measure {
    Measure { name, unit, better: Better::Higher, of }
}

const fn lower(name: &'static str, unit: Unit, of: fn(&PolicyResult) -> Option<f64>) -> Measure {
    Measure { name, unit, better: Better::Lower, of }
}

/// Measures that have a sentence of their own, by their place in [`MEASURES`].
pub(super) const OWED: usize = 0;
pub(super) const USEFUL: usize = 5;
pub(super) const DEBUG_WAITS: usize = 7;

/// What is compared, the most important first.
pub(super) const MEASURES: &[Measure] = &[
    higher("owed time delivered", Unit::Percent, |p| p.delivered_of_owed),
    higher("owed time delivered day by day", Unit::Percent, |p| p.delivered_of_owed_daily),
    higher("the worst team's owed time", Unit::Percent, worst),
    lower("arrears (p90)", Unit::ClaimHours, |p| p.arrears_claim_hours.p90),
    higher("occupancy", Unit::Percent, |p| Some(p.occupancy)),
    higher("useful work", Unit::Percent, |p| Some(p.useful_fraction)),
    lower("lost work", Unit::Percent, |p| Some(p.lost_fraction)),
    lower("waits of debug work (p90)", Unit::Seconds, |p| p.waits.debug.p90_s),
    lower("waits of all work (p90)", Unit::Seconds, |p| p.waits.all.p90_s),
    lower("waits of the largest gangs (p90)", Unit::Seconds, |p| p.waits.largest.p90_s),
    lower("slowdown of medium work (p90)", Unit::Number, |p| p.slowdown.medium.p90),
    lower("slowdown of the largest gangs (p50)", Unit::Number, |p| p.slowdown.largest.p50),
    lower("work that never started", Unit::Count, |p| Some(p.waits.all.never_started as f64)),
];

/// The leaf that got the least of what it was owed; the first of equals.
pub(super) fn worst_team(policy: &PolicyResult) -> Option<&BudgetResult> {
    owed(policy).min_by(|a, b| part(a).total_cmp(&part(b)))
}

fn part(budget: &BudgetResult) -> f64 {
    budget.delivered_of_owed.unwrap_or(f64::INFINITY)
}

/// The leaves that were owed anything.
fn owed(policy: &PolicyResult) -> impl Iterator<Item = &BudgetResult> {
    policy.budgets.iter().filter(|budget| budget.leaf && budget.delivered_of_owed.is_some())
}

fn worst(policy: &PolicyResult) -> Option<f64> {
    worst_team(policy)?.delivered_of_owed
}

/// The worst team of the worst seed.
fn worst_name(seeds: &[&PolicyResult]) -> String {
    let teams = seeds.iter().filter_map(|policy| worst_team(policy));
    let worst = teams.min_by(|a, b| part(a).total_cmp(&part(b)));
    worst.map_or(NOTHING.into(), |budget| last_part(&budget.path).chars().take(NAME_MAX).collect())
}

fn teams(policy: &PolicyResult) -> Vec<Option<f64>> {
    let served = owed(policy).filter(|budget| budget.delivered_of_owed.is_some_and(|part| SERVED <= part));
    vec![Some(served.count() as f64), Some(owed(policy).count() as f64)]
}

fn arrears(policy: &PolicyResult) -> Vec<Option<f64>> {
    let arrears = &policy.arrears_claim_hours;
    vec![arrears.p50, arrears.p90, arrears.max]
}

fn wait(waits: &Waits) -> Vec<Option<f64>> {
    vec![waits.p50_s, waits.p90_s, waits.p99_s]
}

fn promises(policy: &PolicyResult) -> Vec<Option<f64>> {
    let of = |count: fn(&Promises) -> u64| policy.promises.as_ref().map(|promises| count(promises) as f64);
    vec![of(|promises| promises.given), of(|promises| promises.kept)]
}

/// From the beginning of a wait to its promise.
fn times_to_promise(policy: &PolicyResult) -> Vec<Option<f64>> {
    let of = |time: fn(&Promises) -> Option<f64>| policy.promises.as_ref().and_then(time);
    vec![of(|promises| promises.time_to_promise_p50_s), of(|promises| promises.time_to_promise_p90_s)]
}

fn slowdown(slowdown: &Slowdown) -> Vec<Option<f64>> {
    vec![slowdown.p50, slowdown.p90]
}

/// `olmo` of `lab/nlp/olmo`.
pub(super) fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
