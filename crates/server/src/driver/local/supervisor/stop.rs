//! Stopping: checkpoint command, stop signal, and at the deadline the end of every process.

use super::super::folder::{Stop, write_moment};
use super::super::process::{self, kill_all};
use super::super::status::{What, now};
use super::member::{Phase, Which};
use super::{Supervisor, member, reaper};
use nix::sys::signal::Signal;
use std::time::{Duration, Instant};
use stipend_core::quantity::Time;

/// What the rest of a gang has when one member failed.
const GANG_GRACE: Duration = Duration::from_secs(10);

/// The end of a grace belongs to the stop signal, even if the checkpoint command takes longer: so much, at most a quarter of the grace.
const SIGNAL_RESERVE: Duration = Duration::from_secs(10);

/// How far a stop has come.
pub(super) struct Stopping {
    deadline: Instant,
    /// When the stop signal is sent, even if a checkpoint command still runs.
    signal_at: Instant,
    signalled: bool,
    /// The checkpoint commands that run: member and process.
    checkpoints: Vec<(usize, i32)>,
    /// All of them went well so far.
    banked: bool,
}

impl Stopping {
    /// How long nothing is to be done.
    pub(super) fn patience(&self) -> Duration {
        let next = if self.signalled { self.deadline } else { self.signal_at };
        next.saturating_duration_since(Instant::now())
    }
}

impl Supervisor {
    /// Stops it with this grace from now; if it is being stopped already, the earlier deadline holds.
    pub(super) fn stop(&mut self, order: Stop) {
        let grace = Duration::from_millis(u64::try_from(order.grace).unwrap_or(0));
        let checkpoint = self.all_ran && !grace.is_zero() && !self.order.program.checkpoint_command.is_empty();
        self.begin_stop(grace, checkpoint);
    }

    /// One member failed: the others go, too.
    pub(super) fn stop_gang(&mut self) {
        self.begin_stop(GANG_GRACE, false);
    }

    fn begin_stop(&mut self, grace: Duration, checkpoint: bool) {
        let begin = Instant::now();
        let deadline = begin + grace;
        if let Some(stopping) = &mut self.stopping {
            // An order that is given again is not a new one, and a later deadline is none.
            if deadline >= stopping.deadline {
                return;
            }
            stopping.deadline = deadline;
            stopping.signal_at = stopping.signal_at.min(deadline);
        } else {
            let reserve = SIGNAL_RESERVE.min(grace / 4);
            let signal_at = if checkpoint { deadline - reserve } else { begin };
            self.stopping = Some(Stopping { deadline, signal_at, signalled: false, checkpoints: Vec::new(), banked: true });
        }
        let ends = Time(now().0 + i64::try_from(grace.as_millis()).unwrap_or(i64::MAX / 2));
        if let Err(error) = write_moment(&self.folder.deadline(), Some(ends)) {
            eprintln!("cannot write the deadline: {error}");
        }
        self.note(What::Stopping { deadline: ends.0 });
        if checkpoint && self.stopping.as_ref().is_some_and(|stopping| stopping.checkpoints.is_empty()) {
            self.start_checkpoints();
        }
        self.press();
    }

    fn start_checkpoints(&mut self) {
        for rank in 0..self.members.len() {
            if self.members[rank].phase != Phase::Running {
                continue;
            }
            let started = self.spawn(rank, Which::Checkpoint);
            let stopping = self.stopping.as_mut().expect("it is being stopped");
            match started {
                Ok(pid) => {
                    stopping.checkpoints.push((rank, pid));
                    let member = self.members[rank].rank;
                    self.note(What::Group { member, pid, start: process::start_of(pid) });
                }
                Err(error) => {
                    stopping.banked = false;
                    self.members[rank].say(&member::why_not(&self.order.program, Which::Checkpoint, &error));
                }
            }
        }
    }

    /// Whether the process was a checkpoint command. When the last one went well the workload has banked.
    pub(super) fn checkpoint_over(&mut self, pid: i32, well: bool) -> bool {
        let Some(stopping) = &mut self.stopping else { return false };
        let Some(at) = stopping.checkpoints.iter().position(|&(_, checkpoint)| checkpoint == pid) else { return false };
        let (rank, _) = stopping.checkpoints.swap_remove(at);
        stopping.banked &= well;
        let banked = stopping.banked && stopping.checkpoints.is_empty();
        if !well {
            self.members[rank].say("the checkpoint command failed");
        } else if banked {
            self.note(What::Checkpoint);
        }
        true
    }

    /// Does what is due: the stop signal, the end of every process.
    pub(super) fn press(&mut self) {
        let members_over = self.members.iter().all(|member| member.is_over());
        let Some(stopping) = &mut self.stopping else {
            // The workload is over when its commands are; what they left behind is not part of it.
            if members_over {
                self.kill_rest();
            }
            return;
        };
        let now = Instant::now();
        if !stopping.signalled && (stopping.checkpoints.is_empty() || now >= stopping.signal_at) {
            stopping.signalled = true;
            self.signal(Signal::SIGTERM);
        } else if now >= stopping.deadline || (members_over && stopping.signalled && !self.groups_live()) {
            self.kill_rest();
        }
    }

    /// Sends the signal to the members' process groups.
    fn signal(&self, signal: Signal) {
        let (held, gone): (Vec<i32>, Vec<i32>) = self.groups().partition(|&group| self.is_unreaped(group));
        held.into_iter().for_each(|group| process::signal_group(group, signal));
        if !gone.is_empty() {
            let ours = process::descendants(std::process::id().cast_signed());
            ours.iter().filter(|process| gone.contains(&process.group)).for_each(|process| process::signal(process.pid, signal));
        }
    }

    fn groups(&self) -> impl Iterator<Item = i32> {
        self.members.iter().flat_map(|member| member.groups.iter().copied())
    }

    /// The first process of the group is still our child, so the group's number is nobody else's.
    fn is_unreaped(&self, group: i32) -> bool {
        let checkpoints = self.stopping.iter().flat_map(|stopping| &stopping.checkpoints);
        self.members.iter().any(|member| member.main == Some(group)) || checkpoints.into_iter().any(|&(_, pid)| pid == group)
    }

    /// Whether any process of the groups that got the signal is left.
    fn groups_live(&self) -> bool {
        let groups: Vec<i32> = self.groups().collect();
        process::descendants(std::process::id().cast_signed()).iter().any(|process| groups.contains(&process.group))
    }

    /// Kills everything that is left, whatever it did to get away.
    fn kill_rest(&mut self) {
        if reaper::none_left() {
            return;
        }
        let me = std::process::id().cast_signed();
        kill_all(|| process::descendants(me));
    }
}
