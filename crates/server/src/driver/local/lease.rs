//! What the daemon knows of a lease that it carries: its folder, read as far as it goes.

use super::folder::{Folder, Place};
use super::process;
use super::status::{self, What, now};
use crate::driver::{End, ObservedLease, Report};
use std::io;
use std::process::Child;
use stipend_core::event::Exit;
use stipend_core::id::LeaseId;
use stipend_core::quantity::Time;

/// A lease with a folder.
pub(super) struct Lease {
    pub id: LeaseId,
    pub folder: Folder,
    pub epoch: u64,
    /// Where its members are.
    pub places: Vec<Place>,
    /// A GPU of it broke: if it fails, that is why.
    pub is_broken: bool,
    /// Read up to here.
    offset: u64,
    /// The supervisor, where this daemon started it.
    pub child: Option<Child>,
    /// How often a supervisor was started here.
    pub started: u32,
    /// The supervisor that began: boot, process and its start.
    begun: Option<(String, i32, u64)>,
    /// First processes of the groups.
    pub groups: Vec<(i32, u64)>,
    running_since: Option<Time>,
    is_stopping: bool,
    checkpoint: Option<Time>,
    input: Option<Time>,
    pub end: Option<End>,
}

/// Who carries it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Carrier {
    /// A supervisor lives, or has said how it ended.
    Lives,
    /// No supervisor has begun, and none that was started here is about to.
    NotYet,
    /// The supervisor began and died.
    Died,
}

impl Lease {
    pub(super) fn new(id: LeaseId, folder: Folder, epoch: u64, places: Vec<Place>) -> Lease {
        Lease {
            id,
            folder,
            epoch,
            places,
            is_broken: false,
            offset: 0,
            child: None,
            started: 0,
            begun: None,
            groups: Vec::new(),
            running_since: None,
            is_stopping: false,
            checkpoint: None,
            input: None,
            end: None,
        }
    }

    /// Reads what is new; `report` is told of it.
    pub(super) fn read(&mut self, mut report: impl FnMut(Report)) -> io::Result<()> {
        let lease = self.id;
        for line in status::read(&self.folder.status(), &mut self.offset)? {
            let at = Time(line.at);
            match line.what {
                What::Begin { boot, pid, start, .. } => self.begun = Some((boot, pid, start)),
                What::Group { pid, start, .. } => self.groups.push((pid, start)),
                What::MemberRunning { node, .. } => report(Report::MemberRunning { lease, node, at }),
                What::Running => {
                    self.running_since = Some(at);
                    report(Report::Running { lease, at });
                }
                What::Checkpoint => {
                    self.checkpoint = Some(at);
                    report(Report::Checkpointed { lease, at });
                }
                What::Input => {
                    self.input = Some(at);
                    report(Report::Input { lease, at });
                }
                What::Stopping { .. } => self.is_stopping = true,
                What::Done => {}
                What::Ended { exit, code, signal } => {
                    let exit = if self.is_broken && exit == Exit::Failed { Exit::Infrastructure } else { exit };
                    let end = End { exit, at, code, signal };
                    // Of two ends the first one holds; there is one unless the disk was full.
                    if self.end.is_none() {
                        self.end = Some(end);
                        report(Report::Ended { lease, end });
                    }
                }
            }
        }
        Ok(())
    }

    /// Reads what is new, and says who carries it.
    pub(super) fn look(&mut self, report: impl FnMut(Report)) -> io::Result<Carrier> {
        // First who lives, then the status: a supervisor that ends meanwhile has written the end before.
        let child_lives = self.child.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None)));
        if !child_lives {
            self.child = None;
        }
        let began_before = self.supervisor_lives();
        self.read(report)?;
        Ok(match () {
            () if self.end.is_some() || child_lives || began_before || self.supervisor_lives() => Carrier::Lives,
            () if self.begun.is_none() => Carrier::NotYet,
            () => Carrier::Died,
        })
    }

    /// Nothing but its folder was made, and not by this daemon.
    pub(super) fn is_untouched(&self) -> bool {
        self.begun.is_none() && self.end.is_none() && self.started == 0
    }

    /// Its GPUs on this machine.
    pub(super) fn gpus(&self) -> impl Iterator<Item = u32> {
        self.places.iter().filter(|place| !place.is_virtual).flat_map(|place| place.gpus.iter().copied())
    }

    fn supervisor_lives(&self) -> bool {
        self.begun.as_ref().is_some_and(|(boot, pid, start)| process::alive(*pid, *start) && boot == process::boot())
    }

    /// It ran before the machine was started again: nothing of it can be left.
    pub(super) fn of_another_boot(&self) -> bool {
        self.begun.as_ref().is_some_and(|(boot, ..)| boot != process::boot())
    }

    /// Writes the end in place of a supervisor that cannot. The caller has the lock.
    pub(super) fn write_end(&mut self, exit: Exit, at: Time) -> io::Result<()> {
        let mut status = self.folder.status_writer()?;
        status.write(at, What::Ended { exit, code: None, signal: None })?;
        status.sync()
    }

    /// The last sign of life in the folder, at most now.
    pub(super) fn last_sign(&self) -> Time {
        let entries = std::fs::read_dir(&self.folder.0).into_iter().flatten().flatten();
        let changed = entries.filter_map(|entry| entry.metadata().ok()?.modified().ok());
        let millis = changed.filter_map(|at| i64::try_from(at.duration_since(std::time::UNIX_EPOCH).ok()?.as_millis()).ok());
        let sign = millis.max().map_or_else(now, |at| Time(at.min(now().0)));
        // Times of files are some milliseconds coarse, and may lie before what was written into them.
        [self.running_since, self.checkpoint, self.input].into_iter().flatten().fold(sign, Time::max)
    }

    pub(super) fn observed(&self) -> ObservedLease {
        ObservedLease {
            lease: self.id,
            epoch: self.epoch,
            running_since: self.running_since,
            is_stopping: self.is_stopping || self.folder.stop().is_some(),
            checkpoint: self.checkpoint,
            input: self.input,
            end: self.end,
        }
    }
}
