//! The ledger of one pool: who used what, what is committed, who is entitled to what. Exact, and charged up the tree.

use crate::budget::{Budget, BudgetTree};
use crate::demand::{Demand, Place};
use crate::id::{BudgetId, PoolId, UserId};
use crate::knobs::{Kernel, Knobs};
use crate::quantity::{GpuMs, Gpus, Span, Standing, Time};
use crate::window::{GPU, Rate, Window};
use std::collections::BTreeMap;

/// Where in the ledger a workload is charged: found at its submission, and anew when its leaf moves before it has GPUs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Charge {
    /// The user's account inside the leaf.
    pub user: usize,
    /// The accounts from the leaf to the root.
    pub line: Box<[usize]>,
}

/// What contracts have still to get: exact at any moment, without touching an account as time passes.
#[derive(Clone, Copy, Debug, Default, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct Committed {
    /// Contracts that have not begun: starting leases and claimants.
    whole: GpuMs,
    /// Σ GPUs of protected running leases.
    running: i64,
    /// Σ GPUs × protected-until of protected running leases, in GPU · ms.
    running_until: i128,
}

impl Committed {
    fn at(&self, now: Time) -> i128 {
        i128::from(self.whole.0) + self.running_until - i128::from(self.running) * i128::from(now.0)
    }
}

/// One account: a budget's, or a user's inside a leaf.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Account {
    used: Window,
    unallocated: Window,
    committed: Committed,
    /// Charged GPUs held now (leases and claims), for caps.
    pub gpus: Gpus,
    /// Unallocated GPUs held now.
    pub unallocated_gpus: Gpus,
    /// Charged GPUs on express nodes held now.
    pub express_gpus: Gpus,
}

impl Account {
    fn new(at: Time, lookback: Span) -> Account {
        Account {
            used: Window::new(at, lookback, 0),
            unallocated: Window::new(at, lookback, 0),
            committed: Committed::default(),
            gpus: Gpus(0),
            unallocated_gpus: Gpus(0),
            express_gpus: Gpus(0),
        }
    }
}

/// The ledger of one pool.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Ledger {
    lookback: Span,
    kernel: Kernel,
    commitments: bool,
    /// Budgets' and users' accounts.
    accounts: Vec<Account>,
    /// What each budget's account is entitled to; users have none of their own.
    entitled: Vec<Option<Window>>,
    /// What a budget lacks of the past that was imputed to it: nobody was there to ask for it, so it does not lapse either.
    imputed: Vec<Option<Window>>,
    /// A budget's account, by the budget's number.
    of_budget: Vec<Option<usize>>,
    of_user: BTreeMap<(BudgetId, UserId), usize>,
    /// GPUs in service, over time.
    capacity: Window,
    /// When the pool first had any.
    born: Option<Time>,
    demand: Demand,
    /// Up to which full hour credit is settled.
    hour: Time,
}

/// Credit lapses by the hour.
const HOUR: Span = Span::hours(1);

/// A multiple of this rate is a whole number of GPU-ms in an hour, 9 for each: what lapses is booked to the GPU-ms as the log says it, or
/// the roundings of all hours of a lookback would add up.
const WHOLE: Rate = 2_500;
const _: () = assert!(WHOLE * HOUR.0 == 9 * GPU);

/// Credit of the last hour that a budget may not keep.
pub(crate) struct Lapse {
    pub budget: BudgetId,
    pub from: Time,
    pub to: Time,
    pub gpu_ms: GpuMs,
}

/// Usage imputed to a budget at its birth.
pub(crate) struct Grant {
    pub budget: BudgetId,
    pub gpu_ms: GpuMs,
}

impl Ledger {
    pub(crate) fn new(at: Time, knobs: &Knobs) -> Ledger {
        Ledger {
            lookback: knobs.lookback,
            kernel: knobs.kernel,
            commitments: knobs.commitments,
            accounts: Vec::new(),
            entitled: Vec::new(),
            imputed: Vec::new(),
            of_budget: Vec::new(),
            of_user: BTreeMap::new(),
            capacity: Window::new(at, knobs.lookback, 0),
            born: None,
            demand: Demand::new(at),
            hour: Time(at.0.div_euclid(HOUR.0) * HOUR.0),
        }
    }

