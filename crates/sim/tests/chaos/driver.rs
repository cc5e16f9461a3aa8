//! The engine from hell: it runs what it is told to, and reports late, twice, wrongly or never.

use crate::dice::Dice;
use crate::population::{self, Naming, Population};
use crate::subject::Subject;
use std::collections::{BTreeMap, BTreeSet};
use stipend_core::entry::Entry;
use stipend_core::event::{Event, Exit};
use stipend_core::id::{BudgetId, LeaseId, NodeId, PoolId, WorkloadId};
use stipend_core::quantity::{Ppm, Span, Time};
use stipend_core::spec::{BudgetSpec, Changeset, NodeState, PoolShare, Severity, WorkloadKind};

/// One step of a journal.
#[derive(Clone)]
pub(crate) enum Step<P> {
    Event(Event),
    Plan(P),
}

/// What a history left behind.
pub(crate) struct History<S: Subject> {
    pub(crate) log: Vec<(Time, Entry)>,
    pub(crate) journal: Vec<(Time, Step<S::Plan>)>,
    pub(crate) subject: S,
    pub(crate) refused: u64,
    /// What was wrong, seen while it ran.
    pub(crate) faults: Vec<String>,
}

struct Driver<S: Subject> {
    dice: Dice,
    people: Population,
    history: History<S>,
    now: Time,
    /// What the engine will report, by time.
    due: BTreeMap<(Time, u64), Event>,
    sent: u64,
    version: u32,
    budgets: BTreeMap<BudgetId, BudgetSpec>,
    workloads: u32,
    waiting: BTreeSet<WorkloadId>,
    sessions: BTreeSet<WorkloadId>,
    leases: BTreeMap<LeaseId, Vec<NodeId>>,
    gone: Vec<LeaseId>,
    states: BTreeMap<NodeId, NodeState>,
}

/// Runs a random history of about so many events.
pub(crate) fn run<S: Subject>(seed: u64, events: u64, naming: Naming, subject: S) -> History<S> {
    let mut dice = Dice::new(seed);
    let people = Population::new(seed, &mut dice, naming);
    let history = History { log: Vec::new(), journal: Vec::new(), subject, refused: 0, faults: Vec::new() };
    let mut driver = Driver {
        dice,
        people,
        history,
        now: Time(0),
        due: BTreeMap::new(),
        sent: 0,
        version: 0,
        budgets: BTreeMap::new(),
        workloads: 0,
        waiting: BTreeSet::new(),
        sessions: BTreeSet::new(),
        leases: BTreeMap::new(),
        gone: Vec::new(),
        states: BTreeMap::new(),
    };
    driver.set_up();
    while driver.sent < events {
        driver.instant();
    }
    driver.history
}

impl<S: Subject> Driver<S> {
    fn set_up(&mut self) {
        for (pool, knobs) in self.people.knobs.clone().into_iter().enumerate() {
            self.tell(Event::KnobsSet { pool: PoolId(pool as u16), knobs: Box::new(knobs) });
        }
        let budgets = self.people.budgets.clone();
        self.change_budgets(budgets);
        for (number, spec) in self.people.nodes.clone().into_iter().enumerate() {
            self.tell(Event::NodeJoined { node: NodeId(number as u32), spec });
        }
        self.decide();
    }

    /// The next point in time at which something happens: all of it, then one decision.
    fn instant(&mut self) {
        let from_outside = self.now + Span(self.dice.around(self.people.unit / 4));
        let engine = self.due.first_key_value().map(|((at, _), _)| *at);
        let wakeup = self.history.subject.next_wakeup();
        let next = [Some(from_outside), engine, wakeup].into_iter().flatten().min().expect("something from outside");
        // Now and then the whole world sleeps for a while, and nobody is told.
        let sleep = if self.dice.once_in(400) { Span(self.dice.around(self.people.unit * 20)) } else { Span::ZERO };
        let from = self.now.max(next);
        self.now = from + sleep;
        self.tell(Event::Tick);
        // Of every other sleep it is told.
        if sleep > Span::ZERO && sleep.0 % 2 == 0 {
            self.tell(Event::Gap { from });
        }
        while let Some(((at, key), _)) = self.due.first_key_value()
            && *at <= self.now
        {
            let key = (*at, *key);
            let event = self.due.remove(&key).expect("just seen");
            self.tell(event.clone());
            if self.dice.once_in(20) {
                self.tell(event);
            }
        }
        if from_outside <= self.now {
            self.interfere();
        }
        self.decide();
    }

