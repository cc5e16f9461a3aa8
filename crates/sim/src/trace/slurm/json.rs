//! `sacct --json` of Slurm 21.08 and later, and the jobs of `slurmrestd`.

use super::attempt::Record;
use super::collect::Collector;
use super::id::JobId;
use super::lenient::{Entry, Length, Number, Text};
use super::scan::{self, OBJECT_MAX};
use super::state::State;
use super::tres::{Resources, Tally, resources};
use super::value::{epoch_ms, is_nothing, limit_minutes};
use crate::trace::input::Input;
use serde::Deserialize;

/// Reads a document.
pub(super) fn read(input: &mut Input<'_>, out: &mut Collector<'_>) -> Result<(), String> {
    let mut any = false;
    let each = |cut: scan::Cut<'_>| {
        any = true;
        if !cut.whole {
            let why = if cut.text.len() < OBJECT_MAX / 2 {
                "the file ends in it".into()
            } else {
                format!("longer than {} MiB", OBJECT_MAX >> 20)
            };
            return out.bad(cut.number, || why);
        }
        match serde_json::from_slice::<Job<'_>>(cut.text) {
            Ok(job) => take(&job, cut.number, out),
            Err(error) if std::str::from_utf8(cut.text).is_ok() => out.bad(cut.number, || format!("cannot be read: {error}")),
            // Names of users and jobs come in whatever characters a shell had.
            Err(_) => match serde_json::from_str::<Job<'_>>(&String::from_utf8_lossy(cut.text)) {
                Ok(job) => take(&job, cut.number, out),
                Err(error) => out.bad(cut.number, || format!("cannot be read: {error}")),
            },
        }
    };
    scan::objects(input, "jobs", each).map_err(|error| error.to_string())?;
    if any { Ok(()) } else { Err("no list `jobs` with a job in it".into()) }
}

