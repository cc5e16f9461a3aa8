//! What the core says: the event log's entries, each with its reason where it was a decision.
//!
//! The log is the one output. The shell writes it to the journal, turns `Started`, `Stopping`, … into commands for the engine, and
//! feeds reports from it. The JSON form is made outside.

use crate::event::Rejection;
use crate::explain::Why;
use crate::id::{BudgetId, LeaseId, NodeId, PoolId, ReservationId, WorkloadId};
use crate::knobs::Knobs;
use crate::quantity::{Claim, GpuMs, Gpus, Span, Time};
use crate::spec::{BudgetSpec, NodeSpec, NodeState, WorkloadSpec};
use crate::waits::WaitEstimate;
use std::sync::Arc;

/// GPUs of one node, one bit a GPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct GpuSet(pub u64);

/// The GPUs of one node in a placement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Slot {
    /// The node.
    pub node: NodeId,
    /// Which of its GPUs.
    pub gpus: GpuSet,
}

/// Which GPUs: one slot a node, by node number.
pub type Placement = Arc<[Slot]>;

/// What a start may have taken, the strongest that it used; and what an eviction was allowed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Licence {
    /// Free GPUs.
    Free,
    /// GPUs of unallocated work, which is there for this.
    Unallocated,
    /// Past-contract work on express GPUs, for a short contract.
    Express,
    /// Past-contract work of the same leaf: higher priority, or by age.
    OwnLeaf,
    /// Past-contract work of a leaf that is not below its share, side against side in the tree.
    Tree,
    /// Past-contract work of a leaf that stands higher, for a leaf below its share.
    Share,
    /// What lies on a reservation's nodes at its date, judged when it was granted.
    Reservation,
    /// The end of a drain.
    Drain,
    /// A critical drain, or the loss of the node.
    Critical,
    /// An administrator, with a reason.
    Administrator,
}

/// Charged and protected, or neither.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Occupancy {
    /// Charged; protected for its contract.
    Allocated,
    /// Never charged, never protected.
    Unallocated,
}

/// How a workload's attempt, or the workload itself, ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Outcome {
    /// Done.
    Completed,
    /// By its own fault.
    Failed,
    /// It yielded its GPUs.
    Preempted,
    /// By its owner or an administrator.
    Cancelled,
    /// Its time limit.
    TimedOut,
    /// The infrastructure failed it.
    NodeLost,
    /// Its members did not all run in time.
    StartTimeout,
}

/// Who or what ended an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum By {
    /// It ended by itself.
    Itself,
    /// It yielded to this claimant.
    Claimant(WorkloadId),
    /// A drain reached its end.
    Drain,
    /// A node drains critically.
    CriticalDrain,
    /// A node was lost.
    NodeLost,
    /// Not all members ran in time.
    StartTimeout,
    /// Its time limit.
    TimeLimit,
    /// Its owner.
    Owner,
    /// An administrator, for this reason.
    Administrator(String),
}

/// What a charge was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum ChargeKind {
    /// A lease.
    Run,
    /// GPUs held for a claimant.
    Hold,
}

/// Why a reservation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Unreserved {
    /// Its workload started.
    Started,
    /// Its workload's owner withdrew or held it, or an administrator stopped it.
    Owner,
    /// Its budget may not start it any more.
    Budget,
    /// Some of its nodes left service, and no others are free in time.
    NodesLost,
}

/// The class of a workload's request, for reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Class {
    /// At most 8 GPUs and a contract of at most 15 minutes.
    Debug,
    /// Allocated, neither debug nor largest.
    Medium,
    /// A gang of at least an eighth of the pool.
    Largest,
    /// Unallocated.
    Unallocated,
}

/// A budget as the log shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BudgetEntry {
    /// As stated.
    pub spec: BudgetSpec,
    /// Its full path.
    pub path: String,
    /// Its claim on each pool.
    pub claims: Vec<Claim>,
}

/// What a workload gets in one pool that it accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InPool {
    /// Which pool.
    pub pool: PoolId,
    /// GPUs it is charged for there.
    pub charged_gpus: Gpus,
    /// Its contract there, after clamping.
    pub min_runtime: Span,
}

