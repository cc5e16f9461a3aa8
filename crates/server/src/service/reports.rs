//! What the engine reports, as facts for the core.

use super::Service;
use crate::driver::{End, Report};
use stipend_core::event::{Event, Rejection};
use stipend_core::id::{LeaseId, NodeId};
use stipend_core::quantity::{Span, Time};
use stipend_core::spec::Severity;

/// A report of something that is no longer ago than this was heard at once.
const AT_ONCE: Span = Span::seconds(1);

impl Service {
    /// Takes a report in. Late ones and those that come twice are refused by the core, and that is all right.
    pub(super) fn report(&mut self, report: Report) {
        match report {
            Report::MemberRunning { lease, node, .. } => {
                if let Ok(node) = self.directory.node(&node) {
                    self.tell_quietly(Event::MemberRunning { lease, node });
                }
            }
            Report::Running { lease, at } => self.tell_within(at, Event::LeaseRunning { lease }),
            Report::Checkpointed { lease, at } => self.tell_within(at, Event::Checkpointed { lease }),
            Report::Input { lease, at } => self.tell_within(at, Event::Input { lease }),
            Report::Ended { lease, end } => self.lease_ended(lease, end),
            Report::NodeFault { node, severity, reason } => self.node_fault(&node, severity, reason),
            Report::NodeHealthy { node } => self.on_node(&node, |node| Event::NodeReady { node }),
            Report::RepairFailed { node, reason } => self.repair_failed(&node, &reason),
            Report::Idle { lease, since } => {
                if let Some(live) = self.live.change(lease.workload.0).filter(|live| live.lease() == lease) {
                    live.view.idle_since_ms = since.map(|since| since.0);
                }
            }
        }
    }

    /// A fact of the engine's. What is heard at once counts from now, when something can be decided about it; what is told late has its own time.
    fn tell_within(&mut self, at: Time, event: Event) {
        let _: Result<(), Rejection> = self.tell_at(self.heard_at(at), event);
    }

    fn heard_at(&self, at: Time) -> Time {
        if self.now - at < AT_ONCE { self.now } else { at }
    }

    pub(super) fn lease_ended(&mut self, lease: LeaseId, end: End) {
        if let Some(live) = self.live.change(lease.workload.0).filter(|live| live.lease() == lease) {
            live.view.exit_code = end.code.or_else(|| end.signal.map(|signal| 128 + signal));
        }
        let known = self.tell_at(self.heard_at(end.at), Event::LeaseEnded { lease, exit: end.exit });
        if known.is_err() {
            // Told before, or of an attempt that the core has given up: nobody needs it any more.
            self.commands.push(crate::driver::Command::Forget { lease });
        }
    }

    fn node_fault(&mut self, name: &str, severity: Severity, reason: String) {
        self.on_node(name, |node| Event::NodeDrainRequested { node, severity, reason });
        // A node that was to come back by itself does not when a fault was found meanwhile.
        if let Ok(node) = self.directory.node(name) {
            self.nodes.comes_back(node, None);
        }
    }

    fn on_node(&mut self, name: &str, event: impl FnOnce(NodeId) -> Event) {
        match self.directory.node(name) {
            Ok(node) => self.tell_quietly(event(node)),
            Err(problem) => tracing::warn!("the engine speaks of a node that is not known: {}", problem.message),
        }
    }
}
