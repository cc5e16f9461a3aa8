//! What is free on every node, indexed by the number of free GPUs: bit sets, so that the best fit is found without walking the nodes.

use stipend_core::id::NodeId;
use stipend_core::spec::{Gang, NodeSpec};

/// Resources of one node: all of them, what is free, or what one member takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Room {
    pub(super) gpus: u32,
    pub(super) cpus: u32,
    pub(super) memory: u64,
}

impl Room {
    /// A whole node.
    pub(super) fn of(node: &NodeSpec) -> Room {
        Room { gpus: node.gpus, cpus: node.cpus, memory: node.memory }
    }

    /// What one member takes on this node: a request of 0 is the node's part of the member's GPUs, and what a node does not count is
    /// never taken from it.
    pub(super) fn member(node: &NodeSpec, gang: &Gang) -> Room {
        let gpus = gang.gpus_per_member;
        let part = |all: u64| all * u64::from(gpus) / u64::from(node.gpus);
        let cpus = match (node.cpus, gang.cpus_per_member) {
            (0, _) => 0,
            (all, 0) => part(u64::from(all)) as u32,
            (_, asked) => asked,
        };
        let memory = match (node.memory, gang.memory_per_member) {
            (0, _) => 0,
            (all, 0) => part(all),
            (_, asked) => asked,
        };
        Room { gpus, cpus, memory }
    }

    /// As how many GPUs one member on this node counts: the largest of its parts of the node.
    pub(super) fn charged(node: &NodeSpec, gang: &Gang) -> u32 {
        let part = |asked: u64, all: u64| if all == 0 { 0 } else { (asked * u64::from(node.gpus)).div_ceil(all) as u32 };
        let by_cpus = part(u64::from(gang.cpus_per_member), u64::from(node.cpus));
        gang.gpus_per_member.max(by_cpus).max(part(gang.memory_per_member, node.memory))
    }

    /// How many members that take `member` each fit.
    pub(super) fn holds(self, member: Room) -> u32 {
        let by_cpus = self.cpus.checked_div(member.cpus).unwrap_or(u32::MAX);
        let by_memory = self.memory.checked_div(member.memory).unwrap_or(u64::MAX);
        let by_memory = u32::try_from(by_memory).unwrap_or(u32::MAX);
        (self.gpus / member.gpus).min(by_cpus).min(by_memory)
    }

    /// With `members` more members' room.
    pub(super) fn plus(self, member: Room, members: u32) -> Room {
        Room {
            gpus: self.gpus + member.gpus * members,
            cpus: self.cpus + member.cpus * members,
            memory: self.memory + member.memory * u64::from(members),
        }
    }

    /// Without the room of `members` members.
    pub(super) fn minus(self, member: Room, members: u32) -> Room {
        Room {
            gpus: self.gpus - member.gpus * members,
            cpus: self.cpus - member.cpus * members,
            memory: self.memory - member.memory * u64::from(members),
        }
    }

    /// Without another room; what is not there cannot be taken.
    pub(super) fn less(self, taken: Room) -> Room {
        Room {
            gpus: self.gpus.saturating_sub(taken.gpus),
            cpus: self.cpus.saturating_sub(taken.cpus),
            memory: self.memory.saturating_sub(taken.memory),
        }
    }

    /// What both have.
    pub(super) fn min(self, other: Room) -> Room {
        Room { gpus: self.gpus.min(other.gpus), cpus: self.cpus.min(other.cpus), memory: self.memory.min(other.memory) }
    }
}

/// Free room by node. A node that is out of service, or belongs to somebody else, simply has no room here.
#[derive(Clone, Debug, Default)]
pub(super) struct Free {
    /// By node.
    rooms: Vec<Room>,
    /// How many words a bit set of all nodes takes.
    words: usize,
    /// One bit set of nodes for each number of free GPUs, from 0 upwards, one after the other.
    sets: Vec<u64>,
    /// Wholly free nodes.
    whole: Vec<u64>,
    /// How many nodes have each number of free GPUs.
    count: Vec<u32>,
    /// Counts the changes.
    version: u64,
}

impl Free {
    /// Room for `nodes` nodes of at most `gpus` GPUs each, none of them free.
    pub(super) fn new(nodes: usize, gpus: u32) -> Free {
        let words = nodes.div_ceil(64);
        let levels = gpus as usize + 1;
        let (sets, whole, count) = (vec![0; words * levels], vec![0; words], vec![0; levels]);
        Free { rooms: vec![Room::default(); nodes], words, sets, whole, count, version: 0 }
    }

