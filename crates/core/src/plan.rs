//! A plan: the decisions of one cycle in their order, each with its reason, and what was passed over.

use crate::entry::{Licence, Occupancy, Placement, Unreserved};
use crate::explain::{Blocker, Why};
use crate::id::{BudgetId, LeaseId, NodeId, PoolId, ReservationId, WorkloadId};
use crate::quantity::Time;
use crate::queue::{Blocked, Licensed, ShapeId};
use crate::workload::StopCause;
use std::sync::Arc;

/// What a cycle decides.
#[derive(Clone, Debug, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) enum Decision {
    /// Waiting work starts.
    Start { workload: WorkloadId, placement: Placement, occupancy: Occupancy, licence: Licence, why: Why },
    /// A lease that runs unallocated gets its contract where it is.
    Promote { workload: WorkloadId, why: Why },
    /// A session gets its contract once more.
    Renew { workload: WorkloadId, why: Why },
    /// GPUs are held for waiting work until they are all free.
    Claim { workload: WorkloadId, placement: Placement, licence: Licence },
    /// The GPUs held for it are all free: it starts.
    StartClaimed { workload: WorkloadId },
    /// A workload is promised a latest start, or its promise moves.
    Reserve(Reserve),
    /// A promise is over.
    Unreserve { pool: PoolId, reservation: ReservationId, why: Unreserved },
    /// A pool's reservations, and the gangs that could have one, were looked at; they are again then.
    LookedAtReservations { pool: PoolId, keep_at: Time, grant_at: Time },
    /// A lease will be preempted.
    Preempt { lease: LeaseId, preemption: Preemption },
    /// A stop signal is due.
    Signal { lease: LeaseId },
    /// A limit of a lease is reached: it is told to stop.
    Stop { lease: LeaseId, cause: StopCause },
    /// A lease outlived its grace: its nodes drain critically.
    Stuck { lease: LeaseId },
    /// A draining node is empty.
    Drained { node: NodeId },
    /// A pool's waiting work was gone through; what was passed over is looked at again then.
    Walked { pool: PoolId, retry_at: Time, too_dear: bool },
    /// A class of waiting work could not start.
    PassOver(PassedOver),
    /// What the licences of a leaf reach was looked at.
    Licensed(LicensedLeaf),
}

impl Decision {
    /// Whether it only writes down what was found: nothing outside changes by it.
    fn is_note(&self) -> bool {
        use Decision::*;
        matches!(self, Walked { .. } | LookedAtReservations { .. } | PassOver(_) | Licensed(_))
    }
}

/// A promised latest start.
#[derive(Clone, Debug, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Reserve {
    pub reservation: ReservationId,
    pub workload: WorkloadId,
    /// Sorted.
    pub nodes: Arc<[NodeId]>,
    /// By then the last protection on its nodes has ended.
    pub clears: Time,
    pub latest_start: Time,
    pub why: Why,
}

/// How a lease is preempted.
#[derive(Clone, Debug, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Preemption {
    pub cause: StopCause,
    /// The node whose drain or loss is the reason, if that is it.
    pub node: Option<NodeId>,
    pub licence: Licence,
    /// When the stop signal goes out.
    pub signal_at: Time,
    pub why: Why,
}

/// A class of waiting work that could not start in this cycle.
#[derive(Clone, Debug, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct PassedOver {
    pub pool: PoolId,
    pub leaf: BudgetId,
    pub allocated: bool,
    pub shape: ShapeId,
    /// It was tried to start it before its turn, on idle GPUs.
    pub early: bool,
    pub blocked: Blocked,
    pub blocker: Blocker,
}

/// What the licences of a leaf reached in this cycle.
#[derive(Clone, Debug, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct LicensedLeaf {
    pub pool: PoolId,
    pub leaf: BudgetId,
    pub licensed: Licensed,
}

/// The decisions of one cycle, and what it found, in the order in which it came to them.
#[derive(Clone, Debug, Default, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Plan {
    pub(crate) at: Option<Time>,
    pub(crate) decisions: Vec<Decision>,
}

impl Plan {
    /// How many decisions it holds that change something outside.
    pub fn len(&self) -> usize {
        self.decisions.iter().filter(|decision| !decision.is_note()).count()
    }

    /// The classes of waiting work that could not start, by leaf, each with what stopped it.
    pub fn passed_over(&self) -> impl Iterator<Item = (BudgetId, &Blocker)> {
        self.decisions.iter().filter_map(|decision| match decision {
            Decision::PassOver(passed) if !passed.early => Some((passed.leaf, &passed.blocker)),
            _ => None,
        })
    }

    /// Whether it decides nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
