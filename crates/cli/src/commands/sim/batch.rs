//! Several policies on several seeds, on the cores there are.

use crate::cores::on_all_cores;
use crate::failure::Failure;
use crate::output;
use crate::progress::Progress;
use crate::simulation::{PolicyName, Scenario};
use anyhow::Context;
use clap::ValueEnum;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;
use stipend_sim::metrics::Metrics;
use stipend_sim::observer::Observer;
use stipend_sim::page::Drawn;
use stipend_sim::result::{PolicyResult, RunResult};

/// All runs of one command.
pub(super) struct Batch<'a> {
    scenario: &'a Scenario,
    seeds: Vec<u64>,
    policies: Vec<PolicyName>,
    events: Option<Events>,
    report: Option<Report>,
}

/// What is written beside the result, and where.
#[derive(Clone, Copy, Default)]
pub(super) struct Files<'a> {
    /// The event log of one run.
    pub(super) events: Option<&'a Path>,
    /// The page with pictures.
    pub(super) report: Option<&'a Path>,
}

/// Where the event log of one run goes.
struct Events {
    path: PathBuf,
    file: File,
    policy: PolicyName,
    seed: u64,
}

/// Where the page goes; opened before anything runs, so that a wrong path costs no time.
struct Report {
    path: PathBuf,
    file: File,
}

/// What came of one run; the pool's GPUs and the days measured stand beside the result.
struct Done {
    capacity_gpus: u32,
    sim_days: f64,
    result: PolicyResult,
    /// What the page draws, if it draws this run.
    drawn: Option<Drawn>,
    /// What should be said beside it.
    notes: Vec<String>,
}

impl<'a> Batch<'a> {
    /// All policies unless some are asked for; the scenario's own seed unless others are. What is asked for twice is run once.
    pub(super) fn new(scenario: &'a Scenario, policies: &[PolicyName], seeds: &[u64], files: Files) -> Result<Batch<'a>, Failure> {
        let policies = distinct(if policies.is_empty() { PolicyName::value_variants() } else { policies });
        let seeds = if seeds.is_empty() { vec![scenario.seed()] } else { distinct(seeds) };
        let logged = if policies.contains(&PolicyName::Budget) { PolicyName::Budget } else { policies[0] };
        let events = files
            .events
            .map(|path| Ok::<_, Failure>(Events { path: path.to_owned(), file: create(path)?, policy: logged, seed: seeds[0] }));
        let report = files.report.map(|path| Ok::<_, Failure>(Report { path: path.to_owned(), file: create(path)? }));
        Ok(Batch { scenario, seeds, policies, events: events.transpose()?, report: report.transpose()? })
    }

    /// One result a seed, each with all policies in order, whichever thread made them.
    pub(super) fn run(&self) -> Result<Vec<RunResult>, Failure> {
        let progress = Progress::new(self.scenario.name(), self.seeds.len() * self.policies.len());
        let done = on_all_cores(self.seeds.len() * self.policies.len(), |index| self.one(index, &progress));
        drop(progress);
        let mut done = done.into_iter().collect::<Result<Vec<Done>, Failure>>()?;
        let drawn: Vec<Drawn> = done.iter_mut().filter_map(|done| done.drawn.take()).collect();
        let mut done = done.into_iter();
        let runs: Vec<RunResult> = self.seeds.iter().map(|&seed| self.gather(seed, done.by_ref().take(self.policies.len()))).collect();
        if let Some(Events { path, policy, seed, .. }) = &self.events {
            output::note(&format!("event log of {} with seed {seed}: {}", policy.as_str(), path.display()));
        }
        if let Some(report) = &self.report {
            report.write(&self.scenario.page(&runs, &drawn))?;
        }
        Ok(runs)
    }

    /// Seed by seed, policy by policy.
    fn one(&self, index: usize, progress: &Progress) -> Result<Done, Failure> {
        let (seed, policy) = (self.seeds[index / self.policies.len()], self.policies[index % self.policies.len()]);
        let mut metrics = Metrics::new(self.scenario.window(policy));
        let mut part = progress.part();
        let mut reach = |fraction| part.reach(fraction);
        let began = Instant::now();
        let mut log = self
            .events
            .as_ref()
            .filter(|events| (events.policy, events.seed) == (policy, seed))
            .map(|events| self.scenario.log(&events.file));
        let mut recorder = self.report.as_ref().filter(|_| seed == self.seeds[0]).map(|_| self.scenario.recorder());
        let mut observers: Vec<&mut dyn Observer> = vec![&mut metrics];
        observers.extend(log.as_mut().map(|log| log as &mut dyn Observer));
        observers.extend(recorder.as_mut().map(|recorder| recorder as &mut dyn Observer));
        let notes = self.scenario.run(seed, policy, &mut observers, &mut reach);
        let wall = began.elapsed();
        if let (Some(log), Some(events)) = (log, &self.events) {
            log.finish().with_context(|| format!("cannot write {}", events.path.display()))?;
        }
        let result = metrics.result(policy.as_str(), wall);
        let drawn = recorder.map(|recorder| Drawn::new(policy.as_str(), &recorder, &metrics));
        Ok(Done { capacity_gpus: metrics.capacity().0, sim_days: metrics.measured_days(), result, drawn, notes })
    }

    fn gather(&self, seed: u64, done: impl Iterator<Item = Done>) -> RunResult {
        let done: Vec<Done> = done.collect();
        done.iter().flat_map(|done| &done.notes).for_each(|note| output::note(note));
        let (capacity_gpus, sim_days) = (done[0].capacity_gpus, done[0].sim_days);
        let policies = done.into_iter().map(|done| done.result).collect();
        RunResult { scenario: self.scenario.name().to_owned(), seed, capacity_gpus, sim_days, policies }
    }
}

impl Report {
    fn write(&self, page: &str) -> Result<(), Failure> {
        (&self.file).write_all(page.as_bytes()).with_context(|| format!("cannot write {}", self.path.display()))?;
        let size = page.len() as f64 / 1e6;
        let size = if size < 1.0 { format!("{:.0} kB", size * 1e3) } else { format!("{size:.1} MB") };
        output::note(&format!("page with pictures, {size}: {}", self.path.display()));
        Ok(())
    }
}

fn create(path: &Path) -> Result<File, Failure> {
    Ok(output::create(path)?)
}

/// The first of each, in order.
pub(super) fn distinct<T: Copy + PartialEq>(values: &[T]) -> Vec<T> {
    let first = |(index, value): &(usize, &T)| !values[..*index].contains(value);
    values.iter().enumerate().filter(first).map(|(_, value)| *value).collect()
}
