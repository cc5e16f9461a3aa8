//! The scheduler: all state, and the few ways to touch it.

use crate::budget::BudgetTree;
use crate::completion::Completion;
use crate::cycle;
use crate::digest::Digest;
use crate::doubt::Doubts;
use crate::entry::Entry;
use crate::event::{Event, Rejection};
use crate::explain::{Blocker, Explanation, PoolExplanation};
use crate::id::{NodeId, PoolId, WorkloadId};
use crate::ledger::Lapse;
use crate::order::{Standings, standings_down_to};
use crate::plan::Plan;
use crate::pool::Pool;
use crate::quantity::{Standing, Time};
use crate::submit::{check_in_pool, contract};
use crate::table::Table;
use crate::waits::Waits;
use crate::workload::{Phase, Workload};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A pure state machine: facts in by [`apply`](Scheduler::apply), decisions out by [`decide`](Scheduler::decide).
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Scheduler {
    pub(crate) now: Time,
    pub(crate) tree: BudgetTree,
    pub(crate) pools: Vec<Pool>,
    pub(crate) workloads: Table<Workload>,
    /// What became of ended work, and what that gives to work that waits.
    pub(crate) completion: Completion,
    /// Whose `restart` is not believed.
    pub(crate) doubts: Doubts,
    /// How long work waited, and what that says of work that waits.
    pub(crate) waits: Waits,
    /// The lowest workload number that was never used.
    pub(crate) next_workload: u32,
    /// The lowest reservation number that was never used.
    pub(crate) next_reservation: u32,
    /// The pool of each node, by node number.
    pub(crate) node_pools: Vec<Option<PoolId>>,
    /// Memory that cycles use again; it carries nothing from one to the next.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(crate) standings: Standings,
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(crate) round: Vec<usize>,
}

impl Scheduler {
    /// An empty scheduler at a point in time. Pools, budgets and nodes come as events.
    pub fn new(at: Time) -> Scheduler {
        Scheduler {
            now: at,
            tree: BudgetTree::default(),
            pools: Vec::new(),
            workloads: Table::default(),
            completion: Completion::default(),
            doubts: Doubts::default(),
            waits: Waits::default(),
            next_workload: 0,
            next_reservation: 0,
            node_pools: Vec::new(),
            standings: Standings::default(),
            round: Vec::new(),
        }
    }

    /// Takes one fact in; never plans. What follows from it at once goes onto `log`.
    ///
    /// # Errors
    /// Bad, late or duplicate facts are refused with a typed reason; the state and the log are as before, but for what time alone did.
    pub fn apply(&mut self, at: Time, event: &Event, log: &mut Vec<Entry>) -> Result<(), Rejection> {
        self.advance(at, log);
        crate::apply::apply(self, event, log)
    }

    /// Decides what to do now and does it: the same as [`plan`](Scheduler::plan) followed by [`commit`](Scheduler::commit), in one pass.
    pub fn decide(&mut self, at: Time, log: &mut Vec<Entry>) -> Plan {
        self.advance(at, log);
        cycle::run(self, log)
    }

    /// What would be decided at `at`; changes nothing.
    pub fn plan(&self, at: Time) -> Plan {
        self.clone().decide(at, &mut Vec::new())
    }

    /// Does what an earlier plan of this very state decided, without deciding anew: how a journal is replayed.
    pub fn commit(&mut self, plan: &Plan, log: &mut Vec<Entry>) {
        if let Some(at) = plan.at {
            self.advance(at, log);
            cycle::replay(self, plan, log);
        }
    }

    /// When to decide again even if no event comes.
    pub fn next_wakeup(&self) -> Option<Time> {
        let of_pool = |pool: &Pool| {
            let timers = pool.protections.first().map(|p| p.0).into_iter().chain(pool.timers.first().map(|t| t.0));
            let drains = pool.draining.iter().filter_map(|id| pool.cluster.at(*id).drain_until);
            let reservations = pool.reservations.next_look(self.now, pool.knobs.reservations_max);
            // A reservation at its date waits for nobody's retry.
            let slow = pool.recovery.as_ref().filter(|_| !pool.reservations.by_id.is_empty()).map(|slow| slow.next_minute(self.now));
            let hour = (pool.knobs.credit_max < pool.knobs.lookback).then(|| pool.ledger.next_hour());
            timers.chain(drains.filter(|until| *until > self.now)).chain([pool.retry_at, reservations]).chain(hour).chain(slow).min()
        };
        self.pools.iter().filter_map(of_pool).filter(|at| *at < Time::MAX).min()
    }

    /// The core's time: the largest it was told.
    pub fn now(&self) -> Time {
        self.now
    }

    /// The budget tree.
    pub fn tree(&self) -> &BudgetTree {
        &self.tree
    }

    /// How many workloads have not ended.
    pub fn live_workloads(&self) -> usize {
        self.workloads.len()
    }

    /// A budget's standing in a pool now.
    pub fn standing(&self, pool: PoolId, budget: crate::id::BudgetId) -> Option<Standing> {
        let pool = self.pools.get(pool.index())?;
        self.tree.get(budget)?;
        Some(pool.clone_ledger_standing(self.now, budget))
    }

