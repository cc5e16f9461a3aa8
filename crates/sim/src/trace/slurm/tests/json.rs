use super::{bad, read, reasons, rows};

/// A job as the accounting of four versions writes it: state, limit, array and resources differ.
fn accounted(id: u32, state: &str, limit: &str, array: &str, tres: &str) -> String {
    format!(
        r#"{{ "account": "nlp", "comment": {{"job": null, "system": "a \"quoted\" ] }} text\\"}}, "allocation_nodes": 2, "array": {array},
        "association": {{"account": "nlp", "cluster": "c", "partition": null, "user": "ann"}}, "cluster": "c",
        "time": {{"elapsed": 120, "eligible": 1682935260, "end": 1682935420, "start": 1682935300, "submission": 1682935200, "limit": {limit},
        "system": {{"seconds": 0}}}}, "het": {{"job_id": 0, "job_offset": null}}, "job_id": {id}, "name": "t\u00e9st", "nodes": "n[1-2]", "partition": "gpu",
        "qos": "normal", "state": {state}, "steps": [{{"step": {{"id": "{id}.batch"}}, "jobs": [1, 2]}}, {{}}],
        "tres": {{"allocated": [{tres}], "requested": []}}, "user": "ann", "working_directory": "\/home\/ann" }}"#
    )
}

