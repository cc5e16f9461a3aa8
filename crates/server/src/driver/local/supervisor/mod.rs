//! The small process that carries one lease: it starts the members, keeps their output, stops them, and writes down how it ended.
//!
//! It outlives the daemon. All that comes from the members is its descendant whatever they do, since it adopts orphans, so "no process
//! is left" is exact: it has no child any more.

mod ending;
mod member;
mod output;
mod reaper;
mod stop;
mod user;

use super::bell;
use super::folder::{self, Folder, Order, Stop};
use super::process;
use super::status::{self, What, now};
use ending::Ending;
use member::{Member, Phase, Which};
use nix::sys::wait::WaitStatus;
use reaper::Reaper;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;
use stop::Stopping;

/// Whoever drops a hint may fail to; so the files are looked at this often anyway.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The grace when the machine goes down: an init system waits longer for its services.
const INTERRUPTED_GRACE_MS: i64 = 30_000;

/// When everything on the machine is being ended, the members may be gone before we know why.
const SETTLE: Duration = Duration::from_millis(300);

/// How long what was killed is given to be gone before it is killed again.
const AGAIN_AFTER: Duration = Duration::from_millis(200);

/// What the supervisor waits for.
enum Event {
    /// A child of ours was reaped.
    Reaped(WaitStatus),
    /// We have no child.
    NoneLeft,
    /// A word from the daemon or the workload.
    Word(String),
}

/// Carries the lease of this folder to its end. Does nothing if another supervisor does or did.
///
/// # Errors
/// The folder cannot be read or written. Nothing was started then.
pub fn supervise(dir: &Path) -> anyhow::Result<()> {
    if let Some(which) = user::asked() {
        return user::become_member(dir, which);
    }
    // A session of its own: what ends the daemon's terminal does not end this. It fails only where it is so already.
    let _ = nix::unistd::setsid();
    let _ = nix::sys::prctl::set_name(c"stipend-lease");
    nix::sys::prctl::set_child_subreaper(true)?;
    let folder = Folder(dir.to_path_buf());
    let Some(_lock) = folder.lock()? else { return Ok(()) };
    let began = |line: &status::Line| matches!(line.what, What::Begin { .. } | What::Ended { .. });
    if status::read(&folder.status(), &mut 0)?.iter().any(began) {
        return Ok(());
    }
    // The machine goes down, or somebody ends us: then the members are ended in order, and it is not the workload that failed.
    // A handler, other than an ignored signal, is not inherited by the members.
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGINT, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&interrupted))?;
    }
    Supervisor::new(folder, interrupted)?.run();
    Ok(())
}

struct Supervisor {
    folder: Folder,
    order: Order,
    status: status::Writer,
    events: Receiver<Event>,
    reaper: Reaper,
    members: Vec<Member>,
    all_ran: bool,
    stopping: Option<Stopping>,
    ending: Ending,
    interrupted: Arc<AtomicBool>,
}

impl Supervisor {
    fn new(folder: Folder, interrupted: Arc<AtomicBool>) -> anyhow::Result<Supervisor> {
        let order = folder.order()?;
        let (sender, events) = channel();
        hear(&folder, sender.clone())?;
        user::prepare(&order, &folder)?;
        let mut status = folder.status_writer()?;
        let pid = nix::unistd::getpid().as_raw();
        let begin = What::Begin { epoch: order.epoch, boot: process::boot().to_string(), pid, start: process::start_of(pid) };
        status.write(now(), begin)?;
        let reaper = Reaper::start(sender);
        Ok(Supervisor {
            folder,
            order,
            status,
            events,
            reaper,
            members: Vec::new(),
            all_ran: false,
            stopping: None,
            ending: Ending::default(),
            interrupted,
        })
    }

    fn run(mut self) {
        self.look();
        self.start();
        while !self.is_over() {
            match self.events.recv_timeout(self.patience()) {
                Ok(event) => self.take(event),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => unreachable!("the listener never hangs up"),
            }
            self.look();
            self.press();
        }
        self.finish();
    }

    /// Every process is gone, and none will be started.
    fn is_over(&self) -> bool {
        self.members.iter().all(Member::is_over) && reaper::none_left()
    }

