//! `stipend budget`.

mod apply;
mod export;
mod history;
mod set;
mod show;
mod tree;

use crate::failure::{Failure, Outcome};
use crate::moment::Date;
use crate::output::{self, Format};
use crate::remote::{Daemon, Query, Remote};
use clap::{Args, Subcommand};
use stipend_server::wire::budget::{BudgetChange, Changeset, ChangesetRequest, Tree};
pub(super) use tree::{percent, table};

/// Look at the budget tree, and change it.
#[derive(Debug, Subcommand)]
pub(super) enum BudgetCommand {
    Tree(tree::TreeCommand),
    Show(show::Show),
    Set(Box<set::Set>),
    Apply(apply::Apply),
    Diff(apply::Diff),
    Export(export::Export),
    History(history::History),
    Withdraw(history::Withdraw),
}

impl BudgetCommand {
    pub(super) fn run(self) -> Outcome {
        match self {
            BudgetCommand::Tree(tree) => tree.run(),
            BudgetCommand::Show(show) => show.run(),
            BudgetCommand::Set(set) => set.run(),
            BudgetCommand::Apply(apply) => apply.run(),
            BudgetCommand::Diff(diff) => diff.run(),
            BudgetCommand::Export(export) => export.run(),
            BudgetCommand::History(history) => history.run(),
            BudgetCommand::Withdraw(withdraw) => withdraw.run(),
        }
    }
}

/// How data is printed, and by which daemon.
#[derive(Debug, Args)]
struct To {
    /// How to print it; `json` is one object
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    format: Format,
    #[command(flatten)]
    remote: Remote,
}

/// Why and from when on the tree is changed.
#[derive(Debug, Args)]
struct Change {
    /// Why; it is kept in the history. A file may say it instead
    #[arg(long, short, value_name = "TEXT")]
    reason: Option<String>,
    /// From when on: 2026-12-01, `2026-12-01 09:00`, +2d [default: now]
    #[arg(long, value_name = "DATE", allow_hyphen_values = true)]
    at: Option<Date>,
    /// Only say what would be changed
    #[arg(long)]
    dry_run: bool,
}

impl Change {
    /// The reason. Whoever only looks needs none.
    fn reason(&self) -> Result<&str, Failure> {
        let missing =
            || Failure::new("a change of budgets needs a reason: others will read it").hint("say why: --reason 'deadline in December'");
        self.reason.as_deref().or(self.dry_run.then_some("only looked at")).ok_or_else(missing)
    }
}

/// The tree now.
fn tree(daemon: &Daemon) -> Result<Tree, Failure> {
    daemon.get("/v1/budgets")
}

/// Asks for a change of the tree that was looked at.
fn change(daemon: &Daemon, based_on: u32, budgets: Vec<BudgetChange>, how: &Change) -> Result<Changeset, Failure> {
    let request = ChangesetRequest { based_on, reason: how.reason()?.to_owned(), effective_ms: how.at.map(|date| date.ms), budgets };
    let query = Query::default().with("dry_run", how.dry_run.then_some(true));
    daemon.patch(&query.of("/v1/budgets"), &request)
}

/// Prints what a change changed, or would.
fn print(changeset: &Changeset, format: Format, dry_run: bool) -> Outcome {
    match format {
        Format::Table if changeset.difference.is_empty() => output::note("nothing is changed"),
        Format::Table => {
            output::text(&history::difference(changeset))?;
            output::note(&history::verdict(changeset, dry_run));
        }
        Format::Json => output::json(changeset)?,
    }
    Ok(crate::failure::Answer::Yes)
}
