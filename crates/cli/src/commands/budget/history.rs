//! `stipend budget history` and `withdraw`.

use super::To;
use crate::failure::{Answer, Outcome};
use crate::moment::{clock, full, now_ms};
use crate::output::{self, Format};
use crate::remote::Query;
use crate::table::wrap;
use clap::Args;
use stipend_server::wire::budget::Changeset;
use stipend_sim::harmless::harmless;

/// Show how the tree was changed: when, by whom, why; the latest first.
#[derive(Debug, Args)]
#[command(after_help = HISTORY)]
pub(crate) struct History {
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: usize,
    #[command(flatten)]
    to: To,
}

const HISTORY: &str = "\
Examples:
  stipend budget history
  stipend budget history --limit 1000 --format json";

/// Take a change back that waits for its date.
#[derive(Debug, Args)]
#[command(after_help = WITHDRAW)]
pub(crate) struct Withdraw {
    /// Its number, as `stipend budget history` shows it
    id: u64,
    #[command(flatten)]
    to: To,
}

const WITHDRAW: &str = "\
Examples:
  stipend budget withdraw 12";

impl History {
    pub(super) fn run(self) -> Outcome {
        let changesets = self.to.remote.daemon()?.list::<Changeset>("/v1/changesets", &Query::default(), self.limit)?;
        match self.to.format {
            Format::Table if changesets.is_empty() => output::note("the tree was never changed"),
            Format::Table => {
                let now = now_ms();
                let said: Vec<String> = changesets.iter().map(|changeset| told(changeset, now, output::width())).collect();
                output::text(&said.join("\n"))?;
            }
            Format::Json => output::json(&changesets)?,
        }
        Ok(Answer::Yes)
    }
}

impl Withdraw {
    pub(super) fn run(self) -> Outcome {
        let changeset = self.to.remote.daemon()?.delete::<Changeset>(&format!("/v1/changesets/{}", self.id))?;
        output::data(self.to.format, &changeset, || told(&changeset, now_ms(), output::width()))?;
        Ok(Answer::Yes)
    }
}

/// One change, with what it changed below.
fn told(changeset: &Changeset, now_ms: i64, width: Option<usize>) -> String {
    let state = match (changeset.version, changeset.withdrawn) {
        (_, true) => "withdrawn".to_owned(),
        (Some(version), _) => format!("version {version}"),
        (None, false) => format!("waits for {}", full(changeset.effective_ms)),
    };
    let reason = if changeset.reason.is_empty() { String::new() } else { format!(": {}", changeset.reason) };
    let head = format!("{}, {state}, {} by {}{reason}", changeset.id, clock(changeset.made_ms, now_ms), changeset.author);
    format!("{}\n{}", wrap("", "  ", &head, width), difference(changeset)).trim_end().to_owned()
}

/// What it changed, a line each.
pub(super) fn difference(changeset: &Changeset) -> String {
    changeset.difference.iter().map(|line| format!("  {}", harmless(line))).collect::<Vec<_>>().join("\n")
}

/// What became of it.
pub(super) fn verdict(changeset: &Changeset, dry_run: bool) -> String {
    match changeset.version {
        _ if dry_run => "it could be changed so; nothing was changed".into(),
        Some(version) => format!("the tree is changed: version {version}"),
        None => format!("the tree changes at {}; until then: stipend budget withdraw {}", full(changeset.effective_ms), changeset.id),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::NOON;

    fn changeset() -> Changeset {
        Changeset {
            id: 12,
            version: Some(4),
            author: "ann".into(),
            reason: "deadline in December".into(),
            made_ms: NOON,
            effective_ms: NOON,
            withdrawn: false,
            budgets: Vec::new(),
            difference: vec!["lab/nlp share 40 % -> 50 %".into(), "lab/vision share 60 % -> 50 %".into()],
        }
    }

    #[test]
    fn a_change_that_was_made() {
        let text = told(&changeset(), NOON, None);
        assert!(
            text.starts_with("12, version 4, ") && text.lines().next().unwrap_or_default().ends_with(" by ann: deadline in December"),
            "{text}"
        );
        assert!(text.ends_with("\n  lab/nlp share 40 % -> 50 %\n  lab/vision share 60 % -> 50 %"), "{text}");
        assert_eq!(verdict(&changeset(), false), "the tree is changed: version 4");
    }

    #[test]
    fn a_change_that_waits() {
        let waits = Changeset { version: None, ..changeset() };
        assert!(told(&waits, NOON, None).starts_with("12, waits for 2026-"));
        assert!(verdict(&waits, false).ends_with("until then: stipend budget withdraw 12"));
        assert_eq!(verdict(&waits, true), "it could be changed so; nothing was changed");
    }
}
