//! Processes as `/proc` shows them. A process is known by its id and the tick at which it started: ids are used again.

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::OnceLock;

/// A process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Process {
    pub pid: i32,
    pub parent: i32,
    pub group: i32,
    /// In ticks since the boot.
    pub start: u64,
    /// Dead, and not reaped yet.
    pub zombie: bool,
}

/// The process of this id.
pub(super) fn find(pid: i32) -> Option<Process> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything, spaces and parentheses too.
    let fields: Vec<&str> = stat[stat.rfind(')')? + 1..].split_ascii_whitespace().collect();
    let number = |at: usize| fields.get(at)?.parse().ok();
    let zombie = matches!(*fields.first()?, "Z" | "X" | "x");
    Some(Process { pid, parent: number(1)?, group: number(2)?, start: fields.get(19)?.parse().ok()?, zombie })
}

/// Whether this very process lives.
pub(super) fn alive(pid: i32, start: u64) -> bool {
    find(pid).is_some_and(|process| process.start == start && !process.zombie)
}

/// When the process started, for [`alive`]; 0 if it is gone.
pub(super) fn start_of(pid: i32) -> u64 {
    find(pid).map_or(0, |process| process.start)
}

/// All processes, by id.
fn all() -> Vec<Process> {
    let names = fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let mut found: Vec<Process> = names.filter_map(|name| find(name.parse().ok()?)).collect();
    found.sort_by_key(|process| process.pid);
    found
}

/// All living processes that come from this one.
pub(super) fn descendants(of: i32) -> Vec<Process> {
    let all = all();
    let mut family = BTreeSet::from([of]);
    loop {
        let before = family.len();
        family.extend(all.iter().filter(|process| family.contains(&process.parent)).map(|process| process.pid).collect::<Vec<_>>());
        if family.len() == before {
            break;
        }
    }
    all.into_iter().filter(|process| process.pid != of && !process.zombie && family.contains(&process.pid)).collect()
}

/// All living processes that are of one of these groups, or carry this variable in the environment that they were started with.
/// A group is given by its first process; once that is gone, the group's number may be another's, and only the variable counts.
pub(super) fn marked(groups: &[(i32, u64)], variable: &str, value: &Path) -> Vec<Process> {
    let is_first = |&&(pid, start): &&(i32, u64)| find(pid).is_some_and(|process| process.start == start);
    let groups: BTreeSet<i32> = groups.iter().filter(is_first).map(|&(pid, _)| pid).collect();
    let mark = [variable.as_bytes(), b"=", value.as_os_str().as_bytes()].concat();
    let carries = |process: &Process| {
        let environment = fs::read(format!("/proc/{}/environ", process.pid)).unwrap_or_default();
        environment.split(|&byte| byte == 0).any(|entry| entry == mark)
    };
    all().into_iter().filter(|process| !process.zombie && (groups.contains(&process.group) || carries(process))).collect()
}

/// All living processes of leases whose folders, below `leases`, are none of `known`: workloads by the variable that they were started with,
/// supervisors by their last argument.
pub(super) fn strays(leases: &Path, known: &BTreeSet<&Path>) -> Vec<Process> {
    let is_stray = |path: &[u8]| {
        let path = Path::new(std::ffi::OsStr::from_bytes(path));
        path.parent() == Some(leases) && !known.contains(path)
    };
    let of_stray = |process: &Process| {
        let read = |what: &str| fs::read(format!("/proc/{}/{what}", process.pid)).unwrap_or_default();
        let environment = read("environ");
        let variables = environment.split(|&byte| byte == 0).filter_map(|entry| entry.strip_prefix(b"STIPEND_LEASE_DIR="));
        let command = read("cmdline");
        let mut arguments = command.split(|&byte| byte == 0).filter(|argument| !argument.is_empty());
        let supervises = arguments.any(|argument| argument == b"supervise");
        variables.into_iter().any(is_stray) || supervises && arguments.next_back().is_some_and(is_stray)
    };
    all().into_iter().filter(|process| !process.zombie && of_stray(process)).collect()
}

/// Kills all that `find` finds. They are stopped first, until no new one appears: what is stopped cannot start others.
pub(super) fn kill_all(find: impl Fn() -> Vec<Process>) -> usize {
    /// Whoever starts processes faster than this finds them is killed as far as seen, and the caller comes again.
    const PASSES: usize = 20;
    let mut seen: BTreeSet<(i32, u64)> = BTreeSet::new();
    for _ in 0..PASSES {
        let new: Vec<Process> = find().into_iter().filter(|process| seen.insert((process.pid, process.start))).collect();
        if new.is_empty() {
            break;
        }
        new.iter().for_each(|process| signal(process.pid, Signal::SIGSTOP));
    }
    seen.iter().for_each(|&(pid, _)| signal(pid, Signal::SIGKILL));
    seen.len()
}

/// Sends a signal to one process. One that is gone needs none.
pub(super) fn signal(pid: i32, signal: Signal) {
    let _ = kill(Pid::from_raw(pid), signal);
}

/// Sends a signal to a whole process group, whose first process was not reaped yet: else its number may be another's.
pub(super) fn signal_group(group: i32, signal: Signal) {
    let _ = killpg(Pid::from_raw(group), signal);
}

/// Names this boot of the machine: across boots process ids mean nothing.
pub(super) fn boot() -> &'static str {
    static BOOT: OnceLock<String> = OnceLock::new();
    BOOT.get_or_init(|| fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_string())
}
