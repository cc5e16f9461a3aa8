//! The seam to the simulator: what the command line needs of it, in one place.

use crate::failure::Failure;
use clap::ValueEnum;
use std::fs::File;
use std::io::BufRead;
use std::path::Path;
use std::str::FromStr;
use stipend_core::Scheduler;
use stipend_core::explain::Names;

use stipend_core::quantity::Time;
use stipend_sim::audit::{self, Report};
use stipend_sim::baseline::{easy, fair_tree, fifo, partition, priority};
use stipend_sim::engine::{self, RunSummary};
use stipend_sim::explain::{self, Explained};
use stipend_sim::log::LogWriter;
use stipend_sim::metrics::Window;
use stipend_sim::observer::Observer;
use stipend_sim::page::{self, Drawn, Recorder};
use stipend_sim::policy::Policy;
use stipend_sim::refusal::Refusal;
use stipend_sim::result::RunResult;
use stipend_sim::scenario::error::ScenarioError;
use stipend_sim::scenario::{self, Rivals};
use stipend_sim::sweep::Sweep;

/// The policies there are, in the order in which they are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PolicyName {
    /// Stipend: budgets over time
    Budget,
    /// Levels of priority, with a limit on what a team may protect from preemption
    Priority,
    /// As a Slurm site is set up: fair shares with a half-life, backfill, QOS
    FairTree,
    /// First in, first out, with backfill around the head's reservation of nodes
    Easy,
    /// First in, first out
    Fifo,
    /// Each team owns its share of the GPUs
    Partition,
}

impl PolicyName {
    /// As it is typed and printed.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            PolicyName::Budget => "budget",
            PolicyName::Priority => "priority",
            PolicyName::FairTree => "fair-tree",
            PolicyName::Easy => "easy",
            PolicyName::Fifo => "fifo",
            PolicyName::Partition => "partition",
        }
    }

    /// A policy that has seen nothing yet.
    fn policy(self, rivals: &Rivals) -> Box<dyn Policy> {
        match self {
            PolicyName::Budget => Box::new(Scheduler::new(Time(0))),
            PolicyName::Priority => Box::new(priority(rivals.priority)),
            PolicyName::FairTree => Box::new(fair_tree(rivals.fair_tree, rivals.estimate)),
            PolicyName::Easy => Box::new(easy(rivals.estimate)),
            PolicyName::Fifo => Box::new(fifo()),
            PolicyName::Partition => Box::new(partition()),
        }
    }
}

/// A scenario, read and checked.
pub(crate) struct Scenario(scenario::Scenario);

impl Scenario {
    /// Reads a scenario with `key=value` overrides; `strict` refuses a trace with broken rows.
    pub(crate) fn load(path: &Path, overrides: &[String], strict: bool) -> Result<Scenario, Failure> {
        let (scenario, note) = Scenario::load_with_note(path, overrides, strict)?;
        note.iter().for_each(|note| crate::output::note(note));
        Ok(scenario)
    }

    /// The same; what should be said about it is returned and not said.
    pub(crate) fn load_with_note(path: &Path, overrides: &[String], strict: bool) -> Result<(Scenario, Option<String>), Failure> {
        let scenario = scenario::Scenario::load(path, overrides).map_err(|error| explained(error, path))?;
        let broken = scenario.trace().filter(|trace| 0 < trace.bad_rows);
        let rows =
            broken.map(|trace| format!("{} rows of the trace cannot be used, {} can:{}", trace.bad_rows, trace.rows.len(), trace.notes()));
        if let Some(rows) = rows.as_ref().filter(|_| strict) {
            return Err(Failure::new(rows).hint("without --strict they are left out"));
        }
        let said: Vec<String> = scenario.trace().map(|trace| trace.remarks()).unwrap_or_default().into_iter().chain(rows).collect();
        Ok((Scenario(scenario), (!said.is_empty()).then(|| said.join("\n"))))
    }

    pub(crate) fn name(&self) -> &str {
        &self.0.name
    }

    /// What it shows.
    pub(crate) fn description(&self) -> &str {
        &self.0.description
    }

    /// The seed used where none is asked for.
    pub(crate) fn seed(&self) -> u64 {
        self.0.seed
    }

    /// The paths of its leaf budgets.
    pub(crate) fn leaves(&self) -> Vec<&str> {
        let paths = &self.0.labels.budgets;
        let has_child = |path: &str| paths.iter().any(|other| other.strip_prefix(path).is_some_and(|rest| rest.starts_with('/')));
        paths.iter().map(String::as_str).filter(|path| !has_child(path)).collect()
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

    /// Why a workload waits, runs or ended, at one moment under `budget`; `progress` is told which fraction is done.
    pub(crate) fn explain(&self, seed: u64, at: Moment, workload: &str, progress: &mut dyn FnMut(f64)) -> Result<Explained, Failure> {
        let mut reach = |now: Time, _: Time| progress(now.0 as f64 / at.0.0.max(1) as f64);
        Ok(explain::explain(&self.0, seed, at.0, workload, Some(&mut reach))?)
    }

    /// An observer that keeps what the page draws.
    pub(crate) fn recorder(&self) -> Recorder<'_> {
        Recorder::new(&self.0.labels, self.0.measure_from())
    }

    /// The page with pictures.
    pub(crate) fn page(&self, runs: &[RunResult], drawn: &[Drawn]) -> String {
        page::page(&self.0, runs, drawn)
    }

    /// Runs a policy; `progress` is told which fraction is done. Returns what should be said beside the result.
    pub(crate) fn run(
        &self,
        seed: u64,
        name: PolicyName,
        observers: &mut [&mut dyn Observer],
        progress: &mut dyn FnMut(f64),
    ) -> Vec<String> {
        let mut policy = name.policy(&self.0.rivals);
        let mut reach = |now: Time, end: Time| progress(now.0 as f64 / end.0.max(1) as f64);
        let summary = engine::run(&self.0, seed, policy.as_mut(), observers, Some(&mut reach));
        notes(name, seed, &summary, &self.0.labels)
    }
}

/// A point in time as it is typed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment(Time);

impl FromStr for Moment {
    type Err = String;

    fn from_str(text: &str) -> Result<Moment, String> {
        let expected = "a time since the start such as `26:05` (hours and minutes), `1:00:05`, `3d4h` or `3d`";
        scenario::time(text).map(Moment).ok_or_else(|| format!("it is not {expected}"))
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

fn explained(error: ScenarioError, scenario: &Path) -> Failure {
    let hint = match &error {
        ScenarioError::Unreadable { path, .. } if path == scenario => Some("a scenario is a TOML file, such as scenarios/lab.toml"),
        ScenarioError::Unreadable { .. } => {
            Some("a file that a scenario names is sought in the scenario's folder, one in --set in the current folder")
        }
        ScenarioError::Override { .. } => Some("--set takes KEY=VALUE, the key as in the scenario's file: --set pool.nodes=96"),
        ScenarioError::At { .. } | ScenarioError::File { .. } => None,
    };
    let failure = Failure::from(error);
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// Which combinations of values `--set` asks for.
pub(crate) fn sweep(sets: &[String]) -> Result<Sweep, Failure> {
    Sweep::parse(sets).map_err(|error| Failure::from(error).hint("a list of values sweeps a field: --set lookback=1d,7d,28d"))
}

/// Holds an event log against the laws.
pub(crate) fn audit(log: impl BufRead) -> Result<Report, Failure> {
    Ok(audit::check(log)?)
}
