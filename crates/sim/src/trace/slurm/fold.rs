//! Records of a log made into jobs.
//!
//! - A record that the log has twice (two months that overlap, a log that was appended to itself) counts once: the same job, user and start; the
//!   later end holds.
//! - A job that was requeued has a record for each attempt. It is one job: submitted with the first, it ran as long as all of them together, and
//!   its gang, limit and state are those of the last.
//! - The components of a heterogeneous job start together, so they are one job: GPUs, CPUs and nodes are added up, it runs as long as the longest.
//! - Work that still runs when the log ends has run for as long as the log says, at most its time limit: a record that the accounting forgot to
//!   close must not count as years.

use super::attempt::Attempt;
use super::state::State;

/// One job of a Slurm log. Times in ms since 1970, as the log's clock shows them.
#[derive(Clone, Copy, Debug)]
pub(super) struct SlurmJob {
    /// Number of the name of its account.
    pub(super) account: u32,
    /// Number of its user.
    pub(super) user: u32,
    /// Number of its partition.
    pub(super) partition: u32,
    /// Number of its QOS.
    pub(super) qos: u32,
    /// Number of what its name has in common with its siblings'.
    pub(super) name: u32,
    /// Number of the type of its GPUs.
    pub(super) kind: u32,
    /// When it was first submitted.
    pub(super) submit: i64,
    /// When it could first have started.
    pub(super) eligible: i64,
    /// When it first started; `None` if it never did.
    pub(super) start: Option<i64>,
    /// When its last attempt ended, if it did.
    pub(super) end: Option<i64>,
    /// How long it ran, all attempts together; `None` if it never did.
    pub(super) work: Option<i64>,
    /// How long its attempts before the last ran.
    pub(super) redone: i64,
    /// How much of that ended with a node.
    pub(super) redone_nodes: i64,
    /// How much of it ended by a preemption.
    pub(super) redone_preempted: i64,
    /// How often it started.
    pub(super) attempts: u16,
    /// How often it was preempted.
    pub(super) preemptions: u16,
    /// Time limit; 0 if it has none.
    pub(super) limit: i64,
    /// Nodes of its last attempt; 0 if the log does not say.
    pub(super) nodes: u32,
    /// CPUs of its last attempt.
    pub(super) cpus: u32,
    /// Memory of its last attempt in MiB.
    pub(super) memory: u32,
    /// GPUs of its last attempt.
    pub(super) gpus: u32,
    /// What became of it.
    pub(super) state: State,
    /// Whether the log calls it running though its time limit is over.
    pub(super) overrun: bool,
    /// The line of its first record.
    pub(super) line: u64,
}

/// A rule that had to decide something about a job, and its line.
pub(super) type Ruled<'r> = dyn FnMut(u64, &'static str) + 'r;

/// Puts the records together, in the order of their first lines.
pub(super) fn fold(mut attempts: Vec<Attempt>, ruled: &mut Ruled<'_>) -> Vec<SlurmJob> {
    let log_end = attempts.iter().flat_map(|a| [Some(a.submit), a.start, a.end]).flatten().max().unwrap_or(0);
    let job = |a: &Attempt| (a.cluster, a.id.job, a.id.task, a.user);
    let component = |a: &Attempt| (job(a), a.id.component);
    attempts.sort_by_key(|a| (component(a), a.start.unwrap_or(i64::MAX), a.submit, a.line));
    let mut jobs = Vec::new();
    for whole in attempts.chunk_by(|a, b| job(a) == job(b)) {
        let mut parts = whole.chunk_by(|a, b| component(a) == component(b)).map(|attempts| one(attempts, log_end, ruled)).peekable();
        let first = parts.next().expect("a chunk is never empty");
        let is_alone = parts.peek().is_none();
        let together = parts.fold(first, together);
        jobs.push(together);
        if !is_alone {
            ruled(together.line, "heterogeneous jobs: their components start together, so they are one gang");
        }
    }
    jobs.sort_by_key(|job| job.line);
    jobs
}

