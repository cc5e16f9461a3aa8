//! `stipend analyze`.

mod past;

use super::reading::ReadingArgs;
use crate::failure::{Answer, Failure, Outcome};
use crate::output::{self, Format};
use crate::progress::Progress;
use crate::remote::Remote;
use anyhow::Context;
use clap::Args;
use serde::Serialize;
use std::io::Write;
use std::path::PathBuf;
use stipend_sim::analyze::Analysis;
use stipend_sim::analyze::whatif::{Cluster, WhatIf, what_if};
use stipend_sim::report::analysis;
use stipend_sim::trace::Trace;

/// Show what became of a log's jobs: what completed, what was lost, and what would save most.
///
/// Read is last month's log of jobs: what Slurm's sacct writes, the Standard Workload Format, a CSV of our own, an event log (sim run --events,
/// events --export), compressed or not; its form is told by what stands in it. Without a file the daemon's own history is taken.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Analyze {
    /// The log; `-` reads it from stdin [default: what the daemon has done]
    file: Option<PathBuf>,
    #[command(flatten)]
    reading: ReadingArgs,
    /// Write a page with pictures to this file; it opens in a browser, without a network
    #[arg(long, value_name = "FILE", conflicts_with = "what_if")]
    report: Option<PathBuf>,
    /// Instead, replay the log with the work inside each team in this order (completion, fifo, shortest-contract) and in the usual one, priority, and say what would have changed
    #[arg(long, value_name = "ORDER", requires = "nodes")]
    what_if: Option<String>,
    /// How many nodes the cluster of the replay has
    #[arg(long, value_name = "N", requires = "what_if", value_parser = clap::value_parser!(u32).range(1..))]
    nodes: Option<u32>,
    /// How many GPUs each of them has
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..))]
    gpus_per_node: u32,
    /// How to print it; `json` is one object
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    format: Format,
    #[command(flatten)]
    remote: Remote,
}

const EXAMPLES: &str = "\
Examples:
  sacct --allusers --duplicates --allocations --parsable2 \\
    --starttime now-30days --format JobID,JobName,User,Account,Partition,\\
State,Submit,Eligible,Start,End,Elapsed,Timelimit,AllocTRES > sacct.txt
  stipend analyze sacct.txt
  stipend analyze sacct.txt --report report.html
  stipend analyze log.swf.gz --procs-per-gpu 4 --format json
  stipend analyze sacct.txt --what-if completion --nodes 32
  stipend analyze";

/// What is printed.
#[derive(Serialize)]
struct Found {
    #[serde(flatten)]
    analysis: Analysis,
    #[serde(skip_serializing_if = "Option::is_none")]
    what_if: Option<WhatIf>,
}

impl Found {
    fn text(&self, shown: &str) -> String {
        match &self.what_if {
            Some(replayed) => analysis::what_if(shown, &self.analysis, replayed),
            None => analysis::analysis(shown, &self.analysis),
        }
    }
}

/// Replays a log in the usual order and in another one.
fn replay(trace: &Trace, order: &str, nodes: u32, gpus_per_node: u32) -> Result<WhatIf, Failure> {
    let progress = Progress::new("replay", 2);
    let mut parts = [progress.part(), progress.part()];
    let cluster = Cluster { nodes, gpus_per_node };
    let mut reach = |number: usize, fraction: f64| parts[number].reach(fraction);
    what_if(trace, cluster, &["priority", order], &mut reach).map_err(|message| Failure::new(format!("--what-if: {message}")))
}

impl Analyze {
    pub(super) fn run(self) -> Outcome {
        let report = self.report.as_deref().map(output::create).transpose()?;
        let (shown, trace) = match &self.file {
            Some(file) => (file.display().to_string(), self.reading.read(file, true)?),
            None => ("the daemon's history".to_owned(), past::read(&self.remote.daemon()?, self.reading)?),
        };
        let what_if =
            self.what_if.as_deref().zip(self.nodes).map(|(order, nodes)| replay(&trace, order, nodes, self.gpus_per_node)).transpose()?;
        let found = Found { analysis: Analysis::of(&trace), what_if };
        if let Some(mut report) = report {
            report.write_all(analysis::page(&shown, &found.analysis).as_bytes()).context("cannot write the report")?;
        }
        output::data(self.format, &found, || found.text(&shown))?;
        Ok(Answer::Yes)
    }
}
