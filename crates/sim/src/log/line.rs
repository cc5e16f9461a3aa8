//! What each line of the event log holds: one struct an event, the field names are the log's.
//!
//! Workloads, nodes, users and pools are named by their labels, budgets by their paths. Points in time and lengths are integers in
//! milliseconds. A field without a value is `null`, never absent.

use crate::log::knobs::Policy;
use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// The version that the first line states.
pub const VERSION: u32 = 1;

/// One line.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Line {
    /// [`VERSION`], in the first line only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub v: Option<u32>,
    /// When.
    pub t_ms: i64,
    /// What.
    #[serde(flatten)]
    pub event: LogEvent,
}

/// Declares the events once: the enum, and the parser that picks a struct by the event's name.
macro_rules! events {
    ($($name:literal $variant:ident,)*) => {
        /// What happened.
        #[derive(Clone, Debug, PartialEq, Serialize)]
        #[serde(tag = "event")]
        pub enum LogEvent {
            $(#[serde(rename = $name)] $variant($variant),)*
        }

        impl LogEvent {
            /// What it is called.
            pub fn name(&self) -> &'static str {
                match self {
                    $(LogEvent::$variant(_) => $name,)*
                }
            }

            /// Reads the fields of the event called `name`; `None` if there is no such event.
            pub fn parse(name: &str, text: &str) -> Option<serde_json::Result<LogEvent>> {
                match name {
                    $($name => Some(serde_json::from_str(text).map(LogEvent::$variant)),)*
                    _ => None,
                }
            }
        }
    };
}

events! {
    "policy" Policy,
    "node" Node,
    "budgets" Budgets,
    "submitted" Submitted,
    "gap" Gap,
    "doubted" Doubted,
    "refused" Refused,
    "eligible" Eligible,
    "held" Held,
    "started" Started,
    "running" Running,
    "promoted" Promoted,
    "renewed" Renewed,
    "input" Input,
    "checkpoint" Checkpoint,
    "preempting" Preempting,
    "stopping" Stopping,
    "spared" Spared,
    "hold" Hold,
    "unhold" Unhold,
    "reserved" Reserved,
    "unreserved" Unreserved,
    "ended" Ended,
    "requeued" Requeued,
    "charged" Charged,
    "refunded" Refunded,
    "granted" Granted,
    "lapsed" Lapsed,
    "end_of_log" EndOfLog,
}

/// Declares an enum whose values are words in snake_case.
macro_rules! words {
    ($($(#[$doc:meta])* $name:ident { $($word:ident),* $(,)? })*) => {
        $($(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum $name { $($word),* })*
    };
}

words! {
    /// The state of a node.
    State { Ready, Draining, Drained, Repairing, Lost }
    /// How urgently a node drains.
    Severity { Maintenance, Sick, Critical }
    /// What happens to a workload when it is preempted.
    OnPreempt { Resume, Restart, End }
    /// Whether it may start before its contract can.
    Start { Guaranteed, Whenever }
    /// Batch work, or somebody at a keyboard.
    Kind { Batch, Session }
    /// The class of a request, for reports.
    Class { Debug, Medium, Largest, Unallocated }
    /// Charged and protected, or neither.
    Occupancy { Allocated, Unallocated }
    /// What a start took or an eviction was allowed by.
    Licence { Free, Unallocated, Express, OwnLeaf, Tree, Share, Reservation, Drain, Critical, Administrator }
    /// How an attempt or a waiting workload ended.
    Outcome { Completed, Failed, Preempted, Cancelled, TimedOut, NodeLost, StartTimeout }
    /// What a charge was for.
    ChargeKind { Run, Hold }
    /// Why a hold ended.
    UnholdCause { Started, ClaimantGone, VictimStuck, NodeGone, Other }
    /// Why a reservation ended.
    UnreservedCause { Started, Owner, Budget, NodesLost }
    /// The order of a leaf's own work.
    Order { Priority, Fifo, ShortestContract, Completion }
}

impl Outcome {
    /// For people.
    pub fn text(self) -> &'static str {
        match self {
            Outcome::Completed => "completed",
            Outcome::Failed => "failed",
            Outcome::Preempted => "preempted",
            Outcome::Cancelled => "cancelled",
            Outcome::TimedOut => "stopped at its time limit",
            Outcome::NodeLost => "lost with its node",
            Outcome::StartTimeout => "did not start in time",
        }
    }
}

/// Which GPUs: node labels with GPU numbers, in the order of the core's node numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placement(pub Vec<(String, Vec<u8>)>);

/// A node joined or changed its state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Node {
    pub node: String,
    pub pool: String,
    pub gpus: u32,
    pub cpus: u32,
    pub memory_bytes: u64,
    pub block: String,
    pub features: u64,
    pub express: bool,
    pub state: State,
    #[serde(deserialize_with = "present")]
    pub severity: Option<Severity>,
    #[serde(deserialize_with = "present")]
    pub drain_until_ms: Option<i64>,
    pub reason: String,
}

/// The whole budget tree.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Budgets {
    pub version: u32,
    pub author: String,
    pub reason: String,
    pub budgets: Vec<Budget>,
}

