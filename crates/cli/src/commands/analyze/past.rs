//! What a daemon has done, as a trace: its event log, with the names of its workloads.

use super::ReadingArgs;
use crate::commands::events;
use crate::failure::Failure;
use crate::names::Id;
use crate::remote::{Daemon, Query};
use serde_json::Value;
use std::collections::HashMap;
use stipend_server::wire::workload::Workload;
use stipend_sim::trace::Trace;

/// What tells of a workload's life; the rest of the log is left where it is.
const KINDS: &str = "submitted,eligible,started,running,ended,requeued";

/// Asks for all of it.
pub(super) fn read(daemon: &Daemon, reading: ReadingArgs) -> Result<Trace, Failure> {
    // The log names workloads by their numbers only.
    let workloads = daemon.list::<Workload>("/v1/workloads", &Query::default().with("all", Some(true)), usize::MAX)?;
    let names: HashMap<String, String> = workloads.into_iter().map(|one| (Id(one.id).to_string(), one.name)).collect();
    let mut log = String::new();
    events::each(daemon, &Query::default().with("event", Some(KINDS)), 1, |line| {
        log += &named(line, &names)?;
        log.push('\n');
        Ok(())
    })?;
    if log.is_empty() {
        return Err(Failure::new("the daemon has had no work yet").hint("name a log: stipend analyze sacct.txt"));
    }
    reading.read_from(log.as_bytes(), "the daemon's history", true)
}

/// A submission with its workload's name; any other line as it is.
fn named(line: &str, names: &HashMap<String, String>) -> Result<String, Failure> {
    let mut fields: Value = serde_json::from_str(line)?;
    let name = fields["workload"].as_str().and_then(|workload| names.get(workload));
    match name.filter(|_| fields["event"] == "submitted" && fields.get("name").is_none()) {
        Some(name) => {
            fields["name"] = name.as_str().into();
            Ok(fields.to_string())
        }
        None => Ok(line.to_owned()),
    }
}
