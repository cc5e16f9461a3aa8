//! What is measured (DESIGN section 10): one observer that sees the log's entries and the engine's truth, and sums exact integers.
//!
//! Everything is counted from the end of the warm-up on. Two units stand side by side:
//! - *GPUs* of a placement, for occupancy and useful work: GPUs that a large CPU request strands count as idle;
//! - *charged GPUs*, for demand, owed and delivered: what a budget's claim is spent on.
//!
//! Floating point appears in [`crate::result`] only.

mod delivery;
mod estimates;
mod figures;
pub mod hours;
mod nodes;
mod promises;
mod roster;
pub mod series;
mod summary;
#[cfg(test)]
mod tests;
mod totals;
mod waits;

use crate::job::Job;
use crate::observer::Observer;
use delivery::{Change, Delivery};
use estimates::EstimateLog;
use nodes::Nodes;
use promises::PromiseLog;
use roster::{Phase, Roster, Row};
use std::collections::BTreeMap;
use stipend_core::entry::{ChargeKind, Class, Entry, Occupancy, Outcome, Placement};
use stipend_core::id::{BudgetId, LeaseId, PoolId, WorkloadId};
use stipend_core::quantity::{GpuMs, Gpus, Span, Time};
use totals::Totals;
use waits::WaitLogs;

/// The buckets of owed and delivered: an hour, counted from the end of the warm-up.
const HOUR: Span = Span::hours(1);

/// A pool that is measured.
#[derive(Clone, Debug)]
pub struct PoolWindow {
    /// What it is called.
    pub name: String,
    /// Where it has no GPUs, how many CPUs are counted as one.
    pub cpus_per_gpu: Option<u32>,
}

/// What to measure.
#[derive(Clone, Debug)]
pub struct Window {
    /// The pools, by number. The figures of the whole are about those with GPUs, or about all where none has any.
    pub pools: Vec<PoolWindow>,
    /// What happens before this is not counted.
    pub from: Time,
    /// Whether the policy keeps express nodes for short contracts, so that other allocated work can never fill them.
    pub express_kept: bool,
}

/// Counts of what happened, by entry.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    submitted: u64,
    completed: u64,
    failed: u64,
    preemptions: u64,
    preemptions_allocated: u64,
}

/// GPU time that came to something, and that did not.
#[derive(Clone, Copy, Debug, Default)]
struct Truth {
    useful: GpuMs,
    lost_allocated: GpuMs,
    lost_unallocated: GpuMs,
}

/// What is summed for one pool.
#[derive(Default)]
struct Books {
    nodes: Nodes,
    totals: Totals,
    delivery: Delivery,
    truth: Truth,
    /// The figures of the whole are about it, too.
    is_counted: bool,
}

/// The observer that measures a run.
pub struct Metrics {
    window: Window,
    /// Up to when everything is summed.
    now: Time,
    /// The start of the hour bucket to open next.
    next_hour: Time,
    /// By pool.
    books: Vec<Books>,
    roster: Roster,
    /// How much work each workload has that is announced but not yet submitted.
    announced: BTreeMap<WorkloadId, Span>,
    waits: WaitLogs,
    promises: PromiseLog,
    estimates: EstimateLog,
    counts: Counts,
}

impl Metrics {
    /// Measures `window`.
    pub fn new(window: Window) -> Metrics {
        let all_cpus = window.pools.iter().all(|pool| pool.cpus_per_gpu.is_some());
        let books = |pool: &PoolWindow| Books { is_counted: all_cpus || pool.cpus_per_gpu.is_none(), ..Books::default() };
        Metrics {
            now: Time::MIN,
            next_hour: window.from,
            books: window.pools.iter().map(books).collect(),
            window,
            roster: Roster::default(),
            announced: BTreeMap::new(),
            waits: WaitLogs::default(),
            promises: PromiseLog::default(),
            estimates: EstimateLog::default(),
            counts: Counts::default(),
        }
    }

