//! Waiting work of one pool: by leaf, shape and user, so that a cycle looks at classes of equal requests and not at every workload.

use crate::budget::BudgetTree;
use crate::completion::{Completion, Equals, equals};
use crate::id::{BudgetId, PoolId, WorkloadId};
use crate::knobs::Knobs;
use crate::pool::Pool;
use crate::quantity::{Span, Time};
use crate::spec::{Gang, LeafOrder, OnPreempt, Start, WorkloadSpec};
use crate::table::Table;
use crate::workload::{Terms, Workload};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// Number of a shape in its pool.
pub(crate) type ShapeId = u32;

/// A class of equal requests: if one of them cannot start, none can.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Shape {
    pub gang: Gang,
    pub on_preempt: OnPreempt,
    pub allocated: bool,
    /// May run on express GPUs.
    pub express: bool,
    /// Short work that was evicted has no licence on express GPUs any more: it must not stand for work that has.
    pub evicted: bool,
    /// Contracts of one class differ by less than a factor of 4: what an eviction may cost hangs on the contract.
    pub contract_class: u32,
    /// May start unallocated before its turn.
    pub whenever: bool,
    /// Runs unallocated already: it needs no GPUs, only its turn.
    pub early: bool,
    /// The pools that it likes better than this one.
    pub before: Vec<PoolId>,
}

impl Shape {
    pub(crate) fn new(spec: &WorkloadSpec, pool: PoolId, contract: Span, yielded: u32, knobs: &Knobs) -> Shape {
        let (gang, on_preempt) = (spec.gang, spec.on_preempt);
        let allocated = contract > Span::ZERO;
        let short = contract <= knobs.express_contract_max && gang.gpus().0 <= knobs.express_gpus_max;
        let (express, evicted) = (!allocated || short, allocated && short && yielded > 0);
        let contract_class = (64 - contract.0.leading_zeros()) / 2;
        Shape {
            gang,
            on_preempt,
            allocated,
            express,
            evicted,
            contract_class,
            whenever: allocated && spec.start == Start::Whenever,
            early: false,
            before: spec.pools.iter().take_while(|other| *other != pool).collect(),
        }
    }
}

impl Shape {
    /// The same of work that runs unallocated: it is in no other pool's queue.
    pub(crate) fn early(&self) -> Shape {
        Shape { early: true, before: Vec::new(), ..self.clone() }
    }
}

/// When a shape of a leaf was found not to start: it is not tried again before something that could help has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Blocked {
    /// The pool's counts of what could help, when it was tried.
    pub reach: u64,
    pub takeable: u64,
    /// The priority of the workload that was tried: a higher one may have more licences.
    pub priority: i16,
    /// It is tried again then at the latest.
    pub retry_at: Time,
    /// Only a cap stops it, or a claim that is gone: it may start before its turn.
    pub capped: bool,
}

/// What a walk must know of a shape to leave it alone, kept together so that looking at all of them is cheap.
#[derive(Clone, Copy, Debug, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Gate {
    pub shape: ShapeId,
    pub size: Size,
    pub blocked: Option<Blocked>,
    /// The pool's count of freed GPUs when it was last tried to start it before its turn.
    pub filled: u64,
}

/// What a shape needs, in GPUs alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Size {
    pub members: u32,
    pub gpus_per_member: u32,
    pub express: bool,
}

impl Size {
    pub(crate) fn gpus(&self) -> u32 {
        self.members * self.gpus_per_member
    }
}

impl Shape {
    pub(crate) fn size(&self) -> Size {
        let members = if self.early { 0 } else { self.gang.members };
        Size { members, gpus_per_member: self.gang.gpus_per_member, express: self.express }
    }
}

/// Past-contract GPUs that a leaf's waiting work could be licensed to take, at most.
#[derive(Clone, Copy, Debug, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Licensed {
    pub gpus: u32,
    /// The pool's count of takeable leases then.
    pub takeable: u64,
    /// Standings drift: it is looked at again then at the latest.
    pub until: Time,
}

/// Place inside a user's queue: the leaf's order, then eligible time, then number.
type Key = (i64, Time, WorkloadId);

/// Waiting work of one shape in one leaf.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct ShapeQueue {
    /// By the user's account.
    users: BTreeMap<usize, BTreeSet<Key>>,
    by_age: BTreeSet<(Time, WorkloadId)>,
}

