//! What happened to one workload, told from its lines of the event log: as they come in a simulation, or as a daemon kept them.

use super::answer::{Ended, Moment, Preemption, Request};
use crate::log::line::{self, Licence, LogEvent, Occupancy, Placement, UnholdCause, UnreservedCause};
use stipend_core::explain::Names;
use stipend_core::quantity::Time;

/// So many moments are kept; of more the first and the last.
const MOMENTS_MAX: usize = 40;

/// So many nodes are named.
const NODES_NAMED: usize = 3;

/// A workload's past.
#[derive(Default)]
pub struct Past {
    pub(super) moments: Vec<Moment>,
    /// How many moments were left out in the middle.
    pub(super) left_out: u64,
    /// As it was accepted.
    pub(super) request: Option<Request>,
    /// By which licence its last attempt started.
    pub(super) licence: Option<Licence>,
    /// The plan that takes or took the GPUs of its latest attempt.
    pub(super) preemption: Option<Preemption>,
    /// How it ended, if it has.
    pub(super) ended: Option<Ended>,
    /// By when it is promised to start at the latest.
    promised: Option<i64>,
}

impl Past {
    /// One more line about it; `names` tells the time. Lines that say nothing to people are passed over.
    pub fn tell(&mut self, at: Time, event: &LogEvent, names: &dyn Names) {
        let time = |at_ms: i64| names.time(Time(at_ms));
        let text = match event {
            LogEvent::Submitted(of) => {
                self.request = Some(Request::of_line(of));
                "submitted".into()
            }
            LogEvent::Refused(of) => {
                self.ended = Some(ended(at, "refused", &of.why, 0.0, names));
                format!("refused: {}", of.why)
            }
            LogEvent::Held(of) => format!("held: {}", of.why),
            LogEvent::Started(of) => {
                (self.licence, self.preemption, self.ended) = (Some(of.licence), None, None);
                let again = if of.attempt > 1 { format!(" again, attempt {},", of.attempt) } else { String::new() };
                let kind = if of.occupancy == Occupancy::Allocated { "" } else { " unallocated" };
                format!("started{again}{kind} on {}: {}", nodes(&of.placement), of.why)
            }
            LogEvent::Running(of) => {
                let is_early = self.request.as_ref().is_some_and(|request| request.min_runtime_ms > 0);
                let unprotected = if is_early { "not protected before its turn" } else { "never protected" };
                format!("runs, {}", of.protected_until_ms.map_or(unprotected.into(), |until| format!("protected until {}", time(until))))
            }
            LogEvent::Promoted(of) => {
                let until = of.protected_until_ms.map_or("when it runs".into(), |until| format!("until {}", time(until)));
                format!("got its contract where it runs, protected {until}: {}", of.why)
            }
            LogEvent::Renewed(of) => format!("got its contract once more, until {}: {}", time(of.protected_until_ms), of.why),
            LogEvent::Checkpoint(_) => "wrote a checkpoint".into(),
            LogEvent::Preempting(of) => {
                let (claimant, licence, why) = (of.claimant.clone(), of.licence, of.why.clone());
                self.preemption = Some(Preemption { at: names.time(at), at_ms: at.0, claimant, licence, why });
                format!("told to leave by {}: {}", time(of.stop_by_ms), of.why)
            }
            LogEvent::Spared(_) => {
                self.preemption = None;
                "goes on: its claimant went away".into()
            }
            LogEvent::Hold(of) => format!("GPUs of {} are held for it", nodes(&of.placement)),
            LogEvent::Unhold(of) if of.cause != UnholdCause::Started => format!("nothing is held for it any more: {}", of.why),
            LogEvent::Reserved(of) => match self.promised.replace(of.latest_start_ms) {
                None => format!("promised to start by {} at the latest", time(of.latest_start_ms)),
                Some(before) if of.latest_start_ms < before => format!("promised to start sooner, by {}", time(of.latest_start_ms)),
                // The same promise, on other nodes.
                Some(_) => return,
            },
            LogEvent::Unreserved(of) => {
                self.promised = None;
                promise_over(of.why).into()
            }
            LogEvent::Ended(of) => self.ended(at, of, names),
            LogEvent::Doubted(of) => format!(
                "it did not begin anew after its preemptions: until {} evictions of {} count as if all resumed",
                time(of.until_ms),
                of.budget
            ),
            LogEvent::Requeued(_) => {
                self.ended = None;
                "waits again".into()
            }
            _ => return,
        };
        self.note(Moment { at: names.time(at), at_ms: at.0, text });
    }

    fn ended(&mut self, at: Time, of: &line::Ended, names: &dyn Names) -> String {
        let (outcome, lost_gpu_hours) = (of.outcome.text(), of.lost_gpu_ms as f64 / 3_600_000.0);
        self.ended = Some(ended(at, outcome, &of.by, lost_gpu_hours, names));
        let lost = if of.lost_gpu_ms == 0 { String::new() } else { format!(", {lost_gpu_hours:.2} GPU-h lost") };
        let cause = if of.by == "itself" { String::new() } else { format!(", by {}", of.by) };
        format!("{outcome}{cause}{lost}")
    }

    fn note(&mut self, moment: Moment) {
        if self.moments.len() == MOMENTS_MAX {
            self.moments.remove(MOMENTS_MAX / 2);
            self.left_out += 1;
        }
        self.moments.push(moment);
    }
}

fn ended(at: Time, outcome: &str, by: &str, lost_gpu_hours: f64, names: &dyn Names) -> Ended {
    Ended { at: names.time(at), at_ms: at.0, outcome: outcome.into(), by: by.into(), lost_gpu_hours }
}

fn promise_over(why: UnreservedCause) -> &'static str {
    match why {
        UnreservedCause::Started => "its promise is over, as it starts",
        UnreservedCause::Owner => "its promise is over: its owner withdrew or held it, or an administrator stopped it",
        UnreservedCause::Budget => "its promise is over: its budget may not start it any more",
        UnreservedCause::NodesLost => "its promise is over: some of its nodes left service, and no others are free in time",
    }
}

fn nodes(Placement(placement): &Placement) -> String {
    let named: Vec<&str> = placement.iter().take(NODES_NAMED).map(|(node, _)| node.as_str()).collect();
    match placement.len().saturating_sub(NODES_NAMED) {
        0 => named.join(", "),
        more => format!("{} and {more} other nodes", named.join(", ")),
    }
}
