//! A workload as the simulator knows it: what the scheduler is told, and the truth it is not told.

use std::sync::Arc;
use stipend_core::quantity::{Ppm, Span};
use stipend_core::spec::WorkloadSpec;

/// One workload of a population.
#[derive(Clone, Debug)]
pub struct Job {
    /// What the scheduler is told.
    pub spec: Arc<WorkloadSpec>,
    /// How long it must run, undisturbed, until it is done.
    pub work: Span,
    /// Whether it fails when its work is done instead of completing.
    pub fails: bool,
    /// It banks progress this often, counted from its lease's start (`resume` work only).
    pub checkpoint_every: Span,
    /// Which closed-loop stream submitted it and waits for its end; `None` in the open loop.
    pub stream: Option<u32>,
    /// The part of its running time in which it works; the rest of the time it only keeps its GPUs.
    pub useful: Ppm,
    /// It goes on from its checkpoints, whatever the scheduler is told.
    pub resumes: bool,
    /// Its owner cancels it so long after its submission, if it is not over.
    pub cancel_after: Option<Span>,
}

/// How often work with this contract banks its progress where nothing else is said: at least once in every contract, or evicted work
/// would have banked nothing and could go on like that for ever.
pub(crate) fn checkpoint_default(min_runtime: Span) -> Span {
    if min_runtime == Span::ZERO { Span::minutes(30) } else { min_runtime.min(Span::hours(1)) }
}
