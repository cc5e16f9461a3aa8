//! How a trace's rows become contracts: what the file does not say, the scenario's rules say.

use super::outcome::Outcome;
use super::{Reading, Row, TeamFrom, Trace};
use crate::generate::families::Families;
use crate::job::{Job, checkpoint_default, start_default, unprotected_default};
use crate::random::mix;
use crate::scenario::file::OrderText;
use crate::scenario::length::{Fraction, Length};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use stipend_core::id::{BudgetId, FamilyId, UserId};
use stipend_core::knobs::Knobs;
use stipend_core::quantity::{Ppm, Span, Time};
use stipend_core::spec::{Gang, NodeSpec, OnPreempt, Pools, WorkloadKind, WorkloadSpec};
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
    /// How many of a file's processors stand for one GPU, for forms that count processors. Default 1.
    pub(crate) procs_per_gpu: Option<Spanned<u32>>,
    /// What makes the teams of a Slurm log: `account` (default; `partition` in a log without accounts), `user`, `partition` or `qos`.
    #[serde(default)]
    pub(crate) team_from: TeamFrom,
    /// The columns of a log of `sacct` that has no header, such as `"JobID,State,Start,End,AllocTRES"`.
    pub(crate) columns: Option<String>,
    /// How often each row is submitted; the copies are spread evenly over the trace's span. Default 1.
    pub(crate) copies: Option<Spanned<u32>>,
    /// The leaf budget of a row, `{team}` standing for its team; of a Slurm log's also `{account}`, `{user}`, `{partition}` and `{qos}`, each a
    /// level of the path. Default `trace/{team}`.
    pub(crate) budget: Option<Spanned<String>>,
    /// Where the teams' shares come from: `listed` in `[[budgets]]` (default), or budgets made for all teams of the file with `equal` shares
    /// or shares by their `usage` (GPU time in the file).
    pub(crate) shares: Option<Spanned<SharesText>>,
    /// The order of the work of budgets that are made for the teams: `priority` (default), `fifo`, `shortest-contract` or
    /// `completion`.
    #[serde(default)]
    pub(crate) order: OrderText,
    /// A CSV of names and weights: budgets are made for its names, with shares by their weights.
    pub(crate) shares_file: Option<Spanned<String>>,
    /// The weight of each team that the file of shares does not name. Default: their rows are left out.
    pub(crate) shares_rest: Option<Spanned<Fraction>>,
    /// The contract of rows that state none: their work, up to this. Default: the knob `min_runtime_max`.
    pub(crate) min_runtime: Option<Length>,
    /// The time limit of rows that state none, as a multiple of their work. Default: none, but 1.5 for `end` work.
    pub(crate) time_limit: Option<Fraction>,
    /// What people think that their work takes, as a multiple of what it takes: evenly between these two. Default: nothing is said.
    pub(crate) estimates: Option<Spanned<[Fraction; 2]>>,
    /// The part of the rows that state nothing that can resume. Default 1.
    pub(crate) resume: Option<Fraction>,
    /// The part of them that restarts; the rest ends. `end` work that is longer than the knob `end_max` restarts instead. Default 0.
    pub(crate) restart: Option<Fraction>,
    /// The part of the rows whose end the file does not tell that fails at its end: invented, for logs without outcomes. Default 0.
    pub(crate) fails: Option<Fraction>,
    /// Of how many families each user's rows of one size are then, each with a part of its own that fails. Default 0: all fail alike.
    #[serde(default)]
    pub(crate) families: u32,
    /// Whether the family of such a row tells how it ends, which no history can: the bound for comparisons. Default false.
    #[serde(default)]
    pub(crate) oracle: bool,
    /// The pools that its work accepts, the one it likes best first. Default: all that are counted in GPUs, in their order.
    pub(crate) pools: Option<Spanned<Vec<String>>>,
    /// The part of the rows without a contract of their own that is unallocated. Default 0.
    pub(crate) unallocated: Option<Fraction>,
    /// How often work that resumes banks its progress. Default: its contract, at most 1 h; 30 min if unallocated.
    pub(crate) checkpoint_every: Option<Length>,
    /// Rules of single teams, which go before the ones above.
    pub(crate) teams: Option<Spanned<BTreeMap<String, TeamFile>>>,
}

