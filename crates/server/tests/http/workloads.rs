//! From the submission to the output.

use crate::daemon::{Daemon, until};
use serde_json::{Value, json};
use std::io::Read;
use stipend_server::wire::error::Code;
use stipend_server::wire::page::Page;
use stipend_server::wire::workload::{Detail, State, Submitted, Workload};

#[test]
fn a_workload_from_its_submission_to_its_output() {
    let daemon = Daemon::start();
    let ada = daemon.as_user("ada", "user");
    let script = "echo on $STIPEND_NODE; echo rank $STIPEND_RANK";
    let work = daemon.submit(&ada, "lab/nlp", script, json!({"members": 2, "gpus": 4, "min_runtime": "5m", "name": "hello"}));
    assert_eq!((work.user.as_str(), work.name.as_str(), work.min_runtime_ms), ("ada", "hello", 300_000));
    let ended = daemon.wait(work.id);
    assert_eq!((ended.state, ended.exit_code), (State::Completed, Some(0)), "{ended:?}");
    let logs = |member: u32| ada.text(&format!("/v1/workloads/{}/logs?member={member}", work.id)).unwrap();
    assert!(logs(0).ends_with("rank 0\n") && logs(1).ends_with("rank 1\n"), "{} {}", logs(0), logs(1));
    let tail = ada.text(&format!("/v1/workloads/{}/logs?offset={}", work.id, logs(0).len() - 7)).unwrap();
    assert_eq!(tail, "rank 0\n");
    let missing = ada.text(&format!("/v1/workloads/{}/logs?member=2", work.id)).unwrap_err();
    assert!(missing.to_string().contains("has 2 members"), "{missing}");
    let detail: Detail = ada.get(&format!("/v1/workloads/{}", work.id)).unwrap();
    assert_eq!(detail.submission.command.last().unwrap(), script);
    let explained: Value = ada.get(&format!("/v1/workloads/{}/explain", work.id)).unwrap();
    assert!(explained.is_object());
}

#[test]
fn a_key_queues_once() {
    let daemon = Daemon::start();
    let ada = daemon.as_user("ada", "user");
    let work = json!([{"budget": "lab/nlp", "command": ["/bin/true"]}, {"budget": "lab/nlp", "command": ["/bin/true"], "array": "1-3"}]);
    let ids = |headers: &[(&str, &str)]| -> Vec<u32> {
        let submitted: Submitted = ada.post("/v1/workloads", &work, headers).unwrap();
        submitted.workloads.iter().map(|workload| workload.id).collect()
    };
    let first = ids(&[("idempotency-key", "k1")]);
    assert_eq!(first.len(), 4);
    assert_eq!(ids(&[("idempotency-key", "k1")]), first);
    assert_ne!(ids(&[("idempotency-key", "k2")]), first);
    // Another request with a key that was used: nothing is queued, not even after it was written down.
    let other = json!({"budget": "lab/nlp", "command": ["/bin/false"]});
    let refused = ada.post::<Submitted, _>("/v1/workloads", &other, &[("idempotency-key", "k1")]).unwrap_err();
    assert!(refused.to_string().contains("`k1` is that of another request of yours, which queued w0 to w3"), "{refused}");
    assert_eq!(refused.code(), Some(stipend_server::wire::error::Code::Conflict));
    assert_ne!(ids(&[]), first);
}

#[test]
fn a_list_is_queued_whole_or_not_at_all() {
    let daemon = Daemon::start();
    let ada = daemon.as_user("ada", "user");
    let work = json!([{"budget": "lab/nlp", "command": ["/bin/true"]}, {"budget": "lab/nlp", "command": ["/bin/true"], "gpus": 9}]);
    ada.post::<Value, _>("/v1/workloads", &work, &[]).unwrap_err();
    let all: Page<Workload> = ada.get("/v1/workloads?all=true").unwrap();
    assert_eq!(all.items, []);
}

/// Everybody sees names: none may hide, or turn what stands beside it.
#[test]
fn names_that_could_mislead_are_refused() {
    let daemon = Daemon::start();
    let ada = daemon.as_user("ada", "user");
    for name in ["a\u{202e}b", "a\u{1b}[2Jb", "a\u{200b}b", "a\nb"] {
        let work = json!({"budget": "lab/nlp", "command": ["/bin/true"], "name": name});
        let refused = ada.post::<Submitted, _>("/v1/workloads", &work, &[]).unwrap_err();
        assert!(refused.to_string().contains("name: expected 1 to"), "{name:?}: {refused}");
        let token = json!({"user": name, "role": "user"});
        let refused = daemon.admin().post::<Value, _>("/v1/tokens", &token, &[]).unwrap_err();
        assert!(refused.to_string().contains("expected a user's name"), "{name:?}: {refused}");
    }
    assert_eq!(daemon.submit(&ada, "lab/nlp", "true", json!({"name": "Zoë 東京 👩\u{200d}🔬"})).name, "Zoë 東京 👩\u{200d}🔬");
}

