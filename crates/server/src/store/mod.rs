//! The store: one SQLite file that holds all that must outlive the daemon.
//!
//! The service owns the one writer. Each batch goes in by one transaction, synced before anybody is answered or commanded. Readers have
//! connections of their own, and never wait for the writer.

mod backup;
mod error;
mod folder;
mod journal;
mod open;
mod program;
mod prune;
mod reader;
mod rows;
mod schema;
mod snapshot;
mod writer;

pub use backup::{Difference, Replaced, check, restore};
pub use error::StoreError;
pub use reader::{LineFilter, Reader, Usage, UserUsage};
pub use writer::Store;

use crate::wire::budget::Changeset;
use crate::wire::token::{Role, Token};
use crate::wire::workload::{Submission, Workload};
use stipend_core::event::Event;
use stipend_core::quantity::Time;
use stipend_core::{Plan, Scheduler};

/// One step of the scheduler, in the order in which it was made: replayed, they make its state again.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub enum Step {
    /// It was told this.
    Event { at: Time, event: Event },
    /// It decided this.
    Plan { at: Time, plan: Plan },
}

impl Step {
    /// When it was made.
    pub fn at(&self) -> Time {
        match self {
            Step::Event { at, .. } | Step::Plan { at, .. } => *at,
        }
    }
}

/// A line of the event log (`docs/reference/event-log.md`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Its place in the log, from 1.
    pub seq: u64,
    /// When.
    pub t_ms: i64,
    /// Which kind.
    pub event: String,
    /// About which workload, if about one.
    pub workload: Option<u32>,
    /// The whole line, as JSON, without its newline.
    pub json: String,
}

/// What numbers are called: numbers are the scheduler's, names are people's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A pool.
    Pool,
    /// A node.
    Node,
    /// A user.
    User,
    /// A block.
    Block,
    /// A feature: the number is its bit.
    Feature,
}

/// GPU time charged (or, negative, refunded) to a leaf budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Charge {
    /// The leaf's number.
    pub budget: u32,
    /// The pool's number.
    pub pool: u16,
    /// The user's number.
    pub user: u32,
    /// From when.
    pub from_ms: i64,
    /// To when.
    pub to_ms: i64,
    /// How much.
    pub gpu_ms: i64,
    /// Whether for a lease (or for GPUs held for a claimant).
    pub run: bool,
}

/// A workload that is new, or whose view changed.
#[derive(Clone, Debug)]
pub struct WorkloadRow {
    /// As lists show it now.
    pub view: Workload,
    /// As it was submitted, when it is new.
    pub submission: Option<Submission>,
}

/// All that one turn of the service changed.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// The scheduler's steps. The first of all is made by a scheduler that was made at that step's time, or before.
    pub steps: Vec<Step>,
    /// The scheduler's digest after them. Now and then is enough: a replay that comes by compares it.
    pub digest: Option<u64>,
    /// New lines of the event log; `seq` follows the last one's.
    pub lines: Vec<Line>,
    /// Changed workloads.
    pub workloads: Vec<WorkloadRow>,
    /// Budgets that got another path, from and to; their descendants go with them. What ran in them is found at the new path.
    pub moved: Vec<(String, String)>,
    /// New names.
    pub names: Vec<(Kind, u32, String)>,
    /// New or changed changesets.
    pub changesets: Vec<Changeset>,
    /// Managers and members of budgets, by the budget's number: what is here replaces what was.
    pub people: Vec<(u32, People)>,
    /// New or changed tokens, with the SHA-256 of the secret.
    pub tokens: Vec<(Token, [u8; 32])>,
    /// Idempotency keys with who used them, and what they made.
    pub keys: Vec<(String, String, Made)>,
    /// GPU time charged.
    pub charges: Vec<Charge>,
    /// Values of the service's own, by key (what is here replaces what was).
    pub values: Vec<(String, String)>,
}

/// Who manages a budget, and who submits to it.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct People {
    /// By user name.
    pub managers: Vec<String>,
    /// By user name.
    pub members: Vec<String>,
}

/// What a token may do, found by the hash of its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenOwner {
    /// The token's number.
    pub id: u64,
    /// Whose.
    pub user: String,
    /// What it may do.
    pub role: Role,
}

/// What was made with an idempotency key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Made {
    /// The first workload.
    pub first: u32,
    /// The last one.
    pub last: u32,
    /// SHA-256 of the request; `None` where an older program kept the key.
    pub body: Option<[u8; 32]>,
}

/// What was found in the store at the start.
#[derive(Debug)]
pub struct Restored {
    /// The scheduler as it was, or `None` in a new store.
    pub scheduler: Option<Scheduler>,
    /// How often this store was opened for the first time after it was made or restored from a backup; see `Launch::epoch`.
    pub epoch: u64,
    /// The number of the log's last line.
    pub last_line: u64,
    /// When the last step or snapshot was made; `None` in a new store.
    pub last_written: Option<Time>,
    /// The names.
    pub names: Vec<(Kind, u32, String)>,
    /// The workloads that have not ended.
    pub live: Vec<Workload>,
    /// The highest number of a changeset; 0 where there is none.
    pub last_changeset: u64,
    /// Changesets that wait for their date.
    pub pending: Vec<Changeset>,
    /// Of all budgets that have any.
    pub people: Vec<(u32, People)>,
    /// All tokens that were not taken back.
    pub tokens: Vec<(Token, [u8; 32])>,
    /// The service's own values.
    pub values: Vec<(String, String)>,
    /// What was damaged and could be done without: for the daemon's log.
    pub warnings: Vec<String>,
}
