//! `stipend sim run`.

use super::batch::{Batch, Files};
use crate::failure::{Answer, Outcome};
use crate::output::{self, Format};
use crate::simulation::{PolicyName, Scenario};
use clap::Args;
use std::path::PathBuf;
use stipend_sim::report::table::report;

/// What the rows of the table mean.
macro_rules! rows {
    () => {
        "\
The table, one column a policy:
  demand / capacity  GPUs that work with a contract asked for, per GPU there was
  occupancy          the part of all GPU time that was given to work
  useful, lost       the part that led to something, and the part that did not
  owed delivered     of the GPU time that budgets were owed (their share, as far
                     as they asked for it), the part that they got
  day by day         the same, where no day makes up for another
  worst team         the same for the team that got the least of it
  arrears            how far teams are behind, in hours of their own share
  wait               from submission to running: debug is at most 8 GPUs and 15
                     minutes, largest at least an eighth of the cluster, medium
                     all between; unallocated work has no contract; requeued is
                     the wait of work that was preempted
  slowdown           from submission to completion, as a multiple of the work
  p50/90/99          half, nine of ten, 99 of 100 are at most so much
  preemptions        runs that were stopped so that others could start, or for
                     the repair of a host"
    };
}

macro_rules! examples {
    () => {
        "\
Examples:
  stipend sim run scenarios/lab.toml
  stipend sim run scenarios/lab.toml --policy budget,easy --seed 11,12,13
  stipend sim run scenarios/lab.toml --set lookback=3d --format json
  stipend sim run scenarios/philly.toml --set trace=jobs.csv
  stipend sim run scenarios/drain.toml --policy budget --events log.jsonl
  stipend sim run scenarios/lab.toml --report report.html"
    };
}

const EXAMPLES: &str = examples!();

/// Run a scenario under several policies and compare them.
///
/// The same workloads, users and failures meet every policy. One table shows what budgets were owed and got, how busy and how useful the GPUs
/// were, how long work waited and what was lost. With several seeds each cell shows the median and, below it, the worst.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, after_long_help = concat!(rows!(), "\n\n", examples!()))]
pub(crate) struct Run {
    /// A scenario's file (TOML), such as scenarios/lab.toml
    scenario: PathBuf,
    /// A policy to run; repeat it, or separate by commas, to compare others with the first [default: all of them]
    #[arg(long = "policy", value_name = "NAME", value_delimiter = ',')]
    policies: Vec<PolicyName>,
    /// Set a field of the scenario, such as `pool.nodes=96`; repeat it for more
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// A seed for all that is random; with several, repeated or separated by commas, cells show the median and the worst [default: the scenario's own]
    #[arg(long = "seed", value_name = "N", value_delimiter = ',', allow_negative_numbers = true)]
    seeds: Vec<u64>,
    /// Write the event log of one run to this file: of `budget` if it is among those run, else of the first, with the first seed
    #[arg(long, value_name = "FILE")]
    events: Option<PathBuf>,
    /// Write a page with pictures to this file: what was owed and delivered over time, waits, who ran where and why; it opens in a browser, without a network. With several seeds it draws the first
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// How to print the result; `json` is one object, or a list of them with several seeds
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    format: Format,
    /// Show every budget under the first policy, too
    #[arg(long)]
    budgets: bool,
    /// Refuse a trace with broken rows, instead of counting them
    #[arg(long)]
    strict: bool,
}

impl Run {
    pub(super) fn run(self) -> Outcome {
        let scenario = Scenario::load(&self.scenario, &self.set, self.strict)?;
        let files = Files { events: self.events.as_deref(), report: self.report.as_deref() };
        let runs = Batch::new(&scenario, &self.policies, &self.seeds, files)?.run()?;
        match (self.format, runs.as_slice()) {
            (Format::Table, runs) => output::text(&report(runs, self.budgets))?,
            (Format::Json, [run]) => output::json(run)?,
            (Format::Json, runs) => output::json(&runs)?,
        }
        Ok(Answer::Yes)
    }
}
