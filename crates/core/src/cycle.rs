//! The policy: one cycle, one recipe.
//!
//! Who goes first is in `order.rs`, who may evict whom in `licence.rs`, whom exactly in `eviction.rs`, where in `placement.rs`.

mod caps;
mod early;
mod fill;
mod open;
mod pools;
mod renew;
mod reserve;
mod settle;

pub(crate) use pools::judge;

use crate::cluster::Depth;
use crate::entry::{Entry, Licence, Occupancy, Placement, Slot};
use crate::eviction::{Found, Search};
use crate::explain::{Blocker, Tier, Why};
use crate::id::{BudgetId, PoolId, WorkloadId};
use crate::licence::{Claimant, Judge, Licences, reason};
use crate::order::{OpenLeaf, Standings, Turn, next_allocated, standings_down_to};
use crate::perform::perform;
use crate::placement::{Ground, lanes, place, place_before_drain};
use crate::plan::{Decision, PassedOver, Plan, Preemption};
use crate::pool::Pool;
use crate::quantity::{Span, Time};
use crate::queue::{Blocked, ShapeId, Size, firsts};
use crate::reservation::survey::Survey;
use crate::reservation::{gone_by, hold_max};
use crate::scheduler::Scheduler;
use crate::spec::{Gang, OnPreempt};
use crate::workload::{StopCause, Terms, Workload};
use std::cell::Cell;

/// Decides everything that is to be decided now, and does it.
pub(crate) fn run(s: &mut Scheduler, log: &mut Vec<Entry>) -> Plan {
    let mut plan = Plan { at: Some(s.now), ..Plan::default() };
    for pool in 0..s.pools.len() {
        if pools::is_settled(s, pool) {
            continue;
        }
        let mut cycle = Cycle::new(s, log, &mut plan, pool);
        // 1. What is due: stop signals, start timeouts, time limits, victims that would not die.
        cycle.settle_timers();
        // 2. Claims whose GPUs are all free start; drains end.
        cycle.settle_claims();
        cycle.settle_drains();
        cycle.rest();
    }
    for pool in 0..s.pools.len() {
        if s.pools[pool].reservations.by_id.is_empty() {
            continue;
        }
        // 3. Reservations move to earlier starts, and at their date take their nodes. What was planned in another pool is settled by now.
        let mut cycle = Cycle::new(s, log, &mut plan, pool);
        cycle.settle_reservations();
        cycle.rest();
    }
    let mut round = pools::Round::new(s);
    while let Some(pool) = round.take_next(s) {
        let pending = round.pending();
        let mut cycle = Cycle { pending: &pending, ..Cycle::new(s, log, &mut plan, pool) };
        // 4. Waiting allocated work, in rank order: where it runs already, on free GPUs, on unallocated work's, on past-contract GPUs it is licensed to take.
        // 5. The best-ranked large gangs that could not start are promised a latest start.
        // A promise that ends in its start leaves nodes to others: then both are looked at again.
        while cycle.walk_and_reserve() {}
        // 6. Sessions in use that nobody could take get their contract once more.
        cycle.renew();
        // 7. Idle GPUs go to unallocated work, and to work that a cap keeps from its turn.
        cycle.fill();
        // 8. What stopped each class of waiting work was written down on the way; when to look again follows from it.
        cycle.finish();
        // 9. What was left to a pool that it likes better comes back if that has nothing for it.
        round.went_through(pool, cycle.left_to_others);
        cycle.rest();
        round.look_again(s);
    }
    round.rest(s);
    plan
}

/// Does what a plan decided.
pub(crate) fn replay(s: &mut Scheduler, plan: &Plan, log: &mut Vec<Entry>) {
    for decision in &plan.decisions {
        perform(s, decision, log);
    }
}

struct Cycle<'a> {
    s: &'a mut Scheduler,
    log: &'a mut Vec<Entry>,
    plan: &'a mut Plan,
    pool: usize,
    standings: Standings,
    /// Searches for victims so far.
    searches: u32,
    /// When to look again at what was passed over.
    retry_at: Time,
    /// An eviction was left out for what it would lose.
    too_dear: Cell<bool>,
    /// What stops a workload is to be told to people: it is looked at more closely.
    explains: bool,
    /// What could be done is found out, and nothing is done.
    trial: bool,
    /// The nodes as those see them who ask for a promise, until a decision changes them.
    survey: Option<Survey>,
    /// Gangs that found no free GPUs since the last decision, each with when it would have been gone.
    unplaced: Vec<(Gang, bool, Time)>,
    /// Pools that are still to be gone through.
    pending: &'a [usize],
    /// Pools in which a start of this cycle ended a promise.
    given_back: Vec<usize>,
    /// Some work was left to one of those, which it likes better.
    left_to_others: bool,
    /// Not everything that could have been tried was.
    is_cut_short: bool,
}