    /// All GPUs, in service or not.
    pub fn capacity(&self) -> Gpus {
        self.counted().map(|books| books.nodes.all()).sum()
    }

    /// The pools that the figures of the whole are about.
    fn counted(&self) -> impl Iterator<Item = &Books> + Clone {
        self.books.iter().filter(|books| books.is_counted)
    }

    /// How much time was measured.
    fn measured(&self) -> Span {
        Span((self.now - self.window.from.min(self.now)).0)
    }

    /// Whether what happens at `at` counts.
    fn counts(&self, at: Time) -> bool {
        self.window.from <= at
    }

    /// Sums everything up to `at`, opening an hour bucket at each full hour passed.
    fn advance(&mut self, at: Time) {
        while self.next_hour < at {
            let hour = self.next_hour;
            for books in &mut self.books {
                books.totals.advance(hour);
                if hour == self.window.from {
                    books.totals.clear();
                }
                books.delivery.open_hour(hour);
            }
            self.next_hour = hour + HOUR;
        }
        if self.now < at {
            self.books.iter_mut().for_each(|books| books.totals.advance(at));
            self.now = at;
        }
    }

    fn of(&mut self, pool: PoolId) -> &mut Books {
        &mut self.books[pool.index()]
    }

    fn capacity_changed(&mut self, at: Time, pool: PoolId) {
        let kept = self.window.express_kept;
        let Books { nodes, totals, delivery, .. } = self.of(pool);
        let (main, express) = nodes.in_service();
        totals.level.main = main;
        totals.level.express = if kept { express } else { 0 };
        if !kept {
            totals.level.main += express;
        }
        delivery.set_capacity(at, main + express);
    }

    fn submitted(
        &mut self,
        at: Time,
        workload: WorkloadId,
        budget: BudgetId,
        class: Class,
        first: (PoolId, u32),
        homes: Box<[(PoolId, u32)]>,
    ) {
        let work = self.announced.remove(&workload).unwrap_or_default();
        // It waits in all its pools; what it asks for counts where its budget can have it, first in its order.
        let has_claim = |(pool, _): &&(PoolId, u32)| self.books[pool.index()].delivery.has_claim(budget);
        let (pool, charged) = homes.iter().find(has_claim).copied().unwrap_or(first);
        let row = Row {
            eligible: at,
            waiting_since: at,
            work,
            placement: None,
            budget,
            home: pool,
            homes,
            pool,
            charged,
            class,
            phase: Phase::Waiting,
            ran: false,
            early: false,
            running: None,
            over_claim: class != Class::Unallocated && self.of(pool).delivery.exceeds_claim(budget, Gpus(charged)),
        };
        self.counts.submitted += u64::from(self.counts(at) && self.is_counted(&row));
        self.queue(at, &row);
        self.roster.insert(workload, row);
    }

    /// Whether the figures of the whole are about a workload: about those that wait for GPUs.
    fn is_counted(&self, row: &Row) -> bool {
        self.books[row.home.index()].is_counted
    }

    /// It may start (again) from now on.
    fn eligible(&mut self, at: Time, workload: WorkloadId) {
        let Some(row) = self.roster.get_mut(workload) else { return };
        if row.phase != Phase::Held {
            return;
        }
        (row.phase, row.waiting_since) = (Phase::Waiting, at);
        if !row.ran {
            row.eligible = at;
        }
        let row = row.clone();
        self.queue(at, &row);
    }

    fn held(&mut self, at: Time, workload: WorkloadId) {
        let Some(row) = self.roster.get_mut(workload) else { return };
        if row.phase == Phase::Waiting {
            row.phase = Phase::Held;
            let row = row.clone();
            self.unqueue(at, &row);
        }
    }

