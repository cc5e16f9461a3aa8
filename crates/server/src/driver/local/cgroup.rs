//! Limits on CPUs and memory, by control groups of version 2, where the machine lets us have them.
//!
//! Below the daemon's own group there is one for its leases, in it one a lease, in that one a member and one for the supervisor, which goes
//! into the member's group only to start it: so the member is born with its limits, whatever it does first.
//! Groups are not needed to find a member's processes: those are the supervisor's descendants.

use super::folder::{Order, name};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The subgroup for the daemon itself: processes may only be in leaves of the tree.
const DAEMON: &str = "daemon";

const CONTROLLERS: &str = "+cpu +memory";

/// The length of the period in which a member may use so much CPU time, in microseconds.
const PERIOD_US: u64 = 100_000;

/// Makes the group below which leases get theirs.
///
/// # Errors
/// The machine has no such groups, or we may not make any here.
pub(super) fn prepare(data: &Path) -> io::Result<PathBuf> {
    let own = own_group()?;
    let parent = match own.parent() {
        Some(parent) if own.ends_with(DAEMON) => parent.to_path_buf(),
        _ => own.clone(),
    };
    let there = fs::read_to_string(parent.join("cgroup.controllers"))?;
    if !["cpu", "memory"].iter().all(|wanted| there.split_ascii_whitespace().any(|controller| controller == *wanted)) {
        return Err(io::Error::other("the controllers cpu and memory are not there"));
    }
    if delegate(&parent).is_err() {
        // Somebody is in the group itself. If that is only us, we can step aside.
        let alone = fs::read_to_string(parent.join("cgroup.procs"))?.trim() == std::process::id().to_string();
        if !alone {
            return Err(io::Error::other(format!("other processes are in the group {}", parent.display())));
        }
        make(&parent.join(DAEMON))?;
        enter(&parent.join(DAEMON))?;
        delegate(&parent)?;
    }
    let leases = parent.join(format!("stipend-{}", fs::metadata(data)?.ino()));
    make(&leases)?;
    delegate(&leases)?;
    Ok(leases)
}

/// Removes what is left of a lease's groups; they are empty.
pub(super) fn remove(lease: &Path) {
    let inner = fs::read_dir(lease).into_iter().flatten().flatten().filter(|entry| entry.path().is_dir());
    inner.for_each(|entry| drop(fs::remove_dir(entry.path())));
    let _ = fs::remove_dir(lease);
}

/// The groups of one lease.
pub(super) struct Groups {
    lease: PathBuf,
    /// Where the supervisor was before.
    before: PathBuf,
}

impl Groups {
    /// Makes them, with the limits of the order; `None` if it has none, or there are no groups.
    pub(super) fn make(order: &Order) -> io::Result<Option<Groups>> {
        let Some(base) = order.groups.as_ref().filter(|_| order.cpus_per_member > 0 || order.memory_per_member > 0) else {
            return Ok(None);
        };
        let groups = Groups { lease: base.join(name(order.lease())), before: own_group()? };
        make(&groups.lease)?;
        delegate(&groups.lease)?;
        make(&groups.supervisor())?;
        for member in 0..order.members.len() {
            let group = groups.member(member);
            make(&group)?;
            if order.memory_per_member > 0 {
                fs::write(group.join("memory.max"), order.memory_per_member.to_string())?;
                // All or nothing: a member that lost some of its processes only looks as if it worked.
                fs::write(group.join("memory.oom.group"), "1")?;
            }
            if order.cpus_per_member > 0 {
                fs::write(group.join("cpu.max"), format!("{} {PERIOD_US}", u64::from(order.cpus_per_member) * PERIOD_US))?;
            }
        }
        Ok(Some(groups))
    }

    /// Starts a process in a member's group.
    pub(super) fn within<T>(&self, member: usize, start: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        enter(&self.member(member))?;
        let started = start();
        enter(&self.supervisor())?;
        started
    }

    /// Nobody is left but us.
    pub(super) fn close(&self) {
        if enter(&self.before).is_ok() {
            remove(&self.lease);
        }
    }

    fn member(&self, member: usize) -> PathBuf {
        self.lease.join(format!("member-{member}"))
    }
    fn supervisor(&self) -> PathBuf {
        self.lease.join("supervisor")
    }
}

/// The group that this process is in.
fn own_group() -> io::Result<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    // Of a line: the mount point is the fifth field, the kind of file system the first after a dash.
    let mount = mounts.lines().find_map(|line| {
        let (fields, kind) = line.split_once(" - ")?;
        kind.starts_with("cgroup2 ").then(|| fields.split(' ').nth(4))?
    });
    let mount = mount.ok_or_else(|| io::Error::other("control groups of version 2 are not mounted"))?;
    let own = fs::read_to_string("/proc/self/cgroup")?;
    let own = own.lines().find_map(|line| line.strip_prefix("0::/")).ok_or_else(|| io::Error::other("we are in no control group"))?;
    Ok(Path::new(mount).join(own))
}

fn make(group: &Path) -> io::Result<()> {
    fs::create_dir(group).or_else(|error| if error.kind() == io::ErrorKind::AlreadyExists { Ok(()) } else { Err(error) })
}

/// Lets the group's children have limits.
fn delegate(group: &Path) -> io::Result<()> {
    fs::write(group.join("cgroup.subtree_control"), CONTROLLERS)
}

/// Moves this process, with all its threads.
fn enter(group: &Path) -> io::Result<()> {
    fs::write(group.join("cgroup.procs"), "0")
}
