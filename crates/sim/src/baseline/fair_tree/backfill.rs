//! Reservations of nodes for jobs that cannot start now, and what others may do beside them.
//!
//! As in Slurm's `sched/backfill` (`sched_config.html`): jobs are looked at by priority; one that cannot start gets the earliest nodes and
//! time that are left by what runs and by the reservations before it; a later one starts only if it delays none of them. Everything is
//! made anew at each pass, since expected ends are only expected.

use super::super::common::Desk;
use super::super::free::{Free, Room};
use super::super::placement::Choice;
use super::jobs::Job;
use super::search::Search;
use stipend_core::id::NodeId;
#[cfg(test)]
use stipend_core::id::WorkloadId;
use stipend_core::quantity::{Span, Time};
use stipend_core::spec::Gang;

/// Nodes from a time on.
#[derive(Debug)]
pub(super) struct Reservation {
    #[cfg(test)]
    id: WorkloadId,
    pub(super) gang: Gang,
    pub(super) from: Time,
    pub(super) until: Time,
    pub(super) nodes: Choice,
    /// By node: what is free at `from` once it has started.
    after: Vec<Room>,
}

/// The reservations of one pass, the earliest first.
#[derive(Debug, Default)]
pub(super) struct Reservations {
    list: Vec<Reservation>,
    /// For each number of reservations, the earliest ones: what work that outlasts these may take now. Made when first asked for.
    open: Vec<Option<Free>>,
    search: Search,
    /// How many searches found what the reference finds: something, nothing.
    #[cfg(test)]
    pub(super) agreed: [u32; 2],
}

impl Reservations {
    /// Forgets all of them.
    pub(super) fn clear(&mut self) {
        self.list.clear();
        self.open.clear();
        self.search.forget();
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
        self.search.forget();
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
        self.search.forget();
        self.open.clear();
    }

    /// Reserves the earliest nodes that are left for a gang, if there are any before `horizon`; returns from when on.
    pub(super) fn reserve(&mut self, desk: &Desk<'_>, job: &Job, horizon: Time) -> Option<Time> {
        let Job { gang, expected, .. } = job;
        let found = self.search.earliest(desk, &self.list, gang, *expected, horizon);
        #[cfg(test)]
        {
            assert_eq!(found, super::reference::earliest(desk, &self.list, gang, *expected, horizon), "{} at {:?}", job.id, desk.at);
            self.agreed[usize::from(found.is_none())] += 1;
        }
        let (from, nodes) = found?;
        let until = Time(from.0.saturating_add(expected.0));
        let mut after = self.search.future().to_vec();
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

    /// Says what is open on a node for work that outlasts so many reservations.
    fn limit(&self, desk: &Desk<'_>, open: &mut Free, node: NodeId, outlasted: usize) {
        let free = desk.cluster.free(0).room(node);
        let room = self.list[..outlasted].iter().fold(free, |room, reservation| room.min(reservation.after[node.index()]));
        desk.cluster.set_room(open, node, room);
    }
}

/// Takes a gang's members on a node out of a picture.
fn take(desk: &Desk<'_>, free: &mut [Room], gang: &Gang, node: NodeId, members: u32) {
    let taken = Room::default().plus(desk.cluster.member(node, gang), members);
    free[node.index()] = free[node.index()].less(taken);
}
