//! `stipend events`.

use crate::failure::{Answer, Failure, Outcome};
use crate::moment::now_ms;
use crate::names::{self, Id};
use crate::narrative;
use crate::output::{self, Format};
use crate::remote::{Query, Remote};
use clap::Args;
use serde_json::Value;

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
  stipend events --from 1 --format json > log.jsonl && stipend sim check log.jsonl";

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
        let mut from = self.from.unwrap_or(1);
        loop {
            let (lines, next) = daemon.part(&query.clone().with("from", Some(from)).with("limit", Some(10_000)).of("/v1/events"))?;
            lines.lines().try_for_each(|line| self.print(line))?;
            // Where nothing came the log has ended.
            match next {
                Some(next) if next > from => from = next,
                _ => return Ok(Answer::Yes),
            }
        }
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
