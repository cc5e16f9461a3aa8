//! CSV with a header that names what each column holds: ours, the benchmark's, Philly's.

use super::builder::Builder;
use super::csv::{Fields, record};
use super::input::{Input, Line};
use super::number::{civil_ms, integer, seconds_ms};
use super::outcome::Outcome;
use super::{Row, cut_record};
use stipend_core::spec::OnPreempt;

/// How a form writes its times of submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Clock {
    Seconds,
    WallClock,
}

/// The columns of one form, by their position in the header.
struct Columns {
    clock: Clock,
    submit: usize,
    work: usize,
    gpus: usize,
    members: Option<usize>,
    team: Option<usize>,
    user: Option<usize>,
    name: Option<usize>,
    attempts: Option<usize>,
    limit: Option<usize>,
    min_runtime: Option<usize>,
    on_preempt: Option<usize>,
    priority: Option<usize>,
    fails: Option<usize>,
    status: Option<usize>,
    pools: Option<usize>,
    width: usize,
}

/// Reads the whole file.
pub(super) fn read(input: &mut Input<'_>, builder: &mut Builder) -> Result<(), String> {
    let mut fields = Fields::default();
    let columns = match record(input).map_err(|error| error.to_string())? {
        Some(header) => Columns::find(&header, &mut fields)?,
        None => return Err("the file is empty".into()),
    };
    if columns.clock == Clock::WallClock {
        builder.called("Philly CSV");
        builder.epoch_ms(0);
    }
    while let Some(line) = record(input).map_err(|error| error.to_string())? {
        if line.text.is_empty() {
            continue;
        }
        match columns.row(&line, &mut fields, builder) {
            Ok(row) => builder.push(row)?,
            Err(reason) => builder.bad(line.number, reason),
        }
    }
    Ok(())
}

/// What the columns of a header are called.
pub(super) fn names(header: &[u8], fields: &mut Fields) -> Vec<String> {
    let header = header.strip_prefix(b"\xef\xbb\xbf").unwrap_or(header);
    fields.cut(header);
    (0..fields.len()).map(|index| String::from_utf8_lossy(&fields.get(header, index)).into_owned()).collect()
}

/// Whether a header is one of these forms.
pub(super) fn is_header(names: &[String]) -> bool {
    Columns::of(names).is_some()
}

impl Columns {
    /// Finds the form by its header.
    fn find(header: &Line<'_>, fields: &mut Fields) -> Result<Columns, String> {
        let names = names(header.text, fields);
        Columns::of(&names).ok_or_else(|| unknown_header(&names))
    }

    /// The same by the header's names.
    fn of(names: &[String]) -> Option<Columns> {
        let find = |name: &str| names.iter().position(|known| known == name);
        let (clock, submit, work) = if let (Some(submit), Some(work)) = (find("submit_s"), find("work_s").or(find("runtime_s"))) {
            (Clock::Seconds, submit, work)
        } else if let (Some(submit), Some(work)) = (find("timestamp"), find("duration")) {
            (Clock::WallClock, submit, work)
        } else {
            return None;
        };
        let members = find("members").filter(|_| find("gpus_per_member").is_some());
        let gpus = members.and_then(|_| find("gpus_per_member")).or(find("gpus")).or(find("num_gpus"));
        Some(Columns {
            clock,
            submit,
            work,
            gpus: gpus?,
            members,
            team: find("team").or(find("cluster")),
            user: find("user"),
            name: find("name").or(find("command")),
            attempts: find("attempts"),
            limit: find("time_limit_s").or(find("timelimit_s")),
            min_runtime: find("min_runtime_s"),
            on_preempt: find("on_preempt"),
            priority: find("priority"),
            fails: find("fails"),
            status: find("status"),
            pools: find("pools"),
            width: names.len(),
        })
    }

