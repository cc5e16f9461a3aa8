//! Nodes as they are shown, and what is done when one leaves service or comes back.

use super::Service;
use super::answers::Sums;
use super::input::Answer;
use crate::driver::{Command, EngineNode};
use crate::store::Kind;
use crate::wire::error::{Code, Problem};
use crate::wire::node::{Node, Pool, Severity};
use std::collections::{BTreeMap, BTreeSet};
use stipend_core::event::Event;
use stipend_core::id::{BlockId, NodeId, PoolId};
use stipend_core::quantity::Time;
use stipend_core::spec::{self, Features, NodeSpec, NodeState};

/// The nodes by number.
#[derive(Default)]
pub(crate) struct NodeTable {
    by_id: BTreeMap<u32, Node>,
    changed: BTreeSet<u32>,
}

/// Where a node is kept among the service's own values.
const PREFIX: &str = "node/";

/// What is said of a node whose repair did not help. It stays out.
const REPAIR_FAILED: &str = "; its repair failed: ";

impl NodeTable {
    /// As they were kept.
    pub(crate) fn new(values: &[(String, String)]) -> NodeTable {
        let of = |(key, value): &(String, String)| {
            let id = key.strip_prefix(PREFIX)?.parse().ok()?;
            Some((id, serde_json::from_str(value).ok()?))
        };
        NodeTable { by_id: values.iter().filter_map(of).collect(), changed: BTreeSet::new() }
    }

    /// The nodes whose state changed since the last call.
    pub(crate) fn take_changed(&mut self) -> Vec<(String, String)> {
        let value = |id: u32| (format!("{PREFIX}{id}"), serde_json::to_string(&self.by_id[&id]).expect("a node is plain data"));
        std::mem::take(&mut self.changed).into_iter().map(value).collect()
    }

    /// When it comes back by itself, if it does; it has been told to drain.
    pub(super) fn comes_back(&mut self, id: NodeId, at_ms: Option<i64>) {
        if let Some(node) = self.by_id.get_mut(&id.0) {
            node.back_ms = at_ms;
            self.changed.insert(id.0);
        }
    }

    /// When the next node comes back by itself.
    pub(super) fn next_back(&self) -> Option<Time> {
        self.by_id.values().filter_map(|node| node.back_ms).min().map(Time)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (NodeId, &Node)> {
        self.by_id.iter().map(|(id, node)| (NodeId(*id), node))
    }
}

impl Service {
    pub(super) fn node_changed(&mut self, id: NodeId, spec: &NodeSpec, state: NodeState, drain_until: Option<Time>, reason: String) {
        let feature = |bit: u32| (spec.features.0 >> bit & 1 == 1).then(|| self.directory.name(Kind::Feature, bit).to_string());
        let (state, severity) = words(state);
        let before = self.nodes.by_id.get(&id.0).and_then(|node| node.back_ms);
        let back_ms = before.filter(|_| matches!(state, "draining" | "drained"));
        let node = Node {
            name: self.directory.name(Kind::Node, id.0).into(),
            pool: self.directory.name(Kind::Pool, u32::from(spec.pool.0)).into(),
            state: state.into(),
            severity,
            reason: reason.clone(),
            drain_until_ms: drain_until.map(|until| until.0),
            back_ms,
            gpus: spec.gpus,
            gpus_used: 0,
            cpus: spec.cpus,
            memory_bytes: spec.memory,
            block: self.directory.name(Kind::Block, spec.block.0).into(),
            features: (0..64).filter_map(feature).collect(),
            express: spec.express,
            workloads: Vec::new(),
        };
        // Who said when it comes back sees to it themselves.
        if state == "drained" && back_ms.is_none() && !self.config.repair_command.is_empty() {
            self.commands.push(Command::Repair { node: node.name.clone(), reason });
            self.tell_quietly(Event::NodeRepairing { node: id });
        }
        self.nodes.by_id.insert(id.0, node);
        self.nodes.changed.insert(id.0);
    }

    /// Nodes whose time has come go into service again.
    pub(super) fn take_back(&mut self) {
        let now = self.now.0;
        let due = self.nodes.by_id.iter_mut().filter(|(_, node)| node.back_ms.is_some_and(|at| at <= now));
        let due: Vec<u32> = due.map(|(id, node)| (*id, node.back_ms.take()).0).collect();
        for id in due {
            self.nodes.changed.insert(id);
            self.tell_quietly(Event::NodeReady { node: NodeId(id) });
        }
    }

