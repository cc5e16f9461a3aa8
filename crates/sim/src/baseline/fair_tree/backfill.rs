//! Reservations of nodes for jobs that cannot start now, and what others may do beside them.
//!
//! As in Slurm's `sched/backfill` (`sched_config.html`): jobs are looked at by priority; one that cannot start gets the earliest nodes and
//! time that are left by what runs and by the reservations before it; a later one starts only if it delays none of them. Everything is
//! made anew at each pass, since expected ends are only expected.

use super::super::common::Desk;
use super::super::free::{Free, Room};
use super::super::placement::Choice;
use super::jobs::Job;
use stipend_core::id::NodeId;
#[cfg(test)]
use stipend_core::id::WorkloadId;
use stipend_core::quantity::{Span, Time};
use stipend_core::spec::Gang;

/// Nodes from a time on.
#[derive(Debug)]
struct Reservation {
    #[cfg(test)]
    id: WorkloadId,
    gang: Gang,
    from: Time,
    until: Time,
    nodes: Choice,
    /// What is free at `from` once it has started.
    after: Free,
}

/// The reservations of one pass, the earliest first.
#[derive(Debug, Default)]
pub(super) struct Reservations {
    list: Vec<Reservation>,
    /// For each number of reservations, the earliest ones: what work that outlasts these may take now. Made when first asked for.
    open: Vec<Option<Free>>,
    /// What will be free later, while a reservation is sought.
    future: Free,
    /// The same, less what is reserved.
    left: Free,
    /// What is reserved then, by node, and by which of the reservations.
    reserved: Vec<Room>,
    overlapping: Option<Vec<bool>>,
}

impl Reservations {
    /// Forgets all of them.
    pub(super) fn clear(&mut self) {
        self.list.clear();
        self.open.clear();
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.list.len()
    }

    /// When a job has nodes at the latest, if it has a reservation.
    #[cfg(test)]
    pub(super) fn of(&self, id: WorkloadId) -> Option<Time> {
        self.list.iter().find(|one| one.id == id).map(|one| one.from)
    }

    /// How many of them work outlasts that starts now and runs so long; it must leave those their nodes.
    pub(super) fn outlasted(&self, desk: &Desk<'_>, expected: Span) -> usize {
        let end = Time(desk.at.0.saturating_add(expected.0));
        self.list.partition_point(|reservation| reservation.from < end)
    }

    /// Nodes for a gang that may start now and outlast so many reservations.
    pub(super) fn place(&mut self, desk: &Desk<'_>, gang: &Gang, outlasted: usize) -> Option<Choice> {
        if outlasted == 0 {
            return desk.cluster.place(desk.cluster.free(0), gang);
        }
        self.open.resize_with(self.list.len() + 1, || None);
        if self.open[outlasted].is_none() {
            let mut open = Free::default();
            open.copy(desk.cluster.free(0));
            for node in (0..open.nodes() as u32).map(NodeId) {
                if open.room(node).gpus > 0 {
                    self.limit(desk, &mut open, node, outlasted);
                }
            }
            self.open[outlasted] = Some(open);
        }
        desk.cluster.place(self.open[outlasted].as_ref()?, gang)
    }

    /// Work has started on these nodes that outlasts so many reservations.
    pub(super) fn started(&mut self, desk: &Desk<'_>, gang: &Gang, nodes: &Choice, outlasted: usize) {
        for &(node, members) in nodes {
            for reservation in &mut self.list[..outlasted] {
                take(desk, &mut reservation.after, gang, node, members);
            }
            for number in 1..self.open.len() {
                if let Some(mut open) = self.open[number].take() {
                    self.limit(desk, &mut open, node, number);
                    self.open[number] = Some(open);
                }
            }
        }
    }

    /// GPUs were set aside for a job that preempts: what is open is another.
    pub(super) fn claimed(&mut self) {
        self.open.clear();
    }

