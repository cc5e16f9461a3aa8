//! Which column holds what, and how a record becomes a row.

use super::number::{civil_ms, integer, seconds_ms};
use super::{Labels, Row};
use csv::ByteRecord;
use stipend_core::spec::OnPreempt;

/// How a form writes its times of submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Clock {
    Seconds,
    WallClock,
}

/// The columns of one form, by their position in the header.
pub(super) struct Columns {
    clock: Clock,
    submit: usize,
    work: usize,
    gpus: usize,
    members: Option<usize>,
    team: Option<usize>,
    user: Option<usize>,
    limit: Option<usize>,
    min_runtime: Option<usize>,
    on_preempt: Option<usize>,
    priority: Option<usize>,
    fails: Option<usize>,
    status: Option<usize>,
    width: usize,
}

impl Columns {
    /// Finds the form by its header.
    pub(super) fn detect(header: &ByteRecord) -> Result<Columns, String> {
        let find = |name: &str| {
            header.iter().position(|h| h.trim_ascii().strip_prefix(b"\xef\xbb\xbf").unwrap_or(h.trim_ascii()) == name.as_bytes())
        };
        let (clock, submit, work) = if let (Some(submit), Some(work)) = (find("submit_s"), find("work_s").or(find("runtime_s"))) {
            (Clock::Seconds, submit, work)
        } else if let (Some(submit), Some(work)) = (find("timestamp"), find("duration")) {
            (Clock::WallClock, submit, work)
        } else {
            return Err(unknown_header(header));
        };
        let members = find("members").filter(|_| find("gpus_per_member").is_some());
        let gpus = members.and_then(|_| find("gpus_per_member")).or(find("gpus")).or(find("num_gpus"));
        Ok(Columns {
            clock,
            submit,
            work,
            gpus: gpus.ok_or_else(|| unknown_header(header))?,
            members,
            team: find("team").or(find("cluster")),
            user: find("user"),
            limit: find("time_limit_s").or(find("timelimit_s")),
            min_runtime: find("min_runtime_s"),
            on_preempt: find("on_preempt"),
            priority: find("priority"),
            fails: find("fails"),
            status: find("status"),
            width: header.len(),
        })
    }

    /// Whether the trace names its users.
    pub(super) fn has_users(&self) -> bool {
        self.user.is_some()
    }

    /// One workload, or why it is none.
    pub(super) fn row(&self, record: &ByteRecord, teams: &mut Labels, users: &mut Labels) -> Result<Row, String> {
        if record.len() != self.width {
            return Err(format!("has {} fields, the header has {}", record.len(), self.width));
        }
        let submit_ms = match self.clock {
            Clock::Seconds => seconds_ms(&record[self.submit]),
            Clock::WallClock => civil_ms(&record[self.submit]),
        };
        let submit_ms = submit_ms.ok_or_else(|| wrong("time of submission", &record[self.submit]))?;
        let work_ms = seconds_ms(&record[self.work]).ok_or_else(|| wrong("run time", &record[self.work]))?;
        let gpus = count(&record[self.gpus]).ok_or_else(|| wrong("number of GPUs, at least 1", &record[self.gpus]))?;
        let members = match self.members {
            Some(column) => count(&record[column]).ok_or_else(|| wrong("number of members, at least 1", &record[column]))?,
            None => 0,
        };
        let limit_ms = optional(self.limit, record, "time limit", seconds_ms)?.unwrap_or(0);
        let min_runtime_ms = optional(self.min_runtime, record, "min runtime", seconds_ms)?.unwrap_or(-1);
        let on_preempt = optional(self.on_preempt, record, "on_preempt (resume, restart or end)", on_preempt)?;
        let priority = optional(self.priority, record, "priority", |text| i16::try_from(integer(text)?).ok())?.unwrap_or(0);
        let fails = optional(self.fails, record, "fails (0 or 1)", |text| Some(integer(text)? != 0))?.unwrap_or(false);
        let completed = optional(self.status, record, "status", |text| Some(integer(text)? == 1))?.unwrap_or(true);
        let team = teams.number(self.team.map_or(b"".as_slice(), |column| &record[column]));
        let user = self.user.map_or(team, |column| users.number(&record[column]));
        Ok(Row {
            submit_ms,
            work_ms: work_ms.max(1000),
            limit_ms,
            min_runtime_ms,
            members,
            gpus,
            team,
            user,
            priority,
            on_preempt,
            fails: fails || !completed,
        })
    }
}

fn count(text: &[u8]) -> Option<u32> {
    u32::try_from(integer(text)?).ok().filter(|&n| (1..=1_000_000).contains(&n))
}

/// An optional column; an empty field counts as none.
fn optional<T>(column: Option<usize>, record: &ByteRecord, name: &str, parse: impl Fn(&[u8]) -> Option<T>) -> Result<Option<T>, String> {
    match column.map(|column| &record[column]) {
        None | Some(b"") => Ok(None),
        Some(text) => parse(text).map(Some).ok_or_else(|| wrong(name, text)),
    }
}

fn on_preempt(text: &[u8]) -> Option<OnPreempt> {
    match text {
        b"resume" => Some(OnPreempt::Resume),
        b"restart" => Some(OnPreempt::Restart),
        b"end" => Some(OnPreempt::End),
        _ => None,
    }
}

fn wrong(name: &str, text: &[u8]) -> String {
    format!("`{}` is no {name}", String::from_utf8_lossy(text))
}

fn unknown_header(header: &ByteRecord) -> String {
    let names: Vec<_> = header.iter().map(String::from_utf8_lossy).collect();
    format!(
        "the header `{}` is none that is known: expected submit_s, work_s, gpus, … (ours), submit_s, runtime_s, gpus, … (bench) or timestamp, duration, num_gpus, … (Philly)",
        names.join(",")
    )
}
