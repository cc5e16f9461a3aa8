//! EASY backfill with node reservations: whoever waits longest gets concrete nodes at the earliest time at which they are sure to be free,
//! and others go first only if they cannot delay that.
//!
//! What counts as sure comes from time limits and from what owners expect, whichever is less; work that states neither gets an [`Estimate`].
//! Both of the latter may turn out wrong: nobody is stopped for it, and the reservation is made anew. Another start is harmless if it is
//! over by the reservation's time, or if it keeps to GPUs that the reservation leaves over: the free nodes outside of it, and on its
//! nodes what is free beyond the reserved GPUs both now and then. The reservation prefers nodes with the least free now, as those keep the
//! fewest others waiting.

use super::book::{Estimate, Workload};
use super::common::{Baseline, Desk, GUEST, Queue};
use super::free::{Free, Room};
use super::line::Ticket;
use super::placement::Choice;
use super::shapes::Shapes;
use crate::policy::Policy;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use stipend_core::id::{NodeId, WorkloadId};
use stipend_core::quantity::{Span, Time};
use stipend_core::spec::Gang;

/// Backfill beside a reservation for the longest waiting.
pub fn easy(estimate: Estimate) -> impl Policy {
    Baseline::new(Easy::default, estimate)
}

/// What the longest waiting is sure to get.
#[derive(Default)]
struct Reservation {
    /// For whom, and in which state of the pool: it holds until either changes.
    of: Option<(WorkloadId, u64)>,
    /// When.
    from: Option<Time>,
    /// Where, with what is then left over.
    left_over: BTreeMap<NodeId, Room>,
    /// What is free now and not needed then.
    open: Free,
}

/// Waiting work, and the reservation that was made last.
#[derive(Default)]
struct Easy {
    shapes: Shapes,
    /// Everybody by place in the order of submission, with the number of the shape.
    waiting: BTreeMap<u32, (WorkloadId, usize)>,
    /// Shapes in which somebody came to wait since the last pass.
    touched: BTreeSet<usize>,
    reservation: Reservation,
    /// What will be free later, while a reservation is sought.
    future: Free,
}

impl Queue for Easy {
    fn push(&mut self, id: WorkloadId, workload: &Workload, estimate: &Estimate) {
        let ticket = Ticket { rank: workload.rank, id, expected: workload.expected(estimate) };
        let shape = self.shapes.push(workload.spec.gang, ticket);
        self.waiting.insert(workload.rank, (id, shape));
        self.touched.insert(shape);
    }

    fn remove(&mut self, _: WorkloadId, workload: &Workload) {
        self.forget(workload.rank, self.waiting[&workload.rank].1);
    }

    fn decide(&mut self, desk: &mut Desk<'_>) {
        while let Some((&rank, &(head, shape))) = self.waiting.first_key_value() {
            let Some(choice) = desk.place(head) else { break };
            desk.start(head, &choice, "the longest waiting of all, and it fits");
            self.forget(rank, shape);
        }
        let Some(&(head, shape)) = self.waiting.values().next() else { return };
        let touched = std::mem::take(&mut self.touched);
        let current = Some((head, desk.version()));
        if self.reservation.of == current {
            // Nothing became free, so only those who came since the last pass can start.
            self.pass(desk, touched.into_iter());
        } else {
            let gang = self.shapes.line(shape).0;
            self.reservation.of = current;
            self.reserve(desk, &gang);
            self.pass(desk, 0..self.shapes.len());
        }
    }

    /// As backfill, beside the reservation for the longest waiting.
    fn guest(&mut self, id: WorkloadId, desk: &mut Desk<'_>) -> bool {
        let workload = desk.book.get(id).expect("it waits");
        let (gang, expected) = (workload.spec.gang, workload.expected(desk.estimate));
        let over_in_time = self.waiting.is_empty() || expected <= self.time_left(desk);
        let room = if over_in_time { desk.cluster.free(0) } else { &self.reservation.open };
        let Some(choice) = desk.cluster.place(room, &gang) else { return false };
        desk.start(id, &choice, GUEST);
        // Where nobody waits, nobody has a reservation that it could take from.
        if !self.waiting.is_empty() {
            self.started(desk, &gang, &choice, over_in_time);
        }
        true
    }
}

impl Easy {
    fn forget(&mut self, rank: u32, shape: usize) {
        self.waiting.remove(&rank);
        self.shapes.remove(shape, rank);
    }

