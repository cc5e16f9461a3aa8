//! What each budget was owed and what it got, hour by hour, integrated exactly between the moments at which something changes.
//!
//! - `owed`: at each moment min(claim × capacity, demand).
//! - `demand`: charged GPUs of allocated work that runs, plus those waiting that no cap of the budget or an ancestor holds back.
//!   A gang is held back when a cap has no room for it; together the waiting ones count for no more than the room there is.
//!   An inner budget's demand is its subtree's.
//! - `delivered`: charged GPUs of allocated leases, less refunds, which are taken out of the hours they were charged in.

use super::HOUR;
use super::hours::Hour;
use std::collections::BTreeMap;
use stipend_core::entry::BudgetEntry;
use stipend_core::id::{BudgetId, PoolId};
use stipend_core::quantity::{Claim, GpuMs, Gpus, Time};

/// No cap on the way to the root.
const NO_CAP: i64 = i64::MAX;

/// A change of one leaf's allocated work, in charged GPUs of one workload.
#[derive(Clone, Copy, Debug)]
pub(super) enum Change {
    /// It waits and may start.
    Queue(u32),
    /// It no longer does.
    Unqueue(u32),
    /// It waited and now holds GPUs.
    Start(u32),
    /// It gave them back.
    Stop(u32),
}

/// What is summed for one budget.
#[derive(Clone, Debug, Default)]
pub(super) struct Meter {
    pub path: String,
    pub parent: Option<BudgetId>,
    pub children: Vec<BudgetId>,
    pub claim: Claim,
    /// The most charged GPUs that its allocated work may hold.
    cap: Option<i64>,
    /// Charged GPUs under lease in its subtree.
    running: i64,
    /// Charged GPUs waiting in its subtree that no cap holds back.
    ready: i64,
    /// A leaf's waiting gangs: how many of each size.
    sizes: BTreeMap<u32, u32>,
    /// A leaf's waiting charged GPUs, held back or not.
    waiting: i64,
    /// Up to when it is summed.
    since: Time,
    pub demand: GpuMs,
    /// GPU time of its subtree that led to a bank or a completion, of allocated and unallocated work.
    pub useful: GpuMs,
    /// Credit that lapsed; `None` where nothing ever did, as under a policy that knows no credit.
    pub lapsed: Option<GpuMs>,
    pub hours: Vec<Hour>,
}

impl Meter {
    fn advance(&mut self, at: Time, capacity: i64) {
        let ms = (at - self.since).0;
        self.since = at;
        let Some(hour) = self.hours.last_mut() else { return };
        if ms == 0 {
            return;
        }
        let demand = self.running + self.ready;
        hour.add(ms, self.claim, capacity, demand, self.running);
        self.demand += GpuMs(demand * ms);
    }

    /// What of a leaf's waiting work could start with `room` GPUs left under its tightest cap.
    fn fitting(&self, room: i64) -> i64 {
        if self.waiting <= room && self.sizes.last_key_value().is_none_or(|(size, _)| i64::from(*size) <= room) {
            return self.waiting;
        }
        let fits = self.sizes.iter().take_while(|(size, _)| i64::from(**size) <= room);
        fits.map(|(size, count)| i64::from(*size) * i64::from(*count)).sum::<i64>().min(room)
    }

    fn queue(&mut self, size: u32) {
        *self.sizes.entry(size).or_default() += 1;
        self.waiting += i64::from(size);
    }

    fn unqueue(&mut self, size: u32) {
        let count = self.sizes.get_mut(&size).expect("it was queued");
        *count -= 1;
        if *count == 0 {
            self.sizes.remove(&size);
        }
        self.waiting -= i64::from(size);
    }
}

/// All budgets of the pool.
#[derive(Default)]
pub(super) struct Delivery {
    /// By budget number.
    meters: Vec<Option<Meter>>,
    /// GPUs.
    capacity: i64,
    /// How many hours are open or full.
    hours: usize,
}