/// What stands for a row's team in the template of budgets.
const TEAM: &str = "{team}";

/// What stands for a column of a Slurm log there.
pub(crate) const COLUMNS: [(&str, TeamFrom); 4] =
    [("{account}", TeamFrom::Account), ("{user}", TeamFrom::User), ("{partition}", TeamFrom::Partition), ("{qos}", TeamFrom::Qos)];

/// `[trace.teams.NAME]`: what is said here goes before what `[trace]` says.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TeamFile {
    /// As in `[trace]`.
    min_runtime: Option<Length>,
    /// As in `[trace]`.
    time_limit: Option<Fraction>,
    /// As in `[trace]`.
    resume: Option<Fraction>,
    /// As in `[trace]`.
    restart: Option<Fraction>,
    /// As in `[trace]`.
    unallocated: Option<Fraction>,
    /// As in `[trace]`.
    checkpoint_every: Option<Length>,
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
    /// The pools that its work accepts, by [`Row::pools`].
    pub(crate) pools: Vec<Accepted>,
    /// The pools of work without GPUs, where there are such.
    pub(crate) cpu_pools: Option<Accepted>,
    /// The budget of each team of the trace.
    pub(crate) budgets: Vec<BudgetId>,
    /// The terms of each team of the trace.
    pub(crate) terms: Vec<Terms>,
    /// The number of the trace's first user among the scenario's users.
    pub(crate) first_user: u32,
    /// The bounds of expected run times, as multiples of the work.
    pub(crate) estimates: Option<(f64, f64)>,
    /// How rows fail whose end the file does not tell.
    pub(crate) families: Families,
    pub(crate) end_max: Span,
    /// Whether the nodes count CPUs, and memory.
    pub(crate) counted: (bool, bool),
}

/// Pools that work accepts, and how it is cut into members there.
#[derive(Clone, Debug)]
pub(crate) struct Accepted {
    pub(crate) pools: Pools,
    /// The most GPUs that a node of them has; CPUs where they are counted in CPUs.
    pub(crate) per_node: u32,
    /// How many of what a row asks for are counted as one: CPUs in pools of CPUs, else 1.
    pub(crate) per_unit: u32,
}

/// What rows get that state nothing themselves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    pub(crate) min_runtime: Span,
    pub(crate) time_limit: Option<f64>,
    pub(crate) resume: f64,
    pub(crate) restart: f64,
    pub(crate) unallocated: f64,
    pub(crate) checkpoint_every: Option<Span>,
}

impl TraceFile {
    /// How the file is to be read.
    pub(crate) fn reading(&self, cpu_jobs: bool) -> Reading {
        Reading {
            procs_per_gpu: self.procs_per_gpu.as_ref().map_or(1, |procs| *procs.get_ref()),
            team_from: self.columns_of_budget().unwrap_or_else(|| vec![self.team_from]),
            cpu_jobs,
            sizeless_jobs: false,
            columns: self.columns.clone(),
        }
    }

    /// The columns of a Slurm log that the template of budgets names, in its order; `None` if it names none but the team.
    pub(crate) fn columns_of_budget(&self) -> Option<Vec<TeamFrom>> {
        let template = self.budget.as_ref()?.get_ref();
        let mut named: Vec<(usize, TeamFrom)> = Vec::new();
        for (column, from) in COLUMNS {
            named.extend(template.match_indices(column).map(|(place, _)| (place, from)));
        }
        if named.is_empty() {
            return None;
        }
        named.extend(template.match_indices(TEAM).map(|(place, _)| (place, self.team_from)));
        named.sort_unstable_by_key(|(place, _)| *place);
        Some(named.into_iter().map(|(_, from)| from).collect())
    }