    /// Takes over changed knobs; histories are kept as far as they reach.
    pub(crate) fn set_knobs(&mut self, at: Time, knobs: &Knobs) {
        self.kernel = knobs.kernel;
        self.commitments = knobs.commitments;
        if self.lookback == knobs.lookback {
            return;
        }
        self.lookback = knobs.lookback;
        self.capacity = self.capacity.with_lookback(at, knobs.lookback);
        for account in &mut self.accounts {
            account.used = account.used.with_lookback(at, knobs.lookback);
            account.unallocated = account.unallocated.with_lookback(at, knobs.lookback);
        }
        for window in self.entitled.iter_mut().chain(&mut self.imputed).flatten() {
            *window = window.with_lookback(at, knobs.lookback);
        }
    }

    /// GPUs in service changed by `delta`. The capacity of the pool's first instant is taken to have always been there.
    pub(crate) fn capacity_changed(&mut self, at: Time, delta: i64, tree: &BudgetTree, pool: PoolId) {
        let first = *self.born.get_or_insert(at) == at;
        if first {
            self.capacity = Window::new(at, self.lookback, self.capacity.rate() + delta * GPU);
        } else {
            self.capacity.add(at, delta * GPU);
        }
        for budget in tree.top_down() {
            let Some(index) = self.of_budget.get(budget.spec.id.index()).copied().flatten() else { continue };
            let Some(entitled) = &mut self.entitled[index] else { continue };
            let rate = delta * budget.claim(pool).0 as i64;
            if first {
                *entitled = Window::new(at, self.lookback, entitled.rate() + rate);
                self.imputed[index] = Some(ended(at, entitled.clone()));
            } else {
                entitled.add(at, rate);
            }
            self.demand.set_entitled(index, entitled.rate());
        }
    }

    /// A new version of the tree acts from `at` on; newborn claims get an imputed past.
    pub(crate) fn set_tree(&mut self, at: Time, old: &BudgetTree, new: &BudgetTree, pool: PoolId) -> Vec<Grant> {
        let mut grants = Vec::new();
        for budget in new.top_down() {
            let id = budget.spec.id;
            let index = self.budget_account(at, id);
            let claim = budget.claim(pool).0 as i64;
            let before = old.get(id).map_or(0, |b| b.claim(pool).0 as i64);
            match &mut self.entitled[index] {
                Some(entitled) => {
                    entitled.add(at, (i128::from(claim - before) * i128::from(self.capacity.rate()) / i128::from(GPU)) as i64)
                }
                None if claim > 0 => grants.extend(self.grant(at, budget, index, claim)),
                None => {}
            }
        }
        let place = |budget: &Budget| {
            let account = self.index(budget.spec.id);
            let entitled = self.entitled[account].as_ref().map_or(0, Window::rate);
            Place { account, parent: budget.spec.parent.map(|id| self.index(id)), cap: budget.share(pool).gpus_max, entitled }
        };
        let places: Vec<Place> = new.top_down().map(place).collect();
        self.demand.set_tree(&places);
        grants
    }

    /// For the lookback before a claim was first above zero both sides are imputed: entitled as with the first claim, used = that × its
    /// parent's standing, at most 1. So nobody gets back pay at birth, a fresh history by re-creation, or a sibling's debt.
    fn grant(&mut self, at: Time, budget: &Budget, index: usize, claim: i64) -> Option<Grant> {
        let entitled = self.capacity.scaled(i128::from(claim), i128::from(GPU));
        let parent = budget.spec.parent.map_or(Standing(0), |id| self.standing(at, self.index(id), true));
        let part = parent.0.min(1_000_000);
        let own = std::mem::replace(&mut self.accounts[index].used, entitled.scaled(i128::from(part), 1_000_000));
        // A rate imputed up to now ends now; what the account really uses goes on.
        let imputed_rate = self.accounts[index].used.rate();
        self.accounts[index].used.add(at, own.rate() - imputed_rate);
        let weighted = self.accounts[index].used.weighted(at, self.kernel);
        self.imputed[index] = Some(ended(at, entitled.scaled(1_000_000 - i128::from(part), 1_000_000)));
        self.entitled[index] = Some(entitled);
        let gpu_ms = weighted / (2 * i128::from(self.lookback.0)) / i128::from(GPU);
        (gpu_ms > 0).then_some(Grant { budget: budget.spec.id, gpu_ms: GpuMs(gpu_ms as i64) })
    }

    fn budget_account(&mut self, at: Time, id: BudgetId) -> usize {
        let next = self.accounts.len();
        if self.of_budget.len() <= id.index() {
            self.of_budget.resize(id.index() + 1, None);
        }
        let index = *self.of_budget[id.index()].get_or_insert(next);
        self.add_account(at, index);
        index
    }

