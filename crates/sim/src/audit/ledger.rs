//! The ledger, held against the leases and holds of the log: every charge recomputed, to the millisecond.

use super::credit::Lapse;
use super::world::{Hold, Id};
use super::{Auditor, Law};
use crate::log::line::{ChargeKind, Charged, Granted, Occupancy, Outcome, Refunded};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Default)]
pub(super) struct Ledger {
    /// Allocated leases that run or ended in this instant, by workload and attempt.
    pub(super) bills: BTreeMap<(Id, u32), Bill>,
    /// Holds that live or ended in this instant, by claimant.
    pub(super) hold_bills: BTreeMap<Id, HoldBill>,
    /// Per leaf: what was charged, for as long as a standing can see it.
    pub(super) history: Vec<Account>,
    closed: BTreeSet<(Id, u32)>,
    closed_holds: BTreeSet<Id>,
}

/// One allocated lease's charge.
pub(super) struct Bill {
    /// The leaf and the ancestors of its beginning.
    pub(super) line: Vec<usize>,
    label: String,
    from: i64,
    /// Charged up to here.
    pub(super) upto: i64,
    pub(super) gpus: i64,
    ended: Option<(i64, Outcome)>,
    is_struck: bool,
    refunds: Vec<(i64, i64)>,
}

/// One claimant's charge for held GPUs.
#[derive(Default)]
pub(super) struct HoldBill {
    line: Vec<usize>,
    opened: i64,
    /// Of holds that ended.
    pub(super) expected: i128,
    pub(super) charged: i128,
    refunded: i128,
}

/// What a leaf was charged, or a budget above it.
#[derive(Default)]
pub(super) struct Account {
    pub(super) entries: Vec<Interval>,
    pub(super) grants: Vec<Grant>,
    pub(super) lapses: Vec<Lapse>,
    logged: i128,
    expected: i128,
    pruned_at: usize,
}

/// GPUs × time; negative GPUs are a refund.
#[derive(Clone, Copy)]
pub(super) struct Interval {
    pub(super) from: i64,
    pub(super) to: i64,
    pub(super) gpus: i64,
}

/// Usage imputed at a budget's birth, as weighted then.
#[derive(Clone, Copy)]
pub(super) struct Grant {
    pub(super) at: i64,
    pub(super) gpu_ms: i64,
    /// The weight of the pool's capacity over the lookback then.
    pub(super) weight: i128,
}

impl Ledger {
    pub(super) fn account(&mut self, leaf: usize) -> &mut Account {
        if self.history.len() <= leaf {
            self.history.resize_with(leaf + 1, Account::default);
        }
        &mut self.history[leaf]
    }
}

impl Auditor {
    pub(super) fn open_bill(&mut self, id: Id) {
        let workload = &self.world.workloads[&id];
        let (now, gpus) = (self.now(), i64::from(workload.asked.charged_gpus));
        let bill = Bill {
            line: self.world.lease(id).map_or_else(|| vec![workload.leaf], |lease| lease.line.clone()),
            label: workload.label.clone(),
            from: now,
            upto: now,
            gpus,
            ended: None,
            is_struck: false,
            refunds: Vec::new(),
        };
        self.ledger.bills.insert((id, workload.attempts), bill);
    }

    pub(super) fn close_bill(&mut self, id: Id, attempt: u32, outcome: Outcome) {
        let now = self.now();
        if let Some(bill) = self.ledger.bills.get_mut(&(id, attempt)) {
            bill.ended = Some((now, outcome));
            self.ledger.closed.insert((id, attempt));
        }
    }

    /// A node of this lease was lost or drains critically: it is stopped for that, and its last part may be refunded.
    pub(super) fn strike(&mut self, id: Id) {
        let Some(lease) = self.world.lease_mut(id) else { return };
        lease.is_struck = true;
        if let Some(bill) = self.ledger.bills.get_mut(&(id, lease.attempt)) {
            bill.is_struck = true;
        }
    }

    pub(super) fn charged(&mut self, line: &Charged) {
        self.findings.count().charges += 1;
        self.findings.count().charged_gpu_ms += i128::from(line.gpu_ms);
        let (Some(id), now) = (self.known(&line.workload), self.now()) else { return };
        let leaf = self.world.workloads[&id].leaf;
        let at_leaf = self.world.budget_of(&line.pool, &line.budget) == Some(leaf);
        let length = line.to_ms - line.from_ms;
        let is_time = length > 0 && line.to_ms <= now && line.gpu_ms % length == 0 && line.gpu_ms > 0;
        let is_so = at_leaf
            && is_time
            && match line.kind {
                ChargeKind::Run => {
                    self.ledger.bills.get_mut(&(id, line.attempt)).is_some_and(|bill| bill.charge(line.from_ms, line.to_ms, line.gpu_ms))
                }
                ChargeKind::Hold => self.ledger.hold_bills.get_mut(&id).is_some_and(|bill| bill.charge(line.from_ms, line.gpu_ms)),
            };
        if !is_so {
            let unallocated = self.world.lease(id).is_some_and(|lease| lease.occupancy == Occupancy::Unallocated);
            let expected = if unallocated {
                "unallocated work is never charged"
            } else {
                "the next part of an allocated lease or a hold, GPUs × time, at its leaf"
            };
            let seen = format!(
                "{} attempt {} is charged {} GPU-ms in {} for {} to {} ms",
                line.workload, line.attempt, line.gpu_ms, line.budget, line.from_ms, line.to_ms
            );
            self.findings.add(Law::Ledger, seen, expected);
        }
        self.enter(id, (line.attempt, line.kind), line.from_ms, line.to_ms, line.gpu_ms);
    }

