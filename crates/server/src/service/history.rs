//! All that can be said of one workload: from a picture of the present, and from the lines of the event log about it.

use super::input::Answer;
use super::{Directory, Labels, Service};
use crate::store::{LineFilter, Reader};
use crate::wire::error::{Code, Problem};
use crate::wire::workload::Workload;
use stipend_core::Scheduler;
use stipend_core::id::WorkloadId;
use stipend_core::quantity::Time;
use stipend_sim::explain::{Explained, Past};
use stipend_sim::log::line::LogEvent;

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
        let explained = Explained::now(&self.scheduler, WorkloadId(id), &self.labels());
        if explained.state.is_empty() && !row.view.state.is_over() {
            return Ok(None);
        }
        let mut explained = explained.with(self.past(&row.view, reader)?);
        match row.view.state.is_over() {
            true => explained.state = "ended".into(),
            false => explained.ended = None,
        }
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

    /// A workload's past, from its lines in the event log.
    fn past(&self, view: &Workload, reader: &Reader) -> Answer<Past> {
        let filter = LineFilter { workload: Some(view.id), ..LineFilter::default() };
        let mut past = Past::default();
        for line in reader.lines(&filter, LINES_MAX)? {
            if let Some(Ok(event)) = LogEvent::parse(&line.event, &line.json) {
                past.tell(Time(line.t_ms), &event, &self.labels());
            }
        }
        Ok(past)
    }
}
