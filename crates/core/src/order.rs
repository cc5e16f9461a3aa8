//! Who goes first: own share first, then the tree.

use crate::budget::{Budget, BudgetTree};
use crate::cluster::Depth;
use crate::explain::{BudgetStanding, Tier};
use crate::id::{BudgetId, PoolId, WorkloadId};
use crate::ledger::Ledger;
use crate::pool::Pool;
use crate::quantity::{Standing, Time};
use crate::queue::{First, ShapeId};
use std::collections::BTreeSet;

/// A leaf with shapes that have not been tried in this cycle.
pub(crate) struct OpenLeaf {
    pub leaf: BudgetId,
    pub allocated: bool,
    pub shapes: Vec<ShapeId>,
    /// How far each of `shapes` may have to reach; `None` was never tried.
    pub depths: Vec<Option<Depth>>,
    /// Workloads that were tried and stopped by something that concerns them alone.
    pub skip: BTreeSet<WorkloadId>,
    /// The first of each of `shapes`, the leaf's first last; none if that is to be found out anew.
    pub firsts: Vec<First>,
}

impl OpenLeaf {
    pub(crate) fn new(leaf: BudgetId, allocated: bool) -> OpenLeaf {
        OpenLeaf { leaf, allocated, shapes: Vec::new(), depths: Vec::new(), skip: BTreeSet::new(), firsts: Vec::new() }
    }

    pub(crate) fn push(&mut self, shape: ShapeId, depth: Option<Depth>) {
        if self.shapes.is_empty() {
            self.shapes.reserve(16);
            self.depths.reserve(16);
        }
        self.shapes.push(shape);
        self.depths.push(depth);
    }

    /// Keeps the shapes for which this holds.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(ShapeId, Option<Depth>) -> bool) {
        let mut kept = 0;
        for index in 0..self.shapes.len() {
            if keep(self.shapes[index], self.depths[index]) {
                self.shapes[kept] = self.shapes[index];
                self.depths[kept] = self.depths[index];
                kept += 1;
            }
        }
        self.shapes.truncate(kept);
        self.depths.truncate(kept);
        let shapes = &self.shapes;
        self.firsts.retain(|first| shapes.contains(&first.shape));
    }
}

/// Standings of one cycle, each computed once until something is charged to it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Standings {
    with_committed: Memo<Standing>,
    without_committed: Memo<Standing>,
    /// What users' accounts used, with what is committed.
    of_users: Memo<i128>,
    /// Of unallocated usage: a cycle's starts do not change them.
    unallocated: Memo<Standing>,
}

/// Values by account, forgotten all at once by counting up.
#[derive(Clone, Debug, Default)]
struct Memo<T> {
    round: u64,
    values: Vec<(u64, T)>,
}

/// A round that never comes.
const NEVER: u64 = u64::MAX;

impl<T: Copy + Default> Memo<T> {
    fn get(&mut self, account: usize, compute: impl FnOnce() -> T) -> T {
        if self.values.len() <= account {
            self.values.resize(account + 1, (NEVER, T::default()));
        }
        let (round, value) = &mut self.values[account];
        if *round != self.round {
            (*round, *value) = (self.round, compute());
        }
        *value
    }

    fn forget(&mut self, account: usize) {
        if let Some((round, _)) = self.values.get_mut(account) {
            *round = NEVER;
        }
    }
}

impl Standings {
    /// A new cycle begins: everything is computed anew.
    pub(crate) fn begin(&mut self) {
        self.with_committed.round += 1;
        self.without_committed.round += 1;
        self.of_users.round += 1;
        self.unallocated.round += 1;
    }

    pub(crate) fn of(&mut self, pool: &mut Pool, at: Time, budget: BudgetId) -> Standing {
        let index = pool.ledger.index(budget);
        self.with_committed.get(index, || pool.ledger.standing(at, index, true))
    }

    /// The standing without what is committed: the victim's side of a comparison. A cycle's starts do not change it.
    pub(crate) fn used(&mut self, pool: &mut Pool, at: Time, budget: BudgetId) -> Standing {
        let index = pool.ledger.index(budget);
        self.without_committed.get(index, || pool.ledger.standing(at, index, false))
    }

    /// What a user's account used, in the ledger's scale: users of one leaf are equal children of it.
    pub(crate) fn of_user(&mut self, ledger: &mut Ledger, at: Time, account: usize) -> i128 {
        self.of_users.get(account, || ledger.used(at, account, true))
    }

    /// What unallocated work is ordered by.
    fn of_unallocated(&mut self, pool: &mut Pool, tree: &BudgetTree, at: Time, budget: BudgetId) -> Standing {
        let index = pool.ledger.index(budget);
        self.unallocated.get(index, || {
            let weight = weight(tree, tree.get(budget).expect("it is on a leaf's line"), pool.id);
            pool.ledger.unallocated_standing(at, index, weight)
        })
    }

    /// Something was charged to this user's account, the leaf and its ancestors.
    pub(crate) fn forget(&mut self, pool: &Pool, user: usize, budget: &Budget) {
        self.of_users.forget(user);
        for id in &budget.line {
            self.with_committed.forget(pool.ledger.index(*id));
        }
    }
}

/// Whose turn it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    /// Place of the open leaf.
    pub index: usize,
    pub tier: Tier,
    /// Its age told it apart from equals: with other shapes open the turn may be another leaf's.
    pub by_age: bool,
}

