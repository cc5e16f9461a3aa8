//! Leases whose GPUs do nothing. Rules only.

use super::health::Sample;
use std::collections::{BTreeMap, BTreeSet};
use stipend_core::id::LeaseId;
use stipend_core::quantity::{Span, Time};

/// A GPU that runs kernels for less of the time, in percent, does nothing.
const BUSY_FROM: u32 = 1;

/// Since when the GPUs of which lease do nothing.
pub(super) struct Idle {
    after: Span,
    since: BTreeMap<LeaseId, Time>,
    said: BTreeSet<LeaseId>,
}

impl Idle {
    /// A lease counts as idle after so long.
    pub(super) fn new(after: Span) -> Idle {
        Idle { after, since: BTreeMap::new(), said: BTreeSet::new() }
    }

    /// What changed with these samples: leases that are idle since then, and those that work again.
    pub(super) fn look(&mut self, at: Time, samples: &[Sample], leases: &BTreeMap<LeaseId, Vec<u32>>) -> Vec<(LeaseId, Option<Time>)> {
        self.since.retain(|lease, _| leases.contains_key(lease));
        self.said.retain(|lease| leases.contains_key(lease));
        let mut changes = Vec::new();
        for (&lease, gpus) in leases {
            let own: Vec<&Sample> = samples.iter().filter(|sample| gpus.contains(&sample.gpu)).collect();
            // Of a GPU that does not say what it does nothing is concluded.
            let is_idle = !own.is_empty() && own.iter().all(|sample| sample.utilization.is_some_and(|percent| percent < BUSY_FROM));
            if !is_idle {
                self.since.remove(&lease);
                if self.said.remove(&lease) {
                    changes.push((lease, None));
                }
                continue;
            }
            let since = *self.since.entry(lease).or_insert(at);
            if at - since >= self.after && self.said.insert(lease) {
                changes.push((lease, Some(since)));
            }
        }
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stipend_core::id::WorkloadId;

    #[test]
    fn a_lease_is_idle_when_all_its_gpus_are_for_long_enough() {
        let mut idle = Idle::new(Span::minutes(10));
        let lease = LeaseId { workload: WorkloadId(1), attempt: 1 };
        let leases = BTreeMap::from([(lease, vec![0, 1])]);
        let at = |minute: i64| Time(minute * 60_000);
        let mut look = |minute: i64, first: Option<u32>, second: Option<u32>| {
            let sample = |gpu: u32, utilization: Option<u32>| Sample { gpu, utilization, ..Sample::default() };
            // The third is another's.
            idle.look(at(minute), &[sample(0, first), sample(1, second), sample(2, Some(99))], &leases)
        };
        assert_eq!(look(0, Some(0), Some(50)), []);
        assert_eq!(look(1, Some(0), Some(0)), []);
        assert_eq!(look(10, Some(0), Some(0)), []);
        assert_eq!(look(11, Some(0), Some(0)), [(lease, Some(at(1)))]);
        assert_eq!(look(12, Some(0), Some(0)), []);
        assert_eq!(look(13, Some(3), Some(0)), [(lease, None)]);
        assert_eq!(look(14, None, Some(0)), []);
        assert_eq!(look(40, None, Some(0)), []);
    }
}
