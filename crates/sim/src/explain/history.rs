//! Watches a run for what happens to one workload.

use super::past::Past;
use crate::job::Job;
use crate::labels::Labels;
use crate::log;
use crate::observer::Observer;
use stipend_core::entry::Entry;
use stipend_core::id::WorkloadId;
use stipend_core::quantity::Time;

/// Watches a run.
pub(super) struct History<'a> {
    id: WorkloadId,
    names: &'a Labels,
    /// The workload with the largest number so far.
    last: Option<WorkloadId>,
    /// The workload that is being submitted.
    submitting: Option<WorkloadId>,
    /// What happened to it.
    pub past: Past,
}

impl<'a> History<'a> {
    pub(super) fn new(id: WorkloadId, names: &'a Labels) -> History<'a> {
        History { id, names, last: None, submitting: None, past: Past::default() }
    }

    /// Whether it was submitted, accepted or not.
    pub(super) fn is_known(&self) -> bool {
        !self.past.moments.is_empty()
    }

    /// The workload with the largest number so far.
    pub(super) fn last(&self) -> Option<WorkloadId> {
        self.last
    }

    /// Whether the entry is about it. Checkpoints, of which there are many, are left aside.
    fn is_about(&mut self, entry: &Entry) -> bool {
        match entry {
            Entry::Refused { .. } => self.submitting.take() == Some(self.id),
            Entry::Submitted { workload, .. } => {
                self.submitting = None;
                *workload == self.id
            }
            Entry::Held { workload, .. }
            | Entry::Ended { workload, .. }
            | Entry::Requeued { workload }
            | Entry::Reserved { workload, .. }
            | Entry::Unreserved { workload, .. } => *workload == self.id,
            Entry::Hold { claimant, .. } | Entry::Unhold { claimant, .. } => *claimant == self.id,
            Entry::Started { lease, .. }
            | Entry::Running { lease, .. }
            | Entry::Renewed { lease, .. }
            | Entry::Promoted { lease, .. }
            | Entry::Preempting { lease, .. }
            | Entry::Spared { lease } => lease.workload == self.id,
            _ => false,
        }
    }
}

impl Observer for History<'_> {
    fn job(&mut self, workload: WorkloadId, _job: &Job) {
        self.last = self.last.max(Some(workload));
        self.submitting = Some(workload);
    }

    fn entry(&mut self, at: Time, entry: &Entry) {
        if self.is_about(entry) {
            self.past.tell(at, &log::event(entry, self.names), self.names);
        }
    }
}
