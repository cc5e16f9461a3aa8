//! One member: its command, its environment, its output.

use super::super::folder::{Folder, Order, name};
use super::{output, user};
use crate::record::Program;
use std::io::{self, PipeWriter, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::Receiver;
use std::time::Duration;

/// What the daemon was started with that is not the workload's business.
const NOT_INHERITED: &[&str] =
    &["NOTIFY_SOCKET", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES", "WATCHDOG_USEC", "WATCHDOG_PID", "INVOCATION_ID"];

/// Which GPUs a process sees, and how they are counted.
const GPU_VARIABLES: [&str; 2] = ["CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"];

/// How long the rest of the output is waited for when no process is left.
const CLOSE_MAX: Duration = Duration::from_secs(5);

/// How far it is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Waiting,
    Restoring,
    Running,
    Over,
}

/// One of the commands that a member may run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    Restore,
    Main,
    Checkpoint,
}

impl Which {
    pub(super) fn of(self, program: &Program) -> &[String] {
        match self {
            Which::Restore => &program.restore_command,
            Which::Main => &program.command,
            Which::Checkpoint => &program.checkpoint_command,
        }
    }
}

/// A member.
pub(super) struct Member {
    pub rank: u32,
    pub node: String,
    pub phase: Phase,
    /// The process that counts now: the restore command or the command.
    pub main: Option<i32>,
    /// Its process groups, by their first process, also those that are gone.
    pub groups: Vec<i32>,
    /// Into the log, for its processes and for what there is to say; `None` where there is no log.
    log: Option<(PipeWriter, Receiver<()>)>,
}

impl Member {
    pub(super) fn new(rank: u32, node: String, folder: &Folder, output_max: u64) -> Member {
        let log = output::keep(folder.output(rank), output_max);
        let log = log.inspect_err(|error| eprintln!("member {rank} has no log: {error}")).ok();
        Member { rank, node, phase: Phase::Waiting, main: None, groups: Vec::new(), log }
    }

    pub(super) fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    /// Says something in the member's log.
    pub(super) fn say(&mut self, what: &str) {
        if let Some((log, _)) = &mut self.log {
            let _ = writeln!(log, "stipend: {what}");
        }
    }

    /// Starts one of its commands in a process group of its own.
    pub(super) fn spawn(&mut self, order: &Order, folder: &Folder, which: Which) -> io::Result<i32> {
        let (program, arguments) = which.of(&order.program).split_first().ok_or_else(|| io::Error::other("there is no command"))?;
        let other = user::of(order)?;
        let mut start = match &other {
            Some(user) => user.command(which),
            None => {
                let mut start = Command::new(program);
                start.args(arguments);
                start
            }
        };
        start.stdin(Stdio::null()).process_group(0);
        match &self.log {
            Some((log, _)) => start.stdout(log.try_clone()?).stderr(log.try_clone()?),
            None => start.stdout(Stdio::null()).stderr(Stdio::null()),
        };
        if !order.program.workdir.is_empty() {
            start.current_dir(&order.program.workdir);
        }
        environment(&mut start, order, folder, self.rank);
        // While it is still root, another user's process must not be told what to load.
        if other.is_none() {
            start.envs(own_environment(&order.program));
        }
        let pid = start.spawn()?.id().cast_signed();
        self.groups.push(pid);
        Ok(pid)
    }

    /// Returns when all output is in the log, unless somebody outside of the workload was handed the pipe and keeps it.
    pub(super) fn close(self) {
        if let Some((log, copied)) = self.log {
            drop(log);
            let _ = copied.recv_timeout(CLOSE_MAX);
        }
    }
}

/// What the workload, and the service with it, want in its environment. It can neither take others' GPUs nor hide whose its processes are.
pub(super) fn own_environment(program: &Program) -> impl Iterator<Item = (&String, &String)> {
    let is_engines = |key: &str| (key.starts_with("STIPEND_") && !key.starts_with("STIPEND_ARRAY")) || GPU_VARIABLES.contains(&key);
    program.env.iter().filter(move |(key, _)| !is_engines(key))
}

/// What a member's processes find in their environment, beside what they inherit and what the workload wants.
fn environment(start: &mut Command, order: &Order, folder: &Folder, rank: u32) {
    let inherited = std::env::vars_os().map(|(key, _)| key);
    inherited.filter(|key| key.to_string_lossy().starts_with("STIPEND_")).for_each(|key| {
        start.env_remove(key);
    });
    NOT_INHERITED.iter().for_each(|key| {
        start.env_remove(key);
    });
    start.env("PATH", path());
    let place = &order.members[rank as usize];
    let list = |all: Vec<String>| all.join(",");
    start.env("CUDA_DEVICE_ORDER", "PCI_BUS_ID");
    start.env("CUDA_VISIBLE_DEVICES", list(place.gpus.iter().map(u32::to_string).collect()));
    start.env("STIPEND_VIRTUAL", if place.is_virtual { "1" } else { "0" });
    start.env("STIPEND_WORKLOAD", order.workload.to_string());
    start.env("STIPEND_ATTEMPT", order.attempt.to_string());
    start.env("STIPEND_NAME", &order.program.name);
    start.env("STIPEND_BUDGET", &order.budget);
    start.env("STIPEND_USER", &order.user);
    start.env("STIPEND_POOL", &order.pool);
    start.env("STIPEND_NODE", &place.node);
    start.env("STIPEND_NODES", list(order.members.iter().map(|place| place.node.clone()).collect()));
    start.env("STIPEND_RANK", rank.to_string());
    start.env("STIPEND_MEMBERS", order.members.len().to_string());
    start.env("STIPEND_GPUS_PER_MEMBER", place.gpus.len().to_string());
    start.env("STIPEND_LEASE", name(order.lease()));
    start.env("STIPEND_LEASE_DIR", &folder.0);
    start.env("STIPEND_DEADLINE_FILE", folder.deadline());
    start.env("STIPEND_PROTECTED_UNTIL_FILE", folder.protected_until());
    start.env("STIPEND_CHECKPOINT_DIR", &order.checkpoints);
}

/// The search path, with this program's folder last, so that `stipend checkpoint` is always found.
fn path() -> std::ffi::OsString {
    let inherited = std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    let own = std::env::current_exe().ok().and_then(|program| program.parent().map(Path::to_path_buf));
    let all: Vec<PathBuf> = std::env::split_paths(&inherited).chain(own).collect();
    std::env::join_paths(all).unwrap_or(inherited)
}

/// Why a command could not be started, in words.
pub(super) fn why_not(program: &Program, which: Which, error: &io::Error) -> String {
    let name = which.of(program).first().map_or("", String::as_str);
    if !program.workdir.is_empty() && !Path::new(&program.workdir).is_dir() {
        return format!("cannot start {name}: the working directory {} does not exist", program.workdir);
    }
    match error.kind() {
        io::ErrorKind::NotFound => format!("cannot start {name}: no such program"),
        // One folder of the search path that may not be entered is enough for this error.
        io::ErrorKind::PermissionDenied if !name.contains('/') => {
            format!("cannot start {name}: no such program, or no permission to run it")
        }
        io::ErrorKind::PermissionDenied => format!("cannot start {name}: no permission to run it, or to enter {}", program.workdir),
        _ => format!("cannot start {name}: {error}"),
    }
}
