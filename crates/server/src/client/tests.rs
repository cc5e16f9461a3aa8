//! The client against a socket that answers bytes by hand: all the ways in which an answer can come, be cut, or be no answer.

use super::*;
use crate::wire::error::Code;
use std::io::Write;
use std::net::TcpListener;
use std::thread::{self, JoinHandle};

/// A server of one connection: what it got before the answer.
fn answer(bytes: &'static [u8]) -> (Client, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = Client::new(&format!("http://{}", listener.local_addr().unwrap()), Some("stp_1".into())).unwrap();
    let server = thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        let mut got = Vec::new();
        let mut some = [0; 4096];
        while !whole(&got) {
            let count = socket.read(&mut some).unwrap();
            assert!(count > 0, "the request ended early");
            got.extend_from_slice(&some[..count]);
        }
        socket.write_all(bytes).unwrap();
        String::from_utf8(got).unwrap()
    });
    (client, server)
}

fn whole(got: &[u8]) -> bool {
    let text = String::from_utf8_lossy(got);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|l| l.strip_prefix("content-length: ")).map_or(0, |n| n.parse().unwrap());
    body.len() >= length
}

#[test]
fn a_whole_answer() {
    let (client, server) = answer(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n[1,2]");
    assert_eq!(client.get::<Vec<u32>>("/v1/x?a=b%20c").unwrap(), [1, 2]);
    let request = server.join().unwrap();
    assert!(request.starts_with("GET /v1/x?a=b%20c HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("\r\nauthorization: Bearer stp_1\r\n"), "{request}");
}

#[test]
fn an_answer_in_chunks_after_an_announcement() {
    let (client, server) = answer(
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3;x=y\r\n[1,\r\n2\r\n2]\r\n0\r\ntrailer: 1\r\n\r\n",
    );
    assert_eq!(client.post::<Vec<u32>, _>("/v1/x", &7, &[("if-match", "3")]).unwrap(), [1, 2]);
    let request = server.join().unwrap();
    assert!(request.contains("if-match: 3\r\n") && request.ends_with("\r\n\r\n7"), "{request}");
}

#[test]
fn an_answer_without_content() {
    let (client, server) = answer(b"HTTP/1.1 204 No Content\r\n\r\n");
    client.delete::<()>("/v1/x").unwrap();
    server.join().unwrap();
}

#[test]
fn a_part_of_a_log() {
    let (client, server) = answer(b"HTTP/1.1 200 OK\r\nStipend-Next: 12\r\ncontent-length: 2\r\n\r\n{}");
    assert_eq!(client.part("/v1/events?from=11").unwrap(), ("{}".to_string(), Some(12)));
    server.join().unwrap();
}

#[test]
fn a_problem() {
    let (client, server) =
        answer(b"HTTP/1.1 403 Forbidden\r\n\r\n{\"code\":\"forbidden\",\"message\":\"not yours\",\"hint\":\"ask the owner\"}");
    let error = client.text("/v1/x").unwrap_err();
    assert_eq!((error.code(), error.hint(), error.to_string()), (Some(Code::Forbidden), Some("ask the owner"), "not yours".to_string()));
    server.join().unwrap();
}

#[test]
fn events() {
    let (client, server) = answer(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n: hello\n\nid: 7\nevent: started\ndata: {\"a\":1}\n\ndata:x\ndata: y\n\ndata: cut off",
    );
    let events: Vec<Event> = client.stream("/v1/events").unwrap().map(|e| e.unwrap()).collect();
    let expected = [
        Event { id: Some(7), event: "started".into(), data: "{\"a\":1}".into() },
        Event { id: None, event: String::new(), data: "x\ny".into() },
    ];
    assert_eq!(events, expected);
    server.join().unwrap();
}

#[test]
fn what_is_no_answer() {
    for bytes in [
        b"" as &[u8],
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n[1",
        b"HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\n[1]",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nlong\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"\xff\xff\xff\xff\n",
    ] {
        let (client, server) = answer(bytes);
        let error = client.get::<Vec<u32>>("/v1/x").unwrap_err();
        assert!(matches!(error, Error::Connection { .. }), "{error:?} for {:?}", String::from_utf8_lossy(bytes));
        server.join().unwrap();
    }
    let (client, server) = answer(b"HTTP/1.1 502 Bad Gateway\r\n\r\n<html>");
    assert!(client.get::<()>("/v1/x").unwrap_err().to_string().contains("answered 502"));
    server.join().unwrap();
}

#[test]
fn nobody_there() {
    let error = Client::new("unix:/nowhere/stipend.sock", None).unwrap().get::<()>("/healthz").unwrap_err();
    assert!(error.hint().unwrap().contains("stipend serve"), "{error:?}");
    // A port that was free a moment ago.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let error = Client::new(&format!("http://127.0.0.1:{port}"), None).unwrap().get::<()>("/healthz").unwrap_err();
    assert!(error.hint().unwrap().contains("stipend serve"), "{error:?}");
}

#[test]
fn wrong_words() {
    for address in ["", "unix:", "/run/x.sock", "https://host:1", "http://host", "http://:1", "http://host:70000", "http://host:1/v1"] {
        assert!(Client::new(address, None).unwrap_err().to_string().contains("is not an address"), "{address}");
    }
    for token in ["", "a b", "a\r\nx: y"] {
        Client::new("http://[::1]:1", Some(token.into())).unwrap_err();
    }
    assert_eq!(escape("lab/nlp olmo-1_é"), "lab%2Fnlp%20olmo-1_%C3%A9");
}
