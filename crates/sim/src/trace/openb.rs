//! Alibaba's GPU cluster of 2023 as `openb` publishes it: a CSV of pods, and one of nodes.
//!
//! The rules for pods:
//! - A part of a GPU (`gpu_milli` below 1000) is taken as a whole one; a pod without GPUs is skipped, unless there are pools for such work.
//! - `gpu_spec` is the pools it accepts, in order: `V100M16|V100M32`; empty is any.
//! - A pod has no owner: its quality of service (`qos`) is its team, so that the scenario's rules can tell the classes apart.
//! - It is submitted when created and ran from `scheduled_time` to `deletion_time`. One that was never scheduled never ran. One that was never
//!   deleted, or deleted at the last moment of the file while it ran, still runs.

use super::builder::Builder;
use super::columns::{count, names, needed};
use super::csv::{Fields, record};
use super::input::{Input, Line};
use super::number::{integer, seconds_ms};
use super::outcome::Outcome;
use super::{Row, cut_record};

/// The columns of a list of pods, by their position in the header.
struct Columns {
    cpu_milli: Option<usize>,
    memory_mib: Option<usize>,
    num_gpu: usize,
    gpu_milli: Option<usize>,
    gpu_spec: Option<usize>,
    qos: usize,
    phase: usize,
    created: usize,
    deleted: usize,
    scheduled: usize,
    width: usize,
}

/// Whether a header is one of a list of pods.
pub(super) fn is_header(names: &[String]) -> bool {
    Columns::find(names).is_some()
}

/// Reads the whole file.
pub(super) fn read(input: &mut Input<'_>, builder: &mut Builder) -> Result<(), String> {
    let mut fields = Fields::default();
    let header = record(input).map_err(|error| error.to_string())?.map(|line| names(line.text, &mut fields)).unwrap_or_default();
    let columns = Columns::find(&header).ok_or("the header is none of a list of pods")?;
    while let Some(line) = record(input).map_err(|error| error.to_string())? {
        if line.text.is_empty() {
            continue;
        }
        match columns.row(&line, &mut fields, builder) {
            Ok(Some(row)) => builder.push(row)?,
            Ok(None) => {}
            Err(reason) => builder.bad(line.number, reason),
        }
    }
    Ok(())
}

impl Columns {
    fn find(names: &[String]) -> Option<Columns> {
        let find = |name: &str| names.iter().position(|known| known == name);
        Some(Columns {
            cpu_milli: find("cpu_milli"),
            memory_mib: find("memory_mib"),
            num_gpu: find("num_gpu")?,
            gpu_milli: find("gpu_milli"),
            gpu_spec: find("gpu_spec"),
            qos: find("qos")?,
            phase: find("pod_phase")?,
            created: find("creation_time")?,
            deleted: find("deletion_time")?,
            scheduled: find("scheduled_time")?,
            width: names.len(),
        })
    }

    /// One pod; `None` if it was skipped.
    fn row(&self, line: &Line<'_>, fields: &mut Fields, builder: &mut Builder) -> Result<Option<Row>, String> {
        if line.cut {
            return Err(cut_record());
        }
        fields.cut(line.text);
        if fields.len() != self.width {
            return Err(format!("has {} fields, the header has {}", fields.len(), self.width));
        }
        let field = |column: usize| fields.get(line.text, column);
        let optional = |column: Option<usize>| column.map(field).filter(|text| !text.is_empty());
        let time = |column: usize, name: &str| {
            let text = field(column);
            if text.is_empty() { Ok(None) } else { needed(&text, name, seconds_ms).map(Some) }
        };
        let gpus = field(self.num_gpu);
        let cpus = optional(self.cpu_milli).map_or(Ok(0), |text| needed(&text, "cpu_milli", whole))?.div_ceil(1000);
        let gpus = if gpus.as_ref() == b"0" { 0 } else { needed(&gpus, "number of GPUs", count)? };
        if gpus == 0 && !builder.takes_cpu_job(line.number, cpus) {
            return Ok(None);
        }
        let milli = optional(self.gpu_milli).map_or(Ok(1000), |text| needed(&text, "gpu_milli", integer))?;
        let submit_ms = time(self.created, "creation_time")?.ok_or("has no creation_time")?;
        let (start_ms, end_ms) = (time(self.scheduled, "scheduled_time")?, time(self.deleted, "deletion_time")?);
        if start_ms.is_some_and(|start| start < submit_ms) || start_ms.zip(end_ms).is_some_and(|(start, end)| end < start) {
            return Err("is scheduled before its creation, or deleted before that".into());
        }
        if milli < 1000 && gpus > 0 {
            builder.ruled(line.number, "a part of a GPU counts as a whole one");
        }
        if start_ms.is_none() {
            end_ms.into_iter().for_each(|end| builder.saw_ms(end));
        }
        let team = builder.team(&field(self.qos))?;
        Ok(Some(Row {
            line: line.number,
            submit_ms,
            start_ms,
            end_ms: start_ms.and(end_ms),
            work_ms: start_ms.zip(end_ms).map_or(0, |(start, end)| (end - start).max(1000)),
            members: 1,
            gpus,
            cpus,
            memory_mib: optional(self.memory_mib).map_or(Ok(0), |text| needed(&text, "memory_mib", whole))?,
            team,
            pools: optional(self.gpu_spec).map_or(Ok(0), |text| builder.pools(&text, b'|'))?,
            outcome: outcome(&field(self.phase), start_ms.is_some()),
            ..Row::default()
        }))
    }
}

fn whole(text: &[u8]) -> Option<u32> {
    u32::try_from(integer(text)?).ok()
}

fn outcome(phase: &[u8], started: bool) -> Outcome {
    match phase {
        _ if !started => Outcome::Waiting,
        b"Succeeded" => Outcome::Completed,
        b"Failed" => Outcome::Failed,
        b"Running" => Outcome::Running,
        _ => Outcome::Unknown,
    }
}
