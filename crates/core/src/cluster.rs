//! The nodes of one pool, their GPUs, and an index of what is free.

use crate::entry::{GpuSet, Slot};
use crate::id::{BlockId, NodeId, ReservationId, WorkloadId};
use crate::node_set::NodeSet;
use crate::placement::Ground;
use crate::quantity::{Gpus, Time};
use crate::queue::Size;
use crate::spec::{Gang, NodeSpec, NodeState, Severity};
use std::collections::BTreeMap;

impl GpuSet {
    /// The first `n` GPUs of a node.
    pub fn first(n: u32) -> GpuSet {
        GpuSet(if n >= 64 { u64::MAX } else { (1 << n) - 1 })
    }
    /// How many.
    pub fn count(self) -> u32 {
        self.0.count_ones()
    }
    /// In both.
    pub fn and(self, other: GpuSet) -> GpuSet {
        GpuSet(self.0 & other.0)
    }
    /// In either.
    pub fn or(self, other: GpuSet) -> GpuSet {
        GpuSet(self.0 | other.0)
    }
    /// In this one only.
    pub fn minus(self, other: GpuSet) -> GpuSet {
        GpuSet(self.0 & !other.0)
    }
    /// Its `n` lowest GPUs.
    pub fn lowest(self, n: u32) -> GpuSet {
        let mut rest = self.0;
        for _ in 0..n {
            rest &= rest.wrapping_sub(1);
        }
        GpuSet(self.0 & !rest)
    }
    /// The GPUs' numbers.
    pub fn numbers(self) -> impl Iterator<Item = u32> {
        (0..64).filter(move |bit| self.0 >> bit & 1 == 1)
    }
}

/// CPUs and memory, in the units of [`NodeSpec`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Host {
    pub cpus: i64,
    pub memory: i64,
}

impl Host {
    /// All that a node has.
    pub(crate) fn of(spec: &NodeSpec) -> Host {
        Host { cpus: i64::from(spec.cpus), memory: spec.memory as i64 }
    }
    pub(crate) fn plus(self, other: Host) -> Host {
        Host { cpus: self.cpus + other.cpus, memory: self.memory + other.memory }
    }
    pub(crate) fn times(self, n: i64) -> Host {
        Host { cpus: self.cpus * n, memory: self.memory * n }
    }
}

/// One node.
#[derive(Clone, Debug, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Node {
    pub spec: NodeSpec,
    pub state: NodeState,
    /// When its drain ends, while it drains.
    pub drain_until: Option<Time>,
    pub reason: String,
    /// Neither leased nor held.
    pub free: GpuSet,
    /// Leased now.
    pub leased: GpuSet,
    /// Leased by unallocated work, or by work on its way out: what allocated work may have.
    pub yielding: GpuSet,
    /// Leased by work past its contract: what a licence may reach.
    pub past_contract: GpuSet,
    /// Held for a claimant, whether still occupied or not.
    pub held: GpuSet,
    /// CPUs and memory not leased and not held.
    pub host_free: Host,
    /// GPUs that count as the pool's capacity now.
    pub counted: u32,
    /// Who holds GPUs here.
    pub leases: Vec<WorkloadId>,
    /// Workloads that timed out starting here.
    pub suspected_by: Vec<WorkloadId>,
    /// Reservations of this node, each with the time from which on all of it is promised.
    pub promises: Vec<(ReservationId, Time)>,
}

impl Node {
    fn refresh_free(&mut self) {
        self.free = GpuSet::first(self.spec.gpus).minus(self.leased).minus(self.held);
    }

    /// When the node is promised to a reservation other than `own`, the earliest.
    pub(crate) fn promised_from(&self, own: Option<ReservationId>) -> Option<Time> {
        self.promises.iter().filter(|(id, _)| Some(*id) != own).map(|(_, from)| *from).min()
    }