    /// The rules for these teams with these budgets.
    pub(crate) fn rules(&self, teams: &[String], budgets: Vec<BudgetId>, first_user: u32, knobs: &Knobs, nodes: &[NodeSpec]) -> Rules {
        let own = |team: &String| self.teams.as_ref().and_then(|teams| teams.get_ref().get(team));
        Rules {
            pools: Vec::new(),
            cpu_pools: None,
            budgets,
            terms: teams.iter().map(|team| self.terms(own(team).unwrap_or(&TeamFile::default()), knobs)).collect(),
            first_user,
            estimates: self.estimates.as_ref().map(|bounds| bounds.get_ref().map(Fraction::value)).map(|[low, high]| (low, high)),
            families: Families { fails: self.fails.map_or(0.0, Fraction::value), count: self.families, oracle: self.oracle },
            end_max: knobs.end_max,
            counted: (nodes.iter().any(|node| node.cpus > 0), nodes.iter().any(|node| node.memory > 0)),
        }
    }

    /// Where the work of a team is charged; a team of several columns has a part for each.
    pub(crate) fn path(&self, team: &str) -> String {
        let template = self.budget.as_ref().map_or("trace/{team}", |budget| budget.get_ref());
        let part = |name: &str| if name.is_empty() { "none".into() } else { name.replace('/', "-") };
        let Some(columns) = self.columns_of_budget() else { return template.replace(TEAM, &part(team)) };
        let parts: Vec<&str> = if columns.len() > 1 { team.splitn(columns.len(), '/').collect() } else { vec![team] };
        let (mut path, mut parts) = (String::new(), parts.into_iter());
        let mut rest: &str = template;
        while let Some((place, name)) =
            COLUMNS.iter().map(|(name, _)| *name).chain([TEAM]).filter_map(|name| Some((rest.find(name)?, name))).min()
        {
            path += &rest[..place];
            path += &part(parts.next().unwrap_or_default());
            rest = &rest[place + name.len()..];
        }
        path + rest
    }

    fn terms(&self, own: &TeamFile, knobs: &Knobs) -> Terms {
        let value = |own: Option<Fraction>, general: Option<Fraction>| own.or(general).map(Fraction::value);
        Terms {
            min_runtime: own.min_runtime.or(self.min_runtime).map_or(knobs.min_runtime_max, Span::from),
            time_limit: value(own.time_limit, self.time_limit),
            resume: value(own.resume, self.resume).unwrap_or(1.0),
            restart: value(own.restart, self.restart).unwrap_or(0.0),
            unallocated: value(own.unallocated, self.unallocated).unwrap_or(0.0),
            checkpoint_every: own.checkpoint_every.or(self.checkpoint_every).map(Span::from),
        }
    }
}

impl Rules {
    /// A row's gang. Where a trace has only the sum of the GPUs, they are split evenly over the fewest nodes, rounded up:
    /// with 8 GPUs a node 12 become 2 × 6, 24 become 3 × 8 and 13 become 2 × 7. CPUs and memory are split alike, where the nodes count them.
    /// In a pool of CPUs the same holds for CPUs.
    pub(crate) fn gang(&self, row: &Row) -> Gang {
        let accepted = self.accepted(row);
        let all = if row.gpus > 0 { row.gpus } else { row.cpus };
        let members = if row.members > 0 { row.members } else { all.div_ceil(accepted.per_node.max(1)) };
        let each = if row.members > 0 && row.gpus > 0 { row.gpus } else { all.div_ceil(members) };
        Gang {
            cpus_per_member: if self.counted.0 && row.gpus > 0 { row.cpus.div_ceil(members) } else { 0 },
            memory_per_member: if self.counted.1 { u64::from(row.memory_mib.div_ceil(members)) << 20 } else { 0 },
            ..Gang::new(members, each.div_ceil(accepted.per_unit))
        }
    }

    /// The pools that a row's work accepts.
    pub(crate) fn accepted(&self, row: &Row) -> &Accepted {
        match &self.cpu_pools {
            Some(accepted) if row.gpus == 0 => accepted,
            _ => &self.pools[row.pools as usize],
        }
    }

