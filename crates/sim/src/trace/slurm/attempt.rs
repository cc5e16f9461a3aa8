//! One record of a job: a run of it, or its wait.

use super::id::JobId;
use super::state::State;
use super::tres::Resources;

/// A job's record as a reader found it, whatever the form of the log. Times in ms.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Record<'a> {
    pub(super) id: JobId,
    pub(super) cluster: &'a [u8],
    pub(super) account: &'a [u8],
    pub(super) user: &'a [u8],
    pub(super) partition: &'a [u8],
    pub(super) qos: &'a [u8],
    pub(super) name: &'a [u8],
    /// What was typed to submit it.
    pub(super) submit_line: &'a [u8],
    pub(super) state: Option<State>,
    pub(super) submit: Option<i64>,
    pub(super) eligible: Option<i64>,
    pub(super) start: Option<i64>,
    pub(super) end: Option<i64>,
    pub(super) elapsed: Option<i64>,
    /// 0 where there is none.
    pub(super) limit: i64,
    pub(super) nodes: Option<u32>,
    pub(super) cpus: Option<u32>,
    /// In MiB.
    pub(super) memory: u32,
    pub(super) gpus: u32,
    pub(super) gpu_kind: &'a [u8],
    /// Whether it stands for all tasks of an array that still wait.
    pub(super) tasks: bool,
    /// Whether its exit code says that it failed.
    pub(super) exit_failed: Option<bool>,
    /// Whether the log says outright that it never had a node.
    pub(super) without_nodes: bool,
}

/// The same with its names as numbers; what is kept of every record until the log ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Attempt {
    pub(super) id: JobId,
    pub(super) cluster: u32,
    pub(super) account: u32,
    pub(super) user: u32,
    pub(super) partition: u32,
    pub(super) qos: u32,
    /// Number of what its name has in common with its siblings'.
    pub(super) name: u32,
    pub(super) kind: u32,
    pub(super) state: State,
    pub(super) submit: i64,
    pub(super) eligible: i64,
    /// `None` if it never ran.
    pub(super) start: Option<i64>,
    pub(super) end: Option<i64>,
    pub(super) elapsed: Option<i64>,
    pub(super) limit: i64,
    pub(super) nodes: u32,
    pub(super) cpus: u32,
    pub(super) memory: u32,
    pub(super) gpus: u32,
    pub(super) line: u64,
}

impl Attempt {
    /// The same with times that can be: clocks are set while jobs wait and run, and accounting is repaired by hand.
    ///
    /// # Errors
    /// Nothing tells how long it ran.
    pub(super) fn settled(self, ruled: &mut dyn FnMut(&'static str)) -> Result<Attempt, String> {
        let Some(start) = self.start else { return Ok(self) };
        let mut settled = Attempt { submit: self.submit.min(start), eligible: self.eligible.min(start), ..self };
        if (settled.submit, settled.eligible) != (self.submit, self.eligible) {
            ruled("jobs that started before they were submitted, or could start: they did not wait");
        }
        if self.end.is_some_and(|end| end < start) {
            let ran = self.elapsed.ok_or("ends before it starts, and does not say how long it ran")?;
            ruled("jobs that ended before they started: taken to have ended as long after it as they ran");
            settled.end = Some(start.saturating_add(ran));
        }
        Ok(settled)
    }
}

impl<'a> Record<'a> {
    /// Takes GPUs, CPUs, memory and nodes from lists in the order in which they are to be believed: what it had goes before what it asked for.
    pub(super) fn resources(&mut self, lists: &[Resources<'a>]) {
        let gpus = lists.iter().find(|list| list.gpus > 0);
        self.gpus = gpus.map_or(0, |list| list.gpus);
        let kind = gpus.and_then(|list| list.kind).or_else(|| lists.iter().find_map(|list| list.kind));
        self.gpu_kind = kind.unwrap_or_default();
        self.cpus = self.cpus.filter(|&cpus| cpus > 0).or_else(|| lists.iter().map(|list| list.cpus).find(|&cpus| cpus > 0));
        self.nodes = self.nodes.or_else(|| lists.iter().map(|list| list.nodes).find(|&nodes| nodes > 0));
        self.memory = lists.iter().map(|list| list.memory).find(|&memory| memory > 0).unwrap_or(0);
    }

    /// The state; where the log has none, what times and exit code say.
    pub(super) fn settled_state(&self) -> State {
        self.state.unwrap_or(match (self.start, self.end, self.exit_failed) {
            (None, None, _) => State::Pending,
            (_, None, _) => State::Running,
            (.., Some(true)) => State::Failed,
            (.., Some(false)) => State::Completed,
            (.., None) => State::Ended,
        })
    }

    /// When it started to run, or `None` if it never did: Slurm gives a job that was cancelled while it waited its end as its start, and one that
    /// waits the start that it is expected to have.
    pub(super) fn real_start(&self) -> Option<i64> {
        let state = self.settled_state();
        let ran = self.elapsed.is_none_or(|elapsed| elapsed > 0);
        let stood_still = self.elapsed == Some(0) || (self.elapsed.is_none() && self.start.is_some() && self.start == self.end);
        self.start.filter(|_| state != State::Pending && !(stood_still && self.without_nodes)).or_else(|| {
            // Without a start the end and the time it ran say the same.
            let (end, elapsed) = (self.end?, self.elapsed?);
            (ran && state != State::Pending).then_some(end - elapsed)
        })
    }
}
