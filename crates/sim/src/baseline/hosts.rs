//! What happens to nodes: joining, draining, repair, loss, return.

use super::common::{Baseline, Queue};
use super::stop::Stop;
use stipend_core::entry::Entry;
use stipend_core::event::Rejection;
use stipend_core::id::{NodeId, PoolId, WorkloadId};
use stipend_core::quantity::Time;
use stipend_core::spec::{NodeSpec, NodeState, Severity};

impl<Q: Queue> Baseline<Q> {
    pub(super) fn join(&mut self, node: NodeId, spec: NodeSpec, log: &mut Vec<Entry>) -> Result<(), Rejection> {
        if self.pools.iter().any(|p| p.cluster.node(node).is_some()) {
            return Err(Rejection::NodeKnown(node));
        }
        if !(1..=64).contains(&spec.gpus) {
            return Err(Rejection::Request { field: "gpus", value: spec.gpus.to_string(), expected: "1 to 64".into() });
        }
        let pool = self.pools.get_mut(spec.pool.index()).ok_or(Rejection::PoolUnknown(spec.pool))?;
        pool.cluster.join(node, spec.clone());
        log.push(Entry::Node { node, spec, state: NodeState::Ready, drain_until: None, reason: "joined".into() });
        Ok(())
    }

    /// A draining node that nobody occupies any more is drained.
    pub(super) fn drained(&mut self, pool: PoolId, id: NodeId, log: &mut Vec<Entry>) {
        let cluster = &mut self.pools[pool.index()].cluster;
        let node = cluster.node(id).expect("the caller knows the node");
        if matches!(node.state, NodeState::Draining(_)) && node.occupants.is_empty() {
            let spec = node.spec.clone();
            cluster.set_state(id, NodeState::Drained);
            log.push(Entry::Node { node: id, spec, state: NodeState::Drained, drain_until: None, reason: "empty".into() });
        }
    }

    /// Moves a node to another state if it is in one of the expected ones; returns its pool and its occupants.
    pub(super) fn set_node(
        &mut self,
        id: NodeId,
        state: NodeState,
        reason: String,
        log: &mut Vec<Entry>,
    ) -> Result<(PoolId, Vec<WorkloadId>), Rejection> {
        let pool = self.pools.iter_mut().position(|p| p.cluster.node(id).is_some()).ok_or(Rejection::NodeUnknown(id))?;
        let cluster = &mut self.pools[pool].cluster;
        let node = cluster.node(id).ok_or(Rejection::NodeUnknown(id))?;
        if !follows(node.state, state) {
            return Err(Rejection::NodeState { node: id, message: "it is not in a state from which it could get there" });
        }
        let (spec, occupants) = (node.spec.clone(), node.occupants.clone());
        let ends = |w: &WorkloadId| self.book.get(*w).ok()?.limit_end();
        let drain_until = match state {
            NodeState::Draining(_) => occupants.iter().map(ends).collect::<Option<Vec<Time>>>().and_then(|ends| ends.into_iter().max()),
            _ => None,
        };
        cluster.set_state(id, state);
        log.push(Entry::Node { node: id, spec, state, drain_until, reason });
        Ok((PoolId(pool as u16), occupants))
    }

    /// A node leaves service: at once and with everything on it, or when its occupants have ended by themselves.
    pub(super) fn drain(
        &mut self,
        at: Time,
        node: NodeId,
        severity: Severity,
        reason: String,
        log: &mut Vec<Entry>,
    ) -> Result<(), Rejection> {
        let (pool, occupants) = self.set_node(node, NodeState::Draining(severity), reason, log)?;
        if severity == Severity::Critical {
            for workload in occupants {
                self.stop(at, workload, Stop::NodeCritical(node), log);
            }
        }
        self.drained(pool, node, log);
        Ok(())
    }

    pub(super) fn lose(&mut self, at: Time, node: NodeId, log: &mut Vec<Entry>) -> Result<(), Rejection> {
        let (_, occupants) = self.set_node(node, NodeState::Lost, "no longer answers".into(), log)?;
        for workload in occupants {
            self.stop(at, workload, Stop::NodeLost(node), log);
        }
        Ok(())
    }
}

/// Whether a node may go from one state to another.
fn follows(from: NodeState, to: NodeState) -> bool {
    match to {
        NodeState::Ready => from != NodeState::Ready,
        NodeState::Draining(_) => matches!(from, NodeState::Ready | NodeState::Draining(_)),
        NodeState::Drained => matches!(from, NodeState::Draining(_)),
        NodeState::Repairing => matches!(from, NodeState::Drained | NodeState::Lost),
        NodeState::Lost => from != NodeState::Lost,
    }
}
