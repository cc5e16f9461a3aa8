//! `stipend explain`.

use crate::failure::{Answer, Failure, Outcome};
use crate::names::{self, Id};
use crate::output::{self, Format};
use crate::remote::Remote;
use clap::Args;
use serde_json::Value;
use stipend_sim::explain::Explained;

/// Say why a workload waits, runs or ended.
///
/// For waiting work it says what stops it, the binding limit first, who goes first and by which figures, and what would start it now, as the
/// planner itself finds it. For running work it says until when it is protected and who could take its GPUs; for ended work how it ended, and
/// who took its GPUs by which licence.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Explain {
    /// Which, such as w123
    #[arg(value_name = "ID", add = names::all())]
    id: Id,
    /// How to print it; `json` is one object
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    format: Format,
    #[command(flatten)]
    remote: Remote,
}

const EXAMPLES: &str = "\
Examples:
  stipend explain w123
  stipend explain w123 --format json";

impl Explain {
    pub(super) fn run(self) -> Outcome {
        let answer = self.remote.daemon()?.get::<Value>(&format!("/v1/workloads/{}/explain", self.id.0))?;
        match self.format {
            Format::Table => output::text(&text(answer)?)?,
            Format::Json => output::json(&answer)?,
        }
        Ok(Answer::Yes)
    }
}

/// The explanation in words, on 80 columns.
pub(super) fn text(answer: Value) -> Result<String, Failure> {
    let explained: Explained = serde_json::from_value(answer)
        .map_err(|error| Failure::from(error).context("the daemon's explanation is of another version".into()))?;
    // Names are other people's; lines are ours.
    Ok(explained.to_string().lines().map(stipend_sim::harmless::harmless).collect::<Vec<_>>().join("\n"))
}
