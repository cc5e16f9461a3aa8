//! A changeset takes effect: claims from now on, to whom moved work will be charged, and what a closed budget still lets in.

use crate::budget::BudgetTree;
use crate::claim::unclaim;
use crate::completion::by_completion_from_now;
use crate::entry::{BudgetEntry, Entry, Unreserved};
use crate::event::Rejection;
use crate::explain::Why;
use crate::id::{BudgetId, WorkloadId};
use crate::lease::commit;
use crate::pool::Pool;
use crate::queue::leave_queues;
use crate::reservation::{drop_unfunded, give_up};
use crate::scheduler::Scheduler;
use crate::spec::Changeset;
use crate::workload::{Phase, Workload};

pub(crate) fn change_budgets(s: &mut Scheduler, change: &Changeset, log: &mut Vec<Entry>) -> Result<(), Rejection> {
    let new = s.tree.changed(change, s.pools.len())?;
    // Work is charged to leaves: a budget with work cannot become an inner one.
    for (_, workload) in s.workloads.iter() {
        if let Some(budget) = new.get(workload.spec.budget)
            && !budget.is_leaf()
        {
            return Err(Rejection::LeafInUse { path: budget.path.clone() });
        }
    }
    let budgets = new.top_down().map(|b| BudgetEntry { spec: b.spec.clone(), path: b.path.clone(), claims: b.claims.clone() }).collect();
    log.push(Entry::Budgets { version: new.version(), author: change.author.clone(), reason: change.reason.clone(), budgets });
    let old = std::mem::replace(&mut s.tree, new);
    by_completion_from_now(s, &old);
    for pool in &mut s.pools {
        let id = pool.id;
        for grant in pool.ledger.set_tree(s.now, &old, &s.tree, id) {
            log.push(Entry::Granted { budget: grant.budget, pool: id, gpu_ms: grant.gpu_ms });
        }
        pool.queue.reorder(&old, &s.tree, &s.workloads);
        pool.stir();
    }
    move_work(s, &old);
    close_and_reopen(s, &old, log);
    drop_unfunded(s, log);
    Ok(())
}

/// The workloads of leaves for which this holds.
fn of_leaves(s: &Scheduler, is_meant: impl Fn(BudgetId) -> bool) -> Vec<WorkloadId> {
    let leaves: Vec<BudgetId> = s.tree.top_down().filter(|budget| budget.is_leaf()).map(|budget| budget.spec.id).collect();
    let meant: Vec<BudgetId> = leaves.into_iter().filter(|leaf| is_meant(*leaf)).collect();
    if meant.is_empty() {
        return Vec::new();
    }
    s.workloads.iter().filter(|(_, workload)| meant.contains(&workload.spec.budget)).map(|(id, _)| WorkloadId(id)).collect()
}

/// Work of a budget that moved follows it, but for what is charged already.
fn move_work(s: &mut Scheduler, old: &BudgetTree) {
    for id in of_leaves(s, |leaf| old.get(leaf).is_some() && old.line(leaf) != s.tree.line(leaf)) {
        let workload = s.workloads.get_mut(id.0).expect("just listed");
        follow(&mut s.pools, workload, &s.tree);
    }
}

/// A workload is charged to the ancestors that its leaf has now. Where it has GPUs, or has them held for it, it is charged already, and
/// stays with those it began with to its end; what it is promised counts for the new ones.
pub(crate) fn follow(pools: &mut [Pool], workload: &mut Workload, tree: &BudgetTree) {
    let leaf = workload.spec.budget;
    let charged_in = matches!(workload.phase, Phase::Claiming(_) | Phase::Leased(_)).then_some(workload.terms.pool);
    let followers: Vec<_> = workload.all_terms().map(|terms| terms.pool).filter(|pool| charged_in != Some(*pool)).collect();
    for id in followers {
        let pool = &mut pools[id.index()];
        if pool.ledger.is_on_line(&workload.in_pool(id).charge, tree.line(leaf)) {
            continue;
        }
        let is_promised = workload.reservation_in(id).is_some();
        if is_promised {
            commit(pool, workload, &[], -1);
        }
        let line = pool.ledger.line(tree.line(leaf));
        workload.in_pool_mut(id).charge.line = line;
        if is_promised {
            commit(pool, workload, &[], 1);
        }
    }
}

/// What waits in a budget that closes is held, and waits again when it is open.
fn close_and_reopen(s: &mut Scheduler, old: &BudgetTree, log: &mut Vec<Entry>) {
    for id in of_leaves(s, |leaf| old.closed_by(leaf) != s.tree.closed_by(leaf)) {
        let workload = s.workloads.get(id.0).expect("just listed");
        match (s.tree.closed_by(workload.spec.budget), &workload.phase) {
            (Some(_), Phase::Claiming(_)) => {
                unclaim(s, id, &Why::ClaimantGone, log);
                hold_closed(s, id, log);
            }
            (Some(_), Phase::Waiting) => hold_closed(s, id, log),
            (None, Phase::Held { by_closing: true, .. }) => crate::apply::wait_anew(s, id, log),
            // What yielded to a claimant is held when that has started; what runs keeps its contract.
            _ => {}
        }
    }
}

fn hold_closed(s: &mut Scheduler, id: WorkloadId, log: &mut Vec<Entry>) {
    give_up(s, id, Unreserved::Budget, log);
    let workload = s.workloads.get_mut(id.0).expect("it is live");
    leave_queues(&mut s.pools, id, workload, &s.tree);
    keep_closed(workload, id, &s.tree, log);
}

/// A workload of a closed budget is held; it waits in no queue.
pub(crate) fn keep_closed(workload: &mut Workload, id: WorkloadId, tree: &BudgetTree, log: &mut Vec<Entry>) {
    let closed = tree.closed_by(workload.spec.budget).and_then(|budget| tree.get(budget)).expect("its budget is closed");
    let why = format!("the budget {} is closed", closed.path);
    workload.phase = Phase::Held { why: why.clone(), by_closing: true };
    log.push(Entry::Held { workload: id, why });
}
