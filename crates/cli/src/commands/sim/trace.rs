//! `stipend sim trace`.

use crate::failure::{Answer, Failure, Outcome};
use crate::output::{self, Format};
use crate::simulation;
use anyhow::Context;
use clap::Args;
use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use stipend_sim::report::trace::overview;
use stipend_sim::trace::Reading;

/// Show what is in a trace: a log of jobs that can be simulated.
///
/// The file may be compressed (gzip, zstd); its form is told by what stands in it. Known are the Standard Workload Format, Alibaba's openb pods,
/// Microsoft's Philly, and a CSV of our own. Shown are its jobs, teams, users, sizes, run times, outcomes and demand over time, and what
/// was left aside and why.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Trace {
    /// The trace's file; `-` reads it from stdin
    file: PathBuf,
    /// How many processors stand for one GPU, where the file counts processors
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    procs_per_gpu: u32,
    /// How to print what is in it; `json` is one object
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    format: Format,
}

const EXAMPLES: &str = "\
Examples:
  stipend sim trace jobs.csv
  stipend sim trace KTH-SP2-1996-2.1-cln.swf.gz --procs-per-gpu 4
  stipend sim trace openb_pod_list_default.csv --format json";

const HINT: &str = "docs/reference/traces.md lists the forms that can be read";

impl Trace {
    pub(super) fn run(self) -> Outcome {
        let file = self.file.display().to_string();
        let input: Box<dyn Read> = if self.file.as_os_str() == "-" {
            Box::new(io::stdin().lock())
        } else {
            Box::new(File::open(&self.file).with_context(|| format!("cannot read {file}"))?)
        };
        let reading = Reading { procs_per_gpu: self.procs_per_gpu };
        let found = simulation::overview(input, reading).map_err(|message| Failure::new(format!("{file}: {message}")).hint(HINT))?;
        match self.format {
            Format::Table => output::text(&overview(&file, &found))?,
            Format::Json => output::json(&found)?,
        }
        Ok(Answer::Yes)
    }
}