    /// Books at the leaf and at the ancestors that it was begun with; what no standing can see any more is dropped now and then.
    fn enter(&mut self, id: Id, (attempt, kind): (u32, ChargeKind), from: i64, to: i64, gpu_ms: i64) {
        let horizon = self.now().saturating_sub(self.shares.lookback(&self.world));
        let begun_with = match kind {
            ChargeKind::Run => self.ledger.bills.get(&(id, attempt)).map(|bill| bill.line.clone()),
            ChargeKind::Hold => self.ledger.hold_bills.get(&id).map(|bill| bill.line.clone()),
        };
        let line = begun_with.unwrap_or_else(|| self.world.line(self.world.workloads[&id].leaf).collect());
        self.ledger.account(line[0]).logged += i128::from(gpu_ms);
        for budget in line {
            let account = self.ledger.account(budget);
            if to > from {
                account.entries.push(Interval { from, to, gpus: gpu_ms / (to - from) });
            }
            if account.entries.len() > account.pruned_at {
                account.entries.retain(|entry| entry.to > horizon);
                account.pruned_at = 2 * account.entries.len() + 100;
                self.shares.forget_before(horizon);
            }
        }
    }

    pub(super) fn refunded(&mut self, line: &Refunded) {
        self.findings.count().refunds += 1;
        self.findings.count().refunded_gpu_ms += i128::from(line.gpu_ms);
        let Some(id) = self.known(&line.workload) else { return };
        let leaf = self.world.workloads[&id].leaf;
        let refund_max = self.world.knobs(self.world.workloads[&id].pool).map_or(0, |knobs| knobs.refund_max_ms);
        let at_leaf = self.world.budget_of(&line.pool, &line.budget) == Some(leaf);
        let is_so = at_leaf
            && line.to_ms > line.from_ms
            && match line.kind {
                ChargeKind::Run => self.ledger.bills.get_mut(&(id, line.attempt)).is_some_and(|bill| bill.refund(line, refund_max)),
                ChargeKind::Hold => self.ledger.hold_bills.get_mut(&id).is_some_and(|bill| bill.refund(line)),
            };
        if !is_so {
            let seen = format!(
                "{} attempt {} gets {} GPU-ms back for {} to {} ms",
                line.workload, line.attempt, line.gpu_ms, line.from_ms, line.to_ms
            );
            self.findings.add(
                Law::Refund,
                seen,
                format!("a charged part of at most {refund_max} ms, once, for a fault of the infrastructure"),
            );
        }
        self.enter(id, (line.attempt, line.kind), line.from_ms, line.to_ms, -line.gpu_ms);
    }

    pub(super) fn granted(&mut self, line: &Granted) {
        let at = self.now();
        let lens = self.world.pools.find(&line.pool).and_then(|pool| Some((pool, self.lens(pool)?)));
        match (self.world.budget_of(&line.pool, &line.budget), lens) {
            (Some(budget), Some((pool, lens))) if line.gpu_ms >= 0 => {
                let weight = self.shares.capacity_until(at, pool, lens);
                self.ledger.account(budget).grants.push(Grant { at, gpu_ms: line.gpu_ms, weight });
            }
            _ => self.findings.add(
                Law::Ledger,
                format!("{} is granted {} GPU-ms", line.budget, line.gpu_ms),
                "a known budget and pool, not less than nothing",
            ),
        }
    }

    pub(super) fn open_hold_bill(&mut self, id: Id, now: i64) {
        let line: Vec<usize> = self.world.line(self.world.workloads[&id].leaf).collect();
        // One that was given up in this instant in another pool is an account of that pool.
        if self.ledger.hold_bills.get(&id).is_some_and(|bill| bill.line[0] != line[0]) {
            self.settle_hold_bill(id);
        }
        let bill = self.ledger.hold_bills.entry(id).or_default();
        (bill.line, bill.opened) = (line, now);
        self.ledger.closed_holds.remove(&id);
    }

    /// Held GPUs are charged from the end of their last occupant, and not before they were held.
    pub(super) fn close_hold_bill(&mut self, id: Id, hold: &Hold) {
        // Unallocated work that has first right to its old GPUs is not charged for them.
        let is_charged = self.world.workloads.get(&id).is_some_and(super::world::Workload::is_allocated);
        let accrued: i128 = if is_charged { self.held_since(hold).map(|since| i128::from(self.now() - since)).sum() } else { 0 };
        if let Some(bill) = self.ledger.hold_bills.get_mut(&id) {
            bill.expected += accrued;
            self.ledger.closed_holds.insert(id);
        }
    }