    /// The same for another number of nodes, again with none of them free.
    pub(super) fn resized(&self, nodes: usize, gpus: u32) -> Free {
        Free { version: self.version + 1, ..Free::new(nodes, gpus) }
    }

    /// Becomes a copy of `other`, in the memory it already has.
    pub(super) fn copy(&mut self, other: &Free) {
        self.rooms.clone_from(&other.rooms);
        self.sets.clone_from(&other.sets);
        self.whole.clone_from(&other.whole);
        self.count.clone_from(&other.count);
        self.words = other.words;
        self.version = other.version;
    }

    /// What is free on a node.
    pub(super) fn room(&self, node: NodeId) -> Room {
        self.rooms[node.index()]
    }

    /// What is free on each node.
    pub(super) fn rooms(&self) -> &[Room] {
        &self.rooms
    }

    /// Sets what is free on a node that has `all` GPUs.
    pub(super) fn set(&mut self, node: NodeId, room: Room, all: u32) {
        let (word, bit) = (node.index() / 64, 1_u64 << (node.index() % 64));
        let before = self.rooms[node.index()].gpus;
        if before != room.gpus {
            if before > 0 {
                self.sets[before as usize * self.words + word] &= !bit;
                self.count[before as usize] -= 1;
            }
            if room.gpus > 0 {
                self.sets[room.gpus as usize * self.words + word] |= bit;
                self.count[room.gpus as usize] += 1;
            }
        }
        if room.gpus == all {
            self.whole[word] |= bit;
        } else {
            self.whole[word] &= !bit;
        }
        self.rooms[node.index()] = room;
        self.version += 1;
    }

    /// Changes whenever anything here does.
    pub(super) fn version(&self) -> u64 {
        self.version
    }

    /// How many nodes there is space for.
    pub(super) fn nodes(&self) -> usize {
        self.rooms.len()
    }

    /// The most free GPUs that any node could have.
    pub(super) fn gpus_max(&self) -> u32 {
        self.count.len().saturating_sub(1) as u32
    }

    /// At most so many members of this size fit, counted by GPUs alone: what fails here fails without a search.
    pub(super) fn members_at_most(&self, gpus_per_member: u32) -> u32 {
        let held = |(free, &nodes): (usize, &u32)| nodes * (free as u32 / gpus_per_member);
        self.count.iter().enumerate().skip(gpus_per_member as usize).map(held).sum()
    }

    /// Nodes with exactly `gpus` free, wholly free ones or the others, by number.
    pub(super) fn with(&self, gpus: u32, whole: bool) -> impl Iterator<Item = NodeId> + '_ {
        let from = if self.count[gpus as usize] == 0 { 0..0 } else { 0..self.words };
        from.flat_map(move |word| {
            let mask = if whole { self.whole[word] } else { !self.whole[word] };
            bits(self.sets[gpus as usize * self.words + word] & mask).map(move |bit| NodeId(word as u32 * 64 + bit))
        })
    }
}

/// The set bits of a word, lowest first.
fn bits(mut word: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let lowest = word.trailing_zeros();
        word &= word.wrapping_sub(1);
        (lowest < 64).then_some(lowest)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_found_by_what_they_have_free() {
        let mut free = Free::new(130, 8);
        let gpus = |gpus| Room { gpus, cpus: 0, memory: 0 };
        free.set(NodeId(129), gpus(8), 8);
        free.set(NodeId(3), gpus(4), 8);
        free.set(NodeId(70), gpus(4), 4);
        assert_eq!(free.with(4, false).collect::<Vec<_>>(), [NodeId(3)]);
        assert_eq!(free.with(4, true).collect::<Vec<_>>(), [NodeId(70)]);
        assert_eq!(free.members_at_most(4), 4);
        free.set(NodeId(129), gpus(0), 8);
        assert_eq!(free.members_at_most(4), 2);
        assert_eq!(free.with(8, true).next(), None);
    }

    #[test]
    fn a_member_takes_its_part_of_cpus_and_memory_unless_it_asks() {
        let node = NodeSpec {
            pool: stipend_core::id::PoolId(0),
            gpus: 8,
            cpus: 100,
            memory: 0,
            block: stipend_core::id::BlockId(0),
            features: stipend_core::spec::Features(0),
            express: false,
        };
        let mut gang = Gang::new(1, 2);
        assert_eq!(Room::member(&node, &gang), Room { gpus: 2, cpus: 25, memory: 0 });
        gang.cpus_per_member = 60;
        assert_eq!(Room::of(&node).holds(Room::member(&node, &gang)), 1);
    }
}