    /// GPUs within reach and held for nobody.
    fn within(&self, depth: Depth) -> GpuSet {
        let yielding = self.free.or(self.yielding.minus(self.held));
        match depth {
            Depth::Yielding => yielding,
            Depth::PastContract => yielding.or(self.past_contract.minus(self.held)),
        }
    }

    /// GPUs that count as capacity: all of a ready node, those under lease on a draining one.
    pub(crate) fn capacity(&self) -> u32 {
        match self.state {
            NodeState::Ready => self.spec.gpus,
            NodeState::Draining(_) => self.leased.count(),
            NodeState::Drained | NodeState::Repairing | NodeState::Lost => 0,
        }
    }
}

/// Which nodes a gang may use: a short contract may run on express nodes, unallocated work too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) enum Lane {
    General,
    Express,
}

/// Free nodes of one lane, by how many GPUs are free.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct FreeIndex {
    by_free: Vec<NodeSet>,
    free: u32,
    /// How many nodes have so many GPUs free or yielding; and with those past their contract.
    yielding: Counts,
    past_contract: Counts,
}

/// How many nodes have so many GPUs within reach, and how many members of each size these would hold.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct Counts {
    nodes: Vec<u32>,
    members: Vec<u32>,
    gpus: u32,
}

impl Counts {
    fn count(&mut self, gpus: GpuSet, present: bool) {
        let gpus = gpus.count() as usize;
        self.gpus = if present { self.gpus + gpus as u32 } else { self.gpus - gpus as u32 };
        if self.nodes.len() <= gpus {
            self.nodes.resize(gpus + 1, 0);
        }
        self.nodes[gpus] = if present { self.nodes[gpus] + 1 } else { self.nodes[gpus] - 1 };
    }

    fn refresh_members(&mut self) {
        self.members.clear();
        self.members.resize(self.nodes.len(), 0);
        for (gpus, nodes) in self.nodes.iter().enumerate().filter(|(_, nodes)| **nodes > 0) {
            for size in 1..=gpus {
                self.members[size] += nodes * (gpus / size) as u32;
            }
        }
    }
}

/// How far a look goes beyond free GPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Depth {
    Yielding,
    PastContract,
}

/// The nodes of a pool.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Cluster {
    /// Place in `table`, by node number.
    places: Vec<Option<u32>>,
    table: Vec<(NodeId, Node)>,
    /// The different kinds of node.
    kinds: Vec<(u32, u32, u64)>,
    gpus: Gpus,
    express_gpus: Gpus,
    /// Those of ready nodes.
    ready: Gpus,
    general: FreeIndex,
    express: FreeIndex,
    /// Nodes on which work that ends before the drain may still start.
    pub maintenance: Vec<NodeId>,
    /// Ready nodes that are promised to somebody, by their places.
    promised: NodeSet,
}

impl Cluster {
    /// A node that is known to exist.
    pub(crate) fn at(&self, id: NodeId) -> &Node {
        &self.table[self.place(id)].1
    }

    fn place(&self, id: NodeId) -> usize {
        self.places[id.index()].expect("a node that is known to exist") as usize
    }

