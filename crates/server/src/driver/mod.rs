//! The boundary to the engine that carries the work: one machine's processes here, Slurm or Kubernetes elsewhere.
//!
//! The service commands, the driver reports. Commands are idempotent by lease, so that after a restart, or when in doubt, they are
//! simply given again. Reports may come late, twice or not at all: what the engine really carries is what [`Driver::observe`] says, and
//! its difference to what the scheduler believes makes the missing reports. Lost messages, restarts and reboots are one code path.

pub mod local;

use crate::record::Program;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use stipend_core::event::Exit;
use stipend_core::id::LeaseId;
use stipend_core::quantity::{Span, Time};
use stipend_core::spec::Severity;

/// What an engine can do. The service does without what it cannot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Submitted work waits in the engine, too, and can be held there.
    pub holds: bool,
    /// A workload can be placed on given nodes and GPUs.
    pub places: bool,
    /// A lost node's processes are known to be dead before their lease is told to have ended.
    pub fences: bool,
    /// A lease can be stopped with a grace.
    pub grace: bool,
}

/// A node as the engine has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineNode {
    /// Its name, unique in the engine.
    pub name: String,
    /// The pool it belongs to, by name.
    pub pool: String,
    /// Its GPUs.
    pub gpus: u32,
    /// Its CPUs; 0 where they are not counted.
    pub cpus: u32,
    /// Its memory in bytes; 0 where it is not counted.
    pub memory: u64,
    /// The block it stands in, by name.
    pub block: String,
    /// What it has, by name.
    pub features: Vec<String>,
    /// Set aside for short contracts and unallocated work.
    pub express: bool,
}

/// One member of a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The node, by name.
    pub node: String,
    /// Which of its GPUs, by index.
    pub gpus: Vec<u32>,
}

/// All that is needed to start a lease.
#[derive(Clone, Debug)]
pub struct Launch {
    /// Which.
    pub lease: LeaseId,
    /// Counts up when the daemon's memory is set back (a restored backup): of two leases with one id the later epoch's is the right one.
    pub epoch: u64,
    /// What to run.
    pub program: Arc<Program>,
    /// Where, in the order of ranks.
    pub members: Vec<Member>,
    /// Who submitted it, and for which budget: for the environment and for people.
    pub user: String,
    /// The budget's path.
    pub budget: String,
    /// The pool, by name.
    pub pool: String,
    /// CPUs and bytes of memory a member may use at most; 0 is no limit.
    pub cpus_per_member: u32,
    /// Bytes.
    pub memory_per_member: u64,
    /// The contract: protected for so long from when all members run; zero is unallocated.
    pub contract: Span,
}

/// What the service tells the engine to do. Each may come twice.
#[derive(Clone, Debug)]
pub enum Command {
    /// Start all members; report each and the whole.
    Launch(Box<Launch>),
    /// Its protection ends then (`None`: it has none): tell the workload, who may look at its countdown.
    Protected { lease: LeaseId, until: Option<Time> },
    /// The stop signal now, the end of every process by `grace` from now; report the end.
    Stop { lease: LeaseId, grace: Span },
    /// The lease is over and its end is known: what the engine keeps to report it again may go.
    Forget { lease: LeaseId },
    /// Repair this node, then say whether it is healthy.
    Repair { node: String, reason: String },
}

/// What the engine saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// The member on this node runs.
    MemberRunning { lease: LeaseId, node: String, at: Time },
    /// All members run.
    Running { lease: LeaseId, at: Time },
    /// The workload banked its progress.
    Checkpointed { lease: LeaseId, at: Time },
    /// Somebody used a session.
    Input { lease: LeaseId, at: Time },
    /// No process of it is left.
    Ended { lease: LeaseId, end: End },
    /// A node is not well: drain it.
    NodeFault { node: String, severity: Severity, reason: String },
    /// A repaired node is healthy.
    NodeHealthy { node: String },
    /// A repaired node is not; it stays out.
    RepairFailed { node: String, reason: String },
    /// The GPUs of a lease do nothing since then (`None`: they work again).
    Idle { lease: LeaseId, since: Option<Time> },
}

/// How and when a lease ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// What it means.
    pub exit: Exit,
    /// When, by the engine.
    pub at: Time,
    /// The exit code of the first member that failed, else 0; `None` where a signal ended it or nothing could be started.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
}

/// A lease as the engine carries it now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedLease {
    /// Which.
    pub lease: LeaseId,
    /// As launched.
    pub epoch: u64,
    /// Since when all members run, if they do.
    pub running_since: Option<Time>,
    /// The order to stop it has come here: its grace is running, and it needs no other.
    pub is_stopping: bool,
    /// The latest checkpoint.
    pub checkpoint: Option<Time>,
    /// The latest input of a session.
    pub input: Option<Time>,
    /// If it is over.
    pub end: Option<End>,
}

/// Where the driver sends its reports. It never blocks.
pub trait Reports: Send + Sync {
    /// Takes one report.
    fn report(&self, report: Report);
}

impl Reports for Sender<Report> {
    fn report(&self, report: Report) {
        // Whoever no longer listens is on its way out.
        let _ = self.send(report);
    }
}

/// An engine.
pub trait Driver: Send {
    /// What it can do.
    fn capabilities(&self) -> Capabilities;

    /// The nodes it has now.
    fn nodes(&self) -> Vec<EngineNode>;

    /// Whether a program could be started at all, before it is queued: the sentence says what is missing.
    ///
    /// # Errors
    /// What is missing.
    fn check(&self, _program: &Program) -> Result<(), String> {
        Ok(())
    }

    /// Carries out a command, soon: this does not wait for processes. What comes of it is reported.
    fn command(&mut self, command: Command);

    /// All leases that the engine carries or still knows the end of.
    ///
    /// # Errors
    /// The engine does not answer; nothing follows from that.
    fn observe(&mut self) -> anyhow::Result<Vec<ObservedLease>>;

    /// The highest number of a workload of which the engine keeps anything: numbers go on from there, also after an old backup was restored.
    fn last_workload(&self) -> Option<u32> {
        None
    }

    /// Where the output of a member is kept, if it is a file here.
    fn output(&self, lease: LeaseId, member: u32) -> Option<PathBuf>;
}
