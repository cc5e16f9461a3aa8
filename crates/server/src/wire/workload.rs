//! Workloads: how they are submitted, and how they are shown.

use super::length::Length;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::{IntoParams, ToSchema};

/// What happens to a workload when it is preempted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnPreempt {
    /// It goes on from its last checkpoint.
    Resume,
    /// It starts again from nothing.
    #[default]
    Restart,
    /// It cannot go on: its contract is its time limit.
    End,
}

/// Whether work with a contract may run before it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Start {
    /// With its contract or not at all.
    Guaranteed,
    /// Rather than wait beside idle GPUs it starts unallocated, and is promoted in place when its turn comes.
    Whenever,
}

/// Batch work, or somebody at a keyboard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Runs by itself.
    #[default]
    Batch,
    /// Interactive.
    Session,
}

/// A workload to be queued: what to run, with which GPUs, for whom, and its contract.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Submission {
    /// The leaf budget that pays, by path.
    pub budget: String,
    /// The program and its arguments; each member runs it.
    pub command: Vec<String>,
    /// For people; default: the last part of the program's path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The pools it may run in, the one it likes best first; default: all pools in which its budget has a claim, else all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pools: Vec<String>,
    /// GPUs of each member, at least 1. Default 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpus: Option<u32>,
    /// Members, each on one node, started together. Default 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub members: Option<u32>,
    /// CPUs of each member; default: the node's part of its GPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<u32>,
    /// Memory of each member in GiB; default: the node's part of its GPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_gib: Option<u64>,
    /// What each of its nodes must have.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub features: Vec<String>,
    /// All members behind one switch.
    pub same_block: bool,
    /// The contract: how long it is protected once it runs. Default 0: unallocated, never charged, never protected.
    pub min_runtime: Length,
    /// The most running time over all attempts; `end` work must state it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_limit: Option<Length>,
    /// How long it will run, as far as its owner knows. A hint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_runtime: Option<Length>,
    /// Default `restart`.
    pub on_preempt: OnPreempt,
    /// Default: `whenever` for `resume` work, else `guaranteed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<Start>,
    /// Order inside its leaf budget, higher first. Default 0.
    pub priority: i16,
    /// How often it checkpoints, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint_every: Option<Length>,
    /// Default `batch`.
    pub kind: Kind,
    /// It stays held until these have completed; if one of them ends otherwise, it is cancelled.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<u32>,
    /// Queued once for each index: `1-10`, `0,3,7`, `1-100%5` (at most 5 at once).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub array: Option<String>,
    /// An absolute path. Default: `/`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workdir: Option<String>,
    /// Added to the environment.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Run in the grace of a preemption, before the stop signal.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub checkpoint_command: Vec<String>,
    /// Run before the command from the second attempt on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub restore_command: Vec<String>,
}

/// One workload or several.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[serde(untagged)]
pub enum Submissions {
    /// One.
    One(Box<Submission>),
    /// At most 10,000.
    Several(Vec<Submission>),
}

/// The answer to a submission: what was queued, and what will happen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Submitted {
    /// One a workload: one, or one an array index.
    pub workloads: Vec<Workload>,
    /// Sentences for people: clamps, pools that could never take it, what unallocated means, what it waits for, when it starts at the latest.
    pub notes: Vec<String>,
}

/// Where a workload is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It waits for another workload, for its array, for its owner, because its budget is closed, or because its leases were lost again and again.
    Held,
    /// It waits for GPUs.
    Waiting,
    /// It has GPUs and is being started.
    Starting,
    /// All members run.
    Running,
    /// It was told to stop.
    Stopping,
    /// It ended well.
    Completed,
    /// It ended badly.
    Failed,
    /// Somebody stopped it.
    Cancelled,
    /// It reached its time limit.
    TimedOut,
}