    fn started(&mut self, at: Time, lease: LeaseId, pool: PoolId, occupancy: Occupancy, placement: &Placement) {
        let Some(row) = self.roster.get_mut(lease.workload) else { return };
        if row.pool != pool {
            self.move_to(at, lease.workload, pool);
        }
        let Some(row) = self.roster.get_mut(lease.workload) else { return };
        row.phase = Phase::Leased;
        row.placement = Some(placement.clone());
        row.early = row.allocated() && occupancy == Occupancy::Unallocated;
        let (budget, charged, allocated) = (row.budget, row.charged, row.allocated() && !row.early);
        if allocated {
            self.of(pool).delivery.change(at, budget, Change::Start(charged));
        }
        self.lease_gpus(at, pool, placement, allocated, 1);
    }

    /// What a waiting workload asks for counts in another of its pools from now on.
    fn move_to(&mut self, at: Time, workload: WorkloadId, pool: PoolId) {
        let Some(row) = self.roster.get(workload).cloned() else { return };
        self.unqueue(at, &row);
        let row = self.roster.get_mut(workload).expect("just seen");
        row.settle_in(pool);
        let row = row.clone();
        self.queue(at, &row);
    }

    /// All members run: a wait is over.
    fn running(&mut self, at: Time, lease: LeaseId) {
        self.estimates.ran(at, lease.workload);
        let Some(row) = self.roster.get_mut(lease.workload) else { return };
        row.running = Some(at);
        if !row.early {
            self.served(at, lease.workload);
        }
    }

    /// A wait is over at `at`: it runs, and its turn has come.
    fn served(&mut self, at: Time, workload: WorkloadId) {
        let Some(row) = self.roster.get_mut(workload) else { return };
        if !row.ran {
            row.ran = true;
            let row = row.clone();
            self.first_wait(at, &row, true);
        } else if row.allocated() && self.window.from <= row.waiting_since && self.books[row.home.index()].is_counted {
            self.waits.requeued.record(at - row.waiting_since);
        }
    }

    /// A lease that ran before its turn got its contract.
    fn promoted(&mut self, at: Time, lease: LeaseId) {
        let Some(row) = self.roster.get_mut(lease.workload) else { return };
        row.early = false;
        let (pool, budget, charged, runs) = (row.pool, row.budget, row.charged, row.running.is_some());
        let gpus = row.placement.as_ref().map_or(0, |placement| i64::from(roster::gpus(placement).0));
        let books = self.of(pool);
        books.totals.level.unallocated -= gpus;
        books.totals.level.allocated += gpus;
        books.delivery.change(at, budget, Change::Start(charged));
        if runs {
            self.served(at, lease.workload);
        }
    }

    fn ended(&mut self, at: Time, workload: WorkloadId, outcome: Outcome) {
        // What comes to its end before its turn needs none any more: it has waited until it ran.
        let early_end = self.roster.get(workload).filter(|row| row.early && matches!(outcome, Outcome::Completed | Outcome::Failed));
        if let Some(ran_from) = early_end.and_then(|row| row.running) {
            self.served(ran_from, workload);
        }
        let Some(row) = self.roster.get_mut(workload) else { return };
        let before = row.clone();
        (row.phase, row.placement, row.running) = (Phase::Over, None, None);
        // Who ran before its turn waits for it all the time.
        if !before.early {
            row.waiting_since = at;
        }
        match before.phase {
            Phase::Waiting => self.unqueue(at, &before),
            Phase::Leased => self.stopped(at, &before),
            Phase::Held | Phase::Over => {}
        }
        let counts = u64::from(self.counts(at) && self.is_counted(&before));
        match outcome {
            Outcome::Completed => {
                self.counts.completed += counts;
                self.completed(at, &before);
                self.roster.remove(workload);
            }
            Outcome::Failed | Outcome::TimedOut => {
                self.counts.failed += counts;
                self.roster.remove(workload);
            }
            Outcome::Cancelled => {
                if (before.phase == Phase::Waiting || before.early) && !before.ran {
                    self.first_wait(at, &before, false);
                }
                self.roster.remove(workload);
            }
            Outcome::Preempted => {
                self.counts.preemptions += counts;
                self.counts.preemptions_allocated += counts * u64::from(before.allocated() && !before.early);
            }
            Outcome::NodeLost | Outcome::StartTimeout => {}
        }
    }

