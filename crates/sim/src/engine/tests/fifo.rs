//! The simplest policy that uses every command of the engine: strict order, first fit, and a stop after a fixed time if asked to.

use crate::policy::Policy;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use stipend_core::entry::{Class, Entry, GpuSet, Licence, Occupancy, Outcome, Placement, Slot};
use stipend_core::event::{Event, Exit, Rejection};
use stipend_core::explain::Why;
use stipend_core::id::{LeaseId, NodeId, WorkloadId};
use stipend_core::quantity::{GpuMs, Gpus, Span, Time};
use stipend_core::spec::{NodeSpec, NodeState, OnPreempt, WorkloadSpec};

#[derive(Default)]
pub(super) struct Fifo {
    /// Every lease gets its stop signal after this, with this grace.
    stop_after: Option<(Span, Span)>,
    /// Submissions of more GPUs are refused.
    gpus_max: Option<u32>,
    specs: BTreeMap<WorkloadId, (Arc<WorkloadSpec>, u32)>,
    queue: VecDeque<WorkloadId>,
    nodes: Vec<(NodeSpec, NodeState)>,
    free: Vec<u32>,
    running: BTreeMap<WorkloadId, (LeaseId, Placement)>,
    stops: VecDeque<(Time, LeaseId)>,
    stopped: Vec<LeaseId>,
}

impl Fifo {
    pub(super) fn stopping(after: Span, grace: Span) -> Fifo {
        Fifo { stop_after: Some((after, grace)), ..Fifo::default() }
    }

    pub(super) fn refusing_above(gpus: u32) -> Fifo {
        Fifo { gpus_max: Some(gpus), ..Fifo::default() }
    }

    fn place(&mut self, spec: &WorkloadSpec) -> Option<Placement> {
        let want = spec.gang.gpus_per_member;
        let mut slots: Vec<Slot> = Vec::new();
        for (node, free) in self.free.iter().enumerate().filter(|&(node, _)| self.nodes[node].1 == NodeState::Ready) {
            let fits = (free / want).min(spec.gang.members - slots.len() as u32);
            // One member a node is enough for a test.
            if fits > 0 {
                slots.push(Slot { node: NodeId(node as u32), gpus: GpuSet(u64::MAX >> (64 - want)) });
            }
            if slots.len() as u32 == spec.gang.members {
                slots.iter().for_each(|slot| self.free[slot.node.index()] -= want);
                return Some(slots.into());
            }
        }
        None
    }

    fn node(&mut self, node: NodeId, state: NodeState, log: &mut Vec<Entry>) {
        self.nodes[node.index()].1 = state;
        let spec = self.nodes[node.index()].0.clone();
        log.push(Entry::Node { node, spec, state, drain_until: None, reason: String::new() });
    }

    fn drained(&mut self, log: &mut Vec<Entry>) {
        for node in 0..self.nodes.len() {
            if matches!(self.nodes[node].1, NodeState::Draining(_)) && self.free[node] == self.nodes[node].0.gpus {
                self.node(NodeId(node as u32), NodeState::Drained, log);
            }
        }
    }

    fn ended(&mut self, lease: LeaseId, exit: Exit, log: &mut Vec<Entry>) {
        let workload = lease.workload;
        let (_, placement) = self.running.remove(&workload).expect("only present leases end");
        let spec = self.specs[&workload].0.clone();
        placement.iter().for_each(|slot| self.free[slot.node.index()] += spec.gang.gpus_per_member);
        let outcome = match exit {
            Exit::Infrastructure => Outcome::NodeLost,
            Exit::Failed if self.stopped.contains(&lease) => Outcome::Preempted,
            Exit::Failed => Outcome::Failed,
            Exit::Completed | Exit::Done => Outcome::Completed,
        };
        self.stopped.retain(|stopped| *stopped != lease);
        log.push(Entry::Ended { workload, attempt: Some(lease.attempt), outcome, lost: GpuMs(0), by: stipend_core::entry::By::Itself });
        if matches!(outcome, Outcome::NodeLost | Outcome::Preempted) && spec.on_preempt != OnPreempt::End {
            self.queue.push_back(workload);
            log.push(Entry::Requeued { workload });
        }
        if self.nodes.iter().any(|(_, state)| matches!(state, NodeState::Draining(_))) {
            self.drained(log);
        }
    }
}

