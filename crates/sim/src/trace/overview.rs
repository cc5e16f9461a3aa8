//! What is in a trace: the figures that `stipend sim trace` shows.

use super::outcome::Outcome;
use super::{Row, Trace};
use crate::percentile::nearest_rank;
use serde::Serialize;
use std::collections::BTreeMap;

/// In so many equal parts the demand over time is shown.
const PARTS: usize = 72;

/// So many teams, users and pools are named; the others are summed up.
const NAMED: usize = 8;

const HOUR_MS: f64 = 3_600_000.0;

/// What is in a trace.
#[derive(Clone, Debug, Serialize)]
pub struct Overview {
    /// The form it was read as.
    pub form: String,
    /// What the file says about itself.
    pub about: Vec<String>,
    /// The first arrival, ms since 1970 by the file's own clock; `null` where it has no dates.
    pub first_unix_ms: Option<i64>,
    /// From the first arrival to the last, days.
    pub arrivals_days: f64,
    /// From the first arrival to the last end, days.
    pub span_days: f64,
    /// Rows that are workloads.
    pub jobs: u64,
    /// Those of them that never ran.
    pub never_ran: u64,
    /// Those of them that waited for another one to end.
    pub depends: u64,
    /// GPU time of all.
    pub gpu_hours: f64,
    /// GPU time over span: the GPUs at work on average.
    pub mean_gpus: f64,
    /// Teams, those with the most GPU time first.
    pub teams: Ranking,
    /// Users; `null` where the trace names none.
    pub users: Option<Ranking>,
    /// Lists of pools that rows accept; `null` where no row names one.
    pub pools: Option<Ranking>,
    /// By GPUs of a workload.
    pub sizes: Vec<Size>,
    /// How they ended.
    pub outcomes: Vec<OutcomePart>,
    /// How long those ran that ran, in seconds.
    pub durations_s: Option<Percentiles>,
    /// From arrival to start, in seconds, where the trace tells; `null` where it does not.
    pub waits_s: Option<Percentiles>,
    /// GPUs at work on average in each of equal parts of the span.
    pub demand: Vec<f64>,
    /// Whether these are the times at which the trace's work ran; else work is counted from its arrival, as if nothing had waited.
    pub demand_as_run: bool,
    /// Rows that were read and are no workload of their own.
    pub skipped: Vec<Reason>,
    /// Rows of which a part was settled by a rule.
    pub ruled: Vec<Reason>,
    /// Rows that cannot be read.
    pub bad_rows: u64,
    /// The first of them.
    pub bad_examples: Vec<Bad>,
}

/// Names by their GPU time.
#[derive(Clone, Debug, Serialize)]
pub struct Ranking {
    /// How many there are.
    pub count: u64,
    /// Those with the most.
    pub first: Vec<Named>,
    /// All others together; `null` if there are none.
    pub rest: Option<Part>,
}

/// A name with its part.
#[derive(Clone, Debug, Serialize)]
pub struct Named {
    /// Its name.
    pub name: String,
    /// Its part.
    #[serde(flatten)]
    pub part: Part,
}

/// A part of all workloads.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Part {
    /// Workloads.
    pub jobs: u64,
    /// GPU-hours.
    pub gpu_hours: f64,
}

/// Workloads of similar size.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Size {
    /// The least GPUs.
    pub from_gpus: u64,
    /// The most GPUs.
    pub to_gpus: u64,
    /// How many.
    #[serde(flatten)]
    pub part: Part,
}

/// Workloads that ended alike.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct OutcomePart {
    /// How.
    pub outcome: Outcome,
    /// How many.
    #[serde(flatten)]
    pub part: Part,
}

/// Percentiles by nearest rank.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Percentiles {
    /// How many values there are.
    pub count: u64,
    /// One in ten is at most this.
    pub p10: f64,
    /// Half are at most this.
    pub p50: f64,
    /// Nine in ten are at most this.
    pub p90: f64,
    /// 99 in 100 are at most this.
    pub p99: f64,
    /// The largest.
    pub max: f64,
}

/// Rows that one reason concerns.
#[derive(Clone, Debug, Serialize)]
pub struct Reason {
    /// Why, or by which rule.
    pub reason: String,
    /// How many.
    pub rows: u64,
    /// The line of the first.
    pub first_line: u64,
}

