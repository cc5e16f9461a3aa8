//! The driver's thread: carries out commands one after the other, reads what supervisors wrote, reports it.

use super::folder::{Folder, Order, Place, name, parse, write_moment};
use super::kept::Kept;
use super::lease::{Carrier, Lease};
use super::process::{kill_all, marked};
use super::repair::Repairs;
use super::status::now;
use super::{Settings, bell, bell_path, leases};
use crate::driver::{Command, End, Launch, ObservedLease, Report, Reports};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};
use stipend_core::event::Exit;
use stipend_core::id::LeaseId;
use stipend_core::quantity::{Span, Time};
use stipend_core::spec::Severity;

/// Hints may get lost, and supervisors die without one.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// How often a supervisor may fail before it has begun.
const STARTS_MAX: u32 = 3;

/// What the thread is told.
pub(super) enum Input {
    Command(Command),
    /// Something happened to this lease.
    Hint(LeaseId),
    Observe(Sender<Vec<ObservedLease>>),
    Quit,
}

pub(super) struct Worker {
    settings: Settings,
    kept: Kept,
    reports: Arc<dyn Reports>,
    leases: BTreeMap<LeaseId, Lease>,
    /// Launches that wait for the end of an older epoch's lease of the same name.
    waiting: Vec<Launch>,
    repairs: Repairs,
}

impl Worker {
    pub(super) fn new(settings: Settings, kept: Kept, reports: Arc<dyn Reports>) -> io::Result<Worker> {
        let repairs = Repairs {
            repair: settings.repair_command.clone(),
            health: settings.health_command.clone(),
            reports: Arc::clone(&reports),
            under_way: Arc::default(),
        };
        let mut worker = Worker { settings, kept, reports, leases: BTreeMap::new(), waiting: Vec::new(), repairs };
        worker.adopt()?;
        Ok(worker)
    }

