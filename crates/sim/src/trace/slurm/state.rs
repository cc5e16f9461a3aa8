//! States of a job.

use crate::trace::number::integer;

/// What became of a job, or of one attempt of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum State {
    /// It waits.
    Pending,
    /// It runs, or is about to, or on its way out.
    Running,
    /// It stands still and goes on later.
    Suspended,
    /// It ended well.
    Completed,
    /// Its owner or an administrator ended it.
    Cancelled,
    /// It ended with an exit code.
    Failed,
    /// It reached its time limit.
    TimedOut,
    /// A node was lost under it.
    NodeFailed,
    /// Other work took its place.
    Preempted,
    /// Its nodes did not boot.
    BootFailed,
    /// It could not have ended before its deadline.
    Deadline,
    /// It used more memory than it had.
    OutOfMemory,
    /// It went back to the queue.
    Requeued,
    /// It ended, and the log does not say how.
    Ended,
}

use State::*;

/// The long words and the short ones of Slurm's commands. A word that Slurm cut off (`CANCELLED+`, `OUT_OF_ME+`) is found by its beginning.
const WORDS: [(&str, &str, State); 29] = [
    ("PENDING", "PD", Pending),
    ("RUNNING", "R", Running),
    ("SUSPENDED", "S", Suspended),
    ("COMPLETED", "CD", Completed),
    ("CANCELLED", "CA", Cancelled),
    ("FAILED", "F", Failed),
    ("TIMEOUT", "TO", TimedOut),
    ("NODE_FAIL", "NF", NodeFailed),
    ("PREEMPTED", "PR", Preempted),
    ("BOOT_FAIL", "BF", BootFailed),
    ("DEADLINE", "DL", Deadline),
    ("OUT_OF_MEMORY", "OOM", OutOfMemory),
    ("REQUEUED", "RQ", Requeued),
    ("REQUEUE_FED", "RF", Requeued),
    ("REQUEUE_HOLD", "RH", Pending),
    ("SPECIAL_EXIT", "SE", Pending),
    ("RESV_DEL_HOLD", "RD", Pending),
    ("CONFIGURING", "CF", Running),
    ("COMPLETING", "CG", Running),
    ("RESIZING", "RS", Running),
    ("SIGNALING", "SI", Running),
    ("STAGE_OUT", "SO", Running),
    ("STOPPED", "ST", Suspended),
    ("POWER_UP_NODE", "PUN", Running),
    ("EXPEDITING", "EX", Pending),
    ("LAUNCH_FAILED", "LF", Failed),
    ("RECONFIG_FAIL", "RCF", Failed),
    ("REVOKED", "RV", Cancelled),
    ("UPDATE_DB", "UD", Running),
];

/// The database's numbers, in their order.
const NUMBERS: [State; 12] =
    [Pending, Running, Suspended, Completed, Cancelled, Failed, TimedOut, NodeFailed, Preempted, BootFailed, Deadline, OutOfMemory];

impl State {
    /// Reads a word, with what may stand behind it (`CANCELLED by 1234`), or the database's number, whose upper bits are flags.
    pub(super) fn read(text: &[u8]) -> Option<State> {
        if let Some(number) = integer(text) {
            return NUMBERS.get(usize::try_from(number & 0xff).ok()?).copied();
        }
        let word = text.split(|byte| b" ,+".contains(byte)).next().unwrap_or_default();
        let is_cut = text.get(word.len()) == Some(&b'+');
        let exact = WORDS.iter().find(|(long, short, _)| word.eq_ignore_ascii_case(long.as_bytes()) || word == short.as_bytes());
        let cut = || {
            let beginning = |long: &str| long.len() > word.len() && long.as_bytes()[..word.len()].eq_ignore_ascii_case(word);
            WORDS.iter().find(|(long, ..)| is_cut && word.len() >= 3 && beginning(long))
        };
        exact.or_else(cut).map(|&(.., state)| state)
    }

    /// Whether it may still run on.
    pub(super) fn is_running(self) -> bool {
        matches!(self, Running | Suspended)
    }
}