/// A row that cannot be read.
#[derive(Clone, Debug, Serialize)]
pub struct Bad {
    /// Its line.
    pub line: u64,
    /// Why.
    pub reason: String,
}

impl Part {
    fn add(&mut self, row: &Row) {
        self.jobs += 1;
        self.gpu_hours += row.gpu_ms() as f64 / HOUR_MS;
    }
}

impl Overview {
    /// Looks through a whole trace.
    pub fn of(trace: &Trace) -> Overview {
        let mut all = Part::default();
        trace.rows.iter().for_each(|row| all.add(row));
        let as_run = trace.rows.iter().filter(|row| row.work_ms > 0).all(|row| row.start_ms.is_some()) && all.jobs > 0;
        let span_ms = trace.rows.iter().map(|row| period(row, as_run).1).max().unwrap_or(0).max(1);
        let (demand, ran) = (demand(trace, as_run, span_ms), trace.rows.iter().filter(|row| row.work_ms > 0));
        let waits = trace.rows.iter().filter_map(|row| row.start_ms.map(|start| start.saturating_sub(row.arrival_ms()).max(0)));
        let reasons = |counted: &[super::Counted]| {
            let reason = |one: &super::Counted| Reason { reason: one.reason.into(), rows: one.rows, first_line: one.first_line };
            counted.iter().map(reason).collect()
        };
        Overview {
            form: trace.form.into(),
            about: trace.about.clone(),
            first_unix_ms: trace.epoch_ms,
            arrivals_days: trace.rows.last().map_or(0.0, |row| row.arrival_ms() as f64 / HOUR_MS / 24.0),
            span_days: span_ms as f64 / HOUR_MS / 24.0,
            jobs: all.jobs,
            never_ran: trace.rows.iter().filter(|row| row.work_ms == 0).count() as u64,
            depends: trace.rows.iter().filter(|row| row.depends).count() as u64,
            gpu_hours: all.gpu_hours,
            mean_gpus: all.gpu_hours * HOUR_MS / span_ms as f64,
            teams: ranking(trace, &trace.teams, |row| row.team),
            users: trace.names_users.then(|| ranking(trace, &trace.users, |row| row.user)),
            pools: (trace.pools.len() > 1).then(|| {
                let names: Vec<String> =
                    trace.pools.iter().map(|list| if list.is_empty() { "any".into() } else { list.join(" or ") }).collect();
                ranking(trace, &names, |row| row.pools)
            }),
            sizes: sizes(trace),
            outcomes: outcomes(trace),
            durations_s: percentiles(ran.map(|row| row.work_ms).collect()),
            waits_s: percentiles(waits.collect()),
            demand,
            demand_as_run: as_run,
            skipped: reasons(&trace.skipped),
            ruled: reasons(&trace.ruled),
            bad_rows: trace.bad_rows,
            bad_examples: trace.bad_examples.iter().map(|bad| Bad { line: bad.line, reason: bad.reason.clone() }).collect(),
        }
    }
}

/// From when to when a row holds GPUs.
fn period(row: &Row, as_run: bool) -> (i64, i64) {
    let from = row.start_ms.filter(|_| as_run).unwrap_or_else(|| row.arrival_ms());
    (from, from.saturating_add(row.work_ms))
}

/// GPUs at work on average in each part of the span.
fn demand(trace: &Trace, as_run: bool, span_ms: i64) -> Vec<f64> {
    let part_ms = span_ms as f64 / PARTS as f64;
    let mut gpu_ms = vec![0.0; PARTS];
    for row in &trace.rows {
        let (from, to) = period(row, as_run);
        let (from, to) = (from.max(0) as f64, to.max(0) as f64);
        let last = ((to / part_ms) as usize).min(PARTS - 1);
        for (part, sum) in gpu_ms.iter_mut().enumerate().take(last + 1).skip((from / part_ms) as usize) {
            let (begin, end) = (part as f64 * part_ms, (part + 1) as f64 * part_ms);
            *sum += (to.min(end) - from.max(begin)).max(0.0) * row.all_gpus() as f64;
        }
    }
    gpu_ms.into_iter().map(|sum| sum / part_ms).collect()
}

