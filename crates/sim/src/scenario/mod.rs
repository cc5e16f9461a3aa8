//! A scenario: everything that a run needs but the seed and the policy.

mod budgets;
mod cluster;
pub mod error;
pub(crate) mod file;
pub(crate) mod file_work;
mod fit;
mod knobs;
pub(crate) mod length;
mod node_list;
pub(crate) mod overrides;
mod per_pool;
mod pool;
mod recorded;
mod replay;
mod resolve;
mod rivals;
mod source;
mod work;

use crate::generate::behaviour::Rule;
use crate::generate::lab::Lab;
use crate::generate::stream::Stream;
use crate::job::Job;
use crate::labels::Labels;
use crate::metrics::{PoolWindow, Window};
use crate::trace::Trace;
use crate::trace::rules::Rules;
use source::Source;
use std::path::Path;
use stipend_core::id::{BudgetId, NodeId, PoolId, WorkloadId};
use stipend_core::knobs::Knobs;
use stipend_core::quantity::{Gpus, Ppm, Span, Time};
use stipend_core::spec::{BudgetSpec, NodeSpec, Severity};

pub use cluster::{Cluster, knobs_over, parse_part};
pub use error::ScenarioError;
pub use length::parse_length;
pub use overrides::nearest;
pub use recorded::{Recorded, RecordedJob};
pub use rivals::Rivals;
pub use source::Place;

/// A scenario, read and checked.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// A short name.
    pub name: String,
    /// What it shows.
    pub description: String,
    /// The seed used where none is asked for.
    pub seed: u64,
    /// How long the run goes before anything is measured.
    pub warmup: Span,
    /// How long is measured.
    pub measure: Span,
    /// Whether the run goes on after that, without new submissions, until everything has ended.
    pub drain: bool,
    /// The nodes, by number.
    pub nodes: Vec<NodeSpec>,
    /// The pools, by number.
    pub pools: Vec<Pool>,
    /// The policy's knobs; a pool may have its own.
    pub knobs: Knobs,
    /// How the other policies are set up.
    pub rivals: Rivals,
    /// The budgets, by number, parents first.
    pub budgets: Vec<BudgetSpec>,
    /// What budgets, users and workloads are called.
    pub labels: Labels,
    pub(crate) model: Model,
    pub(crate) failures: Option<Failures>,
    pub(crate) lab: Option<Lab>,
    pub(crate) streams: Vec<StreamPlan>,
    pub(crate) behaviours: Vec<Rule>,
    pub(crate) trace: Option<(Trace, Rules)>,
    pub(crate) listed: Vec<Listed>,
    pub(crate) happenings: Vec<(Time, Happening)>,
}

/// One pool.
#[derive(Clone, Debug)]
pub struct Pool {
    /// What it is called.
    pub name: String,
    /// Its knobs.
    pub knobs: Knobs,
    /// Where it has no GPUs, how many CPUs are counted as one.
    pub cpus_per_gpu: Option<u32>,
}

/// What the scheduler is not told about machines and programs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Model {
    pub(crate) restart_cost: Span,
    /// From the stop signal until the processes have left, at most the grace; `None` is the whole grace.
    pub(crate) exit_after: Option<Span>,
    pub(crate) start_delay: Span,
    pub(crate) fence_after: Span,
}

/// How hosts fail.
#[derive(Clone, Debug)]
pub(crate) struct Failures {
    pub(crate) host_mtbf: Span,
    pub(crate) repair: Span,
    /// Running sums of the weights of [`Failures::KINDS`].
    pub(crate) weights: Vec<f64>,
}

impl Failures {
    /// What a failure can be: lost without a word, or a drain.
    pub(crate) const KINDS: [Option<Severity>; 4] = [None, Some(Severity::Critical), Some(Severity::Sick), Some(Severity::Maintenance)];
}

