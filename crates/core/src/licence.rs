//! Who may evict whom: the licence table of the design, apart from the order of the queue. Judged once, when a plan is made.

use crate::budget::BudgetTree;
use crate::entry::Licence;
use crate::explain::{BudgetStanding, Yield};
use crate::id::{BudgetId, NodeId, PoolId, WorkloadId};
use crate::order::Standings;
use crate::pool::Pool;
use crate::quantity::{GpuMs, Standing, Time};
use crate::queue::LeafQueue;
use crate::spec::OnPreempt;
use crate::table::Table;
use crate::workload::{Lease, Terms, Workload};
use std::cmp::Reverse;

/// A waiting allocated workload that looks for GPUs.
pub(crate) struct Claimant<'a> {
    pub workload: &'a Workload,
    /// Its terms in this pool.
    pub terms: &'a Terms,
    /// It has been eligible for longer than the pool's longest contract: an eviction need not be worth it any more.
    pub overdue: bool,
    /// Eligible since before this, work of its leaf goes first by age.
    pub aged_before: Time,
}

/// What one leaf's past-contract leases are to a claimant.
#[derive(Clone, Debug)]
pub(crate) struct Grant {
    pub licence: Licence,
    pub claimant_side: BudgetStanding,
    pub quantum: Standing,
    pub victim_side: BudgetStanding,
}

/// The licences of one claimant, leaf by leaf, judged at one moment.
pub(crate) struct Licences<'a> {
    pub claimant: &'a Claimant<'a>,
    /// By leaf, in their order.
    by_leaf: Vec<(BudgetId, Option<Grant>)>,
    /// For licences that compare nobody: unallocated, own leaf, express.
    own: BudgetStanding,
}

impl<'a> Licences<'a> {
    /// With `past`, other leaves are compared with the claimant's; without, only unallocated work is in question.
    pub(crate) fn new(claimant: &'a Claimant<'a>, past: bool, judge: &mut Judge<'_>) -> Licences<'a> {
        let leaf = claimant.workload.spec.budget;
        let own = BudgetStanding { budget: leaf, standing: judge.standings.of(judge.pool, judge.at, leaf) };
        let gang = claimant.terms.charged.over(judge.pool.knobs.quantum);
        let victims = if past { judge.victims() } else { Vec::new() };
        let mut quantum = Quantum::new(gang);
        let by_leaf = victims.into_iter().map(|(victim, _)| (victim, judge.compare(leaf, &mut quantum, victim))).collect();
        Licences { claimant, by_leaf, own }
    }

    /// The licence to take a past-contract lease that lies on these nodes, if there is one.
    pub(crate) fn to_take(&self, victim: &Workload, on_express: bool) -> Option<Grant> {
        let claimant = self.claimant;
        // Only a short contract looks for GPUs on express nodes at all. One that was evicted itself takes nobody's: two would swap for ever.
        if on_express && claimant.workload.yielded == 0 {
            return Some(self.without_comparison(Licence::Express, victim.spec.budget));
        }
        if victim.spec.budget == claimant.workload.spec.budget {
            // Who may evict is who goes first: what is old precedes every priority.
            let (own_age, victim_age) = (claimant.workload.eligible, victim.eligible);
            let by_priority = victim.spec.priority < claimant.workload.spec.priority && victim_age >= claimant.aged_before;
            let by_age = own_age < claimant.aged_before && own_age < victim_age && victim.spec.on_preempt == OnPreempt::Resume;
            return (by_priority || by_age).then(|| self.without_comparison(Licence::OwnLeaf, victim.spec.budget));
        }
        self.grant(victim.spec.budget).cloned()
    }

    /// Leaves whose past-contract leases may be in question, those that stand highest first.
    pub(crate) fn leaves_by_standing(&self) -> Vec<BudgetId> {
        let mut leaves: Vec<_> =
            self.by_leaf.iter().map(|(leaf, grant)| (Reverse(grant.as_ref().map(|g| g.victim_side.standing)), *leaf)).collect();
        leaves.sort_unstable();
        leaves.into_iter().map(|(_, leaf)| leaf).collect()
    }

    fn grant(&self, leaf: BudgetId) -> Option<&Grant> {
        let place = self.by_leaf.binary_search_by_key(&leaf, |(leaf, _)| *leaf).ok()?;
        self.by_leaf[place].1.as_ref()
    }

    /// The licence to take unallocated leases: always.
    pub(crate) fn unallocated(&self, victim: &Workload) -> Grant {
        self.without_comparison(Licence::Unallocated, victim.spec.budget)
    }

    /// The licence of a reservation at its date, on its nodes: judged when it was granted.
    pub(crate) fn reserved(&self, victim: &Workload) -> Grant {
        self.without_comparison(Licence::Reservation, victim.spec.budget)
    }

    fn without_comparison(&self, licence: Licence, victim: BudgetId) -> Grant {
        let victim_side = BudgetStanding { budget: victim, standing: Standing(0) };
        Grant { licence, claimant_side: self.own, quantum: Standing(0), victim_side }
    }
}

/// What a claimant's gang times the quantum is to the standing of a side; most of its comparisons are on one side.
struct Quantum {
    gang: GpuMs,
    last: Option<(BudgetId, Standing)>,
}

impl Quantum {
    fn new(gang: GpuMs) -> Quantum {
        Quantum { gang, last: None }
    }

