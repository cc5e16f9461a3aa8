//! What the core is told: facts, in the past tense, a closed set.

use crate::id::{LeaseId, NodeId, PoolId, WorkloadId};
use crate::knobs::Knobs;
use crate::quantity::Time;
use crate::spec::{Changeset, Gang, NodeSpec, Severity, WorkloadSpec};
use std::sync::Arc;

/// A fact from outside.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Event {
    /// A pool exists with these knobs, or its knobs changed. Pools are numbered from 0 without gaps.
    KnobsSet { pool: PoolId, knobs: Box<Knobs> },
    /// The budget tree changed.
    BudgetsChanged(Changeset),
    /// A node joined its pool, ready.
    NodeJoined { node: NodeId, spec: NodeSpec },
    /// A node should leave service.
    NodeDrainRequested { node: NodeId, severity: Severity, reason: String },
    /// The repair of a drained node began.
    NodeRepairing { node: NodeId },
    /// A node is healthy again (also: a drain was called off).
    NodeReady { node: NodeId },
    /// A node no longer answers.
    NodeLost { node: NodeId },
    /// A workload was submitted, eligible at once.
    Submitted { workload: WorkloadId, spec: Arc<WorkloadSpec> },
    /// A waiting workload may not start for now.
    Held { workload: WorkloadId, why: String },
    /// A held workload may start again.
    Released { workload: WorkloadId },
    /// Its owner withdrew a workload.
    Cancelled { workload: WorkloadId },
    /// An administrator stopped a workload, for a reason.
    Stopped { workload: WorkloadId, reason: String },
    /// The member on this node runs.
    MemberRunning { lease: LeaseId, node: NodeId },
    /// All members run.
    LeaseRunning { lease: LeaseId },
    /// The workload banked its progress.
    Checkpointed { lease: LeaseId },
    /// Somebody used a session.
    Input { lease: LeaseId },
    /// All members of a lease are gone (or fenced) and its GPUs are free.
    LeaseEnded { lease: LeaseId, exit: Exit },
    /// Time passed.
    Tick,
    /// The shell was away since `from`: nobody decided, whatever was due. What happened meanwhile was told before this, in its order and
    /// with its own times. After more than a minute evictions go slowly for a while.
    Gap { from: Time },
}

/// How a lease ended, as the engine saw it. What it means depends on what the core had asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Exit {
    /// It ended by itself and well. Within the grace of a preemption that is not enough to count as done.
    Completed,
    /// The workload said that it was done.
    Done,
    /// It failed, by its own fault or by the stop signal.
    Failed,
    /// The infrastructure failed it.
    Infrastructure,
}

/// Why an event was refused. The state is as it was before.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Rejection {
    /// No such pool.
    PoolUnknown(PoolId),
    /// Pools are numbered without gaps.
    PoolNumber { pool: PoolId, expected: PoolId },
    /// A knob is out of range.
    Knob { knob: &'static str, message: String },
    /// The changeset was made from an older version.
    StaleVersion { based_on: u32, current: u32 },
    /// A budget names a parent that does not exist.
    ParentUnknown { budget: String, parent: crate::id::BudgetId },
    /// There must be exactly one root, above all others, and the same for ever.
    Root { message: String },
    /// Two children of one parent have one name.
    NameTaken { path: String },
    /// Children's shares sum to more than 100 %.
    SharesAbove100 { parent: String, pool: PoolId, sum_ppm: u64 },
    /// A budget that work is charged to would get children.
    LeafInUse { path: String },
    /// The budget is closed, or one above it: no new work.
    BudgetClosed { path: String },
    /// No such budget.
    BudgetUnknown(crate::id::BudgetId),
    /// Workloads run in leaves.
    BudgetNotALeaf { path: String },
    /// A zero claim may run unallocated work only.
    ZeroClaim { path: String },
    /// The number is in use or was used.
    WorkloadKnown(WorkloadId),
    /// No such workload (or it has ended).
    WorkloadUnknown(WorkloadId),
    /// The workload is not in a state where this can be said of it.
    WorkloadState { workload: WorkloadId, message: &'static str },
    /// A number in the request is out of range.
    Request { field: &'static str, value: String, expected: String },
    /// The gang can never fit its pool, in which at most so many members like these could (in one block, if it must stand in one).
    GangNeverFits { pool: PoolId, gang: Gang, members_max: u32 },
    /// The user has a session in one of its pools already.
    SessionOpen { workload: WorkloadId },
    /// No such node.
    NodeUnknown(NodeId),
    /// The number is in use.
    NodeKnown(NodeId),
    /// The node is not in a state where this can be said of it.
    NodeState { node: NodeId, message: &'static str },
    /// A report about a lease that is not the workload's present one: late or duplicate.
    LeaseUnknown(LeaseId),
    /// The lease is not in a state where this can be said of it.
    LeaseState { lease: LeaseId, message: &'static str },
}
