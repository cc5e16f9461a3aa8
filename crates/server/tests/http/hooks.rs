//! Webhooks.

use crate::daemon::{Daemon, PATIENCE};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::channel;

/// A receiver that is gone at first, then refuses once, then takes everything.
#[test]
fn what_happens_is_told_in_order_and_again_until_it_is_taken() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let hook = format!(
        "[[daemon.webhooks]]\nurl = \"http://{}/hook\"\nevents = [\"start\", \"ended\"]\nsecret = \"s\"\n",
        listener.local_addr().unwrap()
    );
    let (to, told) = channel();
    std::thread::spawn(move || {
        for (count, socket) in listener.incoming().enumerate() {
            let mut from = BufReader::new(socket.unwrap());
            let (mut length, mut signed) = (0, false);
            loop {
                let mut line = String::new();
                from.read_line(&mut line).unwrap();
                match line.trim().split_once(": ") {
                    Some(("content-length", value)) => length = value.parse().unwrap(),
                    Some(("stipend-signature", value)) => signed = value.starts_with("sha256=") && value.len() == 71,
                    Some(_) => {}
                    None if line.trim().is_empty() => break,
                    None => assert_eq!(line.trim(), "POST /hook HTTP/1.1"),
                }
            }
            let mut body = vec![0; length];
            from.read_exact(&mut body).unwrap();
            let status = if count == 0 { "500 Later" } else { "204 Taken" };
            write!(from.get_mut(), "HTTP/1.1 {status}\r\n\r\n").unwrap();
            let body: Value = serde_json::from_slice(&body).unwrap();
            if to.send((count, signed, body)).is_err() {
                return;
            }
        }
    });
    let daemon = Daemon::with(&hook);
    let work = daemon.submit(&daemon.as_user("ada", "user"), "lab/nlp", "true", json!({}));
    let seen: Vec<(usize, bool, Value)> = (0..4).map(|_| told.recv_timeout(PATIENCE).unwrap()).collect();
    let events: Vec<&str> = seen.iter().map(|(_, _, body)| body["event"].as_str().unwrap()).collect();
    assert_eq!(events, ["started", "started", "running", "ended"]);
    assert!(seen.iter().all(|(_, signed, body)| *signed && body["workload"] == format!("w{}", work.id)), "{seen:?}");
}
