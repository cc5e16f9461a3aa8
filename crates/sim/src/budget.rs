//! The policy that this project is about: the core itself, behind the simulator's seam.

use crate::policy::Policy;
use stipend_core::Scheduler;
use stipend_core::entry::Entry;
use stipend_core::event::{Event, Rejection};
use stipend_core::quantity::Time;

/// The core as one policy among others.
pub struct Budget(pub Scheduler);

impl Policy for Budget {
    fn apply(&mut self, at: Time, event: Event, log: &mut Vec<Entry>) -> Result<(), Rejection> {
        self.0.apply(at, &event, log)
    }

    fn decide(&mut self, at: Time, log: &mut Vec<Entry>) {
        self.0.decide(at, log);
    }

    fn next_wakeup(&self) -> Option<Time> {
        self.0.next_wakeup()
    }
}
