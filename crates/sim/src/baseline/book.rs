//! Who waits, who has a lease, and when each lease is expected to end.

use super::stop::Stop;
use std::collections::{BTreeSet, VecDeque};
use std::ops::Bound;
use std::sync::Arc;
use stipend_core::entry::{Occupancy, Placement};
use stipend_core::event::Rejection;
use stipend_core::id::{LeaseId, PoolId, WorkloadId};
use stipend_core::quantity::{GpuMs, Span, Time};
use stipend_core::spec::{OnPreempt, WorkloadSpec};

/// What a backfilling baseline assumes of work that states neither a time limit nor an expected run time: this many times its contract, at
/// least so long.
#[derive(Clone, Copy, Debug)]
pub struct Estimate {
    /// Times the contract.
    pub contracts: i64,
    /// At least so long.
    pub least: Span,
}

impl Default for Estimate {
    fn default() -> Estimate {
        Estimate { contracts: 2, least: Span::hours(1) }
    }
}

/// One attempt that holds GPUs.
#[derive(Clone, Debug)]
pub(super) struct Lease {
    pub(super) placement: Placement,
    pub(super) started: Time,
    /// Since when all members run.
    pub(super) running: Option<Time>,
    /// When it last banked its progress; its start at first.
    pub(super) banked: Time,
    /// When it is expected to end: never later than its time limit, and never in the past once the book was brought up to date.
    pub(super) end: Time,
    /// Why it was told to stop.
    pub(super) stop: Option<Stop>,
}

impl Lease {
    /// Whether it can be told to yield to a claimant: nobody told it to stop yet, and it did not start just now.
    pub(super) fn may_yield(&self, at: Time) -> bool {
        self.stop.is_none() && self.started < at
    }
}

/// What a workload does.
#[derive(Clone, Debug)]
pub(super) enum Phase {
    Held,
    Waiting,
    Leased(Lease),
}

/// A workload that has not ended.
#[derive(Clone, Debug)]
pub(super) struct Workload {
    pub(super) spec: Arc<WorkloadSpec>,
    /// The pools that take it, in its order, each with its contract there after clamping.
    pub(super) homes: Box<[(PoolId, Span)]>,
    /// Where it holds GPUs, or waits.
    pub(super) pool: PoolId,
    /// Its contract there.
    pub(super) contract: Span,
    /// Its place in the order of submission, which it keeps when it is requeued.
    pub(super) rank: u32,
    /// The latest attempt, from 1; 0 before the first.
    pub(super) attempt: u32,
    /// How long its earlier attempts ran.
    pub(super) ran: Span,
    /// How much of that was banked, so that the next attempt need not do it again.
    pub(super) done: Span,
    pub(super) phase: Phase,
}

impl Workload {
    /// How long its next attempt may run at most, if it has a limit.
    pub(super) fn limit(&self) -> Option<Span> {
        self.spec.time_limit.map(|limit| limit - self.ran)
    }

    /// How long its next attempt is expected to run: its time limit and what its owner expects, whichever is less, as far as they are stated.
    /// What was expected and is over already leaves the least that can be: a second, after which it will be corrected.
    pub(super) fn expected(&self, estimate: &Estimate) -> Span {
        let stated = self.spec.expected_runtime.map(|all| (all - self.done).max(Span::seconds(1)));
        let known = self.limit().into_iter().chain(stated).min();
        known.unwrap_or_else(|| (self.contract * estimate.contracts).max(estimate.least))
    }

    /// When its time limit ends its lease, if it has both: counted from the start until it runs.
    pub(super) fn limit_end(&self) -> Option<Time> {
        let lease = self.lease()?;
        Some(lease.running.unwrap_or(lease.started) + self.limit()?)
    }

    /// Charged and protected in a log's words; a baseline makes no difference between the two.
    pub(super) fn occupancy(&self) -> Occupancy {
        if self.contract > Span::ZERO { Occupancy::Allocated } else { Occupancy::Unallocated }
    }