    /// For each held GPU that is free: since when it is both.
    pub(super) fn held_since<'a>(&'a self, hold: &'a Hold) -> impl Iterator<Item = i64> + 'a {
        let gpus = hold.slots.iter().flat_map(|(node, gpus)| gpus.iter().map(|gpu| &self.world.nodes.rows[*node].gpus[usize::from(*gpu)]));
        gpus.filter(|gpu| gpu.lease.is_none()).map(|gpu| gpu.free_since.max(hold.at))
    }

    /// At an instant's end, what ended in it is charged whole.
    pub(super) fn settle_bills(&mut self) {
        for key in std::mem::take(&mut self.ledger.closed) {
            // One that was opened anew in the same instant, which is a breach by itself, has no end yet.
            let Some(bill) = self.ledger.bills.remove(&key) else { continue };
            let Some((ended, how)) = bill.ended else { continue };
            if bill.upto != ended {
                let seen = format!("{} attempt {} is charged up to {} ms", bill.label, key.1, bill.upto);
                self.findings.add(Law::Ledger, seen, format!("from its start at {} to its end at {ended} ms", bill.from));
            }
            if !bill.refunds.is_empty() && !bill.is_struck && !matches!(how, Outcome::NodeLost | Outcome::StartTimeout) {
                let seen = format!("{} attempt {} ended as {how:?} and got GPU time back", bill.label, key.1);
                self.findings.add(Law::Refund, seen, "refunds are for faults of the infrastructure");
            }
            self.ledger.account(bill.line[0]).expected += i128::from(bill.gpus * (ended - bill.from) - bill.returned());
        }
        for id in std::mem::take(&mut self.ledger.closed_holds) {
            self.settle_hold_bill(id);
        }
    }

    fn settle_hold_bill(&mut self, id: Id) {
        let Some(bill) = self.ledger.hold_bills.remove(&id) else { return };
        if bill.charged != bill.expected {
            let seen = format!("{} is charged {} GPU-ms for held GPUs", self.world.label(id), bill.charged);
            self.findings.add(Law::Ledger, seen, format!("{} GPU-ms, each GPU from the end of its last occupant", bill.expected));
        }
        self.ledger.account(bill.line[0]).expected += bill.expected - bill.refunded;
    }

    /// When the log is over: each leaf's account is the sum of its leases and holds.
    pub(super) fn check_totals(&mut self) {
        for bill in std::mem::take(&mut self.ledger.bills).into_values() {
            self.ledger.account(bill.line[0]).expected += i128::from(bill.gpus * (bill.upto - bill.from) - bill.returned());
        }
        for bill in std::mem::take(&mut self.ledger.hold_bills).into_values() {
            self.ledger.account(bill.line[0]).expected += bill.charged - bill.refunded;
        }
        for (leaf, account) in self.ledger.history.iter().enumerate() {
            if account.logged != account.expected {
                let path = &self.world.budgets.rows[leaf].path;
                self.findings.add(
                    Law::Ledger,
                    format!("{path} has {} GPU-ms in all", account.logged),
                    format!("{} GPU-ms", account.expected),
                );
            }
        }
    }
}

impl Bill {
    /// Books the next part; whether it is that.
    fn charge(&mut self, from: i64, to: i64, gpu_ms: i64) -> bool {
        let is_next = from == self.upto && gpu_ms == self.gpus * (to - from) && self.ended.is_none_or(|(ended, _)| to <= ended);
        if is_next {
            self.upto = to;
        }
        is_next
    }

    /// GPU time given back.
    fn returned(&self) -> i64 {
        self.refunds.iter().map(|(from, to)| (to - from) * self.gpus).sum()
    }

    fn refund(&mut self, line: &Refunded, refund_max: i64) -> bool {
        let is_charged = line.from_ms >= self.from && line.to_ms <= self.upto && line.gpu_ms == self.gpus * (line.to_ms - line.from_ms);
        let is_new = self.refunds.iter().all(|(from, to)| line.to_ms <= *from || line.from_ms >= *to);
        let returned: i64 = self.refunds.iter().map(|(from, to)| to - from).sum();
        let is_bounded = returned + line.to_ms - line.from_ms <= refund_max;
        let is_so = is_charged && is_new && is_bounded;
        if is_so {
            self.refunds.push((line.from_ms, line.to_ms));
        }
        is_so
    }
}

impl HoldBill {
    fn charge(&mut self, from: i64, gpu_ms: i64) -> bool {
        self.charged += i128::from(gpu_ms);
        from >= self.opened
    }

    fn refund(&mut self, line: &Refunded) -> bool {
        self.refunded += i128::from(line.gpu_ms);
        line.gpu_ms > 0 && line.from_ms >= self.opened && self.refunded <= self.charged
    }
}
