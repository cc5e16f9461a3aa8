//! Promised latest starts: who may have one, on which nodes, what else may run there, and that they are kept.

use super::world::{Home, Id};
use super::{Auditor, Law};
use crate::log::line::{Licence, Occupancy, OnPreempt, Preempting, Reserved, State, Unreserved, UnreservedCause};
use std::collections::{BTreeMap, BTreeSet};

/// Promises by the number of their reservation.
#[derive(Default)]
pub(super) struct Promises {
    pub(super) open: BTreeMap<String, Promise>,
    /// Of this instant: promises that ended as their owner or budget had it, or in a start, to be looked at when the instant is over.
    ended: Vec<(Id, UnreservedCause)>,
    /// Of this instant: workloads that were withdrawn, stopped or held while they waited.
    pub(super) given_up: BTreeSet<Id>,
}

pub(super) struct Promise {
    pub(super) workload: Id,
    leaf: usize,
    pool: usize,
    nodes: Vec<usize>,
    pub(super) latest_start: i64,
    /// When its nodes are to be cleared.
    clears: i64,
    /// When the contract that it promises is over at the latest.
    ends: i64,
    /// One of its nodes left service since it was promised, or something there is protected for longer than was reckoned with.
    is_short: bool,
    /// Something outside the policy's hands delays it: a node, a lease that was told to go and stayed, a report that came late, changed
    /// knobs, or nobody asking.
    is_excused: bool,
}

impl Auditor {
    pub(super) fn reserved(&mut self, line: &Reserved) {
        self.findings.count().promises += 1;
        let Some(id) = self.known(&line.workload) else { return };
        self.check_open(id, "is promised a start");
        let nodes: Vec<usize> = line.nodes.iter().filter_map(|node| self.world.nodes.find(node)).collect();
        let workload = &self.world.workloads[&id];
        let home = self.world.pools.find(&line.pool).and_then(|pool| workload.home(pool)).copied();
        let Some(Home { pool, leaf, .. }) = home else {
            let seen = format!("{} promises {} a start in {}", line.reservation, line.workload, line.pool);
            self.findings.add(Law::Promise, seen, "a pool that it accepts");
            return;
        };
        let Some(knobs) = self.world.knobs(pool).cloned() else { return };
        let clears = line.latest_start_ms - knobs.grace_allocated_ms.max(knobs.grace_unallocated_ms);
        let ends = line.latest_start_ms + knobs.start_timeout_ms + workload.contract_in(pool);
        self.check_promised_nodes((id, pool), &nodes, &line.reservation, clears);
        let before = self.promises.open.remove(&line.reservation);
        match &before {
            Some(before) if before.latest_start < line.latest_start_ms || before.workload != id => self.findings.add(
                Law::Promise,
                format!("{} moves to {} ms", line.reservation, line.latest_start_ms),
                format!("no later than {} ms", before.latest_start),
            ),
            Some(_) => {}
            None => self.check_grant((id, pool, leaf), &line.reservation),
        }
        let latest_start = line.latest_start_ms;
        let promise = Promise { workload: id, leaf, pool, nodes, latest_start, clears, ends, is_short: false, is_excused: false };
        self.promises.open.insert(line.reservation.clone(), promise);
    }

    /// A new promise goes to a waiting gang that needs more than one node, one a workload, one a leaf, and so many a pool.
    fn check_grant(&mut self, (id, pool, leaf): (Id, usize, usize), label: &str) {
        let workload = &self.world.workloads[&id];
        let Some(knobs) = self.world.knobs(pool) else { return };
        let in_pool = self.promises.open.values().filter(|promise| promise.pool == pool).count();
        let nodes = self.world.nodes.rows.iter().filter(|node| node.pool == pool).map(|node| node.gpus.len());
        let (largest, all) = (nodes.clone().max(), nodes.sum::<usize>() as u64);
        let fits_one = largest.is_some_and(|largest| workload.gpus() as usize <= largest);
        let expected = if !workload.is_waiting() || !workload.is_allocated() || self.world.holds.contains_key(&id) {
            "waiting allocated work for which nothing is held"
        } else if fits_one || u64::from(workload.gpus()) < all * u64::from(knobs.reservation_gang_min_ppm) / 1_000_000 {
            "a gang that needs more than one node, and is large enough"
        } else if self.promises.open.values().any(|promise| promise.leaf == leaf || promise.workload == id) {
            "one reservation a leaf, and one a workload"
        } else if in_pool >= knobs.reservations_max as usize {
            "at most as many reservations as the knob says"
        } else {
            return;
        };
        self.findings.add(Law::Promise, format!("{label} is granted to {}", workload.label), expected);
    }