impl<'a> Cycle<'a> {
    fn new(s: &'a mut Scheduler, log: &'a mut Vec<Entry>, plan: &'a mut Plan, pool: usize) -> Cycle<'a> {
        let mut standings = std::mem::take(&mut s.standings);
        standings.begin();
        Cycle {
            s,
            log,
            plan,
            pool,
            standings,
            searches: 0,
            retry_at: Time::MAX,
            too_dear: Cell::new(false),
            explains: false,
            trial: false,
            survey: None,
            unplaced: Vec::new(),
            pending: &[],
            given_back: Vec::new(),
            left_to_others: false,
            is_cut_short: false,
        }
    }

    fn pool(&mut self) -> &mut Pool {
        &mut self.s.pools[self.pool]
    }

    fn now(&self) -> Time {
        self.s.now
    }

    fn workload(&self, id: WorkloadId) -> &Workload {
        self.s.workloads.get(id.0).expect("it is live")
    }

    /// A workload's terms in this pool.
    fn terms(&self, id: WorkloadId) -> &Terms {
        self.workload(id).in_pool(PoolId(self.pool as u16))
    }

    /// A decision is done at once, so that the next one sees it.
    fn decide(&mut self, decision: Decision) {
        if self.trial {
            return;
        }
        perform(self.s, &decision, self.log);
        self.survey = None;
        self.unplaced.clear();
        self.plan.decisions.push(decision);
    }

    /// Gives the memory of the standings back for the next cycle.
    fn rest(self) {
        self.s.standings = self.standings;
    }

    fn finish(&mut self) {
        let (pool, retry_at) = (PoolId(self.pool as u16), self.retry_at);
        let too_dear = self.too_dear.get();
        self.decide(Decision::Walked { pool, retry_at, too_dear });
    }

    /// Looks anew at what could fit.
    fn begin_walk(&mut self) {
        self.s.pools[self.pool].cluster.refresh_may_fit();
    }

    /// Whether a promise ended in it.
    fn walk_and_reserve(&mut self) -> bool {
        let ended = self.pool().reservations.ended;
        self.walk();
        self.reserve();
        self.pool().reservations.ended != ended
    }

    /// Each pick is tried whole before the next one, and standings follow each start.
    fn walk(&mut self) {
        let now = self.now();
        self.begin_walk();
        let mut open = self.open(true);
        // Nearly all of them will be passed over, each with a note.
        self.plan.decisions.reserve(open.iter().map(|leaf| leaf.shapes.len()).sum());
        let mut still: Option<Turn> = None;
        while !open.is_empty() {
            let pool = &mut self.s.pools[self.pool];
            let turn = still.take().or_else(|| next_allocated(&open, pool, &self.s.tree, &mut self.standings, now));
            let Some(Turn { index, tier, by_age }) = turn else { break };
            let (leaf, id) = (open[index].leaf, self.head(&mut open[index]));
            if self.is_better_off_elsewhere(id) {
                self.leave_to_others(&mut open, index, id);
                continue;
            }
            let result = self.try_turn(id, tier);
            // A try in vain changes no standing: the turn stays with the leaf, if nothing but those gave it to it.
            still = turn.filter(|_| result.is_err() && !by_age);
            self.close(&mut open, index, id, result, false);
            still = still.filter(|_| open.get(index).is_some_and(|open| open.leaf == leaf));
        }
    }

    /// An open leaf's first workload.
    fn head(&mut self, open: &mut OpenLeaf) -> WorkloadId {
        if open.firsts.is_empty() {
            let now = self.s.now;
            let pool = &mut self.s.pools[self.pool];
            let order = self.s.tree.get(open.leaf).map(|b| b.spec.order).unwrap_or_default();
            let side = if open.allocated { &pool.queue.allocated } else { &pool.queue.unallocated };
            let used = |account| self.standings.of_user(&mut pool.ledger, now, account);
            open.firsts = firsts(&side[&open.leaf], (&open.shapes, &open.skip), order, now, pool.knobs.age_min, used);
        }
        open.firsts.last().expect("an open shape has waiting work").id
    }

    /// A shape whose work likes another pool better is closed here for now, and stays as open as it was.
    fn leave_to_others(&mut self, open: &mut Vec<OpenLeaf>, index: usize, id: WorkloadId) {
        self.left_to_others = true;
        let shape = self.terms(id).shape;
        open[index].retain(|other, _| other != shape);
        open.retain(|leaf| !leaf.shapes.is_empty());
    }

    /// After a try: a shape that is empty or blocked is closed for this cycle, and what stopped it is written down.
    fn close(&mut self, open: &mut Vec<OpenLeaf>, index: usize, id: WorkloadId, result: Result<(), Blocker>, filling: bool) {
        match result {
            Ok(()) => {
                let pool = &mut self.s.pools[self.pool];
                let workload = self.s.workloads.get(id.0).expect("it is live");
                let budget = self.s.tree.get(workload.spec.budget).expect("work runs in a budget");
                self.standings.forget(pool, workload.in_pool(pool.id).charge.user, budget);
                let leaf = &mut open[index];
                leaf.firsts.clear();
                let side = if leaf.allocated { &pool.queue.allocated } else { &pool.queue.unallocated };
                // What is left of a shape may be what was passed over already.
                let (queue, skip) = (&side[&leaf.leaf], std::mem::take(&mut leaf.skip));
                leaf.retain(|shape, _| queue.has_more(shape, &skip));
                leaf.skip = skip;
                // What was opened because it might fit and can no longer is closed again; it is as blocked as before.
                self.begin_walk();
                let pool = &self.s.pools[self.pool];
                let may_fit =
                    |shape, depth: Option<Depth>| depth.is_none_or(|depth| pool.cluster.may_fit(pool.queue.shape(shape).size(), depth));
                open.iter_mut().for_each(|leaf| leaf.retain(may_fit));
                open.retain(|leaf| !leaf.shapes.is_empty());
            }
            Err(blocker) => {
                let shape = self.terms(id).shape;
                if self.stops_it_alone(id, &blocker, filling) && self.skip(&mut open[index], id, shape) {
                    return;
                }
                let leaf = &mut open[index];
                leaf.retain(|other, _| other != shape);
                let (budget, allocated) = (leaf.leaf, leaf.allocated);
                if blocker == Blocker::SearchesSpent {
                    // What only a search could help is as blocked as before, and looked at in the next cycle.
                    open.iter_mut().for_each(|leaf| leaf.retain(|_, depth| depth != Some(Depth::PastContract)));
                    open.retain(|leaf| !leaf.shapes.is_empty());
                } else if leaf.shapes.is_empty() {
                    open.remove(index);
                }
                self.pass_over((budget, allocated, shape), id, blocker, filling);
            }
        }
    }

    fn pass_over(&mut self, (leaf, allocated, shape): (BudgetId, bool, ShapeId), id: WorkloadId, blocker: Blocker, filling: bool) {
        let (now, priority) = (self.now(), self.workload(id).spec.priority);
        let pool = &self.s.pools[self.pool];
        self.is_cut_short |= matches!(blocker, Blocker::SearchesSpent | Blocker::AfterGap { .. });
        let retry_at = match blocker {
            _ if filling => Time::MAX,
            Blocker::SearchesSpent => now + Span::seconds(1),
            Blocker::AfterGap { until } => until,
            _ => now + pool.knobs.retry_every,
        };
        self.retry_at = self.retry_at.min(retry_at);
        let reach = match blocker {
            // What it might have taken it may have when it is free, and whatever becomes free.
            Blocker::AfterGap { .. } => u64::MAX,
            _ if filling => pool.freed,
            _ => pool.reach,
        };
        let is_cap = matches!(blocker, Blocker::Cap { .. } | Blocker::ZeroClaim { .. });
        let (class, capped) = (pool.queue.shape(shape), is_cap && !filling);
        let capped = capped && class.whenever && !class.early;
        let blocked = Blocked { reach, takeable: pool.takeable, priority, retry_at, capped };
        let early = filling && allocated;
        let passed = PassedOver { pool: PoolId(self.pool as u16), leaf, allocated, shape, early, blocked, blocker };
        let note = Decision::PassOver(passed);
        // It changes no node: what is known of them is still so.
        perform(self.s, &note, self.log);
        self.plan.decisions.push(note);
    }

    /// Tries one allocated workload whose turn has come: where it runs already, or anew.
    fn try_turn(&mut self, id: WorkloadId, tier: Tier) -> Result<(), Blocker> {
        if self.workload(id).is_early() { self.try_promote(id, tier) } else { self.try_start(id, tier) }
    }

    /// Tries one allocated workload: free GPUs; free and unallocated; and past-contract GPUs that it is licensed to take.
    fn try_start(&mut self, id: WorkloadId, tier: Tier) -> Result<(), Blocker> {
        let express = self.may_use_express(id);
        let workload = self.s.workloads.get(id.0).expect("it is live");
        self.check_caps(workload)?;
        let gang = workload.spec.gang;
        let pool = &self.s.pools[self.pool];
        let (cluster, terms) = (&pool.cluster, workload.in_pool(pool.id));
        let ends = self.s.now + pool.knobs.start_timeout + terms.contract;
        let own = workload.reservation_in(pool.id);
        let ground = Ground { lanes: &[], gone_by: gone_by(&pool.knobs, terms, self.s.now), own, only: None };
        let is_unplaced = own.is_none() && self.unplaced.iter().any(|tried| asks_no_less((gang, express, ground.gone_by), *tried));
        let on_free = || lanes(express).iter().find_map(|lanes| place(cluster, &Ground { lanes, ..ground }, &gang));
        let free = if is_unplaced { None } else { on_free() };
        if free.is_none() && own.is_none() && !is_unplaced {
            self.unplaced.push((gang, express, ground.gone_by));
        }
        let certain = workload.spec.on_preempt == OnPreempt::End;
        let free = free.or_else(|| if certain { place_before_drain(cluster, &gang, ends, express) } else { None });
        if let Some(slots) = free {
            self.start(id, tier, slots);
            return Ok(());
        }
        self.check_promise(id)?;
        let found = self.find_victims(id, express).map_err(|blocker| self.reserved_for_others(id, express).unwrap_or(blocker))?;
        self.check_recovery(&found)?;
        self.claim(id, found, None);
        Ok(())
    }

    fn start(&mut self, id: WorkloadId, tier: Tier, slots: Vec<Slot>) {
        let licence = Licence::Free;
        let occupancy = if tier == Tier::Idle { Occupancy::Unallocated } else { self.workload(id).occupancy() };
        let now = self.now();
        let leaf = self.s.tree.get(self.workload(id).spec.budget).expect("work runs in a budget");
        let pool = &mut self.s.pools[self.pool];
        let standings = standings_down_to(leaf, pool, &mut self.standings, now);
        let early = tier == Tier::Idle && self.s.workloads.get(id.0).is_some_and(Workload::is_allocated);
        let why = if early { Why::Early { pool: pool.id } } else { Why::Rank { pool: pool.id, tier, standings, licence } };
        let promised_in = self.workload(id).reservation.map(|(pool, _)| pool.index());
        self.given_back.extend(promised_in.filter(|pool| *pool != self.pool));
        self.decide(Decision::Start { workload: id, placement: Placement::from(slots), occupancy, licence, why });
    }

    /// Victims for a claimant: unallocated work first, past-contract work only if that is not enough.
    fn find_victims(&mut self, id: WorkloadId, express: bool) -> Result<Found, Blocker> {
        let now = self.s.now;
        let leaf = self.workload(id).spec.budget;
        let past_reach = if express { u32::MAX } else { self.licensed_now(leaf) };
        let pool = &mut self.s.pools[self.pool];
        let workload = self.s.workloads.get(id.0).expect("it is live");
        let terms = workload.in_pool(pool.id);
        let claimant = Claimant {
            workload,
            terms,
            overdue: now - workload.waiting_since > pool.knobs.min_runtime_max,
            aged_before: pool.queue.leaf(workload).map_or(Time::MIN, |leaf| now - leaf.old_age(pool.knobs.age_min)),
        };
        let size = Size { express, ..pool.queue.shape(terms.shape).size() };
        let reachable = pool.cluster.reachable(express);
        let (cluster, gang, explains) = (&pool.cluster, &workload.spec.gang, self.explains);
        // To count member by member takes long; only people want to know it.
        let fitting = || if explains { cluster.fitting_now(gang, express) } else { cluster.members_within(size, Depth::Yielding) };
        let mut blocker = pool.out_of_reach(size, reachable, fitting);
        let (gone_by, own) = (gone_by(&pool.knobs, terms, now + hold_max(&pool.knobs)), workload.reservation_in(pool.id));
        let free: u32 = lanes(express).last().expect("there are lanes").iter().map(|lane| pool.cluster.free(*lane).0).sum();
        for past in [false, true] {
            let (depth, beyond) = match past {
                false => (Depth::Yielding, reachable - free),
                true => (Depth::PastContract, past_reach.min(pool.past_gpus)),
            };
            let within_reach = reachable + if past { beyond } else { 0 };
            if beyond == 0 || within_reach < size.gpus() || !pool.cluster.may_fit(size, depth) {
                continue;
            }
            if self.searches >= pool.knobs.searches_max {
                return Err(Blocker::SearchesSpent);
            }
            self.searches += 1;
            let ground = Ground { lanes: &[], gone_by, own, only: None };
            let may_fit = self.explains || pool.cluster.may_fit_before_promises(size, depth, &ground);
            // There would be nothing to find, nor that anything is too dear.
            if !may_fit && (!past || pool.too_dear || self.too_dear.get()) {
                continue;
            }
            let mut judge = Judge { pool, tree: &self.s.tree, standings: &mut self.standings, at: now };
            let licences = Licences::new(&claimant, past, &mut judge);
            let pool = judge.pool;
            for lanes in lanes(express) {
                let search = Search {
                    pool,
                    workloads: &self.s.workloads,
                    licences: &licences,
                    ground: Ground { lanes, ..ground },
                    past,
                    worth: true,
                    at: now,
                    may_fit,
                    too_dear: &self.too_dear,
                };
                match search.run() {
                    Ok(found) => return Ok(found),
                    Err(reason) => blocker = reason,
                }
                // Would evictions serve it if they need not be worth it? Then their loss is what stops it.
                if self.explains && past {
                    let search = Search { worth: false, ..search };
                    let dear = search.run().ok().and_then(|found| search.not_worth_it(&found));
                    blocker = dear.unwrap_or(blocker);
                }
            }
        }
        Err(blocker)
    }

    /// Holds the GPUs and tells those who occupy them to leave, all by `date` if there is one.
    fn claim(&mut self, id: WorkloadId, found: Found, date: Option<Time>) {
        let licence = found.victims.iter().map(|victim| victim.grant.licence).max().unwrap_or(Licence::Free);
        self.decide(Decision::Claim { workload: id, placement: Placement::from(found.slots), licence });
        for victim in found.victims {
            let now = self.now();
            let workload = self.workload(victim.id);
            let lease = workload.lease().expect("a victim holds a lease");
            let lease_id = lease.id(victim.id);
            let why = Why::Yields(Box::new(reason(&victim.grant, PoolId(self.pool as u16), id, lease, victim.loss)));
            let signal_at = match date {
                Some(date) => self.signal_before(victim.id, date),
                None => self.signal_at(victim.id, victim.grant.licence),
            };
            let cause = StopCause::Preempted { claimant: id };
            let preemption = Preemption { cause, node: None, licence: victim.grant.licence, signal_at, why };
            self.decide(Decision::Preempt { lease: lease_id, preemption });
            if signal_at <= now {
                self.decide(Decision::Signal { lease: lease_id });
            }
        }
    }

    /// After a gap evictions go slowly.
    fn check_recovery(&self, found: &Found) -> Result<(), Blocker> {
        let pool = &self.s.pools[self.pool];
        let gpus = found.victims.iter().map(|victim| self.workload(victim.id).spec.gang.gpus()).sum();
        let Some(recovery) = &pool.recovery else { return Ok(()) };
        recovery.check(self.s.now, gpus, pool.cluster.gpus()).map_err(|until| Blocker::AfterGap { until })
    }

    /// When a victim's stop signal goes out: at its next checkpoint where one is known to come soon, else now. Short contracts on express
    /// nodes do not wait: they are there to start within seconds.
    fn signal_at(&self, victim: WorkloadId, licence: Licence) -> Time {
        let (now, workload) = (self.s.now, self.workload(victim));
        let lease = workload.lease().expect("a victim holds a lease");
        let wait_max = self.s.pools[self.pool].knobs.checkpoint_wait_max;
        let (Some(every), Some(running), Occupancy::Allocated) = (workload.spec.checkpoint_every, lease.running, lease.occupancy) else {
            return now;
        };
        if every <= Span::ZERO || licence == Licence::Express {
            return now;
        }
        let next = running + every * ((now - running).0 / every.0 + 1);
        if next - now <= wait_max { next } else { now }
    }
}

/// Whether a gang that may use express nodes (or not) and would be gone by some time could not be placed where another could not.
fn asks_no_less((gang, express, gone_by): (Gang, bool, Time), (other, other_express, other_gone_by): (Gang, bool, Time)) -> bool {
    let alike = Gang { members: other.members, gpus_per_member: other.gpus_per_member, ..gang } == other;
    let is_larger = gang.members >= other.members && gang.gpus_per_member >= other.gpus_per_member;
    alike && is_larger && gone_by >= other_gone_by && express <= other_express
}
