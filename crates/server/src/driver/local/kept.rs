//! Output of attempts that are over, with a bound: the oldest go first. Their status is kept with it, so that none of them runs again.

use super::folder::{Folder, name};
use super::lease::Lease;
use std::collections::VecDeque;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use stipend_core::id::LeaseId;

/// What is kept.
pub(super) struct Kept {
    folder: PathBuf,
    bytes_max: u64,
    count_max: usize,
    /// Oldest first, with its bytes.
    all: VecDeque<(PathBuf, u64)>,
    bytes: u64,
    is_loaded: bool,
}

/// Where.
pub(super) fn folder(data: &Path) -> PathBuf {
    data.join("logs")
}

impl Kept {
    /// With these bounds. What was kept before counts once it is [`Kept::load`]ed.
    pub(super) fn new(data: &Path, bytes_max: u64, count_max: usize) -> Kept {
        Kept { folder: folder(data), bytes_max, count_max, all: VecDeque::new(), bytes: 0, is_loaded: false }
    }

    /// Finds what was kept before, once: it takes a moment, so nothing else waits for it at the start.
    pub(super) fn load(&mut self) -> io::Result<()> {
        if self.is_loaded {
            return Ok(());
        }
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            found.push((entry.metadata()?.modified()?, entry.path()));
        }
        found.sort();
        (self.all, self.bytes, self.is_loaded) = (VecDeque::new(), 0, true);
        found.into_iter().for_each(|(_, path)| self.count(path));
        self.prune();
        Ok(())
    }

    /// Moves the output of a lease that is over here, and removes the rest of its folder.
    pub(super) fn take(&mut self, lease: &Lease) -> io::Result<()> {
        let (from, to) = (&lease.folder.0, self.folder.join(name(lease.id)));
        fs::create_dir_all(&to)?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            let file = entry.file_name();
            let text = file.to_string_lossy();
            if text.starts_with("member-") {
                fs::rename(entry.path(), to.join(&file))?;
            }
        }
        // Read in case of doubt whether it ran: so they come last, in this order.
        for file in ["launch.json", "status"] {
            fs::rename(from.join(file), to.join(file))
                .or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })?;
        }
        fs::remove_dir_all(from)?;
        self.count(to);
        self.prune();
        Ok(())
    }

    /// The attempt, if it is kept.
    pub(super) fn find(&self, lease: LeaseId) -> Option<Lease> {
        let folder = Folder(self.folder.join(name(lease)));
        let order = folder.order().ok()?;
        let mut found = Lease::new(lease, folder, order.epoch, Vec::new());
        found.read(|_| {}).ok()?;
        found.end.is_some().then_some(found)
    }

    /// Removes what is kept of the lease.
    pub(super) fn remove(&mut self, lease: LeaseId) {
        let path = self.folder.join(name(lease));
        if let Some(at) = self.all.iter().position(|(kept, _)| *kept == path) {
            self.let_go(at);
        }
    }

    fn count(&mut self, path: PathBuf) {
        let files = fs::read_dir(&path).into_iter().flatten().flatten();
        let bytes = files.filter_map(|file| file.metadata().ok()).map(|file| file.len()).sum();
        self.bytes += bytes;
        self.all.push_back((path, bytes));
    }

    fn prune(&mut self) {
        while !self.all.is_empty() && (self.bytes > self.bytes_max || self.all.len() > self.count_max) {
            self.let_go(0);
        }
    }

    fn let_go(&mut self, at: usize) {
        if let Some((path, bytes)) = self.all.remove(at) {
            self.bytes -= bytes;
            // What cannot be removed is found again at the next start.
            let _ = fs::remove_dir_all(path);
        }
    }
}
