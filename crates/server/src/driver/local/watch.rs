//! What follows from how the GPUs are: faults of their node, leases that do nothing, failures that are not the workload's.

use super::health::{Fault, Sample, of_xid};
use super::status::now;
use super::worker::Worker;
use crate::driver::Report;
use std::collections::BTreeMap;
use std::time::Instant;
use stipend_core::id::LeaseId;

impl Worker {
    /// The driver of a GPU reported an error.
    pub(super) fn xid(&mut self, gpu: u32, xid: u64) {
        tracing::warn!(gpu, xid, "a GPU's driver reported an error");
        if of_xid(xid).is_some() {
            self.breaks(gpu);
        }
        let fault = self.health.xid(gpu, xid);
        fault.into_iter().for_each(|fault| self.fault(fault));
    }

    /// How the GPUs are now.
    pub(super) fn samples(&mut self, samples: &[Sample]) {
        for sample in samples {
            if sample.lost {
                self.breaks(sample.gpu);
            }
            let faults = self.health.sample(Instant::now(), sample);
            faults.into_iter().for_each(|fault| self.fault(fault));
        }
        let live = self.leases.iter().filter(|(_, lease)| lease.end.is_none());
        let gpus: BTreeMap<LeaseId, Vec<u32>> = live.map(|(&id, lease)| (id, lease.gpus().collect())).collect();
        for (lease, since) in self.idle.look(now(), samples, &gpus) {
            self.reports.report(Report::Idle { lease, since });
        }
    }

    /// Leases on this GPU that fail from now on were failed.
    fn breaks(&mut self, gpu: u32) {
        let on_it = self.leases.values_mut().filter(|lease| lease.gpus().any(|own| own == gpu));
        on_it.for_each(|lease| lease.is_broken = true);
    }

    fn fault(&self, fault: Fault) {
        // The watched GPUs are this machine's, which is one node.
        for node in &self.settings.nodes {
            let (severity, reason) = (fault.severity, fault.reason.clone());
            self.reports.report(Report::NodeFault { node: node.name.clone(), severity, reason });
        }
    }
}
