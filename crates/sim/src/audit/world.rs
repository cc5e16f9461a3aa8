//! The cluster as the log tells it, kept by plain bookkeeping: pools, nodes, budgets, workloads and their leases, holds.

use crate::log::knobs::Policy;
use crate::log::line::{Budget as BudgetLine, Licence, Node as NodeLine, Occupancy, OnPreempt, Outcome, Severity, Start, State, Submitted};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A workload's number here: given at its submission, never reused.
pub(super) type Id = u32;

/// GPUs by node number here.
pub(super) type Slots = Vec<(usize, Vec<u8>)>;

#[derive(Default)]
pub(super) struct World {
    pub(super) pools: Table<Pool>,
    pub(super) nodes: Table<Node>,
    pub(super) budgets: Table<Budget>,
    pub(super) workloads: HashMap<Id, Workload>,
    pub(super) holds: BTreeMap<Id, Hold>,
    /// Until when a leaf is not believed that its work begins anew.
    pub(super) doubted: BTreeMap<usize, i64>,
    /// Workloads whose lease is to be preempted.
    pub(super) planned: BTreeSet<Id>,
    /// Budgets by pool and path: they may move, and keep their numbers.
    paths: HashMap<String, usize>,
    ids: HashMap<String, Id>,
    next: Id,
}

/// Rows found by label or by number.
pub(super) struct Table<T> {
    ids: HashMap<String, usize>,
    pub(super) rows: Vec<T>,
}

#[derive(Default)]
pub(super) struct Pool {
    pub(super) knobs: Option<Policy>,
    /// GPUs of ready nodes and GPUs under lease on draining ones.
    pub(super) capacity: i64,
    /// Its ready nodes by their free GPUs.
    pub(super) by_free: BTreeSet<(usize, usize)>,
    /// All its express GPUs.
    pub(super) express_gpus: u32,
}

pub(super) struct Node {
    pub(super) label: String,
    pub(super) pool: usize,
    pub(super) cpus: u32,
    pub(super) memory: u64,
    pub(super) block: String,
    pub(super) features: u64,
    pub(super) express: bool,
    pub(super) state: State,
    pub(super) severity: Option<Severity>,
    pub(super) drain_until: Option<i64>,
    pub(super) gpus: Vec<Gpu>,
    counted: i64,
    free: usize,
}

#[derive(Clone, Default)]
pub(super) struct Gpu {
    pub(super) lease: Option<Id>,
    pub(super) hold: Option<Id>,
    pub(super) free_since: i64,
}

/// A budget in one pool: each pool has a tree of its own.
pub(super) struct Budget {
    pub(super) path: String,
    pub(super) pool: usize,
    pub(super) parent: Option<usize>,
    pub(super) is_leaf: bool,
    pub(super) closed: bool,
    pub(super) claim: i64,
    pub(super) gpus_max: Option<u32>,
    pub(super) unallocated_gpus_max: Option<u32>,
    pub(super) min_runtime_max: Option<i64>,
    /// GPUs of its own leases and of those that began below it: allocated, unallocated.
    pub(super) in_use: [i64; 2],
    /// Workloads with such a lease.
    pub(super) leased: BTreeSet<Id>,
}

pub(super) struct Workload {
    pub(super) label: String,
    /// Where it holds GPUs, or held or was to hold them last; at first the first of its pools. What it asked for is as it counts there.
    pub(super) leaf: usize,
    pub(super) pool: usize,
    pub(super) asked: Submitted,
    /// What it is in each pool that it accepts, in its order.
    pub(super) homes: Vec<Home>,
    pub(super) attempts: u32,
    /// Running time over the attempts that ended.
    pub(super) ran: i64,
    pub(super) eligible_since: Option<i64>,
    /// Since when it waits without a break; who runs before its turn goes on waiting for it.
    pub(super) waiting_since: i64,
    /// Its last lease was one before its turn.
    pub(super) was_early: bool,
    pub(super) phase: Phase,
    /// The claimant whose start it waits for after it was preempted.
    pub(super) barred_by: Option<Id>,
    /// The claimant that it was last preempted for. While GPUs are held for that one, by a later plan too, it may be kept waiting.
    pub(super) yielded_to: Option<Id>,
}

/// A workload in one of its pools.
#[derive(Clone, Copy)]
pub(super) struct Home {
    pub(super) pool: usize,
    pub(super) leaf: usize,
    pub(super) charged_gpus: u32,
    pub(super) min_runtime_ms: i64,
}