    /// Whether it may not start for now.
    pub(super) fn is_held(&self) -> bool {
        matches!(self.phase, Phase::Held)
    }

    /// Its lease, if it has one.
    pub(super) fn lease(&self) -> Option<&Lease> {
        if let Phase::Leased(lease) = &self.phase { Some(lease) } else { None }
    }

    /// GPU time that is lost if this lease of it ends now without being done, as far as anybody told.
    pub(super) fn loss(&self, at: Time, lease: &Lease) -> GpuMs {
        let since = if self.spec.on_preempt == OnPreempt::Resume { lease.banked } else { lease.started };
        self.spec.gang.gpus().over(at - since)
    }
}

/// A number in the table of workloads.
#[derive(Clone, Debug, Default)]
enum Slot {
    #[default]
    Unknown,
    Ended,
    // Boxed: a month has a million workloads, of which few are alive at a time.
    Alive(Box<Workload>),
}

/// All workloads.
#[derive(Clone, Debug, Default)]
pub(super) struct Book {
    slots: Vec<Slot>,
    ranks: u32,
    /// When each lease is expected to end.
    ends: BTreeSet<(Time, WorkloadId)>,
    /// When each start times out, in order; leases that run or ended by then are passed over.
    starting: VecDeque<(Time, LeaseId)>,
    /// Counts every change of an expected end.
    version: u64,
}

impl Book {
    /// Whether a workload's number was ever used.
    pub(super) fn knows(&self, id: WorkloadId) -> bool {
        self.slots.get(id.index()).is_some_and(|slot| !matches!(slot, Slot::Unknown))
    }

    /// A new workload waits.
    pub(super) fn submit(&mut self, id: WorkloadId, spec: Arc<WorkloadSpec>, homes: Box<[(PoolId, Span)]>) {
        if id.index() >= self.slots.len() {
            self.slots.resize(id.index() + 1, Slot::Unknown);
        }
        let (pool, contract) = homes[0];
        let (rank, phase) = (self.ranks, Phase::Waiting);
        let workload = Workload { spec, homes, pool, contract, rank, attempt: 0, ran: Span::ZERO, done: Span::ZERO, phase };
        self.ranks += 1;
        self.slots[id.index()] = Slot::Alive(Box::new(workload));
    }

    /// A workload that has not ended.
    pub(super) fn get(&self, id: WorkloadId) -> Result<&Workload, Rejection> {
        match self.slots.get(id.index()) {
            Some(Slot::Alive(workload)) => Ok(workload),
            _ => Err(Rejection::WorkloadUnknown(id)),
        }
    }

    /// The workload of a lease that has not ended.
    pub(super) fn leased(&self, lease: LeaseId) -> Result<(&Workload, &Lease), Rejection> {
        let workload = self.get(lease.workload).map_err(|_| Rejection::LeaseUnknown(lease))?;
        match &workload.phase {
            Phase::Leased(current) if workload.attempt == lease.attempt => Ok((workload, current)),
            _ => Err(Rejection::LeaseUnknown(lease)),
        }
    }

    /// Changes what a workload without a lease does.
    pub(super) fn set_phase(&mut self, id: WorkloadId, phase: Phase) {
        self.alive(id).phase = phase;
    }

    /// A workload without a lease is to start or to wait in this pool.
    pub(super) fn settle_in(&mut self, id: WorkloadId, pool: PoolId) {
        let workload = self.alive(id);
        let home = workload.homes.iter().find(|(home, _)| *home == pool).expect("it accepts the pool");
        (workload.pool, workload.contract) = *home;
    }

    /// A workload has ended for good.
    pub(super) fn remove(&mut self, id: WorkloadId) {
        self.slots[id.index()] = Slot::Ended;
    }