/// One budget in one pool. `share_percent` and `claim` have at most 4 and 9 decimals.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Budget {
    pub id: u32,
    pub path: String,
    pub pool: String,
    pub share_percent: f64,
    pub claim: f64,
    #[serde(deserialize_with = "present")]
    pub gpus_max: Option<u32>,
    #[serde(deserialize_with = "present")]
    pub unallocated_gpus_max: Option<u32>,
    #[serde(deserialize_with = "present")]
    pub min_runtime_max_ms: Option<i64>,
    pub order: Order,
    /// It takes no new work, nor do those below it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub closed: bool,
}

/// A workload was accepted by these pools; `charged_gpus`, `min_runtime_ms` (its contract after clamping) and `class` are what it is to the
/// first of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Submitted {
    pub workload: String,
    /// What it is called, where `workload` is a number only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub budget: String,
    pub user: String,
    /// The number of the work that it is like, 16 hexadecimal digits, where the shell can tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub family: Option<String>,
    pub pools: Vec<String>,
    pub members: u32,
    pub gpus_per_member: u32,
    pub cpus_per_member: u32,
    pub memory_per_member_bytes: u64,
    pub features: u64,
    pub same_block: bool,
    pub charged_gpus: u32,
    pub min_runtime_ms: i64,
    #[serde(deserialize_with = "present")]
    pub time_limit_ms: Option<i64>,
    /// How long its owner thinks that it runs.
    #[serde(deserialize_with = "present")]
    pub expected_runtime_ms: Option<i64>,
    pub on_preempt: OnPreempt,
    /// How often it says that it banks its progress.
    #[serde(deserialize_with = "present")]
    pub checkpoint_every_ms: Option<i64>,
    /// `null` for work without a contract.
    #[serde(deserialize_with = "present")]
    pub start: Option<Start>,
    pub priority: i16,
    pub kind: Kind,
    pub class: Class,
    /// What it is to the other pools, where there are any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<InPool>,
    /// Pools that it named and that never could take it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<Skipped>,
}

/// What a workload is charged and granted in one pool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InPool {
    pub pool: String,
    pub charged_gpus: u32,
    pub min_runtime_ms: i64,
}

/// A pool that never could take a workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Skipped {
    pub pool: String,
    pub why: String,
}

/// Nobody decided from then on; what was due meanwhile is made up for now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gap {
    pub from_ms: i64,
}

/// A request was refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Refused {
    pub why: String,
}

/// It did not begin anew after a preemption, as it had said: until then the loss of its leaf's work that says so counts as if it resumed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Doubted {
    pub workload: String,
    pub budget: String,
    pub until_ms: i64,
}

/// It may start from now on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Eligible {
    pub workload: String,
    /// How long like work waited for its first start: one in ten less than the first, one in ten longer than the second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimate_ms: Option<[i64; 2]>,
}

/// It may not start for now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Held {
    pub workload: String,
    pub why: String,
}

/// GPUs were assigned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Started {
    pub workload: String,
    pub attempt: u32,
    pub pool: String,
    pub occupancy: Occupancy,
    pub placement: Placement,
    pub licence: Licence,
    pub why: String,
}

/// All members run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Running {
    pub workload: String,
    pub attempt: u32,
    #[serde(deserialize_with = "present")]
    pub protected_until_ms: Option<i64>,
}