    fn later(&mut self, after: i64, event: Event) {
        self.sent += 1;
        self.due.insert((self.now + Span(after.max(1)), self.sent), event);
    }

    /// Tells the scheduler a fact; a refused one must change nothing.
    fn tell(&mut self, event: Event) {
        self.sent += 1;
        let before = self.history.subject.digest();
        let mut log = Vec::new();
        // A clock may be behind: the core's time is the largest that it was told.
        let at =
            if self.dice.once_in(50) && !matches!(event, Event::Tick) { self.now - Span(self.dice.from(0, 100_000)) } else { self.now };
        match self.history.subject.apply(at, &event, &mut log) {
            Ok(()) => self.history.journal.push((self.now, Step::Event(event.clone()))),
            Err(rejection) => {
                self.history.refused += 1;
                // The first fact of an instant moves time; it is a tick, which is never refused.
                if !log.is_empty() || self.history.subject.digest() != before {
                    self.history.faults.push(format!("{event:?} was refused ({rejection:?}) and left a trace"));
                }
            }
        }
        self.react(log);
    }

    fn decide(&mut self) {
        let is_compared = self.dice.once_in(8);
        let dry = is_compared.then(|| (self.history.subject.clone(), self.history.subject.plan(self.now)));
        let mut log = Vec::new();
        let plan = self.history.subject.decide(self.now, &mut log);
        if let Some((mut other, dry)) = dry {
            let mut other_log = Vec::new();
            other.commit(&dry, &mut other_log);
            if other.digest() != self.history.subject.digest() || format!("{other_log:?}") != format!("{log:?}") {
                self.history.faults.push(format!("{}: plan and commit do not what decide does", self.now.0));
            }
        }
        self.history.journal.push((self.now, Step::Plan(plan)));
        self.react(log);
    }

    /// The engine does what the entries command, in its own way.
    fn react(&mut self, log: Vec<Entry>) {
        for entry in log {
            match &entry {
                Entry::Started { lease, placement, .. } => {
                    let nodes: Vec<NodeId> = placement.iter().map(|slot| slot.node).collect();
                    self.waiting.remove(&lease.workload);
                    self.leases.insert(*lease, nodes.clone());
                    self.launch(*lease, &nodes);
                }
                Entry::Running { lease, .. } => self.runs(*lease),
                Entry::Stopping { lease, grace } => self.stops(*lease, *grace),
                Entry::Submitted { workload, spec, .. } => {
                    self.waiting.insert(*workload);
                    if spec.kind == WorkloadKind::Session {
                        self.sessions.insert(*workload);
                    }
                }
                Entry::Requeued { workload } => _ = self.waiting.insert(*workload),
                Entry::Ended { workload, attempt, .. } => {
                    self.waiting.remove(workload);
                    let lease = LeaseId { workload: *workload, attempt: attempt.unwrap_or(0) };
                    self.leases.remove(&lease);
                    self.gone.push(lease);
                }
                Entry::Node { node, state, .. } => {
                    self.states.insert(*node, *state);
                    self.repairs(*node, *state);
                }
                Entry::Budgets { version, .. } => self.version = *version,
                _ => {}
            }
            self.history.log.push((self.now, entry));
        }
    }

    fn launch(&mut self, lease: LeaseId, nodes: &[NodeId]) {
        match self.dice.below(30) {
            // Some members never come up.
            0 => {}
            1 => nodes.iter().skip(1).for_each(|node| self.later(1000, Event::MemberRunning { lease, node: *node })),
            2..=8 => {
                for node in nodes {
                    let after = self.dice.from(1, 30_000);
                    self.later(after, Event::MemberRunning { lease, node: *node });
                }
            }
            // It is over before it ran.
            9 => self.later(500, Event::LeaseEnded { lease, exit: Exit::Failed }),
            _ => {
                let after = self.dice.from(1, 30_000);
                self.later(after, Event::LeaseRunning { lease });
            }
        }
    }

