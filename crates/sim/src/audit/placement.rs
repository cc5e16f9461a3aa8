//! Where a start may be: a whole gang on GPUs that nobody has, on nodes that may take it, within its budgets' caps.

use super::world::{Gpu, Id, Node, Slots, Workload, count};
use super::{Auditor, Law};
use crate::log::line::{Licence, Occupancy, Placement, Severity, State, Submitted};
use std::collections::BTreeMap;

impl Auditor {
    /// The placement's GPUs as far as they exist; a shape that is not the gang's is a violation.
    pub(super) fn check_placement(&mut self, id: Id, placement: &Placement, label: &str) -> Slots {
        let mut slots = Slots::new();
        for (name, gpus) in &placement.0 {
            let node = self.world.nodes.find(name);
            let exists = |gpu: &u8| node.is_some_and(|node| usize::from(*gpu) < self.world.nodes.rows[node].gpus.len());
            let mut known: Vec<u8> = gpus.iter().copied().filter(exists).collect();
            known.sort_unstable();
            known.dedup();
            if known.len() != gpus.len() {
                self.findings.add(Law::Gang, format!("{label} is placed on {gpus:?} of {name}"), "GPUs that exist, each once");
            }
            if let (Some(node), false) = (node, known.is_empty()) {
                slots.push((node, known));
            }
        }
        self.check_gang(id, &slots);
        slots
    }

    fn check_gang(&mut self, id: Id, slots: &Slots) {
        let workload = &self.world.workloads[&id];
        let (members, each) = (workload.asked.members as usize, workload.asked.gpus_per_member as usize);
        let whole = slots.iter().all(|(_, gpus)| gpus.len() % each == 0) && count(slots) == i64::from(workload.gpus());
        if !whole {
            let seen: Vec<usize> = slots.iter().map(|(_, gpus)| gpus.len()).collect();
            self.findings.add(
                Law::Gang,
                format!("{} has {seen:?} GPUs by node", workload.label),
                format!("{members} members of {each}, each on one node"),
            );
        }
        let blocks = |node: usize| &self.world.nodes.rows[node].block;
        if workload.asked.same_block && slots.iter().any(|(node, _)| blocks(*node) != blocks(slots[0].0)) {
            self.findings.add(Law::Gang, format!("{} spans blocks", workload.label), "all members in one block");
        }
    }

    /// Nodes in its pool, in service, with what it needs, and free for it.
    pub(super) fn check_nodes(&mut self, id: Id, slots: &Slots) {
        for (node, gpus) in slots {
            self.check_node(id, *node, gpus.len() as i64);
            for gpu in gpus {
                let gpu = &self.world.nodes.rows[*node].gpus[usize::from(*gpu)];
                let other = gpu.lease.or(gpu.hold.filter(|claimant| *claimant != id));
                if let Some(other) = other {
                    let seen = format!(
                        "{} starts on a GPU of {} that {} has",
                        self.world.label(id),
                        self.world.nodes.rows[*node].label,
                        self.world.label(other)
                    );
                    self.findings.add(Law::GpuTwice, seen, "a free GPU, or one held for it");
                }
            }
        }
    }

    fn check_node(&mut self, id: Id, node: usize, gpus: i64) {
        let (workload, node_row) = (&self.world.workloads[&id], &self.world.nodes.rows[node]);
        let asked = &workload.asked;
        if node_row.pool != workload.pool || node_row.features & asked.features != asked.features {
            let seen = format!("{} starts on {}", workload.label, node_row.label);
            self.findings.add(Law::Node, seen, "a node of its pool with the features that it needs");
            return;
        }
        if !self.may_start_on(workload, node_row) {
            let seen = format!(
                "{} starts on {}, which is {:?} {:?} until {:?}",
                workload.label, node_row.label, node_row.state, node_row.severity, node_row.drain_until
            );
            self.findings.add(Law::Node, seen, "a ready node, or one under maintenance that it certainly leaves in time");
        }
        if node_row.express && workload.is_allocated() && !self.fits_express(workload) {
            let seen = format!(
                "{} with {} GPUs and a contract of {} ms starts on express node {}",
                workload.label,
                workload.gpus(),
                workload.contract(),
                node_row.label
            );
            self.findings.add(Law::Express, seen, "short contracts of few GPUs, or unallocated work");
        }
        let (cpus, memory) = self.room(node);
        let (needs_cpus, needs_memory) = takes(node_row, asked, gpus);
        if needs_cpus > cpus || needs_memory > memory {
            let seen = format!("{} starts on {} with {cpus} CPUs and {memory} bytes left", workload.label, node_row.label);
            self.findings.add(Law::Node, seen, format!("{needs_cpus} CPUs and {needs_memory} bytes"));
        }
    }

    /// Whether a node's state lets this work start there.
    pub(super) fn may_start_on(&self, workload: &Workload, node: &Node) -> bool {
        match (node.state, node.severity) {
            (State::Ready, _) => true,
            (State::Draining, Some(Severity::Maintenance)) if !workload.is_allocated() => true,
            (State::Draining, Some(Severity::Maintenance)) => {
                let starting = self.world.knobs(workload.pool).map_or(0, |knobs| knobs.start_timeout_ms);
                node.drain_until.is_some_and(|until| self.now() + starting + workload.contract() <= until)
            }
            _ => false,
        }
    }

    pub(super) fn fits_express(&self, workload: &Workload) -> bool {
        self.world
            .knobs(workload.pool)
            .is_some_and(|knobs| workload.contract() <= knobs.express_contract_max_ms && workload.gpus() <= knobs.express_gpus_max)
    }

