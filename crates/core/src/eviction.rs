//! Which leases to evict for a claimant: feasible on concrete nodes before anybody is stopped, minimal, and cheap.
//!
//! Nodes are taken cheapest first until the gang fits, counting members per node; then each victim is put back, dearest first, to see
//! whether the gang still fits. A victim is evicted whole, so what it frees on other nodes counts too.

use crate::cluster::{Cluster, Host, Lane, slot_host};
use crate::entry::{GpuSet, Licence, Occupancy, Slot};
use crate::explain::Blocker;
use crate::id::{BlockId, NodeId, WorkloadId};
use crate::licence::{Grant, Licences, loss_limit, on_express};
use crate::placement::{Extra, Ground, place_with};
use crate::pool::Pool;
use crate::quantity::{GpuMs, Gpus, Standing, Time};
use crate::queue::spared_until;
use crate::spec::{Gang, NodeState};
use crate::table::Table;
use crate::workload::{Lease, Workload};
use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// How many leases a search looks at before it looks at more.
const OFFERS_AT_FIRST: usize = 256;

#[cfg(test)]
mod tests;

/// A plan that serves a claimant.
pub(crate) struct Found {
    pub slots: Vec<Slot>,
    /// Whom it evicts, each with the licence; work on its way out anyway is not among them.
    pub victims: Vec<Victim>,
}

/// A lease that a plan evicts.
pub(crate) struct Victim {
    pub id: WorkloadId,
    pub grant: Grant,
    pub loss: GpuMs,
}

/// A lease that a claimant could take, or that leaves anyway.
struct Offer<'a> {
    id: WorkloadId,
    lease: &'a Lease,
    gang: &'a Gang,
    /// `None` if it leaves anyway.
    grant: Option<Grant>,
    cost: Cost,
}

/// What taking a lease costs, compared in this order: past-contract GPUs, spared unallocated work, GPUs, a low standing, the loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Cost {
    past_loss: GpuMs,
    past_gpus: u32,
    spared: u32,
    gpus: u32,
    standing: Reverse<Standing>,
    loss: GpuMs,
}

impl Cost {
    fn plus(self, other: Cost) -> Cost {
        Cost {
            past_loss: self.past_loss + other.past_loss,
            past_gpus: self.past_gpus + other.past_gpus,
            spared: self.spared + other.spared,
            gpus: self.gpus + other.gpus,
            standing: self.standing.max(other.standing),
            loss: self.loss + other.loss,
        }
    }

    /// The cost for each of `members` members that it makes room for.
    fn per(self, members: u32) -> Cost {
        let part = |gpus: u32| gpus * 64 / members;
        Cost {
            past_loss: GpuMs(self.past_loss.0 / i64::from(members)),
            past_gpus: part(self.past_gpus),
            spared: part(self.spared),
            gpus: part(self.gpus),
            loss: GpuMs(self.loss.0 / i64::from(members)),
            ..self
        }
    }
}

/// What a search looks at.
pub(crate) struct Search<'a> {
    pub pool: &'a Pool,
    pub workloads: &'a Table<Workload>,
    pub licences: &'a Licences<'a>,
    pub ground: Ground<'a>,
    /// Whether past-contract leases are looked at beside unallocated ones.
    pub past: bool,
    /// Whether evictions must be worth what they lose; an explanation also asks what they would lose.
    pub worth: bool,
    pub at: Time,
    /// Whether it could fit if all that is in question left: else what is too dear is all that there is to find out.
    pub may_fit: bool,
    /// Set if an eviction was left out for what it would lose: a checkpoint may change that.
    pub too_dear: &'a Cell<bool>,
}