    /// In service, for the whole gang, and by `clears` nothing on them is protected; what is there belongs to whom it may count on.
    fn check_promised_nodes(&mut self, (id, pool): (Id, usize), nodes: &[usize], label: &str, clears: i64) {
        let now = self.now();
        let (workload, before) = (&self.world.workloads[&id], self.promises.open.get(label));
        let each = workload.asked.gpus_per_member as usize;
        let rows = nodes.iter().map(|node| &self.world.nodes.rows[*node]);
        let in_service = rows.clone().all(|row| row.state == State::Ready && row.pool == pool && !row.express);
        let members: usize = rows.clone().map(|row| row.gpus.len() / each).sum();
        let protected = |occupant: Id| self.protected_until_latest(occupant).is_some_and(|until| until > clears.max(now));
        let mut occupants: Vec<Id> = rows.flat_map(|row| row.gpus.iter().filter_map(|gpu| gpu.lease)).collect();
        occupants.sort_unstable();
        occupants.dedup();
        let blocked = occupants.iter().copied().find(|occupant| protected(*occupant));
        let earlier = self.promises.open.iter().find(|(other, promise)| {
            let granted_before = number(other) < number(label);
            let is_later = before.is_none() && !granted_before;
            let crosses = promise.nodes.iter().any(|node| nodes.contains(node));
            crosses && promise.workload != id && (is_later || (granted_before && promise.ends > clears.max(now)))
        });
        let seen = match (in_service && members >= workload.asked.members as usize, blocked, earlier) {
            (false, ..) => format!("{label} has nodes for {members} members, or nodes that are not ready"),
            (_, Some(occupant), _) => format!("{label} is to clear by {clears} ms, {} is protected longer", self.world.label(occupant)),
            (.., Some((other, _))) => format!("{label} has a node that {other} has until later"),
            _ => return self.check_reservable((id, pool), nodes, (label, clears), &occupants),
        };
        self.findings.add(Law::Promise, seen, "ready nodes for the whole gang, on which by then nothing is protected");
    }

    /// What is on a new node belongs to the gang's leaf, or to one that stands higher, or has reached its time limit by `clears`.
    fn check_reservable(&mut self, (id, pool): (Id, usize), nodes: &[usize], (label, clears): (&str, i64), occupants: &[Id]) {
        let own = self.promises.open.get(label).map(|promise| promise.nodes.clone()).unwrap_or_default();
        let Some(leaf) = self.world.workloads[&id].home(pool).map(|home| home.leaf) else { return };
        for occupant in occupants {
            let Some(lease) = self.world.lease(*occupant) else { continue };
            let is_new = lease.slots.iter().any(|(node, _)| nodes.contains(node) && !own.contains(node));
            let stays = lease.occupancy == Occupancy::Allocated && lease.plan.is_none() && lease.stopping_since.is_none();
            let other = &self.world.workloads[occupant];
            let runs_from = lease.running_since.unwrap_or(lease.since + lease.start_timeout);
            let ends_itself = other.asked.time_limit_ms.is_some_and(|limit| runs_from + limit - other.ran <= clears);
            if !is_new || !stays || ends_itself {
                continue;
            }
            if other.leaf == leaf {
                self.check_own_leaf((id, pool), *occupant);
                continue;
            }
            // Where rounding hides whether the leaf is below its share, either comparison may have been made.
            if let Some(below) = self.is_below_share(leaf, pool) {
                self.check_standing(id, *occupant, if below { Licence::Share } else { Licence::Tree }, false);
            }
        }
    }

