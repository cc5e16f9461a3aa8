//! The log replayed under two orders of the leaves' own work: what the one would have changed.
//!
//! The same core decides as in a daemon, under the policy of budgets: each team has the share of the GPU time that it used in the log.
//! Only the order inside the leaves differs, so teams must get the same, and what changes is which of a team's own work goes first.

use super::{HOUR_MS, Rate};
use crate::engine;
use crate::family::size_class;
use crate::observer::Observer;
use crate::plain::plain;
use crate::report::{date, duration};
use crate::scenario::Scenario;
use crate::scenario::file::OrderText;
use crate::scenario::length::LENGTH_MAX;
use crate::trace::outcome::Outcome;
use crate::trace::{Row, Trace, tells_outcomes};
use serde::de::IntoDeserializer;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use stipend_core::Scheduler;
use stipend_core::entry::{self, Entry};
use stipend_core::id::WorkloadId;
use stipend_core::quantity::Time;

/// What the log does not say, in the words of a scenario: contracts up to 8 h, most work resumes.
const RULES: &str = include_str!("whatif.toml");

/// The cluster that replays a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Cluster {
    /// Nodes.
    pub nodes: u32,
    /// GPUs of each.
    pub gpus_per_node: u32,
}

/// Two replays beside each other.
#[derive(Clone, Debug, Serialize)]
pub struct WhatIf {
    /// Where.
    pub cluster: Cluster,
    /// GPU time of the log per GPU time of the cluster in its span.
    pub demand_ratio: f64,
    /// Whether the log tells how jobs ended; if not, all are taken to complete.
    pub tells_outcomes: bool,
    /// What the log has that this cluster cannot run, or the replay leaves out.
    pub left_out: Vec<String>,
    /// As it would be, and as it is asked about.
    pub orders: Vec<Replayed>,
}

/// One replay. Everything is counted within the log's span, in which no further work comes in.
#[derive(Clone, Debug, Serialize)]
pub struct Replayed {
    /// The order of the leaves' work.
    pub order: String,
    /// Jobs that were done.
    pub completed: u64,
    /// The same by day.
    pub completed_per_day: f64,
    /// Of what ended, how much was done.
    pub of_ended: Rate,
    /// GPU-hours of work that was done.
    pub completed_gpu_hours: f64,
    /// GPU-hours of what failed, and what preemptions and restarts lost.
    pub lost_gpu_hours: f64,
    /// GPU-hours of what was cancelled in the log.
    pub cancelled_gpu_hours: f64,
    /// GPU-hours of what still ran or waited at the end.
    pub open_gpu_hours: f64,
    /// From arrival to running, by size.
    pub waits: Vec<super::SizeWait>,
    /// By team.
    pub teams: Vec<Team>,
}

/// One team in a replay.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Team {
    /// Its name.
    pub name: String,
    /// Jobs that were done.
    pub completed: u64,
    /// GPU-hours that its work held.
    pub gpu_hours: f64,
    /// GPU-hours of what was done.
    pub completed_gpu_hours: f64,
    /// GPU-hours lost.
    pub lost_gpu_hours: f64,
}

/// Replays a log under each order in turn; `progress` is told the number of the replay and how much of it is done.
///
/// # Errors
/// No such order, or no job of the log can run on the cluster.
pub fn what_if(trace: &Trace, cluster: Cluster, orders: &[&str], progress: &mut dyn FnMut(usize, f64)) -> Result<WhatIf, String> {
    for order in orders {
        let read: Result<OrderText, serde::de::value::Error> = OrderText::deserialize((*order).into_deserializer());
        read.map_err(|error| plain(&error.to_string()))?;
    }
    let mut trace = trace.clone();
    trace.rows.retain(|row| row.gpus > 0);
    if trace.rows.is_empty() {
        return Err("a replay needs jobs with GPUs; this log has none".into());
    }
    trace.keep_what_ran();
    let span_ms = span_ms(&trace)?;
    let tells_outcomes = tells_outcomes(trace.rows.iter());
    let mut found = WhatIf { cluster, demand_ratio: 0.0, tells_outcomes, left_out: Vec::new(), orders: Vec::new() };
    for (number, order) in orders.iter().enumerate() {
        let set = [
            format!("pool.nodes={}", cluster.nodes),
            format!("pool.gpus_per_node={}", cluster.gpus_per_node),
            format!("trace.order={order}"),
            format!("measure={}s", (span_ms + 999) / 1000),
        ];
        let scenario = Scenario::replay("the replay", RULES, &set, trace.clone()).map_err(|error| error.to_string())?;
        let rows = &scenario.trace().expect("it replays one").rows;
        let mut watch = Watch::new(rows);
        let mut reach = |now: Time, end: Time| progress(number, now.0 as f64 / end.0.max(1) as f64);
        engine::run(&scenario, scenario.seed, &mut Scheduler::new(Time(0)), &mut [&mut watch], Some(&mut reach));
        progress(number, 1.0);
        let days = span_ms as f64 / HOUR_MS / 24.0;
        if number == 0 {
            let asked: f64 = rows.iter().map(|row| row.gpu_ms() as f64).sum();
            found.demand_ratio = asked / (span_ms as f64 * f64::from(cluster.nodes) * f64::from(cluster.gpus_per_node));
            let replayed = scenario.trace().expect("it replays one");
            found.left_out = replayed.left_out.iter().cloned().chain(replayed.remarks()).collect();
        }
        found.orders.push(watch.replayed(order, days, &trace.teams));
    }
    Ok(found)
}

