//! Reservations: who is promised a latest start, on which nodes, and what happens to promises until they are kept.

use super::Cycle;
use crate::cluster::{Cluster, Host, Lane};
use crate::entry::{Occupancy, Unreserved};
use crate::eviction::Search;
use crate::explain::{Blocker, Tier, Why};
use crate::id::{NodeId, PoolId, ReservationId, WorkloadId};
use crate::licence::{Claimant, Judge, Licences};
use crate::order::{OpenLeaf, Turn, next_allocated, standings_down_to};
use crate::placement::{Ground, place};
use crate::plan::{Decision, Reserve};
use crate::quantity::{GpuMs, Span, Time};
use crate::queue::Shape;
use crate::reservation::choice::{Need, choose};
use crate::reservation::survey::{Asker, Survey};
use crate::reservation::{LOOK_EVERY, gone_by, grace_max, hold_max};
use crate::spec::NodeState;
use crate::workload::Phase;

/// Reserved work runs on nodes that are not set aside for short contracts.
const GENERAL: &[Lane] = &[Lane::General];

impl Cycle<'_> {
    /// Promises that cannot have one of their nodes move or end; now and then all look for an earlier start; what has reached its date
    /// takes its nodes.
    pub(super) fn settle_reservations(&mut self) {
        let now = self.now();
        let pool = self.pool();
        let look = now >= pool.reservations.keep_at && pool.recovery.is_none();
        for id in pool.reservations.by_id.keys().copied().collect::<Vec<_>>() {
            let reservation = &self.pool().reservations.by_id[&id];
            let (workload, is_short) = (reservation.workload, reservation.is_short);
            if !matches!(self.workload(workload).phase, Phase::Waiting) {
                continue;
            }
            if is_short || look {
                self.keep(id);
            }
            if self.pool().reservations.by_id.get(&id).is_some_and(|reservation| now >= reservation.clears) {
                self.take_reserved(id);
            }
        }
        if look {
            let (keep_at, grant_at) = (now + LOOK_EVERY, self.pool().reservations.grant_at);
            self.decide(Decision::LookedAtReservations { pool: PoolId(self.pool as u16), keep_at, grant_at });
        }
    }

    /// Moves a promise to an earlier start, or to other nodes if it cannot have its own; ends it where that cannot be in time.
    fn keep(&mut self, id: ReservationId) {
        let reservation = self.pool().reservations.by_id[&id].clone();
        // The grace may be longer by now than when it was promised.
        let in_time = reservation.clears.min(reservation.latest_start - grace_max(&self.pool().knobs));
        let latest = if reservation.is_short { in_time } else { in_time - Span(1) };
        match self.choose_nodes(reservation.workload, Some(id), latest) {
            Some((clears, nodes)) => {
                let before = reservation.latest_start;
                let why = match reservation.is_short {
                    true => Why::PromisedElsewhere { before, clears },
                    false => Why::PromisedEarlier { before, clears },
                };
                let latest_start = before.min(clears + grace_max(&self.pool().knobs));
                let workload = reservation.workload;
                self.decide(Decision::Reserve(Reserve { reservation: id, workload, nodes: nodes.into(), clears, latest_start, why }));
            }
            None if reservation.is_short => {
                let pool = PoolId(self.pool as u16);
                self.decide(Decision::Unreserve { pool, reservation: id, why: Unreserved::NodesLost });
            }
            None => {}
        }
    }

    /// The date has come: the workload starts on its nodes, or those who are still there are told to leave.
    fn take_reserved(&mut self, id: ReservationId) {
        let now = self.now();
        let reservation = self.pool().reservations.by_id[&id].clone();
        let of = reservation.workload;
        let leaf = reservation.leaf;
        let pool = &mut self.s.pools[self.pool];
        let standing = self.standings.of(pool, now, leaf);
        let tier = if pool.is_below_share(standing) { Tier::OwnShare } else { Tier::Tree };
        let workload = self.s.workloads.get(of.0).expect("it is live");
        // Of an earlier promise of the same nodes it has left in time, unless both come late.
        let gone_by = gone_by(&pool.knobs, workload.in_pool(pool.id), now);
        let ground = Ground { lanes: GENERAL, gone_by, own: Some(id), only: Some(&reservation.nodes) };
        if let Some(slots) = place(&pool.cluster, &ground, &workload.spec.gang) {
            self.start(of, tier, slots);
            return;
        }
        let claimant = Claimant { workload, terms: workload.in_pool(pool.id), overdue: false, aged_before: Time::MIN };
        let mut judge = Judge { pool, tree: &self.s.tree, standings: &mut self.standings, at: now };
        let licences = Licences::new(&claimant, false, &mut judge);
        let (pool, workloads, too_dear) = (&*judge.pool, &self.s.workloads, &self.too_dear);
        let search = Search { pool, workloads, licences: &licences, ground, past: true, worth: false, at: now, may_fit: true, too_dear };
        if let Ok(found) = search.run()
            && self.check_recovery(&found).is_ok()
        {
            self.claim(of, found, Some(reservation.latest_start));
        }
    }

    /// When the stop signal goes to what is on a reservation's nodes: so that it has left by the date, and not before.
    pub(super) fn signal_before(&self, victim: WorkloadId, date: Time) -> Time {
        let knobs = &self.s.pools[self.pool].knobs;
        let grace = match self.workload(victim).lease().expect("a victim holds a lease").occupancy {
            Occupancy::Allocated => knobs.grace_allocated,
            Occupancy::Unallocated => knobs.grace_unallocated,
        };
        self.s.now.max(date - grace)
    }

    /// The best-ranked gangs that need more than one node, and could not start, are promised a start.
    pub(super) fn reserve(&mut self) {
        let now = self.now();
        let pool = self.pool();
        let (is_full, keep_at) = (pool.reservations.by_id.len() >= pool.knobs.reservations_max as usize, pool.reservations.keep_at);
        // After a gap nothing is promised that slow evictions may not keep.
        if is_full || pool.recovery.is_some() || !pool.reservations.may_grant(now, pool.queue.gangs) {
            return;
        }
        let (mut tries, mut grant_at) = (pool.knobs.searches_max, Time::MAX);
        let mut open = self.open_for_reservations();
        while !open.is_empty() && self.pool().reservations.by_id.len() < self.pool().knobs.reservations_max as usize {
            let pool = &mut self.s.pools[self.pool];
            let next = next_allocated(&open, pool, &self.s.tree, &mut self.standings, now).filter(|_| tries > 0);
            let Some(Turn { index, tier, .. }) = next else { break };
            let id = self.head(&mut open[index]);
            tries -= 1;
            if self.try_reserve(id, tier) {
                open.remove(index);
            } else {
                grant_at = now + LOOK_EVERY;
                let shape = self.terms(id).shape;
                open[index].retain(|other, _| other != shape);
                open.retain(|leaf| !leaf.shapes.is_empty());
            }
        }
        self.decide(Decision::LookedAtReservations { pool: PoolId(self.pool as u16), keep_at, grant_at });
    }

    /// The leaves that have no reservation, with the shapes of theirs that may have one.
    fn open_for_reservations(&mut self) -> Vec<OpenLeaf> {
        let pool = self.pool();
        let leaves = pool.queue.allocated.iter().filter(|(leaf, queue)| queue.waiting > 0 && !pool.reservations.has(**leaf));
        let open = leaves.map(|(leaf, queue)| {
            let mut open = OpenLeaf::new(*leaf, true);
            // What runs before its turn is promised nothing: it would have to be stopped for it.
            let may_have = |shape: &Shape| pool.may_promise(&shape.gang) && !shape.early;
            let large = queue.shapes.keys().filter(|shape| may_have(pool.queue.shape(**shape)));
            large.for_each(|shape| open.push(*shape, None));
            open
        });
        open.filter(|open| !open.shapes.is_empty()).collect()
    }

    fn try_reserve(&mut self, id: WorkloadId, tier: Tier) -> bool {
        let now = self.now();
        let workload = self.workload(id);
        // Work that accepts several pools is promised a start in one of them.
        if workload.reservation.is_some() || self.check_caps(workload).is_err() {
            return false;
        }
        let Some((clears, nodes)) = self.choose_nodes(id, None, Time::MAX) else { return false };
        let leaf = self.s.tree.get(self.workload(id).spec.budget).expect("work runs in a budget");
        let standings = standings_down_to(leaf, &mut self.s.pools[self.pool], &mut self.standings, now);
        let why = Why::Promised { tier, standings, clears };
        let latest_start = clears + grace_max(&self.pool().knobs);
        let reservation = ReservationId(self.s.next_reservation);
        self.decide(Decision::Reserve(Reserve { reservation, workload: id, nodes: nodes.into(), clears, latest_start, why }));
        let (user, leaf) = (self.terms(id).charge.user, self.workload(id).spec.budget);
        self.standings.forget(&self.s.pools[self.pool], user, self.s.tree.get(leaf).expect("just seen"));
        if now >= clears {
            self.take_reserved(reservation);
        }
        true
    }

    /// Nodes for a gang, and when the last protection on them ends: none after `latest`. `own` is the reservation that it has already.
    fn choose_nodes(&mut self, id: WorkloadId, own: Option<ReservationId>, latest: Time) -> Option<(Time, Vec<NodeId>)> {
        let now = self.now();
        let workload = self.s.workloads.get(id.0).expect("it is live");
        let pool = &mut self.s.pools[self.pool];
        let mut judge = Judge { pool, tree: &self.s.tree, standings: &mut self.standings, at: now };
        let leaves = judge.reservable(workload);
        let pool = &self.s.pools[self.pool];
        let need = Need {
            members: workload.spec.gang.members,
            same_block: workload.spec.gang.same_block,
            restart_cost: pool.knobs.restart_cost,
            loss_max: GpuMs(pool.knobs.worth_it.of(workload.in_pool(pool.id).contract_gpu_ms().0)),
            latest,
        };
        let survey = self.survey.get_or_insert_with(|| Survey::new(pool, &self.s.workloads, now));
        let asker = Asker { workload, own, leaves: &leaves };
        choose(&survey.candidates(pool, &self.s.workloads, &asker, &need), &need)
    }

    /// A reserved gang whose date is near waits for it: GPUs held elsewhere, be it in another pool, might come later.
    pub(super) fn check_promise(&self, id: WorkloadId) -> Result<(), Blocker> {
        let Some((pool, reservation)) = self.workload(id).reservation else { return Ok(()) };
        let reservation = &self.s.pools[pool.index()].reservations.by_id[&reservation];
        if self.s.now + hold_max(&self.s.pools[self.pool].knobs) <= reservation.latest_start {
            return Ok(());
        }
        Err(Blocker::DateNear { latest_start: reservation.latest_start })
    }

    /// Which promise keeps a gang from GPUs that are free, or that it could take from unallocated work; only people want to know it.
    pub(super) fn reserved_for_others(&self, id: WorkloadId, express: bool) -> Option<Blocker> {
        let pool = &self.s.pools[self.pool];
        if !self.explains || pool.reservations.by_id.is_empty() {
            return None;
        }
        let workload = self.workload(id);
        let gang = &workload.spec.gang;
        let (gone_by, own) = (gone_by(&pool.knobs, workload.in_pool(pool.id), self.s.now), workload.reservation_in(pool.id));
        let (mut members, mut binding) = (0, None);
        for (_, node) in pool.cluster.iter().filter(|(_, node)| node.state == NodeState::Ready && (express || !node.spec.express)) {
            let gpus = node.free.or(node.yielding.minus(node.held)).count();
            let fitting = Cluster::members_fitting(&node.spec, gang, gpus, Host::of(&node.spec));
            let others = node.promises.iter().filter(|(id, _)| Some(*id) != own);
            let promise = others.map(|(id, from)| (*from, *id)).min().filter(|(from, _)| fitting > 0 && gone_by > *from);
            members += fitting;
            binding = binding.into_iter().chain(promise).min();
        }
        let (from, reservation) = binding.filter(|_| members >= gang.members)?;
        Some(Blocker::Reserved { workload: pool.reservations.by_id[&reservation].workload, from, gone_by })
    }
}
