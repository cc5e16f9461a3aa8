//! The budget tree: who funds whom with which share, and the changes to it.

use crate::event::Rejection;
use crate::id::{BudgetId, PoolId};
use crate::quantity::{Claim, Ppm, Time};
use crate::spec::{BudgetSpec, Changeset, PoolShare};
use std::collections::BTreeMap;

/// One budget in its place.
#[derive(Clone, Debug, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Budget {
    /// As the last changeset stated it.
    pub spec: BudgetSpec,
    /// Its path from the root, for messages.
    pub path: String,
    /// Its children, by number.
    pub children: Vec<BudgetId>,
    /// Itself and its ancestors, from the leaf to the root.
    pub line: Vec<BudgetId>,
    /// Its claim on each pool, by pool number.
    pub claims: Vec<Claim>,
    /// What closes it: itself or an ancestor, the topmost that is closed.
    pub closed_by: Option<BudgetId>,
}

impl Budget {
    /// What it has in `pool`.
    pub fn share(&self, pool: PoolId) -> PoolShare {
        self.spec.pools.get(pool.index()).copied().unwrap_or_default()
    }

    /// Its claim on `pool`.
    pub fn claim(&self, pool: PoolId) -> Claim {
        self.claims.get(pool.index()).copied().unwrap_or_default()
    }

    /// Whether work may be charged to it.
    pub fn is_leaf(&self) -> bool {
        self.children.is_empty()
    }
}

/// A changeset of a later date that would be refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Its place in the list, from 0.
    pub place: usize,
    /// Its date.
    pub at: Time,
    /// Why it would be refused.
    pub rejection: Rejection,
}

/// The highest number of a budget: tables go by it.
const NUMBER_MAX: u32 = 1_000_000;

/// The whole tree of one version.
#[derive(Clone, Debug, Default, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct BudgetTree {
    version: u32,
    budgets: BTreeMap<BudgetId, Budget>,
    root: Option<BudgetId>,
    /// From the root downwards, parents before children.
    top_down: Vec<BudgetId>,
}

impl BudgetTree {
    /// How many changesets made it.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// The root, once there is one.
    pub fn root(&self) -> Option<BudgetId> {
        self.root
    }

    /// A budget by its number.
    pub fn get(&self, id: BudgetId) -> Option<&Budget> {
        self.budgets.get(&id)
    }

    /// All budgets, parents before children.
    pub fn top_down(&self) -> impl Iterator<Item = &Budget> {
        self.top_down.iter().map(|id| &self.budgets[id])
    }

    /// The tree after a changeset, or why it is refused. Nothing of `self` changes.
    ///
    /// # Errors
    /// A stale version, an unknown parent, a second or another root, a budget moved below itself, a name taken, or shares above 100 %.
    pub fn changed(&self, change: &Changeset, pools: usize) -> Result<BudgetTree, Rejection> {
        if change.based_on != self.version {
            return Err(Rejection::StaleVersion { based_on: change.based_on, current: self.version });
        }
        let mut specs: BTreeMap<BudgetId, BudgetSpec> = self.budgets.iter().map(|(id, b)| (*id, b.spec.clone())).collect();
        for spec in &change.budgets {
            if spec.id.0 > NUMBER_MAX {
                let expected = format!("from 0 to {NUMBER_MAX}");
                return Err(Rejection::Request { field: "budget number", value: spec.id.0.to_string(), expected });
            }
            if self.root == Some(spec.id) && spec.parent.is_some() {
                return Err(Rejection::Root { message: format!("{} is the root and stays it", spec.name) });
            }
            specs.insert(spec.id, spec.clone());
        }
        BudgetTree::build(specs, self.version + 1, pools)
    }

    /// The tree after changesets that take effect later, each at its date, in the order of their dates (of equal ones in the order given).
    /// Each is based on the version that it will meet then, whatever it says.
    ///
    /// # Errors
    /// The first that would be refused: its place in the list, its date, and why.
    pub fn changed_later(&self, changes: &[(Time, Changeset)], pools: usize) -> Result<BudgetTree, Broken> {
        let mut order: Vec<usize> = (0..changes.len()).collect();
        order.sort_by_key(|place| changes[*place].0);
        order.into_iter().try_fold(self.clone(), |tree, place| {
            let (at, change) = &changes[place];
            let change = Changeset { based_on: tree.version, ..change.clone() };
            tree.changed(&change, pools).map_err(|rejection| Broken { place, at: *at, rejection })
        })
    }

