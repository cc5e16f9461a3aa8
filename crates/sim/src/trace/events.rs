//! Our own event log (`docs/reference/event-log.md`): what a simulation wrote with `--events`, or a daemon exported.
//!
//! The rules:
//! - A workload is a row: its attempts are added up, from each `started` to its `ended`.
//! - It waits from `eligible` until all its members run for the first time.
//! - What preempted and requeued attempts lost is as the log says (`lost_gpu_ms`): since the last checkpoint, as far as the scheduler knew.
//! - Its name is the one that `submitted` has, else its label; `w123` is none.
//! - A log may break off: what ran then still runs, and what was to go on still waits.

use super::builder::Builder;
use super::input::{Input, Line};
use super::outcome::Outcome;
use super::{Row, cut_record};
use crate::log::line;
use crate::scenario::file_work::OnPreemptText;
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::HashMap;
use stipend_core::spec::OnPreempt;

/// Times from here on are of a clock, not counted from the start of a simulation.
const SINCE_1970: i64 = 100_000_000_000;

/// No log reaches further, ms; and no gang is wider.
const TIME_MAX: i64 = 100_000_000_000_000;
const WIDTH_MAX: u32 = 1_000_000;

/// Whether a file that begins so is an event log.
pub(super) fn is_log(head: &[u8]) -> bool {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let first = head.split(|&byte| byte == b'\n').find(|line| !line.trim_ascii().is_empty()).unwrap_or_default();
    // The first line has all knobs, and may be longer than what is looked at.
    let has = |name: &[u8]| first.windows(name.len()).take(4096).any(|part| part == name);
    first.trim_ascii_start().starts_with(b"{") && has(b"\"t_ms\"") && has(b"\"event\"")
}

/// Reads the whole file.
pub(super) fn read(input: &mut Input<'_>, builder: &mut Builder) -> Result<(), String> {
    let mut workloads = Workloads { builder, open: HashMap::new(), latest: i64::MIN };
    while let Some(line) = input.line().map_err(|error| error.to_string())? {
        if line.text.trim_ascii().is_empty() {
            continue;
        }
        if let Err(reason) = workloads.line(&line) {
            workloads.builder.bad(line.number, reason);
        }
    }
    workloads.finish()
}

/// What every line has.
#[derive(Deserialize)]
struct Head<'a> {
    t_ms: i64,
    #[serde(borrow)]
    event: Cow<'a, str>,
}

/// What is read of the lines about workloads; each has some of it.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Said {
    workload: String,
    attempt: Option<u32>,
    name: Option<String>,
    budget: String,
    user: String,
    pools: Vec<String>,
    members: u32,
    gpus_per_member: u32,
    cpus_per_member: u32,
    memory_per_member_bytes: u64,
    min_runtime_ms: i64,
    time_limit_ms: Option<i64>,
    on_preempt: Option<OnPreemptText>,
    priority: i16,
    outcome: Option<line::Outcome>,
    lost_gpu_ms: i64,
}

/// Workloads while the log is read.
struct Workloads<'b> {
    builder: &'b mut Builder,
    /// Those that have not ended for good, by their labels.
    open: HashMap<String, Open>,
    latest: i64,
}

/// One that has not.
struct Open {
    row: Row,
    /// When its present attempt was given its GPUs.
    since: Option<i64>,
    /// How its last attempt ended, if nothing followed.
    ended: Option<Outcome>,
}

