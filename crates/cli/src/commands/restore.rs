//! `stipend restore`.

use crate::failure::{Answer, Failure, Outcome};
use crate::output;
use crate::remote::data_folder;
use clap::Args;
use std::path::PathBuf;
use stipend_server::store;

/// Put a backup in the place of a data folder's store.
///
/// The backup is read as a whole first. What was there is kept beside it. The daemon of that folder must be stopped.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Restore {
    /// A file that `stipend backup` wrote
    #[arg(value_name = "FILE")]
    backup: PathBuf,
    /// The data folder [default: $STIPEND_DATA, else ~/.local/share/stipend]
    #[arg(long, value_name = "FOLDER")]
    data: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  stipend restore /var/backups/stipend-2026-11-30.db

What was started after the backup was made is not known any more: the daemon stops
it when it starts again.";

impl Restore {
    pub(super) fn run(self) -> Outcome {
        let folder = self.data.unwrap_or_else(data_folder);
        let kept = store::restore(&folder, &self.backup).map_err(|error| {
            let hint = error.hint();
            let failure = Failure::from(error);
            match hint {
                Some(hint) => failure.hint(hint),
                None => failure,
            }
        })?;
        output::note(&format!("{} is in place in {}", self.backup.display(), folder.display()));
        if let Some(kept) = kept {
            output::note(&format!("what was there is kept: {}", kept.display()));
        }
        Ok(Answer::Yes)
    }
}
