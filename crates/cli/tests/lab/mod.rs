//! A daemon for one test, and the program that asks it.

mod process;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use process::{program, serve, start};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Whatever is waited for comes long before, if it comes at all.
const PATIENCE: Duration = Duration::from_secs(120);

const CONFIG: &str = "\
[pool]
name = \"gpu\"
nodes = 2
gpus_per_node = 8
[policy]
grace_unallocated = \"5s\"
grace_allocated = \"5s\"
checkpoint_wait_max = \"0s\"
[[budgets]]
path = \"lab\"
members = [\"*\"]
[[budgets]]
path = \"lab/nlp\"
share = 50
[[budgets]]
path = \"lab/vision\"
share = 30
[[budgets]]
path = \"lab/eval\"
share = 20
[daemon]
run_as = \"daemon\"
";

/// A daemon in a folder of its own. When it is dropped, all work is ended and the folder removed.
pub(crate) struct Lab {
    folder: PathBuf,
    data: String,
    daemon: Child,
}

/// What a command said.
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Lab {
    pub(crate) fn start(name: &str) -> Lab {
        Lab::with(name, CONFIG)
    }

    /// The same with another configuration.
    pub(crate) fn with(name: &str, config: &str) -> Lab {
        // Not in the build folder: the path of a socket is at most 107 bytes long.
        let folder = std::env::temp_dir().join(format!("stipend-test-{name}-{}", std::process::id()));
        std::fs::create_dir(&folder).expect("a new folder");
        std::fs::write(folder.join("stipend.toml"), config).expect("there is room");
        let data = folder.join("data").to_str().expect("a path in UTF-8").to_owned();
        let daemon = start(serve(&folder), &folder);
        let lab = Lab { folder, data, daemon };
        lab.until_it_answers();
        lab
    }

    /// The daemon's folder.
    pub(crate) fn data(&self) -> &str {
        &self.data
    }

    /// Starts the daemon again.
    pub(crate) fn serve(&mut self) {
        self.daemon = start(serve(&self.folder), &self.folder);
        self.until_it_answers();
    }

    fn until_it_answers(&self) {
        self.until("the daemon answers", || self.any(&["pool", "list"]).code == 0);
    }

    /// Ends the daemon at once.
    pub(crate) fn kill(&mut self) {
        self.daemon.kill().expect("it is ours");
        self.daemon.wait().expect("it ends");
    }

    /// Ends the daemon as an init system does.
    pub(crate) fn stop(&mut self) {
        kill(Pid::from_raw(self.daemon.id() as i32), Signal::SIGTERM).expect("it is ours");
        self.daemon.wait().expect("it ends");
    }

    /// What the daemon said, since the first start.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.folder.join("daemon.log")).unwrap_or_default()
    }

    pub(crate) fn write(&self, file: &str, text: &str) {
        std::fs::write(self.folder.join(file), text).expect("there is room");
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = program(&self.folder);
        command.args(args).env("STIPEND_SERVER", format!("unix:{}/stipend.sock", self.data)).env("COLUMNS", "80");
        command
    }

    /// Runs a command, whatever comes of it.
    pub(crate) fn any(&self, args: &[&str]) -> Said {
        said(&mut self.command(args))
    }

    /// Runs a command that is right.
    pub(crate) fn run(&self, args: &[&str]) -> Said {
        let said = self.any(args);
        assert_eq!(said.code, 0, "{args:?}\n{}{}", said.stdout, said.stderr);
        said
    }

    /// Starts a command.
    pub(crate) fn spawn(&self, args: &[&str]) -> Child {
        self.command(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the program starts")
    }

    /// Waits until it is so.
    pub(crate) fn until(&self, what: &str, is_so: impl Fn() -> bool) {
        let end = Instant::now() + PATIENCE;
        while !is_so() {
            assert!(Instant::now() < end, "never: {what}\n{}\n{}", self.any(&["events"]).stdout, self.log());
            sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let queue = self.any(&["queue"]).stdout;
        let live = queue.lines().filter_map(|line| line.split_whitespace().next().filter(|word| word.starts_with('w')));
        live.for_each(|id| {
            self.any(&["cancel", id]);
            self.any(&["wait", id]);
        });
        let _ = kill(Pid::from_raw(self.daemon.id() as i32), Signal::SIGTERM);
        let _ = self.daemon.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// As Ctrl-C.
pub(crate) fn interrupt(child: &Child) {
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).expect("it is ours");
}

/// What a shell would offer.
pub(crate) fn words(lab: &Lab, typed: &[&str]) -> Vec<String> {
    let mut command = lab.command(&["--", "stipend"]);
    command.args(typed).env("STIPEND_COMPLETE", "bash").env("_CLAP_COMPLETE_INDEX", typed.len().to_string()).env("_CLAP_IFS", "\n");
    said(&mut command).stdout.lines().map(str::to_owned).collect()
}

fn said(command: &mut Command) -> Said {
    let output = command.output().expect("the program starts");
    Said {
        code: output.status.code().expect("it ended by itself"),
        stdout: String::from_utf8(output.stdout).expect("text"),
        stderr: String::from_utf8(output.stderr).expect("text"),
    }
}
