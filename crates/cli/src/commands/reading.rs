//! How a log of jobs is read, for all commands that read one.

use crate::failure::Failure;
use crate::progress::{Part, Progress};
use anyhow::Context;
use clap::{Args, ValueEnum};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use stipend_sim::trace::{Reading, TeamFrom, Trace};

/// What the file does not say itself.
#[derive(Debug, Args)]
pub(super) struct ReadingArgs {
    /// How many processors stand for one GPU, where the file counts processors
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    procs_per_gpu: u32,
    /// What makes the teams of a Slurm log; of several columns, a team is their names with / between them
    #[arg(long, value_enum, value_name = "COLUMN", value_delimiter = ',', default_value = "account")]
    team_from: Vec<Team>,
    /// The columns of a log of sacct without a header, such as JobID,State,Start,End,AllocTRES
    #[arg(long, value_name = "LIST")]
    columns: Option<String>,
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

const HINT: &str = "docs/reference/traces.md lists the forms that can be read";

impl ReadingArgs {
    /// Reads a file; `-` is stdin. `all`: also jobs that need no GPUs.
    pub(super) fn read(self, file: &Path, all: bool) -> Result<Trace, Failure> {
        if file.as_os_str() == "-" {
            return self.read_from(io::stdin().lock(), "-", all);
        }
        let shown = file.display().to_string();
        let input = File::open(file).with_context(|| format!("cannot read {shown}"))?;
        let length = input.metadata().map_or(0, |about| about.len());
        let progress = Progress::new(&shown, 1);
        let input = Watched { input, part: progress.part(), read: 0, length };
        self.read_from(input, &shown, all)
    }

    /// Reads what `shown` names.
    pub(super) fn read_from(self, input: impl Read, shown: &str, all: bool) -> Result<Trace, Failure> {
        let reading = Reading {
            procs_per_gpu: self.procs_per_gpu,
            team_from: self.team_from.into_iter().map(TeamFrom::from).collect(),
            columns: self.columns,
            cpu_jobs: all,
            sizeless_jobs: all,
        };
        Trace::read(input, reading).map_err(|message| Failure::new(format!("{shown}: {message}")).hint(HINT))
    }
}

/// A file that shows how much of it was read.
struct Watched<'p> {
    input: File,
    part: Part<'p>,
    read: u64,
    length: u64,
}

impl Read for Watched<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(into)?;
        self.read += read as u64;
        self.part.reach(self.read as f64 / self.length.max(1) as f64);
        Ok(read)
    }
}
