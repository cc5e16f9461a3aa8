//! The service: one thread that owns the scheduler, and the loop that every shell of the core has.
//!
//! A turn takes all inputs that are there, tells the core, lets it decide once, does what follows inside the daemon, writes everything down
//! in one transaction, and only then answers and commands the engine. What is not on disk has not happened.

mod act;
mod answers;
mod budgets;
mod clock;
mod directory;
mod fork;
mod gates;
mod handle;
mod history;
mod input;
mod live;
mod losses;
mod nodes;
mod owed;
mod pulse;
mod reports;
mod requests;
mod restore;
mod submit;
mod tokens;

pub(crate) use directory::Directory;
pub use handle::{Handle, Who};
pub use history::Picture;
pub use input::Answer;
pub use owed::OwedHour;
pub use pulse::Pulse;
pub use restore::{StartError, Started, start};
pub(crate) use submit::spec_of_submission;

use crate::config::DaemonConfig;
use crate::driver::{Command, Driver};
use crate::store::{Batch, Line, Made, Reader, Step, Store, StoreError, WorkloadRow};
use crate::wire::budget::Changeset;
use clock::Clock;
use directory::Labels;
use input::Input;
use live::LiveTable;
use nodes::NodeTable;
use owed::Owed;
use pulse::timed;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;
use stipend_core::Scheduler;
use stipend_core::entry::Entry;
use stipend_core::event::{Event, Rejection};
use stipend_core::quantity::{Span, Time};
use stipend_sim::refusal::Refusal;
use tokens::Tokens;
use tokio::sync::broadcast;

/// At most so many inputs share a turn: whoever came first does not wait for a flood.
const INPUTS_MAX: usize = 2000;

/// So many workloads are named in the daemon's own log.
const NAMED_MAX: usize = 20;

/// So many rounds of deciding and of what follows from it fit into a turn.
const ROUNDS_MAX: u32 = 16;

/// The daemon's state, owned by one thread.
pub struct Service {
    scheduler: Scheduler,
    store: Store,
    reader: Reader,
    pulse: Pulse,
    owed: Owed,
    epoch: u64,
    driver: Box<dyn Driver>,
    config: DaemonConfig,
    clock: Clock,
    now: Time,
    directory: Directory,
    live: LiveTable,
    nodes: NodeTable,
    tokens: Tokens,
    /// Changesets that wait for their date, by date.
    pending: Vec<Changeset>,
    next_changeset: u64,
    next_workload: u32,
    next_line: u64,
    lines: broadcast::Sender<Arc<Line>>,
    /// What this turn writes.
    batch: Batch,
    /// What the scheduler said and nobody has acted on yet, each with its time: what is told late has its own.
    log: Vec<(Time, Entry)>,
    /// Idempotency keys that are not on disk yet, by user: what they made.
    keys: std::collections::HashMap<(String, String), Made>,
    /// Ended since the gates were last looked at, unless they go on.
    over: Vec<u32>,
    /// Workloads that try again then, after leases that were lost.
    retries: std::collections::BTreeSet<(i64, u32)>,
    /// What it does when that is on disk.
    after: Vec<input::Question>,
    commands: Vec<Command>,
    /// Something was told that may change a decision.
    stirred: bool,
    /// When old history is looked for next.
    prune_at: Time,
}

impl Service {
    /// The loop: until everybody who could say something is gone, or the store fails.
    fn run(mut self, inputs: &Receiver<Input>) -> Result<(), StoreError> {
        let mut open = true;
        while open {
            match inputs.recv_timeout(self.patience()) {
                Ok(first) => {
                    self.look();
                    open = self.take(first);
                    for input in inputs.try_iter().take(INPUTS_MAX) {
                        open &= self.take(input);
                    }
                }
                Err(RecvTimeoutError::Timeout) => self.look(),
                Err(RecvTimeoutError::Disconnected) => open = false,
            }
            self.turn()?;
        }
        self.store.snapshot(self.now, &self.scheduler)?;
        tracing::info!("stopped: {}", self.goes_on());
        Ok(())
    }

    /// What a daemon that stops leaves to its workloads' supervisors.
    fn goes_on(&self) -> String {
        let views = || self.live.iter().map(|live| &live.view);
        let running: Vec<String> = views().filter(|view| view.state.is_leased()).map(|view| format!("w{}", view.id)).collect();
        let waiting = views().count() - running.len();
        let named = running.iter().take(NAMED_MAX).cloned().collect::<Vec<_>>().join(", ");
        let more = if running.len() > NAMED_MAX { ", …" } else { "" };
        match running.len() {
            0 => format!("nothing runs, {waiting} wait; stipend serve goes on from here"),
            count => format!("{count} run on without the daemon ({named}{more}), {waiting} wait; stipend serve takes them over"),
        }
    }

    /// How long nothing is due.
    fn patience(&self) -> Duration {
        let dates = self.pending.first().map(|changeset| Time(changeset.effective_ms));
        let due =
            [self.scheduler.next_wakeup(), dates, self.owed.due(), self.next_retry(), self.nodes.next_back()].into_iter().flatten().min();
        let wait = due.map_or(Span::minutes(1), |at| (at - self.clock.expected()).clamp(Span::ZERO, Span::minutes(1)));
        Duration::from_millis(wait.0.unsigned_abs() + u64::from(wait == Span::ZERO && !self.stirred))
    }