#[test]
fn pages_hold_everything_once() {
    let daemon = Daemon::start();
    let ada = daemon.as_user("ada", "user");
    let work = daemon.submit(&ada, "lab/nlp", "true", json!({"array": "1-25"}));
    let (mut ids, mut path) = (Vec::new(), "/v1/workloads?all=true&limit=10&budget=lab&user=ada".to_string());
    loop {
        let page: Page<Workload> = ada.get(&path).unwrap();
        ids.extend(page.items.iter().map(|workload| workload.id));
        let Some(next) = page.next else { break };
        path = format!("/v1/workloads?all=true&limit=10&budget=lab&user=ada&cursor={next}");
    }
    let expected: Vec<u32> = (work.id..work.id + 25).rev().collect();
    assert_eq!(ids, expected);
    let none: Page<Workload> = ada.get("/v1/workloads?all=true&budget=lab/vision").unwrap();
    assert_eq!(none.items, []);
}

#[test]
fn held_released_cancelled() {
    let daemon = Daemon::start();
    let ada = daemon.as_user("ada", "user");
    // The first two take all GPUs.
    let running: Vec<Workload> =
        (0..2).map(|_| daemon.submit(&ada, "lab/nlp", "sleep 600", json!({"gpus": 8, "min_runtime": "10m"}))).collect();
    let work = daemon.submit(&ada, "lab/nlp", "true", json!({"gpus": 8, "min_runtime": "10m"}));
    let post = |what: &str| ada.post::<Workload, _>(&format!("/v1/workloads/{}/{what}", work.id), &json!({}), &[]);
    assert_eq!(post("hold").unwrap().state, State::Held);
    assert_eq!(post("release").unwrap().state, State::Waiting);
    assert_eq!(post("release").unwrap_err().code(), Some(Code::Conflict));
    let cancelled: Workload = ada.delete(&format!("/v1/workloads/{}?reason=a%20typo", work.id)).unwrap();
    assert_eq!(cancelled.state, State::Cancelled);
    assert!(ada.delete::<Workload>(&format!("/v1/workloads/{}", work.id)).is_err());
    for work in running {
        ada.delete::<Workload>(&format!("/v1/workloads/{}", work.id)).unwrap();
        assert_eq!(daemon.wait(work.id).state, State::Cancelled);
    }
}

#[test]
fn output_is_followed_to_its_end() {
    let daemon = Daemon::start();
    let ada = daemon.as_user("ada", "user");
    let work = daemon.submit(&ada, "lab/nlp", "echo one; while [ ! -e \"$GATE\" ]; do sleep 0.05; done; echo two", {
        json!({"env": {"GATE": daemon.socket().with_extension("gate").display().to_string()}})
    });
    let mut output = ada.bytes(&format!("/v1/workloads/{}/logs?follow=true", work.id)).unwrap();
    let mut seen = [0; 4];
    output.read_exact(&mut seen).unwrap();
    assert_eq!(&seen, b"one\n");
    std::fs::write(daemon.socket().with_extension("gate"), "").unwrap();
    let mut rest = String::new();
    output.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "two\n");
}

#[test]
fn metrics_count_what_happened() {
    let daemon = Daemon::start();
    let work = daemon.submit(&daemon.as_user("ada", "user"), "lab/nlp", "true", json!({"min_runtime": "1m"}));
    daemon.wait(work.id);
    let text = until("the end is not counted", || {
        let text = daemon.admin().text("/metrics").unwrap();
        text.contains("stipend_attempts_ended_total{outcome=\"completed\"} 1").then_some(text)
    });
    for line in [
        "stipend_gpus{pool=\"h100\"} 16.0",
        "stipend_availability_ratio{pool=\"h100\"} 1.0",
        "stipend_nodes{pool=\"h100\",state=\"ready\"} 2.0",
        "stipend_workloads_submitted_total{class=\"debug\"} 1",
        "stipend_wait_seconds_count{class=\"debug\"} 1",
        "stipend_budget_claim_ratio{pool=\"h100\",budget=\"lab/nlp\"} 0.6",
    ] {
        assert!(text.contains(line), "no {line} in\n{text}");
    }
    assert!(text.ends_with("# EOF\n"));
}