    fn add_account(&mut self, at: Time, index: usize) {
        if index == self.accounts.len() {
            self.accounts.push(Account::new(at, self.lookback));
            self.entitled.push(None);
            self.imputed.push(None);
            self.demand.add_account();
        }
    }

    /// Where work of this user in this leaf is charged.
    pub(crate) fn charge_line(&mut self, at: Time, leaf: &Budget, user: UserId) -> Charge {
        let line = self.line(&leaf.line);
        let next = self.accounts.len();
        let index = *self.of_user.entry((leaf.spec.id, user)).or_insert(next);
        self.add_account(at, index);
        Charge { user: index, line }
    }

    /// The accounts of a leaf and its ancestors.
    pub(crate) fn line(&self, budgets: &[BudgetId]) -> Box<[usize]> {
        budgets.iter().map(|id| self.index(*id)).collect()
    }

    /// Whether a charge goes to these.
    pub(crate) fn is_on_line(&self, charge: &Charge, budgets: &[BudgetId]) -> bool {
        charge.line.iter().copied().eq(budgets.iter().map(|id| self.index(*id)))
    }

    /// The account of a budget.
    pub(crate) fn account(&self, id: BudgetId) -> &Account {
        &self.accounts[self.index(id)]
    }

    /// The most charged GPUs that a budget's allocated work may hold.
    pub(crate) fn cap(&self, id: BudgetId) -> Option<Gpus> {
        self.demand.cap(self.index(id))
    }

    /// The index of a budget's account.
    pub(crate) fn index(&self, id: BudgetId) -> usize {
        self.of_budget[id.index()].expect("every budget of the tree has an account")
    }

    fn each(&mut self, charge: &Charge, mut change: impl FnMut(&mut Account)) {
        change(&mut self.accounts[charge.user]);
        for index in &charge.line {
            change(&mut self.accounts[*index]);
        }
    }

    /// Time goes on to `now`.
    pub(crate) fn pass(&mut self, now: Time) {
        self.demand.pass(now);
    }

    /// A gang waits for GPUs (`sign` = 1), or no longer (−1).
    pub(crate) fn wait(&mut self, charge: &Charge, charged: Gpus, sign: i64) {
        self.demand.wait(&charge.line, charged, sign);
    }

    /// A gang holds GPUs, or has them held for it (`sign` = 1), or no longer (−1).
    pub(crate) fn occupy(&mut self, charge: &Charge, charged: Gpus, sign: i64) {
        self.demand.hold(&charge.line, sign * i64::from(charged.0));
    }

    /// When the present hour is over.
    pub(crate) fn next_hour(&self) -> Time {
        self.hour + HOUR
    }

    /// At the end of an hour, up to which time has passed: what a budget was entitled to in it, did not ask for, and would stand below
    /// its floor by, lapses. Each budget by itself, an inner one too: as a side of the tree it is compared by its own standing.
    pub(crate) fn lapse(&mut self, credit_max: Span) -> Vec<Lapse> {
        let from = self.hour;
        self.hour = from + HOUR;
        let mut lapses = Vec::new();
        for (number, index) in self.of_budget.clone().into_iter().enumerate().filter_map(|(number, index)| Some((number, index?))) {
            let unasked = self.demand.take_unasked(index);
            let is_limited = unasked > 0 && credit_max < self.lookback;
            let Some(entitled) = self.entitled[index].as_mut().filter(|_| is_limited) else { continue };
            let credit = i128::from(entitled.rate()) * i128::from(credit_max.0);
            let imputed = self.imputed[index].as_mut().map_or(0, |imputed| imputed.weighted(self.hour, self.kernel));
            let missing = entitled.weighted(self.hour, self.kernel) - imputed - self.used(self.hour, index, true);
            let beyond = missing / (2 * i128::from(self.lookback.0)) - credit;
            let rate = (unasked.min(beyond) / i128::from(HOUR.0)) as i64 / WHOLE * WHOLE;
            if rate > 0 {
                self.accounts[index].used.amend(from, self.hour, rate);
                let gpu_ms = GpuMs((i128::from(rate) * i128::from(HOUR.0) / i128::from(GPU)) as i64);
                lapses.push(Lapse { budget: BudgetId(number as u32), from, to: self.hour, gpu_ms });
            }
        }
        lapses
    }

    /// From `at` on, `gpus` more (or fewer) are charged.
    pub(crate) fn charge(&mut self, at: Time, charge: &Charge, gpus: i64) {
        self.each(charge, |a| a.used.add(at, gpus * GPU));
    }

