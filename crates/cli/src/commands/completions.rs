//! `stipend completions`.

use crate::failure::{Answer, Failure, Outcome};
use crate::output;
use clap::Args;
use clap_complete::Shell;
use clap_complete::env::Shells;

/// The variable through which a shell's completion script asks this program.
pub(crate) const VARIABLE: &str = "STIPEND_COMPLETE";

/// Print the completions of a shell; they ask the daemon for budgets, workloads, nodes and pools.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Completions {
    /// Which shell
    shell: Shell,
}

const EXAMPLES: &str = "\
Examples:
  stipend completions bash > ~/.local/share/bash-completion/completions/stipend
  stipend completions fish > ~/.config/fish/completions/stipend.fish

Write them anew after an update of stipend.";

impl Completions {
    pub(super) fn run(self) -> Outcome {
        let name = self.shell.to_string();
        let shells = Shells::builtins();
        let shell = shells.completer(&name).ok_or_else(|| Failure::new(format!("there are no completions for {name}")))?;
        let mut script = Vec::new();
        shell.write_registration(VARIABLE, "stipend", "stipend", "stipend", &mut script)?;
        output::bytes(&script)?;
        Ok(Answer::Yes)
    }
}
