//! `stipend sim`: the simulator.

mod batch;
mod check;
mod run;
mod trace;

use crate::failure::Outcome;
use clap::Subcommand;

/// Simulate a cluster, and check what a scheduler did.
#[derive(Debug, Subcommand)]
pub(super) enum Sim {
    Run(run::Run),
    Check(check::Check),
    Trace(trace::Trace),
}

impl Sim {
    pub(super) fn run(self) -> Outcome {
        match self {
            Sim::Run(run) => run.run(),
            Sim::Check(check) => check.run(),
            Sim::Trace(trace) => trace.run(),
        }
    }
}
