//! `stipend demo`.

mod lab;
mod story;
mod teller;

use crate::failure::Outcome;
use clap::Args;

/// See it work: a small lab on this machine, for about a minute.
///
/// Starts a daemon of its own in a temporary folder, with two nodes of eight virtual GPUs, three teams, and real processes. It shows work that
/// fills idle GPUs, fair shares, a preemption with its reason, work that goes on from its checkpoint, and a drain. Nothing is left behind;
/// Ctrl-C ends it at any time.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Demo {}

const EXAMPLES: &str = "\
Examples:
  stipend demo
  make demo";

impl Demo {
    pub(super) fn run(self) -> Outcome {
        story::tell(lab::Lab::start()?)
    }
}
