//! The start: the state as it was written, then what the engine really carries, then what the configuration says now.

use super::clock::Clock;
use super::directory::Directory;
use super::handle::{Handle, ReportSink};
use super::live::LiveTable;
use super::nodes::NodeTable;
use super::owed::Owed;
use super::tokens::Tokens;
use super::{Service, Who};
use crate::config::Config;
use crate::driver::{Command, Driver, ObservedLease, Reports};
use crate::store::{Kind, Reader, Restored, Store, StoreError};
use crate::wire::budget::{BudgetChange, ChangesetRequest};
use crate::wire::node::Node;
use crate::wire::token::{NewToken, Role, TokenRequest};
use crate::wire::workload::{State, Workload};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::JoinHandle;
use stipend_core::Scheduler;
use stipend_core::event::{Event, Exit};
use stipend_core::id::{LeaseId, PoolId};
use stipend_core::knobs::Knobs;
use stipend_core::quantity::{Span, Time};
use tokio::sync::broadcast;

/// Why the service cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The store fails.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The engine does not answer.
    #[error("the engine does not answer: {0}")]
    Engine(String),
    /// The configuration does not fit what is there.
    #[error("the configuration: {0}")]
    Configuration(String),
}

/// A service that runs.
pub struct Started {
    /// How to talk to it.
    pub handle: Handle,
    /// Its end: why, if it was not asked to.
    pub thread: JoinHandle<Result<(), StoreError>>,
    /// An administrator's token, made because there was none at all.
    pub first_token: Option<NewToken>,
}

/// Why a node drains that the configuration no longer names. It comes back with it.
const UNCONFIGURED: &str = "it is no longer configured";

/// Lines of the event log that a slow listener may be behind before it has to read the store.
const LINES_KEPT: usize = 4096;

/// Starts the service on what the store held.
///
/// # Errors
/// The store cannot be written, the engine does not answer, or the configuration is wrong. Nothing was commanded.
pub fn start(
    (store, restored): (Store, Restored),
    config: Config,
    administrator: &str,
    driver: impl FnOnce(std::sync::Arc<dyn Reports>) -> anyhow::Result<Box<dyn Driver>>,
) -> Result<Started, StartError> {
    let (inputs, inbox) = mpsc::channel();
    let driver = driver(Arc::new(ReportSink(inputs.clone()))).map_err(|error| StartError::Engine(format!("{error:#}")))?;
    let last_written = restored.last_written;
    let reader = store.reader()?;
    let mut service = Service::restored((store, reader), restored, driver, &config);
    service.now = service.clock.look().now;
    service.owed.skip(service.now);
    service.settle(last_written)?;
    service.configure(&config)?;
    let first_token = service.first_token(administrator);
    service.turn()?;
    let handle =
        Handle { inputs, lines: service.lines.clone(), bearers: Arc::clone(&service.tokens.bearers), pulse: service.pulse.clone() };
    let thread = std::thread::Builder::new().name("service".into()).spawn(move || service.run(&inbox));
    let thread = thread.map_err(|error| StartError::Engine(format!("no thread: {error}")))?;
    Ok(Started { handle, thread, first_token })
}

impl Service {
    fn restored((store, reader): (Store, Reader), restored: Restored, driver: Box<dyn Driver>, config: &Config) -> Service {
        let clock = Clock::new(restored.last_written);
        let now = restored.last_written.unwrap_or(super::clock::machine());
        let scheduler = restored.scheduler.unwrap_or_else(|| Scheduler::new(now));
        let mut live = LiveTable::default();
        let retries = restored.live.iter().filter_map(|view| Some((view.retry_ms?, view.id))).collect();
        restored.live.into_iter().for_each(|view| live.restore(view));
        let mut pending = restored.pending;
        pending.sort_by_key(|changeset| (changeset.effective_ms, changeset.id));
        Service {
            next_workload: driver.last_workload().map_or(0, |last| last + 1).max(scheduler.next_workload().0),
            scheduler,
            store,
            reader,
            pulse: Default::default(),
            owed: Owed::new(now, &restored.values),
            epoch: restored.epoch,
            driver,
            config: config.daemon.clone(),
            clock,
            now,
            directory: Directory::new(restored.names, restored.people),
            live,
            nodes: NodeTable::new(&restored.values),
            tokens: Tokens::new(restored.tokens),
            pending,
            next_changeset: restored.last_changeset + 1,
            next_line: restored.last_line + 1,
            lines: broadcast::Sender::new(LINES_KEPT),
            batch: Default::default(),
            log: Vec::new(),
            over: Vec::new(),
            retries,
            keys: Default::default(),
            after: Vec::new(),
            commands: Vec::new(),
            stirred: true,
            prune_at: now,
        }
    }

