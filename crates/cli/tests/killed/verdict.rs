//! What must be true in the end.

use crate::daemon::Daemon;
use crate::load::Load;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Everything comes to its end, once all nodes are in service again and nobody holds anything.
pub(crate) fn all_ends(daemon: &Daemon) {
    let client = daemon.client();
    daemon.until("all has ended", || {
        for node in 1..=4 {
            // It may be in service, or not be free yet.
            let _ = client.post::<Value, _>(&format!("/v1/nodes/gpu-{node}/resume"), &Value::Null, &[]);
        }
        let live: Value = client.get("/v1/workloads?limit=1000").expect("it answers");
        let live = live["items"].as_array().expect("a list");
        for workload in live.iter().filter(|workload| workload["state"] == "held") {
            let _ = client.post::<Value, _>(&format!("/v1/workloads/{}/release", workload["id"]), &Value::Null, &[]);
        }
        live.is_empty()
    });
}

fn all(daemon: &Daemon) -> Vec<Value> {
    let (mut found, mut cursor) = (Vec::new(), String::new());
    loop {
        let page: Value = daemon.client().get(&format!("/v1/workloads?all=true&limit=1000{cursor}")).expect("it answers");
        found.extend(page["items"].as_array().expect("a list").iter().cloned());
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return found,
        }
    }
}

/// What was accepted is there, once, and nothing else is.
pub(crate) fn accepted_once(daemon: &Daemon, load: &Load) {
    let mut by_name: BTreeMap<String, BTreeSet<u64>> = BTreeMap::new();
    for workload in all(daemon) {
        let (name, id) = (workload["name"].as_str().expect("a name").to_string(), workload["id"].as_u64().expect("a number"));
        assert!(by_name.entry(name).or_default().insert(id), "listed twice: {workload}");
    }
    let accepted = load.accepted.lock().expect("nobody panics");
    let expected = accepted.iter().map(|(key, accepted)| (key.clone(), accepted.ids.iter().copied().collect())).collect();
    assert_eq!(by_name, expected);
}

/// No attempt of a workload ran beside another or twice, and what is said of its end is what its program did.
pub(crate) fn ran_once(daemon: &Daemon, load: &Load) {
    let accepted = load.accepted.lock().expect("nobody panics");
    let exits: BTreeMap<u64, u64> = accepted.values().flat_map(|one| one.ids.iter().map(|id| (*id, one.exit))).collect();
    for workload in all(daemon) {
        let (id, exit) = (workload["id"].as_u64().expect("a number"), &workload["exit_code"]);
        let (attempts, members) = (workload["attempts"].as_u64().unwrap_or(0), workload["members"].as_u64().unwrap_or(1));
        let by_itself = *exit == json!(exits[&id]) && (workload["state"] == "completed" || workload["state"] == "failed");
        if workload["state"] == "completed" {
            assert_eq!(*exit, json!(0), "{workload}");
        }
        for rank in 0..members {
            let file = daemon.path(&format!("runs/{id}.{rank}"));
            let text = std::fs::read_to_string(&file).unwrap_or_default();
            let mut began = 0;
            for line in text.lines() {
                let mut words = line.split(' ');
                let (what, attempt) = (words.next().unwrap_or(""), words.next().and_then(|word| word.parse::<u64>().ok()).unwrap_or(0));
                assert!(what != "twice", "two attempts of w{id} at once:\n{text}{workload}");
                assert!(what != "start" || began < attempt, "attempt {attempt} of w{id} ran twice, or after a later one:\n{text}");
                began = began.max(attempt);
                assert!((1..=attempts).contains(&attempt), "nobody started attempt {attempt} of w{id}:\n{text}{workload}");
            }
            let ended = text.lines().any(|line| line.starts_with(&format!("end {attempts} ")));
            // A gang ends when one of its members has failed.
            assert!(!by_itself || ended || (members > 1 && *exit != json!(0)), "w{id} never ran to its end:\n{text}{workload}");
        }
    }
}

/// The log is whole and keeps every law, and the usage is what it says.
pub(crate) fn audited(daemon: &Daemon) {
    let (said, code) = daemon.command(&["events", "--export", "log.jsonl"]);
    assert_eq!(code, Some(0), "{said}");
    let log = std::fs::read_to_string(daemon.path("log.jsonl")).expect("it was written");
    let mut gpu_ms = 0;
    for line in log.lines() {
        let fields: Value = serde_json::from_str(line).expect("JSON");
        match fields["event"].as_str() {
            Some("charged") => gpu_ms += fields["gpu_ms"].as_i64().expect("a number"),
            Some("refunded") => gpu_ms -= fields["gpu_ms"].as_i64().expect("a number"),
            _ => {}
        }
    }
    assert!(gpu_ms > 0, "nothing was charged");
    let usage: Value = daemon.client().get("/v1/usage?budget=lab").expect("it answers");
    let delivered = usage["budgets"][0]["delivered_gpu_hours"].as_f64().expect("a number") * 3_600_000.0;
    assert_eq!(delivered.round() as i64, gpu_ms, "usage is what was charged, to the millisecond");
    let (report, _) = daemon.command(&["sim", "check", "log.jsonl", "--format", "json"]);
    let report: Value = serde_json::from_str(&report).expect("JSON");
    let breaches = report["violations"].as_array().expect("a list");
    assert!(breaches.is_empty(), "{breaches:#?}");
    println!("{}", report["summary"]);
}
