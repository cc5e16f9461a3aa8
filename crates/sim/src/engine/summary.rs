//! What a run came to.

use stipend_core::event::Rejection;
use stipend_core::id::WorkloadId;
use stipend_core::quantity::Time;

/// What a run came to.
#[derive(Clone, Debug, Default)]
pub struct RunSummary {
    /// When it ended.
    pub end: Time,
    /// Workloads submitted, refused ones included.
    pub submitted: u64,
    /// Refused submissions.
    pub refused: u64,
    /// The first of them.
    pub refusals: Vec<(WorkloadId, Rejection)>,
    /// Workloads that completed.
    pub completed: u64,
    /// Workloads that failed or ran into their time limit.
    pub failed: u64,
    /// Workloads that ended in another way: cancelled, or preempted for good.
    pub other_ends: u64,
    /// Workloads that had not ended.
    pub unfinished: u64,
    /// Those of them that never started.
    pub never_started: u64,
    /// Reports of the engine that the policy refused; each is a fault in one of the two.
    pub faults: u64,
    /// The first of them.
    pub fault_examples: Vec<(Time, Rejection)>,
    /// Facts told.
    pub events: u64,
    /// Cycles of decisions.
    pub cycles: u64,
}