    /// What the engine really carries against what the scheduler believes: the difference, in the order of its times, then the gap.
    fn settle(&mut self, last_written: Option<Time>) -> Result<(), StartError> {
        let observed = self.driver.observe().map_err(|error| StartError::Engine(format!("{error:#}")))?;
        let mut observed: BTreeMap<LeaseId, ObservedLease> = observed.into_iter().map(|one| (one.lease, one)).collect();
        let believed: Vec<Workload> = self.live.iter().map(|live| live.view.clone()).filter(|view| view.state.is_leased()).collect();
        let mut facts: Vec<(Time, Fact)> = Vec::new();
        let mut found = Found::default();
        for view in believed {
            let lease = LeaseId { workload: stipend_core::id::WorkloadId(view.id), attempt: view.attempts };
            match observed.remove(&lease) {
                Some(seen) => {
                    *(if seen.end.is_some() { &mut found.ended } else { &mut found.adopted }) += 1;
                    self.compare(&view, &seen, &mut facts);
                }
                None if view.state == State::Starting => {
                    found.launched += 1;
                    self.launch(lease);
                }
                None => {
                    found.lost += 1;
                    facts.push((self.now, Fact::Event(Event::LeaseEnded { lease, exit: Exit::Infrastructure })));
                }
            }
        }
        for (lease, unknown) in observed {
            found.strangers += usize::from(unknown.end.is_none());
            // Carried for nobody: left over from another life of this store.
            match unknown.end {
                Some(_) => self.commands.push(Command::Forget { lease }),
                None => self.commands.push(Command::Stop { lease, grace: Span::ZERO }),
            }
        }
        if last_written.is_some() {
            tracing::info!("{}", found.text());
        }
        facts.sort_by_key(|(at, _)| *at);
        for (at, fact) in facts {
            match fact {
                Fact::Ended(seen) => seen.end.into_iter().for_each(|end| self.lease_ended(seen.lease, end)),
                Fact::Event(event) => {
                    let _ = self.tell_at(at.min(self.now), event);
                }
            }
        }
        if let Some(from) = last_written.filter(|from| *from < self.now) {
            self.tell_quietly(Event::Gap { from });
        }
        Ok(())
    }

    fn compare(&mut self, view: &Workload, seen: &ObservedLease, facts: &mut Vec<(Time, Fact)>) {
        let lease = seen.lease;
        if let (State::Starting, Some(at)) = (view.state, seen.running_since) {
            facts.push((at, Fact::Event(Event::LeaseRunning { lease })));
        }
        let told = [(seen.checkpoint, Event::Checkpointed { lease }), (seen.input, Event::Input { lease })];
        facts.extend(told.into_iter().filter_map(|(at, event)| Some((at?, Fact::Event(event)))));
        match (seen.end, view.state) {
            (Some(end), _) => facts.push((end.at, Fact::Ended(seen.clone()))),
            (None, State::Stopping) if seen.is_stopping => {}
            // The command was lost, and with it the time: a short grace is left.
            (None, State::Stopping) => self.commands.push(Command::Stop { lease, grace: Span::seconds(10) }),
            (None, State::Starting) => self.launch(lease),
            _ => {}
        }
    }

