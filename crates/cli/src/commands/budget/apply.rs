//! `stipend budget apply` and `diff`.

use super::{Change, To, change, export, print, tree};
use crate::failure::{Failure, Outcome};
use crate::moment::Date;
use crate::output;
use crate::remote::Daemon;
use anyhow::Context;
use clap::Args;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::path::{Path, PathBuf};
use stipend_server::wire::budget::{BudgetChange, Changeset};
use stipend_sim::scenario::parse_part;

/// Change the tree as a file says: all of it, or nothing.
#[derive(Debug, Args)]
#[command(after_help = APPLY)]
pub(crate) struct Apply {
    #[command(flatten)]
    file: FileArgument,
    #[command(flatten)]
    change: Change,
    #[command(flatten)]
    to: To,
}

const APPLY: &str = "\
Examples:
  stipend budget apply budgets.toml --reason 'the plan for 2027'
  stipend budget apply budgets.toml --at 2027-01-01 -r 'the plan for 2027'
  stipend budget export > tree.csv     # edit it in a spreadsheet, then
  stipend budget diff tree.csv
  stipend budget apply tree.csv --reason 'as agreed on Monday'

In TOML, what a budget does not state stays as it is:
  reason = \"the plan for 2027\"
  [[budgets]]
  path = \"lab/nlp\"
  share = 45                # or by pool: { h100 = 45, a100 = 10 }
  members = [\"ann\", \"bob\"]";

/// Say what a file would change, and change nothing.
#[derive(Debug, Args)]
#[command(after_help = DIFF)]
pub(crate) struct Diff {
    #[command(flatten)]
    file: FileArgument,
    /// As if from then on: 2026-12-01, `2026-12-01 09:00`, +2d [default: now]
    #[arg(long, value_name = "DATE", allow_hyphen_values = true)]
    at: Option<Date>,
    #[command(flatten)]
    to: To,
}

const DIFF: &str = "\
Examples:
  stipend budget diff budgets.toml
  stipend budget diff tree.csv --at 2027-01-01";

#[derive(Debug, Args)]
struct FileArgument {
    /// Budgets in TOML, or a tree in CSV as `stipend budget export` writes it
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

/// What a file in TOML may say.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Written {
    reason: Option<String>,
    based_on: Option<u32>,
    effective: Option<String>,
    budgets: Vec<BudgetChange>,
    /// Such a file may be one that was tried with `whatif`.
    policy: Option<IgnoredAny>,
    pools: Option<IgnoredAny>,
}

impl Apply {
    pub(super) fn run(self) -> Outcome {
        let made = self.file.change(&self.to.remote.daemon()?, self.change.reason, self.change.at, self.change.dry_run)?;
        print(&made, self.to.format, self.change.dry_run)
    }
}

impl Diff {
    pub(super) fn run(self) -> Outcome {
        let would = self.file.change(&self.to.remote.daemon()?, None, self.at, true)?;
        print(&would, self.to.format, true)
    }
}

impl FileArgument {
    /// Asks for what the file says; flags count over it.
    fn change(&self, daemon: &Daemon, reason: Option<String>, at: Option<Date>, dry_run: bool) -> Result<Changeset, Failure> {
        let path = self.file.as_path();
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        if path.extension().is_some_and(|end| end == "csv") {
            return export::import(daemon, &text, &Change { reason, at, dry_run });
        }
        let written = read(path, &text)?;
        let effective = written.effective.as_deref().map(|text| date(path, text)).transpose()?;
        let how = Change { reason: reason.or(written.reason), at: at.or(effective), dry_run };
        let based_on = written.based_on.map_or_else(|| Ok(tree(daemon)?.version), Ok::<u32, Failure>)?;
        change(daemon, based_on, written.budgets, &how)
    }
}

fn read(path: &Path, text: &str) -> Result<Written, Failure> {
    let written: Written = parse_part(&path.display().to_string(), text)?;
    if written.policy.is_some() || written.pools.is_some() {
        output::note("knobs are left aside: they stand in the daemon's configuration, which is read at its start");
    }
    Ok(written)
}

fn date(path: &Path, text: &str) -> Result<Date, Failure> {
    text.parse().map_err(|wrong| Failure::new(format!("{}: effective = \"{text}\": {wrong}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_changes() {
        let text =
            "reason = \"the plan\"\neffective = \"2027-01-01\"\n[[budgets]]\npath = \"lab\"\nshare = 40\n[policy]\nlookback = \"3d\"\n";
        let written = read(Path::new("b.toml"), text).expect("it can be read");
        assert_eq!((written.reason.as_deref(), written.budgets.len()), (Some("the plan"), 1));
    }

    #[test]
    fn a_misspelt_field_is_named_with_its_line() {
        let message = read(Path::new("b.toml"), "[[budgets]]\npath = \"lab\"\nshares = 40\n").unwrap_err().to_string();
        assert!(message.starts_with("error: b.toml:3: "), "{message}");
    }
}
