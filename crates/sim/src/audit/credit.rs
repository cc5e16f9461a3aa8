//! Credit that lapses: demand of each budget, kept from the log, and at each full hour what may be left of what it did not ask for.
//!
//! Where a cap holds some of the waiting work back, how much of it counts depends on all caps above and below; there the law is held
//! between the two bounds, all of it and none of it.

use super::standing::{Lens, Weighed};
use super::world::Id;
use super::{Auditor, Law};
use crate::log::line::Lapsed;
use std::collections::BTreeMap;

const HOUR: i64 = 3_600_000;

/// Credit lapses in steps of so many GPU-ms.
const STEP: i128 = 9;

/// Longer gaps are not looked at hour by hour.
const HOURS_MAX: i64 = 2_000;

#[derive(Default)]
pub(super) struct Credit {
    /// What each workload that asks for GPUs and has none asks for: leaves, one a pool, with charged GPUs.
    asking: BTreeMap<Id, Vec<(usize, i64)>>,
    /// By budget.
    meters: Vec<Meter>,
    /// Up to when these are summed.
    upto: i64,
    /// What may lapse of hours that ended since the last instant.
    due: Vec<Due>,
    /// The lines of this instant.
    lapsed: Vec<Lapse>,
}

/// One budget's hour.
#[derive(Clone, Copy, Default)]
struct Meter {
    /// Charged GPUs that wait in its subtree.
    waiting: i64,
    /// What it was entitled to and did not ask for, in 10⁻⁹ GPU · ms, if all that waits counts, and if none of it does.
    least: i128,
    most: i128,
}

/// What may lapse of one hour, in GPU-ms.
struct Due {
    hour: i64,
    budget: usize,
    least: i128,
    most: i128,
    /// How far it stands below its floor, the lines of this instant apart.
    beyond: i128,
    slack: i128,
}

/// Credit that lapsed.
#[derive(Clone, Copy)]
pub(super) struct Lapse {
    budget: usize,
    pub(super) from: i64,
    pub(super) to: i64,
    pub(super) gpu_ms: i64,
}

impl Auditor {
    /// A workload asks for GPUs in all its pools, or in one of them only, or in none.
    pub(super) fn ask(&mut self, id: Id, is_asked: impl Fn(usize) -> bool) {
        let workload = &self.world.workloads[&id];
        let homes = workload.homes.iter().filter(|home| home.min_runtime_ms > 0 && is_asked(home.pool));
        let asks: Vec<(usize, i64)> = homes.map(|home| (home.leaf, i64::from(home.charged_gpus))).collect();
        let before = self.credit.asking.remove(&id).unwrap_or_default();
        for (leaf, gpus) in before.iter().map(|(leaf, gpus)| (*leaf, -gpus)).chain(asks.iter().copied()) {
            let line: Vec<usize> = self.world.line(leaf).collect();
            for budget in line {
                self.meter(budget).waiting += gpus;
            }
        }
        if !asks.is_empty() {
            self.credit.asking.insert(id, asks);
        }
    }

    fn meter(&mut self, budget: usize) -> &mut Meter {
        if self.credit.meters.len() <= budget {
            self.credit.meters.resize(budget + 1, Meter::default());
        }
        &mut self.credit.meters[budget]
    }

    /// Time goes on from the last instant to `at`.
    pub(super) fn pass(&mut self, now: i64, at: i64) {
        self.credit.upto = now;
        // A log that stands still for so long is damaged; its hours would take for ever.
        if at - now > HOURS_MAX * HOUR {
            self.credit.meters.iter_mut().for_each(|meter| (meter.least, meter.most) = (0, 0));
            return;
        }
        while let Some(hour) = (self.credit.upto.div_euclid(HOUR) + 1).checked_mul(HOUR).filter(|hour| *hour <= at) {
            self.sum_demand(hour);
            self.close_hour(hour);
        }
        self.sum_demand(at);
    }

    fn sum_demand(&mut self, to: i64) {
        let ms = i128::from(to - self.credit.upto);
        self.credit.upto = to;
        for budget in 0..self.world.budgets.rows.len() {
            let row = &self.world.budgets.rows[budget];
            let entitled = i128::from(row.claim) * i128::from(self.world.pools.rows[row.pool].capacity);
            let held = i128::from(row.in_use[0]) * 1_000_000_000;
            let meter = self.meter(budget);
            let waiting = i128::from(meter.waiting) * 1_000_000_000;
            meter.least += (entitled - held - waiting).max(0) * ms;
            meter.most += (entitled - held).max(0) * ms;
        }
    }

