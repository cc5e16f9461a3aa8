//! Where a gang fits: fewest blocks, fewest whole nodes broken, least left over, node number.

use crate::cluster::{Cluster, Host, Lane};
use crate::entry::{GpuSet, Slot};
use crate::id::{BlockId, NodeId, ReservationId};
use crate::quantity::Time;
use crate::spec::Gang;
use std::collections::BTreeMap;

#[cfg(test)]
pub(crate) mod tests;

/// What a trial adds to a node's free GPUs: those of leases that would be gone.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Extra {
    pub gpus: GpuSet,
    pub host: Host,
}

/// Which nodes a gang may stand on.
#[derive(Clone, Copy)]
pub(crate) struct Ground<'a> {
    pub lanes: &'a [Lane],
    /// When the gang has certainly left again: a node that is promised to others from before then is not for it. The least time for
    /// unallocated work, which leaves when it is told to.
    pub gone_by: Time,
    /// The gang's own reservation.
    pub own: Option<ReservationId>,
    /// These nodes only, sorted.
    pub only: Option<&'a [NodeId]>,
}

impl Ground<'_> {
    pub(crate) fn admits(&self, cluster: &Cluster, id: NodeId) -> bool {
        let promised = cluster.at(id).promised_from(self.own);
        promised.is_none_or(|from| self.gone_by <= from) && self.only.is_none_or(|only| only.binary_search(&id).is_ok())
    }
}

/// A node with room for some members.
struct Room {
    node: NodeId,
    block: BlockId,
    members: u32,
    /// Placing here breaks a node that was whole.
    breaks_whole: bool,
    left_over: u32,
}

/// The lanes to try, one set after the other: express first for work that may go there, so that it leaves the rest to others.
pub(crate) fn lanes(express: bool) -> &'static [&'static [Lane]] {
    if express { &[&[Lane::Express], &[Lane::General], &[Lane::Express, Lane::General]] } else { &[&[Lane::General]] }
}

/// Slots for a gang on free GPUs of this ground, or `None`.
pub(crate) fn place(cluster: &Cluster, ground: &Ground<'_>, gang: &Gang) -> Option<Vec<Slot>> {
    if gang.members == 1 {
        let node = ground.lanes.iter().find_map(|lane| place_one(cluster, *lane, ground, gang))?;
        return Some(vec![Slot { node, gpus: cluster.at(node).free.lowest(gang.gpus_per_member) }]);
    }
    place_with(cluster, ground, gang, &BTreeMap::new())
}

/// The node for a gang of one member. Nodes come with the fewest free GPUs first, so the first that fits leaves least; but where nodes
/// differ in size, one that is whole may come before one that is broken already.
fn place_one(cluster: &Cluster, lane: Lane, ground: &Ground<'_>, gang: &Gang) -> Option<NodeId> {
    let mut whole = None;
    for id in cluster.with_free(lane, gang.gpus_per_member).filter(|id| ground.admits(cluster, *id)) {
        let room = room(cluster, id, gang, Extra::default());
        if room.members > 0 && !room.breaks_whole {
            return Some(id);
        }
        if room.members > 0 {
            whole.get_or_insert(id);
        }
        // With so many free GPUs every node is whole.
        if whole.is_some() && cluster.at(id).free.count() >= cluster.largest_node() {
            break;
        }
    }
    whole
}

/// Slots on nodes that drain for maintenance, for work that certainly ends by `ends`; unallocated work may be stopped then.
pub(crate) fn place_before_drain(cluster: &Cluster, gang: &Gang, ends: Time, express: bool) -> Option<Vec<Slot>> {
    let in_time = |id: &&NodeId| {
        let node = cluster.at(**id);
        node.drain_until.is_some_and(|until| ends <= until) && (express || !node.spec.express)
    };
    let rooms = cluster.maintenance.iter().filter(in_time).map(|id| room(cluster, *id, gang, Extra::default()));
    fill(cluster, rooms.filter(|r| r.members > 0).collect(), gang, &BTreeMap::new())
}

