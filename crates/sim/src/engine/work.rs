//! How work gets done: progress, checkpoints, and what an end costs.
//!
//! `resume` work banks its progress at checkpoints, counted from the moment its lease runs, and pays a restart at every lease after its
//! first; `restart` work begins from nothing; `end` work gets one chance.

use crate::job::{Ends, Job};
use stipend_core::entry::{Occupancy, Placement};
use stipend_core::id::LeaseId;
use stipend_core::quantity::{GpuMs, Gpus, Ppm, Span, Time};
use stipend_core::spec::OnPreempt;

/// A workload from its submission to its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    pub(super) work: Span,
    /// Banked in earlier leases.
    pub(super) banked: Span,
    pub(super) checkpoint_every: Span,
    /// The same while it runs unallocated.
    pub(super) unprotected_every: Span,
    /// How often a session is used, and until when.
    pub(super) input: Option<(Span, Time)>,
    pub(super) gpus: Gpus,
    /// The stream that waits for its end, or [`Work::NO_STREAM`].
    pub(super) stream: u32,
    pub(super) on_preempt: OnPreempt,
    pub(super) ends: Ends,
    /// The part of its running time in which it works.
    pub(super) useful: Ppm,
    pub(super) started: bool,
    /// A lease of it ran.
    pub(super) ran: bool,
    pub(super) over: bool,
}

impl Work {
    pub(super) const NO_STREAM: u32 = u32::MAX;

    /// The place of a listed workload that was not submitted yet.
    pub(super) const EXPECTED: Work = Work {
        work: Span::ZERO,
        banked: Span::ZERO,
        checkpoint_every: Span::ZERO,
        unprotected_every: Span::ZERO,
        input: None,
        gpus: Gpus(0),
        stream: Work::NO_STREAM,
        on_preempt: OnPreempt::End,
        ends: Ends::Completed,
        useful: Ppm::ONE,
        started: false,
        ran: false,
        over: true,
    };

    pub(super) fn new(at: Time, job: &Job) -> Work {
        Work {
            work: job.work,
            checkpoint_every: job.checkpoint_every,
            unprotected_every: job.unprotected_every,
            input: job.input.map(|input| (input.every, at + input.lasts)),
            gpus: job.spec.gang.gpus(),
            stream: job.stream.unwrap_or(Work::NO_STREAM),
            on_preempt: if job.resumes { OnPreempt::Resume } else { job.spec.on_preempt },
            ends: job.ends,
            useful: job.useful,
            over: false,
            ..Work::EXPECTED
        }
    }

    /// The part of so much running time in which it works, as GPU time.
    pub(super) fn worked(&self, time: Span) -> GpuMs {
        let GpuMs(held) = self.gpus.over(time);
        GpuMs((i128::from(held) * i128::from(self.useful.0) / i128::from(Ppm::ONE.0)) as i64)
    }

    /// Work not banked before this lease.
    fn remaining(&self) -> Span {
        self.work - self.banked
    }
}

/// One attempt, as the machines see it.
pub(super) struct Lease {
    pub(super) id: LeaseId,
    pub(super) placement: Placement,
    pub(super) occupancy: Occupancy,
    pub(super) assigned: Time,
    /// Since when all members run.
    pub(super) running: Option<Time>,
    /// What it pays before it makes progress.
    startup: Span,
    /// Banked in this lease.
    pub(super) banked: Span,
    /// The stop signal was sent.
    pub(super) stopping: bool,
    /// A node of it was lost: it makes no progress and waits for its fence.
    pub(super) dead: bool,
}

/// What a lease has come to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// It banks its progress.
    Checkpoint,
    /// Its work is done.
    Done,
}

impl Lease {
    pub(super) fn new(id: LeaseId, placement: Placement, occupancy: Occupancy, at: Time) -> Lease {
        Lease {
            id,
            placement,
            occupancy,
            assigned: at,
            running: None,
            startup: Span::ZERO,
            banked: Span::ZERO,
            stopping: false,
            dead: false,
        }
    }

    /// All members run; returns when it comes to its first step.
    pub(super) fn run(&mut self, at: Time, work: &mut Work, restart_cost: Span) -> Time {
        self.running = Some(at);
        self.startup = if work.ran && work.on_preempt == OnPreempt::Resume { restart_cost } else { Span::ZERO };
        work.ran = true;
        at + self.next_step(Span::ZERO, work)
    }

