//! What workloads call: `stipend checkpoint`, `stipend done` and `stipend input`; and the supervisor that the daemon starts for each of them.

use crate::failure::{Answer, Outcome};
use clap::Args;
use std::path::PathBuf;
use stipend_server::driver::local;

/// Called by a workload: it wrote a checkpoint now, and a preemption loses nothing of what is before.
#[derive(Debug, Args)]
#[command(after_help = CHECKPOINT)]
pub(super) struct Checkpoint {}

const CHECKPOINT: &str = "\
Examples:
  python save.py $STIPEND_CHECKPOINT_DIR && stipend checkpoint";

/// Called by a workload: it has finished, however its process ends; it is not run again.
#[derive(Debug, Args)]
#[command(after_help = DONE)]
pub(super) struct Done {}

const DONE: &str = "\
Examples:
  python train.py && stipend done";

/// Called in a session: somebody uses it now, so that its contract may be renewed.
#[derive(Debug, Args)]
#[command(after_help = INPUT)]
pub(super) struct Input {}

const INPUT: &str = "\
Examples:
  PROMPT_COMMAND='stipend input' bash

A session whose contract ends is renewed if there was input since it began, and
nobody waits who could take its GPUs.";

/// Called by the daemon: carries one lease to its end.
#[derive(Debug, Args)]
pub(super) struct Supervise {
    /// The lease's folder
    folder: PathBuf,
}

impl Checkpoint {
    pub(super) fn run(self) -> Outcome {
        local::checkpoint()?;
        Ok(Answer::Yes)
    }
}

impl Done {
    pub(super) fn run(self) -> Outcome {
        local::done()?;
        Ok(Answer::Yes)
    }
}

impl Input {
    pub(super) fn run(self) -> Outcome {
        local::input()?;
        Ok(Answer::Yes)
    }
}

impl Supervise {
    pub(super) fn run(self) -> Outcome {
        local::supervise(&self.folder)?;
        Ok(Answer::Yes)
    }
}
