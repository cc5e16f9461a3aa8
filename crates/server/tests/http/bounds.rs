//! Nothing that anybody sends is too much, and every fault is answered as a problem.

use crate::daemon::{Daemon, request};
use std::io::{Read, Write};
use std::net::TcpStream;

#[test]
fn faults_are_problems_that_name_the_place() {
    let daemon = Daemon::start();
    for (method, path, body, status, words) in [
        ("GET", "/v1/nothing", "", 404, "there is no /v1/nothing"),
        ("PUT", "/v1/workloads", "", 405, "/v1/workloads does not take PUT"),
        ("POST", "/v1/workloads", "", 400, "the body is empty"),
        ("POST", "/v1/workloads", "{", 400, "it breaks off inside an object"),
        ("POST", "/v1/workloads", "[]", 400, "a list of 0 workloads"),
        ("POST", "/v1/workloads", "{} {}", 400, "more follows after its value"),
        (
            "POST",
            "/v1/workloads",
            "{\"budget\": 7}",
            400,
            "the body: budget: it is the number `7`; expected a text in quotes at line 1 column 12",
        ),
        ("POST", "/v1/workloads", "{\"gpu\": 1}", 400, "unknown field `gpu`, expected one of"),
        ("POST", "/v1/workloads", "[{\"env\": {\"A\": 1}}]", 400, "the body: [0].env.A: it is the number `1`; expected a text in quotes"),
        (
            "POST",
            "/v1/workloads",
            "{\"budget\":\"lab/nlp\",\"command\":[\"x\"],\"min_runtime\":\"soon\"}",
            400,
            "\"soon\" is not a length of time",
        ),
        ("POST", "/v1/workloads", "{\"budget\":\"lab/npl\",\"command\":[\"x\"]}", 404, "there is no budget `lab/npl`"),
        ("GET", "/v1/workloads/seven", "", 400, "`seven` is not what stands there; expected the number of a workload"),
        ("GET", "/v1/workloads/%ff", "", 400, "the path: "),
        ("GET", "/v1/workloads/4000000000", "", 404, "there is no workload w4000000000"),
        ("GET", "/v1/workloads/w7", "", 404, "there is no workload w7"),
        ("DELETE", "/v1/tokens/w7", "", 400, "`w7` is not what stands there; expected a whole number"),
        ("POST", "/v1/workloads", "{\"kind\": \"job\"}", 400, "the body: kind: it is `job`; expected `batch` or `session`"),
        ("GET", "/v1/events?follow=yes", "", 400, "the query: follow = yes: expected true or false"),
        ("PATCH", "/v1/budgets", "{\"reason\": \"x\"}", 400, "based_on: it is missing"),
        ("GET", "/v1/workloads?limit=0", "", 400, "limit = 0: expected 1 to 1000"),
        ("GET", "/v1/workloads?limit=x", "", 400, "the query: limit = x: expected a whole number"),
        ("GET", "/v1/workloads?usr=ada", "", 400, "unknown field `usr`, expected one of"),
        ("GET", "/v1/workloads?state=asleep", "", 400, "asleep"),
        ("GET", "/v1/events?limit=99999", "", 400, "limit: 99999 is not from 1 to 10000"),
        ("GET", "/v1/usage?by=week", "", 400, "by: it is `week`; expected"),
        ("GET", "/v1/usage?from_ms=0&by=hour", "", 400, "expected at most 1500"),
        ("GET", "/v1/usage?budget=lab/npl", "", 404, "there is no budget `lab/npl`"),
        ("POST", "/v1/budgets/sheet?reason=x", "path,shares\n", 400, "there is no column `shares`"),
    ] {
        let answer = daemon.ask(method, path, &[], body);
        assert_eq!(answer.status, status, "{method} {path} {body}: {answer:?}");
        assert!(answer.message().contains(words), "{method} {path} {body}: {}", answer.message());
    }
}

