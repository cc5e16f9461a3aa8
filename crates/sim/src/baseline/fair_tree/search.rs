//! When a gang fits for the first time, and where: one walk through the future, counting GPUs.
//!
//! A picture of all nodes at each time at which something ends would be exact and slow: there are hundreds of ends, and several gangs look
//! through them at each backfill. So the walk keeps one number, how many members fit counted by GPUs alone. Only where that is enough are
//! nodes chosen, and then it is nearly always the answer.

use super::super::common::Desk;
use super::super::free::{Free, Room};
use super::super::placement::Choice;
use super::backfill::Reservation;
use stipend_core::id::{NodeId, WorkloadId};
use stipend_core::quantity::{Span, Time};
use stipend_core::spec::Gang;

/// So many are looked at beyond what a walk needs, at least.
const AHEAD: usize = 32;

/// What one lease gives back on one node when it ends.
#[derive(Clone, Copy, Debug)]
struct Return {
    at: Time,
    node: NodeId,
    room: Room,
}

/// The walk, with the memory of the last one.
#[derive(Debug, Default)]
pub(super) struct Search {
    /// What running leases give back, the earliest first, as far as any walk came.
    returns: Vec<Return>,
    /// The last lease that was looked at for this.
    last: Option<(Time, WorkloadId)>,
    /// By node: what the ends so far leave free.
    future: Vec<Room>,
    /// By node: how much of that is reserved.
    reserved: Vec<Room>,
    /// By reservation: whether it counts in `reserved`.
    counted: Vec<bool>,
    /// Until when none other counts: the next reservation begins, the next one is over.
    same_until: (Time, Time),
    /// How many members fit into what is left, counted by GPUs alone.
    members: u32,
    /// A picture of what is left, for the choice of nodes.
    left: Free,
}

impl Search {
    /// Leases are others now, or end at other times.
    pub(super) fn forget(&mut self) {
        self.returns.clear();
        self.last = None;
    }

    /// What is free on each node at the time that was found last, but for reservations.
    pub(super) fn future(&self) -> &[Room] {
        &self.future
    }

    /// When the gang fits for so long as it is expected to run, at `horizon` at the latest, and where. Of the nodes that would do, those with
    /// the least free now keep the fewest others waiting.
    pub(super) fn earliest(
        &mut self,
        desk: &Desk<'_>,
        list: &[Reservation],
        gang: &Gang,
        expected: Span,
        horizon: Time,
    ) -> Option<(Time, Choice)> {
        self.begin(desk, list.len(), gang);
        let mut over: Vec<Time> = list.iter().map(|one| one.until).collect();
        over.sort_unstable();
        let (mut returned, mut over) = (0, over.into_iter().peekable());
        loop {
            if self.returns.len() == returned {
                self.look_ahead(desk);
            }
            let ends = self.returns.get(returned).map(|end| end.at);
            let at = ends.into_iter().chain(over.peek().copied()).min().filter(|at| *at <= horizon)?;
            while let Some(&Return { node, room, .. }) = self.returns.get(returned).filter(|end| end.at == at) {
                let before = self.fitting(gang, node);
                self.future[node.index()] = self.future[node.index()].plus(room, 1);
                self.members += self.fitting(gang, node) - before;
                returned += 1;
            }
            while over.next_if_eq(&at).is_some() {}
            self.overlap(desk, list, gang, at, Time(at.0.saturating_add(expected.0)));
            if gang.members <= self.members
                && let Some(nodes) = self.choose(desk, gang)
            {
                return Some((at.max(desk.at), nodes));
            }
        }
    }

    /// Back to now.
    fn begin(&mut self, desk: &Desk<'_>, reservations: usize, gang: &Gang) {
        let now = desk.cluster.free(0);
        self.future.clear();
        self.future.extend_from_slice(now.rooms());
        self.reserved.clear();
        self.reserved.resize(now.nodes(), Room::default());
        self.counted.clear();
        self.counted.resize(reservations, false);
        self.same_until = (Time(i64::MIN), Time(i64::MIN));
        self.members = now.members_at_most(gang.gpus_per_member);
    }

    /// Lists what the next leases give back, all of those that end at the same time.
    fn look_ahead(&mut self, desk: &Desk<'_>) {
        let known = self.returns.len();
        let last = self.last.unwrap_or((Time(i64::MIN), WorkloadId(0)));
        for (at, id) in desk.book.ends_after(last) {
            if known + AHEAD <= self.returns.len() && self.returns.last().is_some_and(|last| last.at < at) {
                break;
            }
            self.last = Some((at, id));
            let workload = desk.book.get(id).expect("it has a lease");
            let lease = workload.lease().expect("it has a lease");
            if workload.pool == desk.pool {
                let back = |slot| desk.cluster.given_back(&workload.spec.gang, slot);
                self.returns.extend(lease.placement.iter().map(|slot| Return { at, node: slot.node, room: back(slot) }));
            }
        }
    }

    /// Counts the reservations that overlap with this time, and no others.
    fn overlap(&mut self, desk: &Desk<'_>, list: &[Reservation], gang: &Gang, from: Time, until: Time) {
        if until <= self.same_until.0 && from < self.same_until.1 {
            return;
        }
        for (number, one) in list.iter().enumerate() {
            let counts = one.from < until && from < one.until;
            if std::mem::replace(&mut self.counted[number], counts) == counts {
                continue;
            }
            for &(node, members) in &one.nodes {
                let before = self.fitting(gang, node);
                let (member, reserved) = (desk.cluster.member(node, &one.gang), &mut self.reserved[node.index()]);
                *reserved = if counts { reserved.plus(member, members) } else { reserved.minus(member, members) };
                self.members = self.members + self.fitting(gang, node) - before;
            }
        }
        let never = Time(i64::MAX);
        let begins = list.iter().map(|one| one.from).filter(|begin| *begin >= until).min();
        let over = list.iter().map(|one| one.until).filter(|over| *over > from).min();
        self.same_until = (begins.unwrap_or(never), over.unwrap_or(never));
    }

    /// How many members fit on a node, counted by GPUs alone.
    fn fitting(&self, gang: &Gang, node: NodeId) -> u32 {
        let (free, reserved) = (self.future[node.index()].gpus, self.reserved[node.index()].gpus);
        free.saturating_sub(reserved) / gang.gpus_per_member
    }

    /// Nodes within what is left.
    fn choose(&mut self, desk: &Desk<'_>, gang: &Gang) -> Option<Choice> {
        let now = desk.cluster.free(0);
        self.left.copy(now);
        for (number, (future, reserved)) in self.future.iter().zip(&self.reserved).enumerate() {
            let (node, room) = (NodeId(number as u32), future.less(*reserved));
            if room != self.left.room(node) {
                desk.cluster.set_room(&mut self.left, node, room);
            }
        }
        desk.cluster.place_by_cost(&self.left, gang, &|node| now.room(node).gpus)
    }
}
