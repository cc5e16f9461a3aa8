//! What the readers of text and of JSON hand their records to, and how jobs become rows of a trace.

use super::attempt::{Attempt, Record};
use super::fold::{SlurmJob, fold};
use super::state::State;
use super::value::is_nothing;
use crate::trace::Row;
use crate::trace::builder::{Builder, TeamFrom};
use crate::trace::outcome::Outcome;
use std::collections::HashMap;

/// More records than this are refused, as more rows are.
const RECORDS_MAX: usize = 20_000_000;

/// Records of a log as they come.
pub(super) struct Collector<'b> {
    builder: &'b mut Builder,
    attempts: Vec<Attempt>,
    names: Names,
    full: bool,
}

impl<'b> Collector<'b> {
    /// Nothing yet.
    pub(super) fn new(builder: &'b mut Builder) -> Collector<'b> {
        Collector { builder, attempts: Vec::new(), names: Names::default(), full: false }
    }

    /// A record that cannot be read.
    pub(super) fn bad(&mut self, line: u64, reason: impl FnOnce() -> String) {
        self.builder.bad(line, reason());
    }

    /// A step of a job: the job's own record counts.
    pub(super) fn step(&mut self, line: u64) {
        self.builder.skip(line, "steps of jobs: the job's own record counts");
    }

    /// A job's record.
    pub(super) fn take(&mut self, record: &Record<'_>, line: u64) {
        let start = record.real_start();
        // Without a time of submission it was submitted when it could start, or did.
        let Some(submit) = record.submit.or(record.eligible).or(start).or(record.end) else {
            return self.bad(line, || "has no time at all".into());
        };
        if self.attempts.len() == RECORDS_MAX {
            self.full = true;
            return;
        }
        if record.tasks {
            self.builder.ruled(line, "tasks of an array that wait together: the log has one record for all, which counts once");
        }
        let names = [record.cluster, record.account, record.user, record.partition, record.qos, record.gpu_kind];
        let [cluster, account, user, partition, qos, kind] = match self.names.numbers(names) {
            Ok(numbers) => numbers,
            Err(reason) => return self.bad(line, || reason),
        };
        // What `sbatch --wrap` submits is called `wrap`, whatever it is.
        let says_nothing = is_nothing(record.name) || (record.name == b"wrap" && !record.submit_line.is_empty());
        let name = self.builder.name(if says_nothing { record.submit_line } else { record.name });
        let attempt = Attempt {
            id: record.id,
            cluster,
            account,
            user,
            partition,
            qos,
            name,
            kind,
            state: record.settled_state(),
            submit,
            eligible: record.eligible.unwrap_or(submit).max(submit),
            start,
            end: record.end.filter(|_| start.is_some()),
            elapsed: record.elapsed,
            limit: record.limit,
            nodes: record.nodes.unwrap_or(0),
            cpus: record.cpus.unwrap_or(0),
            memory: record.memory,
            gpus: record.gpus,
            line,
        };
        match attempt.settled(&mut |rule| self.builder.ruled(line, rule)) {
            Ok(attempt) => self.attempts.push(attempt),
            Err(reason) => self.bad(line, || reason),
        }
    }

    /// The log is at its end: its records become jobs, and those the rows of the trace.
    pub(super) fn finish(self) -> Result<(), String> {
        if self.full {
            return Err(format!("more than {RECORDS_MAX} records of jobs: cut the file into parts"));
        }
        let Collector { builder, attempts, names, .. } = self;
        let named = |number: u32| !names.list[number as usize].is_empty();
        let has = Has { accounts: attempts.iter().any(|a| named(a.account)), users: attempts.iter().any(|a| named(a.user)) };
        let jobs = fold(attempts, &mut |line, rule| builder.ruled(line, rule));
        builder.epoch_ms(0);
        builder.teams_by_column();
        builder.counts_runs();
        for mut job in jobs {
            if job.gpus == 0 && job.cpus == 0 && builder.reading.sizeless_jobs {
                job.cpus = 1;
                builder.ruled(job.line, "jobs that say neither GPUs nor CPUs count as one CPU");
            }
            if job.gpus == 0 && !builder.takes_cpu_job(job.line, job.cpus) {
                continue;
            }
            match row(&job, &names, &has, builder) {
                Ok(row) => builder.push(row)?,
                Err(reason) => builder.bad(job.line, reason),
            }
        }
        Ok(())
    }
}

/// What the log names at all.
struct Has {
    accounts: bool,
    users: bool,
}

/// The row of a job.
fn row(job: &SlurmJob, names: &Names, has: &Has, builder: &mut Builder) -> Result<Row, String> {
    let name = |number: u32| names.list[number as usize].as_ref();
    let column = |from: &TeamFrom| {
        or_unknown(match from {
            TeamFrom::Account if has.accounts => name(job.account),
            TeamFrom::Account | TeamFrom::Partition => name(job.partition),
            TeamFrom::User => name(job.user),
            TeamFrom::Qos => name(job.qos),
        })
    };
    let team = match builder.reading.team_from.as_slice() {
        [one] => builder.team(column(one))?,
        // Each is a part of a path.
        several => {
            let parts: Vec<Vec<u8>> =
                several.iter().map(|from| column(from).iter().map(|&b| if b == b'/' { b'-' } else { b }).collect()).collect();
            builder.team(&parts.join(&b'/'))?
        }
    };
    // Where the GPUs are spread evenly over the nodes the gang has a member on each.
    let members = if job.nodes > 0 && job.gpus.is_multiple_of(job.nodes) { job.nodes } else { 0 };
    let outcome = outcome(job);
    Ok(Row {
        line: job.line,
        submit_ms: job.submit,
        eligible_ms: Some(job.eligible),
        start_ms: job.start,
        end_ms: job.end,
        work_ms: job.work.map_or(0, |work| work.max(1000)),
        redone_ms: job.redone,
        redone_nodes_ms: job.redone_nodes,
        redone_preempted_ms: job.redone_preempted,
        limit_ms: job.limit,
        limit_of_attempt: true,
        min_runtime_ms: None,
        members,
        gpus: job.gpus / members.max(1),
        cpus: job.cpus,
        memory_mib: job.memory,
        team,
        user: if has.users { builder.user(or_unknown(name(job.user)))? } else { 0 },
        name: job.name,
        pools: builder.pools(name(job.kind), b',')?,
        priority: 0,
        on_preempt: None,
        attempts: job.attempts,
        preemptions: job.preemptions,
        outcome,
        depends: false,
    })
}

fn or_unknown(name: &[u8]) -> &[u8] {
    if name.is_empty() { b"unknown" } else { name }
}

fn outcome(job: &SlurmJob) -> Outcome {
    match job.state {
        _ if job.overrun => Outcome::TimedOut,
        State::Pending => Outcome::Waiting,
        State::Running | State::Suspended => Outcome::Running,
        State::Completed => Outcome::Completed,
        State::Cancelled => Outcome::Cancelled,
        State::Failed => Outcome::Failed,
        State::OutOfMemory => Outcome::OutOfMemory,
        State::TimedOut | State::Deadline => Outcome::TimedOut,
        State::NodeFailed | State::BootFailed => Outcome::NodeFailed,
        State::Preempted | State::Requeued => Outcome::Preempted,
        State::Ended => Outcome::Unknown,
    }
}

/// Names by number.
#[derive(Default)]
struct Names {
    numbers: HashMap<Box<[u8]>, u32>,
    list: Vec<Box<[u8]>>,
    bytes: usize,
    last: [u32; NAMES],
}

/// Names of one record: cluster, account, user, partition, QOS, type of GPU.
const NAMES: usize = 6;

/// A name is at most so long, and all together.
const NAME_MAX: usize = 256;
const NAMES_MAX: usize = 256 << 20;

impl Names {
    /// The numbers of the names of one record. A log has long stretches of one partition and one user, so the last record is looked at first.
    fn numbers(&mut self, names: [&[u8]; NAMES]) -> Result<[u32; NAMES], String> {
        let mut numbers = self.last;
        for (number, name) in numbers.iter_mut().zip(names) {
            if self.list.get(*number as usize).is_none_or(|last| last.as_ref() != name) {
                *number = self.number(name)?;
            }
        }
        self.last = numbers;
        Ok(numbers)
    }

    fn number(&mut self, name: &[u8]) -> Result<u32, String> {
        if let Some(&number) = self.numbers.get(name) {
            return Ok(number);
        }
        if name.len() > NAME_MAX {
            return Err(format!("has a name of {} bytes; {NAME_MAX} are possible", name.len()));
        }
        if self.bytes + name.len() > NAMES_MAX {
            return Err("there is no room for further names".into());
        }
        // What the maps need besides.
        self.bytes += name.len() + 64;
        let number = self.list.len() as u32;
        self.list.push(name.into());
        self.numbers.insert(name.into(), number);
        Ok(number)
    }
}
