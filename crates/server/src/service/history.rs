//! What happened to a workload, told from the lines of the event log about it.

use super::Service;
use super::input::Answer;
use crate::store::LineFilter;
use crate::wire::workload::Workload;
use stipend_core::explain::Names;
use stipend_core::quantity::Time;
use stipend_sim::explain::{Ended, Explained, Moment, Preemption, Request};
use stipend_sim::log::line::{LogEvent, Occupancy, Outcome};

/// So many moments are shown; of more the first and the last.
const MOMENTS_MAX: usize = 40;

/// So many lines of one workload are read at most.
const LINES_MAX: u32 = 10_000;

impl Service {
    /// Adds what is known of a workload beside what the scheduler says of it now.
    pub(super) fn tell_past(&self, view: &Workload, explained: &mut Explained) -> Answer<()> {
        let filter = LineFilter { workload: Some(view.id), ..LineFilter::default() };
        for line in self.reader.lines(&filter, LINES_MAX)? {
            if let Some(Ok(event)) = LogEvent::parse(&line.event, &line.json) {
                self.moment(Time(line.t_ms), &event, explained);
            }
        }
        if explained.history.len() > MOMENTS_MAX {
            let left_out = explained.history.len() - MOMENTS_MAX;
            explained.history.drain(MOMENTS_MAX / 2..MOMENTS_MAX / 2 + left_out);
            explained.history_left_out = left_out as u64;
        }
        if view.state.is_over() {
            explained.state = "ended".into();
        } else {
            explained.ended = None;
        }
        Ok(())
    }

    fn moment(&self, at: Time, event: &LogEvent, explained: &mut Explained) {
        let labels = self.labels();
        let time = |at_ms: i64| labels.time(Time(at_ms));
        let text = match event {
            LogEvent::Submitted(of) => {
                explained.request = Some(Request::of_line(of));
                "submitted".into()
            }
            LogEvent::Held(of) => format!("held: {}", of.why),
            LogEvent::Started(of) => {
                (explained.preemption, explained.ended) = (None, None);
                let again = if of.attempt > 1 { format!(" again, attempt {},", of.attempt) } else { String::new() };
                let kind = if of.occupancy == Occupancy::Allocated { "" } else { " unallocated" };
                let nodes: Vec<&str> = of.placement.0.iter().map(|(node, _)| node.as_str()).collect();
                format!("started{again}{kind} on {}: {}", nodes.join(", "), of.why)
            }
            LogEvent::Running(of) => match of.protected_until_ms {
                Some(until) => format!("runs, protected until {}", time(until)),
                None => "runs, not protected".into(),
            },
            LogEvent::Promoted(of) => format!("got its contract where it runs: {}", of.why),
            LogEvent::Renewed(of) => format!("got its contract once more, until {}", time(of.protected_until_ms)),
            LogEvent::Checkpoint(_) => "banked its progress".into(),
            LogEvent::Preempting(of) => {
                explained.preemption = Some(Preemption {
                    at: labels.time(at),
                    at_ms: at.0,
                    claimant: of.claimant.clone(),
                    licence: of.licence,
                    why: of.why.clone(),
                });
                format!("told to leave by {}: {}", time(of.stop_by_ms), of.why)
            }
            LogEvent::Spared(_) => {
                explained.preemption = None;
                "goes on: its claimant went away".into()
            }
            LogEvent::Hold(_) => "GPUs are held for it".into(),
            LogEvent::Reserved(of) => format!("promised to start by {} at the latest", time(of.latest_start_ms)),
            LogEvent::Unreserved(_) => "its promise is over".into(),
            LogEvent::Ended(of) => {
                let (outcome, lost_gpu_hours) = (words(of.outcome), of.lost_gpu_ms as f64 / 3_600_000.0);
                let ended = Ended { at: labels.time(at), at_ms: at.0, outcome: outcome.into(), by: of.by.clone(), lost_gpu_hours };
                explained.ended = Some(ended);
                if of.by == "itself" { outcome.into() } else { format!("{outcome}, by {}", of.by) }
            }
            LogEvent::Requeued(_) => "waits again".into(),
            _ => return,
        };
        explained.history.push(Moment { at: labels.time(at), at_ms: at.0, text });
    }
}

fn words(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Completed => "completed",
        Outcome::Failed => "failed",
        Outcome::Preempted => "preempted",
        Outcome::Cancelled => "cancelled",
        Outcome::TimedOut => "stopped at its time limit",
        Outcome::NodeLost => "lost with its node",
        Outcome::StartTimeout => "did not start in time",
    }
}