    fn of(&mut self, side: BudgetId, pool: &mut Pool, at: Time) -> Standing {
        if let Some((_, standing)) = self.last.filter(|(of, _)| *of == side) {
            return standing;
        }
        let index = pool.ledger.index(side);
        let standing = pool.ledger.standing_of(at, index, self.gang);
        self.last = Some((side, standing));
        standing
    }
}

/// Compares leaves at one moment.
pub(crate) struct Judge<'a> {
    pub pool: &'a mut Pool,
    pub tree: &'a BudgetTree,
    pub standings: &'a mut Standings,
    pub at: Time,
}

impl Judge<'_> {
    /// Leaves with past-contract GPUs, and how many.
    fn victims(&self) -> Vec<(BudgetId, u32)> {
        let mut victims = Vec::with_capacity(self.pool.past.len());
        victims.extend(self.pool.past.iter().filter(|(_, past)| past.gpus > 0).map(|(leaf, past)| (*leaf, past.gpus)));
        victims
    }

    /// The two rows of the table that compare two leaves.
    ///
    /// An eviction costs somebody a restart, so it serves only what is owed, to the leaf or to the side of the tree that it is on. What is
    /// owed to nobody is handed on by the order, as GPUs become free.
    fn compare(&mut self, leaf: BudgetId, quantum: &mut Quantum, victim: BudgetId) -> Option<Grant> {
        let is_owed = self.standings.of(self.pool, self.at, leaf) < Standing::SHARE;
        self.relation(leaf, is_owed, quantum, victim).filter(|grant| grant.claimant_side.standing < Standing::SHARE)
    }

    /// S(claimant) + quantum < U(victim): leaf against leaf for one that is below its share, else side against side in the tree.
    fn relation(&mut self, leaf: BudgetId, below_share: bool, quantum: &mut Quantum, victim: BudgetId) -> Option<Grant> {
        if victim == leaf {
            return None;
        }
        let (licence, own_side, victim_side) = if below_share {
            (Licence::Share, leaf, victim)
        } else {
            let standing = self.standings.of(self.pool, self.at, victim);
            if self.pool.is_below_share(standing) {
                return None;
            }
            let (own_side, victim_side) = sides(self.tree, leaf, victim);
            (Licence::Tree, own_side, victim_side)
        };
        let claimant_side = BudgetStanding { budget: own_side, standing: self.standings.of(self.pool, self.at, own_side) };
        let victim_side = BudgetStanding { budget: victim_side, standing: self.standings.used(self.pool, self.at, victim_side) };
        if claimant_side.standing >= victim_side.standing {
            return None;
        }
        let quantum = quantum.of(own_side, self.pool, self.at);
        let lower = claimant_side.standing.0.saturating_add(quantum.0) < victim_side.standing.0;
        lower.then_some(Grant { licence, claimant_side, quantum, victim_side })
    }

    /// The leaves beside its own on whose leases a reservation may count, once their contracts are over: those that stand higher. It waits
    /// for contracts to end, so it serves the surplus, too. By budget number.
    pub(crate) fn reservable(&mut self, workload: &Workload) -> Vec<bool> {
        let leaf = workload.spec.budget;
        let mut quantum = Quantum::new(workload.in_pool(self.pool.id).charged.over(self.pool.knobs.quantum));
        let standing = self.standings.of(self.pool, self.at, leaf);
        let below_share = self.pool.is_below_share(standing);
        let mut leaves = Vec::new();
        for victim in self.tree.top_down().filter(|budget| budget.is_leaf()).map(|budget| budget.spec.id) {
            if leaves.len() <= victim.index() {
                leaves.resize(victim.index() + 1, false);
            }
            leaves[victim.index()] = self.relation(leaf, below_share, &mut quantum, victim).is_some();
        }
        leaves
    }

    /// Past-contract GPUs that the waiting work of a leaf could be licensed to take at most, however small its gangs are.
    pub(crate) fn reachable_past(&mut self, leaf: BudgetId, queue: &LeafQueue, workloads: &Table<Workload>) -> u32 {
        let (mut gpus, mut quantum) = (0, Quantum::new(GpuMs(0)));
        for (victim, past_gpus) in self.victims() {
            let reached = if victim == leaf {
                queue.has_aged(self.at, self.pool.knobs.age_min) || lowest_priority(self.pool, victim, workloads) < queue.highest_priority()
            } else {
                self.compare(leaf, &mut quantum, victim).is_some()
            };
            gpus += if reached { past_gpus } else { 0 };
        }
        gpus
    }
}

