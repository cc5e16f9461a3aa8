//! `stipend cancel`, `hold` and `release`: what is done to workloads, one after the other.

use crate::failure::{Answer, Outcome};
use crate::names::{self, Id, word};
use crate::output::{self, Format};
use crate::remote::{Daemon, Query, Remote};
use clap::Args;
use serde_json::json;
use stipend_server::wire::workload::Workload;

/// Withdraw workloads; those that run are told to stop.
#[derive(Debug, Args)]
#[command(after_help = CANCEL)]
pub(super) struct Cancel {
    /// Why; it is kept in the log
    #[arg(long, short, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    which: Which,
}

const CANCEL: &str = "\
Examples:
  stipend cancel w123
  stipend cancel 120 121 122 --reason 'wrong data'";

/// Keep waiting workloads from starting, until they are released.
#[derive(Debug, Args)]
#[command(after_help = HOLD)]
pub(super) struct Hold {
    #[command(flatten)]
    which: Which,
}

const HOLD: &str = "\
Examples:
  stipend hold w123 w124";

/// Let held workloads start again.
#[derive(Debug, Args)]
#[command(after_help = RELEASE)]
pub(super) struct Release {
    #[command(flatten)]
    which: Which,
}

const RELEASE: &str = "\
Examples:
  stipend release w123";

#[derive(Debug, Args)]
struct Which {
    /// Which, such as w123
    #[arg(value_name = "ID", required = true, add = names::live())]
    ids: Vec<Id>,
    /// How to print what became of them; `json` is a list
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    format: Format,
    #[command(flatten)]
    remote: Remote,
}

impl Cancel {
    pub(super) fn run(self) -> Outcome {
        let reason = self.reason;
        self.which.each(|daemon, id| cancel(daemon, id, reason.as_deref()))
    }
}

impl Hold {
    pub(super) fn run(self) -> Outcome {
        self.which.each(|daemon, id| daemon.post(&format!("/v1/workloads/{}/hold", id.0), &json!({}), &[]))
    }
}

impl Release {
    pub(super) fn run(self) -> Outcome {
        self.which.each(|daemon, id| daemon.post(&format!("/v1/workloads/{}/release", id.0), &json!({}), &[]))
    }
}

/// Withdraws one.
pub(super) fn cancel(daemon: &Daemon, id: Id, reason: Option<&str>) -> Result<Workload, crate::failure::Failure> {
    daemon.delete(&Query::default().with("reason", reason).of(&format!("/v1/workloads/{}", id.0)))
}

impl Which {
    /// Does it to each. One that is refused is said at once and keeps none of the others from it.
    fn each(self, act: impl Fn(&Daemon, Id) -> Result<Workload, crate::failure::Failure>) -> Outcome {
        let daemon = self.remote.daemon()?;
        let mut done = Vec::new();
        let mut refused = None;
        for id in &self.ids {
            match act(&daemon, *id) {
                Ok(workload) => done.push(workload),
                Err(failure) => {
                    let failure = failure.context(id.to_string());
                    if let Some(earlier) = refused.replace(failure) {
                        output::note(&format!("{earlier}"));
                    }
                }
            }
        }
        match self.format {
            Format::Table => {
                for workload in &done {
                    output::text(&format!("{} {}", Id(workload.id), word(workload.state)))?;
                }
            }
            Format::Json => output::json(&done)?,
        }
        refused.map_or(Ok(Answer::Yes), Err)
    }
}
