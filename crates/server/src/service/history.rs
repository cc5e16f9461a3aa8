//! All that can be said of one workload: from a picture of the present, and from the lines of the event log about it.

use super::input::Answer;
use super::{Directory, Labels, Service};
use crate::store::{LineFilter, Reader};
use crate::wire::error::{Code, Problem};
use crate::wire::workload::Workload;
use stipend_core::Scheduler;
use stipend_core::explain::Names;
use stipend_core::id::WorkloadId;
use stipend_core::quantity::Time;
use stipend_sim::explain::{Ended, Explained, Moment, Preemption, Request};
use stipend_sim::log::line::{LogEvent, Occupancy};

/// So many moments are shown; of more the first and the last.
const MOMENTS_MAX: usize = 40;

/// So many lines of one workload are read at most.
const LINES_MAX: u32 = 10_000;

/// The present, copied out of the service: what takes long to say is said from it, in nobody's way.
pub struct Picture {
    pub(super) scheduler: Scheduler,
    pub(super) directory: Directory,
}

impl Service {
    pub(super) fn picture(&self) -> Picture {
        Picture { scheduler: self.scheduler.clone(), directory: self.directory.clone() }
    }
}

impl Picture {
    /// What can be said of a workload: where it stands now, what would start it, and its past from the store. `None` if it is live in the
    /// store and not yet in the picture.
    pub(crate) fn explain(&self, id: u32, reader: &Reader) -> Answer<Option<Explained>> {
        let row = reader.workload(id)?.ok_or_else(|| Problem::new(Code::NotFound, format!("there is no workload w{id}")))?;
        let mut explained = Explained::now(&self.scheduler, WorkloadId(id), &self.labels());
        if explained.state.is_empty() && !row.view.state.is_over() {
            return Ok(None);
        }
        self.tell_past(&row.view, &mut explained, reader)?;
        Ok(Some(explained))
    }

    /// What stops a waiting workload now, the binding limit in the pool that it likes best.
    pub(crate) fn blocker(&self, id: u32) -> Option<String> {
        let explanation = self.scheduler.explain(WorkloadId(id))?;
        let pool = explanation.pools.first()?;
        Some(pool.blockers.first()?.text(pool.pool, &self.labels()))
    }

    fn labels(&self) -> Labels<'_> {
        Labels { directory: &self.directory, tree: self.scheduler.tree() }
    }

    /// Adds what is known of a workload beside what the scheduler says of it now.
    fn tell_past(&self, view: &Workload, explained: &mut Explained, reader: &Reader) -> Answer<()> {
        let filter = LineFilter { workload: Some(view.id), ..LineFilter::default() };
        for line in reader.lines(&filter, LINES_MAX)? {
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
            LogEvent::Checkpoint(_) => "wrote a checkpoint".into(),
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
                let (outcome, lost_gpu_hours) = (of.outcome.text(), of.lost_gpu_ms as f64 / 3_600_000.0);
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
