//! How a lease ends.

use super::super::status::What;
use signal_hook::consts::{SIGHUP, SIGKILL, SIGTERM};
use stipend_core::event::Exit;

/// What is known of it so far.
#[derive(Default)]
pub(super) struct Ending {
    /// The workload said so.
    pub done: bool,
    /// The machine is going down, or somebody ended the supervisor: not the workload's fault.
    pub interrupted: bool,
    /// The first member that failed: its code or signal.
    failure: Option<(Option<i32>, Option<i32>)>,
}

impl Ending {
    /// A member failed. Only the first one counts: the others are stopped because of it.
    pub(super) fn failed(&mut self, code: Option<i32>, signal: Option<i32>) {
        self.failure.get_or_insert((code, signal));
    }

    /// A member was ended by a signal that also goes to everybody when the machine goes down.
    pub(super) fn was_terminated(&self) -> bool {
        let signals = [SIGTERM, SIGKILL, SIGHUP];
        self.failure.is_some_and(|(_, signal)| signal.is_some_and(|signal| signals.contains(&signal)))
    }

    /// The last line of the status.
    pub(super) fn line(&self, all_ran: bool) -> What {
        let (code, signal) = self.failure.unwrap_or((all_ran.then_some(0), None));
        let exit = match self.failure {
            _ if self.done => Exit::Done,
            // Also if it ended well: inside a grace that does not mean that the work is finished.
            _ if self.interrupted => Exit::Infrastructure,
            None if all_ran => Exit::Completed,
            _ => Exit::Failed,
        };
        What::Ended { exit, code, signal }
    }
}
