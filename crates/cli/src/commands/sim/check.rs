//! `stipend sim check`.

use crate::failure::{Answer, Outcome};
use crate::output;
use crate::simulation;
use anyhow::Context;
use clap::Args;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::PathBuf;

/// Hold an event log against the laws of the scheduler.
///
/// The auditor shares no code with the scheduler: it keeps its own books from the log alone. It prints each breach with its line, and how much
/// it looked at. Exits with 1 if a law was broken.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Check {
    /// The event log's file; `-` reads it from stdin
    events: PathBuf,
}

const EXAMPLES: &str = "\
Examples:
  stipend sim run scenarios/lab.toml --policy budget --events events.jsonl
  stipend sim check events.jsonl
  zstd -dc events.jsonl.zst | stipend sim check -";

impl Check {
    pub(super) fn run(self) -> Outcome {
        let file = self.events.display();
        let log: Box<dyn BufRead> = if self.events.as_os_str() == "-" {
            Box::new(io::stdin().lock())
        } else {
            Box::new(BufReader::new(File::open(&self.events).with_context(|| format!("cannot read {file}"))?))
        };
        let (report, clean) = simulation::audit(log).map_err(|failure| failure.context(format!("{file} is no whole event log")))?;
        output::text(&report.to_string())?;
        Ok(if clean { Answer::Yes } else { Answer::No })
    }
}
