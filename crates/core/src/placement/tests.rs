//! Placement on small random clusters against brute force.

use super::*;
use crate::dice::Dice;
use crate::id::{PoolId, WorkloadId};
use crate::spec::{Features, NodeSpec};

pub(crate) fn node(dice: &mut Dice) -> NodeSpec {
    let counts_hosts = dice.once_in(2);
    NodeSpec {
        pool: PoolId(0),
        gpus: dice.pick(&[1, 2, 4, 8]),
        cpus: if counts_hosts { dice.pick(&[8, 16, 32]) } else { 0 },
        memory: if counts_hosts { dice.pick(&[0, 64, 100]) } else { 0 },
        block: BlockId(dice.below(3)),
        features: Features(u64::from(dice.below(2))),
        express: false,
    }
}

/// Anywhere in these lanes.
pub(crate) fn ground(lanes: &[Lane]) -> Ground<'_> {
    Ground { lanes, gone_by: Time::MIN, own: None, only: None }
}

pub(crate) fn gang(dice: &mut Dice) -> Gang {
    let mut gang = Gang::new(dice.pick(&[1, 1, 1, 2, 3, 4]), dice.pick(&[1, 1, 2, 3, 4, 8]));
    gang.cpus_per_member = dice.pick(&[0, 0, 1, 6]);
    gang.memory_per_member = dice.pick(&[0, 0, 10, 40]);
    gang.features = Features(u64::from(dice.once_in(4)));
    gang.same_block = dice.once_in(4);
    gang
}

/// What one node has left.
#[derive(Clone)]
pub(crate) struct Left {
    pub(crate) id: NodeId,
    pub(crate) spec: NodeSpec,
    pub(crate) gpus: GpuSet,
    pub(crate) host: Host,
}

impl Left {
    /// How many members fit, one after the other.
    pub(crate) fn members(&self, gang: &Gang) -> u32 {
        let part = |asked: i64, whole: i64| match (asked, whole) {
            (_, 0) => 0,
            (0, _) => whole * i64::from(gang.gpus_per_member) / i64::from(self.spec.gpus),
            _ => asked,
        };
        let (cpus, memory) =
            (part(gang.cpus_per_member.into(), self.spec.cpus.into()), part(gang.memory_per_member as i64, self.spec.memory as i64));
        let (mut gpus, mut host, mut members) = (self.gpus.count(), self.host, 0);
        if gang.features.0 & !self.spec.features.0 != 0 {
            return 0;
        }
        while gpus >= gang.gpus_per_member && host.cpus >= cpus && host.memory >= memory && members < 64 {
            gpus -= gang.gpus_per_member;
            host = Host { cpus: host.cpus - cpus, memory: host.memory - memory };
            members += 1;
        }
        members
    }
}

/// The fewest blocks that hold a gang, over all sets of blocks; `None` if it fits nowhere.
pub(crate) fn fewest_blocks(left: &[Left], gang: &Gang) -> Option<u32> {
    let within = |set: u32| left.iter().filter(|node| set >> node.spec.block.0 & 1 == 1).map(|node| node.members(gang)).sum::<u32>();
    let sets = (1u32..8).filter(|set| within(*set) >= gang.members && (!gang.same_block || set.count_ones() == 1));
    sets.map(u32::count_ones).min()
}

/// Asserts that slots hold a gang on GPUs, CPUs and memory that are left.
pub(crate) fn assert_fits(left: &[Left], gang: &Gang, slots: &[Slot], what: &str) {
    let mut members = 0;
    for slot in slots {
        let node = left.iter().find(|node| node.id == slot.node).expect("a node of the cluster");
        assert_eq!(slot.gpus.minus(node.gpus), GpuSet(0), "{what}: GPUs that are left");
        assert!(slot.gpus.count().is_multiple_of(gang.gpus_per_member) && slot.gpus != GpuSet(0), "{what}: whole members");
        let here = slot.gpus.count() / gang.gpus_per_member;
        assert!(here <= node.members(gang), "{what}: CPUs, memory, features");
        members += here;
    }
    assert_eq!(members, gang.members, "{what}: the whole gang");
    assert!(slots.windows(2).all(|pair| pair[0].node < pair[1].node), "{what}: one slot a node, in order");
}

/// A cluster with some GPUs in use, and what is left by a reckoning of its own.
fn cluster(dice: &mut Dice) -> (Cluster, Vec<Left>) {
    let (mut cluster, mut left) = (Cluster::default(), Vec::new());
    for number in 0..1 + dice.below(5) {
        let (id, spec) = (NodeId(number), node(dice));
        cluster.join(id, spec.clone());
        let host = Host { cpus: spec.cpus.into(), memory: spec.memory as i64 };
        let mut node = Left { id, gpus: GpuSet::first(spec.gpus), host, spec };
        for workload in 0..dice.below(4) {
            let occupant = Gang { members: 1, same_block: false, features: Features(0), ..gang(dice) };
            if node.members(&occupant) == 0 {
                continue;
            }
            // Any GPUs, not the lowest.
            let mut gpus = GpuSet(0);
            while gpus.count() < occupant.gpus_per_member {
                gpus = gpus.or(GpuSet(1 << dice.below(node.spec.gpus))).and(node.gpus);
            }
            cluster.lease(WorkloadId(number * 4 + workload), &[Slot { node: id, gpus }], &occupant);
            let takes = Cluster::member_host(&node.spec, &occupant);
            node.gpus = node.gpus.minus(gpus);
            node.host = node.host.plus(takes.times(-1));
        }
        left.push(node);
    }
    (cluster, left)
}

#[test]
fn a_gang_is_placed_if_and_only_if_it_fits() {
    let mut placed = 0;
    for seed in 0..4000 {
        let mut dice = Dice::new(seed);
        let (cluster, left) = cluster(&mut dice);
        let gang = gang(&mut dice);
        let slots = place(&cluster, &ground(&[Lane::General]), &gang);
        let fewest = fewest_blocks(&left, &gang);
        assert_eq!(slots.is_some(), fewest.is_some(), "seed {seed}: {gang:?}");
        let (Some(slots), Some(fewest)) = (slots, fewest) else { continue };
        placed += 1;
        assert_fits(&left, &gang, &slots, &format!("seed {seed}"));
        let mut blocks: Vec<BlockId> = slots.iter().map(|slot| cluster.at(slot.node).spec.block).collect();
        blocks.sort_unstable();
        blocks.dedup();
        assert_eq!(blocks.len() as u32, fewest, "seed {seed}: fewest blocks");
    }
    assert!((1000..3500).contains(&placed), "{placed} of 4000 fit");
}

#[test]
fn one_member_goes_where_it_breaks_no_whole_node_and_leaves_least() {
    for seed in 0..4000 {
        let mut dice = Dice::new(seed);
        let (cluster, left) = cluster(&mut dice);
        let gang = Gang { members: 1, ..gang(&mut dice) };
        let rank = |node: &Left| {
            let left_over = node.gpus.count() - gang.gpus_per_member;
            (node.gpus.count() == node.spec.gpus && left_over > 0, left_over, node.id)
        };
        let best = left.iter().filter(|node| node.members(&gang) > 0).map(rank).min();
        let slots = place(&cluster, &ground(&[Lane::General]), &gang);
        assert_eq!(slots.map(|slots| slots[0].node), best.map(|(.., id)| id), "seed {seed}: {gang:?}");
    }
}