/// One job, or one component, of its attempts in the order of their starts; records of a wait come last.
fn one(attempts: &[Attempt], log_end: i64, ruled: &mut Ruled<'_>) -> SlurmJob {
    let is_same = |a: &Attempt, b: &Attempt| if a.start.is_some() { a.start == b.start } else { b.start.is_none() && a.submit == b.submit };
    let (mut work, mut runs, mut overrun) = (None::<i64>, 0u16, false);
    let (mut redone, mut preemptions, mut earlier) = (0i64, 0u16, ByCause::default());
    let mut last = latest(attempts);
    for records in attempts.chunk_by(is_same) {
        let known = latest(records);
        for record in records.iter().filter(|record| record.line != known.line) {
            ruled(record.line, "records that the log has twice: the one that knows most counts");
        }
        if let Some(ran) = ran(known, log_end) {
            overrun = known.state.is_running() && known.limit > 0 && ran > known.limit;
            if work.is_some() {
                earlier.add(last.state, work.unwrap_or(0).saturating_sub(redone));
            }
            redone = work.unwrap_or(0);
            work = Some(redone.saturating_add(if overrun { known.limit } else { ran }));
            runs = runs.saturating_add(1);
            preemptions = preemptions.saturating_add(u16::from(known.state == State::Preempted));
            last = known;
        }
    }
    if runs > 1 {
        ruled(last.line, "requeued jobs: one workload, which ran as long as all its attempts together");
    }
    if overrun {
        ruled(last.line, "jobs that the log still calls running long after their time limit: taken to have ended at it");
    }
    let earliest = |time: fn(&Attempt) -> i64| attempts.iter().map(time).min().expect("there is one record at least");
    SlurmJob {
        account: last.account,
        user: last.user,
        partition: last.partition,
        qos: last.qos,
        name: last.name,
        kind: last.kind,
        submit: earliest(|a| a.submit),
        eligible: earliest(|a| a.eligible),
        start: attempts[0].start,
        end: last.end,
        work,
        redone,
        redone_nodes: earlier.nodes,
        redone_preempted: earlier.preempted,
        attempts: runs,
        preemptions,
        limit: last.limit,
        nodes: last.nodes,
        cpus: last.cpus,
        memory: last.memory,
        gpus: last.gpus,
        state: last.state,
        overrun,
        line: attempts.iter().map(|a| a.line).min().unwrap_or_default(),
    }
}

/// What ended the attempts before the last, and how long these ran.
#[derive(Default)]
struct ByCause {
    nodes: i64,
    preempted: i64,
}

impl ByCause {
    fn add(&mut self, state: State, ran: i64) {
        match state {
            State::NodeFailed | State::BootFailed => self.nodes = self.nodes.saturating_add(ran),
            State::Preempted => self.preempted = self.preempted.saturating_add(ran),
            _ => {}
        }
    }
}

/// Of records of the same attempt the one that knows its end, and of those the latest.
fn latest(records: &[Attempt]) -> &Attempt {
    let known = |a: &&Attempt| (!a.state.is_running() && a.state != State::Pending, a.end, a.elapsed, a.line);
    records.iter().max_by_key(known).expect("there is one record at least")
}

/// How long an attempt ran. The time that Slurm itself counts goes first: it leaves suspensions out, and it knows no summer time.
fn ran(a: &Attempt, log_end: i64) -> Option<i64> {
    let start = a.start?;
    Some(a.elapsed.unwrap_or_else(|| a.end.unwrap_or(log_end) - start).max(0))
}

/// Two components of one job.
fn together(gang: SlurmJob, part: SlurmJob) -> SlurmJob {
    SlurmJob {
        kind: if gang.gpus > 0 { gang.kind } else { part.kind },
        submit: gang.submit.min(part.submit),
        eligible: gang.eligible.min(part.eligible),
        start: gang.start.into_iter().chain(part.start).min(),
        end: gang.end.max(part.end),
        work: gang.work.max(part.work),
        redone: gang.redone.max(part.redone),
        redone_nodes: gang.redone_nodes.max(part.redone_nodes),
        redone_preempted: gang.redone_preempted.max(part.redone_preempted),
        attempts: gang.attempts.max(part.attempts),
        preemptions: gang.preemptions.max(part.preemptions),
        limit: if gang.limit == 0 || part.limit == 0 { 0 } else { gang.limit.max(part.limit) },
        nodes: gang.nodes.saturating_add(part.nodes),
        cpus: gang.cpus.saturating_add(part.cpus),
        memory: gang.memory.saturating_add(part.memory),
        gpus: gang.gpus.saturating_add(part.gpus),
        overrun: gang.overrun || part.overrun,
        line: gang.line.min(part.line),
        ..gang
    }
}