    /// The line of `id` up to the root in this tree, or nothing if it is not in it.
    pub(crate) fn line(&self, id: BudgetId) -> &[BudgetId] {
        self.get(id).map_or(&[], |budget| &budget.line)
    }

    /// Whether a budget, or one above it, is closed.
    pub(crate) fn closed_by(&self, id: BudgetId) -> Option<BudgetId> {
        self.get(id).and_then(|budget| budget.closed_by)
    }

    fn build(specs: BTreeMap<BudgetId, BudgetSpec>, version: u32, pools: usize) -> Result<BudgetTree, Rejection> {
        let root = single_root(&specs)?;
        let mut children: BTreeMap<BudgetId, Vec<BudgetId>> = BTreeMap::new();
        for spec in specs.values() {
            if let Some(parent) = spec.parent {
                if !specs.contains_key(&parent) {
                    return Err(Rejection::ParentUnknown { budget: spec.name.clone(), parent });
                }
                children.entry(parent).or_default().push(spec.id);
            }
        }
        let mut tree = BudgetTree { version, budgets: BTreeMap::new(), root: Some(root), top_down: Vec::new() };
        let mut next = vec![root];
        while let Some(id) = next.pop() {
            let own_children = children.remove(&id).unwrap_or_default();
            let budget = tree.place(&specs[&id], own_children, pools);
            check_children(&budget, &specs, pools)?;
            next.extend(budget.children.iter().rev());
            tree.top_down.push(id);
            tree.budgets.insert(id, budget);
        }
        if tree.budgets.len() != specs.len() {
            return Err(Rejection::Root { message: "some budgets are their own ancestors".into() });
        }
        Ok(tree)
    }

    /// A budget below its already placed parent.
    fn place(&self, spec: &BudgetSpec, children: Vec<BudgetId>, pools: usize) -> Budget {
        let parent = spec.parent.map(|id| &self.budgets[&id]);
        let share = |pool: usize| spec.pools.get(pool).copied().unwrap_or_default().share;
        let claims = (0..pools).map(|pool| parent.map_or(Claim::WHOLE, |p| p.claims[pool]).child(share(pool))).collect();
        let path = parent.map_or(spec.name.clone(), |p| format!("{}/{}", p.path, spec.name));
        let mut line = vec![spec.id];
        line.extend(parent.iter().flat_map(|p| p.line.iter()));
        let closed_by = parent.and_then(|p| p.closed_by).or(spec.closed.then_some(spec.id));
        Budget { spec: spec.clone(), path, children, line, claims, closed_by }
    }
}

fn single_root(specs: &BTreeMap<BudgetId, BudgetSpec>) -> Result<BudgetId, Rejection> {
    let mut roots = specs.values().filter(|s| s.parent.is_none());
    match (roots.next(), roots.next()) {
        (Some(root), None) => Ok(root.id),
        (None, _) => Err(Rejection::Root { message: "no budget is without a parent".into() }),
        (Some(a), Some(b)) => Err(Rejection::Root { message: format!("both {} and {} are without a parent", a.name, b.name) }),
    }
}

fn check_children(parent: &Budget, specs: &BTreeMap<BudgetId, BudgetSpec>, pools: usize) -> Result<(), Rejection> {
    let mut names: Vec<&str> = parent.children.iter().map(|id| specs[id].name.as_str()).collect();
    names.sort_unstable();
    if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(Rejection::NameTaken { path: format!("{}/{}", parent.path, pair[0]) });
    }
    let above = |sum_ppm: u64| sum_ppm > u64::from(Ppm::ONE.0);
    for pool in 0..pools {
        let share = |id: &BudgetId| specs[id].pools.get(pool).map_or(0, |p| u64::from(p.share.0));
        let sum_ppm: u64 = parent.children.iter().map(share).sum();
        let own = u64::from(parent.share(PoolId(pool as u16)).share.0);
        if above(sum_ppm) || above(own) {
            let sum_ppm = sum_ppm.max(own);
            return Err(Rejection::SharesAbove100 { parent: parent.path.clone(), pool: PoolId(pool as u16), sum_ppm });
        }
    }
    Ok(())
}
