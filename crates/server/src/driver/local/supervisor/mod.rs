//! The small process that carries one lease: it starts the members, keeps their output, stops them, and writes down how it ended.
//!
//! It outlives the daemon. All that comes from the members is its descendant whatever they do, since it adopts orphans, so "no process
//! is left" is exact: it has no child any more.

mod ending;
mod life;
mod member;
mod output;
mod reaper;
mod stop;
mod user;

use super::bell;
use super::cgroup::Groups;
use super::folder::{self, Folder, Order, Stop};
use super::process;
use super::status::{self, What, now};
use ending::Ending;
use member::Member;
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
    /// With limits, where there are any.
    groups: Option<Groups>,
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
        let groups = Groups::make(&order).unwrap_or_else(|error| {
            eprintln!("no limits on CPUs and memory: {error}");
            None
        });
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
            groups,
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
        self.groups.iter().for_each(Groups::close);
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
