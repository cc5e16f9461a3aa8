//! The lab of the demonstration: a daemon of its own, and people who submit to it.

use crate::failure::Failure;
use crate::interrupt;
use crate::output;
use crate::remote::{Daemon, Query, Remote};
use anyhow::{Context, anyhow};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread::sleep;
use std::time::{Duration, Instant};
use stipend_server::wire::token::{NewToken, Role, TokenRequest};
use stipend_server::wire::workload::{Submission, Submitted, Workload};

/// What the daemon is told.
const CONFIG: &str = include_str!("lab.toml");

/// How often it is looked whether something has come about.
const PAUSE: Duration = Duration::from_millis(150);

/// How long the daemon may take to start or to stop, and work to end.
const PATIENCE: Duration = Duration::from_secs(20);

/// Somebody pressed Ctrl-C, or something failed.
pub(super) enum Stopped {
    Interrupted,
    Failed(Failure),
}

impl<E: Into<Failure>> From<E> for Stopped {
    fn from(error: E) -> Stopped {
        Stopped::Failed(error.into())
    }
}

/// A step of the story, if nobody stopped it.
pub(super) type Told<T> = Result<T, Stopped>;

/// A running lab. When it is dropped, everything it started is ended and removed.
pub(super) struct Lab {
    folder: PathBuf,
    child: Child,
    interrupts: Receiver<()>,
    /// The administrator's way in, by the socket.
    pub(super) daemon: Daemon,
}

impl Lab {
    /// Starts the daemon in a new folder, and waits until it answers.
    pub(super) fn start() -> Result<Lab, Failure> {
        let interrupts = interrupt::messages()?;
        let folder = std::env::temp_dir().join(format!("stipend-demo-{}", std::process::id()));
        fs::create_dir(&folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
        fs::write(folder.join("stipend.toml"), CONFIG)?;
        let data = folder.join("data");
        let log = fs::File::create(folder.join("daemon.log"))?;
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["serve", "--listen", "none", "--data"]).arg(&data).arg("--config").arg(folder.join("stipend.toml"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        // A group of its own: Ctrl-C is for the demonstration, which ends the daemon when its work has ended.
        let child = command.process_group(0).spawn().context("the daemon cannot be started")?;
        let remote = Remote { server: Some(format!("unix:{}", stipend_server::serve::socket(&data).display())), token_file: None };
        let mut lab = Lab { folder, child, interrupts, daemon: remote.daemon()? };
        match lab.until(PATIENCE, |lab| lab.daemon.text("/readyz").is_ok() || lab.has_ended()) {
            Ok(true) if !lab.has_ended() => Ok(lab),
            Ok(_) => Err(lab.log().into()),
            Err(Stopped::Failed(failure)) => Err(failure),
            Err(Stopped::Interrupted) => Err(Failure::new("interrupted")),
        }
    }

    fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    fn log(&self) -> anyhow::Error {
        let log = fs::read_to_string(self.folder.join("daemon.log")).unwrap_or_default();
        anyhow!("the daemon does not run: {}", log.trim())
    }

    /// A way in for somebody else, with a token.
    pub(super) fn person(&self, name: &str) -> Told<Person> {
        let request = TokenRequest { user: name.into(), role: Role::User, note: String::new() };
        let token = self.daemon.post::<NewToken>("/v1/tokens", &request, &[])?;
        Ok(Person { daemon: self.daemon.with_token(token.token)? })
    }

    /// All workloads.
    pub(super) fn workloads(&self) -> Result<Vec<Workload>, Failure> {
        self.daemon.list("/v1/workloads", &Query::default().with("all", Some(true)), 1000)
    }

    /// Waits until it is so, at most so long; says whether it came to be so.
    pub(super) fn until(&mut self, patience: Duration, is_so: impl Fn(&mut Lab) -> bool) -> Told<bool> {
        let end = Instant::now() + patience;
        while !is_so(self) {
            if Instant::now() >= end {
                return Ok(false);
            }
            self.pause(PAUSE)?;
        }
        Ok(true)
    }

    /// Lets some time pass.
    pub(super) fn pause(&self, length: Duration) -> Told<()> {
        match self.interrupts.recv_timeout(length) {
            Err(RecvTimeoutError::Timeout) => Ok(()),
            _ => Err(Stopped::Interrupted),
        }
    }

    /// Ends all work and waits until it has ended.
    fn end_work(&self) -> Result<(), Failure> {
        let end = Instant::now() + PATIENCE;
        loop {
            let live: Vec<Workload> = self.daemon.list("/v1/workloads", &Query::default(), 1000)?;
            if live.is_empty() || Instant::now() >= end {
                return Ok(());
            }
            for workload in live {
                // One that has just ended cannot be cancelled, and need not.
                let _ = self.daemon.delete::<Workload>(&format!("/v1/workloads/{}", workload.id));
            }
            sleep(PAUSE);
        }
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        if !self.has_ended() {
            if let Err(failure) = self.end_work() {
                output::note(&failure.to_string());
            }
            // The process is ours and not waited for yet, so the number is still its own.
            let _ = kill(Pid::from_raw(self.child.id() as i32), Signal::SIGTERM);
        }
        let end = Instant::now() + PATIENCE;
        while !self.has_ended() && Instant::now() < end {
            sleep(PAUSE);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Err(error) = fs::remove_dir_all(&self.folder) {
            output::note(&format!("cannot remove {}: {error}", self.folder.display()));
        }
    }
}

/// Somebody who submits.
pub(super) struct Person {
    daemon: Daemon,
}

impl Person {
    /// Queues the same thing so often; gives the numbers.
    pub(super) fn submit(&self, submission: &Submission, times: usize) -> Told<Vec<u32>> {
        let submitted = self.daemon.post::<Submitted>("/v1/workloads", &vec![submission; times], &[])?;
        Ok(submitted.workloads.iter().map(|workload| workload.id).collect())
    }
}