    fn patience(&self) -> Duration {
        self.stopping.as_ref().map_or(LOOK_EVERY, Stopping::patience).clamp(AGAIN_AFTER, LOOK_EVERY)
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Reaped(status) => self.reaped(status),
            // Whether it is so now is asked when it matters.
            Event::NoneLeft => {}
            Event::Word(word) => match word.as_str() {
                "checkpoint" => self.note(What::Checkpoint),
                "input" => self.note(What::Input),
                "done" => {
                    self.ending.done = true;
                    self.note(What::Done);
                }
                _ => {}
            },
        }
    }

    /// Looks whether it is to be stopped.
    fn look(&mut self) {
        if let Some(order) = self.folder.stop() {
            self.stop(order);
        }
        if self.interrupted.load(Ordering::Relaxed) && !self.ending.interrupted {
            self.ending.interrupted = true;
            self.stop(Stop { grace: INTERRUPTED_GRACE_MS });
        }
    }

    /// Starts what is to run; what cannot be started ends the lease.
    fn start(&mut self) {
        let stopped = self.stopping.is_some();
        for (rank, place) in self.order.members.iter().enumerate() {
            let rank = u32::try_from(rank).expect("a gang has fewer members than 2^32");
            self.members.push(Member::new(rank, place.node.clone(), &self.folder, self.order.output_max));
        }
        if stopped {
            self.ending.failed(None, None);
            self.members.iter_mut().for_each(|member| member.phase = Phase::Over);
            return;
        }
        for rank in 0..self.members.len() {
            let restore = self.order.attempt > 1 && !self.order.program.restore_command.is_empty();
            let phase = if restore { Phase::Restoring } else { Phase::Running };
            if !self.enter(rank, phase) {
                // The rest of the gang is not started at all.
                self.members.iter_mut().filter(|member| member.phase == Phase::Waiting).for_each(|member| member.phase = Phase::Over);
                return;
            }
        }
        self.all_ran = true;
        self.note(What::Running);
    }

    /// Starts the command of a phase in a member. False if that failed: then the gang is being stopped.
    fn enter(&mut self, rank: usize, phase: Phase) -> bool {
        let which = if phase == Phase::Restoring { Which::Restore } else { Which::Main };
        let first = self.members[rank].phase == Phase::Waiting;
        match self.reaper.spawning(|| self.members[rank].spawn(&self.order, &self.folder, which)) {
            Ok(pid) => {
                self.members[rank].phase = phase;
                self.members[rank].main = Some(pid);
                let member = self.members[rank].rank;
                self.note(What::Group { member, pid, start: process::start_of(pid) });
                if first {
                    self.note(What::MemberRunning { member, node: self.members[rank].node.clone() });
                }
                true
            }
            Err(error) => {
                self.members[rank].say(&member::why_not(&self.order.program, which, &error));
                self.member_over(rank, Some((None, None)));
                false
            }
        }
    }

    /// A process is gone; if it was a member's, the next comes, or the member is over.
    fn reaped(&mut self, status: WaitStatus) {
        let (pid, failure) = match status {
            WaitStatus::Exited(pid, 0) => (pid.as_raw(), None),
            WaitStatus::Exited(pid, code) => (pid.as_raw(), Some((Some(code), None))),
            WaitStatus::Signaled(pid, signal, _) => (pid.as_raw(), Some((None, Some(signal as i32)))),
            _ => return,
        };
        if self.checkpoint_over(pid, failure.is_none()) {
            return;
        }
        let Some(rank) = self.members.iter().position(|member| member.main == Some(pid)) else { return };
        self.members[rank].main = None;
        match self.members[rank].phase {
            Phase::Restoring if failure.is_none() && self.stopping.is_none() => {
                self.enter(rank, Phase::Running);
            }
            _ => self.member_over(rank, failure),
        }
    }

    /// The member is over. If it failed, so has the gang.
    fn member_over(&mut self, rank: usize, failure: Option<(Option<i32>, Option<i32>)>) {
        let unfinished = self.members[rank].phase == Phase::Restoring;
        self.members[rank].phase = Phase::Over;
        match failure {
            Some((code, signal)) => {
                self.ending.failed(code, signal);
                if self.members.iter().any(|member| !member.is_over()) {
                    self.stop_gang();
                }
            }
            // It was stopped while it restored.
            None if unfinished => self.ending.failed(None, None),
            None => {}
        }
    }

    /// Writes a line and hints at it. A full disk costs the line, except the last one's.
    fn note(&mut self, what: What) {
        if let Err(error) = self.status.write(now(), what) {
            eprintln!("cannot write the status: {error}");
        }
        self.ring();
    }

    fn ring(&self) {
        // Without a daemon nobody listens; it will read the status.
        let _ = bell::ring(&self.order.bell, &folder::name(self.order.lease()));
    }

    /// All is over: what was put out, then how it ended, on disk.
    fn finish(mut self) {
        self.members.drain(..).for_each(Member::close);
        let at = now();
        if self.stopping.is_none() && self.ending.was_terminated() {
            std::thread::sleep(SETTLE);
        }
        self.ending.interrupted |= self.interrupted.load(Ordering::Relaxed);
        let ended = self.ending.line(self.all_ran);
        while let Err(error) = self.status.write(at, ended.clone()).and_then(|()| self.status.sync()) {
            // As long as the disk is full the lease stays, rather than its end being lost.
            eprintln!("cannot write the end: {error}");
            std::thread::sleep(LOOK_EVERY);
        }
        self.ring();
    }
}

/// Listens for words from the daemon and the workload.
fn hear(folder: &Folder, to: Sender<Event>) -> anyhow::Result<()> {
    let words = bell::listen(&folder.control())?;
    std::thread::Builder::new().name("words".into()).spawn(move || {
        bell::each(words, |word| to.send(Event::Word(word.to_string())).is_ok());
    })?;
    Ok(())
}
