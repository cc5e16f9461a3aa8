//! Workloads from files.
//!
//! A trace is read as it comes, compressed or not, and told apart by what stands in it ([`form`]); each form has a reader of its own, which
//! pushes rows into a [`builder::Builder`]. Every form, field and rule is listed in `docs/reference/traces.md`.
//!
//! Rows need not be in order; times count from the earliest row. Equal rows are different workloads. A row that cannot be read is counted
//! and the first few are kept with their lines, so that nothing is left out in silence.

mod builder;
mod columns;
mod csv;
mod events;
mod form;
mod input;
mod number;
mod openb;
pub mod outcome;
pub mod overview;
pub(crate) mod replay;
pub(crate) mod rules;
pub(crate) mod shares;
mod slurm;
mod stems;
mod swf;

use crate::family::{Family, size_class};
use crate::harmless::harmless;
use builder::Builder;
use input::Input;
use outcome::Outcome;
use std::collections::BTreeMap;
use std::io::Read;
use stipend_core::id::FamilyId;
use stipend_core::spec::OnPreempt;

pub use builder::{Reading, TeamFrom};
pub(crate) use number::civil;
pub use stems::Name;

/// One workload of a trace as its file has it. Until the trace is whole its times count from the file's own zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// The line that it begins in; for forms that are no lines, its number.
    pub line: u64,
    /// Submission, ms after the trace's first arrival.
    pub submit_ms: i64,
    /// When it could first start (begin time reached, dependencies met); `None` where the trace does not tell it from the submission.
    pub eligible_ms: Option<i64>,
    /// When it started; `None` where the trace does not say, or it never did.
    pub start_ms: Option<i64>,
    /// When it ended; `None` where the trace does not say, or it still ran.
    pub end_ms: Option<i64>,
    /// How long it ran, ms over all attempts; 0: it never ran, or only for an instant that its reader does not count as running.
    pub work_ms: i64,
    /// How much of that was of no use in the end, ms: earlier attempts of what was preempted or requeued. Where the trace does not tell what they
    /// had banked, all of it.
    pub redone_ms: i64,
    /// How much of that went with nodes that failed, ms.
    pub redone_nodes_ms: i64,
    /// How much of it went to preemptions, ms; the rest was requeued for another reason.
    pub redone_preempted_ms: i64,
    /// Time limit in ms; 0 where the trace has none.
    pub limit_ms: i64,
    /// Whether that is the limit of each attempt and not of all together.
    pub limit_of_attempt: bool,
    /// Contract in ms; `None` where the trace has none, 0 for unallocated work.
    pub min_runtime_ms: Option<i64>,
    /// Members; 0 where the trace has only the sum of the GPUs.
    pub members: u32,
    /// GPUs of each member, or of all; 0 where it needs CPUs only.
    pub gpus: u32,
    /// CPUs in all; 0 where the trace does not say.
    pub cpus: u32,
    /// Memory in all, MiB; 0 where the trace does not say.
    pub memory_mib: u32,
    /// Index into [`Trace::teams`].
    pub team: u32,
    /// Index into [`Trace::users`].
    pub user: u32,
    /// Index into [`Trace::names`]; 0 is no name.
    pub name: u32,
    /// Index into [`Trace::pools`]; 0 is any pool.
    pub pools: u32,
    /// Priority; 0 where the trace has none.
    pub priority: i16,
    /// What happens on preemption; `None` where the trace does not say.
    pub on_preempt: Option<OnPreempt>,
    /// How often it started; 0 where the trace does not say.
    pub attempts: u16,
    /// How often it had to make room for others.
    pub preemptions: u16,
    /// How it ended.
    pub outcome: Outcome,
    /// Whether it waited for another workload of the trace to end.
    pub depends: bool,
}

impl Row {
    /// When it begins to wait for GPUs, ms.
    pub fn arrival_ms(&self) -> i64 {
        self.eligible_ms.map_or(self.submit_ms, |eligible| eligible.max(self.submit_ms))
    }

