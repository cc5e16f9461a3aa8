//! `stipend backup` and `stipend store`: the file that holds all that a daemon knows.

use crate::failure::{Answer, Failure, Outcome};
use crate::names::{Id, word};
use crate::output;
use crate::remote::{Remote, data_folder};
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use std::path::PathBuf;
use stipend_server::store::{self, Difference, Reader, StoreError};
use stipend_server::wire::token::Token;

/// Write all that the daemon knows into a file, while it goes on.
///
/// The daemon writes it, for an administrator; with `--data` this program does, whether a daemon runs or not.
#[derive(Debug, Args)]
#[command(after_help = BACKUP)]
pub(super) struct Backup {
    /// The new file, on the daemon's machine
    #[arg(value_name = "FILE")]
    to: PathBuf,
    /// Read this daemon's folder, and ask no daemon
    #[arg(long, value_name = "FOLDER")]
    data: Option<PathBuf>,
    #[command(flatten)]
    remote: Remote,
}

const BACKUP: &str = "\
Examples:
  stipend backup /var/backups/stipend-$(date +%F).db
  stipend store restore /var/backups/stipend-2026-11-30.db";

/// Check a store or a backup, and put a backup in place.
#[derive(Debug, Subcommand)]
pub(super) enum StoreCommand {
    Check(Check),
    Restore(Restore),
}

/// Read all of a store or a backup, and say whether it is whole.
#[derive(Debug, Args)]
#[command(after_help = CHECK)]
pub(super) struct Check {
    /// A backup, or a data folder [default: the data folder, as of `stipend serve`]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
}

const CHECK: &str = "\
Examples:
  stipend store check
  stipend store check /var/backups/stipend-2026-11-30.db";

/// Put a backup in the place of the store; the daemon must not run. What was there is kept beside it.
#[derive(Debug, Args)]
#[command(after_help = RESTORE)]
pub(super) struct Restore {
    /// The backup
    #[arg(value_name = "FILE")]
    backup: PathBuf,
    /// The daemon's folder [default: $STIPEND_DATA, else /var/lib/stipend for root and ~/.local/share/stipend for others]
    #[arg(long, value_name = "FOLDER")]
    data: Option<PathBuf>,
}

const RESTORE: &str = "\
Examples:
  stipend store restore /var/backups/stipend-2026-11-30.db
  stipend serve";

impl Backup {
    pub(super) fn run(self) -> Outcome {
        if let Some(folder) = &self.data {
            Reader::open(folder).and_then(|reader| reader.backup(&self.to)).map_err(failure)?;
        } else {
            let path = std::path::absolute(&self.to)?;
            let path = path.to_str().ok_or_else(|| Failure::new(format!("{}: the file's name is not UTF-8", self.to.display())))?;
            self.remote.daemon()?.post::<Value>("/v1/backup", &json!({ "path": path }), &[])?;
        }
        output::note(&format!("written: {}", self.to.display()));
        Ok(Answer::Yes)
    }
}

impl StoreCommand {
    pub(super) fn run(self) -> Outcome {
        match self {
            StoreCommand::Check(Check { file }) => {
                let file = store_in(file.unwrap_or_else(data_folder))?;
                store::check(&file).map_err(failure)?;
                output::note(&format!("{} is whole", file.display()));
            }
            StoreCommand::Restore(Restore { backup, data }) => {
                let folder = data.unwrap_or_else(data_folder);
                let replaced = store::restore(&folder, &backup).map_err(failure)?;
                output::note(&format!("{} is in place in {}", backup.display(), folder.display()));
                if let Some(replaced) = replaced {
                    output::note(&format!("what was there is kept: {}", replaced.kept.display()));
                    consequences(replaced.difference.as_ref()).iter().for_each(|line| output::note(line));
                }
            }
        }
        Ok(Answer::Yes)
    }
}

/// The store that is meant: the file, or the one in a data folder.
fn store_in(place: PathBuf) -> Result<PathBuf, Failure> {
    if !place.exists() {
        let hint = "say which: a backup, or the folder of a daemon, as of `stipend serve --data`";
        return Err(Failure::new(format!("there is no {}", place.display())).hint(hint));
    }
    if !place.is_dir() {
        return Ok(place);
    }
    let (file, folder) = (place.join("stipend.db"), place.display());
    if !file.exists() {
        let hint = format!("`stipend serve --data {folder}` makes one, `stipend store restore BACKUP --data {folder}` puts a backup there");
        return Err(Failure::new(format!("there is no store in {folder}")).hint(hint));
    }
    Ok(file)
}

/// So many are named.
const NAMED_MAX: usize = 20;

/// What is to be looked at after a backup was put in place, each with the next command.
fn consequences(difference: Option<&Difference>) -> Vec<String> {
    let Some(Difference { again, forgotten, valid_again }) = difference else {
        return vec![
            "it cannot be read: what ended since the backup was made runs again, and tokens taken back since are valid again".into(),
        ];
    };
    let mut lines = Vec::new();
    if !again.is_empty() {
        let ids: Vec<String> = again.iter().take(NAMED_MAX).map(|workload| Id(workload.id).to_string()).collect();
        let more = again.len().checked_sub(NAMED_MAX + 1).map_or(String::new(), |more| format!(" and {} more", more + 1));
        lines.push(format!("ended since, and run again once the daemon is started: {}{more}", ids.join(", ")));
        lines.push(format!("  those that shall not: stipend cancel {}", ids.join(" ")));
    }
    if let Some((first, last)) = forgotten {
        let to = if first == last { String::new() } else { format!(" to {}", Id(*last)) };
        lines.push(format!("submitted since, and forgotten: {}{to}; what of them still runs is stopped", Id(*first)));
    }
    if !valid_again.is_empty() {
        let of = |token: &Token| format!("{} of {} ({})", token.id, token.user, word(token.role));
        lines.push(format!("taken back since, and valid again: token {}", valid_again.iter().map(of).collect::<Vec<_>>().join(", ")));
        lines.extend(valid_again.iter().map(|token| format!("  to take it back: stipend token revoke {}", token.id)));
    }
    lines
}

fn failure(error: StoreError) -> Failure {
    let hint = error.hint();
    let failure = Failure::from(error);
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}
