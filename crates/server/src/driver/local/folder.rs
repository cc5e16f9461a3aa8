//! The folder of a lease: what is to be run, and all that is known of it.

use super::status;
use crate::record::Program;
use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use stipend_core::id::{LeaseId, WorkloadId};
use stipend_core::quantity::{Span, Time};

/// All that the supervisor must know: `launch.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Order {
    pub workload: u32,
    pub attempt: u32,
    pub epoch: u64,
    pub program: Program,
    pub members: Vec<Place>,
    pub user: String,
    pub budget: String,
    pub pool: String,
    /// CPUs and bytes a member may use; 0 is no limit.
    pub cpus_per_member: u32,
    pub memory_per_member: u64,
    /// The control group below which the lease gets its own, where there are any.
    pub groups: Option<PathBuf>,
    /// Bytes of output kept of each member.
    pub output_max: u64,
    /// The pipe of the daemon.
    pub bell: PathBuf,
    /// Kept over the attempts of the workload.
    pub checkpoints: PathBuf,
}

/// Where a member runs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Place {
    pub node: String,
    pub gpus: Vec<u32>,
    /// The node and its GPUs exist in the configuration only.
    pub is_virtual: bool,
}

impl Order {
    pub(super) fn lease(&self) -> LeaseId {
        LeaseId { workload: WorkloadId(self.workload), attempt: self.attempt }
    }
}

/// The order to stop: `stop`.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Stop {
    /// Milliseconds.
    pub grace: i64,
}

/// A lease's folder.
#[derive(Clone, Debug)]
pub(super) struct Folder(pub PathBuf);

/// The name of a lease's folder.
pub(super) fn name(lease: LeaseId) -> String {
    format!("{}-{}", lease.workload.0, lease.attempt)
}

/// The lease whose folder has this name.
pub(super) fn parse(name: &str) -> Option<LeaseId> {
    let (workload, attempt) = name.split_once('-')?;
    let lease = LeaseId { workload: WorkloadId(workload.parse().ok()?), attempt: attempt.parse().ok()? };
    (self::name(lease) == name).then_some(lease)
}

impl Folder {
    pub(super) fn status(&self) -> PathBuf {
        self.0.join("status")
    }
    pub(super) fn control(&self) -> PathBuf {
        self.0.join("control")
    }
    pub(super) fn deadline(&self) -> PathBuf {
        self.0.join("deadline")
    }
    pub(super) fn protected_until(&self) -> PathBuf {
        self.0.join("protected_until")
    }
    pub(super) fn output(&self, member: u32) -> PathBuf {
        self.0.join(format!("member-{member}.log"))
    }
    pub(super) fn supervisor_log(&self) -> PathBuf {
        self.0.join("supervisor.log")
    }

    /// Makes the folder with the order in it; it appears whole or not at all.
    ///
    /// # Errors
    /// `AlreadyExists`: it was launched before. Else the file system's.
    pub(super) fn create(&self, order: &Order) -> io::Result<()> {
        if self.0.exists() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let new = self.0.with_extension("new");
        let _ = fs::remove_dir_all(&new);
        // Whom the workload runs as may look at its deadline, but not list the folder or read the environment of others.
        fs::DirBuilder::new().mode(0o711).create(&new)?;
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(new.join("launch.json"))?;
        file.write_all(&serde_json::to_vec(order)?)?;
        fs::rename(&new, &self.0)
    }

    /// What was ordered.
    pub(super) fn order(&self) -> io::Result<Order> {
        Ok(serde_json::from_slice(&fs::read(self.0.join("launch.json"))?)?)
    }

    /// The lock that the supervisor holds for its life; `None` if somebody has it.
    pub(super) fn lock(&self) -> io::Result<Option<Flock<File>>> {
        let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(self.0.join("lock"))?;
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => Ok(Some(lock)),
            Err((_, nix::errno::Errno::EWOULDBLOCK)) => Ok(None),
            Err((_, error)) => Err(error.into()),
        }
    }

    /// Writes the order to stop; a later one replaces it.
    pub(super) fn write_stop(&self, grace: Span) -> io::Result<()> {
        replace(&self.0.join("stop"), &serde_json::to_vec(&Stop { grace: grace.0.max(0) })?)
    }

    /// The order to stop, if there is one.
    pub(super) fn stop(&self) -> Option<Stop> {
        serde_json::from_slice(&fs::read(self.0.join("stop")).ok()?).ok()
    }

    /// Opens the status for appending.
    pub(super) fn status_writer(&self) -> io::Result<status::Writer> {
        status::Writer::open(&self.status())
    }
}

/// A file with one moment, for the workload: seconds since 1970, rounded down.
pub(super) fn write_moment(path: &Path, at: Option<Time>) -> io::Result<()> {
    match at {
        Some(at) => replace(path, format!("{}\n", at.0.div_euclid(1000)).as_bytes()),
        None => match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        },
    }
}

/// Readers see the file before or after, never between.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let new = path.with_extension("new");
    fs::write(&new, bytes)?;
    fs::set_permissions(&new, Permissions::from_mode(0o644))?;
    fs::rename(&new, path)
}