    /// Of its own leaf it counts on work of no higher priority, and on older work only if that can resume and has run.
    fn check_own_leaf(&mut self, (id, pool): (Id, usize), occupant: Id) {
        let (own, other) = (&self.world.workloads[&id], &self.world.workloads[&occupant]);
        let Some(quantum) = self.world.knobs(pool).map(|knobs| knobs.quantum_ms) else { return };
        let has_run = self.world.lease(occupant).is_some_and(|lease| self.now() - lease.since >= 2 * quantum);
        let resumes = other.asked.on_preempt == OnPreempt::Resume;
        let comes_after = (has_run && resumes) || other.eligible_since >= own.eligible_since;
        let (priority, limit) = (other.asked.priority, own.asked.priority);
        if priority > limit || (priority == limit && !comes_after) {
            let seen = format!("{} counts on {} of its leaf", self.world.label(id), self.world.label(occupant));
            self.findings.add(Law::Promise, seen, "work of no higher priority, that is younger or can resume");
        }
    }

    fn is_below_share(&mut self, leaf: usize, pool: usize) -> Option<bool> {
        let (lens, below) = (self.lens(pool)?, i128::from(self.world.knobs(pool)?.below_share_ppm));
        let weighed = self.weigh(leaf, pool, lens, None);
        let (low, high) = (weighed.standing_low() < below, weighed.standing_high() < below);
        (low == high).then_some(low)
    }

    /// When a lease's protection ends for certain; a starting one may take its whole start timeout. `None` if it has none, or goes anyway.
    fn protected_until_latest(&self, id: Id) -> Option<i64> {
        let lease = self.world.lease(id)?;
        if lease.occupancy == Occupancy::Unallocated || lease.stopping_since.is_some() || lease.plan.is_some() {
            return None;
        }
        match lease.running_since {
            Some(_) => lease.protected_until,
            None => Some(lease.since + lease.start_timeout + lease.contract),
        }
    }

    pub(super) fn unreserved(&mut self, line: &Unreserved) {
        let Some(promise) = self.promises.open.remove(&line.reservation) else {
            self.findings.add(Law::Promise, format!("{} ends", line.reservation), "it was granted");
            return;
        };
        let (now, label) = (self.now(), &line.reservation);
        self.promises.ended.push((promise.workload, line.why));
        match line.why {
            UnreservedCause::Started if now > promise.latest_start && !promise.is_excused => {
                let seen = format!("{label} promised a start by {} ms", promise.latest_start);
                self.findings.add(Law::Promise, seen, "kept, unless nodes were lost or the owner changed it");
            }
            UnreservedCause::NodesLost if !promise.is_short && !self.is_overstayed(&promise) => {
                self.findings.add(Law::Promise, format!("{label} ends for lost nodes"), "one of its nodes is lost to it");
            }
            UnreservedCause::Budget if !self.is_unfunded(&promise) => {
                self.findings.add(Law::Promise, format!("{label} ends for its budget"), "it is closed, or has no claim, or a cap below it");
            }
            _ => {}
        }
    }

    /// Whether something on a promise's nodes is protected for longer than was reckoned with.
    fn is_overstayed(&self, promise: &Promise) -> bool {
        let occupants = promise.nodes.iter().flat_map(|node| self.world.nodes.rows[*node].gpus.iter().filter_map(|gpu| gpu.lease));
        occupants.into_iter().any(|id| self.protected_until_latest(id).is_some_and(|until| until > promise.clears))
    }

    /// Whether a promise's budget may not start it: it is closed or has no claim, or a cap has no room for it beside what is there.
    fn is_unfunded(&self, promise: &Promise) -> bool {
        let charged = |id: &Id| {
            self.world.workloads.get(id).map_or(0, |workload| {
                workload.home(promise.pool).filter(|home| home.min_runtime_ms > 0).map_or(0, |home| i64::from(home.charged_gpus))
            })
        };
        let is_over = |budget: usize| {
            let row = &self.world.budgets.rows[budget];
            let held = self.world.holds.iter().filter(|(_, hold)| hold.line.contains(&budget));
            let others = self
                .promises
                .open
                .values()
                .filter(|other| other.pool == promise.pool && self.world.line(other.leaf).any(|one| one == budget));
            let others = others.filter(|other| !self.is_held_in(other.workload, other.pool));
            let all: i64 = held.map(|(id, _)| charged(id)).sum::<i64>() + others.map(|other| charged(&other.workload)).sum::<i64>();
            row.gpus_max.is_some_and(|cap| row.in_use[Occupancy::Allocated as usize] + all + charged(&promise.workload) > i64::from(cap))
        };
        let is_closed = self.world.is_closed(promise.leaf) || self.world.budgets.rows[promise.leaf].claim == 0;
        is_closed || self.world.line(promise.leaf).any(is_over)
    }

