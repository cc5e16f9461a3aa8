//! What is measured (DESIGN section 10): one observer that sees the log's entries and the engine's truth, and sums exact integers.
//!
//! Everything is counted from the end of the warm-up on. Two units stand side by side:
//! - *GPUs* of a placement, for occupancy and useful work: GPUs that a large CPU request strands count as idle;
//! - *charged GPUs*, for demand, owed and delivered: what a budget's claim is spent on.
//!
//! Floating point appears in [`crate::result`] only.

mod delivery;
mod figures;
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
use nodes::Nodes;
use promises::PromiseLog;
use roster::{Phase, Roster, Row};
use std::collections::BTreeMap;
use stipend_core::entry::{ChargeKind, Class, Entry, Occupancy, Outcome, Placement};
use stipend_core::id::{BudgetId, LeaseId, PoolId, WorkloadId};
use stipend_core::quantity::{GpuMs, Gpus, Span, Time};
use stipend_core::spec::WorkloadSpec;
use totals::Totals;
use waits::WaitLogs;

/// The buckets of owed and delivered: an hour, counted from the end of the warm-up.
const HOUR: Span = Span::hours(1);

/// What to measure.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// The pool measured; entries about others are passed over.
    pub pool: PoolId,
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

/// The observer that measures a run.
pub struct Metrics {
    window: Window,
    /// Up to when everything is summed.
    now: Time,
    /// The start of the hour bucket to open next.
    next_hour: Time,
    nodes: Nodes,
    totals: Totals,
    delivery: Delivery,
    roster: Roster,
    /// How much work each workload has that is announced but not yet submitted.
    announced: BTreeMap<WorkloadId, Span>,
    waits: WaitLogs,
    promises: PromiseLog,
    counts: Counts,
    truth: Truth,
}

impl Metrics {
    /// Measures `window`.
    pub fn new(window: Window) -> Metrics {
        Metrics {
            window,
            now: Time::MIN,
            next_hour: window.from,
            nodes: Nodes::default(),
            totals: Totals::default(),
            delivery: Delivery::default(),
            roster: Roster::default(),
            announced: BTreeMap::new(),
            waits: WaitLogs::default(),
            promises: PromiseLog::default(),
            counts: Counts::default(),
            truth: Truth::default(),
        }
    }

