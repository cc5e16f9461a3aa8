//! Standings, recomputed by brute force from the ledger's lines: what a budget used and is entitled to over the lookback.
//!
//! Weighted GPU time is kept in units of GPU × ms² (twice the lookback times the weight), so that both kernels are integers:
//! `fading` integrates to a difference of squares. A comparison allows some parts per million on each side: what is reported is wrong
//! by more than rounding.

use super::ledger::{Grant, Interval};
use super::world::{Home, Id, Workload, World};
use super::{Auditor, Law};
use crate::log::knobs::Kernel;
use crate::log::line::{Licence, Occupancy};
use std::collections::VecDeque;

/// Comparing every standing of a month's log would take minutes: after this many charges were added up, one comparison in 16 is made.
const FREE_WORK: u64 = 200_000_000;

/// Claims and capacity over time.
#[derive(Default)]
pub(super) struct Shares {
    /// Per budget: from when on it has which claim (in parts per 10⁹).
    claims: Vec<Vec<(i64, i64)>>,
    /// Per pool: from when on it has which capacity.
    capacity: Vec<VecDeque<(i64, i64)>>,
    /// Per pool: when it first had any.
    born: Vec<Option<i64>>,
    forgotten_before: Option<i64>,
    work: u64,
    asked: u64,
}

/// A budget's side of a comparison, weighted; `slack` bounds what rounding may change.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Weighed {
    pub(super) used: i128,
    pub(super) committed: i128,
    pub(super) entitled: i128,
    pub(super) slack: i128,
}

/// One moment's view of the past.
#[derive(Clone, Copy)]
pub(super) struct Lens {
    pub(super) now: i64,
    pub(super) lookback: i64,
    pub(super) kernel: Kernel,
}

impl Lens {
    /// The weight of one GPU from `from` to `to`.
    pub(super) fn weight(&self, from: i64, to: i64) -> i128 {
        let oldest = self.now.saturating_sub(self.lookback);
        let (from, to) = (from.clamp(oldest, self.now), to.clamp(oldest, self.now));
        let (a, b) = (i128::from(from - oldest), i128::from(to - oldest));
        match self.kernel {
            _ if to <= from => 0,
            Kernel::Fading => b * b - a * a,
            Kernel::Sliding => 2 * i128::from(self.lookback) * (b - a),
        }
    }

    /// GPU time that counts in full.
    pub(super) fn full(&self, gpu_ms: impl Into<i128>) -> i128 {
        2 * i128::from(self.lookback) * gpu_ms.into()
    }
}

impl Shares {
    pub(super) fn lookback(&self, world: &World) -> i64 {
        world.pools.rows.iter().filter_map(|pool| Some(pool.knobs.as_ref()?.lookback_ms)).max().unwrap_or(0)
    }

    pub(super) fn forget_before(&mut self, horizon: i64) {
        self.forgotten_before = self.forgotten_before.max(Some(horizon));
        for steps in &mut self.capacity {
            while steps.get(1).is_some_and(|(from, _)| *from <= horizon) {
                steps.pop_front();
            }
        }
    }

    pub(super) fn note_claim(&mut self, budget: usize, claim: i64, now: i64) {
        if self.claims.len() <= budget {
            self.claims.resize_with(budget + 1, Vec::new);
        }
        let steps = &mut self.claims[budget];
        match steps.last_mut() {
            Some((_, last)) if *last == claim => {}
            Some((from, last)) if *from == now => *last = claim,
            _ => steps.push((now, claim)),
        }
    }

    pub(super) fn note_capacity(&mut self, world: &World, now: i64) {
        self.capacity.resize_with(world.pools.rows.len(), VecDeque::new);
        self.born.resize(world.pools.rows.len(), None);
        for ((pool, steps), born) in world.pools.rows.iter().zip(&mut self.capacity).zip(&mut self.born) {
            if steps.back().is_none_or(|(_, last)| *last != pool.capacity) && (pool.capacity > 0 || !steps.is_empty()) {
                steps.push_back((now, pool.capacity));
                born.get_or_insert(now);
            }
        }
    }

