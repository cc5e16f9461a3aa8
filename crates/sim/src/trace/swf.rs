//! The Standard Workload Format, version 2.2 of the Parallel Workloads Archive
//! (<https://www.cs.huji.ac.il/labs/parallel/workload/swf.html>): header comments behind `;`, then 18 numbers a line, −1 for unknown.
//!
//! The rules:
//! - GPUs are processors: the allocated ones (field 5), else the requested (8), divided by the scenario's `procs_per_gpu` and rounded up.
//! - The group (13) is the team, the user (12) the user, the partition (16) the pool.
//! - A partial execution (status 2 to 4) is skipped: the line of the whole job, which the format puts before it, has its sum.
//! - The number of its executable (14) is its name.
//! - A job cancelled (5) without a run time never ran. Any other without one is skipped.
//! - The submit time is taken as it is: the wait for a preceding job (17) and the think time (18) are in it already.

use super::builder::Builder;
use super::columns::needed;
use super::input::{Input, Line};
use super::number::{integer, seconds_ms};
use super::outcome::Outcome;
use super::{Row, cut_record};

/// A line has so many numbers; some programs write more, which are left aside, or leave out the last ones, which then are unknown.
const FIELDS: usize = 18;

/// Job, submission, wait, run time, processors: without these there is no workload.
const FIELDS_MIN: usize = 5;

/// Header fields that a reader should see.
const ABOUT: [&[u8]; 6] = [b"Computer", b"Installation", b"MaxNodes", b"MaxProcs", b"StartTime", b"EndTime"];

/// Reads the whole file.
pub(super) fn read(input: &mut Input<'_>, builder: &mut Builder) -> Result<(), String> {
    if builder.reading.procs_per_gpu == 1 {
        builder.counts_processors();
    }
    while let Some(line) = input.line().map_err(|error| error.to_string())? {
        let text = line.text.trim_ascii_start();
        match text.first() {
            None => {}
            Some(b';') => comment(&text[1..], builder),
            Some(_) => match row(&line, builder) {
                Ok(Some(row)) => builder.push(row)?,
                Ok(None) => {}
                Err(reason) => builder.bad(line.number, reason),
            },
        }
    }
    Ok(())
}

/// Whether a line is one of this form.
pub(super) fn is_line(text: &[u8]) -> bool {
    let number = |field: &[u8]| field.iter().all(|byte| byte.is_ascii_digit() || b"-.".contains(byte));
    let mut fields = text.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty());
    let (first, count) = (fields.next(), fields.clone().count());
    first.is_some_and(number) && count + 1 >= FIELDS_MIN && fields.all(number)
}

fn comment(text: &[u8], builder: &mut Builder) {
    let Some(colon) = memchr::memchr(b':', text) else { return };
    let (name, value) = (text[..colon].trim_ascii(), text[colon + 1..].trim_ascii());
    if name == b"UnixStartTime" {
        if let Some(ms) = seconds_ms(value).filter(|&ms| ms > 0) {
            builder.epoch_ms(ms);
        }
    } else if ABOUT.contains(&name) && !value.is_empty() {
        let shown = |text: &[u8]| String::from_utf8_lossy(&text[..text.len().min(120)]).into_owned();
        builder.about(format!("{}: {}", shown(name), shown(value)));
    }
}

/// One workload; `None` if the line was skipped.
fn row(line: &Line<'_>, builder: &mut Builder) -> Result<Option<Row>, String> {
    if line.cut {
        return Err(cut_record());
    }
    let mut fields: [&[u8]; FIELDS] = [b"-1"; FIELDS];
    let mut count = 0;
    for (at, field) in line.text.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty()).take(FIELDS).enumerate() {
        fields[at] = field;
        count = at + 1;
    }
    if count < FIELDS_MIN {
        return Err(format!("has {count} fields; a line of this format has {FIELDS}"));
    }
    let [_, submit, wait, run, allocated, _, _, requested, limit, memory, status, user, group, executable, _, partition, preceding, _] =
        fields;
    let status = needed(status, "status", integer)?;
    if (2..=4).contains(&status) {
        builder.skip(line.number, "a partial execution: the line of the whole job has its sum");
        return Ok(None);
    }
    let submit_ms = known(submit, "time of submission")?.ok_or("the time of submission is unknown")?;
    let (wait_ms, run_ms) = (known(wait, "wait")?, known(run, "run time")?);
    let never_ran = status == 5 && run_ms.unwrap_or(0) == 0;
    if run_ms.is_none() && !never_ran {
        builder.skip(line.number, "its run time is unknown");
        return Ok(None);
    }
    let Some(processors) = processors(allocated)?.or(processors(requested)?) else {
        builder.skip(line.number, "its number of processors is unknown");
        return Ok(None);
    };
    let work_ms = if never_ran { 0 } else { run_ms.unwrap_or(0).max(1000) };
    let start_ms = wait_ms.filter(|_| !never_ran).map(|wait| submit_ms + wait);
    let memory_kib = known(memory, "memory")?.map_or(0, |thousands| thousands / 1000).saturating_mul(processors.into());
    Ok(Some(Row {
        line: line.number,
        submit_ms,
        start_ms,
        end_ms: start_ms.map(|start| start + work_ms),
        work_ms,
        limit_ms: known(limit, "requested time")?.unwrap_or(0),
        gpus: processors.div_ceil(builder.reading.procs_per_gpu.max(1)),
        memory_mib: u32::try_from(memory_kib >> 10).unwrap_or(u32::MAX),
        team: builder.team(shown(group))?,
        user: builder.user(shown(user))?,
        name: if unknown(executable) { 0 } else { builder.exact_name(&format!("executable {}", String::from_utf8_lossy(executable))) },
        pools: if unknown(partition) { 0 } else { builder.pools(partition, b',')? },
        outcome: outcome(status),
        depends: !unknown(preceding),
        ..Row::default()
    }))
}

fn outcome(status: i64) -> Outcome {
    match status {
        0 => Outcome::Failed,
        1 => Outcome::Completed,
        5 => Outcome::Cancelled,
        _ => Outcome::Unknown,
    }
}

/// Whether a field is not known: −1, or what some programs write in its place.
fn unknown(field: &[u8]) -> bool {
    field.starts_with(b"-")
}

/// The name of a user or group.
fn shown(field: &[u8]) -> &[u8] {
    if unknown(field) { b"unknown" } else { field }
}

/// Seconds as ms; `None` if unknown.
fn known(field: &[u8], name: &str) -> Result<Option<i64>, String> {
    if unknown(field) { Ok(None) } else { needed(field, name, seconds_ms).map(Some) }
}

/// A number of processors; `None` if unknown, which some programs write as 0.
fn processors(field: &[u8]) -> Result<Option<u32>, String> {
    if unknown(field) {
        return Ok(None);
    }
    let possible = |text: &[u8]| u32::try_from(integer(text)?).ok().filter(|&n| n <= 100_000_000);
    needed(field, "number of processors", possible).map(|processors| Some(processors).filter(|&n| n > 0))
}
