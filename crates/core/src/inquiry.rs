//! All that can be said of a live workload at one moment: where it stands among the others and what would start it, or what holds its GPUs
//! for it and who could take them. Made by the order and the licences themselves.

use crate::cluster::Lane;
use crate::counterfactual::Counterfactual;
use crate::entry::{By, Licence, Occupancy, Placement, Slot};
use crate::explain::{Blocker, BudgetStanding, PoolExplanation, Tier};
use crate::id::{BudgetId, LeaseId, PoolId, WorkloadId};
use crate::licence::{Claimant, Judge, Licences, loss_limit, on_express, sides};
use crate::order::{OpenLeaf, Standings, Turn, next_allocated, next_unallocated, standings_down_to};
use crate::pool::Pool;
use crate::quantity::{GpuMs, Gpus, Span, Standing, Time};
use crate::queue::{LeafQueue, firsts};
use crate::record::{Estimate, Kin};
use crate::scheduler::Scheduler;
use crate::spec::{LeafOrder, NodeState};
use crate::waits::{Record, WaitEstimate};
use crate::workload::{Lease, Phase, Terms, Workload};
use std::collections::BTreeSet;

/// What can be said of a live workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It waits, for GPUs or for being released.
    Waiting(Box<Wait>),
    /// It holds GPUs.
    Running(Box<Run>),
}

/// A waiting workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Since when it waits for its next start.
    pub since: Time,
    /// How often it has run.
    pub attempts: u32,
    /// In each pool that it names, in its order; where its GPUs are held already, in that one.
    pub pools: Vec<WaitIn>,
    /// What would start it now.
    pub counterfactuals: Vec<Counterfactual>,
}

/// A waiting workload in one pool that it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitIn {
    /// The standings, the place in its leaf and what stops it.
    pub explanation: PoolExplanation,
    /// Where it stands; `None` in a pool that could never take it.
    pub place: Option<Place>,
}

/// Where a waiting workload stands in one pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The contract that it would get.
    pub contract: Span,
    /// Which part of the order its leaf is in.
    pub tier: Tier,
    /// Leaves with waiting work of its kind that go before its own, in their order.
    pub ahead: Vec<Ahead>,
    /// Leaves with waiting work of its kind that come after its own.
    pub behind: u32,
    /// When enough GPUs are unprotected in number, wherever they lie and whoever is licensed to take them; `None` if they are now, and for unallocated work,
    /// which gets what is idle.
    pub unprotected: Option<Time>,
    /// What is blocked is looked at again then at the latest, as standings drift.
    pub looks_again: Option<Time>,
}

/// A leaf that goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ahead {
    /// Which.
    pub leaf: BudgetId,
    /// Which part of the order it is in.
    pub tier: Tier,
    /// How many of its workloads wait.
    pub waiting: u32,
    /// Of the two budgets that are compared, the other leaf's; the leaf itself where it is below its share.
    pub their_side: BudgetStanding,
    /// And the workload's.
    pub own_side: BudgetStanding,
}

/// A workload that holds GPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Its attempt.
    pub lease: LeaseId,
    /// The pool whose GPUs they are.
    pub pool: PoolId,
    /// Charged and protected, or neither.
    pub occupancy: Occupancy,
    /// Which GPUs.
    pub placement: Placement,
    /// When they were assigned.
    pub started: Time,
    /// When all members ran; `None` while it starts.
    pub running: Option<Time>,
    /// When its protection ends or ended; `None` while it starts, and of unallocated work.
    pub protected_until: Option<Time>,
    /// The standings from below the root to its leaf.
    pub standings: Vec<BudgetStanding>,
    /// GPU time that would be lost if it were stopped now, as far as is known.
    pub loss: GpuMs,
    /// Its leaf's word that it begins anew is not believed, and the loss counts as if it resumed.
    pub doubted: bool,
    /// What tells it to leave and when it must have left, if it is on its way out.
    pub leaving: Option<(By, Time)>,
    /// What stops its promotion, the binding limit first, if it runs before its turn.
    pub turn: Vec<Blocker>,
    /// Who waits and is licensed to take its GPUs now: of each leaf the workload that goes first.
    pub takers: Vec<Taker>,
}

