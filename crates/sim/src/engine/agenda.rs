//! What is going to happen, by time and then in the order it was put down.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use stipend_core::id::{LeaseId, NodeId, WorkloadId};
use stipend_core::quantity::Time;

/// One thing that is going to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Next {
    /// A stream submits.
    Stream(u32),
    /// A listed workload is submitted.
    Listed(u32),
    /// A happening of the scenario.
    Happening(u32),
    /// All members of a lease run.
    Running(LeaseId),
    /// A lease reaches a checkpoint or its end.
    Progress(LeaseId),
    /// Somebody uses a session.
    Input(LeaseId),
    /// The processes of a stopped lease are gone.
    Exit(LeaseId),
    /// A lease on a lost node certainly no longer runs.
    Fenced(LeaseId),
    /// The owner of a workload has had enough of it.
    Cancel(WorkloadId),
    /// A host fails.
    HostFails(NodeId),
    /// The repair of a drained host begins.
    Repairing(NodeId),
    /// A host is healthy again.
    Repaired(NodeId),
    /// The scheduler is back from a gap.
    Back,
}

/// A heap by (time, sequence number), so that equal times keep their order.
#[derive(Default)]
pub(super) struct Agenda {
    heap: BinaryHeap<Reverse<(Time, u64, Next)>>,
    sequence: u64,
}

impl Agenda {
    pub(super) fn put(&mut self, at: Time, next: Next) {
        self.heap.push(Reverse((at, self.sequence, next)));
        self.sequence += 1;
    }

    /// When the next thing happens.
    pub(super) fn at(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse((at, _, _))| *at)
    }

    /// The next thing, if it happens at `at` or before.
    pub(super) fn take(&mut self, at: Time) -> Option<Next> {
        self.at().filter(|&next| next <= at)?;
        self.heap.pop().map(|Reverse((_, _, next))| next)
    }
}
