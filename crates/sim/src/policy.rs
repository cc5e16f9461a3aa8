//! The seam between the engine and whoever decides: the core, or a baseline.

use stipend_core::Scheduler;
use stipend_core::entry::Entry;
use stipend_core::event::{Event, Rejection};
use stipend_core::quantity::Time;

/// Events in, log entries out; told the time, like the core itself.
pub trait Policy {
    /// Takes one fact. Pushes what follows from it onto `log`; on `Err` nothing changed.
    fn apply(&mut self, at: Time, event: Event, log: &mut Vec<Entry>) -> Result<(), Rejection>;

    /// Decides what to do now that every fact of this instant is in; pushes the decisions onto `log`, in order.
    fn decide(&mut self, at: Time, log: &mut Vec<Entry>);

    /// When it wants to decide again even if nothing happens.
    fn next_wakeup(&self) -> Option<Time>;
}

impl Policy for Scheduler {
    fn apply(&mut self, at: Time, event: Event, log: &mut Vec<Entry>) -> Result<(), Rejection> {
        Scheduler::apply(self, at, &event, log)
    }

    fn decide(&mut self, at: Time, log: &mut Vec<Entry>) {
        Scheduler::decide(self, at, log);
    }

    fn next_wakeup(&self) -> Option<Time> {
        Scheduler::next_wakeup(self)
    }
}