    /// The same with all times counted from `zero`.
    fn shifted(self, zero: i64) -> Row {
        let shift = |ms: i64| ms.saturating_sub(zero);
        Row {
            submit_ms: shift(self.submit_ms),
            eligible_ms: self.eligible_ms.map(shift),
            start_ms: self.start_ms.map(shift),
            end_ms: self.end_ms.map(shift),
            ..self
        }
    }

    /// When it was over, ms: as long after its start, or its arrival, as it ran, where the trace does not say.
    pub(crate) fn over_ms(&self) -> i64 {
        self.end_ms.unwrap_or_else(|| self.start_ms.unwrap_or_else(|| self.arrival_ms()).saturating_add(self.work_ms))
    }

    /// How long its last attempt ran, ms; where attempts before it kept something, with that.
    pub fn last_ms(&self) -> i64 {
        self.work_ms.saturating_sub(self.redone_ms.max(0)).max(0)
    }

    /// Time limit of all attempts together, ms; 0 where the trace has none.
    pub(crate) fn whole_limit_ms(&self) -> i64 {
        let earlier = if self.limit_of_attempt { self.redone_ms.max(0) } else { 0 };
        if self.limit_ms > 0 { self.limit_ms.saturating_add(earlier) } else { 0 }
    }

    /// GPUs of all members.
    pub fn all_gpus(&self) -> u64 {
        u64::from(self.gpus) * u64::from(self.members.max(1))
    }

    /// CPU time of work without GPUs, ms; 0 of all other.
    pub(crate) fn cpu_ms(&self) -> u128 {
        let cpus = if self.gpus == 0 { self.cpus } else { 0 };
        u128::from(cpus) * u128::from(self.work_ms.unsigned_abs())
    }

    /// GPU time, ms.
    pub fn gpu_ms(&self) -> u128 {
        u128::from(self.all_gpus()) * u128::from(self.work_ms.unsigned_abs())
    }
}

/// A row that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadRow {
    /// Its line in the file; for forms that are no lines, its number.
    pub line: u64,
    /// Why.
    pub reason: String,
}

/// How many rows one reason concerns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counted {
    /// The reason, or the rule.
    pub reason: &'static str,
    /// How many rows.
    pub rows: u64,
    /// The line of the first of them; 0 where it is not known any more.
    pub first_line: u64,
}

/// A whole trace, by arrival; rows of one instant as in the file.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// The form it was read as, in words.
    pub form: &'static str,
    /// What the file says about itself.
    pub about: Vec<String>,
    /// What 0 ms in the rows is in ms since 1970; `None` where the file has no dates.
    pub epoch_ms: Option<i64>,
    /// Its workloads.
    pub rows: Vec<Row>,
    /// The teams' names, in the order of their first rows.
    pub teams: Vec<String>,
    /// Whether each team is made of the columns that the reader was asked to make it of.
    pub(crate) teams_by_column: bool,
    /// The users' names. A trace without users has one for each team, with the team's name.
    pub users: Vec<String>,
    /// Whether the file has users.
    pub names_users: bool,
    /// What the names of its work have in common, those of one kind under one number; the first is none.
    pub names: Vec<Name>,
    /// Whether what is counted as GPUs are processors.
    pub counts_processors: bool,
    /// The lists of pools that rows accept, each in order of preference; the first is empty: any.
    pub pools: Vec<Vec<String>>,
    /// How many rows cannot be used.
    pub bad_rows: u64,
    /// The first of them.
    pub bad_examples: Vec<BadRow>,
    /// What was read and is no workload of its own.
    pub skipped: Vec<Counted>,
    /// Where a rule had to decide.
    pub ruled: Vec<Counted>,
    /// Why readable rows were left out, and how many.
    pub left_out: Vec<String>,
    /// What the scenario's rules had to settle.
    pub(crate) said: Vec<String>,
}

impl Trace {
    /// Reads a trace; an error is one of the header or of the medium, never of a single row.
    pub fn read(input: impl Read, reading: Reading) -> Result<Trace, String> {
        let read = || form::read(&mut Input::open(input).map_err(|error| error.to_string())?, reading);
        read().map_err(|message| message.lines().map(harmless).collect::<Vec<_>>().join("\n"))
    }

