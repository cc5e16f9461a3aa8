//! The local driver in a folder of its own, with this very test program as the supervisors' program.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use stipend_core::event::Exit;
use stipend_core::id::{LeaseId, WorkloadId};
use stipend_core::quantity::Span;
use stipend_server::driver::local::{Local, Settings};
use stipend_server::driver::{Command, Driver, End, EngineNode, Launch, Member, ObservedLease, Report};
use stipend_server::record::Program;

/// Long enough for any machine; nothing is concluded from how long it took.
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) struct Engine {
    pub(crate) data: PathBuf,
    pub(crate) driver: Option<Local>,
    reports: Receiver<Report>,
    pub(crate) seen: Vec<Report>,
}

pub(crate) fn lease(workload: u32, attempt: u32) -> LeaseId {
    LeaseId { workload: WorkloadId(workload), attempt }
}

/// A lease of one member that runs a shell script.
pub(crate) fn script(lease: LeaseId, script: &str) -> Launch {
    let command = ["sh", "-c", script].map(str::to_string).to_vec();
    Launch {
        lease,
        epoch: 1,
        program: Arc::new(Program { command, ..Program::default() }),
        members: vec![Member { node: "a".into(), gpus: vec![2, 3] }],
        user: "ada".into(),
        budget: "lab/nlp".into(),
        pool: "h100".into(),
        cpus_per_member: 0,
        memory_per_member: 0,
        contract: Span::minutes(30),
    }
}

/// The program in a launch, to be changed.
pub(crate) fn program(launch: &mut Launch) -> &mut Program {
    Arc::get_mut(&mut launch.program).expect("nobody else has it")
}

/// What a script calls to tell something of its workload, as it would call `stipend WORD`.
pub(crate) fn tell(word: &str) -> String {
    format!("{} tell_entry --exact --nocapture {word}", this().display())
}

fn this() -> PathBuf {
    std::env::current_exe().expect("this program")
}

impl Engine {
    pub(crate) fn new() -> Engine {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("stipend-local-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let data = std::env::temp_dir().join(name);
        let (_, reports) = channel();
        let mut engine = Engine { data, driver: None, reports, seen: Vec::new() };
        engine.restart();
        engine
    }

    /// Ends the daemon's part, if it runs, and starts another.
    pub(crate) fn restart(&mut self) {
        self.restart_with(|_| {});
    }

    pub(crate) fn restart_with(&mut self, change: impl FnOnce(&mut Settings)) {
        self.driver = None;
        let node = |name: &str| EngineNode {
            name: name.into(),
            pool: "h100".into(),
            gpus: 8,
            cpus: 0,
            memory: 0,
            block: String::new(),
            features: Vec::new(),
            express: false,
        };
        let mut settings = Settings::new(self.data.clone(), vec![node("a"), node("b")], true);
        settings.supervisor = vec![this().into()];
        settings.supervisor.extend(["supervise_entry", "--exact", "--nocapture"].map(OsString::from));
        change(&mut settings);
        let (to, reports) = channel();
        self.reports = reports;
        self.driver = Some(Local::start(settings, Arc::new(to)).expect("the driver starts"));
    }

    pub(crate) fn driver(&mut self) -> &mut Local {
        self.driver.as_mut().expect("it runs")
    }

    pub(crate) fn launch(&mut self, launch: Launch) {
        self.driver().command(Command::Launch(Box::new(launch)));
    }

    pub(crate) fn stop(&mut self, lease: LeaseId, grace: Span) {
        self.driver().command(Command::Stop { lease, grace });
    }

    pub(crate) fn observe(&mut self) -> Vec<ObservedLease> {
        self.driver().observe().expect("it answers")
    }

    /// Waits for the first report, of those not looked at yet, of which `find` makes something.
    pub(crate) fn wait<T>(&mut self, what: &str, find: impl Fn(&Report) -> Option<T>) -> T {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let report = self.reports.recv_timeout(left).unwrap_or_else(|_| panic!("no {what}; seen: {:?}", self.seen));
            self.seen.push(report.clone());
            if let Some(found) = find(&report) {
                return found;
            }
        }
    }

    pub(crate) fn running(&mut self, of: LeaseId) {
        self.wait("running", |report| matches!(report, Report::Running { lease, .. } if *lease == of).then_some(()));
    }

    pub(crate) fn end(&mut self, of: LeaseId) -> End {
        self.wait("end", |report| match report {
            Report::Ended { lease, end } if *lease == of => Some(*end),
            _ => None,
        })
    }

    /// Its end, whether it was reported before or is yet to be.
    pub(crate) fn ended(&mut self, of: LeaseId) -> End {
        let seen = self.seen.iter().find_map(|report| match report {
            Report::Ended { lease, end } if *lease == of => Some(*end),
            _ => None,
        });
        let observed = self.observe().into_iter().find(|observed| observed.lease == of).and_then(|observed| observed.end);
        seen.or(observed).unwrap_or_else(|| self.end(of))
    }

    /// All reports until now: what was observed was reported before.
    pub(crate) fn reported(&mut self) -> &[Report] {
        self.seen.extend(self.reports.try_iter());
        &self.seen
    }

    /// The process that carries the lease.
    pub(crate) fn supervisor(&self, of: LeaseId) -> i32 {
        let path = self.folder(of).join("status");
        let status = until("status", || std::fs::read_to_string(&path).ok().filter(|text| text.contains('\n')));
        let begin: serde_json::Value = serde_json::from_str(status.lines().next().expect("a line")).expect("JSON");
        i32::try_from(begin["pid"].as_i64().expect("a process")).expect("small")
    }

    pub(crate) fn ends(&mut self, of: LeaseId, exit: Exit, code: Option<i32>, signal: Option<i32>) {
        let end = self.end(of);
        assert_eq!((end.exit, end.code, end.signal), (exit, code, signal), "{}", self.output(of, 0));
    }

    pub(crate) fn output(&self, lease: LeaseId, member: u32) -> String {
        let path = self.driver.as_ref().expect("it runs").output(lease, member);
        path.map_or_else(String::new, |path| String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned())
    }

    pub(crate) fn folder(&self, lease: LeaseId) -> PathBuf {
        self.data.join(format!("leases/{}-{}", lease.workload.0, lease.attempt))
    }

    /// Waits until a file is there that a workload makes, and is whole: it ends with a line's end.
    pub(crate) fn file(&self, name: &str) -> String {
        let path = self.data.join(name);
        until(&format!("file {name}"), || std::fs::read_to_string(&path).ok().filter(|text| text.ends_with('\n')))
    }
}

/// Waits until `find` finds something.
pub(crate) fn until<T>(what: &str, find: impl Fn() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = find() {
            return found;
        }
        assert!(Instant::now() < deadline, "no {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whether the process lives.
pub(crate) fn lives(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.starts_with(" Z"))
}

pub(crate) fn kill(pid: i32, signal: nix::sys::signal::Signal) {
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), signal).expect("it is there");
}

impl Drop for Engine {
    fn drop(&mut self) {
        if let Some(driver) = &mut self.driver {
            let left: Vec<LeaseId> =
                driver.observe().unwrap_or_default().into_iter().filter(|lease| lease.end.is_none()).map(|lease| lease.lease).collect();
            left.iter().for_each(|&lease| driver.command(Command::Stop { lease, grace: Span::ZERO }));
            let deadline = Instant::now() + PATIENCE;
            while Instant::now() < deadline && driver.observe().unwrap_or_default().iter().any(|lease| lease.end.is_none()) {
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        self.driver = None;
        let _ = std::fs::remove_dir_all(&self.data);
    }
}
