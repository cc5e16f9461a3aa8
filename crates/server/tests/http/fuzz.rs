//! Requests made from the API's own document, right and wrong in all the ways that come to mind: none is answered by a defect, none by
//! silence, and each answer is one that the document promises.

mod make;
mod schema;

use crate::daemon::{Daemon, PATIENCE};
use make::Maker;
use schema::Document;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use stipend_server::http::openapi_json;

/// Requests of each operation and seed; `FUZZ_ROUNDS=1000` looks longer.
const ROUNDS: u32 = 40;

/// Answers that no operation lists, because they are about HTTP itself.
const OF_HTTP: [u16; 2] = [414, 431];

#[test]
fn no_request_finds_a_defect() {
    let document = Document(serde_json::from_str(&openapi_json()).expect("JSON"));
    let daemon = Daemon::with("requests_per_second_max = 100000\n");
    let token = |place: usize| daemon.token_of(["ada", "boss", "vera"][place], ["user", "user", "viewer"][place]);
    let mut tokens = [0, 1, 2].map(token);
    let mut statuses: BTreeMap<u16, u32> = BTreeMap::new();
    let mut sent = 0;
    let rounds = std::env::var("FUZZ_ROUNDS").map_or(ROUNDS, |rounds| rounds.parse().expect("a number"));
    for seed in 1..=3 {
        let mut maker = Maker::new(seed, &document);
        for round in 0..rounds {
            for operation in document.operations() {
                let request = maker.request(&operation);
                // Now the daemon's own account, now somebody with fewer rights.
                let who = maker.below(tokens.len() + 2);
                let bytes = request.bytes(tokens.get(who).map(String::as_str));
                let shown =
                    || format!("seed {seed}, round {round}: {}", String::from_utf8_lossy(&bytes).chars().take(1500).collect::<String>());
                let (status, body) = ask(&daemon, &bytes).unwrap_or_else(|error| panic!("{error}: {}", shown()));
                assert_ne!(status, 500, "{body}: {}", shown());
                let listed = operation.responses.get(status.to_string()).is_some() || OF_HTTP.contains(&status);
                assert!(listed, "{status} {body}: {}", shown());
                if let Some(wrong) = document.breach(&operation, status, &body) {
                    panic!("{wrong} in {body}: {}", shown());
                }
                if status == 401 && who < tokens.len() {
                    // Another request took it back.
                    tokens[who] = token(who);
                }
                *statuses.entry(status).or_default() += 1;
                sent += 1;
            }
        }
    }
    assert!(sent >= 3000, "{sent} requests");
    println!("{sent} requests: {statuses:?}");
    // A fuzz that only ever meets one kind of answer looks at nothing.
    for status in [200, 201, 400, 403, 404, 409] {
        assert!(statuses.get(&status).is_some_and(|count| *count >= 10), "{status} hardly came up: {statuses:?}");
    }
    assert_eq!(daemon.raw(&crate::daemon::request("GET", "/readyz", &[], "")).status, 200);
}

/// Sends a request and reads its answer; of an answer without end only the head.
fn ask(daemon: &Daemon, request: &[u8]) -> Result<(u16, String), String> {
    let mut socket = UnixStream::connect(daemon.socket()).map_err(|error| format!("no connection: {error}"))?;
    socket.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let _ = socket.write_all(request);
    let (mut bytes, mut some) = (Vec::new(), [0; 16 << 10]);
    loop {
        let count = match socket.read(&mut some) {
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) if error.kind() == ErrorKind::ConnectionReset && !bytes.is_empty() => 0,
            Err(error) => return Err(format!("no answer: {error}")),
        };
        bytes.extend_from_slice(&some[..count]);
        let text = String::from_utf8_lossy(&bytes);
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            if count == 0 {
                return Err(format!("an answer without a head: {text}"));
            }
            continue;
        };
        let endless = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
        if endless || count == 0 {
            let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
            let body = if endless { String::new() } else { body.to_string() };
            return status.map(|status| (status, body)).ok_or_else(|| format!("no status: {head}"));
        }
    }
}

/// The validator finds what is wrong: else the fuzz would find nothing.
#[test]
fn a_body_that_breaks_its_schema_is_found() {
    let document = Document(serde_json::from_str(&openapi_json()).expect("JSON"));
    let operation = document.operations().into_iter().find(|operation| operation.path == "/v1/whoami").expect("it is there");
    let right = r#"{"user":"ada","role":"user","manages":[],"member_of":["lab"]}"#;
    assert_eq!(document.breach(&operation, 200, right), None);
    for (from, to) in [("\"role\":\"user\"", "\"role\":\"king\""), ("\"user\":\"ada\",", ""), ("[\"lab\"]", "[7]"), ("[]", "null")] {
        assert!(document.breach(&operation, 200, &right.replace(from, to)).is_some(), "{to}");
    }
    assert!(document.breach(&operation, 401, r#"{"code":"unauthenticated"}"#).is_some());
    assert!(document.breach(&operation, 200, "{").is_some());
    let _: Value = document.0;
}
