//! One connection that is kept.

use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};

pub(crate) trait Stream: Read + Write + Send {}

impl<T: Read + Write + Send> Stream for T {}

pub(crate) struct Connection {
    pub(crate) stream: BufReader<Box<dyn Stream>>,
    /// A header line with its end, or nothing.
    pub(crate) token: String,
}

impl Connection {
    /// Asks, and reads the answer, which must be a success.
    pub(crate) fn ask(&mut self, method: &str, path: &str, body: &str) -> Value {
        let head = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\n{}", self.token);
        let head = format!("{head}content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        self.stream.get_mut().write_all(head.as_bytes()).expect("the daemon listens");
        let (mut status, mut length) = (String::new(), 0);
        self.stream.read_line(&mut status).expect("an answer");
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line).expect("a header");
            match line.trim_end().split_once(": ") {
                None => break,
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => length = value.parse().expect("a number"),
                Some(_) => {}
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).expect("a body");
        let text = String::from_utf8_lossy(&body);
        assert!(status.contains(" 20"), "{path}: {status}{}", text.chars().take(500).collect::<String>());
        serde_json::from_str(&text).unwrap_or_default()
    }
}
