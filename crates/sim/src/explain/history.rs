//! What happened to one workload, from the scheduler's entries.

use super::answer::{Ended, Moment, Preemption};
use crate::job::Job;
use crate::labels::Labels;
use crate::log::{self, licence};
use crate::observer::Observer;
use crate::refusal::Refusal;
use std::sync::Arc;
use stipend_core::counterfactual::nodes;
use stipend_core::entry::{By, Entry, Licence, Occupancy, Outcome, Placement};
use stipend_core::explain::{Names, Why};
use stipend_core::id::WorkloadId;
use stipend_core::quantity::{Gpus, Span, Time};
use stipend_core::spec::WorkloadSpec;

/// So many moments are kept; of more the first and the last.
const MOMENTS_MAX: usize = 40;

/// Watches a run.
pub(super) struct History<'a> {
    id: WorkloadId,
    names: &'a Labels,
    /// The workload with the largest number so far.
    last: Option<WorkloadId>,
    /// The workload that is being submitted.
    submitting: Option<WorkloadId>,
    pub moments: Vec<Moment>,
    /// How many moments were left out in the middle.
    pub left_out: u64,
    /// As it was accepted: what it asked for, the GPUs it is charged for, its contract.
    pub accepted: Option<(Arc<WorkloadSpec>, Gpus, Span)>,
    /// By which licence its last attempt started.
    pub licence: Option<Licence>,
    /// The plan that takes or took the GPUs of its latest attempt.
    pub preemption: Option<Preemption>,
    /// How it ended, if it has.
    pub ended: Option<Ended>,
}

impl<'a> History<'a> {
    pub(super) fn new(id: WorkloadId, names: &'a Labels) -> History<'a> {
        History {
            id,
            names,
            last: None,
            submitting: None,
            moments: Vec::new(),
            left_out: 0,
            accepted: None,
            licence: None,
            preemption: None,
            ended: None,
        }
    }

    /// Whether it was submitted, accepted or not.
    pub(super) fn is_known(&self) -> bool {
        !self.moments.is_empty()
    }

    /// The workload with the largest number so far.
    pub(super) fn last(&self) -> Option<WorkloadId> {
        self.last
    }

    fn note(&mut self, at: Time, text: String) {
        if self.moments.len() == MOMENTS_MAX {
            self.moments.remove(MOMENTS_MAX / 2);
            self.left_out += 1;
        }
        self.moments.push(Moment { at: self.names.time(at), at_ms: at.0, text });
    }

    fn refused(&mut self, at: Time, why: String) {
        let ended = Ended { at: self.names.time(at), at_ms: at.0, outcome: "refused".into(), by: why.clone(), lost_gpu_hours: 0.0 };
        self.ended = Some(ended);
        self.note(at, format!("refused: {why}"));
    }

    fn ended(&mut self, at: Time, outcome: Outcome, by: &By, lost_gpu_hours: f64) {
        let outcome = log::outcome(outcome).text().to_owned();
        let lost = if lost_gpu_hours == 0.0 { String::new() } else { format!(", {lost_gpu_hours:.2} GPU-h lost") };
        let cause = if *by == By::Itself { String::new() } else { format!(", by {}", by.text(self.names)) };
        self.note(at, format!("{outcome}{cause}{lost}"));
        self.ended = Some(Ended { at: self.names.time(at), at_ms: at.0, outcome, by: by.text(self.names), lost_gpu_hours });
    }

    fn started(&mut self, at: Time, attempt: u32, occupancy: Occupancy, placement: &Placement, why: &Why) {
        let again = if attempt > 1 { format!(" again, attempt {attempt},") } else { String::new() };
        let occupancy = if occupancy == Occupancy::Allocated { "" } else { " unallocated" };
        let nodes = nodes(placement, self.names);
        self.note(at, format!("started{again}{occupancy} on {nodes}: {}", why.text(self.names)));
    }
}

impl Observer for History<'_> {
    fn job(&mut self, workload: WorkloadId, _job: &Job) {
        self.last = self.last.max(Some(workload));
        self.submitting = Some(workload);
    }

    fn entry(&mut self, at: Time, entry: &Entry) {
        let names = self.names;
        match entry {
            Entry::Submitted { workload, spec, charged_gpus, min_runtime, .. } if *workload == self.id => {
                self.accepted = Some((Arc::clone(spec), *charged_gpus, *min_runtime));
                self.note(at, "submitted".into());
            }
            Entry::Refused { rejection } if self.submitting.take() == Some(self.id) => {
                self.refused(at, Refusal { rejection, names }.to_string());
            }
            Entry::Submitted { .. } => self.submitting = None,
            Entry::Held { workload, why } if *workload == self.id => self.note(at, format!("held: {why}")),
            Entry::Started { lease, occupancy, placement, licence, why, .. } if lease.workload == self.id => {
                (self.licence, self.preemption) = (Some(*licence), None);
                self.started(at, lease.attempt, *occupancy, placement, why);
            }
            Entry::Running { lease, protected_until } if lease.workload == self.id => {
                let is_early = self.accepted.as_ref().is_some_and(|(_, _, contract)| *contract > Span::ZERO);
                let unprotected = if is_early { "not protected before its turn" } else { "never protected" };
                let until = protected_until.map_or(unprotected.into(), |until| format!("protected until {}", names.time(until)));
                self.note(at, format!("runs, {until}"));
            }
            Entry::Renewed { lease, protected_until, why } if lease.workload == self.id => {
                self.note(at, format!("got its contract once more, until {}: {}", names.time(*protected_until), why.text(names)));
            }
            Entry::Promoted { lease, protected_until, why } if lease.workload == self.id => {
                let until = protected_until.map_or("when it runs".into(), |until| format!("until {}", names.time(until)));
                self.note(at, format!("got its contract where it runs, protected {until}: {}", why.text(names)));
            }
            Entry::Preempting { lease, claimant, licence: by, stop_by, why, .. } if lease.workload == self.id => {
                let why = why.text(names);
                self.note(at, format!("told to leave by {}: {why}", names.time(*stop_by)));
                let claimant = claimant.map(|claimant| names.workload(claimant));
                self.preemption = Some(Preemption { at: names.time(at), at_ms: at.0, claimant, licence: licence(*by), why });
            }
            Entry::Spared { lease } if lease.workload == self.id => {
                self.preemption = None;
                self.note(at, "goes on: its claimant went away".into());
            }
            Entry::Hold { claimant, placement } if *claimant == self.id => {
                self.note(at, format!("GPUs of {} are held for it", nodes(placement, names)));
            }
            Entry::Unhold { claimant, why } if *claimant == self.id && *why != Why::ClaimantStarted => {
                self.note(at, format!("nothing is held for it any more: {}", why.text(names)));
            }
            Entry::Ended { workload, outcome, lost, by, .. } if *workload == self.id => {
                self.ended(at, *outcome, by, lost.0 as f64 / 3_600_000.0);
            }
            Entry::Requeued { workload } if *workload == self.id => {
                self.ended = None;
                self.note(at, "waits again".into());
            }
            _ => {}
        }
    }
}