/// Slots for a gang on free GPUs and those of the trial.
pub(crate) fn place_with(cluster: &Cluster, ground: &Ground<'_>, gang: &Gang, extra: &BTreeMap<NodeId, Extra>) -> Option<Vec<Slot>> {
    let free = ground.lanes.iter().flat_map(|lane| cluster.with_free(*lane, gang.gpus_per_member));
    let free = free.filter(|id| !extra.contains_key(id) && ground.admits(cluster, *id));
    let rooms = free.map(|id| room(cluster, id, gang, Extra::default()));
    let with_extra = extra.iter().map(|(id, extra)| room(cluster, *id, gang, *extra));
    let rooms = rooms.chain(with_extra).filter(|r| r.members > 0).collect();
    fill(cluster, rooms, gang, extra)
}

fn room(cluster: &Cluster, id: NodeId, gang: &Gang, extra: Extra) -> Room {
    let node = cluster.at(id);
    let gpus = node.free.or(extra.gpus).count();
    let members = Cluster::members_fitting(&node.spec, gang, gpus, node.host_free.plus(extra.host)).min(gang.members);
    let left_over = gpus - members * gang.gpus_per_member;
    Room { node: id, block: node.spec.block, members, breaks_whole: gpus == node.spec.gpus && left_over > 0, left_over }
}

fn fill(cluster: &Cluster, mut rooms: Vec<Room>, gang: &Gang, extra: &BTreeMap<NodeId, Extra>) -> Option<Vec<Slot>> {
    if rooms.iter().map(|room| room.members).sum::<u32>() < gang.members {
        return None;
    }
    let order = blocks_in_order(&rooms, gang)?;
    rooms.sort_by_key(|r| (order.get(&r.block).copied(), r.breaks_whole, r.left_over, r.node));
    let mut missing = gang.members;
    let mut slots = Vec::new();
    for room in rooms.iter().filter(|r| order.contains_key(&r.block)) {
        let members = room.members.min(missing);
        missing -= members;
        let extra = extra.get(&room.node).copied().unwrap_or_default();
        slots.push(Slot { node: room.node, gpus: choose(cluster.at(room.node).free, extra.gpus, members * gang.gpus_per_member) });
        if missing == 0 {
            break;
        }
    }
    slots.sort_unstable();
    (missing == 0).then_some(slots)
}

/// Free GPUs before those that somebody would have to leave.
fn choose(free: GpuSet, extra: GpuSet, n: u32) -> GpuSet {
    let from_free = free.lowest(n.min(free.count()));
    from_free.or(extra.minus(free).lowest(n - from_free.count()))
}

/// The fewest blocks that hold the gang: while none holds the rest alone, the roomiest; then the tightest that does.
fn blocks_in_order(rooms: &[Room], gang: &Gang) -> Option<BTreeMap<BlockId, u32>> {
    let mut room_by_block: BTreeMap<BlockId, u32> = BTreeMap::new();
    for room in rooms {
        *room_by_block.entry(room.block).or_default() += room.members;
    }
    let mut order = BTreeMap::new();
    let mut missing = gang.members;
    while missing > 0 {
        let tightest = room_by_block.iter().filter(|(_, room)| **room >= missing).min_by_key(|(block, room)| (**room, **block));
        let roomiest = || room_by_block.iter().max_by_key(|(block, room)| (**room, std::cmp::Reverse(**block)));
        let (block, room) = match (tightest, gang.same_block) {
            (Some(found), _) => found,
            (None, true) => return None,
            (None, false) => roomiest()?,
        };
        let (block, room) = (*block, *room);
        missing = missing.saturating_sub(room);
        order.insert(block, order.len() as u32);
        room_by_block.remove(&block);
    }
    Some(order)
}