fn entries(list: &[(&str, i64)]) -> String {
    let entries = list.iter().map(|(name, count)| {
        let (family, name) = name.split_once('/').unwrap_or((name, ""));
        format!(r#"{{"type": "{family}", "name": "{name}", "id": 1001, "count": {count}}}"#)
    });
    entries.collect::<Vec<_>>().join(", ")
}

const TEXT: &str = r#"{"current": "COMPLETED", "reason": "None"}"#;
const LIST: &str = r#"{"current": ["TIMEOUT"], "reason": "None"}"#;
const OBJECT: &str = r#"{"set": true, "infinite": false, "number": 1440}"#;
const INFINITE: &str = r#"{"set": true, "infinite": true, "number": 0}"#;
const ALONE: &str = r#"{"job_id": 0, "task_id": null, "task": null, "limits": {"max": {"running": {"tasks": 0}}}}"#;
const TASK: &str = r#"{"job_id": 70, "task_id": {"set": true, "infinite": false, "number": 3}, "task": ""}"#;
const TASKS: &str = r#"{"job_id": 70, "task_id": {"set": false, "infinite": false, "number": 0}, "task": "4-9%2"}"#;

#[test]
fn four_versions_of_the_accounting() {
    let gpus = entries(&[("cpu", 16), ("mem", 2048), ("energy", -2), ("gres/gpu", 8), ("gres/gpu:a100", 8)]);
    let jobs = [
        accounted(1, TEXT, "1440", ALONE, &gpus),
        accounted(2, LIST, OBJECT, ALONE, &gpus),
        accounted(3, LIST, INFINITE, TASK, &entries(&[("gres/gpu:h100", 4)])),
        accounted(4, r#"{"current": ["PENDING"]}"#, "null", TASKS, &gpus),
        accounted(5, r#"{"current": ["RUNNING", "COMPLETING"]}"#, "null", ALONE, &entries(&[("cpu", 4)])),
    ];
    let document = format!(r#"{{"meta": {{"jobs": [1]}}, "jobs": [{}], "errors": [], "warnings": [{{}}]}}"#, jobs.join(",\n"));
    let trace = read(&document);
    assert_eq!(bad(&trace), [""; 0]);
    let mut found = rows(&trace);
    found.sort();
    let expected = ["2x2 120s 0m timed out", "2x4 0s 0m still waiting", "2x4 120s 1440m completed", "2x4 120s 1440m timed out"];
    assert_eq!(found, expected.map(|row| format!("nlp ann {row}")));
    assert_eq!(reasons(&trace), ["10 steps of jobs", "1 jobs without a GPU", "1 tasks of an array that wait together"]);
    assert_eq!((trace.rows[0].cpus, trace.rows[0].memory_mib), (16, 2048));
    // A list of jobs without the document around it, one job a line, and documents behind each other.
    for other in [format!("[{}]", jobs.join(",")), jobs.join("\n"), format!("{document}\n{document}")] {
        let trace = read(&other);
        assert_eq!((trace.rows.len(), trace.bad_rows), (4, 0), "{}", trace.notes());
    }
}

#[test]
fn jobs_of_the_controller() {
    let number = |n: i64| format!(r#"{{"set": true, "infinite": false, "number": {n}}}"#);
    let job = |id: u32, state: &str, more: &str| {
        format!(
            r#"{{"account": "nlp", "user_name": "ann", "job_id": {id}, "array_job_id": {zero}, "array_task_id": {{"set": false, "number": 0}},
            "het_job_id": {zero}, "het_job_offset": {zero}, "job_state": ["{state}"], "submit_time": {at}, "eligible_time": {at}, "start_time": {at},
            "end_time": {end}, "time_limit": {limit}, "node_count": {two}, "tasks": {four}, "nodes": "n1", "tres_alloc_str": "cpu=1,node=1", {more}}}"#,
            zero = number(0),
            two = number(2),
            four = number(4),
            limit = number(60),
            at = number(1_682_935_200),
            end = number(1_682_935_260),
        )
    };
    let jobs = [
        job(1, "CANCELLED", r#""tres_per_job": "gres/gpu:4", "gres_detail": []"#),
        job(2, "COMPLETED", r#""tres_per_node": "gres/gpu:h100:4""#),
        job(3, "FAILED", r#""tres_per_task": "gres/gpu""#),
        job(4, "COMPLETED", r#""gres_detail": ["gpu:a100:1(IDX:0)", "gpu:a100:2(IDX:0,3)"], "tres_per_job": "gres/gpu:9""#),
        // Its end is the one it is to have.
        job(5, "RUNNING", r#""tres_req_str": "cpu=1,gres/gpu=2""#),
        job(6, "PENDING", r#""tres_req_str": "cpu=1,gres/gpu=2""#),
        job(7, "COMPLETED", r#""tres_per_node": """#),
    ];
    let trace = read(format!(r#"{{"jobs": [{}], "last_update": {}}}"#, jobs.join(","), number(1)));
    assert_eq!(bad(&trace), [""; 0]);
    let expected = [
        "2x2 60s 60m cancelled",
        "2x4 60s 60m completed",
        "2x2 60s 60m failed",
        "3 60s 60m completed",
        "2x1 60s 60m still running",
        "2x1 0s 60m still waiting",
    ];
    assert_eq!(rows(&trace), expected.map(|row| format!("nlp ann {row}")));
    assert_eq!(reasons(&trace), ["1 jobs without a GPU"]);
}

#[test]
fn what_is_no_job_costs_itself_only() {
    let good = accounted(1, TEXT, "60", ALONE, &entries(&[("gres/gpu", 1)]));
    let broken = good.replace("\"job_id\": 1,", "\"job_id\": ,");
    let trace = read(format!("{{\"jobs\": [{broken}, {{\"a\": 1}}, {}, {good}, {}", good.replace("COMPLETED", "DONE"), &good[..200]));
    assert_eq!(trace.rows.len(), 1);
    let found = bad(&trace);
    assert!(found[0].starts_with("1: cannot be read: expected value"), "{found:?}");
    assert_eq!(found[1..], ["2: has no job_id", "3: `DONE` is no state", "5: the file ends in it"]);
    let bytes = good.replace("ann", "a?n").into_bytes().into_iter().map(|byte| if byte == b'?' { 0xff } else { byte });
    assert_eq!(read(bytes.collect::<Vec<u8>>()).users, ["a\u{fffd}n"]);
}

#[test]
fn a_component_of_a_heterogeneous_job_has_a_number_of_its_own() {
    let job = |id, offset| {
        accounted(id, TEXT, "60", ALONE, &entries(&[("gres/gpu", 4)]))
            .replace("\"job_id\": 0, \"job_offset\": null", &format!("\"job_id\": 5, \"job_offset\": {offset}"))
    };
    let trace = read(format!("[{}, {}]", job(5, 0), job(6, 1)));
    assert_eq!(
        (rows(&trace), reasons(&trace)[1..].to_vec()),
        (vec!["nlp ann 4x2 120s 60m completed".to_owned()], vec!["1 heterogeneous jobs".to_owned()])
    );
}