    fn runs(&mut self, lease: LeaseId) {
        let work = self.dice.around(self.people.unit * 4);
        let exit = *self.dice.pick(&[Exit::Completed, Exit::Completed, Exit::Completed, Exit::Failed, Exit::Done, Exit::Infrastructure]);
        self.later(work, Event::LeaseEnded { lease, exit });
        for part in 1..=self.dice.from(0, 3) {
            self.later(work * part / 4, Event::Checkpointed { lease });
        }
        // Sessions are used now and then; what is no session has no input. No dice are thrown for it.
        if self.sessions.contains(&lease.workload) || lease.workload.0.is_multiple_of(16) {
            (1..=4).for_each(|part| self.later(work * part / 5 + 1, Event::Input { lease }));
        }
    }

    fn stops(&mut self, lease: LeaseId, grace: Span) {
        let after = match self.dice.below(20) {
            // Will not die for a long while.
            0 => grace.0 + self.dice.from(60_000, 7_200_000),
            1 => grace.0 + 1,
            _ => self.dice.from(1, grace.0.max(1)),
        };
        let exit = *self.dice.pick(&[Exit::Failed, Exit::Completed, Exit::Failed, Exit::Done]);
        self.later(after, Event::LeaseEnded { lease, exit });
    }

    fn repairs(&mut self, node: NodeId, state: NodeState) {
        let after = self.dice.around(self.people.unit);
        match state {
            NodeState::Drained | NodeState::Lost => {
                self.later(after, Event::NodeRepairing { node });
                self.later(after * 2, Event::NodeReady { node });
            }
            NodeState::Repairing => self.later(after, Event::NodeReady { node }),
            NodeState::Ready | NodeState::Draining(_) => {}
        }
    }

    /// Something that nobody asked for.
    fn interfere(&mut self) {
        let node = NodeId(self.dice.below(self.people.nodes.len() as u64 + 1) as u32);
        match self.dice.below(60) {
            0 => self.lose(node),
            1 => {
                let severity = *self.dice.pick(&[Severity::Maintenance, Severity::Sick, Severity::Critical]);
                self.tell(Event::NodeDrainRequested { node, severity, reason: "chance".into() });
            }
            2 | 3 => self.tell(Event::NodeReady { node }),
            4 => self.edit_budgets(),
            13..=15 if self.people.is_reorganised => self.reorganise(),
            5 => self.edit_knobs(),
            6 | 7 => self.late_report(),
            8..=11 => self.tell_workload(),
            12 => {
                let spec = self.people.nodes[0].clone();
                self.tell(Event::NodeJoined { node, spec });
            }
            _ => self.submit(),
        }
    }

    fn lose(&mut self, node: NodeId) {
        self.tell(Event::NodeLost { node });
        let on_it: Vec<LeaseId> = self.leases.iter().filter(|(_, nodes)| nodes.contains(&node)).map(|(lease, _)| *lease).collect();
        for lease in on_it {
            let fenced = self.dice.from(1, 120_000);
            self.later(fenced, Event::LeaseEnded { lease, exit: Exit::Infrastructure });
        }
    }

    fn submit(&mut self) {
        // Crowded, but not without end.
        if self.waiting.len() > 60 {
            return;
        }
        let parents: BTreeSet<BudgetId> = self.budgets.values().filter_map(|budget| budget.parent).collect();
        let mut budgets: Vec<BudgetId> = self.budgets.keys().copied().filter(|id| !parents.contains(id)).collect();
        if self.dice.once_in(50) {
            budgets.push(BudgetId(999));
            budgets.push(BudgetId(0));
        }
        for _ in 0..self.dice.from(1, 4) {
            let spec = self.people.workload(&mut self.dice, &budgets);
            let workload = WorkloadId(self.workloads);
            self.workloads += u32::from(!self.dice.once_in(50));
            self.tell(Event::Submitted { workload, spec });
        }
    }

    fn tell_workload(&mut self) {
        let workload = WorkloadId(self.dice.below(u64::from(self.workloads) + 2) as u32);
        let waiting: Vec<WorkloadId> = self.waiting.iter().copied().collect();
        let leased: Vec<WorkloadId> = self.leases.keys().map(|lease| lease.workload).collect();
        let from = if self.dice.once_in(2) { waiting } else { leased };
        let workload = if from.is_empty() { workload } else { *self.dice.pick(&from) };
        match self.dice.below(4) {
            0 => self.tell(Event::Cancelled { workload }),
            1 => self.tell(Event::Stopped { workload, reason: "chance".into() }),
            2 => {
                self.tell(Event::Held { workload, why: "chance".into() });
                let after = self.dice.around(self.people.unit);
                self.later(after, Event::Released { workload });
            }
            _ => self.tell(Event::Released { workload }),
        }
    }