/// The open leaf whose turn it is: below its share first, lowest standing first; the rest by the tree.
/// Ties go to the longest eligible, then to the lower budget number, never to a name.
pub(crate) fn next_allocated(open: &[OpenLeaf], pool: &mut Pool, tree: &BudgetTree, standings: &mut Standings, at: Time) -> Option<Turn> {
    let mut best: Option<(Standing, Option<Time>, BudgetId, usize)> = None;
    for (index, leaf) in open.iter().enumerate() {
        let standing = standings.of(pool, at, leaf.leaf);
        if !pool.is_below_share(standing) {
            continue;
        }
        let mut key = (standing, None, leaf.leaf, index);
        if let Some(best) = &mut best
            && best.0 == standing
        {
            best.1 = eligible_since(pool, &open[best.3]);
            key.1 = eligible_since(pool, leaf);
        }
        if best.is_none_or(|b| key < b) {
            best = Some(key);
        }
    }
    if let Some((_, eligible, _, index)) = best {
        return Some(Turn { index, tier: Tier::OwnShare, by_age: eligible.is_some() });
    }
    let mut rank = |pool: &mut Pool, budget: BudgetId| standings.of(pool, at, budget);
    walk(open, pool, tree, &mut rank).map(|(index, by_age)| Turn { index, tier: Tier::Tree, by_age })
}

/// The open leaf whose unallocated work comes next: by the tree, lowest unallocated usage for its weight first.
pub(crate) fn next_unallocated(open: &[OpenLeaf], pool: &mut Pool, tree: &BudgetTree, standings: &mut Standings, at: Time) -> Option<Turn> {
    let mut rank = |pool: &mut Pool, budget: BudgetId| standings.of_unallocated(pool, tree, at, budget);
    walk(open, pool, tree, &mut rank).map(|(index, by_age)| Turn { index, tier: Tier::Idle, by_age })
}

/// From the root, at each level to the child that ranks lowest among those with open work; and whether age told it apart from equals.
fn walk(
    open: &[OpenLeaf],
    pool: &mut Pool,
    tree: &BudgetTree,
    rank: &mut dyn FnMut(&mut Pool, BudgetId) -> Standing,
) -> Option<(usize, bool)> {
    let mut candidates: Vec<(usize, &[BudgetId])> = Vec::with_capacity(open.len());
    candidates.extend(open.iter().enumerate().filter_map(|(i, o)| Some((i, tree.get(o.leaf)?.line.as_slice()))));
    let (mut depth, mut by_age) = (1, false);
    while candidates.len() > 1 {
        // Everybody left shares the ancestors above this depth; a leaf's line runs from itself to the root.
        let at_depth = |line: &[BudgetId]| line.len().checked_sub(depth + 1).map(|i| line[i]);
        let (mut lowest, mut equals): (Option<(Standing, BudgetId)>, Vec<BudgetId>) = (None, Vec::new());
        for child in candidates.iter().filter_map(|(_, line)| at_depth(line)) {
            let standing = rank(pool, child);
            match lowest {
                Some((least, other)) if least < standing || other == child => {}
                Some((least, _)) if least == standing => equals.push(child),
                _ => (lowest, equals) = (Some((standing, child)), Vec::new()),
            }
        }
        let (_, mut chosen) = lowest?;
        if !equals.is_empty() {
            let eligible = |child: BudgetId| {
                let leaves = candidates.iter().filter(|(_, line)| at_depth(line) == Some(child));
                leaves.filter_map(|(i, _)| eligible_since(pool, &open[*i])).min()
            };
            chosen = equals.into_iter().chain([chosen]).min_by_key(|child| (eligible(*child), *child)).expect("there are some");
            by_age = true;
        }
        candidates.retain(|(_, line)| at_depth(line) == Some(chosen));
        depth += 1;
    }
    candidates.first().map(|(index, _)| (*index, by_age))
}

fn eligible_since(pool: &Pool, open: &OpenLeaf) -> Option<Time> {
    let side = if open.allocated { &pool.queue.allocated } else { &pool.queue.unallocated };
    side.get(&open.leaf)?.oldest(&open.shapes, &open.skip).map(|(eligible, _): (Time, WorkloadId)| eligible)
}

/// A budget's weight for unallocated work: its claim; siblings without a claim share the smallest funded one's.
fn weight(tree: &BudgetTree, budget: &Budget, pool: PoolId) -> u64 {
    let claim = budget.claim(pool).0;
    if claim > 0 {
        return claim;
    }
    let siblings = budget.spec.parent.and_then(|id| tree.get(id)).map(|p| p.children.as_slice()).unwrap_or_default();
    let claims = siblings.iter().filter_map(|id| tree.get(*id)).map(|b| b.claim(pool).0);
    let unfunded = claims.clone().filter(|c| *c == 0).count().max(1) as u64;
    claims.filter(|c| *c > 0).min().map_or(1_000_000, |smallest| (smallest / unfunded).max(1))
}

/// The standings from below the root to a leaf, for explanations.
pub(crate) fn standings_down_to(leaf: &Budget, pool: &mut Pool, standings: &mut Standings, at: Time) -> Box<[BudgetStanding]> {
    let below_root = leaf.line.iter().rev().skip(usize::from(leaf.line.len() > 1));
    below_root.map(|id| BudgetStanding { budget: *id, standing: standings.of(pool, at, *id) }).collect()
}
