//! How the work of a row ended in the file, and what the simulator makes of it.

use crate::job::Ends;
use serde::Serialize;

/// How a row ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The file does not say.
    #[default]
    Unknown,
    /// Done.
    Completed,
    /// It ended with an error.
    Failed,
    /// It was killed because it used more memory than it had asked for.
    OutOfMemory,
    /// Somebody withdrew it, before or after its start.
    Cancelled,
    /// It reached its time limit, or a deadline.
    TimedOut,
    /// Its node failed, or could not be started.
    NodeFailed,
    /// Another took its place and it did not come back.
    Preempted,
    /// It still ran when the file was written.
    Running,
    /// It still waited when the file was written, or nobody ever started it.
    Waiting,
}

impl Outcome {
    /// All, as they are listed.
    pub const ALL: [Outcome; 10] = [
        Outcome::Completed,
        Outcome::Failed,
        Outcome::OutOfMemory,
        Outcome::Cancelled,
        Outcome::TimedOut,
        Outcome::NodeFailed,
        Outcome::Preempted,
        Outcome::Running,
        Outcome::Waiting,
        Outcome::Unknown,
    ];

    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Unknown => "unknown",
            Outcome::Completed => "completed",
            Outcome::Failed => "failed",
            Outcome::OutOfMemory => "out of memory",
            Outcome::Cancelled => "cancelled",
            Outcome::TimedOut => "timed out",
            Outcome::NodeFailed => "node failed",
            Outcome::Preempted => "preempted",
            Outcome::Running => "still running",
            Outcome::Waiting => "still waiting",
        }
    }

    /// What the simulator lets such work come to at the end of its run time.
    ///
    /// What its own doing ended led to nothing, wherever it runs, and what its owner cancelled is cancelled again. What the infrastructure
    /// ended (a node, a preemption), or the end of the file, is taken to complete after the time it ran: it would have gone on, nobody knows
    /// how long, and the simulator has node failures and preemptions of its own.
    pub fn ends(self) -> Ends {
        match self {
            Outcome::Failed | Outcome::OutOfMemory | Outcome::TimedOut => Ends::Failed,
            Outcome::Cancelled => Ends::Cancelled,
            Outcome::Unknown | Outcome::Completed | Outcome::NodeFailed | Outcome::Preempted | Outcome::Running | Outcome::Waiting => {
                Ends::Completed
            }
        }
    }
}