/// Waiting work of one leaf.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct LeafQueue {
    /// A copy of the state shares them until one of the two changes.
    pub shapes: BTreeMap<ShapeId, Arc<ShapeQueue>>,
    /// One for each of `shapes`, in the same order.
    pub gates: Vec<Gate>,
    pub waiting: u32,
    /// Since when the leaf's longest eligible work has been so.
    eldest: Option<Time>,
    /// Waits until the first start of the leaf's latest workloads, in their order and sorted.
    waits: VecDeque<Span>,
    sorted_waits: Vec<Span>,
    /// What the leaf's licences reached when they were last looked at.
    pub licensed: Option<Licensed>,
    /// A cap stopped some of its work that may start before its turn, at some time.
    capped: bool,
    /// How many wait at each priority.
    priorities: BTreeMap<i16, u32>,
    /// What waits of equal work, where the order is by completion: it moves together.
    equals: BTreeMap<Equals, BTreeSet<WorkloadId>>,
}

const WAITS_KEPT: usize = 64;

impl LeafQueue {
    /// Whether there is something new to try: work of a shape that is blocked waits for what could help it.
    fn insert(&mut self, id: WorkloadId, workload: &Workload, terms: &Terms, shape: &Shape, order: LeafOrder) -> bool {
        let queue = Arc::make_mut(self.shapes.entry(terms.shape).or_default());
        queue.users.entry(terms.charge.user).or_default().insert(key(id, workload, terms, order));
        queue.by_age.insert((workload.eligible, id));
        if order == LeafOrder::Completion {
            self.equals.entry(equals(&workload.spec)).or_default().insert(id);
        }
        let gate = match self.gates.binary_search_by_key(&terms.shape, |gate| gate.shape) {
            Ok(place) => &mut self.gates[place],
            Err(place) => {
                self.gates.insert(place, Gate { shape: terms.shape, size: shape.size(), blocked: None, filled: 0 });
                &mut self.gates[place]
            }
        };
        gate.blocked = gate.blocked.filter(|blocked| blocked.priority >= workload.spec.priority);
        let is_open = gate.blocked.is_none();
        self.eldest = Some(self.eldest.map_or(workload.eligible, |eldest| eldest.min(workload.eligible)));
        self.waiting += 1;
        if self.highest_priority().is_none_or(|highest| highest < workload.spec.priority) {
            // A higher priority may have more licences in its own leaf.
            self.licensed = None;
        }
        *self.priorities.entry(workload.spec.priority).or_default() += 1;
        is_open
    }

    fn remove(&mut self, id: WorkloadId, workload: &Workload, terms: &Terms, order: LeafOrder) {
        let queue = Arc::make_mut(self.shapes.get_mut(&terms.shape).expect("waiting work is in its shape's queue"));
        let user = queue.users.get_mut(&terms.charge.user).expect("waiting work is in its user's queue");
        let was_there = user.remove(&key(id, workload, terms, order)) && queue.by_age.remove(&(workload.eligible, id));
        assert!(was_there, "waiting work is in its queue");
        if user.is_empty() {
            queue.users.remove(&terms.charge.user);
        }
        if order == LeafOrder::Completion {
            let equals = equals(&workload.spec);
            let waiting = self.equals.get_mut(&equals).expect("waiting work is listed by what it equals");
            waiting.remove(&id);
            if waiting.is_empty() {
                self.equals.remove(&equals);
            }
        }
        if queue.by_age.is_empty() {
            self.shapes.remove(&terms.shape);
            self.gates.retain(|gate| gate.shape != terms.shape);
        }
        if self.eldest == Some(workload.eligible) {
            self.eldest = self.shapes.values().filter_map(|queue| queue.by_age.first()).map(|(eligible, _)| *eligible).min();
        }
        self.waiting -= 1;
        let at_priority = self.priorities.get_mut(&workload.spec.priority).expect("it was counted");
        *at_priority -= 1;
        if *at_priority == 0 {
            self.priorities.remove(&workload.spec.priority);
        }
    }

    /// Writes down when a shape was found blocked.
    pub(crate) fn block(&mut self, shape: ShapeId, blocked: Blocked) {
        self.capped |= blocked.capped;
        if let Ok(place) = self.gates.binary_search_by_key(&shape, |gate| gate.shape) {
            self.gates[place].blocked = Some(blocked);
        }
    }

    /// Writes down when it was tried to start a shape before its turn.
    pub(crate) fn filled(&mut self, shape: ShapeId, freed: u64) {
        if let Ok(place) = self.gates.binary_search_by_key(&shape, |gate| gate.shape) {
            self.gates[place].filled = freed;
        }
    }

