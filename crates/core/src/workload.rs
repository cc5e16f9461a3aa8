//! A workload and its lease: what state it is in, and when something is due.

use crate::entry::{By, Class, Licence, Occupancy, Outcome, Placement};
use crate::event::Exit;
use crate::id::{LeaseId, NodeId, PoolId, ReservationId, WorkloadId};
use crate::ledger::Charge;
use crate::quantity::{GpuMs, Gpus, Span, Time};
use crate::queue::ShapeId;
use crate::reservation::choice::Stake;
use crate::spec::{OnPreempt, WorkloadSpec};
use crate::waits::WaitEstimate;
use std::sync::Arc;

/// What a workload is to one of the pools that it accepts.
#[derive(Clone, Debug, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Terms {
    pub pool: PoolId,
    pub charge: Charge,
    /// GPUs it is charged for: its own, or more where its CPUs or memory strand others.
    pub charged: Gpus,
    /// The min runtime of its next lease: clamped to the caps, and to what is left of its limit.
    pub contract: Span,
    pub shape: ShapeId,
}

impl Terms {
    /// The contract of its next lease in GPU time.
    pub(crate) fn contract_gpu_ms(&self) -> GpuMs {
        self.charged.over(self.contract)
    }
}

/// A workload that has not ended.
#[derive(Clone, Debug, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Workload {
    pub spec: Arc<WorkloadSpec>,
    /// Of the pool where it holds GPUs or where they are held for it; of waiting work see [`Workload::in_pool`].
    pub terms: Terms,
    /// Of the other pools that it accepts.
    pub others: Box<[Terms]>,
    pub class: Class,
    /// Since when it may start; kept over requeues.
    pub eligible: Time,
    /// How long it would wait for its first start, as was said when it became eligible.
    pub estimate: Option<WaitEstimate>,
    /// Since when it has waited for its next lease.
    pub waiting_since: Time,
    /// How much longer it counts as eligible in a leaf whose order is by completion; else nothing. Set before it joins a queue.
    pub head_start: Span,
    /// Running time over all ended attempts.
    pub ran: Span,
    /// Attempts so far.
    pub attempts: u32,
    /// How often it was preempted, and when last.
    pub preemptions: u32,
    /// How often it was while it held its GPUs by its contract.
    pub yielded: u32,
    /// It has run by its contract, or is unallocated work that has run: its first wait is over.
    pub served: bool,
    pub last_preempted: Time,
    /// Its promised latest start, until it starts, and the pool of that; one at most.
    pub reservation: Option<(PoolId, ReservationId)>,
    pub phase: Phase,
}

/// Where a workload is in its life.
#[derive(Clone, Debug, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) enum Phase {
    /// Not eligible, for this reason; `by_closing` until its budget is open again.
    Held { why: String, by_closing: bool },
    /// In its leaf's queue.
    Waiting,
    /// It was preempted for a claimant that has not started yet, and waits until it has.
    Barred,
    /// Its plan is made: GPUs are held for it.
    Claiming(Claim),
    /// It holds GPUs.
    Leased(Box<Lease>),
}

/// A plan to start on GPUs that are held.
#[derive(Clone, Debug, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Claim {
    pub placement: Placement,
    /// The strongest licence it used.
    pub licence: Licence,
    pub planned: Time,
    /// Free GPUs charged so far, each stretch with its beginning.
    pub charges: Vec<(Time, Gpus)>,
}

/// One attempt holding GPUs.
#[derive(Clone, Debug, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Lease {
    pub attempt: u32,
    pub occupancy: Occupancy,
    pub placement: Placement,
    pub started: Time,
    /// When a start that is not complete times out.
    pub start_by: Time,
    /// When all members ran.
    pub running: Option<Time>,
    /// When it was promoted from unallocated to its contract.
    pub promoted: Option<Time>,
    /// Nodes whose members have not been reported yet.
    pub silent: Vec<NodeId>,
    /// When its protection ends; `None` while starting and for unallocated work.
    pub protected_until: Option<Time>,
    /// Its protection has ended: others may be licensed to take it.
    pub past_contract: bool,
    pub last_checkpoint: Option<Time>,
    /// Of a session: somebody used it since its contract began.
    pub input: bool,
    pub stop: Option<Stop>,
    /// Its claimant went away after it was signalled: it has first right to its GPUs.
    pub first_right: bool,
    /// It says that it begins anew, and that is not believed.
    pub doubted: bool,
    /// The earliest timer that is set for it.
    pub timer: Time,
}

/// A lease on its way out.
#[derive(Clone, Debug, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Stop {
    pub cause: StopCause,
    /// When the stop signal goes out.
    pub signal_at: Time,
    pub signalled: bool,
    pub grace: Span,
    /// It outlived its grace and its nodes were drained for it.
    pub stuck: bool,
}

