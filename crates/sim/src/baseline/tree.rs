//! The budget tree as far as a baseline needs it: paths, claims, caps on contracts, and who is a leaf.

use std::collections::BTreeMap;
use stipend_core::entry::{BudgetEntry, Entry};
use stipend_core::event::Rejection;
use stipend_core::id::{BudgetId, PoolId};
use stipend_core::quantity::{Claim, Ppm, Span};
use stipend_core::spec::{BudgetSpec, Changeset};

/// What a leaf has in one pool.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    /// Its claim.
    pub(super) claim: Claim,
    /// The longest contract that it and its ancestors allow.
    pub(super) min_runtime_max: Span,
}

/// The budgets by number.
#[derive(Clone, Debug, Default)]
pub(super) struct Tree {
    version: u32,
    budgets: BTreeMap<BudgetId, BudgetSpec>,
    /// By leaf, then by pool.
    leaves: BTreeMap<BudgetId, Vec<Terms>>,
}

impl Tree {
    /// Counts the accepted changesets.
    pub(super) fn version(&self) -> u32 {
        self.version
    }

    /// Takes a changeset and returns the entry that shows the whole tree after it.
    pub(super) fn change(&mut self, change: Changeset) -> Result<Entry, Rejection> {
        if change.based_on != self.version {
            return Err(Rejection::StaleVersion { based_on: change.based_on, current: self.version });
        }
        let mut next = Tree { version: self.version + 1, budgets: self.budgets.clone(), leaves: BTreeMap::new() };
        next.budgets.extend(change.budgets.into_iter().map(|budget| (budget.id, budget)));
        next.check()?;
        next.find_leaves();
        *self = next;
        let budgets = self.budgets.values().map(|spec| self.entry(spec)).collect();
        Ok(Entry::Budgets { version: self.version, author: change.author, reason: change.reason, budgets })
    }

    /// What a leaf has in a pool, or why work may not run in this budget.
    pub(super) fn terms(&self, budget: BudgetId, pool: PoolId) -> Result<Terms, Rejection> {
        match self.leaves.get(&budget) {
            Some(_) if self.is_closed(budget) => Err(Rejection::BudgetClosed { path: self.path(budget) }),
            Some(pools) => Ok(pools.get(pool.index()).copied().unwrap_or(Terms { claim: Claim(0), min_runtime_max: Span(i64::MAX) })),
            None if self.budgets.contains_key(&budget) => Err(Rejection::BudgetNotALeaf { path: self.path(budget) }),
            None => Err(Rejection::BudgetUnknown(budget)),
        }
    }

    /// Whether a budget that exists, or one above it, takes no new work. What waits already is none of a baseline's business.
    fn is_closed(&self, budget: BudgetId) -> bool {
        let spec = &self.budgets[&budget];
        spec.closed || spec.parent.is_some_and(|parent| self.is_closed(parent))
    }

    /// The leaves with a claim on a pool, by number.
    pub(super) fn claims(&self, pool: PoolId) -> Vec<(BudgetId, Claim)> {
        let claim = |(&id, pools): (&BudgetId, &Vec<Terms>)| Some((id, pools.get(pool.index())?.claim));
        self.leaves.iter().filter_map(claim).filter(|(_, claim)| claim.0 > 0).collect()
    }

    /// All budgets, by number.
    pub(super) fn budgets(&self) -> impl Iterator<Item = &BudgetSpec> {
        self.budgets.values()
    }

    /// The full path of a budget that exists.
    pub(super) fn path(&self, budget: BudgetId) -> String {
        let spec = &self.budgets[&budget];
        spec.parent.map_or(spec.name.clone(), |parent| format!("{}/{}", self.path(parent), spec.name))
    }

    fn entry(&self, spec: &BudgetSpec) -> BudgetEntry {
        let claims = (0..spec.pools.len()).map(|pool| self.line(spec.id, pool).claim).collect();
        BudgetEntry { spec: spec.clone(), path: self.path(spec.id), claims }
    }

    fn find_leaves(&mut self) {
        let pools = self.budgets.values().map(|b| b.pools.len()).max().unwrap_or(0);
        let is_leaf = |id: BudgetId| !self.budgets.values().any(|b| b.parent == Some(id));
        let leaves = self.budgets.keys().filter(|id| is_leaf(**id));
        self.leaves = leaves.map(|&id| (id, (0..pools).map(|pool| self.line(id, pool)).collect())).collect();
    }

    /// What is left of the whole pool down the path to a budget.
    fn line(&self, budget: BudgetId, pool: usize) -> Terms {
        let spec = &self.budgets[&budget];
        let own = spec.pools.get(pool).copied().unwrap_or_default();
        let whole = Terms { claim: Claim::WHOLE, min_runtime_max: Span(i64::MAX) };
        let above = spec.parent.map_or(whole, |parent| self.line(parent, pool));
        let min_runtime_max = own.min_runtime_max.map_or(above.min_runtime_max, |cap| cap.min(above.min_runtime_max));
        Terms { claim: above.claim.child(own.share), min_runtime_max }
    }

    /// There is one root, every path leads to it, and children's shares sum to at most the whole.
    fn check(&self) -> Result<(), Rejection> {
        let roots = self.budgets.values().filter(|b| b.parent.is_none()).count();
        if roots != 1 {
            return Err(Rejection::Root { message: format!("there must be exactly one root, there are {roots}") });
        }
        let mut sums: BTreeMap<(BudgetId, usize), u64> = BTreeMap::new();
        for budget in self.budgets.values() {
            let Some(parent) = budget.parent else { continue };
            if !self.reaches_root(budget) {
                return Err(Rejection::ParentUnknown { budget: budget.name.clone(), parent });
            }
            for (pool, share) in budget.pools.iter().enumerate() {
                *sums.entry((parent, pool)).or_default() += u64::from(share.share.0);
            }
        }
        let Some(((parent, pool), sum_ppm)) = sums.into_iter().find(|&(_, sum)| sum > u64::from(Ppm::ONE.0)) else { return Ok(()) };
        Err(Rejection::SharesAbove100 { parent: self.path(parent), pool: PoolId(pool as u16), sum_ppm })
    }

    /// Whether a budget's path ends at the root, neither at a missing parent nor in a circle.
    fn reaches_root(&self, budget: &BudgetSpec) -> bool {
        let mut at = Some(budget);
        for _ in 0..self.budgets.len() {
            match at {
                Some(BudgetSpec { parent: None, .. }) => return true,
                Some(BudgetSpec { parent: Some(parent), .. }) => at = self.budgets.get(parent),
                None => return false,
            }
        }
        false
    }
}
