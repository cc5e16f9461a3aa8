//! Server-sent events.

use super::message::Body;
use super::{Client, Result};
use std::io::{BufRead, BufReader};

/// One event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// Its number in its stream.
    pub id: Option<u64>,
    /// Its kind, empty where none was said.
    pub event: String,
    /// What it says; of the event log, one line of JSON.
    pub data: String,
}

/// Events as they come, until the daemon closes the stream. After an error there are no more.
pub struct Events {
    from: BufReader<Body>,
    client: Client,
    over: bool,
}

impl Events {
    pub(super) fn new(body: Body, client: Client) -> Events {
        Events { from: BufReader::new(body), client, over: false }
    }

    /// The next event, or `None` at the end. Comments keep the connection alive and are passed over.
    fn read(&mut self) -> std::io::Result<Option<Event>> {
        let mut event = Event::default();
        let mut said = false;
        let mut line = String::new();
        loop {
            line.clear();
            if self.from.read_line(&mut line)? == 0 {
                return Ok(None);
            }
            let text = line.trim_end_matches(['\n', '\r']);
            if text.is_empty() {
                if said {
                    return Ok(Some(event));
                }
                continue;
            }
            let (field, value) = text.split_once(':').unwrap_or((text, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "id" => event.id = value.parse().ok(),
                "event" => event.event = value.to_string(),
                "data" => {
                    if said {
                        event.data.push('\n');
                    }
                    event.data.push_str(value);
                    said = true;
                }
                _ => {}
            }
        }
    }
}

impl Iterator for Events {
    type Item = Result<Event>;

    fn next(&mut self) -> Option<Result<Event>> {
        if self.over {
            return None;
        }
        let read = self.read();
        self.over = !matches!(read, Ok(Some(_)));
        read.map_err(|e| self.client.broken(&e)).transpose()
    }
}
