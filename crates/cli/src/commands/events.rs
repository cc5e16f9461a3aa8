//! `stipend events`.

use crate::failure::{Answer, Outcome};
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
    /// From this line on, by its number [default: the last 100 lines; with --follow, from now on]
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
        let query = Query::default().with("workload", self.workload.map(|id| id.0)).with("from", self.from);
        let path = query.with("follow", Some(self.follow)).of("/v1/events");
        for event in daemon.stream(&path)? {
            let event = event.map_err(crate::remote::failure)?;
            match self.format {
                Format::Json => output::text(&event.data)?,
                Format::Table => {
                    let line: Value = serde_json::from_str(&event.data)?;
                    if let Some(told) = narrative::tell(&line, self.all) {
                        output::text(&narrative::line(&line, &told, now_ms()))?;
                    }
                }
            }
        }
        Ok(Answer::Yes)
    }
}