    /// Whether a cap stopped some of its work that may start before its turn, at some time.
    pub(crate) fn is_capped(&self) -> bool {
        self.capped
    }

    /// Shapes that may start before their turn, for which GPUs became free since they were last tried.
    pub(crate) fn capped(&self, freed: u64) -> impl Iterator<Item = ShapeId> {
        let is_open = move |gate: &&Gate| gate.filled < freed && gate.blocked.is_some_and(|blocked| blocked.capped);
        self.gates.iter().filter(is_open).map(|gate| gate.shape)
    }

    /// Whether more waits in a shape than these.
    pub(crate) fn has_more(&self, shape: ShapeId, than: &BTreeSet<WorkloadId>) -> bool {
        self.shapes.get(&shape).is_some_and(|queue| queue.by_age.iter().any(|(_, id)| !than.contains(id)))
    }

    /// The highest priority that waits.
    pub(crate) fn highest_priority(&self) -> Option<i16> {
        self.priorities.last_key_value().map(|(priority, _)| *priority)
    }

    /// Whether some of its work has waited so long that it goes first by age.
    pub(crate) fn has_aged(&self, at: Time, age_min: Span) -> bool {
        self.eldest.is_some_and(|eldest| at - eldest > self.old_age(age_min))
    }

    /// A workload of this leaf first ran after `wait`.
    pub(crate) fn waited(&mut self, wait: Span) {
        if self.waits.len() == WAITS_KEPT
            && let Some(oldest) = self.waits.pop_front()
        {
            let place = self.sorted_waits.partition_point(|w| *w < oldest);
            self.sorted_waits.remove(place);
        }
        self.waits.push_back(wait);
        let place = self.sorted_waits.partition_point(|w| *w < wait);
        self.sorted_waits.insert(place, wait);
    }

    /// Eligible longer than this, work goes before all younger work of its leaf.
    pub(crate) fn old_age(&self, age_min: Span) -> Span {
        let median = self.sorted_waits.get(self.sorted_waits.len() / 2).copied().unwrap_or_default();
        age_min.max(median * 3)
    }

    /// The longest eligible workload among these shapes, without those to skip.
    pub(crate) fn oldest(&self, shapes: &[ShapeId], skip: &BTreeSet<WorkloadId>) -> Option<(Time, WorkloadId)> {
        shapes.iter().filter_map(|s| first(&self.shapes.get(s)?.by_age, |(_, id)| skip.contains(id))).min()
    }

    /// Waiting work that goes before `id`, for explanations: older work of its own order.
    pub(crate) fn ahead_of(&self, id: WorkloadId, workload: &Workload, terms: &Terms, order: LeafOrder) -> u32 {
        let own = key(id, workload, terms, order);
        let ahead = |queue: &Arc<ShapeQueue>| queue.users.values().flatten().filter(|k| **k < own).count();
        self.shapes.values().map(ahead).sum::<usize>() as u32
    }

    /// What waits of equal work, if the order is by completion.
    pub(crate) fn equal(&self, equals: Equals) -> impl Iterator<Item = WorkloadId> {
        self.equals.get(&equals).into_iter().flatten().copied()
    }

    /// Everything that waits, with the shape it waits under.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (ShapeId, WorkloadId)> {
        self.shapes.iter().flat_map(|(shape, queue)| queue.by_age.iter().map(move |(_, id)| (*shape, *id)))
    }

    pub(crate) fn hash_into<H: std::hash::Hasher>(&self, state: &mut H) {
        use std::hash::Hash;
        (self.waiting, &self.waits, &self.licensed, self.capped).hash(state);
        for (shape, queue) in &self.shapes {
            (shape, &queue.by_age).hash(state);
        }
        self.gates.hash(state);
    }
}

fn key(id: WorkloadId, workload: &Workload, terms: &Terms, order: LeafOrder) -> Key {
    let first = match order {
        LeafOrder::Priority => -i64::from(workload.spec.priority),
        LeafOrder::Fifo => 0,
        LeafOrder::ShortestContract => terms.contract_gpu_ms().0,
        LeafOrder::Completion => (workload.eligible - workload.head_start).0,
    };
    (first, workload.eligible, id)
}

/// The first workload of a shape in its leaf, and what puts it before those of other shapes: it has waited too long, then the leaf's order,
/// then what its user had, then its eligible time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct First {
    in_its_turn: bool,
    key: i64,
    used: i128,
    eligible: Time,
    pub id: WorkloadId,
    pub shape: ShapeId,
}

