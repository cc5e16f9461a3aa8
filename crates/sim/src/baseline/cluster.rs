//! The nodes of one pool and what is free on them.
//!
//! Nodes belong to *groups*: one group for a baseline that schedules the pool as a whole, one for each team where teams own their GPUs.

use super::free::{Free, Room};
use super::placement::{self, Choice};
use std::collections::BTreeMap;
use stipend_core::entry::{GpuSet, Placement, Slot};
use stipend_core::id::{NodeId, WorkloadId};
use stipend_core::spec::{Gang, NodeSpec, NodeState};

/// A node with whatever runs on it.
#[derive(Clone, Debug)]
pub(super) struct Node {
    /// As it joined.
    pub(super) spec: NodeSpec,
    /// Whether it is in use.
    pub(super) state: NodeState,
    /// Who has GPUs on it.
    pub(super) occupants: Vec<WorkloadId>,
    /// Its free GPUs.
    free: GpuSet,
    /// All that is free on it.
    room: Room,
    /// GPUs that are kept for claimants, free or still being vacated.
    held: GpuSet,
    /// CPUs and memory that are kept with them.
    held_room: Room,
    /// Which group it belongs to; `None` while it belongs to nobody.
    group: Option<u32>,
}

impl Node {
    /// What is free on it and kept for nobody.
    fn open(&self) -> Room {
        Room {
            gpus: (self.free.0 & !self.held.0).count_ones(),
            cpus: self.room.cpus.saturating_sub(self.held_room.cpus),
            memory: self.room.memory.saturating_sub(self.held_room.memory),
        }
    }
}

/// What an empty pool could do for gangs with one kind of member.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fit {
    /// The most members of one gang that it could hold.
    pub(super) members_max: u32,
    /// As how many GPUs a member is charged, on the nodes where that is the least.
    pub(super) charged_gpus: u32,
}

/// The nodes of one pool.
#[derive(Clone, Debug)]
pub(super) struct Cluster {
    /// By number; the numbers of other pools' nodes are missing.
    nodes: Vec<Option<Node>>,
    /// By group: what is free on its nodes that are in service.
    free: Vec<Free>,
    /// How many nodes there are, in service or not.
    count: usize,
    /// The most GPUs on one node.
    gpus_max: u32,
    /// All GPUs of all nodes, in service or not.
    gpus: u64,
    /// By gang of one member, as far as anybody asked.
    fits: BTreeMap<Gang, Fit>,
}

impl Default for Cluster {
    fn default() -> Cluster {
        Cluster { nodes: Vec::new(), free: vec![Free::default()], count: 0, gpus_max: 0, gpus: 0, fits: BTreeMap::new() }
    }
}

impl Cluster {
    /// A node joins, ready, in the first group.
    pub(super) fn join(&mut self, id: NodeId, spec: NodeSpec) {
        if id.index() >= self.nodes.len() {
            self.nodes.resize(id.index() + 1, None);
        }
        self.count += 1;
        self.gpus += u64::from(spec.gpus);
        self.gpus_max = self.gpus_max.max(spec.gpus);
        let free = GpuSet(u64::MAX >> (64 - spec.gpus));
        let room = Room::of(&spec);
        let (held, held_room) = (GpuSet(0), Room::default());
        let node = Node { spec, state: NodeState::Ready, occupants: Vec::new(), free, room, held, held_room, group: Some(0) };
        self.nodes[id.index()] = Some(node);
        self.fits.clear();
        if id.index() >= self.free[0].nodes() || self.gpus_max > self.free[0].gpus_max() {
            self.index();
        }
        self.publish(id);
    }

    /// Deals the nodes to groups: `owner` says which group a node belongs to.
    pub(super) fn deal(&mut self, groups: usize, owner: impl Fn(NodeId) -> Option<u32>) {
        for (number, node) in self.nodes.iter_mut().enumerate() {
            if let Some(node) = node {
                node.group = owner(NodeId(number as u32));
            }
        }
        self.free.resize(groups.max(1), Free::default());
        self.index();
    }

