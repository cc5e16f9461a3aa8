//! How a trace's rows become contracts: what the file does not say, the scenario's rules say.

use super::{Row, Trace};
use crate::job::{Job, checkpoint_default};
use crate::random::mix;
use crate::scenario::length::{Fraction, Length};
use serde::Deserialize;
use std::sync::Arc;
use stipend_core::id::{BudgetId, PoolId, UserId};
use stipend_core::knobs::Knobs;
use stipend_core::quantity::{Span, Time};
use stipend_core::spec::{Gang, OnPreempt, Pools, WorkloadKind, WorkloadSpec};
use toml::Spanned;

/// `[trace]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TraceFile {
    /// The file: relative to the scenario's folder, or to the current one where `--set trace=FILE` names it.
    pub(crate) file: Option<Spanned<String>>,
    /// Whether a row that cannot be used ends the run. Default false: they are counted and shown.
    #[serde(default)]
    pub(crate) strict: bool,
    /// The leaf budget of a row, `{team}` standing for its team. Default `trace/{team}`.
    pub(crate) budget: Option<Spanned<String>>,
    /// Where the teams' shares come from: `listed` in `[[budgets]]` (default), or budgets made for all teams of the file with `equal` shares
    /// or shares by their `usage` (GPU time in the file).
    #[serde(default)]
    pub(crate) shares: SharesText,
    /// The contract of rows that state none: their work, up to this. Default: the knob `min_runtime_max`.
    pub(crate) min_runtime: Option<Length>,
    /// The time limit of rows that state none, as a multiple of their work. Default: none, but 1.5 for `end` work.
    pub(crate) time_limit: Option<Fraction>,
    /// What people think that their work takes, as a multiple of what it takes: evenly between these two. Default: nothing is said.
    pub(crate) estimates: Option<Spanned<[Fraction; 2]>>,
    /// The part of the rows that state nothing that can resume. Default 1.
    pub(crate) resume: Option<Fraction>,
    /// The part of them that restarts; the rest ends. `end` work that is longer than the knob `end_max` restarts instead. Default 0.
    #[serde(default)]
    pub(crate) restart: Fraction,
    /// The pools that its work accepts, the one it likes best first. Default: all that are counted in GPUs, in their order.
    pub(crate) pools: Option<Spanned<Vec<String>>>,
    /// The part of the rows without a contract of their own that is unallocated. Default 0.
    #[serde(default)]
    pub(crate) unallocated: Fraction,
    /// How often work that resumes banks its progress. Default: its contract, at most 1 h; 30 min if unallocated.
    pub(crate) checkpoint_every: Option<Length>,
}

/// `shares` of a trace.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum SharesText {
    #[default]
    Listed,
    Equal,
    Usage,
}

/// The rules, settled for one scenario.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    /// The pools that its work accepts.
    pub(crate) pools: Pools,
    /// The budget of each team of the trace.
    pub(crate) budgets: Vec<BudgetId>,
    /// The number of the trace's first user among the scenario's users.
    pub(crate) first_user: u32,
    pub(crate) min_runtime: Span,
    pub(crate) time_limit: Option<f64>,
    /// The bounds of expected run times, as multiples of the work.
    pub(crate) estimates: Option<(f64, f64)>,
    pub(crate) resume: f64,
    pub(crate) restart: f64,
    pub(crate) unallocated: f64,
    pub(crate) checkpoint_every: Option<Span>,
    pub(crate) end_max: Span,
    pub(crate) gpus_per_node: u32,
}

impl TraceFile {
    /// The rules for teams with these budgets.
    pub(crate) fn rules(&self, budgets: Vec<BudgetId>, first_user: u32, knobs: &Knobs, gpus_per_node: u32) -> Rules {
        Rules {
            pools: PoolId(0).into(),
            budgets,
            first_user,
            min_runtime: self.min_runtime.map_or(knobs.min_runtime_max, Span::from),
            time_limit: self.time_limit.map(Fraction::value),
            estimates: self.estimates.as_ref().map(|bounds| bounds.get_ref().map(Fraction::value)).map(|[low, high]| (low, high)),
            resume: self.resume.map_or(1.0, Fraction::value),
            restart: self.restart.value(),
            unallocated: self.unallocated.value(),
            checkpoint_every: self.checkpoint_every.map(Span::from),
            end_max: knobs.end_max,
            gpus_per_node,
        }
    }
}