/// A waiting workload with a licence to take a lease. That it does not do so has other reasons: it needs less, more, or other GPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taker {
    /// Which.
    pub workload: WorkloadId,
    /// Its leaf.
    pub leaf: BudgetId,
    /// Its licence.
    pub licence: Licence,
    /// Its side and its standing.
    pub claimant_side: BudgetStanding,
    /// What the quantum adds to it.
    pub quantum: Standing,
    /// The lease's side and its standing without commitments.
    pub victim_side: BudgetStanding,
    /// The most GPU time that evictions for it may lose, where that counts.
    pub loss_limit: Option<GpuMs>,
}

/// What the past says of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prospect {
    /// What became of its kin, and what is to be expected of it.
    pub estimate: Estimate,
    /// In a leaf whose order is by completion: it goes first as if it had been eligible so much longer.
    pub head_start: Option<Span>,
}

/// When a workload may start that has not run yet, as like work waited: no promise, and with its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstStart {
    /// One in ten starts earlier.
    pub from: Time,
    /// One in ten starts later.
    pub to: Time,
    /// How many waits say so: of like work, those that were as long as its wait is already.
    pub like: u32,
    /// How often estimates for work of its class held.
    pub record: Record,
}

impl Scheduler {
    /// When a workload may start that waits for its first start; `None` for others, or where too little is known.
    pub fn first_start(&self, id: WorkloadId) -> Option<FirstStart> {
        let workload = self.workloads.get(id.0).filter(|workload| workload.attempts == 0)?;
        if matches!(workload.phase, Phase::Held { .. }) {
            return None;
        }
        let WaitEstimate { from, to, like } = self.waits.estimate(&workload.spec, workload.class, self.now - workload.eligible)?;
        let (from, to) = (workload.eligible + from, workload.eligible + to);
        Some(FirstStart { from, to, like, record: self.waits.record(workload.class) })
    }

    /// What the past says of a live workload now; `None` if it has ended or never was.
    pub fn prospect(&self, id: WorkloadId) -> Option<Prospect> {
        let workload = self.workloads.get(id.0)?;
        let running = workload.lease().and_then(|lease| lease.running).map_or(Span::ZERO, |running| self.now - running);
        let estimate = self.completion.records.estimate(Kin::from(&*workload.spec), workload.ran + running);
        let by_completion = self.tree.get(workload.spec.budget)?.spec.order == LeafOrder::Completion;
        Some(Prospect { estimate, head_start: by_completion.then_some(workload.head_start) })
    }

    /// All that can be said of a live workload now; `None` if it has ended or never was. For waiting work this tries many changes on copies
    /// of the state: it is for one workload that somebody asks about, not for a list.
    pub fn inquire(&self, id: WorkloadId) -> Option<Answer> {
        let workload = self.workloads.get(id.0)?;
        Some(match &workload.phase {
            Phase::Leased(lease) => Answer::Running(Box::new(self.run(id, workload, lease)?)),
            _ => Answer::Waiting(Box::new(self.wait(id, workload)?)),
        })
    }

    fn wait(&self, id: WorkloadId, workload: &Workload) -> Option<Wait> {
        let in_pool = |explanation: PoolExplanation| {
            let place = workload.all_terms().find(|terms| terms.pool == explanation.pool).map(|terms| self.place(workload, terms));
            WaitIn { explanation, place }
        };
        Some(Wait {
            since: workload.waiting_since,
            attempts: workload.attempts,
            pools: self.explain(id)?.pools.into_iter().map(in_pool).collect(),
            counterfactuals: self.counterfactuals(id),
        })
    }