/// A job of the accounting (`slurmdbd`) or of the controller (`slurmctld`); each has fields that the other has not.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Job<'a> {
    job_id: Number,
    #[serde(borrow)]
    cluster: Text<'a>,
    #[serde(borrow)]
    account: Text<'a>,
    #[serde(borrow)]
    association: Association<'a>,
    #[serde(borrow)]
    user: Text<'a>,
    #[serde(borrow)]
    user_name: Text<'a>,
    #[serde(borrow)]
    name: Text<'a>,
    #[serde(borrow)]
    submit_line: Text<'a>,
    #[serde(borrow)]
    partition: Text<'a>,
    #[serde(borrow)]
    qos: Text<'a>,
    #[serde(borrow)]
    state: Text<'a>,
    #[serde(borrow)]
    job_state: Text<'a>,
    time: Times,
    submit_time: Number,
    eligible_time: Number,
    start_time: Number,
    end_time: Number,
    time_limit: Number,
    #[serde(borrow)]
    array: Array<'a>,
    array_job_id: Number,
    array_task_id: Number,
    #[serde(borrow)]
    array_task_string: Text<'a>,
    het: Het,
    het_job_id: Number,
    het_job_offset: Number,
    allocation_nodes: Number,
    node_count: Number,
    #[serde(borrow)]
    nodes: Text<'a>,
    tasks: Number,
    #[serde(borrow)]
    tres: Tres<'a>,
    #[serde(borrow)]
    tres_alloc_str: Text<'a>,
    #[serde(borrow)]
    tres_req_str: Text<'a>,
    #[serde(borrow)]
    tres_per_job: Text<'a>,
    #[serde(borrow)]
    tres_per_node: Text<'a>,
    #[serde(borrow)]
    tres_per_task: Text<'a>,
    #[serde(borrow)]
    gres_detail: Vec<Text<'a>>,
    steps: Length,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Association<'a> {
    #[serde(borrow)]
    account: Text<'a>,
    #[serde(borrow)]
    cluster: Text<'a>,
    #[serde(borrow)]
    user: Text<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Times {
    submission: Number,
    eligible: Number,
    start: Number,
    end: Number,
    elapsed: Number,
    limit: Number,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Array<'a> {
    job_id: Number,
    task_id: Number,
    #[serde(borrow)]
    task: Text<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Het {
    job_id: Number,
    job_offset: Number,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Tres<'a> {
    #[serde(borrow)]
    allocated: Vec<Entry<'a>>,
    #[serde(borrow)]
    requested: Vec<Entry<'a>>,
}

/// Hands a job on.
fn take(job: &Job<'_>, number: u64, out: &mut Collector<'_>) {
    for _ in 0..job.steps.0 {
        out.step(number);
    }
    match record(job) {
        Ok(record) => out.take(&record, number),
        Err(reason) => out.bad(number, || reason),
    }
}

fn record<'j>(job: &'j Job<'_>) -> Result<Record<'j>, String> {
    let (id, tasks) = id(job)?;
    let state = first(&[&job.state, &job.job_state]);
    let state = match state {
        b"" => return Err("has no state".into()),
        state => State::read(state).ok_or_else(|| format!("`{}` is no state", String::from_utf8_lossy(&state[..state.len().min(60)])))?,
    };
    let instant = |times: [Number; 2]| times.into_iter().find_map(|number| epoch_ms(number.0?));
    let nodes = job.allocation_nodes.0.or(job.node_count.0).and_then(|nodes| u32::try_from(nodes).ok());
    // The controller says when a job that runs will have to end.
    let end = instant([job.time.end, job.end_time]).filter(|_| !state.is_running());
    let mut record = Record {
        id,
        tasks,
        state: Some(state),
        cluster: first(&[&job.cluster, &job.association.cluster]),
        account: first(&[&job.account, &job.association.account]),
        user: first(&[&job.user, &job.user_name, &job.association.user]),
        name: job.name.bytes(),
        submit_line: job.submit_line.bytes(),
        partition: job.partition.bytes(),
        qos: job.qos.bytes(),
        submit: instant([job.time.submission, job.submit_time]),
        eligible: instant([job.time.eligible, job.eligible_time]),
        start: instant([job.time.start, job.start_time]),
        end,
        elapsed: job.time.elapsed.0.filter(|&elapsed| elapsed >= 0).map(|elapsed| elapsed.saturating_mul(1000)),
        limit: job.time.limit.0.or(job.time_limit.0).map_or(0, limit_minutes),
        nodes,
        without_nodes: nodes == Some(0) || is_nothing(job.nodes.bytes()),
        ..Record::default()
    };
    let wrong = |()| "a list of resources has no number of GPUs".to_string();
    let read = |text: &'j Text<'_>| resources(text.bytes()).map_err(wrong);
    let mut detail = Resources::default();
    for node in &job.gres_detail {
        let node = read(node)?;
        detail = Resources { gpus: detail.gpus.saturating_add(node.gpus), kind: detail.kind.or(node.kind), ..detail };
    }
    let many = |number: Number| number.0.and_then(|number| u32::try_from(number).ok()).unwrap_or(1);
    record.resources(&[
        listed(&job.tres.allocated),
        read(&job.tres_alloc_str)?,
        detail,
        listed(&job.tres.requested),
        read(&job.tres_req_str)?,
        read(&job.tres_per_job)?,
        read(&job.tres_per_node)?.on(nodes.unwrap_or(1)),
        read(&job.tres_per_task)?.on(many(job.tasks)),
    ]);
    Ok(record)
}

/// The job's number, and whether it stands for the tasks of an array that wait.
fn id(job: &Job<'_>) -> Result<(JobId, bool), String> {
    let some = |number: Number| number.0.filter(|&number| number > 0).map(i64::unsigned_abs);
    let small = |number: Number| number.0.and_then(|number| u32::try_from(number).ok());
    let own = some(job.job_id).ok_or("has no job_id")?;
    if let Some(het) = some(job.het.job_id).or(some(job.het_job_id)) {
        let component = small(job.het.job_offset).or(small(job.het_job_offset));
        return Ok((JobId { job: het, task: None, component }, false));
    }
    match some(job.array.job_id).or(some(job.array_job_id)) {
        Some(array) => {
            let task = small(job.array.task_id).or(small(job.array_task_id));
            let waits = !first(&[&job.array.task, &job.array_task_string]).is_empty();
            Ok((JobId { job: array, task, component: None }, task.is_none() && waits))
        }
        None => Ok((JobId { job: own, ..JobId::default() }, false)),
    }
}

/// The first text that says something.
fn first<'j>(texts: &[&'j Text<'_>]) -> &'j [u8] {
    texts.iter().map(|text| text.bytes()).find(|text| !text.is_empty()).unwrap_or_default()
}

/// The resources of a list of entries.
fn listed<'j>(entries: &'j [Entry<'_>]) -> Resources<'j> {
    let mut tally = Tally::default();
    for entry in entries {
        let count = entry.count.0.and_then(|count| u32::try_from(count).ok()).unwrap_or(0);
        match (entry.family.bytes(), entry.name.bytes()) {
            (b"cpu", _) => tally.cpus(count),
            (b"mem", _) => tally.memory(count),
            (b"node", _) => tally.nodes(count),
            (b"gres", b"gpu") | (b"gres/gpu", b"") => tally.gpus(None, count),
            (b"gres", name) => {
                if let Some(kind) = name.strip_prefix(b"gpu:") {
                    tally.gpus(Some(kind), count);
                }
            }
            _ => {}
        }
    }
    tally.resources()
}
