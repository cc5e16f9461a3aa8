//! Why a lease was told to stop, and what its end then means.

use stipend_core::entry::{By, Outcome};
use stipend_core::event::Exit;
use stipend_core::id::{NodeId, WorkloadId};
use stipend_core::quantity::Span;

/// Why a lease was told to stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    TimeLimit(Span),
    StartTimeout(Span),
    Owner,
    Administrator(String),
    NodeLost(NodeId),
    NodeCritical(NodeId),
    /// It yields its GPUs to this claimant.
    Claimant(WorkloadId),
}

/// What an end means, given what the lease had been told.
pub(super) fn outcome(exit: Exit, stop: Option<&Stop>) -> Outcome {
    match (exit, stop) {
        (Exit::Done, _) | (Exit::Completed, None) => Outcome::Completed,
        (Exit::Failed, None) => Outcome::Failed,
        (Exit::Infrastructure, None) | (_, Some(Stop::NodeLost(_))) => Outcome::NodeLost,
        (_, Some(Stop::TimeLimit(_))) => Outcome::TimedOut,
        (_, Some(Stop::StartTimeout(_))) => Outcome::StartTimeout,
        (_, Some(Stop::Owner | Stop::Administrator(_))) => Outcome::Cancelled,
        (_, Some(Stop::NodeCritical(_) | Stop::Claimant(_))) => Outcome::Preempted,
    }
}

/// Who or what ended it, for the log.
pub(super) fn by(stop: &Stop) -> By {
    match stop {
        Stop::TimeLimit(_) => By::TimeLimit,
        Stop::StartTimeout(_) => By::StartTimeout,
        Stop::Owner => By::Owner,
        Stop::Administrator(reason) => By::Administrator(reason.clone()),
        Stop::NodeLost(_) => By::NodeLost,
        Stop::NodeCritical(_) => By::CriticalDrain,
        Stop::Claimant(claimant) => By::Claimant(*claimant),
    }
}