    /// What may lapse of the hour that ends now is known before anything else happens in the instant.
    fn close_hour(&mut self, hour: i64) {
        for budget in 0..self.world.budgets.rows.len() {
            let Meter { least, most, .. } = *self.meter(budget);
            (self.meter(budget).least, self.meter(budget).most) = (0, 0);
            let pool = self.world.budgets.rows[budget].pool;
            let (Some(lens), Some(knobs)) = (self.lens(pool), self.world.knobs(pool).cloned()) else { continue };
            if most == 0 || knobs.credit_max_ms >= knobs.lookback_ms {
                self.credit.due.push(Due { hour, budget, least: 0, most: 0, beyond: 0, slack: 0 });
                continue;
            }
            let lens = Lens { now: hour, ..lens };
            if !self.is_checked(lens) {
                self.findings.count().standings_skipped += 1;
                continue;
            }
            let Weighed { used, committed, entitled, slack } = self.weigh(budget, pool, lens, None);
            let rate = i128::from(self.world.budgets.rows[budget].claim) * i128::from(self.world.pools.rows[pool].capacity);
            let credit = rate * i128::from(knobs.credit_max_ms) / 1_000_000_000;
            // Of the past that was imputed nobody was there to ask for anything.
            let imputed = (self.shares.imputed(budget, pool, lens) - self.granted_to(budget, pool, lens)).max(0);
            let beyond = (entitled - imputed - used - committed) / lens.full(1) - credit;
            let is_capped = self.world.budgets.rows.iter().any(|row| row.pool == pool && row.gpus_max.is_some());
            let most = if is_capped { most } else { least };
            let (least, most) = (least / 1_000_000_000, most / 1_000_000_000);
            // A lapse is a whole number of steps.
            self.credit.due.push(Due { hour, budget, least, most, beyond, slack: slack / lens.full(1) + STEP });
        }
    }

    pub(super) fn lapsed(&mut self, line: &Lapsed) {
        let budget = self.world.budget_of(&line.pool, &line.budget);
        let is_hour = line.to_ms - line.from_ms == HOUR && line.to_ms % HOUR == 0 && line.to_ms <= self.now() && line.gpu_ms >= 0;
        let Some(budget) = budget.filter(|_| is_hour) else {
            let seen = format!("{} GPU-ms of {} lapse for {} to {} ms", line.gpu_ms, line.budget, line.from_ms, line.to_ms);
            self.findings.add(Law::Credit, seen, "a full hour of a known budget");
            return;
        };
        let lapse = Lapse { budget, from: line.from_ms, to: line.to_ms, gpu_ms: line.gpu_ms };
        let horizon = self.now().saturating_sub(self.shares.lookback(&self.world));
        let account = self.ledger.account(budget);
        account.lapses.retain(|old| old.to > horizon);
        account.lapses.push(lapse);
        self.credit.lapsed.push(lapse);
    }

    /// When the instant is over: each hour's lapses are exact, and none takes a budget above its floor.
    pub(super) fn check_lapses(&mut self) {
        let lapsed = std::mem::take(&mut self.credit.lapsed);
        for due in std::mem::take(&mut self.credit.due) {
            self.findings.count().lapse_checks += 1;
            let pool = self.world.budgets.rows[due.budget].pool;
            let Some(lens) = self.lens(pool).map(|lens| Lens { now: due.hour, ..lens }) else { continue };
            let earlier: Vec<&Lapse> = lapsed.iter().filter(|lapse| lapse.budget == due.budget && lapse.to < due.hour).collect();
            let beyond = due.beyond - earlier.iter().map(|lapse| lapse.weight(lens) / lens.full(1)).sum::<i128>();
            // Each line is rounded down.
            let slack = due.slack + 2 * earlier.len() as i128;
            let (least, most) = (due.least.min(beyond) - slack, due.most.min(beyond).max(0) + slack);
            let here = |lapse: &Lapse| lapse.budget == due.budget && lapse.to == due.hour;
            let seen: i128 = lapsed.iter().filter(|lapse| here(lapse)).map(|lapse| i128::from(lapse.gpu_ms)).sum();
            if seen < least || seen > most {
                let path = &self.world.budgets.rows[due.budget].path;
                let seen = format!("{seen} GPU-ms of {path} lapse for the hour that ends at {} ms", due.hour);
                let expected = format!("{} to {} GPU-ms: what it did not ask for beyond its floor", least.max(0), most);
                self.findings.add(Law::Credit, seen, expected);
            }
        }
    }

    /// Where the log ends, an hour that ended before is settled, and one that ends now may not be.
    pub(super) fn check_last_lapses(&mut self) {
        let now = self.now();
        self.credit.due.retain(|due| due.hour < now);
        self.check_lapses();
    }

    /// What has lapsed of a budget, as it weighs.
    pub(super) fn lapsed_of(&mut self, budget: usize, lens: Lens) -> i128 {
        self.ledger.account(budget).lapses.iter().map(|lapse| lapse.weight(lens)).sum()
    }
}

impl Lapse {
    fn weight(&self, lens: Lens) -> i128 {
        i128::from(self.gpu_ms) * lens.weight(self.from, self.to) / i128::from(HOUR)
    }
}