impl Workloads<'_> {
    fn line(&mut self, line: &Line<'_>) -> Result<(), String> {
        if line.cut {
            return Err(cut_record());
        }
        let wrong = |error: serde_json::Error| format!("cannot be read: {error}");
        let head: Head<'_> = serde_json::from_slice(line.text).map_err(wrong)?;
        let at = head.t_ms;
        if !(0..=TIME_MAX).contains(&at) {
            return Err(format!("`t_ms` is {at}; it is from 0 to {TIME_MAX}"));
        }
        if self.latest == i64::MIN && at >= SINCE_1970 {
            self.builder.epoch_ms(0);
        }
        self.latest = self.latest.max(at);
        if !matches!(head.event.as_ref(), "submitted" | "eligible" | "started" | "running" | "ended" | "requeued") {
            return Ok(());
        }
        let said: Said = serde_json::from_slice(line.text).map_err(wrong)?;
        if head.event == "submitted" {
            return self.submitted(at, said, line.number);
        }
        // A log that was cut at its begin tells of work whose submission it does not have.
        let Some(open) = self.open.get_mut(&said.workload) else {
            if head.event == "started" {
                self.builder.skip(line.number, "starts of workloads whose submission is not in the log");
            }
            return Ok(());
        };
        match head.event.as_ref() {
            "eligible" if open.row.start_ms.is_none() => open.row.eligible_ms = Some(at),
            "started" => {
                open.since = Some(at);
                open.row.end_ms = None;
                open.row.attempts = open.row.attempts.saturating_add(1);
            }
            "running" => {
                open.row.start_ms.get_or_insert(at);
            }
            "requeued" => open.ended = None,
            "ended" => {
                let outcome = said.outcome.map_or(Outcome::Unknown, outcome);
                open.end(at, outcome, said.lost_gpu_ms, said.attempt.is_some());
                if !matches!(outcome, Outcome::Preempted | Outcome::NodeFailed) {
                    let open = self.open.remove(&said.workload).expect("it was just found");
                    self.builder.push(open.row)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn submitted(&mut self, at: i64, said: Said, line: u64) -> Result<(), String> {
        if said.workload.is_empty() || said.members == 0 || said.gpus_per_member == 0 && said.cpus_per_member == 0 {
            return Err("a submission without a workload, members or GPUs".into());
        }
        if said.members.max(said.gpus_per_member).max(said.cpus_per_member) > WIDTH_MAX {
            return Err(format!("a submission with more than {WIDTH_MAX} members, or so many GPUs or CPUs for one"));
        }
        if said.gpus_per_member == 0 && !self.builder.takes_cpu_job(line, said.cpus_per_member.saturating_mul(said.members)) {
            return Ok(());
        }
        let label = said.workload.strip_prefix('w').is_none_or(|rest| !rest.bytes().all(|byte| byte.is_ascii_digit()));
        let name = said.name.as_deref().or(label.then_some(said.workload.as_str())).unwrap_or_default();
        let mebibytes = u64::from(said.members).saturating_mul(said.memory_per_member_bytes) >> 20;
        let row = Row {
            line,
            submit_ms: at,
            limit_ms: said.time_limit_ms.unwrap_or(0).max(0),
            min_runtime_ms: Some(said.min_runtime_ms.max(0)),
            members: said.members,
            gpus: said.gpus_per_member,
            cpus: said.cpus_per_member.saturating_mul(said.members),
            memory_mib: u32::try_from(mebibytes).unwrap_or(u32::MAX),
            team: self.builder.team(said.budget.as_bytes())?,
            user: self.builder.user(said.user.as_bytes())?,
            name: self.builder.name(name.as_bytes()),
            pools: self.builder.pools(said.pools.join(",").as_bytes(), b',')?,
            priority: said.priority,
            on_preempt: said.on_preempt.map(OnPreemptText::into),
            outcome: Outcome::Waiting,
            ..Row::default()
        };
        self.open.insert(said.workload, Open { row, since: None, ended: None });
        Ok(())
    }

    /// What had not ended when the log did.
    fn finish(self) -> Result<(), String> {
        let Workloads { builder, open, latest } = self;
        builder.saw_ms(latest);
        let mut rest: Vec<Open> = open.into_values().collect();
        rest.sort_by_key(|open| open.row.line);
        for mut open in rest {
            match (open.since, open.ended) {
                (Some(since), _) => {
                    open.row.outcome = Outcome::Running;
                    open.row.start_ms.get_or_insert(since);
                    open.row.work_ms = open.row.work_ms.saturating_add(latest.saturating_sub(since).max(0));
                }
                // What cannot go on after a preemption, and what has used its limit up, is over; anything else was to wait again.
                (None, Some(ended)) if open.is_over() => open.row.outcome = ended,
                (None, _) => open.row.outcome = Outcome::Waiting,
            }
            builder.push(open.row)?;
        }
        Ok(())
    }
}

impl Open {
    /// Whether an end that is no fault of its own is its last.
    fn is_over(&self) -> bool {
        let row = &self.row;
        let cannot_go_on = row.on_preempt == Some(OnPreempt::End) && row.start_ms.is_some();
        cannot_go_on || (row.limit_ms > 0 && row.work_ms >= row.limit_ms)
    }

    /// An attempt, or the wait of what never ran, is over.
    fn end(&mut self, at: i64, outcome: Outcome, lost_gpu_ms: i64, of_attempt: bool) {
        self.row.outcome = outcome;
        self.ended = Some(outcome);
        if let Some(since) = self.since.take().filter(|_| of_attempt) {
            let ran = at.saturating_sub(since).max(0);
            self.row.work_ms = self.row.work_ms.saturating_add(ran);
            self.row.end_ms = Some(at);
            if matches!(outcome, Outcome::Preempted | Outcome::NodeFailed) {
                let gpus = i64::try_from(self.row.all_gpus()).unwrap_or(i64::MAX).max(1);
                let lost = (lost_gpu_ms.max(0) / gpus).min(ran);
                self.row.redone_ms = self.row.redone_ms.saturating_add(lost);
                let own = if outcome == Outcome::Preempted { &mut self.row.redone_preempted_ms } else { &mut self.row.redone_nodes_ms };
                *own = own.saturating_add(lost);
            }
            self.row.preemptions = self.row.preemptions.saturating_add(u16::from(outcome == Outcome::Preempted));
        }
    }
}

fn outcome(written: line::Outcome) -> Outcome {
    match written {
        line::Outcome::Completed => Outcome::Completed,
        line::Outcome::Failed => Outcome::Failed,
        line::Outcome::Preempted => Outcome::Preempted,
        line::Outcome::Cancelled => Outcome::Cancelled,
        line::Outcome::TimedOut => Outcome::TimedOut,
        line::Outcome::NodeLost | line::Outcome::StartTimeout => Outcome::NodeFailed,
    }
}

#[cfg(test)]
mod tests {
    use crate::trace::outcome::Outcome;
    use crate::trace::{Reading, Trace};
    use stipend_core::spec::OnPreempt;

    const LOG: &str = r#"{"v":1,"t_ms":1790000000000,"event":"node","node":"n0","pool":"gpu"}
{"t_ms":1790000000000,"event":"submitted","workload":"w1","name":"train_seed7","budget":"lab/nlp","user":"ann","pools":["gpu"],"members":2,"gpus_per_member":8,"cpus_per_member":0,"memory_per_member_bytes":0,"min_runtime_ms":3600000,"time_limit_ms":null,"on_preempt":"resume","priority":1}
{"t_ms":1790000000000,"event":"eligible","workload":"w1"}
{"t_ms":1790000060000,"event":"started","workload":"w1","attempt":1}
{"t_ms":1790000065000,"event":"running","workload":"w1","attempt":1,"protected_until_ms":null}
{"t_ms":1790007260000,"event":"ended","workload":"w1","attempt":1,"outcome":"preempted","lost_gpu_ms":9600000,"by":null}
{"t_ms":1790007260000,"event":"requeued","workload":"w1"}
{"t_ms":1790007260000,"event":"submitted","workload":"sweep-4","budget":"lab/cv","user":"bob","pools":["gpu"],"members":1,"gpus_per_member":1,"min_runtime_ms":0,"on_preempt":"restart","priority":0}
{"t_ms":1790007300000,"event":"started","workload":"w1","attempt":2}
{"t_ms":1790010900000,"event":"ended","workload":"w1","attempt":2,"outcome":"completed","lost_gpu_ms":0,"by":null}
{"t_ms":1790010900000,"event":"started","workload":"sweep-4","attempt":1}
{"t_ms":1790010900000,"event":"started","workload":"old","attempt":3}
{"t_ms":"soon","event":"ended"}
{"t_ms":1790014500000,"event":"checkpoint","workload":"sweep-4","attempt":1}
"#;

    #[test]
    fn attempts_of_a_workload_are_one_row() {
        let trace = Trace::read(LOG.as_bytes(), Reading::default()).expect("an event log");
        assert_eq!((trace.form, trace.rows.len(), trace.bad_rows, trace.skipped[0].rows), ("event log", 2, 1, 1));
        assert_eq!(trace.epoch_ms, Some(1_790_000_000_000));
        let [first, second] = [trace.rows[0], trace.rows[1]];
        assert_eq!((first.start_ms, first.end_ms, first.work_ms), (Some(65_000), Some(10_900_000), 7_200_000 + 3_600_000));
        assert_eq!((first.attempts, first.preemptions, first.redone_ms, first.outcome), (2, 1, 600_000, Outcome::Completed));
        assert_eq!((first.members, first.gpus, first.min_runtime_ms, first.on_preempt), (2, 8, Some(3_600_000), Some(OnPreempt::Resume)));
        assert_eq!((second.outcome, second.work_ms, second.end_ms), (Outcome::Running, 3_600_000, None));
        let family = trace.family(&first);
        assert_eq!((family.user.as_str(), family.stem.as_str(), family.gpus), ("ann", "train_seed", 16));
        assert_eq!(trace.family(&second).stem, "sweep");
        assert_eq!(trace.teams, ["lab/nlp", "lab/cv"]);
    }

    /// What it had done before the log ended is known; the time between its attempts is none of it.
    #[test]
    fn work_that_goes_on_or_was_to_go_on_has_not_ended() {
        let lines: Vec<&str> = LOG.lines().collect();
        let waits = Trace::read((lines[..7].join("\n") + "\n").as_bytes(), Reading::default()).expect("an event log").rows[0];
        assert_eq!((waits.outcome, waits.work_ms, waits.redone_ms, waits.attempts), (Outcome::Waiting, 7_200_000, 600_000, 1));
        let later = lines[13].replace("1790014500000", "1790007900000");
        let runs = lines[..9].iter().copied().chain([later.as_str()]).collect::<Vec<_>>().join("\n");
        let runs = Trace::read(runs.as_bytes(), Reading::default()).expect("an event log").rows[0];
        assert_eq!((runs.outcome, runs.end_ms, runs.work_ms, runs.attempts), (Outcome::Running, None, 7_200_000 + 600_000, 2));
    }

    /// Between an end that is no fault of the work and the line that queues it again a log may break off, too.
    #[test]
    fn a_log_that_breaks_off_before_work_is_queued_again() {
        let lines: Vec<&str> = LOG.lines().collect();
        let last = |change: fn(String) -> String| {
            Trace::read(change(lines[..6].join("\n") + "\n").as_bytes(), Reading::default()).expect("an event log").rows[0]
        };
        let waits = last(|log| log.replace("\"preempted\"", "\"node_lost\""));
        assert_eq!((waits.outcome, waits.redone_nodes_ms), (Outcome::Waiting, 600_000), "it can go on");
        assert_eq!(last(|log| log.replace("\"on_preempt\":\"resume\"", "\"on_preempt\":\"end\"")).outcome, Outcome::Preempted, "it cannot");
        let spent = last(|log| log.replace("\"time_limit_ms\":null", "\"time_limit_ms\":7200000"));
        assert_eq!(spent.outcome, Outcome::Preempted, "it has no time left");
    }

    #[test]
    fn a_log_that_breaks_off_inside_a_line_is_read_up_to_there() {
        let trace = Trace::read(&LOG.as_bytes()[..LOG.len() / 2], Reading::default()).expect("an event log");
        assert_eq!((trace.rows.len(), trace.bad_rows), (1, 1));
        assert_eq!((trace.rows[0].outcome, trace.rows[0].attempts), (Outcome::Running, 1));
    }
}