    /// All nodes, in the order they joined.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (NodeId, &Node)> {
        self.table.iter().map(|(id, node)| (*id, node))
    }

    pub(crate) fn join(&mut self, id: NodeId, spec: NodeSpec) {
        let host_free = Host::of(&spec);
        let free = GpuSet::first(spec.gpus);
        let node = Node {
            spec,
            state: NodeState::Ready,
            drain_until: None,
            reason: String::new(),
            free,
            leased: GpuSet(0),
            yielding: GpuSet(0),
            past_contract: GpuSet(0),
            held: GpuSet(0),
            counted: 0,
            host_free,
            leases: Vec::new(),
            suspected_by: Vec::new(),
            promises: Vec::new(),
        };
        if self.places.len() <= id.index() {
            self.places.resize(id.index() + 1, None);
        }
        self.places[id.index()] = Some(self.table.len() as u32);
        let kind = (node.spec.gpus, node.spec.cpus, node.spec.memory);
        if !self.kinds.contains(&kind) {
            self.kinds.push(kind);
        }
        self.gpus += Gpus(node.spec.gpus);
        self.express_gpus += Gpus(if node.spec.express { node.spec.gpus } else { 0 });
        self.table.push((id, node));
        self.index(id, true);
    }

    /// Changes a node; the index follows.
    pub(crate) fn change<R>(&mut self, id: NodeId, change: impl FnOnce(&mut Node) -> R) -> R {
        self.index(id, false);
        let place = self.place(id);
        let result = change(&mut self.table[place].1);
        self.index(id, true);
        result
    }

    fn index(&mut self, id: NodeId, present: bool) {
        let place = self.place(id);
        let node = &self.table[place].1;
        match node.state {
            NodeState::Ready => {}
            NodeState::Draining(Severity::Maintenance) => {
                self.maintenance.retain(|n| *n != id);
                if present {
                    self.maintenance.push(id);
                    self.maintenance.sort_unstable();
                }
                return;
            }
            _ => return,
        }
        self.ready = if present { self.ready + Gpus(node.spec.gpus) } else { self.ready - Gpus(node.spec.gpus) };
        match present && !node.promises.is_empty() {
            true => self.promised.insert(place as u32),
            false => self.promised.remove(place as u32),
        }
        let free = node.free.count();
        let index = if node.spec.express { &mut self.express } else { &mut self.general };
        index.yielding.count(node.within(Depth::Yielding), present);
        index.past_contract.count(node.within(Depth::PastContract), present);
        if free == 0 {
            return;
        }
        if index.by_free.len() <= free as usize {
            index.by_free.resize_with(free as usize + 1, NodeSet::default);
        }
        if present {
            index.by_free[free as usize].insert(place as u32);
            index.free += free;
        } else {
            index.by_free[free as usize].remove(place as u32);
            index.free -= free;
        }
    }

    /// Marks a lease's GPUs as yielding or past their contract, or as neither.
    pub(crate) fn mark(&mut self, slots: &[Slot], depth: Option<Depth>) {
        for slot in slots {
            self.change(slot.node, |node| {
                node.yielding = node.yielding.minus(slot.gpus);
                node.past_contract = node.past_contract.minus(slot.gpus);
                match depth {
                    Some(Depth::Yielding) => node.yielding = node.yielding.or(slot.gpus),
                    Some(Depth::PastContract) => node.past_contract = node.past_contract.or(slot.gpus),
                    None => {}
                }
            });
        }
    }

    /// Prepares [`Cluster::may_fit`] for one walk, in which nothing is given back.
    pub(crate) fn refresh_may_fit(&mut self) {
        for index in [&mut self.general, &mut self.express] {
            index.yielding.refresh_members();
            index.past_contract.refresh_members();
        }
    }

    /// Whether a gang could fit by the number of GPUs on each node alone, as of the walk's beginning: a quick upper bound.
    pub(crate) fn may_fit(&self, size: Size, depth: Depth) -> bool {
        self.members_within(size, depth) >= size.members
    }

    /// How many members could fit by the number of GPUs on each node alone.
    pub(crate) fn members_within(&self, size: Size, depth: Depth) -> u32 {
        let members = |index: &FreeIndex| {
            let counts = if depth == Depth::Yielding { &index.yielding } else { &index.past_contract };
            counts.members.get(size.gpus_per_member as usize).copied().unwrap_or(0)
        };
        let express = if size.express { members(&self.express) } else { 0 };
        members(&self.general) + express
    }

    /// The same without nodes that are promised to others from before the gang has certainly left.
    pub(crate) fn may_fit_before_promises(&self, size: Size, depth: Depth, ground: &Ground<'_>) -> bool {
        let nodes = self.promised.iter().map(|place| &self.table[place as usize]);
        let nodes = nodes.filter(|(_, node)| size.express || !node.spec.express);
        let members = nodes.map(|(id, node)| (*id, node.within(depth).count() / size.gpus_per_member));
        let lost: u32 = members.filter(|(id, members)| *members > 0 && !ground.admits(self, *id)).map(|(_, members)| members).sum();
        self.members_within(size, depth) >= size.members + lost
    }

    /// GPUs of ready nodes that are free, unallocated or on their way out, and held for nobody; those of express nodes only if `express`.
    pub(crate) fn reachable(&self, express: bool) -> u32 {
        self.general.yielding.gpus + if express { self.express.yielding.gpus } else { 0 }
    }

    fn lane(&self, lane: Lane) -> &FreeIndex {
        match lane {
            Lane::General => &self.general,
            Lane::Express => &self.express,
        }
    }

    /// Free GPUs of ready nodes in a lane.
    pub(crate) fn free(&self, lane: Lane) -> Gpus {
        Gpus(self.lane(lane).free)
    }

    /// Ready nodes of a lane with at least `gpus` free GPUs: those with the least first, then in the order they joined.
    pub(crate) fn with_free(&self, lane: Lane, gpus: u32) -> impl Iterator<Item = NodeId> {
        let sets = self.lane(lane).by_free.get(gpus as usize..).unwrap_or_default();
        sets.iter().flat_map(|set| set.iter()).map(|place| self.table[place as usize].0)
    }

    /// What one member of a gang takes of a node's CPUs and memory.
    pub(crate) fn member_host(spec: &NodeSpec, gang: &Gang) -> Host {
        let part = |asked: i64, whole: i64| match (asked, whole) {
            (_, 0) => 0,
            (0, whole) => whole * i64::from(gang.gpus_per_member) / i64::from(spec.gpus),
            (asked, _) => asked,
        };
        Host {
            cpus: part(i64::from(gang.cpus_per_member), i64::from(spec.cpus)),
            memory: part(gang.memory_per_member as i64, spec.memory as i64),
        }
    }

    /// How many members of a gang fit beside each other into these GPUs and this much of a host.
    pub(crate) fn members_fitting(spec: &NodeSpec, gang: &Gang, gpus: u32, host: Host) -> u32 {
        if spec.features.0 & gang.features.0 != gang.features.0 {
            return 0;
        }
        let member = Cluster::member_host(spec, gang);
        let by = |free: i64, each: i64| if each == 0 { i64::MAX } else { free.max(0) / each };
        let hosts = by(host.cpus, member.cpus).min(by(host.memory, member.memory));
        i64::from(gpus / gang.gpus_per_member).min(hosts) as u32
    }

    /// Gives slots to a lease; those that were held for it are held no longer.
    pub(crate) fn lease(&mut self, workload: WorkloadId, slots: &[Slot], gang: &Gang) {
        for slot in slots {
            self.change(slot.node, |node| {
                let was_held = slot.gpus.and(node.held).0 != 0;
                assert!(slot.gpus.and(node.leased).0 == 0, "a GPU is leased once");
                assert!(was_held || slot.gpus.minus(node.free).0 == 0, "only free or held GPUs are leased");
                if !was_held {
                    node.host_free = node.host_free.plus(slot_host(&node.spec, gang, slot).times(-1));
                }
                node.held = node.held.minus(slot.gpus);
                node.leased = node.leased.or(slot.gpus);
                node.leases.push(workload);
                node.refresh_free();
            });
        }
    }

    /// Gives a lease's slots back; what is held for a claimant stays held.
    pub(crate) fn release(&mut self, workload: WorkloadId, slots: &[Slot], gang: &Gang) {
        for slot in slots {
            self.change(slot.node, |node| {
                node.leases.retain(|w| *w != workload);
                node.leased = node.leased.minus(slot.gpus);
                node.yielding = node.yielding.minus(slot.gpus);
                node.past_contract = node.past_contract.minus(slot.gpus);
                node.host_free = node.host_free.plus(slot_host(&node.spec, gang, slot));
                node.refresh_free();
            });
        }
    }

    /// Keeps slots for a claimant (`sign` = 1), occupied or not, or lets them go (−1).
    pub(crate) fn hold(&mut self, slots: &[Slot], gang: &Gang, sign: i64) {
        for slot in slots {
            self.change(slot.node, |node| {
                assert!(sign < 0 || slot.gpus.and(node.held).0 == 0, "a GPU is held for one claimant only");
                node.held = if sign > 0 { node.held.or(slot.gpus) } else { node.held.minus(slot.gpus) };
                node.host_free = node.host_free.plus(slot_host(&node.spec, gang, slot).times(-sign));
                node.refresh_free();
            });
        }
    }

    /// The largest gang of members like these that could ever fit, counting every node of the pool in any state; express nodes only if
    /// `express`.
    pub(crate) fn largest(&self, gang: &Gang, express: bool) -> u32 {
        let mut by_block: BTreeMap<BlockId, u32> = BTreeMap::new();
        for (_, node) in self.table.iter().filter(|(_, n)| express || !n.spec.express) {
            *by_block.entry(node.spec.block).or_default() +=
                Cluster::members_fitting(&node.spec, gang, node.spec.gpus, Host::of(&node.spec));
        }
        let counts = by_block.values().copied();
        if gang.same_block { counts.max().unwrap_or(0) } else { counts.sum() }
    }

    /// The most GPUs that one node has.
    pub(crate) fn largest_node(&self) -> u32 {
        self.kinds.iter().map(|(gpus, ..)| *gpus).max().unwrap_or(0)
    }

    /// Members of a gang that fit now into what is free, in the best block if it must stand in one.
    pub(crate) fn fitting_now(&self, gang: &Gang, express: bool) -> u32 {
        let mut by_block: BTreeMap<BlockId, u32> = BTreeMap::new();
        for (_, node) in self.table.iter().filter(|(_, n)| n.state == NodeState::Ready && (express || !n.spec.express)) {
            *by_block.entry(node.spec.block).or_default() += Cluster::members_fitting(&node.spec, gang, node.free.count(), node.host_free);
        }
        let counts = by_block.values().copied();
        if gang.same_block { counts.max().unwrap_or(0) } else { counts.sum() }
    }

    /// All GPUs, in any state.
    pub(crate) fn gpus(&self) -> Gpus {
        self.gpus
    }

    /// GPUs of ready nodes: those that take new work.
    pub(crate) fn ready(&self) -> Gpus {
        self.ready
    }

    /// GPUs on express nodes, in any state.
    pub(crate) fn express_gpus(&self) -> Gpus {
        self.express_gpus
    }

    /// GPUs a gang is charged for: its own, or as many as the node's per-GPU part of CPUs or memory that it asks for (the largest ratio,
    /// rounded up), on the kind of node where that is most.
    pub(crate) fn charged(&self, gang: &Gang) -> Gpus {
        let mut per_member = gang.gpus_per_member;
        for (gpus, cpus, memory) in &self.kinds {
            let ratio = |asked: u64, whole: u64| match whole {
                0 => 0,
                whole => (u128::from(asked) * u128::from(*gpus)).div_ceil(u128::from(whole)),
            };
            let asked = ratio(u64::from(gang.cpus_per_member), u64::from(*cpus)).max(ratio(gang.memory_per_member, *memory));
            per_member = per_member.max(asked.min(u128::from(*gpus)) as u32);
        }
        Gpus(per_member * gang.members)
    }
}

/// What a slot's members take of its node's CPUs and memory.
pub(crate) fn slot_host(spec: &NodeSpec, gang: &Gang, slot: &Slot) -> Host {
    Cluster::member_host(spec, gang).times(i64::from(slot.gpus.count() / gang.gpus_per_member))
}