    /// Reserves the earliest nodes that are left for a gang, if there are any before `horizon`; returns from when on. Of the nodes that would
    /// do, those with the least free now keep the fewest others waiting.
    pub(super) fn reserve(&mut self, desk: &Desk<'_>, job: &Job, horizon: Time) -> Option<Time> {
        let Job { gang, expected, .. } = job;
        let (from, nodes) = self.earliest(desk, gang, *expected, horizon)?;
        let until = Time(from.0.saturating_add(expected.0));
        let mut after = Free::default();
        after.copy(&self.future);
        for one in self.list.iter().filter(|one| one.from <= from && from < one.until) {
            one.nodes.iter().for_each(|&(node, members)| take(desk, &mut after, &one.gang, node, members));
        }
        nodes.iter().for_each(|&(node, members)| take(desk, &mut after, gang, node, members));
        for one in self.list.iter_mut().filter(|one| from <= one.from && one.from < until) {
            nodes.iter().for_each(|&(node, members)| take(desk, &mut one.after, gang, node, members));
        }
        let place = self.list.partition_point(|one| one.from <= from);
        self.list.insert(
            place,
            Reservation {
                #[cfg(test)]
                id: job.id,
                gang: *gang,
                from,
                until,
                nodes,
                after,
            },
        );
        self.open.clear();
        Some(from)
    }

    /// When the gang fits for the first time as leases and reservations end, and where; `future` is then what is free at that time.
    fn earliest(&mut self, desk: &Desk<'_>, gang: &Gang, expected: Span, horizon: Time) -> Option<(Time, Choice)> {
        let now = desk.cluster.free(0);
        self.future.copy(now);
        self.overlapping = None;
        let mut freed = Vec::new();
        let mut ends = desk.book.ends().peekable();
        let mut until: Vec<Time> = self.list.iter().map(|one| one.until).collect();
        until.sort_unstable();
        let mut until = until.into_iter().peekable();
        loop {
            let next = ends.peek().map(|&(end, _)| end).into_iter().chain(until.peek().copied()).min()?;
            if next > horizon {
                return None;
            }
            freed.clear();
            while let Some((_, id)) = ends.next_if(|&(end, _)| end == next) {
                let workload = desk.book.get(id).expect("it has a lease");
                let lease = workload.lease().expect("it has a lease");
                if workload.pool == desk.pool {
                    desk.cluster.give_back(&mut self.future, &workload.spec.gang, &lease.placement);
                    freed.extend(lease.placement.iter().map(|slot| slot.node));
                }
            }
            while until.next_if_eq(&next).is_some() {}
            self.subtract(desk, next, Time(next.0.saturating_add(expected.0)), &freed);
            if self.left.members_at_most(gang.gpus_per_member) < gang.members {
                continue;
            }
            let from = next.max(desk.at);
            if let Some(nodes) = desk.cluster.place_by_cost(&self.left, gang, &|node| now.room(node).gpus) {
                return Some((from, nodes));
            }
        }
    }

    /// What is left of the future between two times by the reservations that overlap; the leases on the `freed` nodes have ended since this was
    /// computed last.
    fn subtract(&mut self, desk: &Desk<'_>, from: Time, until: Time, freed: &[NodeId]) {
        let overlaps = |one: &Reservation| one.from < until && from < one.until;
        let now = Some(self.list.iter().map(overlaps).collect());
        if self.overlapping == now {
            for &node in freed {
                let room = less(self.future.room(node), self.reserved[node.index()]);
                desk.cluster.set_room(&mut self.left, node, room);
            }
            return;
        }
        self.overlapping = now;
        self.reserved.clear();
        self.reserved.resize(self.future.nodes(), Room::default());
        self.left.copy(&self.future);
        for one in self.list.iter().filter(|one| overlaps(one)) {
            for &(node, members) in &one.nodes {
                let reserved = &mut self.reserved[node.index()];
                *reserved = reserved.plus(desk.cluster.member(node, &one.gang), members);
                let room = less(self.future.room(node), *reserved);
                desk.cluster.set_room(&mut self.left, node, room);
            }
        }
    }

    /// Says what is open on a node for work that outlasts so many reservations.
    fn limit(&self, desk: &Desk<'_>, open: &mut Free, node: NodeId, outlasted: usize) {
        let free = desk.cluster.free(0).room(node);
        let room = self.list[..outlasted].iter().fold(free, |room, reservation| room.min(reservation.after.room(node)));
        desk.cluster.set_room(open, node, room);
    }
}

/// Takes a gang's members on a node out of a picture.
fn take(desk: &Desk<'_>, free: &mut Free, gang: &Gang, node: NodeId, members: u32) {
    let taken = Room::default().plus(desk.cluster.member(node, gang), members);
    let left = less(free.room(node), taken);
    desk.cluster.set_room(free, node, left);
}

/// What is left of a room; what is not there cannot be taken.
fn less(room: Room, taken: Room) -> Room {
    Room {
        gpus: room.gpus.saturating_sub(taken.gpus),
        cpus: room.cpus.saturating_sub(taken.cpus),
        memory: room.memory.saturating_sub(taken.memory),
    }
}