pub(super) enum Phase {
    /// Submitted, or held.
    Out,
    Waiting,
    Leased(Box<Lease>),
    /// Its attempt ended, and whether it had run; it waits again or is gone before the instant is over.
    Between(Outcome, bool),
    Gone,
}

pub(super) struct Lease {
    /// The leaf and the ancestors that it began with: what is charged stays with them.
    pub(super) line: Vec<usize>,
    pub(super) attempt: u32,
    pub(super) occupancy: Occupancy,
    pub(super) slots: Slots,
    pub(super) since: i64,
    pub(super) running_since: Option<i64>,
    /// A session was used since its contract began.
    pub(super) has_input: bool,
    /// When it got its contract where it ran.
    pub(super) promoted_at: Option<i64>,
    pub(super) protected_until: Option<i64>,
    /// How long it is protected once it runs.
    pub(super) contract: i64,
    /// The pool's start timeout when it started; a knob that changes later may count or not.
    pub(super) start_timeout: i64,
    pub(super) last_checkpoint: Option<i64>,
    /// It says that it begins anew, and is not believed.
    pub(super) is_doubted: bool,
    pub(super) plan: Option<Plan>,
    pub(super) stopping_since: Option<i64>,
    pub(super) stop_grace: i64,
    /// When it was told to stop it was still starting, and its start timeout was over.
    pub(super) is_start_timed_out: bool,
    /// One of its nodes was lost or drained critically meanwhile.
    pub(super) is_struck: bool,
}

/// A lease is to be preempted.
pub(super) struct Plan {
    pub(super) claimant: Option<Id>,
    pub(super) licence: Licence,
    pub(super) stop_by: i64,
    /// The pool's grace when it was planned; a knob that changes before the signal may count or not.
    pub(super) grace: i64,
}

/// GPUs kept for a claimant.
pub(super) struct Hold {
    /// As of a lease.
    pub(super) line: Vec<usize>,
    pub(super) slots: Slots,
    pub(super) at: i64,
    /// Victims that have not ended yet.
    pub(super) victims: BTreeSet<Id>,
    /// All its victims: they start again only after it.
    pub(super) barred: Vec<Id>,
    /// The strongest licence of its plan.
    pub(super) licence: Licence,
}

impl<T> Default for Table<T> {
    fn default() -> Table<T> {
        Table { ids: HashMap::new(), rows: Vec::new() }
    }
}

impl<T> Table<T> {
    pub(super) fn find(&self, label: &str) -> Option<usize> {
        self.ids.get(label).copied()
    }

    pub(super) fn find_or_add(&mut self, label: &str, row: impl FnOnce() -> T) -> usize {
        if let Some(id) = self.find(label) {
            return id;
        }
        self.ids.insert(label.to_string(), self.rows.len());
        self.rows.push(row());
        self.rows.len() - 1
    }
}

impl World {
    pub(super) fn id(&self, label: &str) -> Option<Id> {
        self.ids.get(label).copied()
    }

    /// A name for messages, also of a workload that is gone.
    pub(super) fn label(&self, id: Id) -> &str {
        self.workloads.get(&id).map_or("a workload that is gone", |workload| &workload.label)
    }

    pub(super) fn add_workload(&mut self, workload: Workload) -> Id {
        let id = self.next;
        self.next += 1;
        self.ids.insert(workload.label.clone(), id);
        self.workloads.insert(id, workload);
        id
    }

    pub(super) fn remove_workload(&mut self, id: Id) {
        if let Some(workload) = self.workloads.remove(&id) {
            self.ids.remove(&workload.label);
        }
    }

    pub(super) fn knobs(&self, pool: usize) -> Option<&Policy> {
        self.pools.rows.get(pool)?.knobs.as_ref()
    }

    /// A budget and its ancestors, the leaf first.
    pub(super) fn line(&self, leaf: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(Some(leaf), |budget| self.budgets.rows[*budget].parent)
    }

    pub(super) fn set_node(&mut self, line: &NodeLine, now: i64) -> usize {
        let pool = self.pools.find_or_add(&line.pool, Pool::default);
        let fresh = || Gpu { lease: None, hold: None, free_since: now };
        let known = self.nodes.find(&line.node).is_some();
        let id = self.nodes.find_or_add(&line.node, || Node::new(line, pool, vec![fresh(); line.gpus as usize]));
        if !known && line.express {
            self.pools.rows[pool].express_gpus += line.gpus;
        }
        let node = &mut self.nodes.rows[id];
        (node.state, node.severity, node.drain_until) = (line.state, line.severity, line.drain_until_ms);
        self.recount(id);
        id
    }