    /// The workload of the `number`th row, of this family if the trace tells it. What is left to chance hangs on the row alone, so that it is the
    /// same in every run.
    pub(crate) fn job(&self, row: &Row, number: usize, named: Option<FamilyId>) -> Job {
        let (work, terms) = (Span(row.work_ms), &self.terms[row.team as usize]);
        let chance = |draw: u64| unit(mix(mix(number as u64 + 1) ^ mix(row.work_ms as u64).rotate_left(7) ^ draw));
        let unallocated = row.min_runtime_ms == Some(0) || (row.min_runtime_ms.is_none() && chance(1) < terms.unallocated);
        let on_preempt = self.on_preempt(row, terms, chance(2), unallocated);
        let stated_limit = Some(Span(row.whole_limit_ms())).filter(|&limit| limit > Span::ZERO);
        let times = |factor: f64| Span(whole_minutes((work.0 as f64 * factor) as i64));
        let time_limit = match on_preempt {
            OnPreempt::End => Some(stated_limit.unwrap_or_else(|| times(terms.time_limit.unwrap_or(1.5))).min(self.end_max)),
            _ => stated_limit.or(terms.time_limit.map(times)),
        };
        let min_runtime = match on_preempt {
            _ if unallocated => Span::ZERO,
            OnPreempt::End => time_limit.expect("set above for all end work"),
            _ => match row.min_runtime_ms {
                Some(stated) => Span(stated.max(60_000)),
                None => Span(whole_minutes(work.0)).min(terms.min_runtime),
            },
        };
        let expected_runtime = self.estimates.map(|(low, high)| times(low + (high - low) * chance(3)));
        let checkpoint_every = terms.checkpoint_every.unwrap_or_else(|| checkpoint_default(min_runtime));
        let gang = self.gang(row);
        let user = UserId(self.first_user + row.user);
        let (drawn, ends) = match row.outcome {
            Outcome::Unknown => self.families.draw(user, gang, mix(number as u64), chance(4)),
            known => (None, known.ends()),
        };
        let spec = WorkloadSpec {
            budget: self.budgets[row.team as usize],
            user,
            family: drawn.or(named),
            pools: self.accepted(row).pools.clone(),
            gang,
            min_runtime,
            time_limit,
            expected_runtime,
            on_preempt,
            start: start_default(on_preempt, min_runtime),
            priority: row.priority,
            checkpoint_every: (on_preempt == OnPreempt::Resume).then_some(checkpoint_every),
            kind: WorkloadKind::Batch,
        };
        let unprotected_every = terms.checkpoint_every.unwrap_or_else(|| unprotected_default(checkpoint_every));
        Job {
            spec: Arc::new(spec),
            work,
            ends,
            checkpoint_every,
            unprotected_every,
            input: None,
            stream: None,
            useful: Ppm::ONE,
            resumes: false,
            cancel_after: None,
        }
    }

    fn on_preempt(&self, row: &Row, terms: &Terms, drawn: f64, unallocated: bool) -> OnPreempt {
        let on_preempt = match row.on_preempt {
            Some(stated) => stated,
            None if drawn < terms.resume => OnPreempt::Resume,
            None if drawn < terms.resume + terms.restart => OnPreempt::Restart,
            None => OnPreempt::End,
        };
        let cannot_end = unallocated || row.work_ms > self.end_max.0;
        if on_preempt == OnPreempt::End && cannot_end { OnPreempt::Restart } else { on_preempt }
    }
}