    /// Σ capacity × weight of the time before `until`.
    pub(super) fn capacity_until(&self, until: i64, pool: usize, lens: Lens) -> i128 {
        let Some(capacity) = self.capacity.get(pool) else { return 0 };
        let steps = capacity.iter().enumerate().map(|(k, (from, gpus))| {
            let from = if k == 0 { i64::MIN } else { *from };
            let to = capacity.get(k + 1).map_or(i64::MAX, |step| step.0);
            i128::from(*gpus) * lens.weight(from, to.min(until))
        });
        steps.sum()
    }

    /// The part of [`Shares::entitled`] that lies before the budget's first claim, or before the pool's first capacity.
    pub(super) fn imputed(&self, budget: usize, pool: usize, lens: Lens) -> i128 {
        let claim = self.claims.get(budget).and_then(|steps| steps.iter().find(|(_, claim)| *claim > 0));
        let (Some((from, claim)), Some(born)) = (claim, self.born.get(pool).copied().flatten()) else { return 0 };
        i128::from(*claim) * self.capacity_until(born.max(*from), pool, lens) / 1_000_000_000
    }

    /// Σ claim × capacity × weight. Before its first claim above zero a budget counts with that, before its first capacity a pool with that.
    fn entitled(&self, budget: usize, pool: usize, lens: Lens) -> i128 {
        let (Some(claims), Some(capacity)) = (self.claims.get(budget), self.capacity.get(pool)) else { return 0 };
        let claims: Vec<(i64, i64)> = claims.iter().copied().skip_while(|(_, claim)| *claim == 0).collect();
        let ends = |steps: usize, at: usize, next: Option<i64>| if at + 1 == steps { i64::MAX } else { next.unwrap_or(i64::MAX) };
        let mut sum = 0;
        for (i, (claim_from, claim)) in claims.iter().enumerate() {
            let claim_from = if i == 0 { i64::MIN } else { *claim_from };
            let claim_to = ends(claims.len(), i, claims.get(i + 1).map(|step| step.0));
            for (k, (from, gpus)) in capacity.iter().enumerate() {
                let from = if k == 0 { i64::MIN } else { *from };
                let to = ends(capacity.len(), k, capacity.get(k + 1).map(|step| step.0));
                sum += i128::from(*claim) * i128::from(*gpus) * lens.weight(from.max(claim_from), to.min(claim_to));
            }
        }
        sum / 1_000_000_000
    }
}

impl Weighed {
    /// Standing with commitments, in ppm, as low as rounding may have it.
    pub(super) fn standing_low(&self) -> i128 {
        ppm(self.used + self.committed - self.slack, self.entitled)
    }

    /// Standing with commitments, as high as rounding may have it.
    pub(super) fn standing_high(&self) -> i128 {
        ppm(self.used + self.committed + self.slack, self.entitled)
    }

    /// Standing without commitments, as high as rounding may have it.
    pub(super) fn bare_high(&self) -> i128 {
        ppm(self.used + self.slack, self.entitled)
    }
}

fn ppm(part: i128, whole: i128) -> i128 {
    if whole == 0 { i128::MAX / 4 } else { part.max(0) * 1_000_000 / whole }
}

impl Auditor {
    pub(super) fn lens(&self, pool: usize) -> Option<Lens> {
        let knobs = self.world.knobs(pool)?;
        Some(Lens { now: self.now(), lookback: knobs.lookback_ms, kernel: knobs.kernel })
    }

