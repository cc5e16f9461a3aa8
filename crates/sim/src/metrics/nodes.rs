//! Capacity: GPUs of ready nodes, and GPUs under lease on draining ones.

use stipend_core::entry::Placement;
use stipend_core::id::NodeId;
use stipend_core::quantity::Gpus;
use stipend_core::spec::{NodeSpec, NodeState};

#[derive(Clone, Copy)]
struct Node {
    gpus: i64,
    express: bool,
    state: NodeState,
    /// GPUs under lease.
    leased: i64,
}

impl Node {
    fn capacity(&self) -> i64 {
        match self.state {
            NodeState::Ready => self.gpus,
            NodeState::Draining(_) => self.leased,
            NodeState::Drained | NodeState::Repairing | NodeState::Lost => 0,
        }
    }
}

/// The nodes of the pool, by number.
#[derive(Default)]
pub(super) struct Nodes {
    nodes: Vec<Option<Node>>,
    main: i64,
    express: i64,
}

impl Nodes {
    /// A node joined or changed its state.
    pub(super) fn set(&mut self, id: NodeId, spec: &NodeSpec, state: NodeState) {
        if self.nodes.len() <= id.index() {
            self.nodes.resize(id.index() + 1, None);
        }
        let leased = self.nodes[id.index()].map_or(0, |node| node.leased);
        let before = self.nodes[id.index()].replace(Node { gpus: i64::from(spec.gpus), express: spec.express, state, leased });
        if let Some(before) = before {
            *self.part(before.express) -= before.capacity();
        }
        let after = self.nodes[id.index()].expect("set above");
        *self.part(after.express) += after.capacity();
    }

    /// Leases a placement's GPUs (`sign` 1) or gives them back (−1); true if that changed the capacity.
    pub(super) fn lease(&mut self, placement: &Placement, sign: i64) -> bool {
        let mut changed = false;
        for slot in placement.iter() {
            let Some(Some(node)) = self.nodes.get_mut(slot.node.index()) else { continue };
            let before = node.capacity();
            node.leased += sign * i64::from(slot.gpus.0.count_ones());
            let (difference, express) = (node.capacity() - before, node.express);
            *self.part(express) += difference;
            changed |= difference != 0;
        }
        changed
    }

    /// The capacity now, in GPUs: of ordinary nodes, and of express nodes.
    pub(super) fn in_service(&self) -> (i64, i64) {
        (self.main, self.express)
    }

    /// All GPUs, in service or not.
    pub(super) fn all(&self) -> Gpus {
        let gpus: i64 = self.nodes.iter().flatten().map(|node| node.gpus).sum();
        Gpus(u32::try_from(gpus).expect("GPUs of a pool are counted by u32"))
    }

    fn part(&mut self, express: bool) -> &mut i64 {
        if express { &mut self.express } else { &mut self.main }
    }
}