    /// Takes the step that is due at `at`: what it is, what was banked since the last, and when the next is due.
    pub(super) fn step(&mut self, at: Time, work: &Work) -> (Step, Span, Time) {
        let elapsed = at - self.running.unwrap_or(at);
        let done = elapsed >= self.startup + work.remaining();
        let progress = if done { work.remaining() } else { elapsed - self.startup };
        if done && work.ends != Ends::Completed {
            return (Step::Done, Span::ZERO, at);
        }
        let gained = progress - self.banked;
        self.banked = progress;
        (if done { Step::Done } else { Step::Checkpoint }, gained, at + (self.next_step(elapsed, work) - elapsed))
    }

    /// GPU time that it held and that led to nothing.
    pub(super) fn lost(&self, at: Time, work: &Work) -> GpuMs {
        work.gpus.over(at - self.assigned - self.banked)
    }

    /// The first checkpoint after `elapsed` at which there is something to bank, or the end of the work, whichever comes first.
    fn next_step(&self, elapsed: Span, work: &Work) -> Span {
        let done = self.startup + work.remaining();
        let every = match self.occupancy {
            Occupancy::Allocated => work.checkpoint_every,
            Occupancy::Unallocated => work.unprotected_every,
        };
        if work.on_preempt != OnPreempt::Resume || every <= Span::ZERO {
            return done;
        }
        let after = elapsed.max(self.startup).0 / every.0 + 1;
        done.min(every * after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stipend_core::id::WorkloadId;

    fn lease(work: &mut Work, restart_cost: Span) -> (Lease, Time) {
        let id = LeaseId { workload: WorkloadId(0), attempt: 1 };
        let mut lease = Lease::new(id, [].into(), Occupancy::Allocated, Time(0));
        let first = lease.run(Time(0), work, restart_cost);
        (lease, first)
    }

    fn work(hours: i64, on_preempt: OnPreempt) -> Work {
        Work { work: Span::hours(hours), checkpoint_every: Span::hours(1), gpus: Gpus(8), on_preempt, over: false, ..Work::EXPECTED }
    }

    #[test]
    fn the_first_lease_of_resuming_work_banks_every_hour_and_pays_nothing() {
        let mut work = work(2, OnPreempt::Resume);
        let (mut lease, first) = lease(&mut work, Span::minutes(5));
        assert_eq!(first, Time(0) + Span::hours(1));
        let (step, gained, next) = lease.step(first, &work);
        assert_eq!((step, gained, next), (Step::Checkpoint, Span::hours(1), Time(0) + Span::hours(2)));
        assert_eq!(lease.lost(Time(0) + Span::minutes(90), &work), Gpus(8).over(Span::minutes(30)));
        assert_eq!(lease.step(next, &work).0, Step::Done);
        assert_eq!(lease.lost(next, &work), GpuMs(0));
    }

    #[test]
    fn a_later_lease_pays_its_restart_inside_the_first_interval() {
        let mut work = Work { ran: true, banked: Span::hours(1), ..work(2, OnPreempt::Resume) };
        let (mut lease, first) = lease(&mut work, Span::minutes(5));
        let (step, gained, next) = lease.step(first, &work);
        assert_eq!((step, gained, next), (Step::Checkpoint, Span::minutes(55), Time(0) + Span::minutes(65)));
        assert_eq!(lease.step(next, &work).0, Step::Done);
        assert_eq!(lease.lost(next, &work), Gpus(8).over(Span::minutes(5)));
    }

    #[test]
    fn a_checkpoint_inside_the_restart_has_nothing_to_bank() {
        let mut work = Work { ran: true, checkpoint_every: Span::minutes(2), ..work(1, OnPreempt::Resume) };
        let (_, first) = lease(&mut work, Span::minutes(5));
        assert_eq!(first, Time(0) + Span::minutes(6));
    }

    #[test]
    fn work_that_restarts_has_no_checkpoints_and_pays_no_restart_cost() {
        let mut work = Work { ran: true, ..work(2, OnPreempt::Restart) };
        let (_, first) = lease(&mut work, Span::minutes(5));
        assert_eq!(first, Time(0) + Span::hours(2));
    }

    #[test]
    fn failed_work_has_lost_what_it_did_since_its_last_checkpoint() {
        let mut work = Work { ends: Ends::Failed, ..work(2, OnPreempt::Resume) };
        let (mut lease, first) = lease(&mut work, Span::ZERO);
        let (_, _, end) = lease.step(first, &work);
        assert_eq!(lease.step(end, &work).0, Step::Done);
        assert_eq!(lease.lost(end, &work), Gpus(8).over(Span::hours(1)));
    }
}