impl Stop {
    pub(crate) fn stop_by(&self) -> Time {
        self.signal_at + self.grace
    }
}

/// Why a lease is on its way out.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) enum StopCause {
    Preempted { claimant: WorkloadId },
    Drain,
    Critical,
    NodeLost,
    StartTimeout,
    TimeLimit,
    Owner,
    Administrator { reason: String },
}

impl StopCause {
    /// What an attempt that ends for this cause comes to.
    pub(crate) fn outcome(&self) -> Outcome {
        match self {
            StopCause::Preempted { .. } | StopCause::Drain | StopCause::Critical => Outcome::Preempted,
            StopCause::NodeLost => Outcome::NodeLost,
            StopCause::StartTimeout => Outcome::StartTimeout,
            StopCause::TimeLimit => Outcome::TimedOut,
            StopCause::Owner | StopCause::Administrator { .. } => Outcome::Cancelled,
        }
    }

    /// Who or what that is, for the log.
    pub(crate) fn by(&self) -> By {
        match self {
            StopCause::Preempted { claimant } => By::Claimant(*claimant),
            StopCause::Drain => By::Drain,
            StopCause::Critical => By::CriticalDrain,
            StopCause::NodeLost => By::NodeLost,
            StopCause::StartTimeout => By::StartTimeout,
            StopCause::TimeLimit => By::TimeLimit,
            StopCause::Owner => By::Owner,
            StopCause::Administrator { reason } => By::Administrator(reason.clone()),
        }
    }

    /// Whether the infrastructure is to blame, so that lost time is refunded.
    pub(crate) fn is_fault(&self) -> bool {
        matches!(self, StopCause::Critical | StopCause::NodeLost | StopCause::StartTimeout)
    }
}

impl Workload {
    pub(crate) fn is_allocated(&self) -> bool {
        self.spec.min_runtime > Span::ZERO
    }

    /// How it holds GPUs when its turn has come.
    pub(crate) fn occupancy(&self) -> Occupancy {
        if self.is_allocated() { Occupancy::Allocated } else { Occupancy::Unallocated }
    }

    /// It has a contract and runs without it: it waits for its turn where it is.
    pub(crate) fn is_early(&self) -> bool {
        self.is_allocated() && self.lease().is_some_and(|lease| lease.occupancy == Occupancy::Unallocated)
    }

    /// The pools in whose queues it is while it waits: of one that runs already, only that one.
    pub(crate) fn queued_in(&self) -> impl Iterator<Item = PoolId> {
        let only = self.is_early().then_some(self.terms.pool);
        self.all_terms().map(|terms| terms.pool).filter(move |pool| only.is_none_or(|only| only == *pool))
    }

    pub(crate) fn lease(&self) -> Option<&Lease> {
        match &self.phase {
            Phase::Leased(lease) => Some(lease),
            _ => None,
        }
    }

    pub(crate) fn lease_mut(&mut self) -> Option<&mut Lease> {
        match &mut self.phase {
            Phase::Leased(lease) => Some(lease),
            _ => None,
        }
    }

    /// Its terms in each pool that it accepts, in no order.
    pub(crate) fn all_terms(&self) -> impl Iterator<Item = &Terms> {
        std::iter::once(&self.terms).chain(&self.others)
    }

    pub(crate) fn all_terms_mut(&mut self) -> impl Iterator<Item = &mut Terms> {
        std::iter::once(&mut self.terms).chain(&mut self.others)
    }

    /// Its terms in a pool that it accepts.
    pub(crate) fn in_pool(&self, pool: PoolId) -> &Terms {
        // Most work accepts one pool.
        if self.terms.pool == pool {
            return &self.terms;
        }
        self.others.iter().find(|terms| terms.pool == pool).expect("it accepts the pool")
    }

    pub(crate) fn in_pool_mut(&mut self, pool: PoolId) -> &mut Terms {
        self.all_terms_mut().find(|terms| terms.pool == pool).expect("it accepts the pool")
    }

    /// Its reservation, if that is in this pool.
    pub(crate) fn reservation_in(&self, pool: PoolId) -> Option<ReservationId> {
        self.reservation.filter(|(of, _)| *of == pool).map(|(_, id)| id)
    }

    /// Its GPUs are in this pool from now on.
    pub(crate) fn enter(&mut self, pool: PoolId) {
        if let Some(terms) = self.others.iter_mut().find(|terms| terms.pool == pool) {
            std::mem::swap(&mut self.terms, terms);
        }
    }

    /// The running time it has left, if it has a limit.
    pub(crate) fn limit_left(&self) -> Option<Span> {
        self.spec.time_limit.map(|limit| limit - self.ran)
    }