    /// A workload gets a lease.
    pub(super) fn start(&mut self, at: Time, id: WorkloadId, placement: Placement, end: Time, start_by: Time) -> LeaseId {
        let workload = self.alive(id);
        workload.attempt += 1;
        workload.phase = Phase::Leased(Lease { placement, started: at, running: None, banked: at, end, stop: None });
        let lease = LeaseId { workload: id, attempt: workload.attempt };
        self.ends.insert((end, id));
        self.starting.push_back((start_by, lease));
        lease
    }

    /// All members of a lease run.
    pub(super) fn run(&mut self, at: Time, id: WorkloadId, end: Time) {
        self.lease_mut(id).running = Some(at);
        if self.starting.front().is_some_and(|(_, first)| first.workload == id) {
            self.starting.pop_front();
        }
        self.expect_end(id, end);
    }

    /// A lease banked its progress.
    pub(super) fn bank(&mut self, at: Time, id: WorkloadId) {
        self.lease_mut(id).banked = at;
    }

    /// A lease is told to stop and expected to end by `end`.
    pub(super) fn stop(&mut self, id: WorkloadId, why: Stop, end: Time) {
        self.lease_mut(id).stop = Some(why);
        self.expect_end(id, end);
    }

    /// A lease is expected to end at another time.
    pub(super) fn expect_end(&mut self, id: WorkloadId, end: Time) {
        let before = std::mem::replace(&mut self.lease_mut(id).end, end);
        if before != end {
            self.version += 1;
            self.ends.remove(&(before, id));
            self.ends.insert((end, id));
        }
    }

    /// A lease has ended; its workload waits.
    pub(super) fn end(&mut self, at: Time, id: WorkloadId) -> Lease {
        let workload = self.alive(id);
        let Phase::Leased(lease) = std::mem::replace(&mut workload.phase, Phase::Waiting) else { panic!("{id} has no lease") };
        if let Some(since) = lease.running {
            workload.ran = workload.ran + (at - since);
            if workload.spec.on_preempt == OnPreempt::Resume {
                workload.done = workload.done + (lease.banked - since).max(Span::ZERO);
            }
        }
        self.ends.remove(&(lease.end, id));
        lease
    }

    /// The leases and when each is expected to end, the earliest first.
    pub(super) fn ends(&self) -> impl Iterator<Item = (Time, WorkloadId)> + '_ {
        self.ends.iter().copied()
    }

    /// Those after this one.
    pub(super) fn ends_after(&self, last: (Time, WorkloadId)) -> impl Iterator<Item = (Time, WorkloadId)> + '_ {
        self.ends.range((Bound::Excluded(last), Bound::Unbounded)).copied()
    }

    /// The next lease whose expected end has come.
    pub(super) fn due(&self, at: Time) -> Option<WorkloadId> {
        self.ends.first().filter(|(end, _)| *end <= at).map(|&(_, id)| id)
    }

    /// The next lease whose start has timed out; it is told only once.
    pub(super) fn start_due(&mut self, at: Time) -> Option<LeaseId> {
        while let Some(&(by, lease)) = self.starting.front() {
            let starts = self.leased(lease).is_ok_and(|(_, l)| l.running.is_none() && l.stop.is_none());
            if starts && by > at {
                return None;
            }
            self.starting.pop_front();
            if starts {
                return Some(lease);
            }
        }
        None
    }

    /// Changes whenever a lease turns out to end at another time than expected.
    pub(super) fn version(&self) -> u64 {
        self.version
    }

    /// When something here is due next.
    pub(super) fn next_due(&self) -> Option<Time> {
        let end = self.ends.first().map(|&(end, _)| end);
        let start = self.starting.front().map(|&(by, _)| by);
        end.into_iter().chain(start).min()
    }

    fn alive(&mut self, id: WorkloadId) -> &mut Workload {
        match &mut self.slots[id.index()] {
            Slot::Alive(workload) => workload,
            _ => panic!("{id} has ended"),
        }
    }

    fn lease_mut(&mut self, id: WorkloadId) -> &mut Lease {
        match &mut self.alive(id).phase {
            Phase::Leased(lease) => lease,
            _ => panic!("{id} has no lease"),
        }
    }
}
