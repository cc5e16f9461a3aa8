//! Who submits what and when: the scenario's streams under a seed, its trace and its listed workloads.

use crate::generate::behaviour;
use crate::generate::stream::Stream;
use crate::job::Job;
use crate::random::{Purpose, Random};
use crate::scenario::Scenario;
use stipend_core::quantity::Time;

/// Everything that submits in one run.
pub(crate) struct Population<'a> {
    scenario: &'a Scenario,
    streams: Vec<Stream>,
    next_row: usize,
}

impl<'a> Population<'a> {
    /// The population of a scenario under a seed.
    pub(crate) fn new(scenario: &'a Scenario, seed: u64) -> Population<'a> {
        let mut streams = scenario.lab.as_ref().map_or_else(Vec::new, |lab| lab.streams(seed, scenario.measure_to()));
        for plan in &scenario.streams {
            for _ in 0..plan.slots {
                let random = Random::new(seed, Purpose::Stream, streams.len() as u64);
                let mut stream = Stream { random, ..plan.stream.clone() };
                for owner in &mut stream.owners {
                    owner.behaviour = behaviour::of(&scenario.behaviours, seed, owner.budget, owner.user);
                }
                streams.push(stream);
            }
        }
        Population { scenario, streams, next_row: 0 }
    }

    /// The first submission of each stream that has one.
    pub(crate) fn first(&mut self) -> Vec<(u32, Time)> {
        let firsts = self.streams.iter_mut().enumerate().map(|(number, stream)| (number as u32, stream.first()));
        firsts.filter_map(|(number, at)| Some((number, at?))).collect()
    }

    /// When the trace's next row is submitted; `None` after its last inside the measured time.
    pub(crate) fn row_at(&self) -> Option<Time> {
        let (trace, _) = self.scenario.trace.as_ref()?;
        trace.at(self.next_row).filter(|&at| at < self.scenario.measure_to())
    }

    /// The trace's next workload.
    pub(crate) fn take_row(&mut self) -> Option<Job> {
        let (trace, rules) = self.scenario.trace.as_ref()?;
        let number = self.next_row;
        self.next_row += 1;
        trace.rows.get(number).map(|row| rules.job(row, number, trace.named_family(row)))
    }

    /// What a stream submits now, and when it submits again if that does not wait for the end.
    pub(crate) fn draw(&mut self, stream: u32, at: Time) -> (Vec<Job>, Option<Time>) {
        let from = &mut self.streams[stream as usize];
        let jobs = from.draw(stream, at);
        (jobs, from.after_submission(at))
    }

    /// When a stream submits again after a workload of its ended at `at`.
    pub(crate) fn after_end(&mut self, stream: u32, at: Time) -> Option<Time> {
        self.streams[stream as usize].after_end(at)
    }
}