impl First {
    fn by_age((eligible, id): (Time, WorkloadId), shape: ShapeId) -> First {
        First { in_its_turn: false, key: 0, used: 0, eligible, id, shape }
    }
}

/// The first workload of each of these shapes, without those to skip, the leaf's first last: what has waited too long, then its order, then
/// the user who had least (`used`).
pub(crate) fn firsts(
    leaf: &LeafQueue,
    (shapes, skip): (&[ShapeId], &BTreeSet<WorkloadId>),
    order: LeafOrder,
    at: Time,
    age_min: Span,
    mut used: impl FnMut(usize) -> i128,
) -> Vec<First> {
    let (has_aged, old_age) = (leaf.has_aged(at, age_min), leaf.old_age(age_min));
    let mut first_of = |shape: ShapeId| {
        let queue = leaf.shapes.get(&shape)?;
        if order == LeafOrder::Fifo || has_aged {
            let oldest = first(&queue.by_age, |(_, id)| skip.contains(id))?;
            if order == LeafOrder::Fifo || at - oldest.0 > old_age {
                return Some(First::by_age(oldest, shape));
            }
        }
        let mut best: Option<First> = None;
        for (user, queue) in &queue.users {
            let Some((key, eligible, id)) = first(queue, |(.., id)| skip.contains(id)) else { continue };
            if best.is_some_and(|best| best.key < key) {
                continue;
            }
            let used = if order == LeafOrder::Priority { used(*user) } else { 0 };
            let one = First { in_its_turn: true, key, used, eligible, id, shape };
            best = Some(best.map_or(one, |best| best.min(one)));
        }
        best
    };
    let mut firsts = Vec::with_capacity(shapes.len());
    firsts.extend(shapes.iter().filter_map(|shape| first_of(*shape)));
    firsts.sort_unstable_by(|a, b| b.cmp(a));
    firsts
}

/// The first of a set that is not to be skipped, which is nearly always the first of all.
fn first<T: Copy + Ord>(set: &BTreeSet<T>, skip: impl Fn(&T) -> bool) -> Option<T> {
    set.first().filter(|one| !skip(one)).or_else(|| set.iter().find(|one| !skip(one))).copied()
}

/// All shapes and leaves of a pool.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Queue {
    pool: PoolId,
    shapes: Vec<Shape>,
    numbers: BTreeMap<Shape, ShapeId>,
    /// Allocated work by leaf.
    pub allocated: BTreeMap<BudgetId, LeafQueue>,
    /// Unallocated work by leaf.
    pub unallocated: BTreeMap<BudgetId, LeafQueue>,
    /// How many wait here that like this other pool better.
    pub before: BTreeMap<PoolId, u32>,
    /// Counts gangs that were queued and may be promised a start.
    pub gangs: u64,
}

impl Queue {
    pub(crate) fn new(pool: PoolId) -> Queue {
        Queue {
            pool,
            shapes: Vec::new(),
            numbers: BTreeMap::new(),
            allocated: BTreeMap::new(),
            unallocated: BTreeMap::new(),
            before: BTreeMap::new(),
            gangs: 0,
        }
    }

    pub(crate) fn shape(&self, id: ShapeId) -> &Shape {
        &self.shapes[id as usize]
    }

    pub(crate) fn shape_id(&mut self, shape: Shape) -> ShapeId {
        let next = self.shapes.len() as ShapeId;
        let id = *self.numbers.entry(shape.clone()).or_insert(next);
        if id == next {
            self.shapes.push(shape);
        }
        id
    }

    /// Whether work of this shape was accepted before.
    pub(crate) fn is_known(&self, shape: &Shape) -> bool {
        self.numbers.contains_key(shape)
    }

    fn leaf_mut(&mut self, workload: &Workload) -> &mut LeafQueue {
        let side = if workload.is_allocated() { &mut self.allocated } else { &mut self.unallocated };
        side.entry(workload.spec.budget).or_default()
    }

    /// Whether there is something new to try.
    pub(crate) fn insert(&mut self, id: WorkloadId, workload: &Workload, tree: &BudgetTree) -> bool {
        let order = order_of(tree, workload.spec.budget);
        let terms = workload.in_pool(self.pool);
        let shape = &self.shapes[terms.shape as usize];
        for pool in &shape.before {
            *self.before.entry(*pool).or_default() += 1;
        }
        let Queue { shapes, allocated, unallocated, .. } = self;
        let side = if workload.is_allocated() { allocated } else { unallocated };
        let leaf = side.entry(workload.spec.budget).or_default();
        leaf.insert(id, workload, terms, &shapes[terms.shape as usize], order)
    }