    /// Brings what is derived from a node up to date: its free GPUs and its part of the capacity.
    pub(super) fn recount(&mut self, id: usize) {
        let node = &mut self.nodes.rows[id];
        let pool = &mut self.pools.rows[node.pool];
        let leased = node.gpus.iter().filter(|gpu| gpu.lease.is_some()).count();
        let free = node.gpus.iter().filter(|gpu| gpu.lease.is_none() && gpu.hold.is_none()).count();
        let counted = match node.state {
            State::Ready => node.gpus.len() as i64,
            State::Draining => leased as i64,
            State::Drained | State::Repairing | State::Lost => 0,
        };
        pool.capacity += counted - node.counted;
        pool.by_free.remove(&(node.free, id));
        (node.counted, node.free) = (counted, free);
        if node.state == State::Ready && free > 0 {
            pool.by_free.insert((free, id));
        }
    }

    /// A budget of a pool by its path.
    pub(super) fn budget(&self, pool: usize, path: &str) -> Option<usize> {
        self.paths.get(&in_pool(pool, path)).copied()
    }

    /// The same by the pool's label.
    pub(super) fn budget_of(&self, pool: &str, path: &str) -> Option<usize> {
        self.budget(self.pools.find(pool)?, path)
    }

    pub(super) fn set_budget(&mut self, line: &BudgetLine) -> usize {
        let pool = self.pools.find_or_add(&line.pool, Pool::default);
        let id = self.budgets.find_or_add(&in_pool(pool, &line.id.to_string()), || Budget::new(pool));
        let budget = &mut self.budgets.rows[id];
        let before = in_pool(pool, &std::mem::replace(&mut budget.path, line.path.clone()));
        budget.claim = (line.claim * 1e9).round() as i64;
        (budget.gpus_max, budget.unallocated_gpus_max) = (line.gpus_max, line.unallocated_gpus_max);
        (budget.min_runtime_max, budget.closed) = (line.min_runtime_max_ms, line.closed);
        if self.paths.get(&before) == Some(&id) {
            self.paths.remove(&before);
        }
        self.paths.insert(in_pool(pool, &line.path), id);
        id
    }

    /// Who is above whom, by the paths.
    pub(super) fn link_budgets(&mut self) {
        self.budgets.rows.iter_mut().for_each(|row| row.is_leaf = true);
        for id in 0..self.budgets.rows.len() {
            let row = &self.budgets.rows[id];
            let parent = row.path.rsplit_once('/').and_then(|(parent, _)| self.budget(row.pool, parent));
            self.budgets.rows[id].parent = parent;
            if let Some(parent) = parent {
                self.budgets.rows[parent].is_leaf = false;
            }
        }
    }

    /// Whether a budget or one above it is closed.
    pub(super) fn is_closed(&self, budget: usize) -> bool {
        self.line(budget).any(|above| self.budgets.rows[above].closed)
    }

    /// Gives GPUs to a lease, or takes them back.
    pub(super) fn assign(&mut self, slots: &Slots, lease: Option<Id>, now: i64) {
        for (node, gpus) in slots {
            for gpu in gpus {
                let gpu = &mut self.nodes.rows[*node].gpus[usize::from(*gpu)];
                (gpu.lease, gpu.free_since) = (lease, now);
            }
            self.recount(*node);
        }
    }

    /// Keeps GPUs for a claimant, or no longer.
    pub(super) fn keep(&mut self, slots: &Slots, claimant: Option<Id>) {
        for (node, gpus) in slots {
            for gpu in gpus {
                self.nodes.rows[*node].gpus[usize::from(*gpu)].hold = claimant;
            }
            self.recount(*node);
        }
    }

    pub(super) fn lease(&self, id: Id) -> Option<&Lease> {
        match &self.workloads.get(&id)?.phase {
            Phase::Leased(lease) => Some(lease),
            _ => None,
        }
    }

    pub(super) fn lease_mut(&mut self, id: Id) -> Option<&mut Lease> {
        match &mut self.workloads.get_mut(&id)?.phase {
            Phase::Leased(lease) => Some(lease),
            _ => None,
        }
    }

    /// Adds to what a leaf and the ancestors of a lease's beginning hold.
    pub(super) fn count_use(&mut self, line: &[usize], occupancy: Occupancy, gpus: i64) {
        for budget in line {
            self.budgets.rows[*budget].in_use[occupancy as usize] += gpus;
        }
    }