    /// All GPUs of the pool, in service or not.
    pub fn capacity(&self) -> Gpus {
        self.nodes.all()
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
            self.totals.advance(hour);
            if hour == self.window.from {
                self.totals.clear();
            }
            self.delivery.open_hour(hour);
            self.next_hour = hour + HOUR;
        }
        self.totals.advance(at);
        self.now = at;
    }

    fn capacity_changed(&mut self, at: Time) {
        let (main, express) = self.nodes.in_service();
        self.totals.level.main = main;
        self.totals.level.express = if self.window.express_kept { express } else { 0 };
        if !self.window.express_kept {
            self.totals.level.main += express;
        }
        self.delivery.set_capacity(at, main + express);
    }

    fn submitted(&mut self, at: Time, workload: WorkloadId, spec: &WorkloadSpec, charged: Gpus, class: Class) {
        let work = self.announced.remove(&workload).unwrap_or_default();
        if spec.pool != self.window.pool {
            return;
        }
        self.counts.submitted += u64::from(self.counts(at));
        let row = Row {
            eligible: at,
            waiting_since: at,
            work,
            placement: None,
            budget: spec.budget,
            charged: charged.0,
            class,
            phase: Phase::Waiting,
            ran: false,
            over_claim: class != Class::Unallocated && self.delivery.exceeds_claim(spec.budget, charged),
        };
        self.queue(at, &row);
        self.roster.insert(workload, row);
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

    fn started(&mut self, at: Time, lease: LeaseId, placement: &Placement) {
        let Some(row) = self.roster.get_mut(lease.workload) else { return };
        row.phase = Phase::Leased;
        row.placement = Some(placement.clone());
        let (budget, charged, allocated) = (row.budget, row.charged, row.allocated());
        if allocated {
            self.delivery.change(at, budget, Change::Start(charged));
        }
        self.lease_gpus(at, placement, allocated, 1);
    }

    /// All members run: a wait is over.
    fn running(&mut self, at: Time, lease: LeaseId) {
        let Some(row) = self.roster.get_mut(lease.workload) else { return };
        if !row.ran {
            row.ran = true;
            let row = row.clone();
            self.first_wait(at, &row, true);
        } else if row.allocated() && self.window.from <= row.waiting_since {
            self.waits.requeued.record(at - row.waiting_since);
        }
    }

    fn ended(&mut self, at: Time, workload: WorkloadId, outcome: Outcome) {
        let Some(row) = self.roster.get_mut(workload) else { return };
        let before = row.clone();
        (row.phase, row.placement, row.waiting_since) = (Phase::Over, None, at);
        match before.phase {
            Phase::Waiting => self.unqueue(at, &before),
            Phase::Leased => self.stopped(at, &before),
            Phase::Held | Phase::Over => {}
        }
        let counts = u64::from(self.counts(at));
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
                if before.phase == Phase::Waiting && !before.ran {
                    self.first_wait(at, &before, false);
                }
                self.roster.remove(workload);
            }
            Outcome::Preempted => {
                self.counts.preemptions += counts;
                self.counts.preemptions_allocated += counts * u64::from(before.allocated());
            }
            Outcome::NodeLost | Outcome::StartTimeout => {}
        }
    }

    fn requeued(&mut self, at: Time, workload: WorkloadId) {
        let Some(row) = self.roster.get_mut(workload) else { return };
        (row.phase, row.waiting_since) = (Phase::Waiting, at);
        let row = row.clone();
        self.queue(at, &row);
    }

    fn queue(&mut self, at: Time, row: &Row) {
        if row.allocated() {
            self.totals.level.demand(row.class, i64::from(row.charged));
            self.delivery.change(at, row.budget, Change::Queue(row.charged));
        }
    }

    fn unqueue(&mut self, at: Time, row: &Row) {
        if row.allocated() {
            self.totals.level.demand(row.class, -i64::from(row.charged));
            self.delivery.change(at, row.budget, Change::Unqueue(row.charged));
        }
    }

    /// A lease gave its GPUs back.
    fn stopped(&mut self, at: Time, row: &Row) {
        if row.allocated() {
            self.totals.level.demand(row.class, -i64::from(row.charged));
            self.delivery.change(at, row.budget, Change::Stop(row.charged));
        }
        if let Some(placement) = &row.placement {
            self.lease_gpus(at, placement, row.allocated(), -1);
        }
    }

    fn lease_gpus(&mut self, at: Time, placement: &Placement, allocated: bool, sign: i64) {
        let gpus = sign * i64::from(roster::gpus(placement).0);
        let level = &mut self.totals.level;
        *(if allocated { &mut level.allocated } else { &mut level.unallocated }) += gpus;
        if self.nodes.lease(placement, sign) {
            self.capacity_changed(at);
        }
    }

    fn first_wait(&mut self, at: Time, row: &Row, started: bool) {
        if self.counts(row.eligible) {
            self.waits.first(row.class, row.over_claim, at - row.eligible, started);
        }
    }

    fn completed(&mut self, at: Time, row: &Row) {
        if self.counts(row.eligible) {
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

    fn refunded(&mut self, budget: BudgetId, from: Time, to: Time, gpu_ms: GpuMs) {
        self.delivery.refund(budget, self.window.from, (from, to), gpu_ms);
    }
}

impl Observer for Metrics {
    fn entry(&mut self, at: Time, entry: &Entry) {
        self.advance(at);
        match entry {
            Entry::Node { node, spec, state, .. } if spec.pool == self.window.pool => {
                self.nodes.set(*node, spec, *state);
                self.capacity_changed(at);
            }
            Entry::Budgets { budgets, .. } => self.delivery.set_budgets(at, self.window.pool, budgets),
            Entry::Submitted { workload, spec, charged_gpus, class, .. } => self.submitted(at, *workload, spec, *charged_gpus, *class),
            Entry::Eligible { workload } => self.eligible(at, *workload),
            Entry::Held { workload, .. } => self.held(at, *workload),
            Entry::Started { lease, placement, .. } => self.started(at, *lease, placement),
            Entry::Running { lease, .. } => self.running(at, *lease),
            Entry::Ended { workload, outcome, .. } => self.ended(at, *workload, *outcome),
            Entry::Requeued { workload } => self.requeued(at, *workload),
            Entry::Reserved { reservation, workload, latest_start, .. } => {
                let row = self.roster.get_mut(*workload).map(|row| row.waiting_since);
                let waited = row.filter(|_| self.counts(at)).map(|since| at - since);
                self.promises.reserved(*reservation, *latest_start, waited);
            }
            Entry::Unreserved { reservation, why, .. } => self.promises.unreserved(at, *reservation, *why),
            Entry::Refunded { budget, pool, kind: ChargeKind::Run, from, to, gpu_ms, .. } if *pool == self.window.pool => {
                self.refunded(*budget, *from, *to, *gpu_ms);
            }
            _ => {}
        }
    }

    fn job(&mut self, workload: WorkloadId, job: &Job) {
        self.announced.insert(workload, job.work);
    }

    fn banked(&mut self, at: Time, lease: LeaseId, gpu_ms: GpuMs) {
        self.truth.useful += self.inside(at, lease, gpu_ms);
    }

    fn lost(&mut self, at: Time, lease: LeaseId, occupancy: Occupancy, gpu_ms: GpuMs) {
        let inside = self.inside(at, lease, gpu_ms);
        match occupancy {
            Occupancy::Allocated => self.truth.lost_allocated += inside,
            Occupancy::Unallocated => self.truth.lost_unallocated += inside,
        }
    }

    fn end(&mut self, at: Time) {
        self.advance(at);
        self.delivery.advance_all(at);
        self.promises.end(at);
        for row in self.roster.take() {
            match row.phase {
                Phase::Waiting if !row.ran => self.first_wait(at, &row, false),
                Phase::Waiting if row.allocated() && self.counts(row.waiting_since) => {
                    self.waits.requeued.record_unstarted(at - row.waiting_since);
                }
                // Stopped and never requeued: it could not go on.
                Phase::Over => self.counts.failed += u64::from(self.counts(row.waiting_since)),
                _ => {}
            }
        }
    }
}
