//! A small blocking client of the HTTP API, for the command line.
//!
//! One connection a request, over a unix socket or plain TCP. There is no TLS here: whoever reaches a daemon over a network that is not
//! trusted puts a tunnel or a proxy before it.

mod error;
mod message;
mod stream;

pub use error::Error;
pub use message::Body;
pub use stream::{Event, Events};

use message::{Answer, Connection};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, Read};
use std::path::PathBuf;
use std::time::Duration;

/// Answers are at most so large, but for those that are read as they come.
const ANSWER_MAX: u64 = 256 << 20;

/// How long an answer may let wait for its next byte; longer than the daemon itself waits.
const PATIENCE: Duration = Duration::from_secs(90);
const PATIENCE_LONG: Duration = Duration::from_secs(660);

/// What a request gives.
pub type Result<T> = std::result::Result<T, Error>;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Address {
    Unix(PathBuf),
    /// `host:port`
    Tcp(String),
}

/// Where the daemon is, and as whom to ask.
#[derive(Clone, Debug)]
pub struct Client {
    address: Address,
    token: Option<String>,
}

impl Client {
    /// A client of the daemon at `unix:PATH` or `http://HOST:PORT`. Nothing is sent yet.
    ///
    /// # Errors
    /// The address is of neither form, or the token holds what no token holds.
    pub fn new(address: &str, token: Option<String>) -> Result<Client> {
        let address = parse_address(address)?;
        if token.as_ref().is_some_and(|t| t.is_empty() || !t.bytes().all(|b| b.is_ascii_graphic())) {
            return Err(Error::Answer(
                "the token is not one: it is empty or holds a space, a line break or a letter that is not ASCII".into(),
            ));
        }
        Ok(Client { address, token })
    }