    fn is_held_in(&self, id: Id, pool: usize) -> bool {
        self.world.holds.contains_key(&id) && self.world.workloads.get(&id).is_some_and(|workload| workload.pool == pool)
    }

    /// A node leaves service: those to whom it was promised have lost it, be it that it comes back.
    pub(super) fn lose_promised(&mut self, node: usize) {
        self.promises.open.values_mut().filter(|promise| promise.nodes.contains(&node)).for_each(|promise| promise.is_short = true);
    }

    /// At an instant's end: what is said of an ending is so, and what is due has come.
    pub(super) fn check_promises(&mut self) {
        let given_up = std::mem::take(&mut self.promises.given_up);
        for (id, why) in std::mem::take(&mut self.promises.ended) {
            let is_so = match why {
                UnreservedCause::Started => self.instant.started.contains(&id),
                UnreservedCause::Owner => given_up.contains(&id),
                UnreservedCause::Budget | UnreservedCause::NodesLost => true,
            };
            if !is_so {
                let seen = format!("the promise to {} ends as {why:?}", self.world.label(id));
                self.findings.add(Law::Promise, seen, "it started, or its owner withdrew it, in this instant");
            }
        }
        let overstayed: Vec<String> =
            self.promises.open.iter().filter(|(_, promise)| self.is_overstayed(promise)).map(|(label, _)| label.clone()).collect();
        for label in overstayed {
            self.promises.open.get_mut(&label).expect("just seen").is_short = true;
        }
        let now = self.now();
        let mut late = Vec::new();
        let (world, open) = (&self.world, &mut self.promises.open);
        for (label, promise) in open {
            let occupants = promise.nodes.iter().flat_map(|node| world.nodes.rows[*node].gpus.iter().filter_map(|gpu| gpu.lease));
            let overstays =
                |id: Id| world.lease(id).is_some_and(|lease| lease.stopping_since.is_some_and(|since| since + lease.stop_grace <= now));
            promise.is_excused |= occupants.into_iter().any(overstays);
            if now > promise.latest_start && !promise.is_excused {
                promise.is_excused = true;
                late.push(format!("{label} promised a start by {} ms and waits", promise.latest_start));
            }
        }
        for seen in late {
            self.findings.add(Law::Promise, seen, "kept, unless nodes were lost or the owner changed it");
        }
    }

    /// The log goes on at a later time: whose nodes were to be cleared in between, or what was to be told to stop, was not looked at in time.
    pub(super) fn excuse_gap(&mut self, before: i64, at: i64) {
        let (world, open) = (&self.world, &mut self.promises.open);
        let is_skipped = |due: i64| before < due && due < at;
        let is_told_late = |id: Id| {
            let lease = world.lease(id).filter(|lease| lease.stopping_since.is_none());
            lease.and_then(|lease| lease.plan.as_ref()).is_some_and(|plan| is_skipped(plan.stop_by - plan.grace))
        };
        for promise in open.values_mut() {
            let mut occupants = promise.nodes.iter().flat_map(|node| world.nodes.rows[*node].gpus.iter().filter_map(|gpu| gpu.lease));
            promise.is_excused |= is_skipped(promise.clears) || occupants.any(is_told_late);
        }
    }

    /// Something outside the policy's hands happened on these nodes.
    pub(super) fn excuse(&mut self, nodes: impl Iterator<Item = usize> + Clone) {
        for promise in self.promises.open.values_mut() {
            promise.is_excused |= nodes.clone().any(|node| promise.nodes.contains(&node));
        }
    }