    pub(crate) fn remove(&mut self, id: WorkloadId, workload: &Workload, tree: &BudgetTree) {
        let order = order_of(tree, workload.spec.budget);
        let terms = workload.in_pool(self.pool);
        for pool in &self.shapes[terms.shape as usize].before {
            let waiting = self.before.get_mut(pool).expect("it was counted");
            *waiting -= 1;
            if *waiting == 0 {
                self.before.remove(pool);
            }
        }
        self.leaf_mut(workload).remove(id, workload, terms, order);
    }

    /// Leaves whose order changed are sorted anew.
    pub(crate) fn reorder(&mut self, old: &BudgetTree, new: &BudgetTree, workloads: &Table<Workload>) {
        for (leaf, queue) in self.allocated.iter_mut().chain(&mut self.unallocated) {
            let (before, after) = (order_of(old, *leaf), order_of(new, *leaf));
            if before == after {
                continue;
            }
            let waiting: Vec<WorkloadId> = queue.iter().map(|(_, id)| id).collect();
            for id in waiting {
                let workload = workloads.get(id.0).expect("waiting work is live");
                let terms = workload.in_pool(self.pool);
                queue.remove(id, workload, terms, before);
                queue.insert(id, workload, terms, &self.shapes[terms.shape as usize], after);
            }
        }
    }

    pub(crate) fn waited(&mut self, workload: &Workload, wait: Span) {
        self.leaf_mut(workload).waited(wait);
    }

    /// The queue a workload waits in.
    pub(crate) fn leaf(&self, workload: &Workload) -> Option<&LeafQueue> {
        let side = if workload.is_allocated() { &self.allocated } else { &self.unallocated };
        side.get(&workload.spec.budget)
    }

    pub(crate) fn leaf_queue_mut(&mut self, allocated: bool, leaf: BudgetId) -> Option<&mut LeafQueue> {
        if allocated { self.allocated.get_mut(&leaf) } else { self.unallocated.get_mut(&leaf) }
    }

    pub(crate) fn hash_into<H: std::hash::Hasher>(&self, state: &mut H) {
        use std::hash::Hash;
        (&self.shapes, self.gangs).hash(state);
        for (leaf, queue) in self.allocated.iter().chain(&self.unallocated) {
            leaf.hash(state);
            queue.hash_into(state);
        }
    }
}

/// A workload waits in the queue of every pool that it accepts, at the place that its past gives it.
pub(crate) fn join_queues(pools: &mut [Pool], completion: &mut Completion, id: WorkloadId, workload: &mut Workload, tree: &BudgetTree) {
    let by_completion = order_of(tree, workload.spec.budget) == LeafOrder::Completion;
    workload.head_start = if by_completion { completion.head_start(pools, workload) } else { Span::ZERO };
    for terms in workload.all_terms() {
        let pool = &mut pools[terms.pool.index()];
        pool.queue.gangs += u64::from(workload.is_allocated() && pool.may_promise(&workload.spec.gang));
        pool.stirred |= pool.queue.insert(id, workload, tree);
    }
    ask(pools, workload, 1);
}

/// Allocated work asks for GPUs in every pool that it accepts (`sign` = 1), or no longer (−1).
pub(crate) fn ask(pools: &mut [Pool], workload: &Workload, sign: i64) {
    for terms in workload.all_terms().filter(|_| workload.is_allocated()) {
        ask_in(&mut pools[terms.pool.index()], terms, sign);
    }
}

/// The same in one pool.
pub(crate) fn ask_in(pool: &mut Pool, terms: &Terms, sign: i64) {
    pool.ledger.wait(&terms.charge, terms.charged, sign);
}

/// A workload that starts, claims or is withdrawn waits nowhere any more.
pub(crate) fn leave_queues(pools: &mut [Pool], id: WorkloadId, workload: &Workload, tree: &BudgetTree) {
    for terms in workload.all_terms() {
        pools[terms.pool.index()].queue.remove(id, workload, tree);
    }
    ask(pools, workload, -1);
}

pub(crate) fn order_of(tree: &BudgetTree, leaf: BudgetId) -> LeafOrder {
    tree.get(leaf).map(|b| b.spec.order).unwrap_or_default()
}

/// How long an unallocated workload that was evicted again and again is spared: a minute, doubled each time, at most a day.
pub(crate) fn spared_until(workload: &Workload) -> Time {
    match workload.preemptions {
        0 => Time::MIN,
        n => workload.last_preempted + Span::minutes(1 << n.min(10)).min(Span::days(1)),
    }
}
