//! A scheduler with its journal: every fact and every plan is replayed by a second one, which must come to the same state.

use stipend_core::Scheduler;
use stipend_core::entry::Entry;
use stipend_core::event::{Event, Rejection};
use stipend_core::quantity::Time;
use stipend_sim::policy::Policy;

/// The live scheduler and its replay. A state that only a restart would clear shows as a difference between the two.
pub(crate) struct Journalled {
    pub(crate) live: Scheduler,
    replayed: Scheduler,
    decisions: u64,
}

/// Digests cost as much as a state is large: long runs compare a part of them.
const COMPARED_EACH: u64 = 64;

impl Journalled {
    pub(crate) fn new() -> Journalled {
        Journalled { live: Scheduler::new(Time(0)), replayed: Scheduler::new(Time(0)), decisions: 0 }
    }

    pub(crate) fn compare(&self, at: Time) {
        assert_eq!(self.live.digest(), self.replayed.digest(), "the replay of the journal comes to another state at {at:?}");
    }
}

impl Policy for Journalled {
    fn apply(&mut self, at: Time, event: Event, log: &mut Vec<Entry>) -> Result<(), Rejection> {
        let answer = self.live.apply(at, &event, log);
        let replayed = self.replayed.apply(at, &event, &mut Vec::new());
        assert_eq!(answer, replayed, "the replay answers {event:?} in another way");
        answer
    }

    fn decide(&mut self, at: Time, log: &mut Vec<Entry>) {
        let plan = self.live.decide(at, log);
        self.replayed.commit(&plan, &mut Vec::new());
        self.decisions += 1;
        if self.decisions < COMPARED_EACH || self.decisions.is_multiple_of(COMPARED_EACH) {
            self.compare(at);
        }
    }

    fn next_wakeup(&self) -> Option<Time> {
        self.live.next_wakeup()
    }
}