/// A lease that ran unallocated got its contract where it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Promoted {
    pub workload: String,
    pub attempt: u32,
    #[serde(deserialize_with = "present")]
    pub protected_until_ms: Option<i64>,
    pub why: String,
}

/// A session got its contract once more.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Renewed {
    pub workload: String,
    pub attempt: u32,
    pub protected_until_ms: i64,
    pub why: String,
}

/// Somebody used a session, for the first time since its contract began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Input {
    pub workload: String,
    pub attempt: u32,
}

/// It banked its progress.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Checkpoint {
    pub workload: String,
    pub attempt: u32,
}

/// The plan to preempt a lease.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Preempting {
    pub workload: String,
    pub attempt: u32,
    #[serde(deserialize_with = "present")]
    pub claimant: Option<String>,
    #[serde(deserialize_with = "present")]
    pub node: Option<String>,
    pub licence: Licence,
    pub stop_by_ms: i64,
    pub why: String,
}

/// The stop signal was sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stopping {
    pub workload: String,
    pub attempt: u32,
    pub grace_ms: i64,
}

/// A victim was let go before its signal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spared {
    pub workload: String,
    pub attempt: u32,
}

/// These GPUs are kept for a claimant; one counts as held when it is free.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hold {
    pub claimant: String,
    pub placement: Placement,
}

/// They no longer are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Unhold {
    pub claimant: String,
    pub cause: UnholdCause,
    pub why: String,
}

/// A workload is promised to start at the latest then; again when it is promised an earlier start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reserved {
    pub reservation: String,
    pub workload: String,
    pub pool: String,
    pub latest_start_ms: i64,
    pub nodes: Vec<String>,
    pub why: String,
}

/// The promise is over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Unreserved {
    pub reservation: String,
    pub workload: String,
    pub why: UnreservedCause,
}

/// An attempt ended, or (`attempt` is null) a workload that was waiting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ended {
    pub workload: String,
    #[serde(deserialize_with = "present")]
    pub attempt: Option<u32>,
    pub outcome: Outcome,
    pub lost_gpu_ms: i64,
    pub by: String,
}

/// It waits again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Requeued {
    pub workload: String,
}

/// GPU time charged to a leaf and its ancestors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Charged {
    pub workload: String,
    pub attempt: u32,
    pub budget: String,
    pub pool: String,
    pub kind: ChargeKind,
    pub from_ms: i64,
    pub to_ms: i64,
    pub gpu_ms: i64,
}

/// A part of a charge cancelled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Refunded {
    pub workload: String,
    pub attempt: u32,
    pub budget: String,
    pub pool: String,
    pub kind: ChargeKind,
    pub from_ms: i64,
    pub to_ms: i64,
    pub gpu_ms: i64,
}

/// Usage imputed to a newborn budget, weighted by the kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Granted {
    pub budget: String,
    pub pool: String,
    pub gpu_ms: i64,
}

/// Credit of an hour that a budget did not ask for and may not keep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lapsed {
    pub budget: String,
    pub pool: String,
    pub from_ms: i64,
    pub to_ms: i64,
    pub gpu_ms: i64,
}

/// The log is whole; these leases still run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EndOfLog {
    pub leases: Vec<Lease>,
}

/// One attempt of one workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lease {
    pub workload: String,
    pub attempt: u32,
}

/// serde takes a missing optional field for `null`; the log promises that every field is there.
pub(super) fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Option<T>, D::Error> {
    Option::deserialize(from)
}

impl Serialize for Placement {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(self.0.len()))?;
        for (node, gpus) in &self.0 {
            map.serialize_entry(node, gpus)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Placement {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Placement, D::Error> {
        from.deserialize_map(PlacementVisitor)
    }
}

struct PlacementVisitor;

impl<'de> Visitor<'de> for PlacementVisitor {
    type Value = Placement;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of node labels with lists of GPU numbers")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Placement, A::Error> {
        let mut slots = Vec::with_capacity(map.size_hint().unwrap_or(1));
        while let Some(slot) = map.next_entry()? {
            slots.push(slot);
        }
        Ok(Placement(slots))
    }
}