impl Delivery {
    /// The budgets, parents before children, siblings by number.
    pub(super) fn in_tree_order(&self) -> Vec<&Meter> {
        let mut order = Vec::new();
        let mut stack: Vec<BudgetId> = self.roots().into_iter().rev().collect();
        while let Some(id) = stack.pop() {
            let meter = self.meter(id);
            order.push(meter);
            stack.extend(meter.children.iter().rev());
        }
        order
    }

    /// Whether a budget is funded here.
    pub(super) fn has_claim(&self, budget: BudgetId) -> bool {
        self.meter(budget).claim.0 > 0
    }

    /// Whether a gang of this many charged GPUs is more than its budget's claim on the capacity.
    pub(super) fn exceeds_claim(&self, budget: BudgetId, charged: Gpus) -> bool {
        let claim = i128::from(self.meter(budget).claim.0) * i128::from(self.capacity);
        claim < i128::from(charged.0) * i128::from(Claim::WHOLE.0)
    }

    /// The tree as it is from now on.
    pub(super) fn set_budgets(&mut self, at: Time, pool: PoolId, budgets: &[BudgetEntry]) {
        self.advance_all(at);
        for entry in budgets {
            let index = entry.spec.id.index();
            if self.meters.len() <= index {
                self.meters.resize(index + 1, None);
            }
            let born = || Meter { since: at, hours: vec![Hour::default(); self.hours], ..Meter::default() };
            let meter = self.meters[index].get_or_insert_with(born);
            meter.path.clone_from(&entry.path);
            meter.parent = entry.spec.parent;
            meter.claim = entry.claims.get(pool.index()).copied().unwrap_or_default();
            meter.cap = entry.spec.pools.get(pool.index()).and_then(|share| share.gpus_max).map(|cap| i64::from(cap.0));
        }
        self.link();
        for root in self.roots() {
            // Whoever moved is counted where it is now, with what it runs.
            self.sum_running(root);
            self.settle(at, root, NO_CAP);
        }
    }

    /// The capacity from now on, in GPUs.
    pub(super) fn set_capacity(&mut self, at: Time, capacity: i64) {
        if self.capacity != capacity {
            self.advance_all(at);
            self.capacity = capacity;
        }
    }

    /// Starts a new hour for every budget.
    pub(super) fn open_hour(&mut self, at: Time) {
        self.advance_all(at);
        self.hours += 1;
        for meter in self.meters.iter_mut().flatten() {
            meter.hours.push(Hour::default());
        }
    }

    /// Sums every budget up to `at`.
    pub(super) fn advance_all(&mut self, at: Time) {
        for meter in self.meters.iter_mut().flatten() {
            meter.advance(at, self.capacity);
        }
    }

    /// The allocated work of a leaf changes.
    pub(super) fn change(&mut self, at: Time, leaf: BudgetId, change: Change) {
        let running = match change {
            Change::Queue(_) | Change::Unqueue(_) => 0,
            Change::Start(gpus) => i64::from(gpus),
            Change::Stop(gpus) => -i64::from(gpus),
        };
        let meter = self.meter_mut(leaf);
        match change {
            Change::Queue(gpus) => meter.queue(gpus),
            Change::Unqueue(gpus) | Change::Start(gpus) => meter.unqueue(gpus),
            Change::Stop(_) => {}
        }
        self.propagate(at, leaf, running);
    }

    /// Takes a refund out of the hours it was charged in, which are counted from `start`.
    pub(super) fn refund(&mut self, budget: BudgetId, start: Time, (from, to): (Time, Time), gpu_ms: GpuMs) {
        let length = i128::from((to - from).0.max(1));
        // The part of the refund that lies before `at`; differences of it add up to the whole without a remainder.
        let until = |at: Time| i128::from(gpu_ms.0) * i128::from((at.clamp(from, to) - from).0) / length;
        let hours = self.hours;
        let mut next = Some(budget);
        while let Some(id) = next {
            let meter = self.meter_mut(id);
            let first = usize::try_from((from - start).0.max(0) / HOUR.0).expect("not negative");
            for index in first..hours {
                let begin = start + HOUR * i64::try_from(index).expect("hours are few");
                if to <= begin {
                    break;
                }
                let part = until(begin + HOUR) - until(begin);
                let hour = &mut meter.hours[index];
                hour.delivered = hour.delivered - GpuMs(i64::try_from(part).expect("a part of an i64"));
            }
            next = meter.parent;
        }
    }

