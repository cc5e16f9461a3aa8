//! `stipend backup`.

use crate::failure::{Answer, Failure, Outcome};
use crate::output;
use crate::remote::Remote;
use clap::Args;
use serde_json::{Value, json};
use std::path::PathBuf;

/// Write all that the daemon knows into a file, while it goes on.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Backup {
    /// The new file, on the daemon's machine
    #[arg(value_name = "FILE")]
    to: PathBuf,
    #[command(flatten)]
    remote: Remote,
}

const EXAMPLES: &str = "\
Examples:
  stipend backup /var/backups/stipend-$(date +%F).db

To go back to it: stop the daemon, `stipend restore FILE`, and start it again.
What was started since then is stopped.";

impl Backup {
    pub(super) fn run(self) -> Outcome {
        let to = std::path::absolute(&self.to)?;
        let path = to.to_str().ok_or_else(|| Failure::new(format!("{}: the file's name is not UTF-8", self.to.display())))?;
        self.remote.daemon()?.post::<Value>("/v1/backup", &json!({ "path": path }), &[])?;
        output::note(&format!("written: {path}"));
        Ok(Answer::Yes)
    }
}