    /// Lists a workload's lease with these budgets, or no longer.
    pub(super) fn list_lease(&mut self, line: &[usize], id: Id, is_there: bool) {
        for budget in line {
            let leased = &mut self.budgets.rows[*budget].leased;
            _ = if is_there { leased.insert(id) } else { leased.remove(&id) };
        }
    }
}

impl Node {
    fn new(line: &NodeLine, pool: usize, gpus: Vec<Gpu>) -> Node {
        Node {
            label: line.node.clone(),
            pool,
            cpus: line.cpus,
            memory: line.memory_bytes,
            block: line.block.clone(),
            features: line.features,
            express: line.express,
            state: line.state,
            severity: line.severity,
            drain_until: line.drain_until_ms,
            gpus,
            counted: 0,
            free: 0,
        }
    }
}

impl Node {
    /// What runs here is stopped for a fault of the infrastructure.
    pub(super) fn is_failing(&self) -> bool {
        self.state == State::Lost || self.severity == Some(Severity::Critical)
    }
}

fn in_pool(pool: usize, path: &str) -> String {
    format!("{pool}:{path}")
}

impl Budget {
    fn new(pool: usize) -> Budget {
        Budget {
            path: String::new(),
            pool,
            parent: None,
            is_leaf: true,
            closed: false,
            claim: 0,
            gpus_max: None,
            unallocated_gpus_max: None,
            min_runtime_max: None,
            in_use: [0, 0],
            leased: BTreeSet::new(),
        }
    }
}

impl Workload {
    pub(super) fn is_allocated(&self) -> bool {
        self.asked.min_runtime_ms > 0
    }

    /// How it holds GPUs when its turn has come.
    pub(super) fn occupancy(&self) -> Occupancy {
        if self.is_allocated() { Occupancy::Allocated } else { Occupancy::Unallocated }
    }

    /// Whether it may start before its turn.
    pub(super) fn may_be_early(&self) -> bool {
        self.is_allocated() && self.asked.start == Some(Start::Whenever)
    }

    /// The contract of its next attempt.
    pub(super) fn contract(&self) -> i64 {
        let left = self.asked.time_limit_ms.map_or(i64::MAX, |limit| (limit - self.ran).max(0));
        self.asked.min_runtime_ms.min(left)
    }

    /// What it is in one of its pools.
    pub(super) fn home(&self, pool: usize) -> Option<&Home> {
        self.homes.iter().find(|home| home.pool == pool)
    }

    /// The contract of its next attempt if that is in this pool.
    pub(super) fn contract_in(&self, pool: usize) -> i64 {
        let left = self.asked.time_limit_ms.map_or(i64::MAX, |limit| (limit - self.ran).max(0));
        self.home(pool).map_or(0, |home| home.min_runtime_ms.min(left))
    }

    /// From now on it counts in this pool, if it is one of its own.
    pub(super) fn settle_in(&mut self, pool: usize) {
        if let Some(home) = self.homes.iter().find(|home| home.pool == pool) {
            (self.pool, self.leaf) = (home.pool, home.leaf);
            (self.asked.charged_gpus, self.asked.min_runtime_ms) = (home.charged_gpus, home.min_runtime_ms);
        }
    }

    pub(super) fn gpus(&self) -> u32 {
        self.asked.members * self.asked.gpus_per_member
    }

    /// GPUs that count against caps: an allocated lease's as charged.
    pub(super) fn counted(&self, occupancy: Occupancy) -> i64 {
        i64::from(if occupancy == Occupancy::Allocated { self.asked.charged_gpus } else { self.gpus() })
    }

    pub(super) fn can_go_on(&self) -> bool {
        self.asked.on_preempt != OnPreempt::End && self.asked.time_limit_ms.is_none_or(|limit| self.ran < limit)
    }

    pub(super) fn is_waiting(&self) -> bool {
        matches!(self.phase, Phase::Waiting)
    }
}

impl Lease {
    /// When its contract began to run.
    pub(super) fn contract_from(&self) -> Option<i64> {
        self.running_since.map(|running| self.promoted_at.map_or(running, |promoted| promoted.max(running)))
    }

    pub(super) fn is_protected(&self, now: i64) -> bool {
        let is_starting = self.running_since.is_none() && self.stopping_since.is_none();
        self.occupancy == Occupancy::Allocated && (is_starting || self.protected_until.is_some_and(|until| now < until))
    }
}

/// How many GPUs these are.
pub(super) fn count(slots: &Slots) -> i64 {
    slots.iter().map(|(_, gpus)| gpus.len() as i64).sum()
}
