//! The observer that keeps what the page draws of one run: each lease with its reasons, and the states of nodes.

use super::reasons::{Reason, Reasons};
use crate::observer::Observer;
use std::collections::BTreeMap;
use std::sync::Arc;
use stipend_core::entry::{By, Class, Entry, Occupancy, Outcome, Placement};
use stipend_core::explain::Names;
use stipend_core::id::{LeaseId, NodeId, WorkloadId};
use stipend_core::quantity::{Span, Time};
use stipend_core::spec::{NodeSpec, NodeState, WorkloadSpec};

/// One lease.
#[derive(Clone, Debug)]
pub(super) struct Bar {
    pub lease: LeaseId,
    pub occupancy: Occupancy,
    pub placement: Placement,
    pub start: Time,
    /// When all its members ran.
    pub running: Option<Time>,
    /// When it was promoted from unallocated to its contract.
    pub promoted: Option<Time>,
    pub protected_until: Option<Time>,
    /// `None` while it lasts.
    pub end: Option<(Time, Outcome)>,
    pub why_start: Reason,
    /// Why it is to be stopped, or who ended it.
    pub why_end: Option<Reason>,
}

/// What was submitted.
#[derive(Clone, Debug)]
pub(super) struct Submission {
    pub spec: Arc<WorkloadSpec>,
    /// After clamping.
    pub min_runtime: Span,
    pub class: Class,
}

/// A node out of use, or on its way there.
#[derive(Clone, Debug)]
pub(super) struct Outage {
    pub node: NodeId,
    pub from: Time,
    pub to: Option<Time>,
    pub state: NodeState,
    pub reason: String,
}

/// Keeps what the page draws.
pub struct Recorder<'n> {
    pub(super) names: &'n dyn Names,
    /// Leases that ended before this are left out.
    pub(super) from: Time,
    pub(super) end: Time,
    pub(super) bars: Vec<Bar>,
    open: BTreeMap<WorkloadId, usize>,
    pub(super) submissions: BTreeMap<WorkloadId, Submission>,
    pub(super) nodes: BTreeMap<NodeId, NodeSpec>,
    pub(super) outages: Vec<Outage>,
    pub(super) reasons: Reasons,
}

impl<'n> Recorder<'n> {
    /// Keeps what is to be seen from `from` on.
    pub fn new(names: &'n dyn Names, from: Time) -> Recorder<'n> {
        Recorder {
            names,
            from,
            end: Time(0),
            bars: Vec::new(),
            open: BTreeMap::new(),
            submissions: BTreeMap::new(),
            nodes: BTreeMap::new(),
            outages: Vec::new(),
            reasons: Reasons::default(),
        }
    }

    /// The leases to draw, in the order in which they started.
    pub(super) fn drawn(&self) -> impl Iterator<Item = &Bar> {
        self.bars.iter().filter(|bar| bar.end.is_none_or(|(at, _)| self.from < at))
    }

    fn bar(&mut self, lease: LeaseId) -> Option<&mut Bar> {
        let bar = &mut self.bars[*self.open.get(&lease.workload)?];
        (bar.lease == lease).then_some(bar)
    }

    fn node(&mut self, at: Time, node: NodeId, spec: &NodeSpec, state: NodeState, reason: &str) {
        self.nodes.insert(node, spec.clone());
        if let Some(outage) = self.outages.iter_mut().rev().find(|outage| outage.node == node && outage.to.is_none()) {
            outage.to = Some(at);
        }
        if state != NodeState::Ready {
            self.outages.push(Outage { node, from: at, to: None, state, reason: reason.to_owned() });
        }
    }

    fn ended(&mut self, at: Time, workload: WorkloadId, outcome: Outcome, by: &By) {
        let Some(index) = self.open.remove(&workload) else { return };
        // What planned the preemption says more than who ended it.
        let planned = self.bars[index].why_end.filter(|_| outcome == Outcome::Preempted);
        let by = (*by != By::Itself).then(|| by.text(self.names));
        self.bars[index].end = Some((at, outcome));
        self.bars[index].why_end = planned.or_else(|| by.map(|by| self.reasons.add(&by)));
    }
}

impl Observer for Recorder<'_> {
    fn entry(&mut self, at: Time, entry: &Entry) {
        match entry {
            Entry::Node { node, spec, state, reason, .. } => self.node(at, *node, spec, *state, reason),
            Entry::Submitted { workload, spec, min_runtime, class, .. } => {
                self.submissions.insert(*workload, Submission { spec: spec.clone(), min_runtime: *min_runtime, class: *class });
            }
            Entry::Started { lease, occupancy, placement, why, .. } => {
                let why_start = self.reasons.add(&why.text(self.names));
                self.open.insert(lease.workload, self.bars.len());
                self.bars.push(Bar {
                    lease: *lease,
                    occupancy: *occupancy,
                    placement: placement.clone(),
                    start: at,
                    running: None,
                    promoted: None,
                    protected_until: None,
                    end: None,
                    why_start,
                    why_end: None,
                });
            }
            Entry::Running { lease, protected_until } => {
                if let Some(bar) = self.bar(*lease) {
                    (bar.running, bar.protected_until) = (Some(at), *protected_until);
                }
            }
            Entry::Promoted { lease, protected_until, .. } => {
                if let Some(bar) = self.bar(*lease) {
                    (bar.promoted, bar.protected_until) = (Some(at), *protected_until);
                }
            }
            Entry::Renewed { lease, protected_until, .. } => {
                if let Some(bar) = self.bar(*lease) {
                    bar.protected_until = Some(*protected_until);
                }
            }
            Entry::Preempting { lease, why, .. } => {
                let why = self.reasons.add(&why.text(self.names));
                if let Some(bar) = self.bar(*lease) {
                    bar.why_end = Some(why);
                }
            }
            Entry::Spared { lease } => {
                if let Some(bar) = self.bar(*lease) {
                    bar.why_end = None;
                }
            }
            Entry::Ended { workload, attempt: Some(_), outcome, by, .. } => self.ended(at, *workload, *outcome, by),
            _ => {}
        }
    }

    fn end(&mut self, at: Time) {
        self.end = at;
    }
}
