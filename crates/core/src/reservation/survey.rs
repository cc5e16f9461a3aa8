//! A look at all nodes of a pool at one moment, for all gangs that ask for a promise then: who keeps others from which node, and until when.

use super::Reservation;
use super::choice::{Candidate, Need, Stake};
use crate::cluster::{Cluster, Host};
use crate::entry::Occupancy;
use crate::id::{BudgetId, NodeId, ReservationId, WorkloadId};
use crate::pool::Pool;
use crate::quantity::{Gpus, Span, Time};
use crate::spec::{NodeState, OnPreempt};
use crate::table::Table;
use crate::workload::Workload;
use std::cmp::Reverse;
use std::ops::Range;

/// All nodes on which reserved work may run.
#[derive(Clone, Debug)]
pub(crate) struct Survey {
    spots: Vec<Spot>,
    keepers: Vec<Keeper>,
}

/// One node. What somebody has first right to is not among them.
#[derive(Clone, Debug)]
struct Spot {
    node: NodeId,
    /// By then all have left it who were told to.
    clears: Time,
    is_held: bool,
    is_promised: bool,
    /// In `keepers`.
    keepers: Range<usize>,
}

/// A leaf with allocated work on a node that nobody has told to leave.
#[derive(Clone, Debug)]
struct Keeper {
    leaf: BudgetId,
    /// Of its work there the first in the leaf's order, by priority and then by age. What can resume comes after all others of its
    /// priority once it has run for two quanta: until then whoever stands lower had no chance to be promised its node.
    first: (Reverse<i16>, Time),
    /// By then the last of its protections there has ended.
    clears: Time,
    /// By then its work there has reached its time limits; never, if some has none.
    ends: Time,
}

/// What a survey reckons with.
struct Look {
    /// What can resume and started by then yields to all work of its leaf and priority.
    yields_from: Time,
    /// What ends by itself only after this is as good as without end.
    far: Time,
}

/// Who asks for nodes.
pub(crate) struct Asker<'a> {
    pub workload: &'a Workload,
    /// The reservation that it has already.
    pub own: Option<ReservationId>,
    /// The other leaves on whose leases it may count, by budget number.
    pub leaves: &'a [bool],
}

impl Keeper {
    /// Another lease of the same leaf on the same node.
    fn join(&mut self, other: &Keeper) {
        self.first = self.first.min(other.first);
        self.clears = self.clears.max(other.clears);
        self.ends = self.ends.max(other.ends);
    }
}

impl Asker<'_> {
    fn place(&self) -> (Reverse<i16>, Time) {
        (Reverse(self.workload.spec.priority), self.workload.eligible)
    }

    fn counts_on(&self, leaf: BudgetId) -> bool {
        self.leaves.get(leaf.index()).copied().unwrap_or(false)
    }
}

impl Survey {
    pub(crate) fn new(pool: &Pool, workloads: &Table<Workload>, at: Time) -> Survey {
        let mut survey = Survey { spots: Vec::new(), keepers: Vec::new() };
        let look = Look { yields_from: at - pool.knobs.quantum * 2, far: at + pool.knobs.end_max };
        for (id, node) in pool.cluster.iter().filter(|(_, node)| node.state == NodeState::Ready && !node.spec.express) {
            let (keepers, mut clears) = (survey.keepers.len(), Some(at));
            for leased in &node.leases {
                let until = survey.look_at(workloads.get(leased.0).expect("it is live"), keepers, &look);
                clears = clears.and_then(|clears| Some(clears.max(until?)));
            }
            let Some(clears) = clears else { continue };
            let (is_held, is_promised) = (node.held.count() > 0, !node.promises.is_empty());
            survey.spots.push(Spot { node: id, clears, is_held, is_promised, keepers: keepers..survey.keepers.len() });
        }
        survey
    }

    /// When a lease that was told to has left, or never if it has first right to its GPUs; `keepers` is where its node's
    /// begin.
    fn look_at(&mut self, workload: &Workload, keepers: usize, look: &Look) -> Option<Time> {
        let lease = workload.lease().expect("it holds a lease");
        match (&lease.stop, lease.occupancy) {
            (Some(_), _) if lease.first_right => None,
            (Some(stop), _) => Some(stop.stop_by()),
            (None, Occupancy::Unallocated) => Some(Time::MIN),
            (None, Occupancy::Allocated) => {
                let (leaf, priority) = (workload.spec.budget, Reverse(workload.spec.priority));
                let has_run = lease.started <= look.yields_from && workload.spec.on_preempt == OnPreempt::Resume;
                let ends = Some(workload.ends_latest(lease)).filter(|ends| *ends <= look.far).unwrap_or(Time::MAX);
                let keeper = Keeper {
                    leaf,
                    first: (priority, if has_run { Time::MAX } else { workload.eligible }),
                    clears: lease.protected_until_latest(workload.terms.contract),
                    ends,
                };
                match self.keepers[keepers..].iter_mut().find(|keeper| keeper.leaf == leaf) {
                    Some(other) => other.join(&keeper),
                    None => self.keepers.push(keeper),
                }
                Some(Time::MIN)
            }
        }
    }

