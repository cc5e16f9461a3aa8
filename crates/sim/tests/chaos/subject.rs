//! What is tried: the core, or the core with a fault put in, to show that the trial finds it.

use std::cell::Cell;
use stipend_core::Scheduler;
use stipend_core::entry::{Entry, GpuSet, Licence, Slot, Unreserved};
use stipend_core::event::{Event, Rejection};
use stipend_core::quantity::{GpuMs, Span, Time};

/// A scheduler as the trial sees it.
pub(crate) trait Subject: Clone {
    type Plan: Clone;
    fn apply(&mut self, at: Time, event: &Event, log: &mut Vec<Entry>) -> Result<(), Rejection>;
    fn decide(&mut self, at: Time, log: &mut Vec<Entry>) -> Self::Plan;
    fn plan(&self, at: Time) -> Self::Plan;
    fn commit(&mut self, plan: &Self::Plan, log: &mut Vec<Entry>);
    fn next_wakeup(&self) -> Option<Time>;
    fn digest(&self) -> u64;
}

impl Subject for Scheduler {
    type Plan = stipend_core::Plan;
    fn apply(&mut self, at: Time, event: &Event, log: &mut Vec<Entry>) -> Result<(), Rejection> {
        Scheduler::apply(self, at, event, log)
    }
    fn decide(&mut self, at: Time, log: &mut Vec<Entry>) -> Self::Plan {
        Scheduler::decide(self, at, log)
    }
    fn plan(&self, at: Time) -> Self::Plan {
        Scheduler::plan(self, at)
    }
    fn commit(&mut self, plan: &Self::Plan, log: &mut Vec<Entry>) {
        Scheduler::commit(self, plan, log);
    }
    fn next_wakeup(&self) -> Option<Time> {
        Scheduler::next_wakeup(self)
    }
    fn digest(&self) -> u64 {
        Scheduler::digest(self)
    }
}

/// A fault to put in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A refused event leaves a trace.
    RefusalChanges,
    /// The dry run plans for another time.
    PlanDiffers,
    /// A commit does half of its plan's entries.
    CommitForgets,
    /// What it says depends on how often it was run.
    NotDeterministic,
    /// What it says depends on a name.
    LooksAtNames,
    /// The log leaves out or changes entries.
    Log(Lie),
}

/// A lie in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lie {
    NoCharge,
    ShortCharge,
    NoHold,
    NoSignal,
    NoRequeue,
    NoEnd,
    OtherGpus,
    LateProtection,
    WrongAttempt,
    WrongLicence,
    NoUnreserved,
    SaysClosed,
    EndsByOwner,
    EndsByBudget,
    EndsByNodes,
    EarlyPromise,
    NoLapse,
    LongLapse,
    NoStart,
    NoPromotion,
    LatePromotion,
    NoInput,
    LateRenewal,
}

thread_local! {
    static RUNS: Cell<u64> = const { Cell::new(0) };
}

/// The core with a fault.
#[derive(Clone)]
pub(crate) struct Faulty {
    core: Scheduler,
    fault: Fault,
    run: u64,
    trace: u64,
    names: u64,
}

impl Faulty {
    pub(crate) fn new(at: Time, fault: Fault) -> Faulty {
        let run = RUNS.with(|runs| runs.replace(runs.get() + 1));
        Faulty { core: Scheduler::new(at), fault, run, trace: 0, names: 0 }
    }

    fn tell(&self, from: usize, log: &mut Vec<Entry>) {
        let tail = log.split_off(from);
        let told = tail.into_iter().filter_map(|entry| match self.fault {
            Fault::Log(lie) => lie.told(entry),
            Fault::NotDeterministic => Some(relabel(entry, self.run)),
            Fault::LooksAtNames => Some(relabel(entry, self.names)),
            _ => Some(entry),
        });
        log.extend(told);
    }
}

/// Makes the log depend on `by`.
fn relabel(entry: Entry, by: u64) -> Entry {
    match entry {
        Entry::Ended { workload, attempt, outcome, lost, .. } => {
            Entry::Ended { workload, attempt, outcome, lost, by: stipend_core::entry::By::Administrator(by.to_string()) }
        }
        other => other,
    }
}

