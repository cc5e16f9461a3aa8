//! The loop: facts of an instant in, decisions out, jump to the next instant.
//!
//! It is the loop of a real engine without the waiting: it turns `Started` into a lease that runs and ends, `Stopping` into processes that
//! leave, lost nodes into fences and repairs, and knows what the scheduler is not told, how much work each workload really has.

mod agenda;
mod happen;
mod hosts;
mod leases;
mod summary;
mod work;

use crate::job::Job;
use crate::observer::Observer;
use crate::policy::Policy;
use crate::population::Population;
use crate::scenario::Scenario;
use agenda::{Agenda, Next};
use hosts::Hosts;
use std::collections::BTreeMap;
use stipend_core::entry::{Entry, Occupancy, Outcome};
use stipend_core::event::{Event, Rejection};
use stipend_core::id::{NodeId, PoolId, WorkloadId};
use stipend_core::quantity::{Span, Time};
use stipend_core::spec::{BudgetSpec, Changeset, NodeState};
pub use summary::RunSummary;
use work::{Lease, Work};

/// Hears how far a run has come: the present time and the end of the measured time.
pub type Progress<'p> = &'p mut dyn FnMut(Time, Time);

/// Runs a scenario under a seed and a policy; the observers see all that happens, in order.
pub fn run(
    scenario: &Scenario,
    seed: u64,
    policy: &mut dyn Policy,
    observers: &mut [&mut dyn Observer],
    progress: Option<Progress<'_>>,
) -> RunSummary {
    run_until(scenario, seed, policy, observers, Time::MAX, progress)
}

/// The same, but nothing happens after `until`: everything of that instant has happened and is decided.
pub fn run_until(
    scenario: &Scenario,
    seed: u64,
    policy: &mut dyn Policy,
    observers: &mut [&mut dyn Observer],
    until: Time,
    progress: Option<Progress<'_>>,
) -> RunSummary {
    let mut engine = Engine {
        scenario,
        policy,
        observers,
        until,
        population: Population::new(scenario, seed),
        hosts: Hosts::new(scenario, seed),
        agenda: Agenda::default(),
        log: Vec::new(),
        works: vec![Work::EXPECTED; scenario.listed.len()],
        leases: BTreeMap::new(),
        ended: Vec::new(),
        live: 0,
        budgets: scenario.budgets.clone(),
        budgets_version: 0,
        slow_starts: BTreeMap::new(),
        stuck: BTreeMap::new(),
        away_since: None,
        last_move: Time(0),
        summary: RunSummary::default(),
    };
    engine.begin();
    engine.go(progress);
    engine.finish()
}

/// In `drain` mode: nothing started or ended for so long, so that nothing ever will.
const STALLED: Span = Span::days(60);

/// More rounds within one instant than any chain of zero delays explains.
const ROUNDS_MAX: u32 = 100_000;

/// So many refusals are kept as examples.
const EXAMPLES: usize = 5;

struct Engine<'a, 'o> {
    scenario: &'a Scenario,
    policy: &'a mut dyn Policy,
    observers: &'a mut [&'o mut dyn Observer],
    until: Time,
    population: Population<'a>,
    hosts: Hosts<'a>,
    agenda: Agenda,
    log: Vec<Entry>,
    /// By workload number.
    works: Vec<Work>,
    /// What holds GPUs now.
    leases: BTreeMap<WorkloadId, Lease>,
    /// Ended in this batch of entries, unless requeued in it.
    ended: Vec<(WorkloadId, Outcome)>,
    /// Submitted and not ended.
    live: u64,
    budgets: Vec<BudgetSpec>,
    budgets_version: u32,
    slow_starts: BTreeMap<WorkloadId, Span>,
    stuck: BTreeMap<WorkloadId, Span>,
    /// Since when the scheduler is away: it is told what happens, for it hears of it with these times later, but nobody asks it to decide.
    away_since: Option<Time>,
    /// When something started or ended last.
    last_move: Time,
    summary: RunSummary,
}

