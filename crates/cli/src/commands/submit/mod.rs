//! `stipend submit`.

pub(super) mod answer;
mod file;
pub(super) mod request;
mod script;

use crate::failure::{Answer, Failure, Outcome};
use crate::output::{self, Format};
use crate::remote::{Daemon, Remote};
use clap::Args;
use request::Request;
use stipend_server::wire::workload::{Submission, Submitted};

/// Queue a workload, and say what will happen to it.
///
/// The numbers of what was queued go to stdout; what will happen goes to stderr: whether it is allocated or unallocated, its contract, what it
/// waits for, and when it starts at the latest, or that there is only an estimate.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Submit {
    #[command(flatten)]
    request: Request,
    /// A key of your own: the same key again gives the first answer again, and queues nothing
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// Print the submission as it would be sent (JSON), and send nothing
    #[arg(long)]
    dry_run: bool,
    /// How to print the answer; `json` is one object
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    format: Format,
    #[command(flatten)]
    remote: Remote,
}

const EXAMPLES: &str = "\
Examples:
  stipend submit --budget lab/nlp/olmo --gpus 4 --min-runtime 30m \\
      --on-preempt resume -- python train.py
  stipend submit -b lab/eval --gpus 1 --array 1-100%5 -- ./eval.sh
  stipend submit --file job.toml --gpus 8
  stipend submit --budget lab/nlp --file job.sbatch -- --lr 3e-4
  stipend submit --file job.sbatch --dry-run
  stipend wait $(stipend submit -b lab/nlp -- ./prepare.sh)

A spec says budget = \"lab/nlp\", command = [\"python\", \"train.py\"], gpus = 4,
min_runtime = \"30m\", on_preempt = \"resume\", env = { SEED = \"1\" }; --dry-run
prints what flags are in a spec. Of a batch script, #SBATCH lines count as far
as they mean something here (the others are named), and #STIPEND lines hold
flags of this command: #STIPEND --min-runtime 30m";

impl Submit {
    pub(super) fn run(self) -> Outcome {
        let read = self.request.read()?;
        read.notes.iter().for_each(|note| output::note(note));
        if self.dry_run {
            output::json(&read.submission)?;
            return Ok(Answer::Yes);
        }
        let daemon = self.remote.daemon()?;
        let submitted = queue(&daemon, read.submission, self.key.as_deref())?;
        match self.format {
            Format::Table => {
                output::note(&answer::said(&submitted, output::note_width()));
                output::text(&answer::numbers(&submitted))?;
            }
            Format::Json => output::json(&submitted)?,
        }
        Ok(Answer::Yes)
    }
}

/// Queues it.
pub(super) fn queue(daemon: &Daemon, submission: Submission, key: Option<&str>) -> Result<Submitted, Failure> {
    let headers: Vec<(&str, &str)> = key.map(|key| ("idempotency-key", key)).into_iter().collect();
    daemon.post("/v1/workloads", &vec![submission], &headers)
}