#[test]
fn headers_are_read_as_strictly() {
    let daemon = Daemon::start();
    for (method, path, header, body, status) in [
        ("POST", "/v1/workloads", ("idempotency-key", ""), "{}", 400),
        ("POST", "/v1/tokens", ("content-type", "text/plain"), "{}", 415),
        ("PATCH", "/v1/budgets", ("if-match", "new"), "{}", 400),
        ("GET", "/v1/events", ("last-event-id", "x"), "", 400),
    ] {
        let answer = daemon.ask(method, path, &[header], body);
        assert_eq!(answer.status, status, "{answer:?}");
        answer.message();
    }
}

#[test]
fn a_spec_of_50_mb_is_refused_and_its_sender_learns_why() {
    let daemon = Daemon::start();
    let large = format!("{{\"budget\": \"{}\"}}", "x".repeat(50 << 20));
    let answer = daemon.ask("POST", "/v1/workloads", &[], &large);
    assert_eq!(answer.status, 413, "{}", answer.head);
    assert!(answer.message().contains("larger than 1024 KiB"), "{}", answer.message());
    // In chunks nobody knows how much will come.
    let chunk = format!("100000\r\n{}\r\n", "x".repeat(1 << 20));
    let head = format!(
        "POST /v1/workloads HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: Bearer {}\r\ntransfer-encoding: chunked\r\n\r\n",
        daemon.token
    );
    let answer = daemon.raw(format!("{head}{}0\r\n\r\n", chunk.repeat(3)).as_bytes());
    assert_eq!(answer.status, 413, "{}", answer.head);
}

#[test]
fn heads_are_bounded() {
    let daemon = Daemon::start();
    let answer = daemon.ask("GET", &format!("/v1/workloads?user={}", "x".repeat(9000)), &[], "");
    assert_eq!(answer.status, 414, "{answer:?}");
    assert!(answer.message().contains("longer than 8 KiB"));
    let answer = daemon.ask("GET", "/v1/workloads", &[("x-long", &"x".repeat(100_000))], "");
    assert_eq!(answer.status, 431, "{answer:?}");
}

#[test]
fn who_asks_too_often_is_told_when_to_come_back() {
    let daemon = Daemon::with("requests_per_second_max = 1\n");
    let bob = daemon.token_of("bob", "user");
    let bearer = format!("Bearer {bob}");
    let ask = || daemon.raw(&request("GET", "/v1/pools", &[("authorization", &bearer)], ""));
    let refused = (0..100).map(|_| ask()).find(|answer| answer.status != 200).expect("a refusal");
    assert_eq!((refused.status, refused.header("retry-after")), (429, Some("1")), "{refused:?}");
    assert!(refused.message().contains("bob asked more than 1 times a second"));
    // Others are served.
    assert_eq!(daemon.ask("GET", "/v1/pools", &[], "").status, 200);
}

#[test]
fn streams_are_bounded_and_end_with_their_readers() {
    let daemon = Daemon::start();
    let open = || {
        let mut socket = TcpStream::connect(daemon.address).unwrap();
        let headers = [("authorization", format!("Bearer {}", daemon.token))];
        let headers = headers.each_ref().map(|(name, value)| (*name, value.as_str()));
        socket.write_all(&request("GET", "/v1/events?follow=true", &headers, "")).unwrap();
        let mut head = [0; 12];
        socket.read_exact(&mut head).unwrap();
        (socket, String::from_utf8_lossy(&head[9..]).into_owned())
    };
    let streams: Vec<_> = (0..32).map(|_| open()).collect();
    assert!(streams.iter().all(|(_, status)| status == "200"));
    assert_eq!(open().1, "429");
    drop(streams);
    crate::daemon::until("streams are counted for ever", || (open().1 == "200").then_some(()));
}

#[test]
fn whoever_sends_nothing_holds_up_nobody() {
    let daemon = Daemon::start();
    let idle: Vec<TcpStream> = (0..200).map(|_| TcpStream::connect(daemon.address).unwrap()).collect();
    let mut half = TcpStream::connect(daemon.address).unwrap();
    half.write_all(b"POST /v1/workloads HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{").unwrap();
    assert_eq!(daemon.ask("GET", "/readyz", &[], "").status, 200);
    drop((idle, half));
}
