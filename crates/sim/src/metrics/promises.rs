//! Promised latest starts, and what became of them.

use std::collections::BTreeMap;
use stipend_core::entry::Unreserved;
use stipend_core::id::ReservationId;
use stipend_core::quantity::{Span, Time};

/// A promise that is open.
#[derive(Clone, Copy, Debug)]
struct Promise {
    /// The latest start that was promised first, and the one that counts now.
    first: Time,
    latest_start: Time,
}

/// All promises of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct PromiseLog {
    open: BTreeMap<ReservationId, Promise>,
    /// From the beginning of its wait to its promise, one each.
    pub waits: Vec<Span>,
    pub kept: u64,
    pub early: u64,
    pub broken_nodes: u64,
    pub broken_owner: u64,
    pub broken_policy: u64,
    pub late_max: Span,
}

impl PromiseLog {
    /// A promise is given, or moves to an earlier start; `waited` is how long its workload had waited.
    pub(super) fn reserved(&mut self, id: ReservationId, latest_start: Time, waited: Option<Span>) {
        if let Some(promise) = self.open.get_mut(&id) {
            promise.latest_start = promise.latest_start.min(latest_start);
        } else if let Some(waited) = waited {
            self.open.insert(id, Promise { first: latest_start, latest_start });
            self.waits.push(waited);
        }
    }

    /// It is over. One that was given before the measured time does not count.
    pub(super) fn unreserved(&mut self, at: Time, id: ReservationId, why: Unreserved) {
        let Some(promise) = self.open.remove(&id) else { return };
        match why {
            Unreserved::Started if at <= promise.latest_start => {
                self.kept += 1;
                self.early += u64::from(at < promise.first);
            }
            Unreserved::Started => {
                self.broken_policy += 1;
                self.late_max = self.late_max.max(at - promise.latest_start);
            }
            Unreserved::Owner | Unreserved::Budget => self.broken_owner += 1,
            Unreserved::NodesLost => self.broken_nodes += 1,
        }
    }

    /// The run is over: what should have started and did not is late, too.
    pub(super) fn end(&mut self, at: Time) {
        for promise in std::mem::take(&mut self.open).into_values().filter(|promise| promise.latest_start < at) {
            self.broken_policy += 1;
            self.late_max = self.late_max.max(at - promise.latest_start);
        }
    }
}
