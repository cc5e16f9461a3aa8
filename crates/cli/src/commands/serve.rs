//! `stipend serve`.

use crate::failure::{Answer, Failure, Outcome};
use crate::output;
use crate::remote::data_folder;
use clap::Args;
use std::io::{IsTerminal, stderr};
use std::path::PathBuf;
use stipend_server::serve::{Daemon, Options, ServeError};

/// Run the daemon: schedule and run work on this machine.
///
/// It keeps everything in one folder, and goes on after a restart where it was: what runs goes on meanwhile. Whoever may look into that
/// folder reaches it by the socket there, as themselves; others by a token. Without a configuration the machine's GPUs are looked for.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Serve {
    /// Where it keeps everything [default: $STIPEND_DATA, else /var/lib/stipend for root and ~/.local/share/stipend for others]
    #[arg(long, value_name = "FOLDER")]
    data: Option<PathBuf>,
    /// Where the API listens beside the socket, or `none` [default: as configured, else 127.0.0.1:7411]
    #[arg(long, value_name = "HOST:PORT")]
    listen: Option<String>,
    /// The configuration (TOML): pools and nodes, knobs, the first budgets
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  stipend serve
  stipend serve --config stipend.toml --data /srv/stipend
  stipend serve --listen none

SIGTERM or Ctrl-C ends the daemon, not the work: start it again, and it goes on.";

impl Serve {
    pub(super) fn run(self) -> Outcome {
        let form = tracing_subscriber::fmt().with_writer(stderr).with_ansi(stderr().is_terminal()).with_target(false);
        form.init();
        let options = Options { data: self.data.unwrap_or_else(data_folder), listen: self.listen, config: self.config };
        let daemon = Daemon::start(&options).map_err(failure)?;
        if let Some(address) = daemon.address {
            output::note(&format!("listening on http://{address}"));
        }
        output::note(&format!("listening on unix:{}", daemon.socket.display()));
        if let Some(first) = &daemon.first_token {
            output::note(&format!("the first administrator's token, shown this once: {}", first.token));
        }
        daemon.run().map_err(failure)?;
        Ok(Answer::Yes)
    }
}

fn failure(error: ServeError) -> Failure {
    let hint = error.hint();
    let failure = Failure::from(error);
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}
