//! No room on the disk: the daemon says so and ends, and goes on when there is some.

use crate::daemon::Daemon;
use serde_json::{Value, json};
use std::time::Duration;

#[test]
fn without_room_it_ends_and_what_was_answered_is_kept() {
    let mut daemon = Daemon::start("full");
    daemon.kill();
    daemon.serve_without_room(4096);
    daemon.until_it_answers();
    let client = daemon.client();
    let request =
        |key: &str| json!({"budget": "lab/a", "gpus": 4, "members": 4, "name": key, "env": {"X": "x".repeat(60_000)}, "command": ["true"]});
    let submit = |key: &str| client.post::<Value, _>("/v1/workloads", &request(key), &[("idempotency-key", key)]);
    let mut accepted = Vec::new();
    for number in 0.. {
        let key = format!("k{number}");
        match submit(&key) {
            Ok(answer) => accepted.push((key, answer["workloads"][0]["id"].clone())),
            Err(_) => break,
        }
        assert!(number < 10_000, "there is room for everything");
    }
    assert!(accepted.len() > 3, "{}", daemon.log());
    let code = loop {
        match daemon.ended() {
            Some(code) => break code,
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    let log = daemon.log();
    assert!(code.is_some_and(|code| code != 0) && log.contains("stipend.db"), "{code:?}: {log}");
    daemon.serve();
    daemon.until_it_answers();
    for (key, id) in accepted {
        assert_eq!(client.get::<Value>(&format!("/v1/workloads/{id}")).expect("it is kept")["name"], json!(key));
        assert_eq!(submit(&key).expect("it is known")["workloads"][0]["id"], id);
    }
    assert!(submit("one-more").is_ok());
}
