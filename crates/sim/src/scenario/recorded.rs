//! A scenario made of a real cluster and the work that it had: what a live system replays under other rules.

use super::{Listed, Model, Pool, Rivals, Scenario};
use crate::job::{Ends, Job, checkpoint_default, unprotected_default};
use crate::labels::Labels;
use std::sync::Arc;
use stipend_core::knobs::Knobs;
use stipend_core::quantity::{Ppm, Span, Time};
use stipend_core::spec::{BudgetSpec, NodeSpec, OnPreempt, WorkloadSpec};

/// A workload that was submitted, and what is known of how long it runs.
#[derive(Clone, Debug)]
pub struct RecordedJob {
    /// When, from the start of the record.
    pub at: Time,
    /// What was asked for.
    pub spec: Arc<WorkloadSpec>,
    /// Its running time, undisturbed.
    pub work: Span,
    /// What it came to.
    pub ends: Ends,
}

/// A cluster with its work.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// For messages.
    pub name: String,
    /// By number.
    pub pools: Vec<Pool>,
    /// By number.
    pub nodes: Vec<NodeSpec>,
    /// By number, without gaps, parents first.
    pub budgets: Vec<BudgetSpec>,
    /// What they are called.
    pub labels: Labels,
    /// What is measured begins after so long.
    pub warmup: Span,
    /// And goes on for so long.
    pub measure: Span,
    /// In order of submission.
    pub jobs: Vec<RecordedJob>,
}

impl From<Recorded> for Scenario {
    fn from(recorded: Recorded) -> Scenario {
        let Recorded { name, pools, nodes, budgets, labels, warmup, measure, jobs } = recorded;
        let knobs = pools.first().map_or_else(Knobs::default, |pool| pool.knobs.clone());
        let model = Model { restart_cost: knobs.restart_cost, exit_after: None, start_delay: Span::ZERO, fence_after: Span::minutes(2) };
        Scenario {
            description: format!("the work that {name} had"),
            name,
            seed: 1,
            warmup,
            measure,
            drain: false,
            nodes,
            pools,
            knobs,
            rivals: Rivals::default(),
            budgets,
            labels,
            model,
            failures: None,
            lab: None,
            streams: Vec::new(),
            behaviours: Vec::new(),
            trace: None,
            listed: jobs.into_iter().map(listed).collect(),
            happenings: Vec::new(),
        }
    }
}

fn listed(job: RecordedJob) -> Listed {
    let RecordedJob { at, spec, work, ends } = job;
    let checkpoint_every = spec.checkpoint_every.unwrap_or_else(|| checkpoint_default(spec.min_runtime));
    let job = Job {
        work,
        ends,
        checkpoint_every,
        unprotected_every: unprotected_default(checkpoint_every),
        input: None,
        stream: None,
        useful: Ppm::ONE,
        resumes: spec.on_preempt == OnPreempt::Resume,
        cancel_after: None,
        spec,
    };
    Listed { at, job }
}
