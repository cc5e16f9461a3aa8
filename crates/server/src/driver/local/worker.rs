//! The driver's thread: carries out commands one after the other, reads what supervisors wrote, reports it.

use super::folder::{Folder, Order, Place, name, parse, write_moment};
use super::health::{Health, Sample};
use super::idle::Idle;
use super::kept::Kept;
use super::lease::Lease;
use super::repair::Repairs;
use super::status::now;
use super::{Settings, bell, bell_path, cgroup, leases, make_folder};
use crate::driver::{Command, End, Launch, ObservedLease, Report, Reports};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};
use stipend_core::event::Exit;
use stipend_core::id::LeaseId;
use stipend_core::quantity::{Span, Time};

/// Hints may get lost, and supervisors die without one.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// What the thread is told.
pub(super) enum Input {
    Command(Command),
    /// Something happened to this lease.
    Hint(LeaseId),
    /// How the GPUs are.
    Gpus(Vec<Sample>),
    /// The driver of a GPU reported this error.
    Xid {
        gpu: u32,
        xid: u64,
    },
    Observe(Sender<Vec<ObservedLease>>),
    Quit,
}

/// So often the processes of unknown leases are looked for before a process that does not die is left behind.
const STRAY_PASSES: u32 = 50;

pub(super) struct Worker {
    pub(super) settings: Settings,
    pub(super) kept: Kept,
    pub(super) reports: Arc<dyn Reports>,
    pub(super) leases: BTreeMap<LeaseId, Lease>,
    /// Launches that wait for the end of an older epoch's lease of the same name.
    pub(super) waiting: Vec<Launch>,
    pub(super) repairs: Repairs,
    /// The control group for leases, where the machine lets us have one.
    pub(super) groups: Option<PathBuf>,
    pub(super) health: Health,
    pub(super) idle: Idle,
}

impl Worker {
    pub(super) fn new(settings: Settings, kept: Kept, reports: Arc<dyn Reports>) -> io::Result<Worker> {
        let repairs = Repairs {
            repair: settings.repair_command.clone(),
            health: settings.health_command.clone(),
            reports: Arc::clone(&reports),
            under_way: Arc::default(),
        };
        let groups = cgroup::prepare(&settings.data);
        if let Err(error) = &groups {
            tracing::warn!("limits on CPUs and memory are not enforced: {error}");
        }
        let groups = groups.ok();
        let idle = Idle::new(settings.idle_after);
        let health = Health::default();
        let mut worker = Worker { settings, kept, reports, leases: BTreeMap::new(), waiting: Vec::new(), repairs, groups, health, idle };
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
            let mut found = Lease::new(lease, folder, order.epoch, order.members);
            found.read(|_| {})?;
            self.leases.insert(lease, found);
        }
        // What runs for a lease that nobody knows any more would run beside its next attempt.
        for _ in 0..STRAY_PASSES {
            if self.kill_strays(None) == 0 {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        Ok(())
    }

    pub(super) fn run(mut self, inputs: &Receiver<Input>) {
        let mut look = Instant::now();
        loop {
            match inputs.recv_timeout(look.saturating_duration_since(Instant::now())) {
                Ok(Input::Command(command)) => self.command(command),
                Ok(Input::Hint(lease)) => self.look_at(lease),
                Ok(Input::Gpus(samples)) => self.samples(&samples),
                Ok(Input::Xid { gpu, xid }) => self.xid(gpu, xid),
                Ok(Input::Observe(answer)) => {
                    self.look();
                    let _ = answer.send(self.leases.values().map(Lease::observed).collect());
                }
                Err(RecvTimeoutError::Timeout) => {
                    self.look();
                    look = Instant::now() + LOOK_EVERY;
                    if let Err(error) = self.kept.load() {
                        tracing::warn!(%error, "the output of what is over cannot be looked through");
                    }
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
            Command::Repair { node, reason } => {
                self.health.repaired();
                self.repairs.start(node, reason);
            }
        }
    }

    pub(super) fn launch(&mut self, launch: Launch) {
        let lease = launch.lease;
        if let Some(known) = self.leases.get(&lease) {
            match launch.epoch.cmp(&known.epoch) {
                // Again: it was begun, or somebody is about to, or the daemon before did not come to it.
                std::cmp::Ordering::Equal if known.is_untouched() => self.start(lease),
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
        let new = Lease::new(lease, folder, launch.epoch, order.members.clone());
        let made = make_folder(&order.checkpoints, 0o700).and_then(|()| new.folder.create(&order));
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
            groups: self.groups.clone(),
            output_max: self.settings.output_max,
            bell: bell_path(&self.settings.data),
            checkpoints: self.settings.data.join("checkpoints").join(launch.lease.workload.0.to_string()),
        }
    }

    pub(super) fn report_end(&self, lease: LeaseId, end: Option<End>) {
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

    pub(super) fn stop(&mut self, lease: LeaseId, grace: Span) {
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
        if known.is_untouched() {
            // The supervisor sees the order, and only says that it ended.
            return self.start(lease);
        }
        // A hint; the supervisor looks by itself, too.
        let _ = bell::ring(&known.folder.control(), "look");
        self.look_at(lease);
    }

    fn forget(&mut self, lease: LeaseId) {
        self.look_at(lease);
        let Some(known) = self.leases.get(&lease).filter(|known| known.end.is_some()) else { return };
        match self.kept.take(known) {
            Ok(()) => {
                self.groups.iter().for_each(|groups| cgroup::remove(&groups.join(name(lease))));
                self.leases.remove(&lease);
            }
            Err(error) => tracing::warn!(%lease, %error, "cannot put away what is left of a lease"),
        }
    }
}
