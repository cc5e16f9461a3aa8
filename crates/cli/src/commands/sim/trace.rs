//! `stipend sim trace`.

use crate::failure::{Answer, Failure, Outcome};
use crate::output::{self, Format};
use crate::simulation;
use anyhow::Context;
use clap::{Args, ValueEnum};
use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use stipend_sim::report::trace::overview;
use stipend_sim::trace::{Reading, TeamFrom};

/// Show what is in a trace: a log of jobs that can be simulated.
///
/// The file may be compressed (gzip, zstd); its form is told by what stands in it. Known are what Slurm's sacct writes, the Standard Workload Format, Alibaba's openb pods,
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
    /// What makes the teams of a Slurm log; of several columns, a team is their names with / between them
    #[arg(long, value_enum, value_name = "COLUMN", value_delimiter = ',', default_value = "account")]
    team_from: Vec<Team>,
    /// The columns of a log of sacct without a header, such as JobID,State,Start,End,AllocTRES
    #[arg(long, value_name = "LIST")]
    columns: Option<String>,
    /// How to print what is in it; `json` is one object
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    format: Format,
}

/// `--team-from`.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Team {
    Account,
    User,
    Partition,
    Qos,
}

impl From<Team> for TeamFrom {
    fn from(team: Team) -> TeamFrom {
        match team {
            Team::Account => TeamFrom::Account,
            Team::User => TeamFrom::User,
            Team::Partition => TeamFrom::Partition,
            Team::Qos => TeamFrom::Qos,
        }
    }
}

const EXAMPLES: &str = "\
Examples:
  stipend sim trace jobs.csv
  stipend sim trace sacct.txt
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
        let reading = Reading {
            procs_per_gpu: self.procs_per_gpu,
            team_from: self.team_from.into_iter().map(TeamFrom::from).collect(),
            columns: self.columns,
            ..Reading::default()
        };
        let found = simulation::overview(input, reading).map_err(|message| Failure::new(format!("{file}: {message}")).hint(HINT))?;
        output::data(self.format, &found, || overview(&file, &found))?;
        Ok(Answer::Yes)
    }
}