impl Lie {
    fn told(self, entry: Entry) -> Option<Entry> {
        match (self, entry) {
            (Lie::NoCharge, Entry::Charged { .. })
            | (Lie::NoHold, Entry::Hold { .. })
            | (Lie::NoSignal, Entry::Stopping { .. })
            | (Lie::NoRequeue, Entry::Requeued { .. })
            | (Lie::NoStart, Entry::Started { .. })
            | (Lie::NoEnd, Entry::Ended { attempt: Some(_), .. }) => None,
            (Lie::ShortCharge, Entry::Charged { workload, attempt, budget, pool, kind, from, to, gpu_ms }) => {
                Some(Entry::Charged { workload, attempt, budget, pool, kind, from, to, gpu_ms: GpuMs(gpu_ms.0 - 1) })
            }
            (Lie::OtherGpus, Entry::Started { lease, pool, occupancy, placement, licence, why }) => {
                let placement = placement.iter().map(|slot| Slot { gpus: GpuSet(slot.gpus.0 << 1), ..*slot }).collect();
                Some(Entry::Started { lease, pool, occupancy, placement, licence, why })
            }
            (Lie::LateProtection, Entry::Running { lease, protected_until }) => {
                Some(Entry::Running { lease, protected_until: protected_until.map(|until| until + Span(1)) })
            }
            (Lie::WrongAttempt, Entry::Started { mut lease, pool, occupancy, placement, licence, why }) => {
                lease.attempt += 1;
                Some(Entry::Started { lease, pool, occupancy, placement, licence, why })
            }
            (Lie::WrongLicence, Entry::Preempting { lease, claimant: Some(claimant), node, stop_by, why, .. }) => {
                Some(Entry::Preempting { lease, claimant: Some(claimant), node, licence: Licence::Drain, stop_by, why })
            }
            (Lie::NoUnreserved, Entry::Unreserved { .. }) | (Lie::NoLapse, Entry::Lapsed { .. }) => None,
            (Lie::LongLapse, Entry::Lapsed { budget, pool, from, to, gpu_ms }) => {
                Some(Entry::Lapsed { budget, pool, from, to, gpu_ms: GpuMs(gpu_ms.0 * 2 + 3_600_000) })
            }
            (Lie::SaysClosed, Entry::Budgets { version, author, reason, mut budgets }) => {
                budgets.iter_mut().for_each(|budget| budget.spec.closed = true);
                Some(Entry::Budgets { version, author, reason, budgets })
            }
            (Lie::EndsByOwner, Entry::Unreserved { reservation, workload, .. }) => {
                Some(Entry::Unreserved { reservation, workload, why: Unreserved::Owner })
            }
            (Lie::EndsByBudget, Entry::Unreserved { reservation, workload, .. }) => {
                Some(Entry::Unreserved { reservation, workload, why: Unreserved::Budget })
            }
            (Lie::EndsByNodes, Entry::Unreserved { reservation, workload, .. }) => {
                Some(Entry::Unreserved { reservation, workload, why: Unreserved::NodesLost })
            }
            (Lie::EarlyPromise, Entry::Reserved { reservation, workload, pool, latest_start, nodes, why }) => {
                Some(Entry::Reserved { reservation, workload, pool, latest_start: latest_start - Span::hours(1), nodes, why })
            }
            (Lie::NoPromotion, Entry::Promoted { .. }) => None,
            (Lie::LatePromotion, Entry::Promoted { lease, protected_until, why }) => {
                Some(Entry::Promoted { lease, protected_until: protected_until.map(|until| until + Span(1)), why })
            }
            (Lie::NoInput, Entry::Input { .. }) => None,
            (Lie::LateRenewal, Entry::Renewed { lease, protected_until, why }) => {
                Some(Entry::Renewed { lease, protected_until: protected_until + Span(1), why })
            }
            (_, entry) => Some(entry),
        }
    }
}

impl Subject for Faulty {
    type Plan = stipend_core::Plan;
    fn apply(&mut self, at: Time, event: &Event, log: &mut Vec<Entry>) -> Result<(), Rejection> {
        let from = log.len();
        if let Event::BudgetsChanged(change) = event {
            self.names += change.budgets.iter().map(|budget| budget.name.bytes().map(u64::from).sum::<u64>()).sum::<u64>();
        }
        let result = self.core.apply(at, event, log);
        if result.is_err() && self.fault == Fault::RefusalChanges {
            self.trace += 1;
        }
        self.tell(from, log);
        result
    }
    fn decide(&mut self, at: Time, log: &mut Vec<Entry>) -> Self::Plan {
        let from = log.len();
        let plan = self.core.decide(at, log);
        self.tell(from, log);
        plan
    }
    fn plan(&self, at: Time) -> Self::Plan {
        let later = if self.fault == Fault::PlanDiffers { Span(1) } else { Span(0) };
        self.core.plan(at + later)
    }
    fn commit(&mut self, plan: &Self::Plan, log: &mut Vec<Entry>) {
        let from = log.len();
        self.core.commit(plan, log);
        if self.fault == Fault::CommitForgets {
            log.truncate(from);
        }
        self.tell(from, log);
    }
    fn next_wakeup(&self) -> Option<Time> {
        self.core.next_wakeup()
    }
    fn digest(&self) -> u64 {
        self.core.digest() + self.trace
    }
}