    /// Carries a change of a leaf's running GPUs, and of what is ready under the caps, up to the root.
    fn propagate(&mut self, at: Time, leaf: BudgetId, running: i64) {
        let (mut top, mut next) = (leaf, Some(leaf));
        while let Some(id) = next {
            let capacity = self.capacity;
            let meter = self.meter_mut(id);
            meter.advance(at, capacity);
            meter.running += running;
            if meter.cap.is_some() {
                top = id;
            }
            next = meter.parent;
        }
        // Below the topmost cap, room is shared: one leaf's start may hold back another's work.
        let before = self.meter(top).ready;
        let difference = self.settle(at, top, NO_CAP) - before;
        let mut next = self.meter(top).parent;
        while let Some(id) = next {
            let meter = self.meter_mut(id);
            meter.ready += difference;
            next = meter.parent;
        }
    }

    /// Recomputes what is ready in a subtree, given the room under the caps above it.
    fn settle(&mut self, at: Time, id: BudgetId, room_above: i64) -> i64 {
        let capacity = self.capacity;
        let meter = self.meter_mut(id);
        meter.advance(at, capacity);
        let room = meter.cap.map_or(room_above, |cap| room_above.min((cap - meter.running).max(0)));
        let ready = if meter.children.is_empty() {
            meter.fitting(room)
        } else {
            let children = meter.children.clone();
            children.into_iter().map(|child| self.settle(at, child, room)).sum::<i64>().min(room)
        };
        self.meter_mut(id).ready = ready;
        ready
    }

    fn sum_running(&mut self, id: BudgetId) -> i64 {
        let children = self.meter(id).children.clone();
        if !children.is_empty() {
            self.meter_mut(id).running = children.into_iter().map(|child| self.sum_running(child)).sum();
        }
        self.meter(id).running
    }

    fn link(&mut self) {
        let ids: Vec<usize> = (0..self.meters.len()).filter(|&index| self.meters[index].is_some()).collect();
        for &index in &ids {
            self.meters[index].as_mut().expect("filtered").children.clear();
        }
        for index in ids {
            let id = BudgetId(u32::try_from(index).expect("budgets are numbered by u32"));
            if let Some(parent) = self.meter(id).parent {
                self.meter_mut(parent).children.push(id);
            }
        }
    }

    fn roots(&self) -> Vec<BudgetId> {
        let numbered = (0..).map(BudgetId).zip(&self.meters);
        numbered.filter(|(_, meter)| meter.as_ref().is_some_and(|meter| meter.parent.is_none())).map(|(id, _)| id).collect()
    }

    /// Credit of a budget lapsed.
    pub(super) fn add_lapsed(&mut self, budget: BudgetId, gpu_ms: GpuMs) {
        let lapsed = &mut self.meter_mut(budget).lapsed;
        *lapsed = Some(lapsed.unwrap_or_default() + gpu_ms);
    }

    /// GPU time of a leaf's work led to something.
    pub(super) fn add_useful(&mut self, leaf: BudgetId, gpu_ms: GpuMs) {
        let mut next = Some(leaf);
        while let Some(id) = next {
            let meter = self.meter_mut(id);
            meter.useful += gpu_ms;
            next = meter.parent;
        }
    }

    fn meter(&self, id: BudgetId) -> &Meter {
        self.meters[id.index()].as_ref().expect("a budget is announced before it is used")
    }

    fn meter_mut(&mut self, id: BudgetId) -> &mut Meter {
        self.meters[id.index()].as_mut().expect("a budget is announced before it is used")
    }
}
