//! Several policies on several seeds, on the cores there are.

use crate::cores::on_all_cores;
use crate::failure::Failure;
use crate::output;
use crate::progress::Progress;
use crate::simulation::{PolicyName, Scenario};
use anyhow::Context;
use clap::ValueEnum;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Instant;
use stipend_sim::metrics::Metrics;
use stipend_sim::observer::Observer;
use stipend_sim::result::{PolicyResult, RunResult};

/// All runs of one command.
pub(super) struct Batch<'a> {
    scenario: &'a Scenario,
    seeds: Vec<u64>,
    policies: Vec<PolicyName>,
    events: Option<Events>,
}

/// Where the event log of one run goes.
struct Events {
    path: PathBuf,
    file: File,
    policy: PolicyName,
    seed: u64,
}

/// What came of one run; the pool's GPUs and the days measured stand beside the result.
struct Done {
    capacity_gpus: u32,
    sim_days: f64,
    result: PolicyResult,
    /// What should be said beside it.
    notes: Vec<String>,
}

impl<'a> Batch<'a> {
    /// All policies unless some are asked for; the scenario's own seed unless others are. What is asked for twice is run once.
    pub(super) fn new(scenario: &'a Scenario, policies: &[PolicyName], seeds: &[u64], events: Option<&Path>) -> Result<Batch<'a>, Failure> {
        let policies = distinct(if policies.is_empty() { PolicyName::value_variants() } else { policies });
        let seeds = if seeds.is_empty() { vec![scenario.seed()] } else { distinct(seeds) };
        let logged = if policies.contains(&PolicyName::Budget) { PolicyName::Budget } else { policies[0] };
        let events = events.map(|path| Events::create(path, logged, seeds[0])).transpose()?;
        Ok(Batch { scenario, seeds, policies, events })
    }

    /// One result a seed, each with all policies in order, whichever thread made them.
    pub(super) fn run(&self) -> Result<Vec<RunResult>, Failure> {
        let progress = Progress::new(self.scenario.name(), self.seeds.len() * self.policies.len());
        let done = on_all_cores(self.seeds.len() * self.policies.len(), |index| self.one(index, &progress));
        drop(progress);
        let mut done = done.into_iter();
        let runs = self.seeds.iter().map(|&seed| self.gather(seed, done.by_ref().take(self.policies.len())));
        let runs = runs.collect::<Result<Vec<RunResult>, Failure>>()?;
        if let Some(Events { path, policy, seed, .. }) = &self.events {
            output::note(&format!("event log of {} with seed {seed}: {}", policy.as_str(), path.display()));
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
        let notes = match self.events.as_ref().filter(|events| (events.policy, events.seed) == (policy, seed)) {
            None => self.scenario.run(seed, policy, &mut [&mut metrics], &mut reach),
            Some(events) => {
                let mut log = self.scenario.log(&events.file);
                let notes = self.scenario.run(seed, policy, &mut [&mut metrics as &mut dyn Observer, &mut log], &mut reach);
                log.finish().with_context(|| format!("cannot write {}", events.path.display()))?;
                notes
            }
        };
        let result = metrics.result(policy.as_str(), began.elapsed());
        Ok(Done { capacity_gpus: metrics.capacity().0, sim_days: metrics.measured_days(), result, notes })
    }

    fn gather(&self, seed: u64, done: impl Iterator<Item = Result<Done, Failure>>) -> Result<RunResult, Failure> {
        let done = done.collect::<Result<Vec<Done>, Failure>>()?;
        done.iter().flat_map(|done| &done.notes).for_each(|note| output::note(note));
        let (capacity_gpus, sim_days) = (done[0].capacity_gpus, done[0].sim_days);
        let policies = done.into_iter().map(|done| done.result).collect();
        Ok(RunResult { scenario: self.scenario.name().to_owned(), seed, capacity_gpus, sim_days, policies })
    }
}

impl Events {
    fn create(path: &Path, policy: PolicyName, seed: u64) -> Result<Events, Failure> {
        let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Events { path: path.to_owned(), file, policy, seed })
    }
}

/// The first of each, in order.
pub(super) fn distinct<T: Copy + PartialEq>(values: &[T]) -> Vec<T> {
    let first = |(index, value): &(usize, &T)| !values[..*index].contains(value);
    values.iter().enumerate().filter(first).map(|(_, value)| *value).collect()
}
