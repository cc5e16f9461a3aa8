//! The order by completion: what ended work teaches, and the head starts that it gives to work that waits.

use crate::budget::BudgetTree;
use crate::entry::Outcome;
use crate::id::{BudgetId, FamilyId, PoolId, UserId, WorkloadId};
use crate::pool::Pool;
use crate::quantity::Span;
use crate::queue::order_of;
use crate::record::{Kin, Records};
use crate::scheduler::Scheduler;
use crate::spec::{LeafOrder, WorkloadSpec};
use crate::table::Table;
use crate::workload::Workload;
use std::collections::{BTreeMap, BTreeSet};

/// Head starts are told apart in so many steps: less would be noise, and every step moves work.
const STEPS: i64 = 32;

/// Work of one leaf that nothing tells apart but its age: the same family and user.
pub(crate) type Equals = (Option<FamilyId>, UserId);

pub(crate) fn equals(spec: &WorkloadSpec) -> Equals {
    (spec.family, spec.user)
}

/// What the order by completion knows.
#[derive(Clone, Debug, Default, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Completion {
    pub records: Records,
    /// The step of work that waits and has not run, by leaf: equal work has one, whenever it came, so that it keeps its order among itself.
    steps: BTreeMap<(BudgetId, Equals), i64>,
}

impl Completion {
    /// The head start with which a workload joins its leaf: the part of its expected run time that leads to a completion, in steps, of the
    /// most that its pools give.
    pub(crate) fn head_start(&mut self, pools: &[Pool], workload: &Workload) -> Span {
        let now = || step(&self.records, Kin::from(&*workload.spec), workload.ran);
        let place = (workload.spec.budget, equals(&workload.spec));
        let step = if workload.ran > Span::ZERO { now() } else { *self.steps.entry(place).or_insert_with(now) };
        let most = workload.all_terms().map(|terms| pools[terms.pool.index()].knobs.head_start_max).max().unwrap_or_default();
        Span(most.0 / STEPS * step)
    }

    /// Something of a leaf ended: equal work whose step is another one now, all of which is to move. What nobody waits for is forgotten.
    fn renew(&mut self, leaf: BudgetId, is_waiting: impl Fn(Equals) -> bool) -> Vec<Equals> {
        let of_leaf = (leaf, (None, UserId(0)))..=(leaf, (Some(FamilyId(u64::MAX)), UserId(u32::MAX)));
        let given: Vec<(Equals, i64)> = self.steps.range(of_leaf).map(|((_, equals), step)| (*equals, *step)).collect();
        let mut moved = Vec::new();
        for (equals, given) in given {
            if !is_waiting(equals) {
                self.steps.remove(&(leaf, equals));
                continue;
            }
            let (family, user) = equals;
            let now = step(&self.records, Kin { family, user, budget: leaf }, Span::ZERO);
            if now != given {
                self.steps.insert((leaf, equals), now);
                moved.push(equals);
            }
        }
        moved
    }
}

fn step(records: &Records, kin: Kin, ran: Span) -> i64 {
    i64::from(records.estimate(kin, ran).useful.0) * STEPS / 1_000_000
}

/// Leaves whose order is by completion from now on: their work has its head start before it is sorted by it.
pub(crate) fn by_completion_from_now(s: &mut Scheduler, old: &BudgetTree) {
    let is_new = |leaf: BudgetId| order_of(&s.tree, leaf) == LeafOrder::Completion && order_of(old, leaf) != LeafOrder::Completion;
    let leaves: BTreeSet<BudgetId> = s.tree.top_down().map(|budget| budget.spec.id).filter(|leaf| is_new(*leaf)).collect();
    s.completion.steps.retain(|(leaf, _), _| !leaves.contains(leaf));
    let concerned: Vec<u32> = s.workloads.iter().filter(|(_, workload)| leaves.contains(&workload.spec.budget)).map(|(id, _)| id).collect();
    for id in concerned {
        let workload = s.workloads.get_mut(id).expect("it is live");
        workload.head_start = s.completion.head_start(&s.pools, workload);
    }
}

/// What its own doing ended is told to the records; what others ended says nothing of it.
pub(crate) fn learn(s: &mut Scheduler, ended: &Workload, outcome: Outcome) {
    let completed = match outcome {
        Outcome::Completed => true,
        Outcome::Failed | Outcome::TimedOut => false,
        Outcome::Preempted | Outcome::Cancelled | Outcome::NodeLost | Outcome::StartTimeout => return,
    };
    s.completion.records.ended(Kin::from(&*ended.spec), ended.ran, completed);
    let leaf = ended.spec.budget;
    if order_of(&s.tree, leaf) != LeafOrder::Completion {
        return;
    }
    let moved = s.completion.renew(leaf, |equals| s.pools.iter().any(|pool| waiting(pool, leaf, equals).next().is_some()));
    for equals in moved {
        let ids: BTreeSet<WorkloadId> = s.pools.iter().flat_map(|pool| waiting(pool, leaf, equals)).collect();
        ids.into_iter().for_each(|id| place_anew(&mut s.pools, &mut s.completion, &mut s.workloads, id, &s.tree));
    }
}

/// What waits of equal work in a pool.
fn waiting(pool: &Pool, leaf: BudgetId, equals: Equals) -> impl Iterator<Item = WorkloadId> {
    let sides = [pool.queue.allocated.get(&leaf), pool.queue.unallocated.get(&leaf)];
    sides.into_iter().flatten().flat_map(move |queue| queue.equal(equals))
}

/// A waiting workload moves to the place that its head start gives it now.
fn place_anew(pools: &mut [Pool], completion: &mut Completion, workloads: &mut Table<Workload>, id: WorkloadId, tree: &BudgetTree) {
    let workload = workloads.get_mut(id.0).expect("waiting work is live");
    let head_start = completion.head_start(pools, workload);
    let queued: Vec<PoolId> = workload.queued_in().collect();
    for pool in &queued {
        pools[pool.index()].queue.remove(id, workload, tree);
    }
    workload.head_start = head_start;
    for pool in &queued {
        pools[pool.index()].queue.insert(id, workload, tree);
    }
}
