//! Reads an event log back, strictly: what is not as it should be is an error that names the line.

use crate::log::line::{Line, LogEvent, VERSION};
use crate::log::range;
use crate::plain::plain;
use serde::Deserialize;
use std::fmt;
use std::io::{self, BufRead};

/// Typed lines with their numbers, counted from 1.
pub struct LogReader<R> {
    from: R,
    number: u64,
    text: String,
    ended: bool,
}

/// Why a log could not be read.
#[derive(Debug)]
pub enum LogError {
    /// Reading failed.
    Io { line: u64, source: io::Error },
    /// The line is not what a line of this log looks like.
    Line { line: u64, message: String },
}

/// What every line has; the first one a version, too.
#[derive(Deserialize)]
struct Head {
    v: Option<u32>,
    t_ms: i64,
    event: String,
}

impl<R: BufRead> LogReader<R> {
    /// A reader from the log's first line.
    pub fn new(from: R) -> LogReader<R> {
        LogReader { from, number: 0, text: String::new(), ended: false }
    }

    /// The next line; `None` after the last. A log that breaks off before its `end_of_log` is an error.
    pub fn next_line(&mut self) -> Result<Option<(u64, Line)>, LogError> {
        self.text.clear();
        self.number += 1;
        let read = self.from.read_line(&mut self.text).map_err(|source| LogError::Io { line: self.number, source })?;
        match (read, self.ended) {
            (0, true) => return Ok(None),
            (0, false) => return Err(self.error("the log breaks off here: its last line must be `end_of_log`".into())),
            (_, true) => return Err(self.error("nothing may follow `end_of_log`".into())),
            (_, false) => {}
        }
        let line = self.parse().map_err(|message| self.error(message))?;
        self.ended = matches!(line.event, LogEvent::EndOfLog(_));
        Ok(Some((self.number, line)))
    }

    fn parse(&self) -> Result<Line, String> {
        let head: Head = serde_json::from_str(&self.text).map_err(|error| self.said(&error))?;
        match (self.number, head.v) {
            (1, Some(VERSION)) => {}
            (1, Some(v)) => return Err(format!("the log has version {v}; this program reads version {VERSION}")),
            (1, None) => return Err(format!("the first line must state the version: \"v\": {VERSION}")),
            (_, Some(_)) => return Err("only the first line states the version".into()),
            (_, None) => {}
        }
        let event = LogEvent::parse(&head.event, &self.text).ok_or_else(|| format!("there is no event `{}`", head.event))?;
        let event = event.map_err(|error| format!("event `{}`: {}", head.event, self.said(&error)))?;
        let line = Line { v: head.v, t_ms: head.t_ms, event };
        range::check(&line)?;
        Ok(line)
    }

    /// What is wrong with the line, with the field whose value is wrong; the parser knows of one line only, and counts its columns.
    fn said(&self, error: &serde_json::Error) -> String {
        let message = error.to_string();
        let what = plain(message.split(" at line ").next().unwrap_or(&message));
        let before = self.text.get(..error.column()).unwrap_or(&self.text);
        let field = before.rsplit_once("\":").and_then(|(keys, _)| keys.rsplit('"').next());
        match field.filter(|_| message.starts_with("invalid")) {
            Some(field) => format!("`{field}`: {what} (column {})", error.column()),
            None => format!("{what} (column {})", error.column()),
        }
    }

    fn error(&self, message: String) -> LogError {
        LogError::Line { line: self.number, message }
    }
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LogError::Io { line, .. } => write!(f, "line {line} of the event log cannot be read"),
            LogError::Line { line, message } => write!(f, "line {line} of the event log: {message}"),
        }
    }
}

impl std::error::Error for LogError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            LogError::Io { source, .. } => Some(source),
            LogError::Line { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<(u64, Line)>, String> {
        let mut reader = LogReader::new(text.as_bytes());
        let mut lines = Vec::new();
        while let Some(line) = reader.next_line().map_err(|error| error.to_string())? {
            lines.push(line);
        }
        Ok(lines)
    }

    const FIRST: &str = "{\"v\":1,\"t_ms\":5,\"event\":\"eligible\",\"workload\":\"a\"}\n";
    const LAST: &str = "{\"t_ms\":9,\"event\":\"end_of_log\",\"leases\":[{\"workload\":\"a\",\"attempt\":2}]}\n";

    #[test]
    fn lines_come_with_their_numbers() {
        let lines = read(&format!("{FIRST}{LAST}")).unwrap();
        let numbers: Vec<(u64, i64)> = lines.iter().map(|(number, line)| (*number, line.t_ms)).collect();
        assert_eq!(numbers, [(1, 5), (2, 9)]);
    }

    #[test]
    fn faults_name_the_line() {
        let unknown = "{\"t_ms\":6,\"event\":\"rebooted\"}\n";
        let missing = "{\"t_ms\":6,\"event\":\"running\",\"workload\":\"a\",\"attempt\":1}\n";
        for (text, message) in [
            (format!("{FIRST}{unknown}{LAST}"), "line 2 of the event log: there is no event `rebooted`"),
            (format!("{FIRST}{missing}{LAST}"), "line 2 of the event log: event `running`: missing field `protected_until_ms`"),
            (format!("{FIRST}{LAST}{FIRST}"), "line 3 of the event log: nothing may follow `end_of_log`"),
            (
                format!("{FIRST}{}", LAST.replace("2}", "-2}")),
                "line 2 of the event log: event `end_of_log`: `attempt`: it is the number `-2`; expected a whole number from 0 to 4294967295 (column ",
            ),
            (FIRST.to_string(), "line 2 of the event log: the log breaks off here"),
            (LAST.to_string(), "line 1 of the event log: the first line must state the version"),
            (FIRST.replace("\"v\":1", "\"v\":2"), "line 1 of the event log: the log has version 2"),
            (format!("{FIRST}{{\"t_ms\":\n{LAST}"), "line 2 of the event log: EOF"),
            (format!("{FIRST}{}", LAST.replace("9", "9000000000000")), "line 2 of the event log: `t_ms` is 9000000000000; it must be from"),
        ] {
            let error = read(&text).unwrap_err();
            assert!(error.starts_with(message), "{error}");
        }
    }
}
