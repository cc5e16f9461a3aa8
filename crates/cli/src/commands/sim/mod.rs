//! `stipend sim`: the simulator.

mod batch;
mod check;
mod run;

use crate::failure::Outcome;
use clap::Subcommand;

/// The simulator's verbs.
#[derive(Debug, Subcommand)]
pub(super) enum Sim {
    /// Run a scenario under several policies and compare them
    Run(run::Run),
    /// Hold an event log against the laws of the scheduler
    Check(check::Check),
}

impl Sim {
    pub(super) fn run(self) -> Outcome {
        match self {
            Sim::Run(run) => run.run(),
            Sim::Check(check) => check.run(),
        }
    }
}
