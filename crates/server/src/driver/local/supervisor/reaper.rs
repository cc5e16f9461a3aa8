//! Reaps children: our own, and the orphans that we adopt.

use super::Event;
use nix::errno::Errno;
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
use std::sync::mpsc::{Receiver, Sender, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

/// A thread that waits for children.
pub(super) struct Reaper {
    /// Held while a child is started: the standard library itself reaps one that could not run its program.
    starting: Arc<Mutex<()>>,
    /// Wakes the thread, which rests while there are none.
    wake: SyncSender<()>,
}

impl Reaper {
    /// Starts the thread.
    pub(super) fn start(to: Sender<Event>) -> Reaper {
        let starting = Arc::new(Mutex::new(()));
        let (wake, woken) = sync_channel(1);
        let lock = Arc::clone(&starting);
        std::thread::spawn(move || reap(&to, &woken, &lock));
        Reaper { starting, wake }
    }

    /// Starts a child.
    pub(super) fn spawning<T>(&self, start: impl FnOnce() -> T) -> T {
        let guard = self.starting.lock().unwrap_or_else(PoisonError::into_inner);
        let started = start();
        drop(guard);
        // Full: it is about to wake anyway.
        let _ = self.wake.try_send(());
        started
    }
}

/// Whether this process has no child: nothing that comes from it is left, since it adopts the orphans among them.
pub(super) fn none_left() -> bool {
    waitid(Id::All, WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT | WaitPidFlag::WNOHANG) == Err(Errno::ECHILD)
}

fn reap(to: &Sender<Event>, woken: &Receiver<()>, starting: &Mutex<()>) {
    loop {
        // Only look: whom to reap is decided under the lock.
        let event = match waitid(Id::All, WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT) {
            Err(Errno::ECHILD) => {
                if to.send(Event::NoneLeft).is_err() || woken.recv().is_err() {
                    return;
                }
                continue;
            }
            Ok(WaitStatus::Exited(pid, _) | WaitStatus::Signaled(pid, ..)) => {
                let guard = starting.lock().unwrap_or_else(PoisonError::into_inner);
                let reaped = waitpid(pid, Some(WaitPidFlag::WNOHANG));
                drop(guard);
                match reaped {
                    Ok(status @ (WaitStatus::Exited(..) | WaitStatus::Signaled(..))) => Event::Reaped(status),
                    _ => continue,
                }
            }
            _ => continue,
        };
        if to.send(event).is_err() {
            return;
        }
    }
}