    /// Finds the leases of the daemon before.
    fn adopt(&mut self) -> io::Result<()> {
        for entry in fs::read_dir(leases(&self.settings.data))? {
            let path = entry?.path();
            let Some(lease) = path.file_name().and_then(|name| parse(name.to_str()?)) else {
                // A launch that the daemon before did not finish: nothing was started.
                fs::remove_dir_all(&path)?;
                continue;
            };
            let folder = Folder(path);
            let order = match folder.order() {
                Ok(order) => order,
                // The end of a `forget` that did not finish.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    fs::remove_dir_all(&folder.0)?;
                    continue;
                }
                Err(error) => return Err(error),
            };
            let nodes = order.members.into_iter().map(|place| place.node).collect();
            let mut found = Lease::new(lease, folder, order.epoch, nodes);
            found.read(|_| {})?;
            self.leases.insert(lease, found);
        }
        Ok(())
    }

    pub(super) fn run(mut self, inputs: &Receiver<Input>) {
        let mut look = Instant::now();
        loop {
            match inputs.recv_timeout(look.saturating_duration_since(Instant::now())) {
                Ok(Input::Command(command)) => self.command(command),
                Ok(Input::Hint(lease)) => self.look_at(lease),
                Ok(Input::Observe(answer)) => {
                    self.look();
                    let _ = answer.send(self.leases.values().map(Lease::observed).collect());
                }
                Err(RecvTimeoutError::Timeout) => {
                    self.look();
                    look = Instant::now() + LOOK_EVERY;
                }
                Ok(Input::Quit) | Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn command(&mut self, command: Command) {
        match command {
            Command::Launch(launch) => self.launch(*launch),
            Command::Protected { lease, until } => self.protected(lease, until),
            Command::Stop { lease, grace } => self.stop(lease, grace),
            Command::Forget { lease } => self.forget(lease),
            Command::Repair { node, reason } => self.repairs.start(node, reason),
        }
    }

    fn launch(&mut self, launch: Launch) {
        let lease = launch.lease;
        if let Some(known) = self.leases.get(&lease) {
            match launch.epoch.cmp(&known.epoch) {
                // Again: whether it was started shows a look.
                std::cmp::Ordering::Equal => self.look_at(lease),
                std::cmp::Ordering::Less => tracing::warn!(%lease, "a launch of an older epoch is not carried out"),
                std::cmp::Ordering::Greater => {
                    self.stop(lease, Span::ZERO);
                    self.waiting.push(launch);
                    self.look_at(lease);
                }
            }
            return;
        }
        if let Some(over) = self.kept.find(lease) {
            if over.epoch >= launch.epoch {
                self.report_end(lease, over.end);
                return;
            }
            self.kept.remove(lease);
        }
        let folder = Folder(leases(&self.settings.data).join(name(lease)));
        let order = self.order(&launch);
        let nodes = launch.members.into_iter().map(|member| member.node).collect();
        let new = Lease::new(lease, folder, launch.epoch, nodes);
        let made = fs::create_dir_all(&order.checkpoints).and_then(|()| new.folder.create(&order));
        match made {
            Ok(()) => {
                self.leases.insert(lease, new);
                self.start(lease);
            }
            Err(error) => self.cannot_start(&new, &error),
        }
    }

    fn order(&self, launch: &Launch) -> Order {
        let places = launch.members.iter().map(|member| Place {
            node: member.node.clone(),
            gpus: member.gpus.clone(),
            is_virtual: self.settings.are_virtual,
        });
        Order {
            workload: launch.lease.workload.0,
            attempt: launch.lease.attempt,
            epoch: launch.epoch,
            program: (*launch.program).clone(),
            members: places.collect(),
            user: launch.user.clone(),
            budget: launch.budget.clone(),
            pool: launch.pool.clone(),
            cpus_per_member: launch.cpus_per_member,
            memory_per_member: launch.memory_per_member,
            output_max: self.settings.output_max,
            bell: bell_path(&self.settings.data),
            checkpoints: self.settings.data.join("checkpoints").join(launch.lease.workload.0.to_string()),
        }
    }

    /// Starts a supervisor. If there is one already, the lock makes this one end at once.
    fn start(&mut self, lease: LeaseId) {
        let Some(known) = self.leases.get_mut(&lease) else { return };
        let (program, arguments) = self.settings.supervisor.split_first().expect("a supervisor is configured");
        known.started += 1;
        let log = fs::OpenOptions::new().create(true).append(true).open(known.folder.supervisor_log());
        let spawned = log.and_then(|log| {
            let mut command = std::process::Command::new(program);
            command.args(arguments).arg(&known.folder.0).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
            command.spawn()
        });
        match spawned {
            Ok(child) => known.child = Some(child),
            Err(error) => self.never_began(lease, &error),
        }
    }

    /// No supervisor will begin this lease.
    fn never_began(&mut self, lease: LeaseId, error: &io::Error) {
        let Some(known) = self.leases.get_mut(&lease) else { return };
        // Whoever has the lock is about to begin.
        let Ok(Some(_lock)) = known.folder.lock() else { return };
        if let Err(error) = known.write_end(Exit::Infrastructure, now()) {
            tracing::error!(%lease, %error, "cannot write the end of a lease that could not be started");
        }
        let Some(known) = self.leases.remove(&lease) else { return };
        self.cannot_start(&known, error);
        let _ = self.kept.take(&known);
    }

    /// Nothing of it was started, and the reason is not the workload.
    fn cannot_start(&self, lease: &Lease, error: &io::Error) {
        tracing::error!(lease = %lease.id, %error, "cannot start a supervisor");
        for node in &lease.nodes {
            let reason = format!("cannot start a workload: {error}");
            self.reports.report(Report::NodeFault { node: node.clone(), severity: Severity::Sick, reason });
        }
        let end = End { exit: Exit::Infrastructure, at: now(), code: None, signal: None };
        self.report_end(lease.id, Some(end));
    }

    fn report_end(&self, lease: LeaseId, end: Option<End>) {
        if let Some(end) = end {
            self.reports.report(Report::Ended { lease, end });
        }
    }

    fn protected(&self, lease: LeaseId, until: Option<Time>) {
        if let Some(known) = self.leases.get(&lease)
            && let Err(error) = write_moment(&known.folder.protected_until(), until)
        {
            tracing::warn!(%lease, %error, "cannot tell a workload until when it is protected");
        }
    }

    fn stop(&mut self, lease: LeaseId, grace: Span) {
        let Some(known) = self.leases.get(&lease) else {
            // It is over, or was never here: both mean that no process of it is left.
            let over = self.kept.find(lease).and_then(|over| over.end);
            let never = End { exit: Exit::Infrastructure, at: now(), code: None, signal: None };
            self.report_end(lease, Some(over.unwrap_or(never)));
            return;
        };
        if let Err(error) = known.folder.write_stop(grace) {
            // The service gives it again.
            tracing::error!(%lease, %error, "cannot order a stop");
        }
        // A hint; the supervisor looks by itself, too.
        let _ = bell::ring(&known.folder.control(), "look");
        self.look_at(lease);
    }

    fn forget(&mut self, lease: LeaseId) {
        self.look_at(lease);
        let Some(known) = self.leases.get(&lease).filter(|known| known.end.is_some()) else { return };
        match self.kept.take(known) {
            Ok(()) => drop(self.leases.remove(&lease)),
            Err(error) => tracing::warn!(%lease, %error, "cannot put away what is left of a lease"),
        }
    }

    fn look(&mut self) {
        let all: Vec<LeaseId> = self.leases.keys().copied().collect();
        all.into_iter().for_each(|lease| self.look_at(lease));
    }

    /// Reads what is new of a lease, and does what its supervisor can no longer do.
    fn look_at(&mut self, lease: LeaseId) {
        let Some(known) = self.leases.get_mut(&lease) else { return };
        let carrier = match known.look(|report| self.reports.report(report)) {
            Ok(carrier) => carrier,
            Err(error) => return tracing::error!(%lease, %error, "cannot read what happened to a lease"),
        };
        match carrier {
            Carrier::Lives if known.end.is_some() => self.relaunch(lease),
            Carrier::Lives => {}
            Carrier::NotYet if known.started < STARTS_MAX => self.start(lease),
            Carrier::NotYet => self.never_began(lease, &io::Error::other("its supervisor ends at once; see supervisor.log")),
            Carrier::Died => self.bury(lease),
        }
    }

    /// Ends what a supervisor left that died. The end is written when nothing is left.
    fn bury(&mut self, lease: LeaseId) {
        let Some(known) = self.leases.get_mut(&lease) else { return };
        // Whoever has the lock is alive, whatever it looked like.
        let Ok(Some(_lock)) = known.folder.lock() else { return };
        let at = if known.of_another_boot() {
            known.last_sign()
        } else {
            let left = || marked(&known.groups, "STIPEND_LEASE_DIR", &known.folder.0);
            if kill_all(left) > 0 {
                return;
            }
            now()
        };
        match known.write_end(Exit::Infrastructure, at) {
            Ok(()) => self.look_at(lease),
            Err(error) => tracing::error!(%lease, %error, "cannot write the end of a lease"),
        }
    }

    /// An older epoch's lease is over: now the right one may start.
    fn relaunch(&mut self, lease: LeaseId) {
        let Some(at) = self.waiting.iter().position(|launch| launch.lease == lease) else { return };
        let launch = self.waiting.swap_remove(at);
        self.forget_older(lease);
        self.launch(launch);
    }

    fn forget_older(&mut self, lease: LeaseId) {
        if let Some(known) = self.leases.remove(&lease)
            && let Err(error) = fs::remove_dir_all(&known.folder.0)
        {
            tracing::error!(%lease, %error, "cannot remove the folder of an older epoch's lease");
        }
    }
}