/// A stream and how many of its kind there are.
#[derive(Clone, Debug)]
pub(crate) struct StreamPlan {
    pub(crate) stream: Stream,
    pub(crate) slots: u32,
}

/// A workload named in the scenario.
#[derive(Clone, Debug)]
pub(crate) struct Listed {
    pub(crate) at: Time,
    pub(crate) job: Job,
}

/// What else happens in a scenario.
#[derive(Clone, Debug)]
pub(crate) enum Happening {
    Drain { node: NodeId, severity: Severity, reason: String, repair: Option<Span> },
    Lose { node: NodeId, repair: Option<Span> },
    Ready { node: NodeId },
    Cancel { workload: WorkloadId },
    Stop { workload: WorkloadId, reason: String },
    Hold { workload: WorkloadId, reason: String },
    Release { workload: WorkloadId },
    Stick { workload: WorkloadId, lasts: Span },
    SlowStart { workload: WorkloadId, lasts: Span },
    Share { budget: BudgetId, pool: Option<PoolId>, share: Ppm },
    Close { budget: BudgetId, closed: bool },
    Move { budget: BudgetId, to: BudgetId, share: Ppm },
    Gap { lasts: Span },
}

/// Reads a point in time since the start as a scenario writes it: `26:05`, `1:00:05`, `3d4h`.
pub fn time(text: &str) -> Option<Time> {
    length::parse_at(text).map(|span| Time(span.0))
}

impl Scenario {
    /// Reads the scenario in `path`, with `overrides` (`key=value`) in place of what it says.
    pub fn load(path: &Path, overrides: &[String]) -> Result<Scenario, ScenarioError> {
        let text = std::fs::read_to_string(path).map_err(|source| ScenarioError::Unreadable { path: path.into(), source })?;
        let source = Source { file: &path.display().to_string(), text: &text, overrides };
        resolve::resolve(&source, path.parent().unwrap_or(Path::new("")), None)
    }

    /// Reads a scenario from its text; `file` names it in messages.
    pub fn parse(file: &str, text: &str, overrides: &[String]) -> Result<Scenario, ScenarioError> {
        resolve::resolve(&Source { file, text, overrides }, Path::new(""), None)
    }

    /// The same, with a trace that was read already in place of the file of its `[trace]`.
    pub fn replay(file: &str, text: &str, overrides: &[String], trace: Trace) -> Result<Scenario, ScenarioError> {
        resolve::resolve(&Source { file, text, overrides }, Path::new(""), Some(trace))
    }

    /// All GPUs; where no pool has any, what its pools are counted in.
    pub fn capacity(&self) -> Gpus {
        let of_gpus = |node: &&NodeSpec| self.counts_gpus(node.pool);
        self.nodes.iter().filter(of_gpus).map(|node| Gpus(node.gpus)).sum()
    }

    /// Whether a pool is one of those that the figures of the whole are about: those with GPUs, or all where none has any.
    pub fn counts_gpus(&self, pool: PoolId) -> bool {
        self.pools[pool.index()].cpus_per_gpu.is_none() || self.pools.iter().all(|pool| pool.cpus_per_gpu.is_some())
    }

    /// What is measured of it. `express_kept`: the policy keeps express nodes for short contracts.
    pub fn window(&self, express_kept: bool) -> Window {
        let pool = |pool: &Pool| PoolWindow { name: pool.name.clone(), cpus_per_gpu: pool.cpus_per_gpu };
        Window { pools: self.pools.iter().map(pool).collect(), from: self.measure_from(), express_kept }
    }

    /// When measuring begins.
    pub fn measure_from(&self) -> Time {
        Time(self.warmup.0)
    }

    /// When measuring and submitting end.
    pub fn measure_to(&self) -> Time {
        Time((self.warmup + self.measure).0)
    }

    /// Its trace, with what of it could not be used.
    pub fn trace(&self) -> Option<&Trace> {
        self.trace.as_ref().map(|(trace, _)| trace)
    }
}

#[cfg(test)]
mod tests;