    /// One workload, or why it is none.
    fn row(&self, line: &Line<'_>, fields: &mut Fields, builder: &mut Builder) -> Result<Row, String> {
        if line.cut {
            return Err(cut_record());
        }
        fields.cut(line.text);
        if fields.len() != self.width {
            return Err(format!("has {} fields, the header has {}", fields.len(), self.width));
        }
        let field = |column: usize| fields.get(line.text, column);
        let submit_ms = match self.clock {
            Clock::Seconds => needed(&field(self.submit), "time of submission", seconds_ms)?,
            Clock::WallClock => needed(&field(self.submit), "time of submission", civil_ms)?,
        };
        let work_ms = needed(&field(self.work), "run time", seconds_ms)?;
        let gpus = needed(&field(self.gpus), "number of GPUs, at least 1", count)?;
        let members = self.members.map_or(Ok(0), |column| needed(&field(column), "number of members, at least 1", count))?;
        let optional = |column: Option<usize>| column.map(field).filter(|text| !text.is_empty());
        let fails = match optional(self.fails) {
            Some(text) => needed(&text, "fails (0 or 1)", integer)? != 0,
            None => false,
        };
        let completed = match optional(self.status) {
            Some(text) => needed(&text, "status", integer)? == 1,
            None => true,
        };
        let outcome = match self.fails.or(self.status) {
            _ if fails || !completed => Outcome::Failed,
            Some(_) => Outcome::Completed,
            None => Outcome::Unknown,
        };
        let team = builder.team(&self.team.map_or(b"".as_slice().into(), field))?;
        let user = self.user.map_or(Ok(team), |column| builder.user(&field(column)))?;
        Ok(Row {
            line: line.number,
            submit_ms,
            // Such a file has no way to say that something never ran.
            work_ms: work_ms.max(1000),
            limit_ms: optional(self.limit).map_or(Ok(0), |text| needed(&text, "time limit", seconds_ms))?,
            min_runtime_ms: optional(self.min_runtime).map(|text| needed(&text, "min runtime", seconds_ms)).transpose()?,
            members,
            gpus,
            team,
            user,
            name: self.name.map_or(0, |column| builder.name(&field(column))),
            attempts: optional(self.attempts).map_or(Ok(0), |text| needed(&text, "number of attempts", attempts))?,
            pools: optional(self.pools).map_or(Ok(0), |text| builder.pools(&text, b'|'))?,
            priority: optional(self.priority).map_or(Ok(0), |text| needed(&text, "priority", priority))?,
            on_preempt: optional(self.on_preempt)
                .map(|text| needed(&text, "on_preempt (resume, restart or end)", on_preempt))
                .transpose()?,
            outcome,
            ..Row::default()
        })
    }
}

/// A field's value, or what it is not.
pub(super) fn needed<T>(text: &[u8], name: &str, parse: impl Fn(&[u8]) -> Option<T>) -> Result<T, String> {
    parse(text).ok_or_else(|| {
        let shown = &text[..text.len().min(64)];
        format!("`{}` is no {name}", String::from_utf8_lossy(shown))
    })
}

/// A number of GPUs, members or processors.
pub(super) fn count(text: &[u8]) -> Option<u32> {
    u32::try_from(integer(text)?).ok().filter(|&n| (1..=1_000_000).contains(&n))
}

fn attempts(text: &[u8]) -> Option<u16> {
    u16::try_from(integer(text)?).ok()
}

fn priority(text: &[u8]) -> Option<i16> {
    i16::try_from(integer(text)?).ok()
}

fn on_preempt(text: &[u8]) -> Option<OnPreempt> {
    match text {
        b"resume" => Some(OnPreempt::Resume),
        b"restart" => Some(OnPreempt::Restart),
        b"end" => Some(OnPreempt::End),
        _ => None,
    }
}

fn unknown_header(names: &[String]) -> String {
    let shown: String = names.join(",").chars().take(200).collect();
    format!(
        "the header `{shown}` is none that is known: expected submit_s, work_s, gpus, … (ours), submit_s, runtime_s, gpus, … (bench), timestamp, duration, num_gpus, … (Philly), what sacct prints, or lines of the Standard Workload Format",
    )
}