fn ranking(trace: &Trace, names: &[String], of: impl Fn(&Row) -> u32) -> Ranking {
    let mut parts = vec![Part::default(); names.len()];
    trace.rows.iter().for_each(|row| parts[of(row) as usize].add(row));
    let mut order: Vec<usize> = (0..names.len()).filter(|&index| parts[index].jobs > 0).collect();
    // By GPU time, then by name, so that the order never hangs on the file's.
    order.sort_by(|&a, &b| parts[b].gpu_hours.total_cmp(&parts[a].gpu_hours).then_with(|| names[a].cmp(&names[b])));
    let (first, others) = order.split_at(order.len().min(NAMED));
    let sum = others.iter().fold(Part::default(), |sum, &index| Part {
        jobs: sum.jobs + parts[index].jobs,
        gpu_hours: sum.gpu_hours + parts[index].gpu_hours,
    });
    Ranking {
        count: order.len() as u64,
        first: first.iter().map(|&index| Named { name: names[index].clone(), part: parts[index] }).collect(),
        rest: (!others.is_empty()).then_some(sum),
    }
}

/// 1, 2, 3 to 4, 5 to 8, and so on.
fn sizes(trace: &Trace) -> Vec<Size> {
    let mut parts: BTreeMap<u64, Part> = BTreeMap::new();
    trace.rows.iter().for_each(|row| parts.entry(row.all_gpus().max(1).next_power_of_two()).or_default().add(row));
    parts.into_iter().map(|(to_gpus, part)| Size { from_gpus: to_gpus / 2 + 1, to_gpus, part }).collect()
}

fn outcomes(trace: &Trace) -> Vec<OutcomePart> {
    let of = |outcome: Outcome| {
        let mut part = Part::default();
        trace.rows.iter().filter(|row| row.outcome == outcome).for_each(|row| part.add(row));
        OutcomePart { outcome, part }
    };
    Outcome::ALL.into_iter().map(of).filter(|outcome| outcome.part.jobs > 0).collect()
}

fn percentiles(mut values_ms: Vec<i64>) -> Option<Percentiles> {
    values_ms.sort_unstable();
    let at = |percent| nearest_rank(&values_ms, percent).map(|ms| ms as f64 / 1000.0);
    Some(Percentiles { count: values_ms.len() as u64, p10: at(10)?, p50: at(50)?, p90: at(90)?, p99: at(99)?, max: at(100)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Reading;

    #[test]
    fn figures_of_a_small_trace() {
        let text = b"submit_s,work_s,gpus,team,user,fails\n0,3600,8,a,ann,0\n0,7200,3,b,bob,1\n7200,3600,1,b,bob,0\n";
        let overview = Overview::of(&Trace::read(text.as_slice(), Reading::default()).expect("ours"));
        assert_eq!((overview.jobs, overview.gpu_hours, overview.span_days * 24.0), (3, 15.0, 3.0));
        assert_eq!((overview.mean_gpus, overview.demand_as_run), (5.0, false));
        let teams: Vec<(&str, f64)> = overview.teams.first.iter().map(|team| (team.name.as_str(), team.part.gpu_hours)).collect();
        assert_eq!(teams, [("a", 8.0), ("b", 7.0)]);
        let sizes: Vec<(u64, u64, u64)> = overview.sizes.iter().map(|size| (size.from_gpus, size.to_gpus, size.part.jobs)).collect();
        assert_eq!(sizes, [(1, 1, 1), (3, 4, 1), (5, 8, 1)]);
        let failed = overview.outcomes.iter().find(|part| part.outcome == Outcome::Failed).expect("one failed");
        assert_eq!((failed.part.jobs, failed.part.gpu_hours), (1, 6.0));
        assert_eq!((overview.demand[0], overview.demand[30], overview.demand[71]), (11.0, 3.0, 1.0));
        assert_eq!(overview.durations_s.map(|durations| (durations.p50, durations.max)), Some((3600.0, 7200.0)));
    }

    #[test]
    fn an_empty_trace_has_no_figures() {
        let overview = Overview::of(&Trace::read(b"submit_s,work_s,gpus\n".as_slice(), Reading::default()).expect("ours"));
        assert_eq!((overview.jobs, overview.mean_gpus, overview.teams.count), (0, 0.0, 0));
        assert!(overview.durations_s.is_none() && overview.waits_s.is_none());
    }
}
