//! Waits and slowdowns by class.

use stipend_core::entry::Class;
use stipend_core::quantity::Span;

/// One class's waits.
#[derive(Clone, Debug, Default)]
pub(super) struct WaitLog {
    /// Of all, those that never started with their wait so far.
    pub waits: Vec<Span>,
    pub never_started: u64,
}

impl WaitLog {
    pub(super) fn record(&mut self, wait: Span) {
        self.waits.push(wait);
    }

    /// A wait that did not end with a start.
    pub(super) fn record_unstarted(&mut self, wait: Span) {
        self.waits.push(wait);
        self.never_started += 1;
    }

    /// Several classes as one.
    pub(super) fn together(logs: &[&WaitLog]) -> WaitLog {
        WaitLog {
            waits: logs.iter().flat_map(|log| log.waits.iter().copied()).collect(),
            never_started: logs.iter().map(|log| log.never_started).sum(),
        }
    }
}

/// (completed − eligible) / work of one class, in parts per million.
#[derive(Clone, Debug, Default)]
pub(super) struct SlowdownLog(pub Vec<u64>);

/// All classes.
#[derive(Clone, Debug, Default)]
pub(super) struct WaitLogs {
    pub debug: WaitLog,
    pub medium: WaitLog,
    pub largest: WaitLog,
    pub unallocated: WaitLog,
    /// From a requeue of allocated work that had run to its running again.
    pub requeued: WaitLog,
    /// First waits of allocated gangs larger than their leaf's claim, which are in their class too.
    pub over_claim: WaitLog,
    pub slowdown_debug: SlowdownLog,
    pub slowdown_medium: SlowdownLog,
    pub slowdown_largest: SlowdownLog,
}

impl WaitLogs {
    /// From eligible to running for the first time, in whichever attempt.
    pub(super) fn first(&mut self, class: Class, over_claim: bool, wait: Span, started: bool) {
        let log = match class {
            Class::Debug => &mut self.debug,
            Class::Medium => &mut self.medium,
            Class::Largest => &mut self.largest,
            Class::Unallocated => &mut self.unallocated,
        };
        let record = if started { WaitLog::record } else { WaitLog::record_unstarted };
        record(log, wait);
        if over_claim {
            record(&mut self.over_claim, wait);
        }
    }

    /// A workload of `work` completed `elapsed` after it became eligible. Without work there is no slowdown.
    pub(super) fn slowdown(&mut self, class: Class, elapsed: Span, work: Span) {
        let log = match class {
            Class::Debug => &mut self.slowdown_debug,
            Class::Medium => &mut self.slowdown_medium,
            Class::Largest => &mut self.slowdown_largest,
            Class::Unallocated => return,
        };
        if let (Ok(elapsed), Ok(work @ 1..)) = (u64::try_from(elapsed.0), u64::try_from(work.0)) {
            log.0.push(elapsed * 1_000_000 / work);
        }
    }
}
