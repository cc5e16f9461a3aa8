//! What the driver does for a lease between its launch and its end: a supervisor, and what that can no longer do.

use super::lease::{Carrier, Lease};
use super::leases;
use super::process::{kill_all, marked, strays};
use super::status::now;
use super::worker::Worker;
use crate::driver::{End, Report};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Stdio;
use stipend_core::event::Exit;
use stipend_core::id::LeaseId;
use stipend_core::spec::Severity;

/// How often a supervisor may fail before it has begun.
const STARTS_MAX: u32 = 3;

impl Worker {
    /// Starts a supervisor. If there is one already, the lock makes this one end at once.
    pub(super) fn start(&mut self, lease: LeaseId) {
        let Some(known) = self.leases.get_mut(&lease) else { return };
        let (program, arguments) = self.settings.supervisor.split_first().expect("a supervisor is configured");
        known.started += 1;
        let log = fs::OpenOptions::new().create(true).append(true).open(known.folder.supervisor_log());
        let spawned = log.and_then(|log| {
            let mut command = std::process::Command::new(program);
            // As it is called, not as it is found.
            command.arg0("stipend");
            command.args(arguments).arg(&known.folder.0).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
            command.spawn()
        });
        match spawned {
            Ok(child) => known.child = Some(child),
            Err(error) => self.never_began(lease, &error),
        }
    }

    /// No supervisor will begin this lease.
    fn never_began(&mut self, lease: LeaseId, error: &io::Error) {
        let Some(known) = self.leases.get_mut(&lease) else { return };
        // Whoever has the lock is about to begin.
        let Ok(Some(_lock)) = known.folder.lock() else { return };
        if let Err(error) = known.write_end(Exit::Infrastructure, now()) {
            tracing::error!(%lease, %error, "cannot write the end of a lease that could not be started");
        }
        let Some(known) = self.leases.remove(&lease) else { return };
        self.cannot_start(&known, error);
        let _ = self.kept.take(&known);
    }

    /// Nothing of it was started, and the reason is not the workload.
    pub(super) fn cannot_start(&self, lease: &Lease, error: &io::Error) {
        tracing::error!(lease = %lease.id, %error, "cannot start a supervisor");
        for node in lease.places.iter().map(|place| &place.node) {
            let reason = format!("cannot start a workload: {error}");
            self.reports.report(Report::NodeFault { node: node.clone(), severity: Severity::Sick, reason });
        }
        let end = End { exit: Exit::Infrastructure, at: now(), code: None, signal: None };
        self.report_end(lease.id, Some(end));
    }

    pub(super) fn look(&mut self) {
        let all: Vec<LeaseId> = self.leases.keys().copied().collect();
        all.into_iter().for_each(|lease| self.look_at(lease));
    }

    /// Reads what is new of a lease, and does what its supervisor can no longer do.
    pub(super) fn look_at(&mut self, lease: LeaseId) {
        let Some(known) = self.leases.get_mut(&lease) else { return };
        if !known.folder.0.is_dir() {
            return self.without_folder(lease);
        }
        let carrier = match known.look(|report| self.reports.report(report)) {
            Ok(carrier) => carrier,
            Err(error) => return tracing::error!(%lease, %error, "cannot read what happened to a lease"),
        };
        match carrier {
            Carrier::Lives if known.end.is_some() => self.relaunch(lease),
            Carrier::Lives => {}
            // Of the daemon before, which did not come to it: it is launched or stopped when that is said again.
            Carrier::NotYet if known.is_untouched() => {}
            Carrier::NotYet if known.started < STARTS_MAX => self.start(lease),
            Carrier::NotYet => self.never_began(lease, &io::Error::other("its supervisor ends at once; see supervisor.log")),
            Carrier::Died => self.bury(lease),
        }
    }

    /// Somebody took the folder of a lease away: nothing can be known of it any more, so it ends, with all its processes.
    fn without_folder(&mut self, lease: LeaseId) {
        if self.kill_strays(Some(lease)) > 0 {
            return;
        }
        tracing::error!(%lease, "the folder of a lease is gone; what ran in it was killed");
        self.leases.remove(&lease);
        self.report_end(lease, Some(End { exit: Exit::Infrastructure, at: now(), code: None, signal: None }));
    }

    /// Kills what runs for leases that are not here, or for this one; how much was still there.
    pub(super) fn kill_strays(&self, but: Option<LeaseId>) -> usize {
        let known: BTreeSet<&Path> =
            self.leases.iter().filter(|(lease, _)| Some(**lease) != but).map(|(_, known)| known.folder.0.as_path()).collect();
        kill_all(|| strays(&leases(&self.settings.data), &known))
    }

    /// Ends what a supervisor left that died. The end is written when nothing is left.
    fn bury(&mut self, lease: LeaseId) {
        let Some(known) = self.leases.get_mut(&lease) else { return };
        // Whoever has the lock is alive, whatever it looked like.
        let Ok(Some(_lock)) = known.folder.lock() else { return };
        let at = if known.of_another_boot() {
            known.last_sign()
        } else {
            let left = || marked(&known.groups, "STIPEND_LEASE_DIR", &known.folder.0);
            if kill_all(left) > 0 {
                return;
            }
            now()
        };
        match known.write_end(Exit::Infrastructure, at) {
            Ok(()) => self.look_at(lease),
            Err(error) => tracing::error!(%lease, %error, "cannot write the end of a lease"),
        }
    }

    /// An older epoch's lease is over: now the right one may start.
    fn relaunch(&mut self, lease: LeaseId) {
        let Some(at) = self.waiting.iter().position(|launch| launch.lease == lease) else { return };
        let launch = self.waiting.swap_remove(at);
        self.forget_older(lease);
        self.launch(launch);
    }

    fn forget_older(&mut self, lease: LeaseId) {
        if let Some(known) = self.leases.remove(&lease)
            && let Err(error) = fs::remove_dir_all(&known.folder.0)
        {
            tracing::error!(%lease, %error, "cannot remove the folder of an older epoch's lease");
        }
    }
}