fn lowest_priority(pool: &Pool, leaf: BudgetId, workloads: &Table<Workload>) -> Option<i16> {
    let leases = pool.past.get(&leaf).into_iter().flat_map(|past| &past.leases);
    leases.filter_map(|id| workloads.get(id.0)).map(|w| w.spec.priority).min()
}

/// Of two leaves, the two ancestors (or selves) where their paths part.
pub(crate) fn sides(tree: &BudgetTree, a: BudgetId, b: BudgetId) -> (BudgetId, BudgetId) {
    let line = |id| tree.get(id).map(|budget| budget.line.as_slice()).unwrap_or_default();
    let from_root = line(a).iter().rev().zip(line(b).iter().rev());
    from_root.clone().find(|(x, y)| x != y).map_or((a, b), |(x, y)| (*x, *y))
}

/// The most GPU time that evictions by a licence may lose. `None` where worth does not count: for licences that are given always, and
/// for a claimant owed GPU time that has waited longer than the pool's longest contract.
pub(crate) fn loss_limit(claimant: &Claimant<'_>, grant: &Grant, victim: &Workload, pool: &Pool) -> Option<GpuMs> {
    let own = claimant.workload.spec.gang.gpus();
    let no_collateral = victim.spec.on_preempt == OnPreempt::Resume || victim.spec.gang.gpus() <= own;
    let counts = match grant.licence {
        Licence::Share => !claimant.overdue || claimant.workload.spec.gang.members > 1 || !no_collateral,
        Licence::Tree => true,
        // Inside a leaf priority is the owners' own word; age is not.
        Licence::OwnLeaf => victim.spec.priority >= claimant.workload.spec.priority,
        _ => false,
    };
    counts.then(|| GpuMs(pool.knobs.worth_it.of(claimant.terms.contract_gpu_ms().0)))
}

/// The reason of an eviction, made of the values that were compared.
pub(crate) fn reason(grant: &Grant, pool: PoolId, claimant: WorkloadId, victim: &Lease, loss: GpuMs) -> Yield {
    Yield {
        pool,
        claimant,
        licence: grant.licence,
        claimant_side: grant.claimant_side,
        quantum: grant.quantum,
        victim_side: grant.victim_side,
        protection_ended: victim.protected_until,
        loss,
    }
}

/// Whether all nodes of a lease are express nodes.
pub(crate) fn on_express(pool: &Pool, lease: &Lease) -> bool {
    lease.placement.iter().all(|slot| is_express(pool, slot.node))
}

/// Whether a node is set aside for short contracts.
pub(crate) fn is_express(pool: &Pool, node: NodeId) -> bool {
    pool.cluster.at(node).spec.express
}