    fn place(&self, workload: &Workload, terms: &Terms) -> Place {
        let mut pool = self.pools[terms.pool.index()].clone();
        let (tier, ahead, behind) = self.order(workload, &mut pool);
        Place {
            contract: terms.contract,
            tier,
            ahead,
            behind,
            unprotected: if workload.is_allocated() { unprotected(&pool, workload, self) } else { None },
            looks_again: Some(pool.retry_at).filter(|at| *at < Time::MAX && matches!(workload.phase, Phase::Waiting)),
        }
    }

    /// The leaves with waiting work in the order in which a walk would come to them if none of them started anything.
    fn order(&self, workload: &Workload, pool: &mut Pool) -> (Tier, Vec<Ahead>, u32) {
        let (own, allocated) = (workload.spec.budget, workload.is_allocated());
        let mut standings = Standings::default();
        standings.begin();
        let own_standing = standings.of(pool, self.now, own);
        let own_tier = match (allocated, pool.is_below_share(own_standing)) {
            (false, _) => Tier::Idle,
            (true, true) => Tier::OwnShare,
            (true, false) => Tier::Tree,
        };
        let side = if allocated { &pool.queue.allocated } else { &pool.queue.unallocated };
        let mut open: Vec<OpenLeaf> =
            side.iter().filter(|(_, queue)| queue.waiting > 0).map(|(leaf, queue)| all(*leaf, allocated, queue)).collect();
        let mut ahead = Vec::new();
        loop {
            let next = match allocated {
                true => next_allocated(&open, pool, &self.tree, &mut standings, self.now),
                false => next_unallocated(&open, pool, &self.tree, &mut standings, self.now),
            };
            let Some(Turn { index, tier, .. }) = next.filter(|turn| open[turn.index].leaf != own) else { break };
            let leaf = open.remove(index).leaf;
            let (own_side, their_side) = if tier == Tier::OwnShare { (own, leaf) } else { sides(&self.tree, own, leaf) };
            let mut standing = |budget| BudgetStanding { budget, standing: standings.of(pool, self.now, budget) };
            let (own_side, their_side) = (standing(own_side), standing(their_side));
            let side = if allocated { &pool.queue.allocated } else { &pool.queue.unallocated };
            ahead.push(Ahead { leaf, tier, waiting: side[&leaf].waiting, their_side, own_side });
        }
        let behind = open.iter().filter(|open| open.leaf != own).count() as u32;
        (own_tier, ahead, behind)
    }

    fn run(&self, id: WorkloadId, workload: &Workload, lease: &Lease) -> Option<Run> {
        let mut pool = self.pools[workload.terms.pool.index()].clone();
        let mut standings = Standings::default();
        standings.begin();
        let leaf = self.tree.get(workload.spec.budget)?;
        let path = standings_down_to(leaf, &mut pool, &mut standings, self.now).into_vec();
        Some(Run {
            lease: lease.id(id),
            pool: pool.id,
            occupancy: lease.occupancy,
            placement: lease.placement.clone(),
            started: lease.started,
            running: lease.running,
            protected_until: lease.protected_until,
            standings: path,
            loss: workload.expected_loss(lease, self.now, pool.knobs.restart_cost),
            doubted: lease.doubted,
            leaving: lease.stop.as_ref().map(|stop| (stop.cause.by(), stop.stop_by())),
            turn: self.explain(id).map_or(Vec::new(), |explanation| explanation.pools.into_iter().flat_map(|pool| pool.blockers).collect()),
            takers: if lease.stop.is_some() { Vec::new() } else { self.takers(workload, lease, &mut pool, &mut standings) },
        })
    }

