//! A daemon in a folder of its own.

use super::http::Connection;
use serde_json::{Value, json};
use std::io::BufReader;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// What a tick of the CPU times in `/proc` is, on all Linux.
const TICK_S: f64 = 0.01;

pub(crate) struct Daemon {
    program: String,
    folder: PathBuf,
    process: Child,
}

impl Daemon {
    pub(crate) fn start(program: &str, nodes: u32) -> Daemon {
        let folder = std::env::temp_dir().join(format!("stipend-load-{}-{nodes}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a new folder");
        let leaves = (0..super::LEAVES).map(|leaf| format!("[[budgets]]\npath = \"lab/b{leaf}\"\nshare = 2.5\n")).collect::<String>();
        let config = format!(
            "[pool]\nname = \"gpu\"\nnodes = {nodes}\ngpus_per_node = 8\n[[budgets]]\npath = \"lab\"\nmembers = [\"*\"]\n{leaves}[daemon]\n\
             listen = \"127.0.0.1:7499\"\nrun_as = \"daemon\"\nrequests_per_second_max = 1000000\nwaiting_max = 1000000\nwaiting_per_user_max = 1000000\n"
        );
        std::fs::write(folder.join("stipend.toml"), config).expect("there is room");
        let mut daemon = Daemon { process: serve(program, &folder), program: program.into(), folder };
        daemon.until_it_answers();
        daemon
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Seconds from the start of the program to its first answer, after it was killed.
    pub(crate) fn restart(&mut self) -> f64 {
        self.kill();
        let begin = Instant::now();
        self.process = serve(&self.program, &self.folder);
        self.until_it_answers();
        begin.elapsed().as_secs_f64()
    }

    fn kill(&mut self) {
        self.process.kill().expect("it is ours");
        self.process.wait().expect("it ends");
    }

    fn until_it_answers(&mut self) {
        while UnixStream::connect(self.folder.join("data/stipend.sock")).is_err() {
            assert!(self.process.try_wait().expect("it is ours").is_none(), "it ended");
            std::thread::sleep(Duration::from_millis(5));
        }
        self.unix().ask("GET", "/v1/pools", "");
    }

    pub(crate) fn unix(&self) -> Connection {
        let stream = UnixStream::connect(self.folder.join("data/stipend.sock")).expect("it listens");
        Connection { stream: BufReader::new(Box::new(stream)), token: String::new() }
    }

    pub(crate) fn tcp(&self) -> Connection {
        let token = self.unix().ask("POST", "/v1/tokens", &json!({"user": "root", "role": "admin"}).to_string());
        let stream = TcpStream::connect("127.0.0.1:7499").expect("it listens");
        stream.set_nodelay(true).expect("an option");
        let token = format!("authorization: Bearer {}\r\n", token["token"].as_str().expect("a token"));
        Connection { stream: BufReader::new(Box::new(stream)), token }
    }

    fn proc(&self, file: &str) -> String {
        std::fs::read_to_string(format!("/proc/{}/{file}", self.process.id())).expect("it runs")
    }

    /// Seconds of CPU time that it has used, without its children's.
    pub(crate) fn cpu(&self) -> f64 {
        let stat = self.proc("stat");
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        fields[11..13].iter().map(|ticks| ticks.parse::<f64>().expect("ticks")).sum::<f64>() * TICK_S
    }

    pub(crate) fn memory_mib(&self) -> u64 {
        self.kib("VmRSS:") >> 10
    }

    pub(crate) fn peak_mib(&self) -> u64 {
        self.kib("VmHWM:") >> 10
    }

    fn kib(&self, name: &str) -> u64 {
        let status = self.proc("status");
        let line = status.lines().find(|line| line.starts_with(name)).expect("Linux");
        line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).expect("a number")
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let running: Value = self.unix().ask("GET", "/v1/workloads?state=running&limit=1000", "");
        for workload in running["items"].as_array().into_iter().flatten() {
            self.unix().ask("DELETE", &format!("/v1/workloads/{}", workload["id"]), "");
        }
        self.kill();
        // Supervisors end what they carry as they are told, beside the folder's end.
        std::thread::sleep(Duration::from_secs(1));
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn serve(program: &str, folder: &Path) -> Child {
    let mut command = Command::new(program);
    command.current_dir(folder).args(["serve", "--config", "stipend.toml", "--data"]).arg(folder.join("data"));
    let log = std::fs::File::options().create(true).append(true).open(folder.join("daemon.log")).expect("there is room");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().expect("the program starts")
}
