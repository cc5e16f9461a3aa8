//! How often estimates of first waits held, told from the log alone.

use std::collections::BTreeMap;
use stipend_core::id::WorkloadId;
use stipend_core::quantity::Time;
use stipend_core::waits::WaitEstimate;

/// All estimates of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct EstimateLog {
    /// Of work that has not run yet: since when it is eligible, and what was said then.
    open: BTreeMap<WorkloadId, (Time, WaitEstimate)>,
    pub given: u64,
    pub held: u64,
}

impl EstimateLog {
    /// A workload is eligible from now on. One that is so again was held in between: what was said before is void.
    pub(super) fn eligible(&mut self, at: Time, workload: WorkloadId, estimate: Option<WaitEstimate>) {
        match estimate {
            Some(estimate) => self.open.insert(workload, (at, estimate)),
            None => self.open.remove(&workload),
        };
    }

    /// It runs for the first time.
    pub(super) fn ran(&mut self, at: Time, workload: WorkloadId) {
        if let Some((eligible, estimate)) = self.open.remove(&workload) {
            self.given += 1;
            self.held += u64::from(estimate.holds(at - eligible));
        }
    }

    /// It ended without having run, or its first start failed: only a wait that was too long already tells anything.
    pub(super) fn over(&mut self, at: Time, workload: WorkloadId) {
        if let Some((eligible, estimate)) = self.open.remove(&workload) {
            self.given += u64::from(at - eligible > estimate.to);
        }
    }

    /// The run is over.
    pub(super) fn end(&mut self, at: Time) {
        while let Some((workload, _)) = self.open.first_key_value() {
            self.over(at, *workload);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stipend_core::quantity::Span;

    #[test]
    fn what_starts_in_time_holds_and_what_waits_too_long_does_not_however_it_ends() {
        let said = WaitEstimate { from: Span::minutes(1), to: Span::minutes(10), like: 10 };
        let at = |minutes| Time(0) + Span::minutes(minutes);
        let mut log = EstimateLog::default();
        for workload in 0..7 {
            log.eligible(at(0), WorkloadId(workload), Some(said));
        }
        log.eligible(at(0), WorkloadId(7), None);
        log.ran(at(0), WorkloadId(0)); // too early
        log.ran(at(5), WorkloadId(1)); // held
        log.over(at(9), WorkloadId(2)); // cancelled in time: nothing is known
        log.eligible(at(9), WorkloadId(3), Some(said)); // held and released: counted anew
        log.ran(at(11), WorkloadId(4)); // too late
        log.over(at(12), WorkloadId(5)); // cancelled too late
        log.ran(at(12), WorkloadId(3)); // held
        log.end(at(20)); // 6 waits still
        assert_eq!((log.given, log.held), (6, 2));
    }
}
