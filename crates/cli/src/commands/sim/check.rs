//! `stipend sim check`.

use crate::failure::{Answer, Failure, Outcome};
use crate::output::{self, Format};
use crate::simulation;
use anyhow::Context;
use clap::Args;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::PathBuf;
use stipend_sim::audit::Report;

/// Hold an event log against the laws of the scheduler.
///
/// The auditor shares no code with the scheduler: it keeps its own books from the log alone. It prints each breach with its line, and how much
/// it looked at. Exits with 1 if a law was broken.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Check {
    /// The event log's file; `-` reads it from stdin
    events: PathBuf,
    /// How to print what was found; `json` is one object
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    format: Format,
}

const EXAMPLES: &str = "\
Examples:
  stipend sim run scenarios/lab.toml --policy budget --events log.jsonl
  stipend sim check log.jsonl
  stipend sim check log.jsonl --format json
  zstd -dc log.jsonl.zst | stipend sim check -";

const HINT: &str = "`stipend sim run SCENARIO --events FILE` writes an event log";

impl Check {
    pub(super) fn run(self) -> Outcome {
        let file = self.events.display();
        let log: Box<dyn BufRead> = if self.events.as_os_str() == "-" {
            Box::new(io::stdin().lock())
        } else {
            let opened = File::open(&self.events).with_context(|| format!("cannot read {file}"));
            Box::new(BufReader::new(opened.map_err(|error| Failure::from(error).hint(HINT))?))
        };
        let audited = simulation::audit(log).map_err(|failure| failure.context(format!("{file} is no whole event log")).hint(HINT));
        let report = audited?;
        output::data(self.format, &report, || format!("{report}\n{}", verdict(&report)))?;
        Ok(if report.is_clean() { Answer::Yes } else { Answer::No })
    }
}

fn verdict(report: &Report) -> String {
    match report.found {
        0 => "every law was kept".to_owned(),
        1 => "1 breach of a law".to_owned(),
        found => format!("{found} breaches of laws"),
    }
}
