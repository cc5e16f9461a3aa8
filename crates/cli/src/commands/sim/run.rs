//! `stipend sim run`.

use super::batch::Batch;
use crate::failure::{Answer, Outcome};
use crate::output::{self, Format};
use crate::simulation::{PolicyName, Scenario};
use clap::Args;
use std::path::PathBuf;
use stipend_sim::report::table::report;

/// Run a scenario under several policies and compare them.
///
/// The same workloads, users and failures meet every policy. One table shows what budgets were owed and got, how busy and how useful the GPUs
/// were, how long work waited and what was lost. With several seeds each cell shows the median and, below it, the worst.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Run {
    /// The scenario's file
    scenario: PathBuf,
    /// A policy to run; repeat it, or separate by commas, to compare others with the first [default: all of them]
    #[arg(long = "policy", value_name = "NAME", value_delimiter = ',')]
    policies: Vec<PolicyName>,
    /// Set a field of the scenario, such as `pool.nodes=96`
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// What the random streams begin from; several, repeated or separated by commas, are shown as median and worst [default: the scenario's own]
    #[arg(long = "seed", value_name = "N", value_delimiter = ',', allow_negative_numbers = true)]
    seeds: Vec<u64>,
    /// Write the event log of one run to this file: of `budget` if it is among those run, else of the first, with the first seed
    #[arg(long, value_name = "FILE")]
    events: Option<PathBuf>,
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

const EXAMPLES: &str = "\
Examples:
  stipend sim run scenarios/lab.toml
  stipend sim run scenarios/lab.toml --policy budget,easy --seed 11,12,13
  stipend sim run scenarios/lab.toml --set lookback=3d --format json
  stipend sim run scenarios/philly.toml --set trace=jobs.csv
  stipend sim run scenarios/drain.toml --policy budget --events log.jsonl";

impl Run {
    pub(super) fn run(self) -> Outcome {
        let scenario = Scenario::load(&self.scenario, &self.set, self.strict)?;
        let runs = Batch::new(&scenario, &self.policies, &self.seeds, self.events.as_deref())?.run()?;
        match (self.format, runs.as_slice()) {
            (Format::Table, runs) => output::text(&report(runs, self.budgets))?,
            (Format::Json, [run]) => output::json(run)?,
            (Format::Json, runs) => output::json(&runs)?,
        }
        Ok(Answer::Yes)
    }
}