    /// Of each leaf with waiting work the workload that goes first, if it is licensed to take this lease.
    fn takers(&self, victim: &Workload, lease: &Lease, pool: &mut Pool, standings: &mut Standings) -> Vec<Taker> {
        let unallocated = lease.occupancy == Occupancy::Unallocated;
        if !unallocated && !lease.past_contract {
            return Vec::new();
        }
        let leaves: Vec<BudgetId> = pool.queue.allocated.iter().filter(|(_, queue)| queue.waiting > 0).map(|(leaf, _)| *leaf).collect();
        let taker = |leaf: &BudgetId| self.taker(*leaf, victim, lease, pool, standings);
        leaves.iter().filter_map(taker).collect()
    }

    fn taker(&self, leaf: BudgetId, victim: &Workload, lease: &Lease, pool: &mut Pool, standings: &mut Standings) -> Option<Taker> {
        let at = self.now;
        let order = self.tree.get(leaf)?.spec.order;
        let queue = &pool.queue.allocated[&leaf];
        // What runs before its turn takes nobody's GPUs.
        let shapes: Vec<_> = queue.shapes.keys().copied().filter(|shape| !pool.queue.shape(*shape).early).collect();
        let used = |account| standings.of_user(&mut pool.ledger, at, account);
        let first = firsts(queue, (&shapes, &BTreeSet::new()), order, at, pool.knobs.age_min, used).pop()?.id;
        let workload = self.workloads.get(first.0)?;
        let aged_before = at - queue.old_age(pool.knobs.age_min);
        let terms = workload.in_pool(pool.id);
        let express_shape = pool.queue.shape(terms.shape).express;
        let is_express = lease.placement.iter().any(|slot| pool.cluster.at(slot.node).spec.express);
        if is_express && !express_shape {
            return None;
        }
        let overdue = at - workload.waiting_since > pool.knobs.min_runtime_max;
        let claimant = Claimant { workload, terms, overdue, aged_before };
        let past = lease.occupancy == Occupancy::Allocated;
        let mut judge = Judge { pool, tree: &self.tree, standings, at };
        let licences = Licences::new(&claimant, past, &mut judge);
        let pool = judge.pool;
        let grant = if past { licences.to_take(victim, on_express(pool, lease))? } else { licences.unallocated(victim) };
        Some(Taker {
            workload: first,
            leaf,
            licence: grant.licence,
            claimant_side: grant.claimant_side,
            quantum: grant.quantum,
            victim_side: grant.victim_side,
            loss_limit: loss_limit(&claimant, &grant, victim, pool),
        })
    }
}

/// A leaf with all that waits in it.
fn all(leaf: BudgetId, allocated: bool, queue: &LeafQueue) -> OpenLeaf {
    let shapes: Vec<_> = queue.shapes.keys().copied().collect();
    OpenLeaf { depths: vec![None; shapes.len()], shapes, ..OpenLeaf::new(leaf, allocated) }
}

/// When enough GPUs of ready nodes are free or unprotected for a gang, by their number alone; `None` if they are now, or never for what is
/// known.
fn unprotected(pool: &Pool, workload: &Workload, s: &Scheduler) -> Option<Time> {
    let needed = workload.spec.gang.gpus();
    let leases = s.workloads.iter().filter(|(_, other)| other.terms.pool == pool.id);
    let leases = leases.filter_map(|(_, other)| Some((other, other.lease()?)));
    let is_ready = |slot: &&Slot| pool.cluster.at(slot.node).state == NodeState::Ready;
    let mut ends: Vec<(Time, Gpus)> = leases
        .map(|(other, lease)| {
            let gpus = lease.placement.iter().filter(is_ready).map(|slot| slot.gpus.count()).sum();
            (lease.protected_until_latest(other.terms.contract), Gpus(gpus))
        })
        .collect();
    ends.sort_unstable();
    let mut sum = pool.cluster.free(Lane::General) + pool.cluster.free(Lane::Express);
    for (until, gpus) in ends {
        if sum >= needed {
            return None;
        }
        sum += gpus;
        if sum >= needed {
            return (s.now < until).then_some(until);
        }
    }
    None
}