    /// Whether what a lease did is taken to outlast a preemption.
    pub(crate) fn is_taken_to_resume(&self, lease: &Lease) -> bool {
        self.spec.on_preempt == OnPreempt::Resume || lease.doubted
    }

    /// Since when a lease's progress is at stake: its last bank, as far as the core knows.
    pub(crate) fn at_stake_since(&self, lease: &Lease, now: Time) -> Time {
        if !self.is_taken_to_resume(lease) {
            return lease.started;
        }
        if let Some(at) = lease.last_checkpoint {
            return at;
        }
        // Nothing was reported: assume a bank at each multiple of the known interval, or of the contract that it got: what it asked for
        // may have been clamped.
        let (every, from) = match self.spec.checkpoint_every {
            Some(every) => (every, lease.running),
            None => (self.terms.contract, lease.contract_from()),
        };
        match from {
            Some(from) if every > Span::ZERO => from + every * ((now - from).0 / every.0),
            _ => lease.started,
        }
    }

    /// The contract that it would get where it runs now: what is left of its limit, at most.
    pub(crate) fn contract_left(&self, now: Time) -> Span {
        let ran = self.lease().and_then(|lease| lease.running).map_or(Span::ZERO, |running| now - running);
        self.limit_left().map_or(self.terms.contract, |left| self.terms.contract.min(left - ran))
    }

    /// GPU time expected to be lost if it were stopped at `at`.
    pub(crate) fn expected_loss(&self, lease: &Lease, at: Time, restart_cost: Span) -> GpuMs {
        self.spec.gang.gpus().over(at - self.at_stake_since(lease, at) + restart_cost)
    }

    /// When a lease has reached its time limit at the latest; never without one.
    pub(crate) fn ends_latest(&self, lease: &Lease) -> Time {
        self.limit_left().map_or(Time::MAX, |left| lease.running.unwrap_or(lease.start_by) + left)
    }

    /// What a lease with so many GPUs on a node has at stake there from now on.
    pub(crate) fn stake(&self, workload: WorkloadId, lease: &Lease, gpus: Gpus) -> Stake {
        let since = lease.last_checkpoint.or(lease.running).unwrap_or(lease.started);
        let every = self.spec.checkpoint_every.unwrap_or(self.terms.contract);
        let resumes = self.is_taken_to_resume(lease) && every > Span::ZERO;
        let since = if resumes { since } else { lease.started };
        let ends = self.ends_latest(lease);
        Stake { workload, gpus, gang: self.spec.gang.gpus(), since, every: resumes.then_some(every), ends }
    }

    /// When something about its lease is due next, the end of its protection apart.
    pub(crate) fn next_due(&self, lease: &Lease, kill_timeout: Span) -> Time {
        if let Some(stop) = &lease.stop {
            return match (stop.signalled, stop.stuck) {
                (false, _) => stop.signal_at,
                (true, false) => stop.stop_by() + kill_timeout,
                (true, true) => Time::MAX,
            };
        }
        let Some(running) = lease.running else { return lease.start_by };
        self.limit_left().map_or(Time::MAX, |left| running + left)
    }
}

impl Lease {
    pub(crate) fn id(&self, workload: WorkloadId) -> LeaseId {
        LeaseId { workload, attempt: self.attempt }
    }

    /// Since when it is charged, if it is.
    pub(crate) fn charged_from(&self) -> Time {
        self.promoted.unwrap_or(self.started)
    }

    /// When its contract began to run; of unallocated work when it ran.
    pub(crate) fn contract_from(&self) -> Option<Time> {
        self.running.map(|running| self.promoted.map_or(running, |promoted| promoted.max(running)))
    }

    /// When its protection ends for certain, as far as it is known: a starting lease may still take its whole start timeout.
    pub(crate) fn protected_until_latest(&self, contract: Span) -> Time {
        match (self.occupancy, self.protected_until) {
            (Occupancy::Unallocated, _) => self.started,
            (_, Some(until)) => until,
            (_, None) => self.start_by + contract,
        }
    }
}

/// What the end of an attempt means, given what it had been told.
pub(crate) fn outcome(exit: Exit, cause: Option<&StopCause>) -> Outcome {
    match (exit, cause) {
        (Exit::Done, _) | (Exit::Completed, None) => Outcome::Completed,
        (Exit::Failed, None) => Outcome::Failed,
        (Exit::Infrastructure, None) => Outcome::NodeLost,
        // An end inside the grace counts as what the stop was for, unless the workload said that it was done.
        (_, Some(cause)) => cause.outcome(),
    }
}

/// Whether the infrastructure ended it, so that lost time is refunded.
pub(crate) fn is_fault(exit: Exit, lease: &Lease) -> bool {
    match &lease.stop {
        Some(stop) => stop.cause.is_fault() && exit != Exit::Done,
        None => exit == Exit::Infrastructure,
    }
}
