//! Who watches a run: the metrics, the event log's writer, the auditor.

use crate::job::Job;
use stipend_core::entry::{Entry, Occupancy};
use stipend_core::id::{LeaseId, WorkloadId};
use stipend_core::quantity::{GpuMs, Time};

/// Sees everything that happens in a run, in order.
pub trait Observer {
    /// One entry of the event log.
    fn entry(&mut self, at: Time, entry: &Entry);

    /// A workload is about to be submitted; comes before its `Submitted` entry.
    fn job(&mut self, _workload: WorkloadId, _job: &Job) {}

    /// GPU time of this lease that led to a bank (a checkpoint) or a completion, known only to the engine; what was held idle is no part of it.
    /// Comes before the lease's `Ended` entry.
    fn banked(&mut self, _at: Time, _lease: LeaseId, _gpu_ms: GpuMs) {}

    /// GPU time of this lease that is lost for good at its end: work since the last bank, restart cost, start and grace.
    /// Comes before the lease's `Ended` entry.
    fn lost(&mut self, _at: Time, _lease: LeaseId, _occupancy: Occupancy, _gpu_ms: GpuMs) {}

    /// The run is over; leases may still be running.
    fn end(&mut self, _at: Time) {}
}
