//! `stipend completions`.

use super::Cli;
use crate::failure::{Answer, Outcome};
use crate::output;
use clap::{Args, CommandFactory};
use clap_complete::Shell;

/// Print the completions of a shell.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Completions {
    /// Which shell
    shell: Shell,
}

const EXAMPLES: &str = "\
Examples:
  stipend completions bash > ~/.local/share/bash-completion/completions/stipend
  stipend completions fish > ~/.config/fish/completions/stipend.fish";

impl Completions {
    pub(super) fn run(self) -> Outcome {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "stipend", &mut script);
        output::bytes(&script)?;
        Ok(Answer::Yes)
    }
}
