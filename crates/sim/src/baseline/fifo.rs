//! Strict first come, first served: whoever cannot start keeps everybody behind waiting.

use super::book::{Estimate, Workload};
use super::common::{Baseline, Desk, GUEST, Queue};
use crate::policy::Policy;
use std::collections::BTreeMap;
use stipend_core::id::WorkloadId;

/// First come, first served. Requeued work has its old place.
pub fn fifo() -> impl Policy {
    Baseline::new(Fifo::default, Estimate::default())
}

/// Waiting work by its place in the order of submission.
#[derive(Default)]
struct Fifo {
    waiting: BTreeMap<u32, WorkloadId>,
}

impl Queue for Fifo {
    fn push(&mut self, id: WorkloadId, workload: &Workload, _: &Estimate) {
        self.waiting.insert(workload.rank, id);
    }

    fn remove(&mut self, _: WorkloadId, workload: &Workload) {
        self.waiting.remove(&workload.rank);
    }

    fn decide(&mut self, desk: &mut Desk<'_>) {
        while let Some(head) = self.waiting.first_entry() {
            let Some(choice) = desk.place(*head.get()) else { return };
            desk.start(head.remove(), &choice, "the longest waiting of all, and it fits");
        }
    }

    fn guest(&mut self, id: WorkloadId, desk: &mut Desk<'_>) -> bool {
        let choice = if self.waiting.is_empty() { desk.place(id) } else { None };
        choice.map(|choice| desk.start(id, &choice, GUEST)).is_some()
    }
}