    pub(super) fn excuse_pool(&mut self, pool: usize) {
        for promise in self.promises.open.values_mut() {
            promise.is_excused |= promise.pool == pool;
        }
    }

    /// When a node is promised to others, the earliest. Who has a promise of it reckons with none that was given later.
    fn promised_from(&self, id: Id, node: usize) -> Option<i64> {
        let here = self.promises.open.iter().filter(|(_, promise)| promise.nodes.contains(&node));
        let own = here.clone().find(|(_, promise)| promise.workload == id).map(|(label, _)| number(label));
        let others = here.filter(|(label, promise)| promise.workload != id && own.is_none_or(|own| number(label) < own));
        others.map(|(_, promise)| promise.latest_start).min()
    }

    /// Whether a workload that may start there within `delay` has certainly left before the node is another's.
    pub(super) fn leaves_in_time(&self, id: Id, node: usize, delay: i64) -> bool {
        let Some(from) = self.promised_from(id, node) else { return true };
        let workload = &self.world.workloads[&id];
        let pool = self.world.nodes.rows[node].pool;
        let Some(knobs) = self.world.knobs(pool) else { return true };
        let grace = knobs.grace_allocated_ms.max(knobs.grace_unallocated_ms);
        !workload.is_allocated() || self.now() + delay + knobs.start_timeout_ms + workload.contract_in(pool) + grace <= from
    }

    /// Allocated work starts on reserved nodes only if it has certainly left by the date.
    pub(super) fn check_backfill(&mut self, id: Id, nodes: impl Iterator<Item = usize>) {
        for node in nodes {
            if !self.leaves_in_time(id, node, 0) {
                let (workload, row) = (self.world.label(id), &self.world.nodes.rows[node].label);
                let seen = format!("{workload} is placed on {row}, promised from {:?} ms", self.promised_from(id, node));
                self.findings.add(Law::Backfill, seen, "work that has certainly left by then");
            }
        }
    }

    /// A reservation takes what is on its nodes, when its date has come.
    pub(super) fn check_reservation(&mut self, claimant: Id, victim: Id, line: &Preempting) {
        let now = self.now();
        let promise = self.promises.open.values().find(|promise| promise.workload == claimant);
        let lease = self.world.lease(victim).expect("leased");
        let is_so = promise.is_some_and(|promise| {
            let is_there = lease.slots.iter().any(|(node, _)| promise.nodes.contains(node));
            is_there && (now >= promise.clears || promise.is_excused)
        });
        if !is_so {
            let seen = format!("{} takes {} by licence reservation", self.world.label(claimant), line.workload);
            self.findings.add(Law::Licence, seen, "a lease on its reserved nodes, at its date");
        }
    }

    /// GPU time that promised contracts of a budget and those below it will take, beside what is held: committed from the grant on.
    pub(super) fn promised(&self, budget: usize, apart: Option<Id>) -> i128 {
        let is_below = |leaf: usize| self.world.line(leaf).any(|above| above == budget);
        let mine = self.promises.open.values().filter(|promise| is_below(promise.leaf) && Some(promise.workload) != apart);
        let contract = |promise: &Promise| {
            let workload = self.world.workloads.get(&promise.workload)?;
            // What is held for it in the pool counts instead.
            let home = workload.home(promise.pool).filter(|_| !self.is_held_in(promise.workload, promise.pool))?;
            Some(i128::from(workload.contract_in(promise.pool)) * i128::from(home.charged_gpus))
        };
        mine.filter_map(contract).sum()
    }

    /// What promises to others in this pool count against caps.
    pub(super) fn promised_gpus(&self, pool: usize) -> i64 {
        let of = |promise: &Promise| {
            let workload = self.world.workloads.get(&promise.workload)?;
            Some(i64::from(workload.home(pool)?.charged_gpus.max(workload.gpus())))
        };
        self.promises.open.values().filter(|promise| promise.pool == pool).filter_map(of).sum()
    }
}

/// Reservations are numbered in the order of their grants.
fn number(label: &str) -> u64 {
    label.trim_start_matches(|c: char| !c.is_ascii_digit()).parse().unwrap_or(u64::MAX)
}
