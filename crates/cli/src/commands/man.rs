//! `stipend man`.

use super::Cli;
use crate::failure::{Answer, Failure, Outcome};
use crate::output;
use clap::{Args, Command, CommandFactory};

/// Print a manual page.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Man {
    /// The command that the page is about, such as `sim run`; none for the program as a whole
    command: Vec<String>,
}

const EXAMPLES: &str = "\
Examples:
  stipend man | man -l -
  stipend man sim run > stipend-sim-run.1";

impl Man {
    pub(super) fn run(self) -> Outcome {
        let mut root = Cli::command();
        // Gives every command the name it is called by, which its page begins with.
        root.build();
        let command = self.command.iter().try_fold(&root, |command, name| find(command, name))?;
        let name = command.get_bin_name().unwrap_or(command.get_name()).replace(' ', "-");
        let mut page = Vec::new();
        let source = concat!("stipend ", env!("CARGO_PKG_VERSION"));
        clap_mangen::Man::new(command.clone()).title(name).source(source).render(&mut page)?;
        output::bytes(&page)?;
        Ok(Answer::Yes)
    }
}

fn find<'a>(command: &'a Command, name: &str) -> Result<&'a Command, Failure> {
    command.find_subcommand(name).ok_or_else(|| {
        let names: Vec<&str> = command.get_subcommands().map(Command::get_name).filter(|name| *name != "help").collect();
        let known = if names.is_empty() { "it has no commands".to_owned() } else { format!("its commands are {}", names.join(", ")) };
        let called = command.get_bin_name().unwrap_or(command.get_name());
        Failure::new(format!("`{called}` has no command `{name}`")).hint(known)
    })
}