    /// Takes out the rows for which `why` has a reason; each reason is kept once, with how many rows it concerns.
    pub(crate) fn leave_out(&mut self, mut why: impl FnMut(&Row) -> Option<String>) {
        let mut reasons: BTreeMap<String, u64> = BTreeMap::new();
        self.rows.retain(|row| match why(row) {
            Some(reason) => {
                *reasons.entry(reason).or_default() += 1;
                false
            }
            None => true,
        });
        self.bad_rows += reasons.values().sum::<u64>();
        self.left_out.extend(reasons.into_iter().map(|(reason, rows)| format!("{rows} rows: {reason}")));
    }

    /// What could not be used, a line for each example and each reason; empty if all could.
    pub fn notes(&self) -> String {
        let examples = self.bad_examples.iter().map(|bad| format!("\n  line {}: {}", bad.line, bad.reason));
        examples.chain(self.left_out.iter().map(|reason| format!("\n  {reason}"))).collect()
    }

    /// What readers should know though nothing is wrong: what was skipped, and where a rule had to decide.
    pub fn remarks(&self) -> Vec<String> {
        let first = |one: &Counted| if one.first_line > 0 { format!(" (the first in line {})", one.first_line) } else { String::new() };
        let skipped = self.skipped.iter().map(|one| format!("{} rows are left aside: {}{}", one.rows, one.reason, first(one)));
        let ruled = self.ruled.iter().map(|one| format!("{} rows: {}{}", one.rows, one.reason, first(one)));
        skipped.chain(ruled).chain(self.said.iter().cloned()).collect()
    }

    /// The family of a row's work.
    pub fn family(&self, row: &Row) -> Family {
        let stem = self.names.get(row.name as usize).map_or_else(String::new, |name| name.stem.clone());
        Family { user: self.users[row.user as usize].clone(), stem, gpus: size_class(row.all_gpus()) }
    }

    /// The same as the core's identity, where the row has a name.
    pub(crate) fn named_family(&self, row: &Row) -> Option<FamilyId> {
        (row.name > 0).then(|| self.family(row).id())
    }

    /// GPU time of each team in ms, and CPU time of its work without GPUs; or 1 for each.
    pub(crate) fn usage_by_team(&self, equal: bool) -> Vec<[u128; 2]> {
        let mut usage = vec![[u128::from(equal); 2]; self.teams.len()];
        for row in self.rows.iter().filter(|_| !equal) {
            let [gpus, cpus] = &mut usage[row.team as usize];
            *gpus += row.gpu_ms();
            *cpus += row.cpu_ms();
        }
        usage
    }

    /// In order of arrival, from the first.
    fn settle(&mut self) {
        if !self.rows.is_sorted_by_key(Row::arrival_ms) {
            self.rows.sort_by_key(Row::arrival_ms);
        }
        let first = self.rows.first().map_or(0, Row::arrival_ms);
        if first == 0 {
            return;
        }
        self.rows.iter_mut().for_each(|row| *row = row.shifted(first));
        self.epoch_ms = self.epoch_ms.map(|epoch| epoch.saturating_add(first));
    }
}

/// Whether these rows tell how work ended, as far as any of it ran and ended.
pub(crate) fn tells_outcomes<'r>(rows: impl Iterator<Item = &'r Row>) -> bool {
    let (mut tells, mut unknown) = (false, false);
    for row in rows.filter(|row| row.work_ms > 0) {
        match row.outcome {
            Outcome::Unknown => unknown = true,
            Outcome::Running | Outcome::Waiting => {}
            _ => tells = true,
        }
    }
    tells || !unknown
}

/// Why a record that was [cut](input::Line) cannot be read.
fn cut_record() -> String {
    format!("is longer than {} KiB, or has a quote that nothing closes", input::RECORD_MAX >> 10)
}

#[cfg(test)]
mod tests;