    fn requeued(&mut self, at: Time, workload: WorkloadId) {
        let Some(row) = self.roster.get_mut(workload) else { return };
        row.phase = Phase::Waiting;
        row.waiting_since = if row.early { row.waiting_since } else { at };
        row.early = false;
        row.settle_in(row.home);
        let row = row.clone();
        self.queue(at, &row);
    }

    fn queue(&mut self, at: Time, row: &Row) {
        if row.allocated() {
            let books = self.of(row.pool);
            books.totals.level.demand(row.class, i64::from(row.charged));
            books.delivery.change(at, row.budget, Change::Queue(row.charged));
        }
    }

    fn unqueue(&mut self, at: Time, row: &Row) {
        if row.allocated() {
            let books = self.of(row.pool);
            books.totals.level.demand(row.class, -i64::from(row.charged));
            books.delivery.change(at, row.budget, Change::Unqueue(row.charged));
        }
    }

    /// A lease gave its GPUs back.
    fn stopped(&mut self, at: Time, row: &Row) {
        if row.allocated() {
            let books = self.of(row.pool);
            books.totals.level.demand(row.class, -i64::from(row.charged));
            let change = if row.early { Change::Unqueue(row.charged) } else { Change::Stop(row.charged) };
            books.delivery.change(at, row.budget, change);
        }
        if let Some(placement) = &row.placement {
            self.lease_gpus(at, row.pool, placement, row.allocated() && !row.early, -1);
        }
    }

    fn lease_gpus(&mut self, at: Time, pool: PoolId, placement: &Placement, allocated: bool, sign: i64) {
        let gpus = sign * i64::from(roster::gpus(placement).0);
        let books = self.of(pool);
        let level = &mut books.totals.level;
        *(if allocated { &mut level.allocated } else { &mut level.unallocated }) += gpus;
        if books.nodes.lease(placement, sign) {
            self.capacity_changed(at, pool);
        }
    }

    fn first_wait(&mut self, at: Time, row: &Row, started: bool) {
        if self.counts(row.eligible) && self.is_counted(row) {
            self.waits.first(row.class, row.over_claim, at - row.eligible, started);
        }
    }

    fn completed(&mut self, at: Time, row: &Row) {
        if self.counts(row.eligible) && self.is_counted(row) {
            self.waits.slowdown(row.class, at - row.eligible, row.work);
        }
    }

    /// The part of a lease's GPU time reported now that can lie inside the window.
    fn inside(&self, at: Time, lease: LeaseId, gpu_ms: GpuMs) -> GpuMs {
        if !self.counts(at) {
            return GpuMs(0);
        }
        let placement = self.roster.get(lease.workload).and_then(|row| row.placement.as_ref());
        placement.map_or(gpu_ms, |placement| gpu_ms.min(roster::gpus(placement).over(at - self.window.from)))
    }

    fn refunded(&mut self, pool: PoolId, budget: BudgetId, from: Time, to: Time, gpu_ms: GpuMs) {
        let start = self.window.from;
        self.of(pool).delivery.refund(budget, start, (from, to), gpu_ms);
    }

    /// What came of a lease's GPU time in its pool.
    fn truth(&mut self, lease: LeaseId) -> &mut Truth {
        let pool = self.roster.get(lease.workload).map_or(PoolId(0), |row| row.pool);
        &mut self.of(pool).truth
    }
}