    /// Repairs that were under way when the daemon ended are begun anew: nobody would hear of their end.
    pub(super) fn repair_again(&mut self) {
        if self.config.repair_command.is_empty() {
            return;
        }
        let under_way = self.nodes.by_id.values().filter(|node| node.state == "repairing" && !node.reason.contains(REPAIR_FAILED));
        self.commands.extend(under_way.map(|node| Command::Repair { node: node.name.clone(), reason: node.reason.clone() }));
    }

    pub(super) fn repair_failed(&mut self, name: &str, reason: &str) {
        tracing::warn!("the repair of {name} failed: {reason}");
        let Ok(id) = self.directory.node(name) else { return };
        if let Some(node) = self.nodes.by_id.get_mut(&id.0) {
            node.reason = format!("{}{REPAIR_FAILED}{reason}", node.reason);
            self.nodes.changed.insert(id.0);
        }
    }

    /// The engine has this node: the core learns of it if it does not know it.
    pub(super) fn node_joins(&mut self, node: &EngineNode) {
        let known = self.directory.find(Kind::Node, &node.name).is_some_and(|id| self.nodes.by_id.contains_key(&id));
        if known {
            let shown = self.nodes.iter().find(|(_, shown)| shown.name == node.name).map(|(_, shown)| shown.gpus);
            if let Some(gpus) = shown.filter(|gpus| *gpus != node.gpus) {
                let now = node.gpus;
                tracing::warn!(
                    "node {} is known with {gpus} GPUs and configured with {now}: give it another name, or it keeps {gpus}",
                    node.name
                );
            }
            return;
        }
        let bits = node.features.iter().fold(0, |bits, name| bits | 1 << (self.directory.number(Kind::Feature, name) % 64));
        let spec = NodeSpec {
            pool: PoolId(self.directory.number(Kind::Pool, &node.pool) as u16),
            gpus: node.gpus,
            cpus: node.cpus,
            memory: node.memory,
            block: BlockId(self.directory.number(Kind::Block, &node.block)),
            features: Features(bits),
            express: node.express,
        };
        let id = NodeId(self.directory.number(Kind::Node, &node.name));
        self.tell_quietly(Event::NodeJoined { node: id, spec });
    }

    /// All nodes, with what runs on them.
    pub(crate) fn list_nodes(&self) -> Vec<Node> {
        let mut nodes: Vec<Node> = self.nodes.by_id.values().cloned().collect();
        let by_name: BTreeMap<String, usize> = nodes.iter().enumerate().map(|(index, node)| (node.name.clone(), index)).collect();
        for view in self.live.iter().map(|live| &live.view).filter(|view| view.state.is_leased()) {
            for (name, gpus) in &view.placement {
                let Some(node) = by_name.get(name).map(|index| &mut nodes[*index]) else { continue };
                node.gpus_used += gpus.len() as u32;
                node.workloads.push(view.id);
            }
        }
        nodes
    }

    /// One node.
    pub(crate) fn node(&self, name: &str) -> Answer<Node> {
        let found = self.list_nodes().into_iter().find(|node| node.name == name);
        found.ok_or_else(|| Problem::new(Code::NotFound, format!("there is no node `{name}`")))
    }

    /// All pools, with what they hold and what waits for them.
    pub(crate) fn list_pools(&self) -> Vec<Pool> {
        let sums = self.leaf_sums();
        let pool = |name: &String| {
            let of_pool = || self.nodes.by_id.values().filter(|node| node.pool == *name);
            let mut all = Sums::default();
            sums.iter().filter(|((_, pool), _)| pool == name).for_each(|(_, sum)| all.add(sum));
            Pool {
                name: name.clone(),
                gpus: of_pool().map(|node| node.gpus).sum(),
                gpus_available: of_pool().filter(|node| matches!(node.state.as_str(), "ready" | "draining")).map(|node| node.gpus).sum(),
                gpus_allocated: all.allocated,
                gpus_unallocated: all.unallocated,
                waiting: all.waiting_count,
                waiting_gpus: all.waiting,
            }
        };
        self.directory.names(Kind::Pool).iter().map(pool).collect()
    }
}

fn words(state: NodeState) -> (&'static str, Option<Severity>) {
    match state {
        NodeState::Ready => ("ready", None),
        NodeState::Draining(severity) => ("draining", Some(self::severity(severity))),
        NodeState::Drained => ("drained", None),
        NodeState::Repairing => ("repairing", None),
        NodeState::Lost => ("lost", None),
    }
}

fn severity(severity: spec::Severity) -> Severity {
    match severity {
        spec::Severity::Maintenance => Severity::Maintenance,
        spec::Severity::Sick => Severity::Sick,
        spec::Severity::Critical => Severity::Critical,
    }
}