    /// One budget's contracts hold only so many express GPUs: a part of all, and at least one gang of the largest kind that may run there.
    pub(super) fn check_express_bound(&mut self, id: Id, slots: &Slots) {
        let workload = &self.world.workloads[&id];
        let on_express = |slots: &Slots| -> u32 {
            slots.iter().filter(|(node, _)| self.world.nodes.rows[*node].express).map(|(_, gpus)| gpus.len() as u32).sum()
        };
        let own = on_express(slots);
        let Some(knobs) = self.world.knobs(workload.pool).filter(|_| own > 0 && workload.is_allocated()) else { return };
        let leased = self.world.budgets.rows[workload.leaf].leased.iter().filter_map(|other| self.world.lease(*other));
        let leased: u32 = leased.filter(|lease| lease.occupancy == Occupancy::Allocated).map(|lease| on_express(&lease.slots)).sum();
        let of_leaf = |other: &Id| {
            *other != id && self.world.workloads.get(other).is_some_and(|other| other.leaf == workload.leaf && other.is_allocated())
        };
        let held: u32 = self.world.holds.iter().filter(|(other, _)| of_leaf(other)).map(|(_, hold)| on_express(&hold.slots)).sum();
        let part = u64::from(self.world.pools.rows[workload.pool].express_gpus) * u64::from(knobs.express_budget_max_ppm) / 1_000_000;
        let bound = knobs.express_gpus_max.max(part as u32);
        let (all, path) = (own + leased + held, self.world.budgets.rows[workload.leaf].path.clone());
        self.findings.count().express_checks += 1;
        if all > bound {
            self.findings.add(Law::Express, format!("contracts of {path} hold {all} express GPUs"), format!("at most {bound}"));
        }
    }

    /// CPUs and memory that no lease on the node takes.
    fn room(&self, node: usize) -> (i64, i64) {
        self.room_beside(node, |gpu| [gpu.lease, None])
    }

    /// Whether a node's leases and holds find CPUs and memory enough beside each other.
    pub(super) fn is_roomy(&self, node: usize) -> bool {
        let (cpus, memory) = self.room_beside(node, |gpu| [gpu.lease, gpu.hold]);
        cpus >= 0 && memory >= 0
    }

    fn room_beside(&self, node: usize, users: impl Fn(&Gpu) -> [Option<Id>; 2]) -> (i64, i64) {
        let row = &self.world.nodes.rows[node];
        let mut leases: BTreeMap<Id, i64> = BTreeMap::new();
        for id in row.gpus.iter().flat_map(users).flatten() {
            *leases.entry(id).or_default() += 1;
        }
        leases.iter().fold((i64::from(row.cpus), row.memory as i64), |(cpus, memory), (id, gpus)| {
            let taken = takes(row, &self.world.workloads[id].asked, *gpus);
            (cpus - taken.0, memory - taken.1)
        })
    }

    pub(super) fn check_caps(&mut self, id: Id, occupancy: Occupancy) {
        let workload = &self.world.workloads[&id];
        let allocated = occupancy == Occupancy::Allocated;
        let gpus = workload.counted(occupancy);
        for budget in self.world.line(workload.leaf) {
            let row = &self.world.budgets.rows[budget];
            let cap = if allocated { row.gpus_max } else { row.unallocated_gpus_max };
            let in_use = row.in_use[occupancy as usize] + gpus;
            if let Some(cap) = cap.filter(|cap| in_use > i64::from(*cap)) {
                self.findings.add(
                    Law::Cap,
                    format!("{in_use} {occupancy:?} GPUs in {} with {}", row.path, workload.label),
                    format!("at most {cap}"),
                );
            }
        }
        if allocated && self.world.budgets.rows[workload.leaf].claim == 0 {
            self.findings.add(
                Law::Cap,
                format!("{} starts in {}", workload.label, self.world.budgets.rows[workload.leaf].path),
                "a zero claim runs unallocated work only",
            );
        }
    }

    /// Victims, the preempted of this instant and claimants start only where and when they may.
    pub(super) fn check_entry(&mut self, id: Id, licence: Licence, slots: &Slots) {
        let label = self.world.label(id).to_string();
        if self.instant.preempted.contains(&id) {
            self.findings.add(
                Law::Chain,
                format!("{label} starts in the instant in which it is preempted"),
                "it claims nothing in this instant",
            );
        }
        if let Some(claimant) = self.world.workloads[&id].barred_by {
            let seen = format!("{label} starts before {}, for which it was preempted", self.world.label(claimant));
            self.findings.add(Law::ReEntry, seen, "its claimant starts or goes away first");
        }
        let strongest = self.start_from_hold(id, slots, &label);
        if licence > strongest {
            self.findings.add(
                Law::Licence,
                format!("{label} starts by licence {licence:?}"),
                format!("at most {strongest:?}: what its plan took"),
            );
        }
    }
}

/// CPUs and memory of a node that work takes with so many GPUs there: what it asked for, or the node's part of its GPUs, rounded down.
/// A node that states none has as much as anybody asks for.
fn takes(node: &Node, asked: &Submitted, gpus: i64) -> (i64, i64) {
    let members = gpus / i64::from(asked.gpus_per_member);
    let each = |asked_for: i64, whole: i64| match (whole, asked_for) {
        (0, _) => 0,
        (_, 0) => whole * i64::from(asked.gpus_per_member) / node.gpus.len() as i64,
        _ => asked_for,
    };
    let cpus = members * each(i64::from(asked.cpus_per_member), i64::from(node.cpus));
    (cpus, members * each(asked.memory_per_member_bytes as i64, node.memory as i64))
}