    /// Asks. `path` begins with `/` and has its query escaped (see [`escape`]).
    ///
    /// # Errors
    /// See [`Error`]; so for all requests.
    pub fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        self.json("GET", path, None, &[])
    }

    /// Sends something new.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn post<T: DeserializeOwned, B: Serialize + ?Sized>(&self, path: &str, body: &B, headers: &[(&str, &str)]) -> Result<T> {
        self.json("POST", path, Some(encode(body)?), headers)
    }

    /// Changes something.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn patch<T: DeserializeOwned, B: Serialize + ?Sized>(&self, path: &str, body: &B, headers: &[(&str, &str)]) -> Result<T> {
        self.json("PATCH", path, Some(encode(body)?), headers)
    }

    /// Takes something away.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn delete<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        self.json("DELETE", path, None, &[])
    }

    /// Asks for something that is text and not JSON: CSV, metrics.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn text(&self, path: &str) -> Result<String> {
        let answer = self.send("GET", path, None, &[])?;
        let mut text = String::new();
        answer.body.take(ANSWER_MAX).read_to_string(&mut text).map_err(|e| self.broken(&e))?;
        Ok(text)
    }

    /// Asks for a part of the event log: its lines, and from where on to ask for the next part.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn part(&self, path: &str) -> Result<(String, Option<u64>)> {
        let answer = self.send("GET", path, None, &[])?;
        let mut text = String::new();
        answer.body.take(ANSWER_MAX).read_to_string(&mut text).map_err(|e| self.broken(&e))?;
        Ok((text, answer.next))
    }

    /// Sends text that is not JSON, such as CSV or TOML.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn post_text<T: DeserializeOwned>(&self, path: &str, kind: &str, body: &str, headers: &[(&str, &str)]) -> Result<T> {
        self.read_json(path, self.send("POST", path, Some((kind, body.as_bytes())), headers)?)
    }

    /// Sends something and wants to know only that it was taken.
    ///
    /// # Errors
    /// See [`Error`].
    pub(crate) fn send_away(&self, path: &str, kind: &str, body: &[u8], headers: &[(&str, &str)]) -> Result<()> {
        self.send("POST", path, Some((kind, body)), headers).map(drop)
    }

    /// Asks for bytes that are read as they come: output that is followed.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn bytes(&self, path: &str) -> Result<Body> {
        Ok(self.send("GET", path, None, &[])?.body)
    }

    /// Asks for server-sent events. To go on after a break, ask again with `from=` the last one's number + 1.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn stream(&self, path: &str) -> Result<Events> {
        Ok(Events::new(self.send("GET", path, None, &[("accept", "text/event-stream")])?.body, self.clone()))
    }

    fn json<T: DeserializeOwned>(&self, method: &str, path: &str, body: Option<Vec<u8>>, headers: &[(&str, &str)]) -> Result<T> {
        let body = body.as_deref().map(|b| ("application/json", b));
        self.read_json(path, self.send(method, path, body, headers)?)
    }

    fn read_json<T: DeserializeOwned>(&self, path: &str, answer: Answer) -> Result<T> {
        let mut bytes = Vec::new();
        answer.body.take(ANSWER_MAX).read_to_end(&mut bytes).map_err(|e| self.broken(&e))?;
        // An answer without content is `null`.
        let text: &[u8] = if bytes.is_empty() { b"null" } else { &bytes };
        serde_json::from_slice(text).map_err(|e| Error::Answer(format!("the answer to {path} is not what this version expects: {e}")))
    }

    /// Sends a request and reads the head of its answer; what is not a success becomes an error.
    fn send(&self, method: &str, path: &str, body: Option<(&str, &[u8])>, headers: &[(&str, &str)]) -> Result<Answer> {
        let mut connection = self.connect(path)?;
        connection.write_request(method, path, self.host(), self.token.as_deref(), body, headers)?;
        let mut answer = connection.read_answer().map_err(|e| self.broken(&e))?;
        if (200..300).contains(&answer.status) {
            return Ok(answer);
        }
        let mut bytes = Vec::new();
        // What was cut off of a refusal matters less than its status.
        let _ = (&mut answer.body).take(ANSWER_MAX).read_to_end(&mut bytes);
        match serde_json::from_slice(&bytes) {
            Ok(problem) => Err(Error::Problem { status: answer.status, problem }),
            Err(_) => {
                Err(Error::Answer(format!("{} answered {} without saying why: is that a Stipend daemon?", self.name(), answer.status)))
            }
        }
    }

    fn connect(&self, path: &str) -> Result<Connection> {
        let patience = if crate::http::LONG.contains(&path) { PATIENCE_LONG } else { PATIENCE };
        match &self.address {
            Address::Unix(path) => Connection::unix(path, patience),
            Address::Tcp(host) => Connection::tcp(host, patience),
        }
        .map_err(|e| self.unreachable(&e))
    }

    fn host(&self) -> &str {
        match &self.address {
            Address::Unix(_) => "localhost",
            Address::Tcp(host) => host,
        }
    }

    /// The address as it was given.
    pub fn name(&self) -> String {
        match &self.address {
            Address::Unix(path) => format!("unix:{}", path.display()),
            Address::Tcp(host) => format!("http://{host}"),
        }
    }

    fn unreachable(&self, e: &io::Error) -> Error {
        let hint = match e.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
                "no daemon runs there: start one with `stipend serve`, or say where it is with --server or STIPEND_SERVER, \
                 as unix:DATA/stipend.sock or, with a token in STIPEND_TOKEN or --token-file, as http://HOST:PORT"
            }
            io::ErrorKind::PermissionDenied => {
                "this account may not enter the daemon's folder: ask for a token and use STIPEND_SERVER=http://HOST:PORT with \
                 STIPEND_TOKEN, or ask for `chmod o+x` of the folder"
            }
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => "is the address right, and no firewall between?",
            _ => "is the address right?",
        };
        Error::Connection { message: format!("no connection to {}: {e}", self.name()), hint: hint.into() }
    }

    fn broken(&self, e: &io::Error) -> Error {
        let (what, hint) = match e.kind() {
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => {
                ("did not answer in time".to_string(), "it may be busy or stopped; look at its log")
            }
            io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => {
                ("closed the connection before the answer was whole".to_string(), "it may be stopping or restarting; ask again")
            }
            _ => (format!("answered something that is not HTTP: {e}"), "is that a Stipend daemon?"),
        };
        Error::Connection { message: format!("{} {what}", self.name()), hint: hint.into() }
    }
}

fn parse_address(address: &str) -> Result<Address> {
    let wrong = |what: &str| Err(Error::Answer(format!("\"{address}\" is not an address: {what}; expected unix:PATH or http://HOST:PORT")));
    if let Some(path) = address.strip_prefix("unix:") {
        return if path.is_empty() { wrong("the path is missing") } else { Ok(Address::Unix(path.into())) };
    }
    if address.starts_with("https:") {
        return wrong("TLS is not spoken here, put a tunnel before it");
    }
    let Some(host) = address.strip_prefix("http://") else { return wrong("it begins with neither") };
    let host = host.strip_suffix('/').unwrap_or(host);
    match host.rsplit_once(':') {
        Some((name, port))
            if !name.is_empty() && port.parse::<u16>().is_ok() && host.bytes().all(|b| b.is_ascii_graphic() && b != b'/') =>
        {
            Ok(Address::Tcp(host.to_string()))
        }
        _ => wrong("the host or the port is missing or wrong"),
    }
}

fn encode<B: Serialize + ?Sized>(body: &B) -> Result<Vec<u8>> {
    serde_json::to_vec(body).map_err(|e| Error::Answer(format!("the request cannot be written as JSON: {e}")))
}

/// A text as it stands in a path or a query: all but letters, digits and `-._~` as `%XX`.
pub fn escape(text: &str) -> String {
    text.bytes().fold(String::with_capacity(text.len()), |mut to, b| {
        if b.is_ascii_alphanumeric() || b"-._~".contains(&b) {
            to.push(b.into());
        } else {
            to.push_str(&format!("%{b:02X}"));
        }
        to
    })
}

#[cfg(test)]
mod tests;
