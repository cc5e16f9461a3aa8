//! The open store: one connection that writes, one transaction a batch.

use super::error::{Fault, StoreError};
use super::folder::Folder;
use super::{Batch, journal, rows, schema, snapshot};
use rusqlite::{Connection, TransactionBehavior};
use std::thread::{self, JoinHandle};
use stipend_core::Scheduler;
use stipend_core::quantity::Time;

/// The open store, with the one connection that writes.
#[derive(Debug)]
pub struct Store {
    pub(super) folder: Folder,
    pub(super) conn: Connection,
    pub(super) written: Written,
    pub(super) failed: bool,
    /// The thread that writes a snapshot.
    pub(super) aside: Option<JoinHandle<Result<(), StoreError>>>,
}

/// What the writer knows of what it wrote.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) program: i64,
    pub(super) last_step: u64,
    pub(super) since_snapshot: u64,
    pub(super) since_digest: u64,
    pub(super) labels: rows::Labels,
}

/// After so many steps it is time for a snapshot.
const SNAPSHOT_STEPS: u64 = 20_000;

/// And after so many for a digest: it costs as much as the state is large.
const DIGEST_STEPS: u64 = 4_000;

impl Store {
    /// Writes a batch, whole or not at all. When this returns, it is on disk.
    ///
    /// # Errors
    /// It cannot be written. Whether it is on disk is then not known before the store is opened again, so no more is taken until then.
    pub fn commit(&mut self, batch: &Batch) -> Result<(), StoreError> {
        self.write(|conn, written| {
            let last = journal::append(conn, written.program, written.last_step, batch)?;
            rows::write(conn, &mut written.labels, batch)?;
            written.since_snapshot += last - written.last_step;
            written.since_digest = if batch.digest.is_some() { 0 } else { written.since_digest + last - written.last_step };
            written.last_step = last;
            Ok(())
        })
    }

    /// Whether so much was written since the last snapshot that it is time for one.
    pub fn wants_snapshot(&self) -> bool {
        self.written.since_snapshot >= SNAPSHOT_STEPS
    }

    /// Whether so much was written since the last digest that a batch should bring one.
    pub fn wants_digest(&self) -> bool {
        self.written.since_digest >= DIGEST_STEPS
    }

    /// Writes the scheduler's state after all steps that were committed, so that a later start need not replay them. A clean stop ends with
    /// one: a newer program can read it.
    ///
    /// # Errors
    /// As for [`Store::commit`].
    pub fn snapshot(&mut self, at: Time, scheduler: &Scheduler) -> Result<(), StoreError> {
        self.wait_for_snapshot()?;
        self.write(|conn, written| {
            snapshot::store(conn, written.program, written.last_step, at, &snapshot::pack(scheduler)?)?;
            written.since_snapshot = 0;
            Ok(())
        })
    }

    /// The same on a thread of its own, while others go on. Not where nothing is new, or one is being written already.
    ///
    /// # Errors
    /// The one before could not be written.
    pub fn snapshot_aside(&mut self, at: Time, scheduler: &Scheduler) -> Result<(), StoreError> {
        if self.written.since_snapshot == 0 || self.aside.as_ref().is_some_and(|thread| !thread.is_finished()) {
            return Ok(());
        }
        self.wait_for_snapshot()?;
        self.written.since_snapshot = 0;
        let (path, scheduler) = (self.folder.database(), scheduler.clone());
        let (program, step) = (self.written.program, self.written.last_step);
        self.aside = Some(thread::spawn(move || {
            let write = || {
                let packed = snapshot::pack(&scheduler)?;
                let mut conn = schema::open_to_write(&path)?;
                // The other writer sees to it.
                conn.pragma_update(None, "wal_autocheckpoint", 0)?;
                snapshot::store_aside(&mut conn, program, step, at, &packed)
            };
            write().map_err(|fault: Fault| fault.of(&path))
        }));
        Ok(())
    }

    /// Until no snapshot is being written.
    ///
    /// # Errors
    /// It could not be written.
    pub fn wait_for_snapshot(&mut self) -> Result<(), StoreError> {
        match self.aside.take().map(JoinHandle::join) {
            Some(Ok(written)) => written,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => Ok(()),
        }
    }

    /// One transaction; after one that failed there is no other.
    pub(super) fn write(&mut self, work: impl FnOnce(&Connection, &mut Written) -> Result<(), Fault>) -> Result<(), StoreError> {
        let path = self.folder.database();
        if self.failed {
            return Err(StoreError::Stopped { path });
        }
        let done = self.conn.transaction_with_behavior(TransactionBehavior::Immediate).map_err(Fault::from).and_then(|tx| {
            work(&tx, &mut self.written)?;
            Ok(tx.commit()?)
        });
        self.failed = done.is_err();
        done.map_err(|fault| fault.of(&path))
    }
}

impl Batch {
    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
            && self.lines.is_empty()
            && self.workloads.is_empty()
            && self.names.is_empty()
            && self.changesets.is_empty()
            && self.people.is_empty()
            && self.tokens.is_empty()
            && self.keys.is_empty()
            && self.charges.is_empty()
            && self.values.is_empty()
    }
}

impl Drop for Store {
    /// The folder stays locked until nobody writes.
    fn drop(&mut self) {
        if let Some(thread) = self.aside.take() {
            let _ = thread.join();
        }
    }
}
