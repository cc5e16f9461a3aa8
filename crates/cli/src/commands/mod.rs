//! The commands: a noun, then a verb.

mod completions;
mod man;
mod sim;

use crate::failure::Outcome;
use clap::{Parser, Subcommand};

/// Budget scheduling for shared GPU clusters.
///
/// Managers fund a tree of programs, projects and people with shares of GPU time; the scheduler delivers those shares, keeps every GPU busy,
/// and can always say why.
#[derive(Debug, Parser)]
#[command(name = "stipend", version, max_term_width = 80, arg_required_else_help = true, after_help = EXAMPLES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  stipend sim run scenarios/lab.toml
  stipend sim check log.jsonl
  stipend completions bash > stipend.bash

Exit codes: 0 done, 1 the thing asked about is not so, 2 the request was wrong.";

#[derive(Debug, Subcommand)]
enum Command {
    #[command(subcommand)]
    Sim(sim::Sim),
    Completions(completions::Completions),
    Man(man::Man),
}

impl Cli {
    /// Does what was asked.
    pub(crate) fn run(self) -> Outcome {
        match self.command {
            Command::Sim(sim) => sim.run(),
            Command::Completions(completions) => completions.run(),
            Command::Man(man) => man.run(),
        }
    }
}