/// A workload as lists show it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Workload {
    /// Its number.
    pub id: u32,
    /// For people.
    pub name: String,
    /// Who submitted it.
    pub user: String,
    /// The budget's path.
    pub budget: String,
    /// Where it runs, ran last, or would like to run best.
    pub pool: String,
    /// Where it is in its life.
    pub state: State,
    /// Members.
    pub members: u32,
    /// GPUs of each.
    pub gpus_per_member: u32,
    /// Its contract after clamping; 0 is unallocated.
    pub min_runtime_ms: i64,
    /// As stated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_limit_ms: Option<i64>,
    /// As stated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_runtime_ms: Option<i64>,
    /// How long its ended attempts held their GPUs, all together.
    #[serde(default)]
    pub ran_ms: i64,
    /// As stated.
    pub on_preempt: OnPreempt,
    /// As stated.
    pub priority: i16,
    /// Batch or session.
    pub kind: Kind,
    /// When it was submitted.
    pub submitted_ms: i64,
    /// When its present or last attempt was given GPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_ms: Option<i64>,
    /// When it ended for good.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_ms: Option<i64>,
    /// Until when its present attempt is protected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protected_until_ms: Option<i64>,
    /// Whether its present or last attempt is charged.
    pub allocated: bool,
    /// Attempts so far.
    pub attempts: u32,
    /// How often it was preempted.
    pub preemptions: u32,
    /// Leases in a row that the infrastructure lost within minutes of their start; it is held after the third.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub losses: u32,
    /// It is held until then, after such losses, and tries again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_ms: Option<i64>,
    /// Nodes of the present or last attempt with the GPUs on each.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub placement: BTreeMap<String, Vec<u8>>,
    /// The exit code of the last attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The array it belongs to: the first one's number, and its own index.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub array: Option<ArrayIndex>,
    /// Those that it still waits for.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub after: Vec<u32>,
    /// Who holds it, if somebody does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_by: Option<String>,
    /// Since when its GPUs do nothing, if they do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_since_ms: Option<i64>,
    /// Why it is as it is, in one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// A workload with how it was submitted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Detail {
    /// As lists show it.
    #[serde(flatten)]
    pub workload: Workload,
    /// As it was submitted. The values of the environment are shown to its owner and to administrators only.
    pub submission: Submission,
}

/// Which element of which array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ArrayIndex {
    /// The number of the array's first workload.
    pub array: u32,
    /// Its index.
    pub index: u32,
    /// At most so many of the array hold GPUs at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_most: Option<u32>,
}

/// Which workloads to list.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct Filter {
    /// Only this user's.
    pub user: Option<String>,
    /// Only this budget's and its descendants'.
    pub budget: Option<String>,
    /// Only this pool's.
    pub pool: Option<String>,
    /// Only in these states, with commas between; default: all that have not ended.
    pub state: Option<String>,
    /// Also those that have ended.
    pub all: bool,
    /// Of those that wait, `why` says what stops them now, as far as that is found out in a moment.
    pub explain: bool,
    /// From the answer before.
    pub cursor: Option<String>,
    /// At most so many, 1 to 1000. Default 100.
    pub limit: Option<u32>,
}

impl State {
    /// Whether it is over.
    pub fn is_over(self) -> bool {
        matches!(self, State::Completed | State::Failed | State::Cancelled | State::TimedOut)
    }

    /// Whether it holds GPUs.
    pub fn is_leased(self) -> bool {
        matches!(self, State::Starting | State::Running | State::Stopping)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is left out when it is empty must be readable without.
    #[test]
    fn a_workload_that_has_nothing_yet_is_read_again() {
        let json = r#"{"id":0,"name":"a","user":"b","budget":"c","pool":"d","state":"waiting","members":1,"gpus_per_member":1,"min_runtime_ms":0,"on_preempt":"resume","priority":0,"kind":"batch","submitted_ms":0,"allocated":false,"attempts":0,"preemptions":0}"#;
        let workload: Workload = serde_json::from_str(json).expect("nothing in it is needed that may be left out");
        let again = serde_json::to_string(&workload).expect("it is JSON");
        assert_eq!(serde_json::from_str::<Workload>(&again).expect("it was just written"), workload);
    }
}