impl Observer for Metrics {
    fn entry(&mut self, at: Time, entry: &Entry) {
        self.advance(at);
        match entry {
            Entry::Node { node, spec, state, .. } => {
                self.of(spec.pool).nodes.set(*node, spec, *state);
                self.capacity_changed(at, spec.pool);
            }
            Entry::Budgets { budgets, .. } => {
                for (pool, books) in (0..).map(PoolId).zip(&mut self.books) {
                    books.delivery.set_budgets(at, pool, budgets);
                }
            }
            Entry::Submitted { workload, spec, pool, charged_gpus, class, others, .. } => {
                let first = (*pool, charged_gpus.0);
                let others = others.iter().map(|other| (other.pool, other.charged_gpus.0));
                // Most work accepts one pool, and needs no list.
                let homes = if others.len() == 0 { Box::default() } else { std::iter::once(first).chain(others).collect() };
                self.submitted(at, *workload, spec.budget, *class, first, homes);
            }
            Entry::Eligible { workload, estimate } => {
                self.eligible(at, *workload);
                self.estimates.eligible(at, *workload, estimate.filter(|_| self.counts(at)));
            }
            Entry::Held { workload, .. } => self.held(at, *workload),
            Entry::Started { lease, pool, occupancy, placement, .. } => self.started(at, *lease, *pool, *occupancy, placement),
            Entry::Promoted { lease, .. } => self.promoted(at, *lease),
            Entry::Running { lease, .. } => self.running(at, *lease),
            Entry::Ended { workload, outcome, .. } => {
                self.estimates.over(at, *workload);
                self.ended(at, *workload, *outcome);
            }
            Entry::Requeued { workload } => self.requeued(at, *workload),
            Entry::Reserved { reservation, workload, latest_start, .. } => {
                let row = self.roster.get_mut(*workload).map(|row| row.waiting_since);
                let waited = row.filter(|_| self.counts(at)).map(|since| at - since);
                self.promises.reserved(*reservation, *latest_start, waited);
            }
            Entry::Unreserved { reservation, why, .. } => self.promises.unreserved(at, *reservation, *why),
            Entry::Refunded { budget, pool, kind: ChargeKind::Run, from, to, gpu_ms, .. } => {
                self.refunded(*pool, *budget, *from, *to, *gpu_ms);
            }
            Entry::Lapsed { budget, pool, from, gpu_ms, .. } if self.counts(*from) => self.of(*pool).delivery.add_lapsed(*budget, *gpu_ms),
            _ => {}
        }
    }

    fn job(&mut self, workload: WorkloadId, job: &Job) {
        self.announced.insert(workload, job.work);
    }

    fn banked(&mut self, at: Time, lease: LeaseId, gpu_ms: GpuMs) {
        let inside = self.inside(at, lease, gpu_ms);
        self.truth(lease).useful += inside;
        if let Some((pool, budget)) = self.roster.get(lease.workload).map(|row| (row.pool, row.budget)) {
            self.of(pool).delivery.add_useful(budget, inside);
        }
    }

    fn lost(&mut self, at: Time, lease: LeaseId, occupancy: Occupancy, gpu_ms: GpuMs) {
        let inside = self.inside(at, lease, gpu_ms);
        match occupancy {
            Occupancy::Allocated => self.truth(lease).lost_allocated += inside,
            Occupancy::Unallocated => self.truth(lease).lost_unallocated += inside,
        }
    }

    fn end(&mut self, at: Time) {
        self.advance(at);
        self.books.iter_mut().for_each(|books| books.delivery.advance_all(at));
        self.promises.end(at);
        self.estimates.end(at);
        for row in self.roster.take() {
            match row.phase {
                Phase::Waiting | Phase::Leased if !row.ran && (row.early || row.phase == Phase::Waiting) => {
                    self.first_wait(at, &row, false);
                }
                Phase::Waiting if row.allocated() && self.counts(row.waiting_since) && self.is_counted(&row) => {
                    self.waits.requeued.record_unstarted(at - row.waiting_since);
                }
                // Stopped and never requeued: it could not go on.
                Phase::Over => self.counts.failed += u64::from(self.counts(row.waiting_since) && self.is_counted(&row)),
                _ => {}
            }
        }
    }
}