    /// What the configuration says now: pools and their knobs, nodes, the first budgets.
    fn configure(&mut self, config: &Config) -> Result<(), StartError> {
        let nodes = self.driver.nodes();
        let mut pools: Vec<(String, Knobs)> = config.pools.iter().map(|pool| (pool.name.clone(), pool.knobs.clone())).collect();
        for node in &nodes {
            if !pools.iter().any(|(name, _)| *name == node.pool) {
                pools.push((node.pool.clone(), Knobs::default()));
            }
        }
        for (name, knobs) in pools {
            let pool = PoolId(self.directory.number(Kind::Pool, &name) as u16);
            if self.scheduler.knobs(pool) != Some(&knobs) {
                let set = self.tell(Event::KnobsSet { pool, knobs: Box::new(knobs) });
                set.map_err(|rejection| StartError::Configuration(format!("pool {name}: {}", self.sentence(&rejection))))?;
            }
        }
        nodes.iter().for_each(|node| self.node_joins(node));
        self.act();
        let missing: Vec<_> = self.nodes.iter().filter(|(_, node)| !nodes.iter().any(|known| known.name == node.name)).collect();
        let is_back =
            |node: &Node| node.state == "drained" && node.reason == UNCONFIGURED && nodes.iter().any(|known| known.name == node.name);
        let back: Vec<_> = self.nodes.iter().filter(|(_, node)| is_back(node)).map(|(id, _)| id).collect();
        let missing: Vec<_> = missing.into_iter().filter(|(_, node)| node.state == "ready").map(|(id, _)| id).collect();
        for node in missing {
            let (severity, reason) = (stipend_core::spec::Severity::Maintenance, UNCONFIGURED.to_string());
            self.tell_quietly(Event::NodeDrainRequested { node, severity, reason });
        }
        for node in back {
            self.tell_quietly(Event::NodeReady { node });
        }
        self.repair_again();
        self.first_budgets(config)
    }

    /// The tree of a new store: as configured, else one budget for everybody.
    fn first_budgets(&mut self, config: &Config) -> Result<(), StartError> {
        if self.scheduler.tree().root().is_some() {
            return Ok(());
        }
        let everybody = BudgetChange { path: "lab".into(), members: Some(vec!["*".into()]), ..BudgetChange::default() };
        let budgets = if config.budgets.is_empty() { vec![everybody] } else { config.budgets.clone() };
        let request = ChangesetRequest { based_on: 0, reason: "the first budgets".into(), effective_ms: None, budgets };
        let who = Who { user: "configuration".into(), role: Role::Admin };
        let changed = self.change_budgets(&who, request, false);
        changed.map(|_| ()).map_err(|problem| StartError::Configuration(problem.message))
    }

    fn first_token(&mut self, administrator: &str) -> Option<NewToken> {
        if !self.tokens.is_empty() {
            return None;
        }
        let who = Who { user: administrator.into(), role: Role::Admin };
        let request = TokenRequest { user: administrator.into(), role: Role::Admin, note: "made at the first start".into() };
        self.make_token(&who, request).ok()
    }
}

/// What a start found of the leases that there should be.
#[derive(Default)]
struct Found {
    adopted: usize,
    ended: usize,
    lost: usize,
    launched: usize,
    strangers: usize,
}

impl Found {
    fn text(&self) -> String {
        let parts = [
            (self.adopted, "adopted as they run"),
            (self.ended, "settled, as they ended meanwhile"),
            (self.lost, "queued again, as nothing of them is left"),
            (self.launched, "started, as they had not been"),
            (self.strangers, "stopped, as nobody knows them"),
        ];
        let told: Vec<String> = parts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
        if told.is_empty() { "no workload ran when the daemon ended".into() } else { format!("workloads: {}", told.join("; ")) }
    }
}

/// Something that happened while the daemon was away.
enum Fact {
    Ended(ObservedLease),
    Event(Event),
}