    /// A report about an attempt that is over, or that never was.
    fn late_report(&mut self) {
        let live: Vec<LeaseId> = self.leases.keys().copied().collect();
        let mut lease = match self.dice.below(3) {
            0 if !live.is_empty() => *self.dice.pick(&live),
            _ if !self.gone.is_empty() => *self.dice.pick(&self.gone),
            _ => return,
        };
        lease.attempt += u32::from(self.dice.once_in(3));
        let event = match self.dice.below(4) {
            0 => Event::LeaseRunning { lease },
            1 => Event::Checkpointed { lease },
            2 => Event::MemberRunning { lease, node: NodeId(0) },
            _ => Event::LeaseEnded { lease, exit: Exit::Completed },
        };
        self.tell(event);
    }

    fn edit_knobs(&mut self) {
        let pool = self.pool();
        let mut knobs = self.people.knobs[pool].clone();
        population::vary(&mut self.dice, &mut knobs, self.people.unit);
        if self.dice.once_in(5) {
            knobs.lookback = Span(0);
        } else {
            self.people.knobs[pool] = knobs.clone();
        }
        self.tell(Event::KnobsSet { pool: PoolId(pool as u16), knobs: Box::new(knobs) });
    }

    /// One of the pools; where there is one, no dice are thrown.
    fn pool(&mut self) -> usize {
        let pools = self.people.knobs.len() as u64;
        if pools == 1 { 0 } else { self.dice.below(pools) as usize }
    }

    fn change_budgets(&mut self, budgets: Vec<BudgetSpec>) {
        let (based_on, sent) = (self.version, budgets.clone());
        self.tell(Event::BudgetsChanged(Changeset { based_on, author: "ann".into(), reason: "chance".into(), budgets }));
        if self.version != based_on {
            self.budgets.extend(sent.into_iter().map(|budget| (budget.id, budget)));
        }
    }

    /// A budget gets another parent, often one that it cannot have; or it is closed, or opened again.
    fn reorganise(&mut self) {
        let all: Vec<BudgetSpec> = self.budgets.values().cloned().collect();
        let mut budget = self.dice.pick(&all[1..]).clone();
        if self.dice.once_in(3) {
            budget.closed = !budget.closed;
        } else {
            budget.parent = Some(self.dice.pick(&all).id);
            for pool in &mut budget.pools {
                pool.share = Ppm(self.dice.from(0, i64::from(pool.share.0)) as u32 / 4);
            }
        }
        self.change_budgets(vec![budget]);
        // Nothing stays closed for long.
        let closed: Vec<BudgetSpec> = self.budgets.values().filter(|budget| budget.closed).cloned().collect();
        if closed.len() > 2 {
            self.change_budgets(closed.into_iter().map(|budget| BudgetSpec { closed: false, ..budget }).collect());
        }
    }

    /// Valid, stale, above 100 %, without a parent, or below a leaf in use.
    fn edit_budgets(&mut self) {
        let all: Vec<BudgetSpec> = self.budgets.values().cloned().collect();
        let mut budget = self.dice.pick(&all[1..]).clone();
        let pool = self.pool();
        match self.dice.below(8) {
            0 => {
                let old = std::mem::replace(&mut self.version, 0);
                self.change_budgets(vec![budget]);
                self.version = self.version.max(old);
            }
            1 => {
                budget.pools.resize(budget.pools.len().max(pool + 1), PoolShare::default());
                budget.pools[pool].share = Ppm(1_000_001);
                self.change_budgets(vec![budget]);
            }
            2 => {
                let new = population::budget(all.len() as u32, Some(budget.id.0), 500_000, self.people.naming);
                self.change_budgets(vec![new]);
            }
            3 => {
                let new = population::budget(all.len() as u32, Some(777), 1, self.people.naming);
                self.change_budgets(vec![new]);
            }
            4 => {
                let new = population::budget(all.len() as u32, budget.parent.map(|id| id.0), 0, self.people.naming);
                self.change_budgets(vec![new]);
            }
            _ => {
                population::cap(&mut self.dice, &mut budget);
                let share = i64::from(budget.pools.get(pool).map_or(0, |pool| pool.share.0));
                budget.pools.resize(budget.pools.len().max(pool + 1), PoolShare::default());
                budget.pools[pool].share = Ppm(self.dice.from(0, share * 3 / 2) as u32);
                self.change_budgets(vec![budget]);
            }
        }
    }
}
