//! Who has used how much, and the fair-share factor that follows from it.

use super::super::tree::Tree;
use super::ranking::{self, Branch, What};
use super::usage::Usage;
use std::collections::BTreeMap;
use stipend_core::id::{BudgetId, PoolId, UserId};
use stipend_core::quantity::{Ppm, Span, Time};
use stipend_core::spec::BudgetSpec;

/// A user in an account (Slurm's *association*), by number.
pub(super) type Member = usize;

/// All users of all accounts. Users of one account have equal shares.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    numbers: BTreeMap<(BudgetId, UserId), Member>,
    usage: Vec<Usage>,
    factors: Vec<Ppm>,
}

impl Accounts {
    /// The number of a user in an account; whether it is a new one, whose factor must be computed before it means anything.
    pub(super) fn member(&mut self, at: Time, leaf: BudgetId, user: UserId) -> (Member, bool) {
        let count = self.usage.len();
        let number = *self.numbers.entry((leaf, user)).or_insert(count);
        if number == count {
            self.usage.push(Usage::none(at));
            self.factors.push(Ppm(0));
        }
        (number, number == count)
    }

    /// From now on so many more GPUs of a member count, or so many fewer.
    pub(super) fn change(&mut self, at: Time, half_life: Span, member: Member, gpus: i64) {
        self.usage[member].change(at, half_life, gpus);
    }

    /// A member's factor as computed last.
    pub(super) fn factor(&self, member: Member) -> Ppm {
        self.factors[member]
    }

    /// Computes everybody's factor.
    pub(super) fn rank(&mut self, at: Time, half_life: Span, tree: &Tree, pool: PoolId) {
        let mut users: BTreeMap<BudgetId, Vec<Branch>> = BTreeMap::new();
        for (&(leaf, _), &number) in &self.numbers {
            let usage = self.usage[number].settle(at, half_life);
            users.entry(leaf).or_default().push(Branch { shares: 1, usage, what: What::User(number) });
        }
        let mut children: BTreeMap<Option<BudgetId>, Vec<&BudgetSpec>> = BTreeMap::new();
        for budget in tree.budgets() {
            children.entry(budget.parent).or_default().push(budget);
        }
        let mut root = Branch { shares: 1, usage: 0.0, what: What::Account(branches(None, &children, &mut users, pool)) };
        root.sum();
        self.factors = ranking::factors(&root, self.usage.len());
    }
}

/// The accounts and users below a budget.
fn branches(
    of: Option<BudgetId>,
    children: &BTreeMap<Option<BudgetId>, Vec<&BudgetSpec>>,
    users: &mut BTreeMap<BudgetId, Vec<Branch>>,
    pool: PoolId,
) -> Vec<Branch> {
    let own = of.and_then(|budget| users.remove(&budget)).unwrap_or_default();
    let accounts: Vec<Branch> = children
        .get(&of)
        .into_iter()
        .flatten()
        .map(|budget| {
            let shares = budget.pools.get(pool.index()).map_or(0, |share| share.share.0);
            Branch { shares, usage: 0.0, what: What::Account(branches(Some(budget.id), children, users, pool)) }
        })
        .collect();
    own.into_iter().chain(accounts).collect()
}