    /// A node's state changed.
    pub(super) fn set_state(&mut self, id: NodeId, state: NodeState) {
        self.nodes[id.index()].as_mut().expect("the caller knows the node").state = state;
        self.publish(id);
    }

    /// A node, if it is one of this pool.
    pub(super) fn node(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(id.index())?.as_ref()
    }

    /// All nodes of the pool, by number.
    pub(super) fn nodes(&self) -> impl Iterator<Item = (NodeId, &Node)> {
        self.nodes.iter().enumerate().filter_map(|(number, node)| Some((NodeId(number as u32), node.as_ref()?)))
    }

    /// How many nodes there are, in service or not.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// All GPUs of all nodes, in service or not.
    pub(super) fn gpus(&self) -> u64 {
        self.gpus
    }

    /// What is free in a group.
    pub(super) fn free(&self, group: u32) -> &Free {
        &self.free[group as usize]
    }

    /// Nodes for a gang within what is free, which need not be what is free now.
    pub(super) fn place(&self, free: &Free, gang: &Gang) -> Option<Choice> {
        placement::place(&self.nodes, free, gang)
    }

    /// Like [`Cluster::place`], but prefers the nodes that cost least.
    pub(super) fn place_by_cost(&self, free: &Free, gang: &Gang, cost: &dyn Fn(NodeId) -> u32) -> Option<Choice> {
        placement::place_by_cost(&self.nodes, free, gang, cost)
    }

    /// What the empty pool, with all its nodes in service, could do for gangs with such members.
    pub(super) fn fit(&mut self, gang: &Gang) -> Fit {
        let kind = Gang { members: 1, ..*gang };
        if let Some(&known) = self.fits.get(&kind) {
            return known;
        }
        let mut blocks = BTreeMap::new();
        let mut charged_gpus = None;
        for (_, node) in self.nodes() {
            let members = placement::members(node, Room::of(&node.spec), gang);
            if members > 0 {
                *blocks.entry(node.spec.block).or_insert(0) += members;
                let charged = Room::charged(&node.spec, gang);
                charged_gpus = Some(charged_gpus.map_or(charged, |least: u32| least.min(charged)));
            }
        }
        let counts = blocks.into_values();
        let members_max = if gang.same_block { counts.max().unwrap_or(0) } else { counts.sum() };
        let fit = Fit { members_max, charged_gpus: charged_gpus.unwrap_or(gang.gpus_per_member) };
        self.fits.insert(kind, fit);
        fit
    }

    /// What is left of a node's room when `members` members of a gang take theirs.
    pub(super) fn without(&self, room: Room, node: NodeId, gang: &Gang, members: u32) -> Room {
        room.minus(Room::member(&self.known(node).spec, gang), members)
    }

    /// Gives a lease's room back in a picture of what will be free.
    pub(super) fn give_back(&self, free: &mut Free, gang: &Gang, placement: &[Slot]) {
        for slot in placement {
            let room = free.room(slot.node).plus(self.given_back(gang, slot), 1);
            self.set_room(free, slot.node, room);
        }
    }

    /// What a lease gives back on one of its nodes: nothing where that is not in service, and not what is kept for a claimant.
    pub(super) fn given_back(&self, gang: &Gang, slot: &Slot) -> Room {
        let node = self.known(slot.node);
        let members = (slot.gpus.0 & !node.held.0).count_ones() / gang.gpus_per_member;
        if node.state == NodeState::Ready { Room::default().plus(Room::member(&node.spec, gang), members) } else { Room::default() }
    }

    /// Says what is free on a node in a picture of what could be free.
    pub(super) fn set_room(&self, free: &mut Free, node: NodeId, room: Room) {
        free.set(node, room, self.known(node).spec.gpus);
    }

    /// Gives the chosen nodes' lowest free GPUs to a workload.
    pub(super) fn take(&mut self, workload: WorkloadId, gang: &Gang, choice: &Choice) -> Placement {
        let mut slots = Vec::with_capacity(choice.len());
        for &(id, members) in choice {
            let node = self.nodes[id.index()].as_mut().expect("only nodes of the pool are chosen");
            let gpus = lowest(GpuSet(node.free.0 & !node.held.0), members * gang.gpus_per_member);
            node.free.0 &= !gpus.0;
            node.room = node.room.minus(Room::member(&node.spec, gang), members);
            node.occupants.push(workload);
            slots.push(Slot { node: id, gpus });
            self.publish(id);
        }
        slots.into()
    }