impl Engine<'_, '_> {
    /// Pool, nodes and budgets exist; everything that submits or fails by itself is put down.
    fn begin(&mut self) {
        let at = Time(0);
        for (number, pool) in self.scenario.pools.iter().enumerate() {
            self.tell(at, Event::KnobsSet { pool: PoolId(number as u16), knobs: Box::new(pool.knobs.clone()) });
        }
        for (number, spec) in self.scenario.nodes.iter().enumerate() {
            self.tell(at, Event::NodeJoined { node: NodeId(number as u32), spec: spec.clone() });
        }
        let changeset =
            Changeset { based_on: 0, author: "scenario".into(), reason: self.scenario.name.clone(), budgets: self.budgets.clone() };
        self.tell(at, Event::BudgetsChanged(changeset));
        for (number, happening) in self.scenario.happenings.iter().enumerate() {
            self.agenda.put(happening.0, Next::Happening(number as u32));
        }
        for (number, listed) in self.scenario.listed.iter().enumerate().filter(|(_, listed)| listed.at < self.scenario.measure_to()) {
            self.agenda.put(listed.at, Next::Listed(number as u32));
        }
        for (stream, at) in self.population.first() {
            self.agenda.put(at, Next::Stream(stream));
        }
        for (node, after) in self.hosts.first() {
            self.agenda.put(at + after, Next::HostFails(node));
        }
    }

    /// Instant by instant: all facts, then the decisions, until the end.
    fn go(&mut self, mut progress: Option<Progress<'_>>) {
        let (mut now, mut rounds) = (Time(0), 0);
        while let Some(at) = self.next_instant().filter(|&at| at <= self.until && !self.is_over(at)) {
            let at = at.max(now);
            rounds = if at == now { rounds + 1 } else { 0 };
            assert!(rounds < ROUNDS_MAX, "the policy wants to decide at {at:?} again and again");
            now = at;
            let wanted = self.policy.next_wakeup().is_some_and(|wakeup| wakeup <= at);
            if (self.facts(at) || wanted) && self.away_since.is_none() {
                self.policy.decide(at, &mut self.log);
                self.summary.cycles += 1;
                self.publish(at);
            }
            if let Some(progress) = progress.as_mut().filter(|_| self.summary.cycles.is_multiple_of(1024)) {
                progress(at, self.scenario.measure_to());
            }
        }
        let end = self.scenario.measure_to();
        self.summary.end = if self.scenario.drain { now.max(end) } else { end }.min(self.until);
    }

    fn next_instant(&self) -> Option<Time> {
        let wakeup = self.policy.next_wakeup().filter(|_| self.away_since.is_none());
        [self.agenda.at(), self.population.row_at(), wakeup].into_iter().flatten().min()
    }

    fn is_over(&self, at: Time) -> bool {
        if at < self.scenario.measure_to() {
            return false;
        }
        !self.scenario.drain || self.live == 0 || at - self.last_move > STALLED
    }

    /// Tells all facts of this instant; whether there is something to decide. A start that is reported in the very instant of its decision
    /// changes nothing that could be decided now.
    fn facts(&mut self, at: Time) -> bool {
        let mut news = false;
        while self.population.row_at().is_some_and(|row| row <= at) {
            if let Some(job) = self.population.take_row() {
                self.submit(at, job);
            }
            news = true;
        }
        while let Some(next) = self.agenda.take(at) {
            news |= !(matches!(next, Next::Running(_)) && self.scenario.model.start_delay == Span::ZERO);
            self.happen(at, next);
        }
        news
    }

    fn submit(&mut self, at: Time, job: Job) {
        let workload = WorkloadId(self.works.len() as u32);
        self.works.push(Work::EXPECTED);
        self.submit_as(at, workload, job);
    }

