//! `stipend sim trace`.

use crate::commands::reading::ReadingArgs;
use crate::failure::{Answer, Outcome};
use crate::output::{self, Format};
use clap::Args;
use std::path::PathBuf;
use stipend_sim::report::trace::overview;
use stipend_sim::trace::overview::Overview;

/// Show what is in a trace: a log of jobs that can be simulated.
///
/// The file may be compressed (gzip, zstd); its form is told by what stands in it. Known are what Slurm's sacct writes, the Standard Workload Format, Alibaba's openb pods,
/// Microsoft's Philly, our own event log, and a CSV of our own. Shown are its jobs, teams, users, sizes, run times, outcomes and demand over time, and what
/// was left aside and why.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Trace {
    /// The trace's file; `-` reads it from stdin
    file: PathBuf,
    #[command(flatten)]
    reading: ReadingArgs,
    /// How to print what is in it; `json` is one object
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    format: Format,
}

const EXAMPLES: &str = "\
Examples:
  stipend sim trace jobs.csv
  stipend sim trace sacct.txt
  stipend sim trace KTH-SP2-1996-2.1-cln.swf.gz --procs-per-gpu 4
  stipend sim trace openb_pod_list_default.csv --format json";

impl Trace {
    pub(super) fn run(self) -> Outcome {
        let found = Overview::of(&self.reading.read(&self.file, false)?);
        output::data(self.format, &found, || overview(&self.file.display().to_string(), &found))?;
        Ok(Answer::Yes)
    }
}
