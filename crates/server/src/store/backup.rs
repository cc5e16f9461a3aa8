//! Backups: one file each, made while the daemon works; and how one is put in place.

use super::error::{Fault, StoreError};
use super::folder::Folder;
use super::reader::{self, Reader};
use super::{journal, open, program, schema, snapshot};
use crate::wire::token::Token;
use crate::wire::workload::Workload;
use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};
use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

impl Reader {
    /// Copies the store as it is now into a new file, while others write. What is copied is read as a start would, so that a bad backup is
    /// found out now; its steps become a snapshot, so that newer programs can read it.
    ///
    /// # Errors
    /// The file exists, or cannot be written; the store is damaged. There is no file then.
    pub fn backup(&self, to: &Path) -> Result<(), StoreError> {
        let cannot = |source| StoreError::Folder { path: to.to_owned(), source };
        if to.exists() {
            return Err(cannot(io::ErrorKind::AlreadyExists.into()));
        }
        let part = beside(to, ".part");
        let _ = fs::remove_file(&part);
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&part).map_err(cannot)?;
        let made = self
            .copy(&part)
            .map_err(|fault| fault.of(&part))
            .and_then(|()| file.sync_all().and_then(|()| fs::rename(&part, to)).and_then(|()| sync_folder_of(to)).map_err(cannot));
        if made.is_err() {
            let _ = fs::remove_file(&part);
        }
        made
    }

    fn copy(&self, to: &Path) -> Result<(), Fault> {
        let mut copy = schema::open_to_write(to)?;
        {
            let backup = Backup::new(&self.conn, &mut copy)?;
            // All in one step: in between nobody's write makes it begin again.
            while backup.step(-1)? != StepResult::Done {
                thread::sleep(Duration::from_millis(20));
            }
        }
        copy.pragma_update(None, "journal_mode", "DELETE")?;
        let tx = copy.transaction()?;
        // A life that no folder knows: whoever opens it sees that it was restored.
        tx.execute("UPDATE store SET life = 0", [])?;
        match open::read(&tx) {
            Ok((restored, last_step, _)) => {
                if let (Some(scheduler), Some(at)) = (&restored.scheduler, restored.last_written) {
                    snapshot::store(&tx, program::register(&tx)?, last_step, at, &snapshot::pack(scheduler)?)?;
                }
            }
            // This program cannot replay them; the one that made them can.
            Err(Fault::OtherCore { .. }) => {}
            Err(fault) => return Err(fault),
        }
        Ok(tx.commit()?)
    }
}

/// A store that a backup took the place of.
#[derive(Debug)]
pub struct Replaced {
    /// It is kept under this name.
    pub kept: PathBuf,
    /// What it knew and the backup does not; `None` where it cannot be read.
    pub difference: Option<Difference>,
}

/// What happened between a backup and what it took the place of, and so did not happen any more.
#[derive(Debug, Default, PartialEq)]
pub struct Difference {
    /// They have ended, and have not in the backup: they run again.
    pub again: Vec<Workload>,
    /// The first and the last one that was submitted after the backup: nobody knows them any more.
    pub forgotten: Option<(u32, u32)>,
    /// They were taken back, and are not in the backup: they are valid again.
    pub valid_again: Vec<Token>,
}

/// Puts a backup in the place of a folder's store. What was there is kept beside it, if there was anything.
///
/// # Errors
/// A daemon has the folder, or the backup is damaged. Nothing was changed then.
pub fn restore(folder: &Path, backup: &Path) -> Result<Option<Replaced>, StoreError> {
    check(backup)?;
    let cannot = |source| StoreError::Folder { path: folder.to_owned(), source };
    let locked = Folder::lock(folder)?;
    let database = locked.database();
    let next = beside(&database, ".next");
    let put = || -> io::Result<Option<PathBuf>> {
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&next)?;
        io::copy(&mut File::open(backup)?, &mut file)?;
        file.sync_all()?;
        let kept = set_aside(&database)?;
        fs::rename(&next, &database)?;
        Folder::sync(folder)?;
        Ok(kept)
    };
    let kept = put().map_err(cannot)?;
    Ok(kept.map(|kept| Replaced { difference: difference(&kept, &database).ok(), kept }))
}

/// What the newer of two stores knows and the older does not.
fn difference(newer: &Path, older: &Path) -> Result<Difference, Fault> {
    let (newer, older) = (schema::open_to_read(newer)?, schema::open_to_read(older)?);
    let mut of = Difference::default();
    for was in reader::live(&older)? {
        of.again.extend(reader::view(&newer, i64::from(was.id))?.filter(|is| is.state.is_over()));
    }
    let last = |conn: &Connection| conn.query_row("SELECT max(id) FROM workloads", [], |row| row.get::<_, Option<u32>>(0));
    let first = last(&older)?.map_or(0, |last| last + 1);
    of.forgotten = last(&newer)?.filter(|last| *last >= first).map(|last| (first, last));
    let in_force: BTreeSet<u64> = reader::tokens_in_force(&newer)?.iter().map(|(token, _)| token.id).collect();
    let known: BTreeSet<u64> = reader::texts::<Token>(&newer, "SELECT json FROM tokens", "a token")?.iter().map(|token| token.id).collect();
    let valid = reader::tokens_in_force(&older)?.into_iter().map(|(token, _)| token);
    of.valid_again = valid.filter(|token| known.contains(&token.id) && !in_force.contains(&token.id)).collect();
    Ok(of)
}

/// Renames a database with its log. Its log first: without it, it is older, with another's it would be no database.
fn set_aside(database: &Path) -> io::Result<Option<PathBuf>> {
    let name = |number: u32| beside(database, &format!(".replaced-{number}"));
    let free = (1..).map(name).find(|name| !name.exists() && !beside(name, "-wal").exists()).expect("numbers do not end");
    for (suffix, is_kept) in [("-wal", true), ("-shm", false), ("", true)] {
        let file = beside(database, suffix);
        match is_kept {
            true if file.exists() => fs::rename(&file, beside(&free, suffix))?,
            false if file.exists() => fs::remove_file(&file)?,
            _ => {}
        }
    }
    Ok(free.exists().then_some(free))
}

/// Reads all of a store: its pages, its newest snapshot, and the checksums of its steps. Works on a backup, and beside a daemon.
///
/// # Errors
/// What is wrong with it.
pub fn check(file: &Path) -> Result<(), StoreError> {
    let read = || -> Result<(), Fault> {
        let conn = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
        conn.busy_timeout(Duration::from_secs(30))?;
        schema::known(&conn)?;
        let mut select = conn.prepare("PRAGMA integrity_check(5)")?;
        let found = select.query_map([], |row| row.get::<_, String>(0))?.collect::<Result<Vec<_>, _>>()?;
        if found != ["ok"] {
            return Err(Fault::Damaged(found.join("; ")));
        }
        let snapshot = snapshot::load(&conn)?;
        match snapshot.passed_over.is_empty() {
            true => journal::check(&conn),
            false => Err(Fault::Damaged(snapshot.passed_over.join("; "))),
        }
    };
    match fs::metadata(file) {
        Ok(_) => read().map_err(|fault| fault.of(file)),
        Err(source) => Err(StoreError::Folder { path: file.to_owned(), source }),
    }
}

fn sync_folder_of(file: &Path) -> io::Result<()> {
    match file.parent() {
        Some(parent) if parent != Path::new("") => Folder::sync(parent),
        _ => Folder::sync(Path::new(".")),
    }
}

/// A file beside another, with more at the end of its name.
fn beside(file: &Path, more: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(more);
    name.into()
}
