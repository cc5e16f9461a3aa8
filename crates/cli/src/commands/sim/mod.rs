//! `stipend sim`: the simulator.

mod batch;
mod check;
mod explain;
mod run;
mod sweep;

use crate::failure::Outcome;
use clap::Subcommand;

/// Simulate a cluster, and check what a scheduler did.
#[derive(Debug, Subcommand)]
pub(super) enum Sim {
    Run(run::Run),
    Sweep(sweep::Sweep),
    Explain(explain::Explain),
    Check(check::Check),
}

impl Sim {
    pub(super) fn run(self) -> Outcome {
        match self {
            Sim::Run(run) => run.run(),
            Sim::Sweep(sweep) => sweep.run(),
            Sim::Explain(explain) => explain.run(),
            Sim::Check(check) => check.run(),
        }
    }
}