    /// Gives a workload exactly these free GPUs.
    pub(super) fn take_exactly(&mut self, workload: WorkloadId, gang: &Gang, placement: &[Slot]) {
        for slot in placement {
            let node = self.nodes[slot.node.index()].as_mut().expect("only nodes of the pool are chosen");
            let members = slot.gpus.0.count_ones() / gang.gpus_per_member;
            node.free.0 &= !slot.gpus.0;
            node.room = node.room.minus(Room::member(&node.spec, gang), members);
            node.occupants.push(workload);
            self.publish(slot.node);
        }
    }

    /// Keeps GPUs for a claimant: nobody else gets them, now or when they become free.
    pub(super) fn hold(&mut self, gang: &Gang, placement: &[Slot]) {
        for slot in placement {
            let node = self.nodes[slot.node.index()].as_mut().expect("only nodes of the pool are chosen");
            node.held.0 |= slot.gpus.0;
            node.held_room = node.held_room.plus(Room::member(&node.spec, gang), slot.gpus.0.count_ones() / gang.gpus_per_member);
            self.publish(slot.node);
        }
    }

    /// These GPUs are kept no longer.
    pub(super) fn unhold(&mut self, gang: &Gang, placement: &[Slot]) {
        for slot in placement {
            let node = self.nodes[slot.node.index()].as_mut().expect("only nodes of the pool are chosen");
            node.held.0 &= !slot.gpus.0;
            node.held_room = node.held_room.minus(Room::member(&node.spec, gang), slot.gpus.0.count_ones() / gang.gpus_per_member);
            self.publish(slot.node);
        }
    }

    /// The GPUs of a node that are free and kept for nobody.
    pub(super) fn open_gpus(&self, id: NodeId) -> GpuSet {
        let node = self.known(id);
        GpuSet(node.free.0 & !node.held.0)
    }

    /// The GPUs of a node that are kept for claimants.
    pub(super) fn held_gpus(&self, id: NodeId) -> GpuSet {
        self.known(id).held
    }

    /// What `members` members of a gang take on this node.
    pub(super) fn member(&self, id: NodeId, gang: &Gang) -> Room {
        Room::member(&self.known(id).spec, gang)
    }

    /// Takes a workload's GPUs back.
    pub(super) fn release(&mut self, workload: WorkloadId, gang: &Gang, placement: &[Slot]) {
        for slot in placement {
            let node = self.nodes[slot.node.index()].as_mut().expect("only nodes of the pool are chosen");
            let members = slot.gpus.0.count_ones() / gang.gpus_per_member;
            node.free.0 |= slot.gpus.0;
            node.room = node.room.plus(Room::member(&node.spec, gang), members);
            node.occupants.retain(|&occupant| occupant != workload);
            self.publish(slot.node);
        }
    }

    fn known(&self, id: NodeId) -> &Node {
        self.nodes[id.index()].as_ref().expect("only nodes of the pool are chosen")
    }

    /// Makes the index of every group anew, with space for as many nodes again.
    fn index(&mut self) {
        let nodes = self.nodes.len().next_power_of_two();
        for free in &mut self.free {
            *free = free.resized(nodes, self.gpus_max);
        }
        for number in 0..self.nodes.len() {
            self.publish(NodeId(number as u32));
        }
    }

    /// Brings the index up to date with a node.
    fn publish(&mut self, id: NodeId) {
        let Some(node) = &self.nodes[id.index()] else { return };
        let Some(group) = node.group else { return };
        let room = if node.state == NodeState::Ready { node.open() } else { Room::default() };
        self.free[group as usize].set(id, room, node.spec.gpus);
    }
}

/// The `n` lowest of these GPUs.
pub(super) fn lowest(from: GpuSet, n: u32) -> GpuSet {
    let mut rest = from.0;
    for _ in 0..n {
        rest &= rest.wrapping_sub(1);
    }
    GpuSet(from.0 & !rest)
}