    /// Weighs a budget: what was charged to it and to all below it, and what was imputed to itself at its own birth, or lapsed. What was
    /// imputed to a child is the child's alone: its parent was there before, with a past of its own. The hold of `apart` is left out: a claimant is
    /// judged before its own contract counts.
    pub(super) fn weigh(&mut self, budget: usize, pool: usize, lens: Lens, apart: Option<Id>) -> Weighed {
        let mut sum = Weighed { entitled: self.shares.entitled(budget, pool, lens), ..Weighed::default() };
        sum.used += self.charged_to(budget, lens);
        if self.world.knobs(pool).is_some_and(|knobs| knobs.commitments) {
            sum.committed += lens.full(self.committed(budget, lens.now, apart));
        }
        sum.used += self.granted_to(budget, pool, lens) + self.lapsed_of(budget, lens);
        // A standing is rounded down to parts per million, and so is a quantum.
        sum.slack = 3 * (sum.entitled / 1_000_000) + (sum.used.abs() + sum.committed.abs()) / 10_000_000 + lens.full(1);
        sum
    }

    /// What was charged to a budget: its own leases and holds and those that began below it, ended and live.
    fn charged_to(&mut self, budget: usize, lens: Lens) -> i128 {
        let mut used = 0;
        let mut add = |interval: Interval| used += i128::from(interval.gpus) * lens.weight(interval.from, interval.to);
        let account = self.ledger.account(budget);
        account.entries.iter().for_each(|entry| add(*entry));
        self.shares.work += account.entries.len() as u64;
        for bill in self.ledger.bills.values().filter(|bill| bill.line.contains(&budget)) {
            add(Interval { from: bill.upto, to: lens.now, gpus: bill.gpus });
        }
        for (id, hold) in self.world.holds.iter().filter(|(_, hold)| hold.line.contains(&budget)) {
            // What of this hold was charged already is in the entries; the bill may be of an earlier one in the same instant, too.
            if self.world.workloads.get(id).is_some_and(Workload::is_allocated)
                && self.ledger.hold_bills.get(id).is_some_and(|bill| bill.charged <= bill.expected)
            {
                self.held_since(hold).for_each(|since| add(Interval { from: since, to: lens.now, gpus: 1 }));
            }
        }
        used
    }

    /// What is left of the past that was imputed to a budget at its birth. That past went as the pool's capacity did.
    pub(super) fn granted_to(&mut self, budget: usize, pool: usize, lens: Lens) -> i128 {
        let account = self.ledger.account(budget);
        let left = |grant: &Grant| {
            let now = self.shares.capacity_until(grant.at, pool, lens);
            // Bounded, so that a past that a changed lookback weighs anew stays a number.
            let part = (now * 1_000_000_000 / grant.weight.max(1)).min(1_000_000_000_000);
            lens.full(grant.gpu_ms) / 1_000_000 * part / 1_000
        };
        account.grants.iter().map(left).sum()
    }

    /// GPU time that the contracts of a budget, and those that began below it, will still take: whole while starting, and of claimants from the plan on.
    fn committed(&self, budget: usize, now: i64, apart: Option<Id>) -> i128 {
        let leased = self.world.budgets.rows[budget].leased.iter().filter_map(|id| {
            let lease = self.world.lease(*id).filter(|lease| lease.occupancy == Occupancy::Allocated && lease.stopping_since.is_none())?;
            let left = lease.protected_until.map_or(lease.contract, |until| (until - now).max(0));
            Some(i128::from(left) * i128::from(self.world.workloads[id].asked.charged_gpus))
        });
        let mine = self.world.holds.iter().filter(|(id, hold)| Some(**id) != apart && hold.line.contains(&budget));
        let held = mine
            .filter_map(|(id, _)| self.world.workloads.get(id))
            .map(|workload| i128::from(workload.contract()) * i128::from(workload.asked.charged_gpus));
        leased.sum::<i128>() + held.sum::<i128>() + self.promised(budget, apart)
    }

