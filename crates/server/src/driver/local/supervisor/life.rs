//! The life of the members: started, restored, run, over.

use super::super::process;
use super::super::status::What;
use super::Supervisor;
use super::member::{Member, Phase, Which, why_not};
use nix::sys::wait::WaitStatus;

impl Supervisor {
    /// Starts what is to run; what cannot be started ends the lease.
    pub(super) fn start(&mut self) {
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
        match self.spawn(rank, which) {
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
                self.members[rank].say(&why_not(&self.order.program, which, &error));
                self.member_over(rank, Some((None, None)));
                false
            }
        }
    }

    /// Starts a command of a member, within its limits.
    pub(super) fn spawn(&mut self, rank: usize, which: Which) -> std::io::Result<i32> {
        let member = &mut self.members[rank];
        let mut start = || member.spawn(&self.order, &self.folder, which);
        self.reaper.spawning(|| match &self.groups {
            Some(groups) => groups.within(rank, start),
            None => start(),
        })
    }

    /// A process is gone; if it was a member's, the next comes, or the member is over.
    pub(super) fn reaped(&mut self, status: WaitStatus) {
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
}
