//! What is due before waiting work is looked at: timers, claims that are complete, drains that end.

use super::Cycle;
use crate::entry::Licence;
use crate::explain::Why;
use crate::id::{LeaseId, NodeId};
use crate::plan::{Decision, Preemption};
use crate::workload::{Phase, StopCause};

impl Cycle<'_> {
    pub(super) fn settle_timers(&mut self) {
        let now = self.now();
        while let Some((due, id)) = self.pool().timers.first().copied()
            && due <= now
        {
            let workload = self.workload(id);
            let lease = workload.lease().expect("a timer is of a lease");
            let lease_id = lease.id(id);
            let decision = match &lease.stop {
                Some(stop) if !stop.signalled => Decision::Signal { lease: lease_id },
                Some(_) => Decision::Stuck { lease: lease_id },
                None if lease.running.is_none() => Decision::Stop { lease: lease_id, cause: StopCause::StartTimeout },
                None => Decision::Stop { lease: lease_id, cause: StopCause::TimeLimit },
            };
            self.decide(decision);
        }
    }

    pub(super) fn settle_claims(&mut self) {
        if self.pool().claims.is_empty() {
            return;
        }
        for id in self.pool().claims.clone() {
            let Phase::Claiming(claim) = &self.workload(id).phase else { continue };
            if crate::claim::is_complete(&self.s.pools[self.pool], claim) {
                self.decide(Decision::StartClaimed { workload: id });
            }
        }
    }

    pub(super) fn settle_drains(&mut self) {
        let now = self.now();
        for id in self.pool().draining.clone() {
            let node = self.pool().cluster.at(id);
            let over = node.drain_until.is_some_and(|until| until <= now);
            let leases = node.leases.clone();
            if over {
                for workload in &leases {
                    let lease = self.workload(*workload).lease().expect("it holds a lease");
                    if lease.stop.is_none() {
                        self.preempt_for_drain(lease.id(*workload), id);
                    }
                }
            }
            if leases.is_empty() {
                self.decide(Decision::Drained { node: id });
            }
        }
    }

    fn preempt_for_drain(&mut self, lease: LeaseId, node: NodeId) {
        let (signal_at, why) = (self.now(), Why::DrainEnds { node });
        let preemption = Preemption { cause: StopCause::Drain, node: Some(node), licence: Licence::Drain, signal_at, why };
        self.decide(Decision::Preempt { lease, preemption });
        self.decide(Decision::Signal { lease });
    }
}