    /// The relation behind a licence: S(claimant) + quantum < U(victim), leaf against leaf for `share`, side against side for `tree`; and
    /// the claimant's side has less than its share, where the eviction must serve what `is_owed`.
    pub(super) fn check_standing(&mut self, claimant: Id, victim: Id, licence: Licence, is_owed: bool) {
        let (by, of) = (&self.world.workloads[&claimant], &self.world.workloads[&victim]);
        let (pool, of_leaf) = (of.pool, of.leaf);
        let Some(Home { leaf: by_leaf, charged_gpus, .. }) = by.home(pool).copied() else { return };
        let gang = i64::from(charged_gpus);
        let (Some(lens), Some(knobs)) = (self.lens(pool), self.world.knobs(pool)) else { return };
        let (quantum, below) = (gang * knobs.quantum_ms, i128::from(knobs.below_share_ppm));
        let sides = if licence == Licence::Share { (by_leaf, of_leaf) } else { self.sides(by_leaf, of_leaf) };
        if !self.is_checked(lens) {
            self.findings.count().standings_skipped += 1;
            return;
        }
        self.findings.count().standings_compared += 1;
        let mut one = self.weigh(sides.0, pool, lens, Some(claimant));
        let other = self.weigh(sides.1, pool, lens, Some(claimant));
        one.committed += lens.full(quantum);
        if one.standing_low() >= other.bare_high() {
            let path = |side: usize| self.world.budgets.rows[side].path.clone();
            let seen = format!(
                "{} + quantum stands at {} ppm or more, {} at {} ppm or less",
                path(sides.0),
                one.standing_low(),
                path(sides.1),
                other.bare_high()
            );
            self.findings.add(Law::Standing, seen, "the claimant's side stands lower");
        }
        if !is_owed {
            return;
        }
        let owed = self.weigh(sides.0, pool, lens, Some(claimant));
        self.expect(owed.standing_low() < 1_000_000, sides.0, &owed, "the claimant's side has less than its share");
        if licence == Licence::Tree {
            let victim = self.weigh(of_leaf, pool, lens, Some(claimant));
            let expected = format!("tree: the victim's leaf is not below its share, {below} ppm");
            self.expect(victim.standing_high() >= below, of_leaf, &victim, &expected);
        }
    }

    fn expect(&mut self, is_so: bool, budget: usize, weighed: &Weighed, expected: &str) {
        if !is_so {
            let path = &self.world.budgets.rows[budget].path;
            let seen = format!("{path} stands at {} to {} ppm", weighed.standing_low(), weighed.standing_high());
            self.findings.add(Law::Standing, seen, expected);
        }
    }

    /// Whether the past is all there, and this comparison is one of those that are made.
    pub(super) fn is_checked(&mut self, lens: Lens) -> bool {
        self.shares.asked += 1;
        let is_there = self.shares.forgotten_before <= Some(lens.now - lens.lookback);
        is_there && (self.shares.work < FREE_WORK || self.shares.asked.is_multiple_of(16))
    }

    /// The two budgets where the leaves' paths part.
    fn sides(&self, one: usize, other: usize) -> (usize, usize) {
        let up = |leaf: usize| {
            let mut path: Vec<usize> = self.world.line(leaf).collect();
            path.reverse();
            path
        };
        let (one, other) = (up(one), up(other));
        let parting = one.iter().zip(&other).find(|(a, b)| a != b);
        parting.map_or((one[0], other[0]), |(a, b)| (*a, *b))
    }

    /// Used is never negative, whichever kernel looks at it.
    pub(super) fn check_used(&mut self, leaf: usize, pool: usize) {
        let Some(lens) = self.lens(pool) else { return };
        for kernel in [Kernel::Fading, Kernel::Sliding] {
            self.findings.count().used_checks += 1;
            let lens = Lens { kernel, ..lens };
            let used = self.charged_to(leaf, lens) + self.granted_to(leaf, pool, lens);
            if used < 0 {
                let seen = format!("{} used {used} weighted by {kernel:?}", self.world.budgets.rows[leaf].path);
                self.findings.add(Law::Used, seen, "never less than nothing");
            }
        }
    }
}