impl Trace {
    /// When the `number`th row is submitted.
    pub(crate) fn at(&self, number: usize) -> Option<Time> {
        self.rows.get(number).map(|row| Time(row.arrival_ms()))
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
    use stipend_core::id::PoolId;

    fn rules(resume: f64, restart: f64) -> Rules {
        let terms = Terms { min_runtime: Span::hours(8), time_limit: None, resume, restart, unallocated: 0.0, checkpoint_every: None };
        Rules {
            pools: vec![Accepted { pools: PoolId(0).into(), per_node: 8, per_unit: 1 }],
            cpu_pools: None,
            budgets: vec![BudgetId(1)],
            terms: vec![terms],
            first_user: 5,
            estimates: None,
            families: Families::default(),
            end_max: Span::hours(24),
            counted: (true, false),
        }
    }

    fn row(gpus: u32, work: Span) -> Row {
        Row { work_ms: work.0, gpus, user: 2, ..Row::default() }
    }

    #[test]
    fn gangs_are_split_evenly_over_the_fewest_nodes() {
        let gang = |gpus| rules(1.0, 0.0).gang(&row(gpus, Span::hours(1)));
        for (gpus, members, each) in [(1, 1, 1), (8, 1, 8), (12, 2, 6), (13, 2, 7), (24, 3, 8), (512, 64, 8)] {
            assert_eq!((gang(gpus).members, gang(gpus).gpus_per_member), (members, each), "{gpus} GPUs");
        }
    }

    #[test]
    fn cpus_are_split_and_memory_is_left_aside_where_nodes_do_not_count_it() {
        let gang = rules(1.0, 0.0).gang(&Row { cpus: 25, memory_mib: 9000, ..row(12, Span::hours(1)) });
        assert_eq!((gang.members, gang.cpus_per_member, gang.memory_per_member), (2, 13, 0));
    }

    #[test]
    fn what_the_row_does_not_say_the_rules_say() {
        let job = rules(1.0, 0.0).job(&row(4, Span::minutes(90)), 0, None);
        assert_eq!((job.spec.min_runtime, job.spec.time_limit, job.spec.user), (Span::minutes(90), None, UserId(7)));
        let long = rules(1.0, 0.0).job(&row(4, Span::hours(90)), 0, None);
        assert_eq!((long.spec.min_runtime, long.checkpoint_every), (Span::hours(8), Span::hours(1)));
        let end = rules(0.0, 0.0).job(&row(4, Span::hours(2)), 0, None);
        assert_eq!(
            (end.spec.on_preempt, end.spec.time_limit, end.spec.min_runtime),
            (OnPreempt::End, Some(Span::hours(3)), Span::hours(3))
        );
        let too_long_to_end = rules(0.0, 0.0).job(&row(4, Span::hours(30)), 0, None);
        assert_eq!(too_long_to_end.spec.on_preempt, OnPreempt::Restart);
    }

    #[test]
    fn what_the_row_says_holds() {
        let stated =
            Row { limit_ms: 7_200_000, min_runtime_ms: Some(3_600_000), on_preempt: Some(OnPreempt::Restart), ..row(4, Span::hours(1)) };
        let spec = rules(0.0, 0.0).job(&stated, 0, None).spec;
        assert_eq!((spec.on_preempt, spec.min_runtime, spec.time_limit), (OnPreempt::Restart, Span::hours(1), Some(Span::hours(2))));
        let unallocated = Row { min_runtime_ms: Some(0), ..stated };
        assert_eq!(rules(0.0, 0.0).job(&unallocated, 0, None).spec.min_runtime, Span::ZERO);
    }

    #[test]
    fn a_limit_of_each_attempt_leaves_room_for_the_earlier_ones() {
        let of =
            |limit_of_attempt| Row { limit_ms: Span::hours(4).0, redone_ms: Span::hours(3).0, limit_of_attempt, ..row(4, Span::hours(6)) };
        let limit = |row: &Row| rules(1.0, 0.0).job(row, 0, None).spec.time_limit;
        assert_eq!((limit(&of(true)), limit(&of(false))), (Some(Span::hours(7)), Some(Span::hours(4))));
    }

    #[test]
    fn expected_run_times_lie_between_the_bounds_and_shift_nothing_else() {
        let told = Rules { estimates: Some((1.05, 2.05)), ..rules(0.6, 0.2) };
        for number in 0..1000 {
            let (with, without) =
                (told.job(&row(1, Span::hours(10)), number, None), rules(0.6, 0.2).job(&row(1, Span::hours(10)), number, None));
            let expected = with.spec.expected_runtime.expect("all rows have one");
            assert!((Span::minutes(630)..=Span::minutes(1231)).contains(&expected), "{expected}");
            assert_eq!(WorkloadSpec { expected_runtime: None, ..(*with.spec).clone() }, *without.spec);
        }
    }

    #[test]
    fn chance_hangs_on_the_row() {
        let rules = rules(0.6, 0.2);
        let kinds = |kind| (0..1000).filter(|&n| rules.job(&row(1, Span::hours(1)), n, None).spec.on_preempt == kind).count();
        assert!((550..650).contains(&kinds(OnPreempt::Resume)) && (150..250).contains(&kinds(OnPreempt::End)));
        assert_eq!(kinds(OnPreempt::Resume), kinds(OnPreempt::Resume));
    }
}
