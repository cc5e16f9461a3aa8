//! A look at all nodes of a pool at one moment, for all gangs that ask for a promise then: who keeps others from which node, and until when.

use super::choice::{Candidate, Need, Stake};
use crate::cluster::{Cluster, Host};
use crate::entry::Occupancy;
use crate::id::{BlockId, BudgetId, NodeId, ReservationId, WorkloadId};
use crate::pool::Pool;
use crate::quantity::{Gpus, Time};
use crate::spec::NodeState;
use crate::table::Table;
use crate::workload::Workload;
use std::cmp::Reverse;
use std::ops::Range;

/// All nodes on which reserved work may run.
#[derive(Clone, Debug)]
pub(crate) struct Survey {
    spots: Vec<Spot>,
    keepers: Vec<Keeper>,
    stakes: Vec<Stake>,
}

/// One node. What somebody has first right to is not among them.
#[derive(Clone, Debug)]
struct Spot {
    node: NodeId,
    block: BlockId,
    /// By then the last protection on it has ended.
    clears: Time,
    is_held: bool,
    is_promised: bool,
    /// In `keepers` and `stakes`.
    keepers: Range<usize>,
    stakes: Range<usize>,
}

/// A leaf with allocated work on a node that nobody has told to leave.
#[derive(Clone, Debug)]
struct Keeper {
    leaf: BudgetId,
    /// Of its work there the first in the leaf's order: by priority, then by age.
    first: (Reverse<i16>, Time),
}

/// Who asks for nodes.
pub(crate) struct Asker<'a> {
    pub workload: &'a Workload,
    /// The reservation that it has already.
    pub own: Option<ReservationId>,
    /// The other leaves on whose leases it may count, by budget number.
    pub leaves: &'a [bool],
}

impl Asker<'_> {
    fn counts_on(&self, leaf: BudgetId) -> bool {
        self.leaves.get(leaf.index()).copied().unwrap_or(false)
    }
}

impl Survey {
    pub(crate) fn new(pool: &Pool, workloads: &Table<Workload>, at: Time) -> Survey {
        let mut survey = Survey { spots: Vec::new(), keepers: Vec::new(), stakes: Vec::new() };
        for (id, node) in pool.cluster.iter().filter(|(_, node)| node.state == NodeState::Ready && !node.spec.express) {
            let (keepers, stakes, mut clears) = (survey.keepers.len(), survey.stakes.len(), Some(at));
            for leased in &node.leases {
                let until = survey.look_at(id, *leased, workloads.get(leased.0).expect("it is live"), keepers);
                clears = clears.and_then(|clears| Some(clears.max(until?)));
            }
            let Some(clears) = clears else { continue };
            let (keepers, stakes) = (keepers..survey.keepers.len(), stakes..survey.stakes.len());
            let (is_held, is_promised) = (node.held.count() > 0, !node.promises.is_empty());
            survey.spots.push(Spot { node: id, block: node.spec.block, clears, is_held, is_promised, keepers, stakes });
        }
        survey
    }

    /// When a lease's protection ends, or never for one with first right to its GPUs; `keepers` is where its node's begin.
    fn look_at(&mut self, node: NodeId, id: WorkloadId, workload: &Workload, keepers: usize) -> Option<Time> {
        let lease = workload.lease().expect("it holds a lease");
        let until = match (&lease.stop, lease.occupancy) {
            (Some(_), _) if lease.first_right => return None,
            (Some(stop), _) => stop.stop_by(),
            (None, Occupancy::Unallocated) => return Some(Time::MIN),
            (None, Occupancy::Allocated) => {
                let (leaf, first) = (workload.spec.budget, workload.place_in_leaf());
                match self.keepers[keepers..].iter_mut().find(|keeper| keeper.leaf == leaf) {
                    Some(keeper) => keeper.first = keeper.first.min(first),
                    None => self.keepers.push(Keeper { leaf, first }),
                }
                lease.protected_until_latest(workload.terms.contract)
            }
        };
        let slot = lease.placement.iter().find(|slot| slot.node == node).expect("it is leased here");
        self.stakes.push(workload.stake(id, lease, Gpus(slot.gpus.count())));
        Some(until)
    }

    /// The nodes that a gang may count on by `need.latest`; none if they do not suffice for it.
    pub(crate) fn candidates(&self, pool: &Pool, asker: &Asker<'_>, need: &Need) -> Vec<Candidate> {
        let gang = &asker.workload.spec.gang;
        let within = |spot: &Spot| {
            let clears = self.clears(spot, pool, asker).filter(|clears| *clears <= need.latest)?;
            let node = pool.cluster.at(spot.node);
            let members = Cluster::members_fitting(&node.spec, gang, node.spec.gpus, Host::of(&node.spec));
            (members > 0).then_some((clears, members))
        };
        let (mut found, mut members) = (Vec::new(), 0);
        for (spot, (clears, fitting)) in self.spots.iter().filter_map(|spot| Some((spot, within(spot)?))) {
            found.push((spot, clears, fitting));
            members += fitting;
        }
        if members < need.members {
            return Vec::new();
        }
        let candidate = |(spot, clears, members): (&Spot, Time, u32)| Candidate {
            node: spot.node,
            block: spot.block,
            clears,
            members,
            gpus: Gpus(pool.cluster.at(spot.node).spec.gpus),
            stakes: self.stakes[spot.stakes.clone()].to_vec(),
        };
        found.into_iter().map(candidate).collect()
    }

    /// When the last protection on a node ends, if all that is on it belongs to those whom the gang may count on.
    fn clears(&self, spot: &Spot, pool: &Pool, asker: &Asker<'_>) -> Option<Time> {
        let own = asker.own.filter(|own| spot.is_promised && pool.cluster.at(spot.node).promises.iter().any(|(id, _)| id == own));
        let may_count = |keeper: &Keeper| match keeper.leaf == asker.workload.spec.budget {
            true => keeper.first > asker.workload.place_in_leaf(),
            false => asker.counts_on(keeper.leaf),
        };
        if own.is_none() && !self.keepers[spot.keepers.clone()].iter().all(may_count) {
            return None;
        }
        // Who holds GPUs on a node that is promised has certainly left by the date; of others nothing is known.
        let held_until = if spot.is_held { pool.reservations.by_id[&own?].clears } else { Time::MIN };
        let promised = if spot.is_promised { promised_until(spot.node, pool, asker, own)? } else { Time::MIN };
        Some(spot.clears.max(held_until).max(promised))
    }
}

/// When those to whom a node is promised have left it again, if the gang may come after them; `own` is its own promise of this node.
fn promised_until(node: NodeId, pool: &Pool, asker: &Asker<'_>, own: Option<ReservationId>) -> Option<Time> {
    let by_id = &pool.reservations.by_id;
    let mut until = Time::MIN;
    for (other, _) in pool.cluster.at(node).promises.iter().filter(|(other, _)| Some(*other) != asker.own) {
        let reservation = &by_id[other];
        let is_earlier = asker.own.is_none_or(|own| *other < own);
        if is_earlier && (own.is_some() || asker.counts_on(reservation.leaf)) {
            until = until.max(reservation.ends);
        } else if own.is_none() {
            return None;
        }
    }
    Some(until)
}