    /// Finds the earliest time at which the gang is sure to fit, and the nodes for it. Where even the end of everything that runs does not
    /// help (nodes are out of service), there is none, and nobody is kept waiting for it.
    fn reserve(&mut self, desk: &Desk<'_>, gang: &Gang) {
        let now = desk.cluster.free(0);
        self.reservation.open.copy(now);
        self.reservation.left_over.clear();
        let Some((from, choice)) = self.earliest(desk, gang) else {
            self.reservation.from = None;
            return;
        };
        self.reservation.from = Some(from);
        for (node, members) in choice {
            let left = desk.cluster.without(self.future.room(node), node, gang, members);
            self.reservation.left_over.insert(node, left);
            self.reservation.limit(desk, node);
        }
    }

    /// When the gang fits for the first time as leases end, and where.
    fn earliest(&mut self, desk: &Desk<'_>, gang: &Gang) -> Option<(Time, Choice)> {
        let now = desk.cluster.free(0);
        self.future.copy(now);
        let mut ends = desk.book.ends().peekable();
        while let Some((end, id)) = ends.next() {
            let workload = desk.book.get(id).expect("it has a lease");
            let lease = workload.lease().expect("it has a lease");
            if workload.pool == desk.pool {
                desk.cluster.give_back(&mut self.future, &workload.spec.gang, &lease.placement);
            }
            if ends.peek().is_some_and(|&(next, _)| next == end) {
                continue;
            }
            let choice = desk.cluster.place_by_cost(&self.future, gang, &|node| now.room(node).gpus);
            if let Some(choice) = choice {
                return Some((end, choice));
            }
        }
        None
    }

    /// Starts work of these shapes in the order of submission. What cannot start at its turn cannot start later in the same pass either, as
    /// every start leaves less.
    fn pass(&mut self, desk: &mut Desk<'_>, shapes: impl Iterator<Item = usize>) {
        let mut next: BinaryHeap<Reverse<(u32, usize)>> = shapes.map(|shape| Reverse((0, shape))).collect();
        while let Some(Reverse((rank, shape))) = next.pop() {
            let Some((ticket, choice)) = self.candidate(desk, shape) else { continue };
            if ticket.rank == rank {
                self.start(desk, shape, ticket, &choice);
            }
            next.push(Reverse((ticket.rank, shape)));
        }
    }

    /// The first of a shape that may start now, and where: anybody where the reservation is not touched, else whoever is over in time.
    fn candidate(&self, desk: &Desk<'_>, shape: usize) -> Option<(Ticket, Choice)> {
        let (gang, line) = self.shapes.line(shape);
        line.first()?;
        let time = self.time_left(desk);
        if let Some(open) = desk.cluster.place(&self.reservation.open, gang) {
            let ticket = line.first()?;
            let anywhere = if ticket.expected <= time { desk.cluster.place(desk.cluster.free(0), gang) } else { None };
            return Some((ticket, anywhere.unwrap_or(open)));
        }
        let ticket = line.first_within(time)?;
        Some((ticket, desk.cluster.place(desk.cluster.free(0), gang)?))
    }

    /// How long from now to the reservation.
    fn time_left(&self, desk: &Desk<'_>) -> Span {
        self.reservation.from.map_or(Span(i64::MAX), |from| from - desk.at)
    }

    fn start(&mut self, desk: &mut Desk<'_>, shape: usize, ticket: Ticket, choice: &Choice) {
        let gang = self.shapes.line(shape).0;
        let over_in_time = ticket.expected <= self.time_left(desk);
        let rule = if over_in_time {
            "backfill: it is over before the longest waiting can start"
        } else {
            "backfill: the longest waiting does not need these GPUs"
        };
        desk.start(ticket.id, choice, rule);
        self.forget(ticket.rank, shape);
        self.started(desk, &gang, choice, over_in_time);
    }

    /// What a start takes of the reservation.
    fn started(&mut self, desk: &Desk<'_>, gang: &Gang, choice: &Choice, over_in_time: bool) {
        for &(node, members) in choice {
            if let Some(left) = self.reservation.left_over.get_mut(&node).filter(|_| !over_in_time) {
                *left = desk.cluster.without(*left, node, gang, members);
            }
            self.reservation.limit(desk, node);
        }
    }
}

impl Reservation {
    /// Brings what is open on a node up to date with what is free there.
    fn limit(&mut self, desk: &Desk<'_>, node: NodeId) {
        let free = desk.cluster.free(0).room(node);
        let open = self.left_over.get(&node).map_or(free, |left| left.min(free));
        desk.cluster.set_room(&mut self.open, node, open);
    }
}
