//! What the daemon keeps of a workload beside what the scheduler decides by.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a workload runs. Written once, when it is submitted, and never changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Program {
    /// For people.
    pub name: String,
    /// The program and its arguments; each member runs it.
    pub command: Vec<String>,
    /// An absolute path; it must exist where the workload runs.
    pub workdir: String,
    /// Added to the environment; what the engine itself sets (`STIPEND_…`, which GPUs are seen) stays.
    pub env: BTreeMap<String, String>,
    /// Run in the grace of a preemption, before the stop signal reaches the program.
    pub checkpoint_command: Vec<String>,
    /// Run before the command from the second attempt on.
    pub restore_command: Vec<String>,
    /// Whom it runs as, by name; the daemon's own user where that is `None` or the daemon is not root.
    pub run_as: Option<String>,
}
