//! What happened in a run, kept in a form that expectations can be held against.

use std::collections::BTreeMap;
use stipend_core::entry::{Entry, Licence, Occupancy, Outcome, Slot};
use stipend_core::id::{BudgetId, WorkloadId};
use stipend_core::quantity::{Gpus, Span, Time};
use stipend_core::spec::WorkloadSpec;
use stipend_sim::job::Job;
use stipend_sim::observer::Observer;

/// One attempt.
pub(crate) struct Attempt {
    pub(crate) workload: WorkloadId,
    pub(crate) budget: BudgetId,
    pub(crate) charged: Gpus,
    pub(crate) gpus: Gpus,
    pub(crate) occupancy: Occupancy,
    pub(crate) placement: String,
    pub(crate) from: Time,
    pub(crate) protected_for: Option<Span>,
    /// When it got its contract where it ran; until then it was unallocated.
    pub(crate) promoted: Option<Time>,
    /// When and how it ended, if it did.
    pub(crate) end: Option<(Time, Outcome)>,
}

/// One eviction.
pub(crate) struct Eviction {
    pub(crate) at: Time,
    pub(crate) victim: WorkloadId,
    pub(crate) claimant: Option<WorkloadId>,
    pub(crate) licence: Licence,
}

/// Everything that expectations speak of.
#[derive(Default)]
pub(crate) struct Facts {
    pub(crate) attempts: Vec<Attempt>,
    pub(crate) evictions: Vec<Eviction>,
    /// How each workload ended for good.
    pub(crate) ends: BTreeMap<WorkloadId, (Time, Outcome)>,
    /// Workloads that were not accepted, and why.
    pub(crate) refused: BTreeMap<WorkloadId, String>,
    /// Victims that were let go.
    pub(crate) spared: Vec<WorkloadId>,
    /// Refunded GPU · ms by workload.
    pub(crate) refunded: BTreeMap<WorkloadId, i64>,
    /// When sessions got their contract once more.
    pub(crate) renewed: BTreeMap<WorkloadId, Vec<Time>>,
    /// Lapsed GPU · ms by budget.
    pub(crate) lapsed: BTreeMap<BudgetId, i64>,
    asked: BTreeMap<WorkloadId, (BudgetId, Gpus, Gpus)>,
    /// The last submission, of which a refusal may speak.
    last_job: Option<WorkloadId>,
    pub(crate) end: Time,
}

impl Facts {
    pub(crate) fn attempts_of(&self, workload: WorkloadId) -> impl Iterator<Item = &Attempt> {
        self.attempts.iter().filter(move |attempt| attempt.workload == workload)
    }

    fn present(&mut self, workload: WorkloadId) -> Option<&mut Attempt> {
        self.attempts.iter_mut().rev().find(|attempt| attempt.workload == workload)
    }
}

impl Observer for Facts {
    fn job(&mut self, workload: WorkloadId, job: &Job) {
        self.last_job = Some(workload);
        let WorkloadSpec { budget, gang, .. } = *job.spec;
        self.asked.insert(workload, (budget, gang.gpus(), gang.gpus()));
    }

    fn entry(&mut self, at: Time, entry: &Entry) {
        match entry {
            Entry::Submitted { workload, charged_gpus, .. } => {
                self.last_job = None;
                if let Some(asked) = self.asked.get_mut(workload) {
                    asked.2 = *charged_gpus;
                }
            }
            Entry::Refused { rejection } => {
                if let Some(workload) = self.last_job.take() {
                    self.refused.insert(workload, format!("{rejection:?}"));
                }
            }
            Entry::Started { lease, occupancy, placement, .. } => {
                let (budget, gpus, charged) = self.asked[&lease.workload];
                let placement = shown(placement);
                let (workload, occupancy) = (lease.workload, *occupancy);
                self.attempts.push(Attempt {
                    workload,
                    budget,
                    charged,
                    gpus,
                    occupancy,
                    placement,
                    from: at,
                    protected_for: None,
                    promoted: None,
                    end: None,
                });
            }
            Entry::Running { lease, protected_until } => {
                if let Some(attempt) = self.present(lease.workload) {
                    attempt.protected_for = protected_until.map(|until| until - at);
                }
            }
            Entry::Renewed { lease, .. } => self.renewed.entry(lease.workload).or_default().push(at),
            Entry::Promoted { lease, protected_until, .. } => {
                if let Some(attempt) = self.present(lease.workload) {
                    attempt.promoted = Some(at);
                    attempt.protected_for = protected_until.map(|until| until - at);
                }
            }
            Entry::Preempting { lease, claimant, licence, .. } => {
                self.evictions.push(Eviction { at, victim: lease.workload, claimant: *claimant, licence: *licence });
            }
            Entry::Spared { lease } => self.spared.push(lease.workload),
            Entry::Ended { workload, attempt, outcome, .. } => {
                if attempt.is_some()
                    && let Some(attempt) = self.present(*workload)
                {
                    attempt.end = Some((at, *outcome));
                }
                self.ends.insert(*workload, (at, *outcome));
            }
            Entry::Requeued { workload } => {
                self.ends.remove(workload);
            }
            Entry::Lapsed { budget, gpu_ms, .. } => *self.lapsed.entry(*budget).or_default() += gpu_ms.0,
            Entry::Refunded { workload, gpu_ms, .. } => *self.refunded.entry(*workload).or_default() += gpu_ms.0,
            _ => {}
        }
    }

    fn end(&mut self, at: Time) {
        self.end = at;
    }
}

/// A placement in few letters: `n0[0-3]`, `n0-n3[0-7]`, `n1[0,2]`.
pub(crate) fn shown(placement: &[Slot]) -> String {
    let mut parts: Vec<(u32, u32, String)> = Vec::new();
    for slot in placement {
        let gpus = ranges(slot.gpus.numbers());
        match parts.last_mut() {
            Some((_, last, same)) if *last + 1 == slot.node.0 && *same == gpus => *last += 1,
            _ => parts.push((slot.node.0, slot.node.0, gpus)),
        }
    }
    let node = |(first, last, gpus): &(u32, u32, String)| {
        if first == last { format!("n{first}[{gpus}]") } else { format!("n{first}-n{last}[{gpus}]") }
    };
    parts.iter().map(node).collect::<Vec<_>>().join(" ")
}

fn ranges(numbers: impl Iterator<Item = u32>) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let one = |(first, last): &(u32, u32)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    ranges.iter().map(one).collect::<Vec<_>>().join(",")
}
