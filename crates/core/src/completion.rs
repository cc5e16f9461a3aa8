//! The order by completion: what ended work teaches, and the head start that it gives to work that waits.

use crate::budget::BudgetTree;
use crate::entry::Outcome;
use crate::id::{BudgetId, PoolId, WorkloadId};
use crate::pool::Pool;
use crate::quantity::Span;
use crate::queue::order_of;
use crate::record::{Kin, Records};
use crate::scheduler::Scheduler;
use crate::spec::{LeafOrder, WorkloadSpec};
use crate::table::Table;
use crate::workload::Workload;
use std::collections::BTreeSet;

/// Head starts are told apart in so many steps: less would be noise, and every step moves work.
const HEAD_START_STEPS: i64 = 32;

/// The head start that its past gives a workload: the part of its expected run time that leads to a completion, in steps, of the most
/// that its pools give.
pub(crate) fn head_start(pools: &[Pool], records: &Records, workload: &Workload) -> Span {
    let most = workload.all_terms().map(|terms| pools[terms.pool.index()].knobs.head_start_max).max().unwrap_or_default();
    let step = i64::from(records.estimate(Kin::from(&*workload.spec), workload.ran).useful.0) * HEAD_START_STEPS / 1_000_000;
    Span(most.0 / HEAD_START_STEPS * step)
}

/// Leaves whose order is by completion from now on: their work has its head start before it is sorted by it.
pub(crate) fn by_completion_from_now(s: &mut Scheduler, old: &BudgetTree) {
    let is_new = |leaf: BudgetId| order_of(&s.tree, leaf) == LeafOrder::Completion && order_of(old, leaf) != LeafOrder::Completion;
    let leaves: BTreeSet<BudgetId> = s.tree.top_down().map(|budget| budget.spec.id).filter(|leaf| is_new(*leaf)).collect();
    let concerned: Vec<u32> = s.workloads.iter().filter(|(_, workload)| leaves.contains(&workload.spec.budget)).map(|(id, _)| id).collect();
    for id in concerned {
        let workload = s.workloads.get_mut(id).expect("it is live");
        workload.head_start = head_start(&s.pools, &s.records, workload);
    }
}

/// A family has news: its work that waits in a leaf whose order is by completion moves to its new place. That is an
/// estimate for each of them; only a step of the family moves any.
fn family_has_news(pools: &mut [Pool], records: &Records, spec: &WorkloadSpec, workloads: &mut Table<Workload>, tree: &BudgetTree) {
    let Some(family) = spec.family.filter(|_| order_of(tree, spec.budget) == LeafOrder::Completion) else { return };
    let sides = |pool: &Pool| {
        [pool.queue.allocated.get(&spec.budget), pool.queue.unallocated.get(&spec.budget)]
            .map(|leaf| leaf.into_iter().flat_map(|leaf| leaf.of_family(family)).collect::<Vec<_>>())
            .concat()
    };
    let waiting: BTreeSet<WorkloadId> = pools.iter().flat_map(sides).collect();
    for id in waiting {
        let workload = workloads.get_mut(id.0).expect("waiting work is live");
        let head_start = head_start(pools, records, workload);
        if head_start == workload.head_start {
            continue;
        }
        let queued: Vec<PoolId> = workload.queued_in().collect();
        for pool in &queued {
            pools[pool.index()].queue.remove(id, workload, tree);
        }
        workload.head_start = head_start;
        for pool in &queued {
            pools[pool.index()].queue.insert(id, workload, tree);
        }
    }
}

/// What its own doing ended is told to the records; what others ended says nothing of it.
pub(crate) fn learn(s: &mut Scheduler, ended: &Workload, outcome: Outcome) {
    let completed = match outcome {
        Outcome::Completed => true,
        Outcome::Failed | Outcome::TimedOut => false,
        Outcome::Preempted | Outcome::Cancelled | Outcome::NodeLost | Outcome::StartTimeout => return,
    };
    s.records.ended(Kin::from(&*ended.spec), ended.ran, completed);
    family_has_news(&mut s.pools, &s.records, &ended.spec, &mut s.workloads, &s.tree);
}
