//! What would have to be different for waiting work to start now, found by the planner itself.
//!
//! Each change is tried on a copy of the whole state: the workload is withdrawn, the changed one submitted, and one cycle decided. So what is
//! said here is what happens if its owner does just that now; the new workload does not keep the old one's place by age. Thresholds are found
//! by trying values from near to far and then halving the gap to whole steps. Nothing is assumed to be monotone: a longer contract can make
//! an eviction worth what it loses. A threshold is therefore told with the next step, which does not do.

mod search;
mod text;

use crate::entry::{Entry, Licence, Placement};
use crate::event::Event;
use crate::id::{BudgetId, PoolId, WorkloadId};
use crate::quantity::{Gpus, Span, Time};
use crate::scheduler::Scheduler;
use crate::spec::{Changeset, Features, OnPreempt, Start, WorkloadSpec};
use crate::workload::Workload;
use std::sync::Arc;

pub use text::nodes;

/// One thing that is different.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Nothing but that it is submitted anew.
    Anew,
    /// The contract. `fails` is a minute nearer to what it is now and does not do; `None` where nothing lies between.
    MinRuntime { to: Span, fails: Option<Span> },
    /// The time limit of `end` work, which is its contract; as above.
    TimeLimit { to: Span, fails: Option<Span> },
    /// What happens when it is preempted.
    OnPreempt { to: OnPreempt },
    /// This pool alone, which it does not name now.
    Pools { to: PoolId },
    /// Its members need not be in one block.
    AnyBlock,
    /// Its nodes need no features.
    AnyFeatures,
    /// It takes its nodes' part of CPUs and memory.
    HostPart,
    /// Fewer members; one more does not do.
    Members { to: u32 },
    /// Fewer GPUs of its one member; one more does not do.
    GpusPerMember { to: u32 },
    /// A higher priority in its leaf, the lowest of those that matter.
    Priority { to: i16 },
    /// It runs unallocated: never charged, never protected.
    Unallocated,
    /// A cap of this budget on GPUs of this pool at once, raised just as far as it needs; its manager may do that.
    Cap { pool: PoolId, budget: BudgetId, from: Gpus, to: Gpus },
}

/// What would come of it at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Instead {
    /// It starts.
    Starts {
        /// On these GPUs.
        placement: Placement,
        /// The strongest licence that it uses.
        licence: Licence,
    },
    /// GPUs are held for it, and whoever occupies them is told to leave.
    Takes {
        /// These.
        placement: Placement,
        /// The strongest licence that it uses.
        licence: Licence,
        /// How many leases it preempts.
        leases: u32,
        /// When the last of them has left at the latest, if it dies when it must.
        by: Time,
    },
}

impl Instead {
    /// How many leases it would preempt.
    pub fn leases(&self) -> u32 {
        match self {
            Instead::Starts { .. } => 0,
            Instead::Takes { leases, .. } => *leases,
        }
    }
}

/// A change and what would come of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counterfactual {
    /// What is different.
    pub change: Change,
    /// What comes of it.
    pub instead: Instead,
}

impl Change {
    /// The request with this change; `None` where it is no change of the request.
    pub fn spec(&self, spec: &WorkloadSpec) -> Option<WorkloadSpec> {
        let mut spec = spec.clone();
        match self {
            Change::Anew => {}
            Change::MinRuntime { to, .. } => spec.min_runtime = *to,
            Change::TimeLimit { to, .. } => spec.time_limit = Some(*to),
            Change::OnPreempt { to } => (spec.on_preempt, spec.start) = (*to, Start::Guaranteed),
            Change::Pools { to } => spec.pools = (*to).into(),
            Change::AnyBlock => spec.gang.same_block = false,
            Change::AnyFeatures => spec.gang.features = Features(0),
            Change::HostPart => (spec.gang.cpus_per_member, spec.gang.memory_per_member) = (0, 0),
            Change::Members { to } => spec.gang.members = *to,
            Change::GpusPerMember { to } => spec.gang.gpus_per_member = *to,
            Change::Priority { to } => spec.priority = *to,
            Change::Unallocated => spec.min_runtime = Span::ZERO,
            Change::Cap { .. } => return None,
        }
        Some(spec)
    }
}

impl Scheduler {
    /// What would start a waiting workload now, one change at a time: those of its own request first, what is closest to it before what is
    /// far; a cap last. Empty where nothing that is tried helps, and where it is not waiting for GPUs. It takes a copy of the state and a
    /// cycle for each trial, of which there are at most about a hundred.
    pub fn counterfactuals(&self, id: WorkloadId) -> Vec<Counterfactual> {
        search::run(self, id)
    }

    /// What would come at once of withdrawing a workload and submitting this request in its place; `None` if it would wait, or is refused.
    pub fn instead(&self, id: WorkloadId, spec: WorkloadSpec) -> Option<Instead> {
        submitted(&withdrawn(self, id)?, spec)
    }
}

/// The state without the workload.
fn withdrawn(s: &Scheduler, id: WorkloadId) -> Option<Scheduler> {
    let mut copy = s.clone();
    copy.apply(s.now, &Event::Cancelled { workload: id }, &mut Vec::new()).ok()?;
    Some(copy)
}

/// What comes at once of this request.
fn submitted(s: &Scheduler, spec: WorkloadSpec) -> Option<Instead> {
    let mut copy = s.clone();
    let workload = WorkloadId(copy.next_workload);
    copy.apply(s.now, &Event::Submitted { workload, spec: Arc::new(spec) }, &mut Vec::new()).ok()?;
    decided(copy, workload)
}

/// What one cycle decides about a workload.
fn decided(mut copy: Scheduler, workload: WorkloadId) -> Option<Instead> {
    let mut log = Vec::new();
    copy.decide(copy.now, &mut log);
    let is_early = copy.workloads.get(workload.0).is_some_and(Workload::is_early);
    let mut takes = None;
    for entry in &log {
        match entry {
            // With its contract: that it would run before its turn is another matter.
            Entry::Started { lease, placement, licence, .. } if lease.workload == workload && !is_early => {
                return Some(Instead::Starts { placement: placement.clone(), licence: *licence });
            }
            Entry::Hold { claimant, placement } if *claimant == workload => takes = Some((placement.clone(), Licence::Free, 0, copy.now)),
            Entry::Preempting { claimant: Some(claimant), licence, stop_by, .. } if *claimant == workload => {
                if let Some((_, strongest, leases, by)) = &mut takes {
                    (*strongest, *leases, *by) = ((*strongest).max(*licence), *leases + 1, (*by).max(*stop_by));
                }
            }
            _ => {}
        }
    }
    takes.map(|(placement, licence, leases, by)| Instead::Takes { placement, licence, leases, by })
}

/// What comes at once of a changed cap.
fn with_cap(s: &Scheduler, id: WorkloadId, pool: PoolId, budget: BudgetId, limit: Gpus) -> Option<Instead> {
    let allocated = s.workloads.get(id.0)?.is_allocated();
    let mut spec = s.tree.get(budget)?.spec.clone();
    let share = spec.pools.get_mut(pool.index())?;
    *(if allocated { &mut share.gpus_max } else { &mut share.unallocated_gpus_max }) = Some(limit);
    let change = Changeset { based_on: s.tree.version(), author: String::new(), reason: String::new(), budgets: vec![spec] };
    let mut copy = s.clone();
    copy.apply(s.now, &Event::BudgetsChanged(change), &mut Vec::new()).ok()?;
    decided(copy, id)
}
