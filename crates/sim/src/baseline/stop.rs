//! Why a lease was told to stop, and what its end then means.

use stipend_core::entry::Outcome;
use stipend_core::event::Exit;
use stipend_core::id::NodeId;
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
        (_, Some(Stop::NodeCritical(_))) => Outcome::Preempted,
    }
}

/// Who or what ended it, for the log.
pub(super) fn by(stop: &Stop) -> String {
    match stop {
        Stop::TimeLimit(limit) => format!("its time limit of {limit}"),
        Stop::StartTimeout(limit) => format!("not all members ran within {limit}"),
        Stop::Owner => "its owner".into(),
        Stop::Administrator(reason) => format!("an administrator: {reason}"),
        Stop::NodeLost(node) => format!("{node} was lost"),
        Stop::NodeCritical(node) => format!("{node} drains critically"),
    }
}
