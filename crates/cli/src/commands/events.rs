//! `stipend events`.

use crate::failure::{Answer, Failure, Outcome};
use crate::moment::now_ms;
use crate::names::{self, Id};
use crate::narrative;
use crate::output::{self, Format};
use crate::remote::{Daemon, Query, Remote};
use anyhow::Context;
use clap::Args;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Show what happened: the event log, each line with its reason.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Events {
    /// Go on as more happens
    #[arg(long, short)]
    follow: bool,
    /// From this line on, by its number [default: from the first; with --follow, from now on]
    #[arg(long, value_name = "NUMBER")]
    from: Option<u64>,
    /// Only about this workload
    #[arg(long, short, value_name = "ID", add = names::all())]
    workload: Option<Id>,
    /// Also what is for bookkeeping: charges, knobs, the whole budget tree
    #[arg(long, short)]
    all: bool,
    /// Write the whole log to a file instead, as `stipend sim check` reads it: with its last line, `end_of_log`
    #[arg(long, value_name = "FILE", conflicts_with_all = ["follow", "from", "workload", "all", "format"])]
    export: Option<PathBuf>,
    /// How to print them; `json` is one object a line, as the log has it
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    format: Format,
    #[command(flatten)]
    remote: Remote,
}

const EXAMPLES: &str = "\
Examples:
  stipend events
  stipend events --follow
  stipend events --workload w123
  stipend events --export log.jsonl && stipend sim check log.jsonl";

impl Events {
    pub(super) fn run(self) -> Outcome {
        let daemon = self.remote.daemon()?;
        let query = Query::default().with("workload", self.workload.map(|id| id.0));
        if self.follow {
            for event in daemon.stream(&query.with("from", self.from).with("follow", Some(true)).of("/v1/events"))? {
                self.print(&event.map_err(crate::remote::failure)?.data)?;
            }
            return Ok(Answer::Yes);
        }
        match &self.export {
            Some(file) => export(&daemon, file)?,
            None => each(&daemon, &query, self.from.unwrap_or(1), |line| self.print(line))?,
        }
        Ok(Answer::Yes)
    }

    fn print(&self, line: &str) -> Result<(), Failure> {
        if self.format == Format::Json {
            return Ok(output::text(line)?);
        }
        let fields: Value = serde_json::from_str(line)?;
        match narrative::tell(&fields, self.all) {
            Some(told) => Ok(output::text(&narrative::line(&fields, &told, now_ms()))?),
            None => Ok(()),
        }
    }
}

/// Calls `with` for each line from this one on.
pub(super) fn each(
    daemon: &Daemon,
    query: &Query,
    mut from: u64,
    mut with: impl FnMut(&str) -> Result<(), Failure>,
) -> Result<(), Failure> {
    loop {
        let (lines, next) = daemon.part(&query.clone().with("from", Some(from)).with("limit", Some(10_000)).of("/v1/events"))?;
        lines.lines().try_for_each(&mut with)?;
        // Where nothing came the log has ended.
        match next {
            Some(next) if next > from => from = next,
            _ => return Ok(()),
        }
    }
}

/// Writes the log to a file, with the line that says what still runs at its end.
fn export(daemon: &Daemon, file: &Path) -> Result<(), Failure> {
    let cannot = || format!("cannot write {}", file.display());
    let mut out = BufWriter::new(File::create(file).with_context(cannot)?);
    let (mut running, mut last_ms) = (BTreeMap::new(), 0);
    each(daemon, &Query::default(), 1, |line| {
        let fields: Value = serde_json::from_str(line)?;
        let lease = || (fields["workload"].to_string(), fields["attempt"].to_string());
        last_ms = fields["t_ms"].as_i64().unwrap_or(last_ms);
        match fields["event"].as_str() {
            Some("started") => drop(running.insert(lease(), json!({"workload": fields["workload"], "attempt": fields["attempt"]}))),
            Some("ended") => drop(running.remove(&lease())),
            _ => {}
        }
        Ok(writeln!(out, "{line}").with_context(cannot)?)
    })?;
    let end = json!({"t_ms": last_ms, "event": "end_of_log", "leases": running.into_values().collect::<Vec<_>>()});
    writeln!(out, "{end}").and_then(|()| out.flush()).with_context(cannot)?;
    Ok(())
}