impl Rules {
    /// A row's gang. Where a trace has only the sum of the GPUs, they are split evenly over the fewest nodes, rounded up:
    /// with 8 GPUs a node 12 become 2 × 6, 24 become 3 × 8 and 13 become 2 × 7.
    pub(crate) fn gang(&self, row: &Row) -> Gang {
        if row.members > 0 {
            return Gang::new(row.members, row.gpus);
        }
        let members = row.gpus.div_ceil(self.gpus_per_node.max(1));
        Gang::new(members, row.gpus.div_ceil(members))
    }

    /// The workload of the `number`th row. What is left to chance hangs on the row alone, so that it is the same in every run.
    pub(crate) fn job(&self, row: &Row, number: usize) -> Job {
        let work = Span(row.work_ms);
        let chance = |draw: u64| unit(mix(mix(number as u64 + 1) ^ mix(row.work_ms as u64).rotate_left(7) ^ draw));
        let unallocated = row.min_runtime_ms == 0 || (row.min_runtime_ms < 0 && chance(1) < self.unallocated);
        let on_preempt = self.on_preempt(row, chance(2), unallocated);
        let stated_limit = (row.limit_ms > 0).then_some(Span(row.limit_ms));
        let times = |factor: f64| Span(whole_minutes((work.0 as f64 * factor) as i64));
        let time_limit = match on_preempt {
            OnPreempt::End => Some(stated_limit.unwrap_or_else(|| times(self.time_limit.unwrap_or(1.5))).min(self.end_max)),
            _ => stated_limit.or(self.time_limit.map(times)),
        };
        let min_runtime = match on_preempt {
            _ if unallocated => Span::ZERO,
            OnPreempt::End => time_limit.expect("set above for all end work"),
            _ if row.min_runtime_ms > 0 => Span(row.min_runtime_ms.max(60_000)),
            _ => Span(whole_minutes(work.0)).min(self.min_runtime),
        };
        let expected_runtime = self.estimates.map(|(low, high)| times(low + (high - low) * chance(3)));
        let checkpoint_every = self.checkpoint_every.unwrap_or_else(|| checkpoint_default(min_runtime));
        let spec = WorkloadSpec {
            budget: self.budgets[row.team as usize],
            user: UserId(self.first_user + row.user),
            pools: self.pools.clone(),
            gang: self.gang(row),
            min_runtime,
            time_limit,
            expected_runtime,
            on_preempt,
            priority: row.priority,
            checkpoint_every: (on_preempt == OnPreempt::Resume).then_some(checkpoint_every),
            kind: WorkloadKind::Batch,
        };
        Job { spec: Arc::new(spec), work, fails: row.fails, checkpoint_every, stream: None }
    }

    fn on_preempt(&self, row: &Row, drawn: f64, unallocated: bool) -> OnPreempt {
        let on_preempt = match row.on_preempt {
            Some(stated) => stated,
            None if drawn < self.resume => OnPreempt::Resume,
            None if drawn < self.resume + self.restart => OnPreempt::Restart,
            None => OnPreempt::End,
        };
        let cannot_end = unallocated || row.work_ms > self.end_max.0;
        if on_preempt == OnPreempt::End && cannot_end { OnPreempt::Restart } else { on_preempt }
    }
}

impl Trace {
    /// When the `number`th row is submitted.
    pub(crate) fn at(&self, number: usize) -> Option<Time> {
        self.rows.get(number).map(|row| Time(row.submit_ms))
    }
}

fn whole_minutes(ms: i64) -> i64 {
    (ms.max(1) + 59_999) / 60_000 * 60_000
}

fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(resume: f64, restart: f64) -> Rules {
        Rules {
            pools: PoolId(0).into(),
            budgets: vec![BudgetId(1)],
            first_user: 5,
            min_runtime: Span::hours(8),
            time_limit: None,
            estimates: None,
            resume,
            restart,
            unallocated: 0.0,
            checkpoint_every: None,
            end_max: Span::hours(24),
            gpus_per_node: 8,
        }
    }

    fn row(gpus: u32, work: Span) -> Row {
        Row {
            submit_ms: 0,
            work_ms: work.0,
            limit_ms: 0,
            min_runtime_ms: -1,
            members: 0,
            gpus,
            team: 0,
            user: 2,
            priority: 0,
            on_preempt: None,
            fails: false,
        }
    }

    #[test]
    fn gangs_are_split_evenly_over_the_fewest_nodes() {
        let gang = |gpus| rules(1.0, 0.0).gang(&row(gpus, Span::hours(1)));
        for (gpus, members, each) in [(1, 1, 1), (8, 1, 8), (12, 2, 6), (13, 2, 7), (24, 3, 8), (512, 64, 8)] {
            assert_eq!((gang(gpus).members, gang(gpus).gpus_per_member), (members, each), "{gpus} GPUs");
        }
    }

    #[test]
    fn what_the_row_does_not_say_the_rules_say() {
        let job = rules(1.0, 0.0).job(&row(4, Span::minutes(90)), 0);
        assert_eq!((job.spec.min_runtime, job.spec.time_limit, job.spec.user), (Span::minutes(90), None, UserId(7)));
        let long = rules(1.0, 0.0).job(&row(4, Span::hours(90)), 0);
        assert_eq!((long.spec.min_runtime, long.checkpoint_every), (Span::hours(8), Span::hours(1)));
        let end = rules(0.0, 0.0).job(&row(4, Span::hours(2)), 0);
        assert_eq!(
            (end.spec.on_preempt, end.spec.time_limit, end.spec.min_runtime),
            (OnPreempt::End, Some(Span::hours(3)), Span::hours(3))
        );
        let too_long_to_end = rules(0.0, 0.0).job(&row(4, Span::hours(30)), 0);
        assert_eq!(too_long_to_end.spec.on_preempt, OnPreempt::Restart);
    }

    #[test]
    fn what_the_row_says_holds() {
        let stated = Row { limit_ms: 7_200_000, min_runtime_ms: 3_600_000, on_preempt: Some(OnPreempt::Restart), ..row(4, Span::hours(1)) };
        let spec = rules(0.0, 0.0).job(&stated, 0).spec;
        assert_eq!((spec.on_preempt, spec.min_runtime, spec.time_limit), (OnPreempt::Restart, Span::hours(1), Some(Span::hours(2))));
        let unallocated = Row { min_runtime_ms: 0, ..stated };
        assert_eq!(rules(0.0, 0.0).job(&unallocated, 0).spec.min_runtime, Span::ZERO);
    }

    #[test]
    fn expected_run_times_lie_between_the_bounds_and_shift_nothing_else() {
        let told = Rules { estimates: Some((1.05, 2.05)), ..rules(0.6, 0.2) };
        for number in 0..1000 {
            let (with, without) = (told.job(&row(1, Span::hours(10)), number), rules(0.6, 0.2).job(&row(1, Span::hours(10)), number));
            let expected = with.spec.expected_runtime.expect("all rows have one");
            assert!((Span::minutes(630)..=Span::minutes(1231)).contains(&expected), "{expected}");
            assert_eq!(WorkloadSpec { expected_runtime: None, ..(*with.spec).clone() }, *without.spec);
        }
    }

    #[test]
    fn chance_hangs_on_the_row() {
        let rules = rules(0.6, 0.2);
        let kinds = |kind| (0..1000).filter(|&n| rules.job(&row(1, Span::hours(1)), n).spec.on_preempt == kind).count();
        assert!((550..650).contains(&kinds(OnPreempt::Resume)) && (150..250).contains(&kinds(OnPreempt::End)));
        assert_eq!(kinds(OnPreempt::Resume), kinds(OnPreempt::Resume));
    }
}
