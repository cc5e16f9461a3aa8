//! `stipend budget export`, and what reads it again: the tree in a spreadsheet.

use super::Change;
use crate::failure::{Answer, Failure, Outcome};
use crate::output;
use crate::remote::{Daemon, Query, Remote};
use clap::Args;
use stipend_server::wire::budget::Changeset;

/// Print the tree as CSV, for a spreadsheet; `stipend budget apply` reads it again.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Export {
    #[command(flatten)]
    remote: Remote,
}

const EXAMPLES: &str = "\
Examples:
  stipend budget export > tree.csv
  stipend budget diff tree.csv
  stipend budget apply tree.csv --reason 'the plan for 2027'

One row a budget and pool. Only cells that differ from the tree are changed by
`apply`; budgets without a row stay as they are.";

impl Export {
    pub(super) fn run(self) -> Outcome {
        output::bytes(self.remote.daemon()?.text("/v1/budgets/sheet")?.as_bytes())?;
        Ok(Answer::Yes)
    }
}

/// Changes the tree to what the sheet says.
pub(super) fn import(daemon: &Daemon, text: &str, how: &Change) -> Result<Changeset, Failure> {
    let query = Query::default()
        .with("reason", Some(how.reason()?))
        .with("effective_ms", how.at.map(|date| date.ms))
        .with("dry_run", how.dry_run.then_some(true));
    daemon.post_text(&query.of("/v1/budgets/sheet"), "text/csv", text)
}
