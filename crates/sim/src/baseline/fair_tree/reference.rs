//! The search for a reservation as it would be written without a thought of speed: a picture of all nodes at each time at which something
//! ends, made from nothing.

use super::super::common::Desk;
use super::super::free::{Free, Room};
use super::super::placement::Choice;
use super::backfill::Reservation;
use std::collections::{BTreeMap, BTreeSet};
use stipend_core::id::NodeId;
use stipend_core::quantity::{Span, Time};
use stipend_core::spec::Gang;

/// What [`Search::earliest`](super::search::Search::earliest) finds.
pub(super) fn earliest(desk: &Desk<'_>, list: &[Reservation], gang: &Gang, expected: Span, horizon: Time) -> Option<(Time, Choice)> {
    let leases = || {
        let workloads = desk.book.ends().map(|(end, id)| (end, desk.book.get(id).expect("it has a lease")));
        workloads.filter(|(_, workload)| workload.pool == desk.pool)
    };
    let times: BTreeSet<Time> = leases().map(|(end, _)| end).chain(list.iter().map(|one| one.until)).collect();
    let now = desk.cluster.free(0);
    times.into_iter().filter(|at| *at <= horizon).find_map(|at| {
        let mut left = Free::default();
        left.copy(now);
        for (_, workload) in leases().filter(|(end, _)| *end <= at) {
            let lease = workload.lease().expect("it has a lease");
            desk.cluster.give_back(&mut left, &workload.spec.gang, &lease.placement);
        }
        let until = Time(at.0.saturating_add(expected.0));
        let mut reserved: BTreeMap<NodeId, Room> = BTreeMap::new();
        for one in list.iter().filter(|one| one.from < until && at < one.until) {
            for &(node, members) in &one.nodes {
                let room = reserved.entry(node).or_default();
                *room = room.plus(desk.cluster.member(node, &one.gang), members);
            }
        }
        for (node, reserved) in reserved {
            let room = left.room(node).less(reserved);
            desk.cluster.set_room(&mut left, node, room);
        }
        let nodes = desk.cluster.place_by_cost(&left, gang, &|node| now.room(node).gpus)?;
        Some((at.max(desk.at), nodes))
    })
}
