//! This machine as the engine: real processes under small supervisors that outlive the daemon.
//!
//! Each lease has a folder. The daemon writes orders into it, the lease's [`supervise`]r what happened; both only hint at each other.
//! So it does not matter who is away when: what is to be known stands in the folder.

mod bell;
mod carry;
mod cgroup;
mod check;
mod folder;
mod gpus;
mod health;
mod idle;
mod kept;
mod lease;
mod process;
mod repair;
mod status;
mod supervisor;
mod tell;
mod watch;
mod worker;

pub use gpus::discover;
pub use supervisor::supervise;
pub use tell::{checkpoint, done, input};

use super::{Capabilities, Command, Driver, EngineNode, ObservedLease, Reports};
use crate::record::Program;
use anyhow::Context;
use kept::Kept;
use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use stipend_core::id::LeaseId;
use stipend_core::quantity::Span;
use worker::{Input, Worker};

/// What the local engine is told.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where it keeps everything; nobody else's. Absolute.
    pub data: PathBuf,
    /// The nodes: names for parts of this machine.
    pub nodes: Vec<EngineNode>,
    /// Their GPUs exist in the configuration only.
    pub are_virtual: bool,
    /// The program and first arguments of a supervisor; the lease's folder is added.
    pub supervisor: Vec<OsString>,
    /// Bytes of output kept of each member of an attempt.
    pub output_max: u64,
    /// Bytes of output kept of all attempts that are over; the oldest go first.
    pub kept_bytes_max: u64,
    /// Attempts that are over whose output is kept.
    pub kept_max: usize,
    /// Run to repair a node, with `STIPEND_NODE` and `STIPEND_REASON` in its environment; empty: nobody does.
    pub repair_command: Vec<String>,
    /// Run after it: the node is healthy if it exits with 0; empty: it is then healthy anyway.
    pub health_command: Vec<String>,
    /// A lease whose GPUs do nothing for so long is reported as idle.
    pub idle_after: Span,
}

impl Settings {
    /// The defaults, with this very program as supervisor: `… supervise FOLDER`.
    pub fn new(data: PathBuf, nodes: Vec<EngineNode>, are_virtual: bool) -> Settings {
        // The link, not what it points to: so daemon and supervisors are of one version even while the file is being replaced.
        let supervisor = vec!["/proc/self/exe".into(), "supervise".into()];
        Settings {
            data,
            nodes,
            are_virtual,
            supervisor,
            output_max: 64 << 20,
            kept_bytes_max: 4 << 30,
            kept_max: 20_000,
            repair_command: Vec::new(),
            health_command: Vec::new(),
            idle_after: Span::minutes(10),
        }
    }
}

/// This machine.
pub struct Local {
    nodes: Vec<EngineNode>,
    data: PathBuf,
    to: Sender<Input>,
    threads: Vec<JoinHandle<()>>,
}

fn leases(data: &Path) -> PathBuf {
    data.join("leases")
}

fn make_folder(path: &Path, mode: u32) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(mode).create(path)
}

fn bell_path(data: &Path) -> PathBuf {
    data.join("driver.bell")
}

/// The word at which the listening thread ends.
const QUIT: &str = "quit";

impl Local {
    /// Takes over what is in the data folder, and reports from now on. [`Driver::observe`] says what is there.
    ///
    /// # Errors
    /// The data folder cannot be read or written.
    pub fn start(settings: Settings, reports: Arc<dyn Reports>) -> anyhow::Result<Local> {
        let data = settings.data.clone();
        for folder in [leases(&data), kept::folder(&data), data.join("checkpoints")] {
            make_folder(&folder, 0o711).with_context(|| format!("cannot make the folder {}", folder.display()))?;
        }
        if nix::unistd::Uid::effective().is_root() {
            // Workloads run as others, too: they may enter, to reach what is theirs, and see nothing else.
            let mode = fs::metadata(&data)?.permissions().mode();
            fs::set_permissions(&data, Permissions::from_mode(mode | 0o011))?;
        }
        let bell = bell::listen(&bell_path(&data)).context("cannot make the driver's bell")?;
        let (to, inputs) = channel();
        let hints = to.clone();
        let nodes = settings.nodes.clone();
        let kept = Kept::new(&data, settings.kept_bytes_max, settings.kept_max);
        let are_watched = !settings.are_virtual;
        let worker = Worker::new(settings, kept, reports)?;
        let named = |name: &str| std::thread::Builder::new().name(name.to_string());
        let threads = vec![
            named("driver").spawn(move || worker.run(&inputs))?,
            named("driver-bell").spawn(move || {
                bell::each(bell, |word| word != QUIT && folder::parse(word).is_none_or(|lease| hints.send(Input::Hint(lease)).is_ok()));
            })?,
        ];
        if are_watched {
            let samples = to.clone();
            // Not joined: it ends when it next has something to tell, at most some seconds after the worker.
            named("driver-gpus").spawn(move || gpus::watch(&samples))?;
        }
        Ok(Local { nodes, data, to, threads })
    }
}

impl Driver for Local {
    fn capabilities(&self) -> Capabilities {
        Capabilities { holds: false, places: true, fences: true, grace: true }
    }

    fn nodes(&self) -> Vec<EngineNode> {
        self.nodes.clone()
    }

    fn last_workload(&self) -> Option<u32> {
        let of_lease = |name: &str| folder::parse(name).map(|lease| lease.workload.0);
        let highest = |path: PathBuf, number: &dyn Fn(&str) -> Option<u32>| {
            let names = fs::read_dir(path).into_iter().flatten().flatten().filter_map(|entry| entry.file_name().into_string().ok());
            names.filter_map(|name| number(&name)).max()
        };
        let checkpoints = highest(self.data.join("checkpoints"), &|name| name.parse().ok());
        let kept = highest(kept::folder(&self.data), &of_lease);
        highest(leases(&self.data), &of_lease).max(checkpoints).max(kept)
    }

    fn check(&self, program: &Program) -> Result<(), String> {
        check::check(program)
    }

    fn command(&mut self, command: Command) {
        // The worker ends only after this is dropped; if it panicked, `observe` says so.
        let _ = self.to.send(Input::Command(command));
    }

    fn observe(&mut self) -> anyhow::Result<Vec<ObservedLease>> {
        let (answer, answered) = channel();
        // In the order of commands: what was launched before is seen.
        let sent = self.to.send(Input::Observe(answer));
        sent.ok().and_then(|()| answered.recv().ok()).context("the local driver is broken: its thread has ended")
    }

    fn output(&self, lease: LeaseId, member: u32) -> Option<PathBuf> {
        let live = folder::Folder(leases(&self.data).join(folder::name(lease))).output(member);
        let kept = kept::folder(&self.data).join(folder::name(lease)).join(live.file_name()?);
        [live, kept].into_iter().find(|path| path.exists())
    }
}

impl Drop for Local {
    /// Leaves the workloads to their supervisors.
    fn drop(&mut self) {
        let _ = self.to.send(Input::Quit);
        while bell::ring(&bell_path(&self.data), QUIT).is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock) {
            // Full of hints: they are being read.
            std::thread::yield_now();
        }
        self.threads.drain(..).for_each(|thread| {
            let _ = thread.join();
        });
    }
}
