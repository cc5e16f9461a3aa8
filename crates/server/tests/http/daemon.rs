//! A daemon in a folder of its own, and what its clients need.

use serde_json::{Value, json};
use std::ffi::OsString;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use stipend_server::client::Client;
use stipend_server::config::Config;
use stipend_server::driver::local::{Local, Settings};
use stipend_server::http::{Listeners, Server};
use stipend_server::service;
use stipend_server::store::Store;
use stipend_server::wire::token::NewToken;
use stipend_server::wire::workload::{Submitted, Workload};

/// Long enough for any machine; nothing is concluded from how long it took.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Two nodes of 8 virtual GPUs; boss manages lab, ada is in lab/nlp, everybody in lab/vision.
const CONFIG: &str = r#"
[pool]
name = "h100"
nodes = 2
gpus_per_node = 8
[[budgets]]
path = "lab"
managers = ["boss"]
[[budgets]]
path = "lab/nlp"
share = 60
members = ["ada"]
[[budgets]]
path = "lab/vision"
share = 40
members = ["*"]
[daemon]
run_as = "daemon"
"#;

pub(crate) struct Daemon {
    folder: tempfile::TempDir,
    server: Option<Server>,
    service: Option<(service::Handle, std::thread::JoinHandle<()>)>,
    pub(crate) address: SocketAddr,
    /// The administrator's.
    pub(crate) token: String,
}

/// An answer as it came.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The message of a refusal.
    pub(crate) fn message(&self) -> String {
        self.json()["message"].as_str().unwrap_or_else(|| panic!("no problem: {self:?}")).to_string()
    }
}

impl Daemon {
    pub(crate) fn start() -> Daemon {
        Daemon::with("")
    }

    /// With more said of `[daemon]`.
    pub(crate) fn with(more: &str) -> Daemon {
        let folder = tempfile::tempdir().expect("a folder");
        let config = Config::parse("test.toml", &format!("{CONFIG}{more}"), Path::new("")).expect("a configuration");
        let listeners = Listeners::bind(Some("127.0.0.1:0"), Some(&folder.path().join("stipend.sock"))).expect("sockets");
        let store = Store::open(folder.path()).expect("a store");
        let mut settings = Settings::new(folder.path().into(), config.nodes.clone(), true);
        settings.supervisor = vec![std::env::current_exe().expect("this program").into()];
        settings.supervisor.extend(["supervise_entry", "--exact", "--nocapture"].map(OsString::from));
        let started = service::start(store, config.clone(), "admin", |reports| Ok(Box::new(Local::start(settings, reports)?)));
        let started = started.expect("the service starts");
        let server = Server::start(started.handle.clone(), folder.path(), &config.daemon, listeners).expect("the API starts");
        let address = server.address().expect("a port");
        let thread = std::thread::spawn(|| started.thread.join().expect("no panic").expect("the store is written"));
        let token = started.first_token.expect("a new store").token;
        Daemon { folder, server: Some(server), service: Some((started.handle, thread)), address, token }
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("stipend.sock")
    }

    pub(crate) fn client(&self, token: &str) -> Client {
        Client::new(&format!("http://{}", self.address), Some(token.into())).expect("an address")
    }

    pub(crate) fn admin(&self) -> Client {
        self.client(&self.token)
    }

    /// A client by the socket: of the account that runs the daemon.
    fn local(&self) -> Client {
        Client::new(&format!("unix:{}", self.socket().display()), None).expect("an address")
    }

    /// A token for a user.
    pub(crate) fn token_of(&self, user: &str, role: &str) -> String {
        let request = json!({"user": user, "role": role});
        self.local().post::<NewToken, _>("/v1/tokens", &request, &[]).expect("a token").token
    }

    /// A client of a user with a role.
    pub(crate) fn as_user(&self, user: &str, role: &str) -> Client {
        self.client(&self.token_of(user, role))
    }

    /// Sends a request as it is written, and reads all that comes.
    pub(crate) fn raw(&self, request: &[u8]) -> Answer {
        let mut socket = TcpStream::connect(self.address).expect("a connection");
        socket.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        // What is refused early is not read to its end.
        let _ = socket.write_all(request);
        let mut bytes = Vec::new();
        let read = socket.read_to_end(&mut bytes);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {read:?} {text:?}"));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_else(|| panic!("no status: {head}"));
        Answer { status, head: head.into(), body: body.into() }
    }

    /// Sends a request with the administrator's token.
    pub(crate) fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let token = format!("Bearer {}", self.token);
        let mut all = vec![("authorization", token.as_str())];
        all.extend(headers);
        self.raw(&request(method, path, &all, body))
    }

    /// A budget's workload that runs a shell script.
    pub(crate) fn submit(&self, client: &Client, budget: &str, script: &str, more: Value) -> Workload {
        let mut body = json!({"budget": budget, "command": ["/bin/sh", "-c", script]});
        body.as_object_mut().expect("an object").extend(more.as_object().cloned().unwrap_or_default());
        let mut submitted: Submitted = client.post("/v1/workloads", &body, &[]).expect("submitted");
        submitted.workloads.remove(0)
    }

    pub(crate) fn wait(&self, id: u32) -> Workload {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let workload: Workload = self.admin().get(&format!("/v1/workloads/{id}/wait?timeout_s=20")).expect("an answer");
            if workload.ended_ms.is_some() {
                return workload;
            }
            assert!(Instant::now() < deadline, "it does not end: {workload:?}");
        }
    }
}

/// A request's bytes.
pub(crate) fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Vec<u8> {
    let mut text = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {}\r\n", body.len());
    headers.iter().for_each(|(name, value)| text.push_str(&format!("{name}: {value}\r\n")));
    format!("{text}\r\n{body}").into_bytes()
}

/// Waits until something holds.
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let live: Result<Value, _> = self.local().get("/v1/workloads?limit=1000");
        for workload in live.iter().flat_map(|page| page["items"].as_array().into_iter().flatten()) {
            let _ = self.local().delete::<Value>(&format!("/v1/workloads/{}", workload["id"]));
        }
        if let Some(server) = self.server.take() {
            server.stop();
        }
        if let Some((handle, thread)) = self.service.take() {
            handle.shut_down();
            let _ = thread.join();
        }
    }
}