    /// A charge of the past is cancelled.
    pub(crate) fn refund(&mut self, charge: &Charge, from: Time, to: Time, gpus: Gpus) {
        self.each(charge, |a| a.used.amend(from, to, -i64::from(gpus.0) * GPU));
    }

    /// From `at` on, unallocated work holds `gpus` more (or fewer).
    pub(crate) fn use_unallocated(&mut self, at: Time, charge: &Charge, gpus: i64) {
        self.each(charge, |a| {
            a.unallocated.add(at, gpus * GPU);
            a.unallocated_gpus = Gpus((i64::from(a.unallocated_gpus.0) + gpus) as u32);
        });
    }

    /// Charged GPUs held (leases and claims) change by `gpus`, `express` of them on express nodes.
    pub(crate) fn hold_gpus(&mut self, charge: &Charge, gpus: i64, express: i64) {
        self.each(charge, |a| {
            a.gpus = Gpus((i64::from(a.gpus.0) + gpus) as u32);
            a.express_gpus = Gpus((i64::from(a.express_gpus.0) + express) as u32);
        });
    }

    /// A contract that has not begun is committed whole (or, negative, no longer).
    pub(crate) fn commit_whole(&mut self, charge: &Charge, contract: GpuMs) {
        self.each(charge, |a| a.committed.whole += contract);
    }

    /// A running lease is committed until its protection ends (`sign` = 1), or no longer (−1).
    pub(crate) fn commit_running(&mut self, charge: &Charge, gpus: Gpus, until: Time, sign: i64) {
        let gpus = sign * i64::from(gpus.0);
        self.each(charge, |a| {
            a.committed.running += gpus;
            a.committed.running_until += i128::from(gpus) * i128::from(until.0);
        });
    }

    /// How much of what it was entitled to an account has had, with or without what is committed.
    pub(crate) fn standing(&mut self, at: Time, index: usize, with_committed: bool) -> Standing {
        let Some(entitled) = &mut self.entitled[index] else { return Standing::LAST };
        let entitled = entitled.weighted(at, self.kernel);
        let used = self.used(at, index, with_committed);
        ratio(used, entitled)
    }

    /// What an account used, and (if asked) has committed, in the scale of [`Window::weighted`].
    pub(crate) fn used(&mut self, at: Time, index: usize, with_committed: bool) -> i128 {
        let account = &mut self.accounts[index];
        let used = account.used.weighted(at, self.kernel);
        if with_committed && self.commitments {
            return used + account.committed.at(at) * i128::from(GPU) * 2 * i128::from(self.lookback.0);
        }
        used
    }

    /// What `gpu_ms` would add to a standing of this account.
    pub(crate) fn standing_of(&mut self, at: Time, index: usize, gpu_ms: GpuMs) -> Standing {
        let Some(entitled) = &mut self.entitled[index] else { return Standing::LAST };
        let entitled = entitled.weighted(at, self.kernel);
        ratio(i128::from(gpu_ms.0) * i128::from(GPU) * 2 * i128::from(self.lookback.0), entitled)
    }

    /// Unallocated usage by weight: what unallocated work is ordered by.
    pub(crate) fn unallocated_standing(&mut self, at: Time, index: usize, weight: u64) -> Standing {
        let used = self.accounts[index].unallocated.weighted(at, self.kernel);
        let capacity = self.capacity.weighted(at, self.kernel);
        ratio(used, capacity / i128::from(GPU) * i128::from(weight))
    }

    /// Feeds what the ledger means at `at`.
    pub(crate) fn hash_at<H: std::hash::Hasher>(&self, at: Time, state: &mut H) {
        use std::hash::Hash;
        (self.lookback, self.kernel, self.commitments).hash(state);
        (&self.of_budget, &self.of_user, self.hour).hash(state);
        self.demand.hash_at(at, state);
        for account in &self.accounts {
            account.used.hash_at(at, state);
            account.unallocated.hash_at(at, state);
            (account.committed.at(at), account.gpus, account.unallocated_gpus, account.express_gpus).hash(state);
        }
        for entitled in self.entitled.iter().chain(&self.imputed).flatten() {
            entitled.hash_at(at, state);
        }
        self.capacity.hash_at(at, state);
    }
}

/// A rate that has been so and ends now.
fn ended(at: Time, mut window: Window) -> Window {
    window.add(at, -window.rate());
    window
}

fn ratio(used: i128, entitled: i128) -> Standing {
    let unit = entitled / 1_000_000;
    if unit <= 0 {
        return Standing::LAST;
    }
    Standing((used.max(0) / unit).min(i128::from(u64::MAX - 1)) as u64)
}