    /// The standings of all budgets in a pool now, and whether each is below its share; parents before children.
    pub fn standings(&self, pool: PoolId) -> Vec<(crate::id::BudgetId, Standing, bool)> {
        let Some(pool) = self.pools.get(pool.index()) else { return Vec::new() };
        let mut ledger = pool.ledger.clone();
        let of = |budget: &crate::budget::Budget| {
            let index = ledger.index(budget.spec.id);
            let standing = ledger.standing(self.now, index, true);
            (budget.spec.id, standing, pool.is_below_share(standing))
        };
        self.tree.top_down().map(of).collect()
    }

    /// The knobs of a pool, if there is such a pool.
    pub fn knobs(&self, pool: PoolId) -> Option<&crate::knobs::Knobs> {
        self.pools.get(pool.index()).map(|pool| &pool.knobs)
    }

    /// The lowest workload number that was never used.
    pub fn next_workload(&self) -> WorkloadId {
        WorkloadId(self.next_workload)
    }

    /// Where a waiting workload stands in each pool that it names and what stops it there, the binding limit first; of one that runs
    /// unallocated and waits for its turn, in the pool where it runs. `None` if it is not waiting.
    pub fn explain(&self, id: WorkloadId) -> Option<Explanation> {
        let workload = self.workloads.get(id.0)?;
        if matches!(workload.phase, Phase::Leased(_)) && !workload.is_early() {
            return None;
        }
        let pools = workload.spec.pools.iter().filter_map(|pool| self.explain_in(pool, id, workload)).collect();
        Some(Explanation { workload: id, at: self.now, pools })
    }

    fn explain_in(&self, id: PoolId, workload_id: WorkloadId, workload: &Workload) -> Option<PoolExplanation> {
        let mut pool = self.pools[id.index()].clone();
        let leaf = self.tree.get(workload.spec.budget)?;
        let Some(terms) = workload.all_terms().find(|terms| terms.pool == id) else {
            let contract = contract(&workload.spec, leaf, &pool, &self.tree);
            let skipped = check_in_pool(&workload.spec, contract, &pool).err().map(Blocker::Skipped);
            let blockers = skipped.into_iter().collect();
            return Some(PoolExplanation {
                pool: id,
                standings: Vec::new(),
                ahead_in_leaf: 0,
                latest_start: None,
                reserved: Arc::default(),
                blockers,
            });
        };
        let blocker = match &workload.phase {
            Phase::Held { why, .. } => Blocker::Held { why: why.clone() },
            Phase::Leased(_) if workload.terms.pool != id => return None,
            Phase::Waiting | Phase::Leased(_) => {
                cycle::judge(self, workload_id, id).unwrap_or(Blocker::Behind { leaf: workload.spec.budget })
            }
            Phase::Barred => Blocker::Yielded,
            Phase::Claiming(_) if workload.terms.pool == id => Blocker::HoldIncomplete,
            Phase::Claiming(_) => return None,
        };
        let ahead_in_leaf = match workload.phase {
            Phase::Waiting | Phase::Leased(_) => pool.queue.leaf(workload)?.ahead_of(workload_id, workload, terms, leaf.spec.order),
            _ => 0,
        };
        let standings = standings_down_to(leaf, &mut pool, &mut Standings::default(), self.now).into_vec();
        let promise = workload.reservation_in(id).map(|reservation| &pool.reservations.by_id[&reservation]);
        let latest_start = promise.map(|promise| promise.latest_start);
        let reserved = promise.map_or_else(Arc::default, |promise| Arc::clone(&promise.nodes));
        Some(PoolExplanation { pool: id, standings, ahead_in_leaf, latest_start, reserved, blockers: vec![blocker] })
    }

    /// A number that is equal for equal states: for replay and double-run checks.
    pub fn digest(&self) -> u64 {
        let mut digest = Digest::default();
        (self.now, &self.tree, &self.completion, &self.doubts, &self.waits, self.next_workload, self.next_reservation).hash(&mut digest);
        for (id, workload) in self.workloads.iter() {
            (id, workload).hash(&mut digest);
        }
        for pool in &self.pools {
            pool.hash_at(self.now, &mut digest);
        }
        digest.finish()
    }

    /// Time goes on: never back. Protections that ended in between end, and after each full hour credit lapses.
    fn advance(&mut self, at: Time, log: &mut Vec<Entry>) {
        self.now = self.now.max(at);
        for pool in &mut self.pools {
            while pool.ledger.next_hour() <= self.now {
                let (id, hour) = (pool.id, pool.ledger.next_hour());
                pass(pool, &mut self.workloads, hour);
                let entry = |Lapse { budget, from, to, gpu_ms }| Entry::Lapsed { budget, pool: id, from, to, gpu_ms };
                log.extend(pool.ledger.lapse(pool.knobs.credit_max).into_iter().map(entry));
            }
            pass(pool, &mut self.workloads, self.now);
        }
    }

    /// The pool of a node that is known to exist.
    pub(crate) fn pool_of(&self, node: NodeId) -> Option<PoolId> {
        self.node_pools.get(node.index()).copied().flatten()
    }
}

/// Time goes on in a pool.
fn pass(pool: &mut Pool, workloads: &mut Table<Workload>, to: Time) {
    while let Some((until, id)) = pool.protections.first().copied()
        && until <= to
    {
        pool.protections.pop_first();
        let workload = workloads.get_mut(id.0).expect("a protected workload is live");
        pool.protection_ended(id, workload, until);
    }
    pool.ledger.pass(to);
    pool.recovery = pool.recovery.take().filter(|recovery| !recovery.is_over(to));
}
