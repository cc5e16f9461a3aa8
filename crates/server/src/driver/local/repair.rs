//! Repairs of nodes by the operator's command, and the check afterwards.

use crate::driver::{Report, Reports};
use std::collections::BTreeSet;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A command that takes longer is ended, and has failed.
const TIME_MAX: Duration = Duration::from_secs(3600);

/// How often it is asked whether a command has ended.
const ASK_EVERY: Duration = Duration::from_millis(50);

/// So long its last words are waited for.
const LAST_WORDS_MAX: Duration = Duration::from_secs(2);

/// So much of what a command said is shown when it fails, in bytes.
const SAID_MAX: usize = 300;

/// The operator's commands.
#[derive(Clone)]
pub(super) struct Repairs {
    pub repair: Vec<String>,
    pub health: Vec<String>,
    pub reports: Arc<dyn Reports>,
    /// The nodes that are being repaired: a command that is given again is not a new one.
    pub under_way: Arc<Mutex<BTreeSet<String>>>,
}

impl Repairs {
    /// Starts the repair of a node; what comes of it is reported.
    pub(super) fn start(&self, node: String, reason: String) {
        if !self.under_way.lock().unwrap_or_else(PoisonError::into_inner).insert(node.clone()) {
            return;
        }
        let this = self.clone();
        std::thread::spawn(move || {
            let report = match this.repair(&node, &reason) {
                Ok(()) => Report::NodeHealthy { node: node.clone() },
                Err(reason) => Report::RepairFailed { node: node.clone(), reason },
            };
            this.under_way.lock().unwrap_or_else(PoisonError::into_inner).remove(&node);
            this.reports.report(report);
        });
    }

    fn repair(&self, node: &str, reason: &str) -> Result<(), String> {
        if self.repair.is_empty() {
            return Err("no repair command is configured".into());
        }
        run("the repair command", &self.repair, node, reason)?;
        if self.health.is_empty() { Ok(()) } else { run("the health check", &self.health, node, reason) }
    }
}

/// Runs one command to its end.
fn run(what: &str, command: &[String], node: &str, reason: &str) -> Result<(), String> {
    let failed = |error: io::Error| format!("{what} cannot be run: {error}");
    let (mut said, into) = io::pipe().map_err(failed)?;
    let mut start = Command::new(&command[0]);
    start.args(&command[1..]).env("STIPEND_NODE", node).env("STIPEND_REASON", reason);
    start.stdin(Stdio::null()).stdout(into.try_clone().map_err(failed)?).stderr(into).process_group(0);
    let mut child = start.spawn().map_err(failed)?;
    drop(start);
    // Read on, so that it never waits for us; it ends when nobody holds the pipe.
    let tail = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&tail);
    let (all, all_is_read) = channel::<()>();
    std::thread::spawn(move || {
        // Dropped at the end of the output.
        let _all = all;
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = said.read(&mut bytes) {
            let mut tail = kept.lock().unwrap_or_else(PoisonError::into_inner);
            tail.extend_from_slice(&bytes[..count]);
            let over = tail.len().saturating_sub(SAID_MAX);
            tail.drain(..over);
        }
    });
    let deadline = Instant::now() + TIME_MAX;
    let status = loop {
        match child.try_wait().map_err(failed)? {
            Some(status) => break status,
            None if Instant::now() >= deadline => {
                super::process::signal_group(child.id().cast_signed(), nix::sys::signal::Signal::SIGKILL);
                let _ = child.wait();
                return Err(format!("{what} took longer than an hour"));
            }
            None => std::thread::sleep(ASK_EVERY),
        }
    };
    if status.success() {
        return Ok(());
    }
    // Its end may be seen before its last words are; whoever it left behind may hold the pipe for ever.
    let _ = all_is_read.recv_timeout(LAST_WORDS_MAX);
    let tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
    let tail = String::from_utf8_lossy(&tail);
    let last = tail.trim().lines().last().map_or_else(String::new, |last| format!(": {last}"));
    Err(format!("{what} failed with {status}{last}"))
}
