//! What a daemon has done, as a trace: its event log.

use super::ReadingArgs;
use crate::commands::events;
use crate::failure::Failure;
use crate::remote::{Daemon, Query};
use stipend_sim::trace::Trace;

/// What tells of a workload's life; the rest of the log is left where it is.
const KINDS: &str = "submitted,eligible,started,running,ended,requeued";

/// Asks for all of it.
pub(super) fn read(daemon: &Daemon, reading: ReadingArgs) -> Result<Trace, Failure> {
    let mut log = String::new();
    events::each(daemon, &Query::default().with("event", Some(KINDS)), 1, |line| {
        log += line;
        log.push('\n');
        Ok(())
    })?;
    if log.is_empty() {
        return Err(Failure::new("the daemon has had no work yet").hint("name a log: stipend analyze sacct.txt"));
    }
    reading.read_from(log.as_bytes(), "the daemon's history", true)
}