impl Policy for Fifo {
    fn apply(&mut self, at: Time, event: Event, log: &mut Vec<Entry>) -> Result<(), Rejection> {
        match event {
            Event::NodeJoined { spec, .. } => {
                self.free.push(spec.gpus);
                self.nodes.push((spec, NodeState::Ready));
            }
            Event::NodeDrainRequested { node, severity, .. } => {
                self.node(node, NodeState::Draining(severity), log);
                self.drained(log);
            }
            Event::NodeRepairing { node } => self.node(node, NodeState::Repairing, log),
            Event::NodeReady { node } => self.node(node, NodeState::Ready, log),
            Event::NodeLost { node } => self.node(node, NodeState::Lost, log),
            Event::Submitted { workload, spec } => {
                if self.gpus_max.is_some_and(|max| spec.gang.gpus().0 > max) {
                    return Err(Rejection::GangNeverFits { pool: spec.pools.first, gang: spec.gang, members_max: 0 });
                }
                log.push(Entry::Submitted {
                    workload,
                    spec: spec.clone(),
                    pool: spec.pools.first,
                    charged_gpus: Gpus(0),
                    min_runtime: spec.min_runtime,
                    class: Class::Medium,
                    others: Box::default(),
                    skipped: Box::default(),
                });
                self.specs.insert(workload, (spec, 0));
                self.queue.push_back(workload);
            }
            Event::Cancelled { workload } => {
                let waiting = self.queue.iter().position(|&w| w == workload).ok_or(Rejection::WorkloadUnknown(workload))?;
                self.queue.remove(waiting);
                log.push(Entry::Ended {
                    workload,
                    attempt: None,
                    outcome: Outcome::Cancelled,
                    lost: GpuMs(0),
                    by: stipend_core::entry::By::Itself,
                });
            }
            Event::LeaseRunning { lease } => {
                log.push(Entry::Running { lease, protected_until: None });
                self.stops.extend(self.stop_after.map(|(after, _)| (at + after, lease)));
            }
            Event::Checkpointed { lease } => log.push(Entry::Checkpoint { lease }),
            Event::LeaseEnded { lease, exit } => self.ended(lease, exit, log),
            _ => {}
        }
        Ok(())
    }

    fn decide(&mut self, at: Time, log: &mut Vec<Entry>) {
        while let Some((_, lease)) = self.stops.front().copied().filter(|(stop, _)| *stop <= at) {
            self.stops.pop_front();
            if self.running.get(&lease.workload).is_some_and(|(present, _)| *present == lease) {
                self.stopped.push(lease);
                log.push(Entry::Stopping { lease, grace: self.stop_after.map_or(Span::ZERO, |(_, grace)| grace) });
            }
        }
        while let Some(&workload) = self.queue.front() {
            let spec = self.specs[&workload].0.clone();
            let Some(placement) = self.place(&spec) else { break };
            self.queue.pop_front();
            let attempt = &mut self.specs.get_mut(&workload).expect("it was submitted").1;
            *attempt += 1;
            let lease = LeaseId { workload, attempt: *attempt };
            self.running.insert(workload, (lease, placement.clone()));
            let (occupancy, licence, why) = (Occupancy::Allocated, Licence::Free, Why::Rule("first come".into()));
            log.push(Entry::Started { lease, pool: spec.pools.first, occupancy, placement, licence, why });
        }
    }

    fn next_wakeup(&self) -> Option<Time> {
        self.stops.front().map(|(at, _)| *at)
    }
}
