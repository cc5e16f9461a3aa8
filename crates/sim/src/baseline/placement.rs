//! Where a gang goes: in the fewest blocks, breaking the fewest wholly free nodes, leaving the least over, then by node number.
//!
//! With one member the choice is exact. With several it is greedy (blocks with the most room first, nodes that are already in use first), as
//! the exact choice would be a knapsack.

use super::cluster::Node;
use super::free::{Free, Room};
use std::collections::BTreeMap;
use stipend_core::id::{BlockId, NodeId};
use stipend_core::spec::Gang;

/// The nodes of a gang and how many members each takes, by node number.
pub(super) type Choice = Vec<(NodeId, u32)>;

/// A node that could take some members.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    node: NodeId,
    /// How many members fit.
    members: u32,
    /// Its free GPUs.
    gpus: u32,
    /// What comes before everything else in the choice of nodes; 0 unless the caller says otherwise.
    cost: u32,
    /// All its GPUs are free.
    whole: bool,
}

impl Candidate {
    /// What taking `members` here costs, the least being the best.
    fn key(&self, members: u32, gang: &Gang) -> (u32, bool, u32, NodeId) {
        (self.cost, self.whole, self.gpus - members * gang.gpus_per_member, self.node)
    }
}

/// Nodes for the whole gang within what is free, or `None`.
pub(super) fn place(nodes: &[Option<Node>], free: &Free, gang: &Gang) -> Option<Choice> {
    if free.members_at_most(gang.gpus_per_member) < gang.members {
        return None;
    }
    if gang.members == 1 {
        return place_one(nodes, free, gang);
    }
    place_blocks(candidates(nodes, free, gang, &|_| 0), gang)
}

/// Like [`place`], but prefers the nodes that cost least.
pub(super) fn place_by_cost(nodes: &[Option<Node>], free: &Free, gang: &Gang, cost: &dyn Fn(NodeId) -> u32) -> Option<Choice> {
    if free.members_at_most(gang.gpus_per_member) < gang.members {
        return None;
    }
    place_blocks(candidates(nodes, free, gang, cost), gang)
}

/// How many members fit on a node now.
pub(super) fn members(node: &Node, room: Room, gang: &Gang) -> u32 {
    let featured = node.spec.features.0 & gang.features.0 == gang.features.0;
    if featured && node.spec.gpus >= gang.gpus_per_member { room.holds(Room::member(&node.spec, gang)) } else { 0 }
}

/// The commonest case without a list of candidates: the fullest node that still has room, a wholly free one only if there is no other.
fn place_one(nodes: &[Option<Node>], free: &Free, gang: &Gang) -> Option<Choice> {
    let fits = |node: &NodeId| nodes[node.index()].as_ref().is_some_and(|n| members(n, free.room(*node), gang) > 0);
    let best = |whole| (gang.gpus_per_member..=free.gpus_max()).find_map(|gpus| free.with(gpus, whole).find(fits));
    let node = best(false).or_else(|| best(true))?;
    Some(vec![(node, 1)])
}

/// All nodes that could take a member, by block.
fn candidates(nodes: &[Option<Node>], free: &Free, gang: &Gang, cost: &dyn Fn(NodeId) -> u32) -> BTreeMap<BlockId, Vec<Candidate>> {
    let mut blocks: BTreeMap<BlockId, Vec<Candidate>> = BTreeMap::new();
    for gpus in gang.gpus_per_member..=free.gpus_max() {
        for whole in [false, true] {
            for node in free.with(gpus, whole) {
                let Some(spec) = &nodes[node.index()] else { continue };
                let members = members(spec, free.room(node), gang);
                if members > 0 {
                    blocks.entry(spec.spec.block).or_default().push(Candidate { node, members, gpus, cost: cost(node), whole });
                }
            }
        }
    }
    blocks
}

/// The gang in one block if one has room for all of it, the one that it fits best; else in the blocks with the most room, and what is left
/// of it in the block that it fits best.
fn place_blocks(mut blocks: BTreeMap<BlockId, Vec<Candidate>>, gang: &Gang) -> Option<Choice> {
    let room = |block: &[Candidate]| block.iter().map(|c| c.members).sum::<u32>();
    if blocks.values().map(|b| room(b)).sum::<u32>() < gang.members {
        return None;
    }
    let mut left = gang.members;
    let mut choice = Choice::new();
    loop {
        let best = blocks.values_mut().filter(|b| room(b) >= left).map(|b| fill(b, left, gang)).min_by_key(|filled| filled.key);
        if let Some(last) = best {
            choice.extend(last.choice);
            choice.sort_unstable();
            return Some(choice);
        }
        if gang.same_block {
            return None;
        }
        let roomiest = *blocks.iter().max_by_key(|(id, b)| (room(b), std::cmp::Reverse(**id)))?.0;
        let taken = blocks.remove(&roomiest)?;
        left -= room(&taken);
        choice.extend(taken.iter().map(|c| (c.node, c.members)));
    }
}

/// Members put into one block.
struct Filled {
    /// What the choice costs: the nodes' own costs, how many wholly free nodes it breaks, the GPUs it leaves over, its first node.
    key: (u32, u32, u32, NodeId),
    choice: Choice,
}

/// Puts `left` members into a block that has room for them, the best node first, the last node chosen for what is left.
fn fill(block: &mut [Candidate], mut left: u32, gang: &Gang) -> Filled {
    block.sort_unstable_by_key(|c| c.key(c.members, gang));
    let mut filled = Filled { key: (0, 0, 0, NodeId(u32::MAX)), choice: Choice::new() };
    let mut rest = &block[..];
    while left > 0 {
        let (candidate, others) = rest.split_first().expect("the caller saw room for every member");
        let last = candidate.members >= left;
        let taken = if last {
            rest.iter().filter(|c| c.members >= left).min_by_key(|c| c.key(left, gang)).expect("the first one has room")
        } else {
            candidate
        };
        let members = taken.members.min(left);
        let (cost, whole, over, node) = taken.key(members, gang);
        filled.key.0 += cost;
        filled.key.1 += u32::from(whole);
        filled.key.2 += over;
        filled.key.3 = filled.key.3.min(node);
        filled.choice.push((node, members));
        left -= members;
        rest = others;
    }
    filled
}
