//! Work whose leases the infrastructure loses again and again soon after their start: tried again after a pause, and then held.
//!
//! A workload that ends its own supervisor looks so, and would be started for ever at full speed, as all that it used is refunded.

use super::Service;
use super::gates::gate;
use crate::wire::workload::{State, Workload};
use stipend_core::event::Event;
use stipend_core::id::WorkloadId;
use stipend_core::quantity::{Span, Time};

/// A lease that lasted longer says nothing against its workload.
const SOON: Span = Span::minutes(5);

/// So many in a row, and somebody has to look.
pub(super) const LOSSES_MAX: u32 = 3;

/// Before the last try: what was wrong with the machine may have passed by then.
const PAUSE: Span = Span::seconds(30);

/// Losses in a row once this lease has ended.
pub(super) fn losses(view: &Workload, at: Time, by_infrastructure: bool) -> u32 {
    let soon = view.started_ms.is_some_and(|started| at - Time(started) < SOON);
    if by_infrastructure && soon { view.losses + 1 } else { 0 }
}

impl Service {
    /// It waits again after a lease that was lost: whether it may try at once.
    pub(super) fn pause_after_losses(&mut self, id: WorkloadId) {
        let Some(mut view) = self.live.get(id.0).map(|live| live.view.clone()).filter(|view| view.losses >= LOSSES_MAX - 1) else { return };
        view.retry_ms = (view.losses < LOSSES_MAX).then_some((self.now + PAUSE).0);
        let why = gate(&view).unwrap_or_default();
        // Refused where it has been started again in the same moment: then it is looked at when that lease ends.
        if self.tell(Event::Held { workload: id, why }).is_ok()
            && let Some(live) = self.live.change(id.0)
        {
            live.view.retry_ms = view.retry_ms;
            self.retries.extend(view.retry_ms.map(|at| (at, id.0)));
        }
    }

    /// When the first pause is over.
    pub(super) fn next_retry(&self) -> Option<Time> {
        self.retries.first().map(|(at, _)| Time(*at))
    }

    /// Lets those try again whose pause is over.
    pub(super) fn retry(&mut self) {
        while let Some((at, id)) = self.retries.first().copied().filter(|(at, _)| *at <= self.now.0) {
            self.retries.remove(&(at, id));
            let is_due = |view: &Workload| view.state == State::Held && view.retry_ms == Some(at);
            if let Some(live) = self.live.change(id).filter(|live| is_due(&live.view)) {
                live.view.retry_ms = None;
                self.release_if_free(id);
            }
        }
    }
}