    /// What time it is; whether the daemon was away.
    fn look(&mut self) {
        let look = self.clock.look();
        self.now = self.now.max(look.now);
        if look.jumped > Span::minutes(1) {
            self.owed.skip(self.now);
            tracing::warn!("the clock jumped by {}: decisions go slowly for a while", look.jumped);
            self.tell_quietly(Event::Gap { from: look.now - look.jumped });
        }
    }

    /// Takes one input in; `false` ends the loop.
    fn take(&mut self, input: Input) -> bool {
        match input {
            Input::Shutdown => return false,
            Input::Ask(question) => self.after.push(question),
            Input::Report(report) => self.report(report),
            request => self.request(request),
        }
        true
    }

    /// Decides, does what follows, writes it down, answers, commands.
    fn turn(&mut self) -> Result<(), StoreError> {
        self.apply_dated_changesets();
        self.retry();
        self.take_back();
        for _ in 0..ROUNDS_MAX {
            self.act();
            if !self.stirred && self.scheduler.next_wakeup().is_none_or(|at| at > self.now) {
                break;
            }
            self.stirred = false;
            let mut entries = Vec::new();
            let plan = timed(&self.pulse.cycles, || self.scheduler.decide(self.now, &mut entries));
            self.heard(entries);
            self.batch.steps.push(Step::Plan { at: self.now, plan });
        }
        self.act();
        self.meter_owed();
        self.write()?;
        for answer in std::mem::take(&mut self.after) {
            answer(self);
        }
        for command in std::mem::take(&mut self.commands) {
            self.driver.command(command);
        }
        self.prune()
    }

    /// Writes down what this turn changed, if it changed anything.
    fn write(&mut self) -> Result<(), StoreError> {
        let mut batch = std::mem::take(&mut self.batch);
        batch.names = self.directory.take_fresh();
        batch.values = self.nodes.take_changed();
        batch.values.extend(self.owed.take_changed(self.now));
        let live = &mut self.live;
        let submissions = std::mem::take(&mut batch.workloads);
        batch.workloads = live.take_changed().into_iter().map(|view| WorkloadRow { view, submission: None }).collect();
        for row in submissions {
            match batch.workloads.binary_search_by_key(&row.view.id, |known| known.view.id) {
                Ok(index) => batch.workloads[index].submission = row.submission,
                Err(index) => batch.workloads.insert(index, row),
            }
        }
        if batch.is_empty() {
            return Ok(());
        }
        batch.digest = self.store.wants_digest().then(|| self.scheduler.digest());
        self.owed.touch();
        timed(&self.pulse.commits, || self.store.commit(&batch))?;
        self.keys.clear();
        for line in batch.lines {
            // Nobody may be listening.
            let _ = self.lines.send(Arc::new(line));
        }
        if self.store.wants_snapshot() {
            self.store.snapshot_aside(self.now, &self.scheduler)?;
        }
        Ok(())
    }

    /// Lets old history go, a little at a time.
    fn prune(&mut self) -> Result<(), StoreError> {
        let keep = self.config.keep_history.0;
        if keep > Span::ZERO && self.now >= self.prune_at {
            let more = self.store.prune((self.now - keep).0)?;
            self.prune_at = self.now + if more { Span::seconds(1) } else { Span::minutes(1) };
        }
        Ok(())
    }

    /// Tells the core a fact; what it refuses is not written down.
    fn tell(&mut self, event: Event) -> Result<(), Rejection> {
        self.tell_at(self.now, event)
    }

    fn tell_at(&mut self, at: Time, event: Event) -> Result<(), Rejection> {
        let mut entries = Vec::new();
        let told = self.scheduler.apply(at, &event, &mut entries);
        match &told {
            Ok(()) => self.batch.steps.push(Step::Event { at, event }),
            // Refused; but time went on, and what that brought is in the log: a replay must not bring it again.
            Err(_) if !entries.is_empty() => self.batch.steps.push(Step::Event { at, event: Event::Tick }),
            Err(_) => {}
        }
        self.stirred |= told.is_ok();
        self.heard(entries);
        told
    }

    fn heard(&mut self, entries: Vec<Entry>) {
        let at = self.scheduler.now();
        self.log.extend(entries.into_iter().map(|entry| (at, entry)));
    }

    /// Tells a fact of the daemon's own; a refusal is worth a line in the daemon's log.
    fn tell_quietly(&mut self, event: Event) {
        let shown = format!("{event:?}");
        if let Err(rejection) = self.tell(event) {
            tracing::debug!("{}: {shown}", self.sentence(&rejection));
        }
    }

    /// A refusal as a sentence.
    fn sentence(&self, rejection: &Rejection) -> String {
        Refusal { rejection, names: &self.labels() }.to_string()
    }

    fn labels(&self) -> Labels<'_> {
        Labels { directory: &self.directory, tree: self.scheduler.tree() }
    }
}