    fn submit_as(&mut self, at: Time, workload: WorkloadId, job: Job) {
        self.works[workload.index()] = Work::new(at, &job);
        self.summary.submitted += 1;
        self.live += 1;
        self.observers.iter_mut().for_each(|observer| observer.job(workload, &job));
        if let Some(patience) = job.cancel_after {
            self.agenda.put(at + patience, Next::Cancel(workload));
        }
        let Err(rejection) = self.try_tell(at, Event::Submitted { workload, spec: job.spec }) else { return };
        self.summary.refused += 1;
        if self.summary.refusals.len() < EXAMPLES {
            self.summary.refusals.push((workload, rejection));
        }
        self.over(at, workload);
    }

    /// A workload is over: whoever waits for its end thinks, and submits the next.
    fn over(&mut self, at: Time, workload: WorkloadId) {
        let work = &mut self.works[workload.index()];
        work.over = true;
        self.live -= 1;
        self.last_move = at;
        if work.stream != Work::NO_STREAM
            && let Some(next) = self.population.after_end(work.stream, at)
        {
            self.agenda.put(next, Next::Stream(work.stream));
        }
    }

    /// Tells the policy a fact that it must accept.
    fn tell(&mut self, at: Time, event: Event) {
        if let Err(rejection) = self.try_tell(at, event) {
            self.summary.faults += 1;
            if self.summary.fault_examples.len() < EXAMPLES {
                self.summary.fault_examples.push((at, rejection));
            }
        }
    }

    fn try_tell(&mut self, at: Time, event: Event) -> Result<(), Rejection> {
        self.summary.events += 1;
        let result = self.policy.apply(at, event, &mut self.log);
        if let Err(rejection) = &result {
            self.log.push(Entry::Refused { rejection: rejection.clone() });
        }
        self.publish(at);
        result
    }

    /// Shows the log's new entries to the observers and acts on them.
    fn publish(&mut self, at: Time) {
        let mut log = std::mem::take(&mut self.log);
        for entry in log.drain(..) {
            self.observers.iter_mut().for_each(|observer| observer.entry(at, &entry));
            self.act(at, entry);
        }
        self.log = log;
        for (workload, outcome) in std::mem::take(&mut self.ended) {
            if !self.works[workload.index()].over {
                continue;
            }
            match outcome {
                Outcome::Completed => self.summary.completed += 1,
                Outcome::Failed | Outcome::TimedOut => self.summary.failed += 1,
                _ => self.summary.other_ends += 1,
            }
            self.over(at, workload);
        }
    }

    /// What the machines do about an entry.
    fn act(&mut self, at: Time, entry: Entry) {
        match entry {
            Entry::Started { lease, occupancy, placement, .. } => {
                self.works[lease.workload.index()].started = true;
                self.leases.insert(lease.workload, Lease::new(lease, placement, occupancy, at));
                let delay = self.slow_starts.remove(&lease.workload).unwrap_or(self.scenario.model.start_delay);
                self.agenda.put(at + delay, Next::Running(lease));
                self.last_move = at;
            }
            Entry::Promoted { lease, .. } => {
                if let Some(promoted) = self.leases.get_mut(&lease.workload).filter(|promoted| promoted.id == lease) {
                    promoted.occupancy = Occupancy::Allocated;
                }
            }
            Entry::Stopping { lease, grace } => self.stop(at, lease, grace),
            Entry::Ended { workload, outcome, .. } => {
                self.works[workload.index()].over = true;
                self.ended.push((workload, outcome));
            }
            Entry::Requeued { workload } => self.works[workload.index()].over = false,
            Entry::Node { node, state: NodeState::Drained, .. } if self.hosts.repair[node.index()].is_some() => {
                self.agenda.put(at, Next::Repairing(node));
            }
            Entry::Budgets { version, .. } => self.budgets_version = version,
            _ => {}
        }
    }

    fn finish(mut self) -> RunSummary {
        let end = self.summary.end;
        self.observers.iter_mut().for_each(|observer| observer.end(end));
        self.summary.unfinished = self.live;
        self.summary.never_started = self.works.iter().filter(|work| !work.over && !work.started).count() as u64;
        self.summary
    }
}

#[cfg(test)]
mod tests;
