//! The seam to the simulator: what the command line needs of it, in one place.

use crate::failure::Failure;
use clap::ValueEnum;
use std::fs::File;
use std::io::BufRead;
use std::path::Path;
use stipend_core::Scheduler;
use stipend_core::explain::Names;

use stipend_core::quantity::Time;
use stipend_sim::audit::{self, Report};
use stipend_sim::baseline::{Estimate, easy, fifo, partition};
use stipend_sim::engine::{self, RunSummary};
use stipend_sim::log::LogWriter;
use stipend_sim::metrics::Window;
use stipend_sim::observer::Observer;
use stipend_sim::policy::Policy;
use stipend_sim::refusal::Refusal;
use stipend_sim::scenario;
use stipend_sim::scenario::error::ScenarioError;

/// The policies there are, in the order in which they are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PolicyName {
    /// Stipend: budgets over time
    Budget,
    /// First in, first out
    Fifo,
    /// First in, first out, with backfill around the head's reservation of nodes
    Easy,
    /// Each team owns its share of the GPUs
    Partition,
}

impl PolicyName {
    /// As it is typed and printed.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            PolicyName::Budget => "budget",
            PolicyName::Fifo => "fifo",
            PolicyName::Easy => "easy",
            PolicyName::Partition => "partition",
        }
    }

    /// A policy that has seen nothing yet.
    fn policy(self) -> Box<dyn Policy> {
        match self {
            PolicyName::Budget => Box::new(Scheduler::new(Time(0))),
            PolicyName::Fifo => Box::new(fifo()),
            PolicyName::Easy => Box::new(easy(Estimate::default())),
            PolicyName::Partition => Box::new(partition()),
        }
    }
}

/// A scenario, read and checked.
pub(crate) struct Scenario(scenario::Scenario);

impl Scenario {
    /// Reads a scenario with `key=value` overrides; `strict` refuses a trace with broken rows.
    pub(crate) fn load(path: &Path, overrides: &[String], strict: bool) -> Result<Scenario, Failure> {
        let scenario = scenario::Scenario::load(path, overrides).map_err(explained)?;
        if let Some(trace) = scenario.trace().filter(|trace| 0 < trace.bad_rows) {
            let rows = format!("{} rows of the trace cannot be used, {} can:{}", trace.bad_rows, trace.rows.len(), trace.notes());
            if strict {
                return Err(Failure::new(rows).hint("without --strict they are left out"));
            }
            crate::output::note(&rows);
        }
        Ok(Scenario(scenario))
    }

    pub(crate) fn name(&self) -> &str {
        &self.0.name
    }

    /// The seed used where none is asked for.
    pub(crate) fn seed(&self) -> u64 {
        self.0.seed
    }

    /// What is measured under a policy.
    pub(crate) fn window(&self, policy: PolicyName) -> Window {
        // The baselines let any work onto express nodes.
        self.0.window(policy == PolicyName::Budget)
    }

    /// An observer that writes the event log.
    pub(crate) fn log<'a>(&'a self, file: &'a File) -> LogWriter<'a, &'a File> {
        LogWriter::new(file, &self.0.labels)
    }

    /// Runs a policy; `progress` is told which fraction is done. Returns what should be said beside the result.
    pub(crate) fn run(
        &self,
        seed: u64,
        name: PolicyName,
        observers: &mut [&mut dyn Observer],
        progress: &mut dyn FnMut(f64),
    ) -> Vec<String> {
        let mut policy = name.policy();
        let mut reach = |now: Time, end: Time| progress(now.0 as f64 / end.0.max(1) as f64);
        let summary = engine::run(&self.0, seed, policy.as_mut(), observers, Some(&mut reach));
        notes(name, seed, &summary, &self.0.labels)
    }
}

/// What of a run must not pass in silence.
fn notes(name: PolicyName, seed: u64, summary: &RunSummary, names: &dyn Names) -> Vec<String> {
    let name = name.as_str();
    let refused = summary.refusals.first().map(|(workload, rejection)| {
        let (first, why) = (names.workload(*workload), Refusal { rejection, names });
        format!("{name} with seed {seed} refused {} of {} submissions; the first was {first}: {why}", summary.refused, summary.submitted)
    });
    let faults = summary.fault_examples.first().map(|(at, rejection)| {
        let (first, why) = (names.time(*at), Refusal { rejection, names });
        format!(
            "{name} with seed {seed} refused {} reports of the simulated machines, a fault of this program; the first, at {first}: {why}",
            summary.faults
        )
    });
    refused.into_iter().chain(faults).collect()
}

fn explained(error: ScenarioError) -> Failure {
    let hint = match &error {
        ScenarioError::Unreadable { .. } => Some("a scenario is a TOML file, such as scenarios/lab.toml"),
        ScenarioError::Override { .. } => Some("--set takes KEY=VALUE, the key as in the scenario's file: --set pool.nodes=96"),
        ScenarioError::At { .. } | ScenarioError::File { .. } => None,
    };
    let failure = Failure::from(error);
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// Holds an event log against the laws.
pub(crate) fn audit(log: impl BufRead) -> Result<Report, Failure> {
    Ok(audit::check(log)?)
}
