//! Whose GPUs a claimant takes: a set of leases whose end makes room for the whole gang, none of which could be left out.

use super::cluster::lowest;
use super::common::Desk;
use super::free::{Free, Room};
use super::placement::Choice;
use std::collections::BTreeMap;
use stipend_core::entry::{GpuSet, Placement, Slot};
use stipend_core::id::{NodeId, WorkloadId};
use stipend_core::spec::Gang;

/// Leases that may be taken, those that go first before the others.
#[derive(Debug, Default)]
pub(super) struct Prey {
    list: Vec<Taken>,
    /// By node: who of the list is there.
    at: BTreeMap<NodeId, Vec<usize>>,
    /// What would be free without all of them.
    pub(super) without: Free,
}

/// A lease that may be taken.
#[derive(Debug)]
struct Taken {
    id: WorkloadId,
    gang: Gang,
    placement: Placement,
}

/// Who is told to stop, and which GPUs the claimant then gets.
#[derive(Debug)]
pub(super) struct Eviction {
    pub(super) victims: Vec<WorkloadId>,
    pub(super) placement: Placement,
}

impl Prey {
    /// These leases, in the order in which they go.
    pub(super) fn gather(&mut self, desk: &Desk<'_>, leases: impl Iterator<Item = WorkloadId>) {
        self.list.clear();
        self.at.clear();
        self.without.copy(desk.cluster.free(0));
        for id in leases {
            let workload = desk.book.get(id).expect("only running work is prey");
            let lease = workload.lease().expect("only running work is prey");
            let gang = workload.spec.gang;
            desk.cluster.give_back(&mut self.without, &gang, &lease.placement);
            for slot in lease.placement.iter() {
                self.at.entry(slot.node).or_default().push(self.list.len());
            }
            self.list.push(Taken { id, gang, placement: lease.placement.clone() });
        }
    }

    /// Whether the gang could fit, counted by GPUs alone.
    pub(super) fn may_fit(&self, gang: &Gang) -> bool {
        self.without.members_at_most(gang.gpus_per_member) >= gang.members
    }

    /// The nodes on which the least is evicted (counted in GPUs of whole gangs), and on them the leases that go first; whoever turns out not to
    /// be needed is left alone.
    pub(super) fn evict(&self, desk: &Desk<'_>, gang: &Gang) -> Option<Eviction> {
        let cost = |node: NodeId| self.cost(desk, gang, node);
        let choice = desk.cluster.place_by_cost(&self.without, gang, &cost)?;
        let mut taken = vec![false; self.list.len()];
        let mut order = Vec::new();
        for &(node, members) in &choice {
            for &prey in self.at.get(&node).into_iter().flatten() {
                if self.fits(desk, gang, node, members, &taken) {
                    break;
                }
                if !taken[prey] {
                    taken[prey] = true;
                    order.push(prey);
                }
            }
        }
        for &prey in &order {
            taken[prey] = false;
            let nodes = choice.iter().filter(|(node, _)| self.list[prey].placement.iter().any(|slot| slot.node == *node));
            taken[prey] = !nodes.clone().all(|&(node, members)| self.fits(desk, gang, node, members, &taken));
        }
        order.retain(|&prey| taken[prey]);
        let placement = self.placement(desk, gang, &choice, &taken);
        Some(Eviction { victims: order.into_iter().map(|prey| self.list[prey].id).collect(), placement })
    }

    /// GPUs of the whole gangs that end so that one member finds room here.
    fn cost(&self, desk: &Desk<'_>, gang: &Gang, node: NodeId) -> u32 {
        let member = desk.cluster.member(node, gang);
        let mut room = desk.cluster.free(0).room(node);
        let mut cost = 0;
        for &prey in self.at.get(&node).into_iter().flatten() {
            if room.holds(member) > 0 {
                break;
            }
            room = self.with(desk, room, node, prey);
            cost += self.list[prey].gang.gpus().0;
        }
        cost
    }

    /// Whether so many members fit on a node once these have ended.
    fn fits(&self, desk: &Desk<'_>, gang: &Gang, node: NodeId, members: u32, taken: &[bool]) -> bool {
        let mut room = desk.cluster.free(0).room(node);
        for &prey in self.at.get(&node).into_iter().flatten().filter(|prey| taken[**prey]) {
            room = self.with(desk, room, node, prey);
        }
        room.holds(desk.cluster.member(node, gang)) >= members
    }

    /// Room on a node once this one has ended as well.
    fn with(&self, desk: &Desk<'_>, room: Room, node: NodeId, prey: usize) -> Room {
        let Taken { gang, .. } = &self.list[prey];
        let gpus = self.gpus(desk, node, prey).0.count_ones();
        room.plus(desk.cluster.member(node, gang), gpus / gang.gpus_per_member)
    }

    /// Its GPUs on a node that nobody else has a claim on.
    fn gpus(&self, desk: &Desk<'_>, node: NodeId, prey: usize) -> GpuSet {
        let slot = self.list[prey].placement.iter().find(|slot| slot.node == node);
        GpuSet(slot.map_or(0, |slot| slot.gpus.0) & !desk.cluster.held_gpus(node).0)
    }

    fn placement(&self, desk: &Desk<'_>, gang: &Gang, choice: &Choice, taken: &[bool]) -> Placement {
        let slot = |&(node, members): &(NodeId, u32)| {
            let prey = self.at.get(&node).into_iter().flatten().filter(|prey| taken[**prey]);
            let all = prey.fold(desk.cluster.open_gpus(node).0, |gpus, &prey| gpus | self.gpus(desk, node, prey).0);
            Slot { node, gpus: lowest(GpuSet(all), members * gang.gpus_per_member) }
        };
        choice.iter().map(slot).collect()
    }
}