/// One entry of the event log.
#[derive(Clone, Debug)]
pub enum Entry {
    /// All knobs of a pool, at the start and at each change.
    Policy { pool: PoolId, knobs: Box<Knobs> },
    /// A node joined or changed its state.
    Node { node: NodeId, spec: NodeSpec, state: NodeState, drain_until: Option<Time>, reason: String },
    /// The whole budget tree, at each change.
    Budgets { version: u32, author: String, reason: String, budgets: Vec<BudgetEntry> },
    /// A workload was accepted. `pool` is the first that takes it, with what it gets there (`min_runtime` is its contract after clamping)
    /// and its class there; `others` take it, too; `skipped` never could, for these reasons.
    Submitted {
        workload: WorkloadId,
        spec: Arc<WorkloadSpec>,
        pool: PoolId,
        charged_gpus: Gpus,
        min_runtime: Span,
        class: Class,
        others: Box<[InPool]>,
        skipped: Box<[(PoolId, Rejection)]>,
    },
    /// Nobody decided since `from`; after more than a minute evictions go slowly for a while.
    Gap { from: Time },
    /// A submission (or another event) was refused.
    Refused { rejection: Rejection },
    /// It completed in much less than its earlier attempts took, so it did not begin anew: until then evictions of its leaf's work that
    /// says so count as if it resumed.
    Doubted { workload: WorkloadId, budget: BudgetId, until: Time },
    /// It may start from now on; `estimate` is how long like work waited, if enough is known.
    Eligible { workload: WorkloadId, estimate: Option<WaitEstimate> },
    /// It may not start for now.
    Held { workload: WorkloadId, why: String },
    /// GPUs were assigned: command the engine to launch it.
    Started { lease: LeaseId, pool: PoolId, occupancy: Occupancy, placement: Placement, licence: Licence, why: Why },
    /// All members run; `protected_until` is `None` for unallocated work.
    Running { lease: LeaseId, protected_until: Option<Time> },
    /// A lease that ran unallocated got its contract where it is; `protected_until` is `None` if it does not run yet.
    Promoted { lease: LeaseId, protected_until: Option<Time>, why: Why },
    /// A session got its contract once more.
    Renewed { lease: LeaseId, protected_until: Time, why: Why },
    /// Somebody used a session, for the first time since its contract began.
    Input { lease: LeaseId },
    /// It banked its progress.
    Checkpoint { lease: LeaseId },
    /// The plan to preempt a lease, for a claimant or for a node's drain.
    Preempting { lease: LeaseId, claimant: Option<WorkloadId>, node: Option<NodeId>, licence: Licence, stop_by: Time, why: Why },
    /// The stop signal: command the engine to end it within `grace`.
    Stopping { lease: LeaseId, grace: Span },
    /// Its claimant went away before the signal: it goes on.
    Spared { lease: LeaseId },
    /// These GPUs are kept for a claimant; one counts as held when it is free.
    Hold { claimant: WorkloadId, placement: Placement },
    /// They no longer are.
    Unhold { claimant: WorkloadId, why: Why },
    /// A workload is promised to start at the latest then, on these nodes or others; again when it is promised an earlier start.
    Reserved { reservation: ReservationId, workload: WorkloadId, pool: PoolId, latest_start: Time, nodes: Arc<[NodeId]>, why: Why },
    /// The promise is over.
    Unreserved { reservation: ReservationId, workload: WorkloadId, why: Unreserved },
    /// An attempt ended, or (`attempt` is `None`) a workload that was waiting.
    Ended { workload: WorkloadId, attempt: Option<u32>, outcome: Outcome, lost: GpuMs, by: By },
    /// It waits again, with its old eligible time.
    Requeued { workload: WorkloadId },
    /// GPU time charged to a leaf and all its ancestors.
    Charged { workload: WorkloadId, attempt: u32, budget: BudgetId, pool: PoolId, kind: ChargeKind, from: Time, to: Time, gpu_ms: GpuMs },
    /// A part of a charge cancelled.
    Refunded { workload: WorkloadId, attempt: u32, budget: BudgetId, pool: PoolId, kind: ChargeKind, from: Time, to: Time, gpu_ms: GpuMs },
    /// Entitlement and usage imputed to a newborn budget for the lookback before its birth (the usage part, weighted by the kernel).
    Granted { budget: BudgetId, pool: PoolId, gpu_ms: GpuMs },
    /// Credit of an hour that a budget did not ask for and may not keep: it counts as used in its standing, and was delivered to nobody.
    Lapsed { budget: BudgetId, pool: PoolId, from: Time, to: Time, gpu_ms: GpuMs },
}