impl Search<'_> {
    /// A plan for the claimant's gang, or what stands in its way. A few hundred leases are looked at first, those of the leaves that stand
    /// highest before others; more only if these do not suffice, so that the cost follows the claimant and not the cluster.
    pub(crate) fn run(&self) -> Result<Found, Blocker> {
        let mut limit = OFFERS_AT_FIRST;
        loop {
            let offers = self.offers(limit);
            let found = self.best_plan(&offers);
            if found.is_ok() || offers.len() < limit {
                return found;
            }
            limit *= 4;
        }
    }

    fn best_plan(&self, offers: &[Offer<'_>]) -> Result<Found, Blocker> {
        let gang = &self.licences.claimant.workload.spec.gang;
        let reachable = self.reachable(offers);
        if reachable < gang.gpus() || !self.may_fit {
            return Err(self.pool.in_use(gang.gpus(), reachable));
        }
        let by_node = by_node(offers);
        if gang.same_block {
            let blocks: BTreeSet<BlockId> = self.pool.cluster.iter().map(|(_, n)| n.spec.block).collect();
            let plans = blocks.into_iter().map(|block| self.plan(gang, offers, &by_node, Some(block)));
            // If there is none, what stops it is what stops it in the block where most of it fits.
            let cheapest = plans.min_by_key(|plan| match plan {
                Ok((_, cost)) => (false, *cost, Reverse(0)),
                Err(Blocker::Fragmented { members_fitting, .. }) => (true, Cost::default(), Reverse(*members_fitting)),
                Err(_) => (true, Cost::default(), Reverse(0)),
            });
            return cheapest.expect("a pool has a block").map(|(found, _)| found);
        }
        self.plan(gang, offers, &by_node, None).map(|(found, _)| found)
    }

    /// What leaves anyway, what is unallocated, and what a licence reaches and that is not too dear alone, up to a limit.
    fn offers(&self, limit: usize) -> Vec<Offer<'_>> {
        // Who has first right to its GPUs gives them to nobody.
        if let Some(nodes) = self.ground.only {
            return self.offers_on(nodes);
        }
        let leaving = self.pool.leaving.iter().filter(|id| !self.leased(**id).1.first_right);
        let mut offers: Vec<Offer<'_>> = leaving.map(|id| self.offer(*id, None)).collect();
        for id in self.pool.unallocated.iter().take(limit) {
            let grant = self.licences.unallocated(self.workload(*id));
            offers.push(self.offer(*id, Some(grant)));
        }
        let leaves = if self.past { self.licences.leaves_by_standing() } else { Vec::new() };
        for id in leaves.iter().filter_map(|leaf| self.pool.past.get(leaf)).flat_map(|past| &past.leases) {
            if offers.len() >= limit {
                break;
            }
            let (workload, lease) = self.leased(*id);
            let Some(grant) = self.licences.to_take(workload, on_express(self.pool, lease)) else { continue };
            let loss_limit = loss_limit(self.licences.claimant, &grant, workload, self.pool);
            let offer = self.offer(*id, Some(grant));
            if !self.worth || loss_limit.is_none_or(|limit| offer.cost.loss <= limit) {
                offers.push(offer);
            } else {
                self.too_dear.set(true);
            }
        }
        offers
    }

    /// For a reservation at its date: everything on its nodes that is not protected.
    fn offers_on(&self, nodes: &[NodeId]) -> Vec<Offer<'_>> {
        let here: BTreeSet<WorkloadId> = nodes.iter().flat_map(|id| self.pool.cluster.at(*id).leases.iter().copied()).collect();
        let offer = |id: WorkloadId| {
            let (workload, lease) = self.leased(id);
            match (&lease.stop, lease.occupancy) {
                (Some(_), _) => (!lease.first_right).then(|| self.offer(id, None)),
                (None, Occupancy::Unallocated) => Some(self.offer(id, Some(self.licences.unallocated(workload)))),
                (None, Occupancy::Allocated) => lease.past_contract.then(|| self.offer(id, Some(self.licences.reserved(workload)))),
            }
        };
        here.into_iter().filter_map(offer).collect()
    }

    /// What the cheapest evictions that would serve the claimant lose, and what they may, if that alone stands in its way.
    pub(crate) fn not_worth_it(&self, found: &Found) -> Option<Blocker> {
        let (loss, limit) = self.limited_loss(found.victims.iter().map(|victim| (victim.id, &victim.grant, victim.loss)))?;
        (loss > limit).then_some(Blocker::NotWorthIt { loss, limit })
    }

    /// What those evictions lose together whose worth counts, and what they may.
    fn limited_loss<'v>(&self, victims: impl Iterator<Item = (WorkloadId, &'v Grant, GpuMs)>) -> Option<(GpuMs, GpuMs)> {
        let limited = |(id, grant, loss)| Some((loss, loss_limit(self.licences.claimant, grant, self.workload(id), self.pool)?));
        victims.filter_map(limited).reduce(|(sum, limit), (loss, _)| (sum + loss, limit))
    }

    fn workload(&self, id: WorkloadId) -> &Workload {
        self.workloads.get(id.0).expect("a lease's workload is in the table")
    }

    fn leased(&self, id: WorkloadId) -> (&Workload, &Lease) {
        let workload = self.workload(id);
        (workload, workload.lease().expect("it holds a lease"))
    }

    fn offer(&self, id: WorkloadId, grant: Option<Grant>) -> Offer<'_> {
        let (workload, lease) = self.leased(id);
        let gpus = workload.spec.gang.gpus().0;
        let cost = match &grant {
            None => Cost::default(),
            Some(grant) => Cost {
                past_loss: if grant.licence == Licence::Unallocated {
                    GpuMs(0)
                } else {
                    workload.expected_loss(lease, self.at, self.pool.knobs.restart_cost)
                },
                past_gpus: if grant.licence == Licence::Unallocated { 0 } else { gpus },
                spared: if grant.licence == Licence::Unallocated && spared_until(workload) > self.at { gpus } else { 0 },
                gpus,
                standing: Reverse(grant.victim_side.standing),
                loss: workload.expected_loss(lease, self.at, self.pool.knobs.restart_cost),
            },
        };
        Offer { id, lease, gang: &workload.spec.gang, grant, cost }
    }

    fn plan(
        &self,
        gang: &Gang,
        offers: &[Offer<'_>],
        by_node: &BTreeMap<NodeId, Vec<usize>>,
        block: Option<BlockId>,
    ) -> Result<(Found, Cost), Blocker> {
        let mut trial = Trial::new(self, gang, block);
        let mut nodes: Vec<(Cost, NodeId, Vec<usize>)> =
            by_node.iter().filter_map(|(id, here)| trial.node_offer(*id, here, offers)).collect();
        nodes.sort_by_key(|(cost, id, _)| (*cost, *id));
        for (_, _, taken) in &nodes {
            if trial.members() >= gang.members {
                break;
            }
            for index in taken {
                trial.take(&offers[*index], *index, true);
            }
        }
        if trial.members() < gang.members {
            return Err(Blocker::Fragmented {
                needed_members: gang.members,
                members_fitting: trial.members(),
                free: self.reachable(offers),
            });
        }
        let mut taken: Vec<usize> = trial.taken.iter().copied().collect();
        taken.sort_by_key(|index| Reverse((offers[*index].cost, offers[*index].id)));
        for index in taken {
            trial.take(&offers[index], index, false);
            if trial.members() < gang.members {
                trial.take(&offers[index], index, true);
            }
        }
        self.finish(gang, offers, &trial)
    }

    fn finish(&self, gang: &Gang, offers: &[Offer<'_>], trial: &Trial<'_>) -> Result<(Found, Cost), Blocker> {
        let slots = place_with(&self.pool.cluster, &self.ground, gang, &trial.extra).expect("the trial counted enough members");
        // The set is minimal, so every lease in it gives GPUs, CPUs or memory that the gang cannot do without.
        let taken = trial.taken.iter().map(|index| &offers[*index]).filter(|offer| offer.grant.is_some());
        let cost = taken.clone().fold(Cost::default(), |sum, offer| sum.plus(offer.cost));
        if let Some((loss, limit)) =
            self.limited_loss(taken.clone().filter_map(|offer| Some((offer.id, offer.grant.as_ref()?, offer.cost.loss))))
            && self.worth
            && loss > limit
        {
            self.too_dear.set(true);
            return Err(Blocker::NotWorthIt { loss, limit });
        }
        let victims = taken.map(|o| Victim { id: o.id, grant: o.grant.clone().expect("filtered"), loss: o.cost.loss }).collect();
        Ok((Found { slots, victims }, cost))
    }

    /// The GPUs that are free, and that all offers would leave.
    fn reachable(&self, offers: &[Offer<'_>]) -> Gpus {
        let free: u32 = self.ground.lanes.iter().map(|lane| self.pool.cluster.free(*lane).0).sum();
        let unheld = |slot: &Slot| slot.gpus.minus(self.pool.cluster.at(slot.node).held).count();
        let offered: u32 = offers.iter().flat_map(|offer| offer.lease.placement.iter()).map(unheld).sum();
        Gpus(free + offered)
    }
}

fn by_node(offers: &[Offer<'_>]) -> BTreeMap<NodeId, Vec<usize>> {
    let mut by_node: BTreeMap<NodeId, Vec<usize>> = BTreeMap::new();
    for (index, offer) in offers.iter().enumerate() {
        for slot in offer.lease.placement.iter() {
            by_node.entry(slot.node).or_default().push(index);
        }
    }
    by_node
}

/// Counts how many members would fit if some leases were gone.
struct Trial<'a> {
    search: &'a Search<'a>,
    gang: &'a Gang,
    block: Option<BlockId>,
    extra: BTreeMap<NodeId, Extra>,
    taken: BTreeSet<usize>,
    members: i64,
}

impl<'a> Trial<'a> {
    fn new(search: &'a Search<'a>, gang: &'a Gang, block: Option<BlockId>) -> Trial<'a> {
        let mut trial = Trial { search, gang, block, extra: BTreeMap::new(), taken: BTreeSet::new(), members: 0 };
        let free = search.ground.lanes.iter().flat_map(|lane| search.pool.cluster.with_free(*lane, gang.gpus_per_member));
        trial.members = free.map(|id| i64::from(trial.fitting(id, Extra::default()))).sum();
        trial
    }

    fn members(&self) -> u32 {
        self.members.max(0) as u32
    }

    /// Whether a node is in service, on the claimant's ground, and in the block looked at.
    fn is_inside(&self, id: NodeId) -> bool {
        let node = self.search.pool.cluster.at(id);
        let lane = if node.spec.express { Lane::Express } else { Lane::General };
        let ground = &self.search.ground;
        node.state == NodeState::Ready
            && ground.lanes.contains(&lane)
            && self.block.is_none_or(|b| b == node.spec.block)
            && ground.admits(&self.search.pool.cluster, id)
    }

    /// Members that fit on a node with this much more.
    fn fitting(&self, id: NodeId, extra: Extra) -> u32 {
        if !self.is_inside(id) {
            return 0;
        }
        let node = self.search.pool.cluster.at(id);
        Cluster::members_fitting(&node.spec, self.gang, node.free.or(extra.gpus).count(), node.host_free.plus(extra.host))
    }

    fn extra_of(&self, offer: &Offer<'_>, slot: &Slot) -> Extra {
        let node = self.search.pool.cluster.at(slot.node);
        Extra { gpus: slot.gpus.minus(node.held), host: slot_host(&node.spec, offer.gang, slot) }
    }

    /// The cheapest offers on one node that make room for as many members as it could hold (or the gang still needs), and their cost.
    fn node_offer(&self, id: NodeId, here: &[usize], offers: &[Offer<'_>]) -> Option<(Cost, NodeId, Vec<usize>)> {
        let fitting = |chosen: &[usize]| self.fitting(id, self.sum_here(id, chosen, offers));
        let now = self.fitting(id, Extra::default());
        let goal = fitting(here).min(now + self.gang.members.saturating_sub(self.members()));
        // Nothing to gain here, or nothing needed.
        if goal <= now {
            return None;
        }
        let mut order = here.to_vec();
        order.sort_by_key(|index| (offers[*index].cost, offers[*index].id));
        let mut chosen: Vec<usize> = Vec::new();
        for index in order {
            if fitting(&chosen) >= goal {
                break;
            }
            chosen.push(index);
        }
        for position in (0..chosen.len()).rev() {
            let index = chosen.remove(position);
            if fitting(&chosen) < goal {
                chosen.insert(position, index);
            }
        }
        let cost = chosen.iter().fold(Cost::default(), |sum, index| sum.plus(offers[*index].cost));
        Some((cost.per(goal - now), id, chosen))
    }

    fn sum_here(&self, id: NodeId, chosen: &[usize], offers: &[Offer<'_>]) -> Extra {
        let mut sum = Extra::default();
        for index in chosen {
            let offer = &offers[*index];
            let slot = offer.lease.placement.iter().find(|s| s.node == id).expect("it is offered here");
            let extra = self.extra_of(offer, slot);
            sum = Extra { gpus: sum.gpus.or(extra.gpus), host: sum.host.plus(extra.host) };
        }
        sum
    }

    /// Counts a lease as gone, or as there again.
    fn take(&mut self, offer: &Offer<'_>, index: usize, gone: bool) {
        let changed = if gone { self.taken.insert(index) } else { self.taken.remove(&index) };
        if !changed {
            return;
        }
        for slot in offer.lease.placement.iter() {
            if !self.is_inside(slot.node) {
                continue;
            }
            let before = self.extra.get(&slot.node).copied().unwrap_or_default();
            let own = self.extra_of(offer, slot);
            let after = if gone {
                Extra { gpus: before.gpus.or(own.gpus), host: before.host.plus(own.host) }
            } else {
                Extra { gpus: before.gpus.minus(own.gpus), host: before.host.plus(own.host.times(-1)) }
            };
            self.members += i64::from(self.fitting(slot.node, after)) - i64::from(self.fitting(slot.node, before));
            if after.gpus == GpuSet(0) && after.host == Host::default() {
                self.extra.remove(&slot.node);
            } else {
                self.extra.insert(slot.node, after);
            }
        }
    }
}
