//! A workload as the simulator knows it: what the scheduler is told, and the truth it is not told.

use std::sync::Arc;
use stipend_core::quantity::{Ppm, Span};
use stipend_core::spec::{OnPreempt, Start, WorkloadSpec};

/// One workload of a population.
#[derive(Clone, Debug)]
pub struct Job {
    /// What the scheduler is told.
    pub spec: Arc<WorkloadSpec>,
    /// How long it must run, undisturbed, until it is done.
    pub work: Span,
    /// What it comes to when its work is done.
    pub ends: Ends,
    /// It banks progress this often, counted from its lease's start (`resume` work only).
    pub checkpoint_every: Span,
    /// The same while it runs unallocated, with a contract or without.
    pub unprotected_every: Span,
    /// Of a session: how its user uses it; `None` where nobody does.
    pub input: Option<Input>,
    /// Which closed-loop stream submitted it and waits for its end; `None` in the open loop.
    pub stream: Option<u32>,
    /// The part of its running time in which it works; the rest of the time it only keeps its GPUs.
    pub useful: Ppm,
    /// It goes on from its checkpoints, whatever the scheduler is told.
    pub resumes: bool,
    /// Its owner cancels it so long after its submission, if it is not over.
    pub cancel_after: Option<Span>,
}

/// What work comes to when it has run for as long as it runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ends {
    /// It completes.
    #[default]
    Completed,
    /// It fails.
    Failed,
    /// Its owner cancels it.
    Cancelled,
}

impl Ends {
    /// Whether it fails, of what nobody cancels.
    pub fn failing(fails: bool) -> Ends {
        if fails { Ends::Failed } else { Ends::Completed }
    }
}

/// How the user of a session uses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Input {
    /// How often, while it runs.
    pub every: Span,
    /// For how long from its submission on; then the user is away.
    pub lasts: Span,
}

impl Input {
    /// Somebody is there all the time.
    pub(crate) const ALWAYS: Input = Input { every: Span::minutes(10), lasts: Span::days(3650) };
}

/// How often work with this contract banks its progress where nothing else is said: at least once in every contract, or evicted work
/// would have banked nothing and could go on like that for ever.
pub(crate) fn checkpoint_default(min_runtime: Span) -> Span {
    if min_runtime == Span::ZERO { UNPROTECTED } else { min_runtime.min(Span::hours(1)) }
}

const UNPROTECTED: Span = Span::minutes(30);

/// How often it does while it runs unallocated: a whole part of its interval, so that every checkpoint that is known comes.
pub(crate) fn unprotected_default(checkpoint_every: Span) -> Span {
    Span(checkpoint_every.0 / checkpoint_every.0.div_euclid(UNPROTECTED.0).max(1))
}

/// Whether work starts before its turn where nothing else is said.
pub(crate) fn start_default(on_preempt: OnPreempt, min_runtime: Span) -> Start {
    if on_preempt == OnPreempt::Resume && min_runtime > Span::ZERO { Start::Whenever } else { Start::Guaranteed }
}
