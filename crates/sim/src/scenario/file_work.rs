//! Workloads and happenings of a scenario file, field by field as they are written.

use super::length::{At, GangText, Length};
use crate::job::Input;
use serde::Deserialize;
use stipend_core::quantity::Span;
use stipend_core::spec::{OnPreempt, Severity, Start, WorkloadKind};
use toml::Spanned;

/// `on_preempt` of a workload.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum OnPreemptText {
    #[default]
    Resume,
    Restart,
    End,
}

impl From<OnPreemptText> for OnPreempt {
    fn from(text: OnPreemptText) -> OnPreempt {
        match text {
            OnPreemptText::Resume => OnPreempt::Resume,
            OnPreemptText::Restart => OnPreempt::Restart,
            OnPreemptText::End => OnPreempt::End,
        }
    }
}

/// `start` of a workload.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum StartText {
    Guaranteed,
    Whenever,
}

impl From<StartText> for Start {
    fn from(text: StartText) -> Start {
        match text {
            StartText::Guaranteed => Start::Guaranteed,
            StartText::Whenever => Start::Whenever,
        }
    }
}

/// `[[workloads]]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WorkloadFile {
    /// When it is submitted.
    #[serde(default)]
    pub(crate) at: At,
    /// Its name, once in the scenario.
    pub(crate) name: Spanned<String>,
    /// Who submits it. Default: the budget's own name.
    pub(crate) user: Option<String>,
    /// The leaf budget's path.
    pub(crate) budget: Spanned<String>,
    /// Members × GPUs of each, such as `"2x8"`.
    pub(crate) gang: Spanned<GangText>,
    /// The pools that it accepts, the one it likes best first. Default: all that are counted in GPUs, in their order.
    pub(crate) pools: Option<Spanned<Vec<String>>>,
    /// What each of its nodes must have.
    pub(crate) features: Option<Spanned<Vec<String>>>,
    /// CPUs each member asks for. Default: the node's part of its GPUs.
    #[serde(default)]
    pub(crate) cpus_per_member: u32,
    /// Memory in GiB each member asks for. Default: the node's part of its GPUs.
    #[serde(default)]
    pub(crate) memory_gib_per_member: u64,
    /// Whether all members must stand in one block. Default false.
    #[serde(default)]
    pub(crate) same_block: bool,
    /// The contract; 0s is unallocated work. `end` work has its time limit instead.
    #[serde(default)]
    pub(crate) min_runtime: Length,
    /// The most running time over all attempts.
    pub(crate) time_limit: Option<Spanned<Length>>,
    /// How long its owner thinks that it runs, over all attempts. Default: nothing is said.
    pub(crate) expected_runtime: Option<Spanned<Length>>,
    /// `resume` (default), `restart` or `end`.
    #[serde(default)]
    pub(crate) on_preempt: OnPreemptText,
    /// `guaranteed`: it starts with its contract or not at all; `whenever`: rather than wait beside idle GPUs it starts unallocated.
    /// Default: `whenever` for `resume` work.
    pub(crate) start: Option<StartText>,
    /// Order inside its budget. Default 0.
    #[serde(default)]
    pub(crate) priority: i16,
    /// How long it must run, undisturbed, until it is done.
    pub(crate) work: Spanned<Length>,
    /// What it is like: with its user and its size it makes the family by whose past it is judged in a budget of the order `completion`.
    pub(crate) family: Option<String>,
    /// Whether it then fails instead of completing. Default false.
    #[serde(default)]
    pub(crate) fails: bool,
    /// How often it banks its progress. Default: its contract, at most 1 h; 30 min if unallocated.
    pub(crate) checkpoint_every: Option<Length>,
    /// Whether the scheduler is told `checkpoint_every`. Default true.
    #[serde(default = "yes")]
    pub(crate) checkpoint_known: bool,
    /// Interactive work, on at most 8 GPUs; one for each user and pool. Default false.
    #[serde(default)]
    pub(crate) session: bool,
    /// How often a session is used while it runs; `0s` is never. Default 10 min.
    pub(crate) input_every: Option<Length>,
    /// For how long from its submission on it is used. Default: always.
    pub(crate) input_for: Option<Length>,
    /// How many alike are submitted at once, named `name-1`, `name-2`, … Default 1.
    #[serde(default = "single")]
    pub(crate) count: u32,
}

fn yes() -> bool {
    true
}

fn single() -> u32 {
    1
}

impl WorkloadFile {
    /// How a session is used.
    pub(crate) fn input(&self) -> Option<Input> {
        let every = self.input_every.map_or(Input::ALWAYS.every, Span::from);
        let lasts = self.input_for.map_or(Input::ALWAYS.lasts, Span::from);
        (self.session && every > Span::ZERO).then_some(Input { every, lasts })
    }

    /// Batch or session.
    pub(crate) fn kind(&self) -> WorkloadKind {
        if self.session { WorkloadKind::Session } else { WorkloadKind::Batch }
    }
}

/// `severity` of a drain.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum SeverityText {
    Maintenance,
    #[default]
    Sick,
    Critical,
}

impl From<SeverityText> for Severity {
    fn from(text: SeverityText) -> Severity {
        match text {
            SeverityText::Maintenance => Severity::Maintenance,
            SeverityText::Sick => Severity::Sick,
            SeverityText::Critical => Severity::Critical,
        }
    }
}

/// `what` of a happening.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum WhatText {
    /// A node should leave service: `node`, `severity`, `reason`; `lasts` is the repair after it.
    Drain,
    /// A node no longer answers: `node`; `lasts` is the repair.
    Lose,
    /// A node is healthy again: `node`.
    Ready,
    /// The owner withdraws: `workload`.
    Cancel,
    /// An administrator stops: `workload`, `reason`.
    Stop,
    /// A waiting workload may not start: `workload`, `reason`.
    Hold,
    /// It may again: `workload`.
    Release,
    /// From now on the processes of `workload` ignore the stop signal, and leave `lasts` after it.
    Stick,
    /// The next start of `workload` takes `lasts`.
    SlowStart,
    /// A budget's share changes: `budget`, `share`.
    Share,
    /// A budget takes no new work any more: `budget`.
    Close,
    /// It takes work again: `budget`.
    Open,
    /// A budget gets another parent, with a share of that: `budget`, `to`, `share`.
    Move,
    /// The scheduler is away for `lasts`, and nobody decides; the machines and the people go on.
    Gap,
}

/// `[[happenings]]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HappeningFile {
    /// When.
    pub(crate) at: At,
    /// What.
    pub(crate) what: WhatText,
    /// The node's number, from 0.
    pub(crate) node: Option<u32>,
    /// The name of a workload of `[[workloads]]`.
    pub(crate) workload: Option<String>,
    /// The path of a budget.
    pub(crate) budget: Option<String>,
    /// The budget's new share in percent.
    pub(crate) share: Option<f64>,
    /// The path of the budget's new parent.
    pub(crate) to: Option<String>,
    /// In which pool. Default: in all of them.
    pub(crate) pool: Option<String>,
    /// How urgent a drain is: `maintenance`, `sick` (default) or `critical`.
    #[serde(default)]
    pub(crate) severity: SeverityText,
    /// Why, in words.
    #[serde(default)]
    pub(crate) reason: String,
    /// How long it lasts.
    pub(crate) lasts: Option<Length>,
}
