//! A daemon that is killed and started again, and all that it left running.

use crate::process::{program, serve, start};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::thread::sleep;
use std::time::{Duration, Instant};
use stipend_server::client::Client;

/// Whatever is waited for comes long before, if it comes at all.
const PATIENCE: Duration = Duration::from_secs(300);

const CONFIG: &str = "\
[pool]
name = \"gpu\"
nodes = 4
gpus_per_node = 4
[policy]
lookback = \"1h\"
grace_unallocated = \"1s\"
grace_allocated = \"1s\"
checkpoint_wait_max = \"0s\"
[[budgets]]
path = \"lab\"
members = [\"*\"]
[[budgets]]
path = \"lab/a\"
share = 50
[[budgets]]
path = \"lab/b\"
share = 30
[[budgets]]
path = \"lab/c\"
share = 20
[daemon]
run_as = \"daemon\"
requests_per_second_max = 100000
";

/// Seconds, exit code, and whether it takes no notice of SIGTERM. Whoever else is of this workload has the lock.
const PROGRAM: &str = r#"
file="$RUNS/$STIPEND_WORKLOAD.$STIPEND_RANK"
exec 9>>"$file.lock"
flock -n 9 || echo "twice $STIPEND_ATTEMPT" >>"$file"
if [ "$3" = stubborn ]; then trap '' TERM; fi
echo "start $STIPEND_ATTEMPT $$" >>"$file"
sleep "$1"
echo "end $STIPEND_ATTEMPT $$" >>"$file"
exit "$2"
"#;

pub(crate) struct Daemon {
    folder: PathBuf,
    process: Child,
}

impl Daemon {
    pub(crate) fn start(name: &str) -> Daemon {
        // Not in the build folder: the path of a socket is at most 107 bytes long.
        let folder = std::env::temp_dir().join(format!("stipend-{name}-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("runs")).expect("a new folder");
        std::fs::write(folder.join("stipend.toml"), CONFIG).expect("there is room");
        std::fs::write(folder.join("program.sh"), PROGRAM).expect("there is room");
        let process = start(serve(&folder), &folder);
        let daemon = Daemon { folder, process };
        daemon.until_it_answers();
        daemon
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub(crate) fn client(&self) -> Client {
        let socket = self.folder.join("data/stipend.sock");
        Client::new(&format!("unix:{}", socket.display()), None).expect("an address")
    }

    pub(crate) fn serve(&mut self) {
        self.process = start(serve(&self.folder), &self.folder);
    }

    /// Starts it where no file may grow beyond so many KiB: each write past that fails, as on a full disk.
    pub(crate) fn serve_without_room(&mut self, kib: u32) {
        let served = serve(&self.folder);
        let mut command = Command::new("sh");
        // In blocks of 512 bytes; whoever ignores the signal gets an error instead.
        let script = format!("trap '' XFSZ; ulimit -f {}; exec \"$0\" \"$@\"", kib * 2);
        command.current_dir(&self.folder).args(["-c", &script]).arg(served.get_program()).args(served.get_args());
        self.process = start(command, &self.folder);
    }

    /// Whether the daemon has ended by itself, and with which code.
    pub(crate) fn ended(&mut self) -> Option<Option<i32>> {
        self.process.try_wait().expect("it is ours").map(|status| status.code())
    }

    pub(crate) fn kill(&mut self) {
        self.process.kill().expect("it is ours");
        let status = self.process.wait().expect("it ends");
        assert_eq!(status.code(), None, "it ended by itself:\n{}", self.log());
    }

    /// Kills some of those that carry leases.
    pub(crate) fn kill_supervisors(&self, mut which: impl FnMut(i32) -> bool) {
        self.ours().into_iter().filter(|(pid, is_supervisor)| *is_supervisor && which(*pid)).for_each(|(pid, _)| end(pid));
    }

    /// Everything ends at once, as when the power fails.
    pub(crate) fn reboot(&mut self) {
        self.kill();
        self.kill_supervisors(|_| true);
        while !self.ours().is_empty() {
            self.ours().into_iter().for_each(|(pid, _)| end(pid));
        }
    }

    /// Supervisors and what they carry: their numbers, and whether it is a supervisor.
    fn ours(&self) -> Vec<(i32, bool)> {
        let leases = self.folder.join("data/leases").display().to_string();
        let processes = std::fs::read_dir("/proc").expect("it is Linux").flatten();
        let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        let read = |pid: i32, what| String::from_utf8_lossy(&std::fs::read(format!("/proc/{pid}/{what}")).unwrap_or_default()).into_owned();
        let look = |pid: i32| {
            let is_supervisor = read(pid, "cmdline").contains(&format!("supervise\0{leases}"));
            (is_supervisor || read(pid, "environ").contains(&format!("STIPEND_LEASE_DIR={leases}"))).then_some((pid, is_supervisor))
        };
        numbers.filter_map(look).collect()
    }

    pub(crate) fn until_it_answers(&self) {
        self.until("it answers", || self.client().get::<Value>("/v1/pools").is_ok());
    }

    /// Waits until it is so.
    pub(crate) fn until(&self, what: &str, is_so: impl Fn() -> bool) {
        let end = Instant::now() + PATIENCE;
        while !is_so() {
            assert!(Instant::now() < end, "never: {what}\n{}", self.log());
            sleep(Duration::from_millis(50));
        }
    }

    /// Runs the program; what it says, and its exit code.
    pub(crate) fn command(&self, args: &[&str]) -> (String, Option<i32>) {
        let server = format!("unix:{}", self.folder.join("data/stipend.sock").display());
        let output = program(&self.folder).args(args).env("STIPEND_SERVER", server).output().expect("the program starts");
        let said = [output.stdout, output.stderr].concat();
        (String::from_utf8(said).expect("text"), output.status.code())
    }

    /// The end of what the daemons said.
    pub(crate) fn log(&self) -> String {
        let text = std::fs::read_to_string(self.folder.join("daemon.log")).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(40)..].join("\n")
    }
}

impl Drop for Daemon {
    /// What failed is kept, to be looked at.
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        self.ours().into_iter().for_each(|(pid, _)| end(pid));
        match std::thread::panicking() {
            true => eprintln!("kept: {}", self.folder.display()),
            false => drop(std::fs::remove_dir_all(&self.folder)),
        }
    }
}

fn end(pid: i32) {
    // It may have ended by itself.
    let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
}