    /// The nodes that a gang may count on by `need.latest`; none if they do not suffice for it.
    pub(crate) fn candidates(&self, pool: &Pool, workloads: &Table<Workload>, asker: &Asker<'_>, need: &Need) -> Vec<Candidate> {
        let gang = &asker.workload.spec.gang;
        let clears = |spot: &Spot| self.clears(spot, pool, asker).filter(|clears| *clears <= need.latest);
        let spots = self.spots.iter().filter_map(|spot| Some((spot.node, clears(spot)?)));
        // Most gangs find too few of them.
        if spots.clone().count() as u32 * (pool.cluster.largest_node() / gang.gpus_per_member) < need.members {
            return Vec::new();
        }
        let candidate = |(id, clears): (NodeId, Time)| {
            let node = pool.cluster.at(id);
            let members = Cluster::members_fitting(&node.spec, gang, node.spec.gpus, Host::of(&node.spec));
            let gpus = Gpus(node.spec.gpus);
            let is_before = |other: &ReservationId| asker.own.is_none_or(|own| *other < own);
            let before = node.promises.iter().filter(|(other, _)| is_before(other)).map(|(other, _)| &pool.reservations.by_id[other]);
            let before = before.max_by_key(|reservation| reservation.ends);
            let mut stakes: Vec<Stake> = node.leases.iter().filter_map(|leased| stake(id, *leased, workloads)).collect();
            if let Some(reservation) = before {
                // Those who are there leave it to that promise and bank once more before the date. Who cannot may still be there then: the
                // promise may end before its date.
                stakes.retain(|stake| stake.every.is_none());
                stakes.push(promised_stake(reservation, gpus, pool, workloads));
            }
            let block = node.spec.block;
            (members > 0).then_some(Candidate { node: id, block, clears, members, gpus, stakes })
        };
        spots.filter_map(candidate).collect()
    }

    /// When the last protection on a node ends, if all that is on it belongs to those whom the gang may count on.
    fn clears(&self, spot: &Spot, pool: &Pool, asker: &Asker<'_>) -> Option<Time> {
        let own = asker.own.filter(|own| spot.is_promised && pool.cluster.at(spot.node).promises.iter().any(|(id, _)| id == own));
        let may_count = |keeper: &Keeper| match keeper.leaf == asker.workload.spec.budget {
            true => keeper.first > asker.place(),
            false => asker.counts_on(keeper.leaf),
        };
        // Nobody needs a licence to come after what ends by itself.
        let kept_until = |keeper: &Keeper| if own.is_some() || may_count(keeper) { keeper.clears } else { keeper.ends };
        let kept_until = self.keepers[spot.keepers.clone()].iter().map(kept_until).max().unwrap_or(Time::MIN);
        if kept_until == Time::MAX {
            return None;
        }
        // Who holds GPUs on a node that is promised has certainly left by the date; of others nothing is known.
        let held_until = if spot.is_held { pool.reservations.by_id[&own?].clears } else { Time::MIN };
        let promised = if spot.is_promised { promised_until(spot.node, pool, asker, own)? } else { Time::MIN };
        Some(spot.clears.max(kept_until).max(held_until).max(promised))
    }
}

/// What a lease has at stake on a node, unless it goes at once.
fn stake(node: NodeId, id: WorkloadId, workloads: &Table<Workload>) -> Option<Stake> {
    let workload = workloads.get(id.0).expect("it is live");
    let lease = workload.lease().expect("it holds a lease");
    if lease.stop.is_none() && lease.occupancy == Occupancy::Unallocated {
        return None;
    }
    let slot = lease.placement.iter().find(|slot| slot.node == node).expect("it is leased here");
    Some(workload.stake(id, lease, Gpus(slot.gpus.count())))
}

/// What a gang to which a node is promised before has at stake there.
fn promised_stake(reservation: &Reservation, gpus: Gpus, pool: &Pool, workloads: &Table<Workload>) -> Stake {
    let workload = workloads.get(reservation.workload.0).expect("it is live");
    let contract = workload.in_pool(pool.id).contract;
    let every = workload.spec.checkpoint_every.unwrap_or(contract);
    let resumes = workload.spec.on_preempt == OnPreempt::Resume && every > Span::ZERO;
    let since = reservation.ends - contract;
    let ends = workload.limit_left().map_or(Time::MAX, |left| since + left);
    Stake { workload: reservation.workload, gpus, gang: workload.spec.gang.gpus(), since, every: resumes.then_some(every), ends }
}

/// When those to whom a node is promised have left it again, if the gang may come after them; `own` is its own promise of this node.
fn promised_until(node: NodeId, pool: &Pool, asker: &Asker<'_>, own: Option<ReservationId>) -> Option<Time> {
    let mut until = Time::MIN;
    for (other, _) in pool.cluster.at(node).promises.iter().filter(|(other, _)| Some(*other) != asker.own) {
        let reservation = &pool.reservations.by_id[other];
        let is_earlier = asker.own.is_none_or(|own| *other < own);
        if is_earlier && (own.is_some() || asker.counts_on(reservation.leaf)) {
            until = until.max(reservation.ends);
        } else if own.is_none() {
            return None;
        }
    }
    Some(until)
}