/// From the first arrival to the last end, or which job lies so far from the others that this cannot be replayed.
fn span_ms(trace: &Trace) -> Result<i64, String> {
    let Some((first, last)) = trace.rows.first().zip(trace.rows.iter().max_by_key(|row| row.over_ms())) else {
        return Err("a replay needs jobs that ran; none of this log's has".into());
    };
    let span_ms = last.over_ms();
    if span_ms <= LENGTH_MAX.0 {
        return Ok(span_ms.max(60_000));
    }
    let middle = trace.rows[trace.rows.len() / 2].arrival_ms();
    let far = if middle > span_ms - middle { first } else { last };
    let shown = |ms: i64| trace.epoch_ms.map(|epoch| format!(" on {}", date(epoch.saturating_add(ms)))).unwrap_or_default();
    Err(format!(
        "the log spans {}, and at most {} can be replayed: its first job arrives{} (line {}), its last ends{} (line {}); \
         far from the others lies the one of line {}: correct its times or leave it out, and of a log that is so long replay a part",
        duration(span_ms as f64 / 1000.0),
        duration(LENGTH_MAX.0 as f64 / 1000.0),
        shown(first.arrival_ms()),
        first.line,
        shown(span_ms),
        last.line,
        far.line,
    ))
}

/// What became of each row.
#[derive(Clone, Copy, Default)]
struct Fate {
    /// Since when it holds GPUs.
    since: Option<Time>,
    held_ms: i64,
    /// When it first ran.
    ran: Option<Time>,
    ended: Option<entry::Outcome>,
}

/// Follows every workload; the number of a workload is that of its row.
struct Watch<'t> {
    rows: &'t [Row],
    fates: Vec<Fate>,
    now: Time,
}

impl<'t> Watch<'t> {
    fn new(rows: &'t [Row]) -> Watch<'t> {
        Watch { rows, fates: vec![Fate::default(); rows.len()], now: Time(0) }
    }

    fn fate(&mut self, workload: WorkloadId) -> Option<&mut Fate> {
        self.fates.get_mut(workload.0 as usize)
    }

    /// The sums at the end of the run.
    fn replayed(&self, order: &str, days: f64, names: &[String]) -> Replayed {
        let mut teams: Vec<Team> = names.iter().map(|name| Team { name: name.clone(), ..Team::default() }).collect();
        let (mut ended, mut cancelled, mut open) = (0, 0.0, 0.0);
        let mut waits: BTreeMap<u64, (Vec<i64>, u64)> = BTreeMap::new();
        for (row, fate) in self.rows.iter().zip(&self.fates) {
            let team = &mut teams[row.team as usize];
            let held_ms = fate.held_ms + fate.since.map_or(0, |since| (self.now - since).0);
            let hours = |ms: i64| ms as f64 * row.all_gpus() as f64 / HOUR_MS;
            let (waited, never) = waits.entry(size_class(row.all_gpus())).or_default();
            match fate.ran {
                Some(at) => waited.push(at.0 - row.arrival_ms()),
                None => *never += 1,
            }
            team.gpu_hours += hours(held_ms);
            ended += u64::from(fate.ended.is_some() && row.outcome != Outcome::Cancelled);
            match fate.ended {
                Some(entry::Outcome::Completed) => {
                    team.completed += 1;
                    team.completed_gpu_hours += hours(row.work_ms);
                    team.lost_gpu_hours += hours((held_ms - row.work_ms).max(0));
                }
                Some(_) if row.outcome == Outcome::Cancelled => cancelled += hours(held_ms),
                Some(_) => team.lost_gpu_hours += hours(held_ms),
                None => open += hours(held_ms),
            }
        }
        let sum = |of: fn(&Team) -> f64| teams.iter().map(of).sum();
        let completed: u64 = teams.iter().map(|team| team.completed).sum();
        let (completed_gpu_hours, lost_gpu_hours) = (sum(|team| team.completed_gpu_hours), sum(|team| team.lost_gpu_hours));
        teams.sort_by(|a, b| b.gpu_hours.total_cmp(&a.gpu_hours).then_with(|| a.name.cmp(&b.name)));
        Replayed {
            order: order.into(),
            completed,
            completed_per_day: completed as f64 / days,
            of_ended: Rate::of(completed, ended),
            completed_gpu_hours,
            lost_gpu_hours,
            cancelled_gpu_hours: cancelled,
            open_gpu_hours: open,
            waits: waits.into_iter().map(super::waits::class).collect(),
            teams,
        }
    }
}

impl Observer for Watch<'_> {
    fn entry(&mut self, at: Time, entry: &Entry) {
        self.now = self.now.max(at);
        match entry {
            Entry::Started { lease, .. } => {
                if let Some(fate) = self.fate(lease.workload) {
                    fate.since = Some(at);
                }
            }
            Entry::Running { lease, .. } => {
                if let Some(fate) = self.fate(lease.workload) {
                    fate.ran.get_or_insert(at);
                }
            }
            Entry::Ended { workload, outcome, .. } => {
                if let Some(fate) = self.fate(*workload) {
                    fate.held_ms += fate.since.take().map_or(0, |since| (at - since).0);
                    fate.ended = Some(*outcome);
                }
            }
            Entry::Requeued { workload } => {
                if let Some(fate) = self.fate(*workload) {
                    fate.ended = None;
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, at: Time) {
        self.now = self.now.max(at);
    }
}
