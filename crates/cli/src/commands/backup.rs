//! `stipend backup` and `stipend store`: the file that holds all that a daemon knows.

use crate::failure::{Answer, Failure, Outcome};
use crate::output;
use crate::remote::{Remote, data_folder};
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use std::path::PathBuf;
use stipend_server::store::{self, Reader, StoreError};

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
    /// The file: a backup, or stipend.db in a data folder
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

const CHECK: &str = "\
Examples:
  stipend store check /var/backups/stipend-2026-11-30.db";

/// Put a backup in the place of the store; the daemon must not run. What was there is kept beside it.
#[derive(Debug, Args)]
#[command(after_help = RESTORE)]
pub(super) struct Restore {
    /// The backup
    #[arg(value_name = "FILE")]
    backup: PathBuf,
    /// The daemon's folder [default: $STIPEND_DATA, else ~/.local/share/stipend]
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
                store::check(&file).map_err(failure)?;
                output::note(&format!("{} is whole", file.display()));
            }
            StoreCommand::Restore(Restore { backup, data }) => {
                let folder = data.unwrap_or_else(data_folder);
                let kept = store::restore(&folder, &backup).map_err(failure)?;
                output::note(&format!("{} is in place in {}", backup.display(), folder.display()));
                if let Some(kept) = kept {
                    output::note(&format!("what was there is kept: {}", kept.display()));
                }
            }
        }
        Ok(Answer::Yes)
    }
}

fn failure(error: StoreError) -> Failure {
    let hint = error.hint();
    let failure = Failure::from(error);
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}
