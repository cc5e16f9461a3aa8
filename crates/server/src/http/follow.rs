//! The event log, followed from any line on: first from the store, then as it grows. Whoever falls behind reads the store again.

use super::Api;
use super::refusal::Reply;
use crate::store::{Line, LineFilter};
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

/// So many lines are read at once.
const PAGE: u32 = 1000;

/// A place in the log.
pub(super) struct Follower {
    api: Arc<Api>,
    workload: Option<u32>,
    lines: broadcast::Receiver<Arc<Line>>,
    /// The number of the next line that is wanted.
    next: u64,
    /// Read and not yet given out.
    read: VecDeque<Line>,
    /// There may be lines in the store that were not read.
    behind: bool,
}

impl Follower {
    /// From a line on, or (`None`) from now on.
    pub(super) async fn new(api: Arc<Api>, from: Option<u64>, workload: Option<u32>) -> Reply<Follower> {
        // First of all, so that no line falls between what the store says and what is heard.
        let lines = api.handle.follow();
        let next = match from {
            Some(from) => from,
            None => api.past.read(|records| records.last_line()).await? + 1,
        };
        Ok(Follower { api, workload, lines, next, read: VecDeque::new(), behind: true })
    }

    /// The next line; `None` when the daemon stops.
    pub(super) async fn next(&mut self) -> Reply<Option<Arc<Line>>> {
        loop {
            if let Some(line) = self.read.pop_front() {
                self.next = line.seq + 1;
                return Ok(Some(Arc::new(line)));
            }
            if self.behind {
                let filter = LineFilter { from_seq: self.next, workload: self.workload, ..LineFilter::default() };
                self.read = self.api.past.read(move |records| records.lines(&filter, PAGE)).await?.into();
                self.behind = !self.read.is_empty();
                continue;
            }
            // A line is on disk before it is heard: what was missed is in the store.
            match self.lines.recv().await {
                Ok(line) if line.seq < self.next => {}
                Ok(line) => {
                    self.next = line.seq + 1;
                    if self.workload.is_none() || line.workload == self.workload {
                        return Ok(Some(line));
                    }
                }
                Err(RecvError::Lagged(_)) => self.behind = true,
                Err(RecvError::Closed) => return Ok(None),
            }
        }
    }

    /// Goes on from a later line; says how many were passed over, if any.
    pub(super) fn skip_to(&mut self, line: u64) -> Option<u64> {
        let passed = line.checked_sub(self.next).filter(|passed| *passed > 0)?;
        self.read.retain(|read| read.seq >= line);
        self.next = line;
        self.behind = true;
        Some(passed)
    }
}
