//! Opening a store: it is locked, looked over, read, and only then changed.

use super::error::{Fault, StoreError};
use super::folder::Folder;
use super::reader::{self, Reader};
use super::rows::Labels;
use super::writer::{Store, Written};
use super::{Kind, Restored, journal, program, schema, snapshot};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, OptionalExtension, TransactionBehavior};
use std::fs::{self, OpenOptions};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// What is empty is taken for new only where the folder knows of no store: else somebody would get a daemon that has forgotten everything.
const EMPTIED: &str = "it is empty, and was not when it was last open";

impl Store {
    /// Opens the store in a data folder, or makes a new one. While it is open nobody else can open it.
    ///
    /// # Errors
    /// The folder cannot be used or is another daemon's, or what is in it cannot be trusted. It is then as it was before.
    pub fn open(folder: &Path) -> Result<(Store, Restored), StoreError> {
        let folder = Folder::lock(folder)?;
        let path = folder.database();
        prepare_file(&folder, &path)?;
        set_strange_wal_aside(&folder, &path)?;
        let mut conn = schema::open_to_write(&path).map_err(|fault| fault.of(&path))?;
        // Nothing of what a killed daemon left is touched before all of it was read.
        let keep = |conn: &Connection, on| conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, on).map(|_| ());
        keep(&conn, true).map_err(|error| Fault::from(error).of(&path))?;
        let opened = read_and_begin(&mut conn, &folder).map_err(|fault| fault.of(&path))?;
        let finish = || {
            conn.pragma_update(None, "journal_mode", "WAL")?;
            conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
            keep(&conn, false)
        };
        finish().map_err(|error| Fault::from(error).of(&path))?;
        folder.write_lives(&[opened.life])?;
        let store = Store { folder, conn, written: opened.written, failed: false, aside: None };
        Ok((store, opened.restored))
    }

    /// A connection that reads, for another thread.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn reader(&self) -> Result<Reader, StoreError> {
        Reader::open_file(&self.folder.database())
    }
}

/// A new file is its owner's only: environments are in it. An old one must begin as SQLite's do.
fn prepare_file(folder: &Folder, path: &Path) -> Result<(), StoreError> {
    let cannot = |source| StoreError::Folder { path: path.to_owned(), source };
    if !path.exists() && !folder.lives().is_empty() {
        return Err(StoreError::Damaged { path: path.to_owned(), what: "it is missing, and was there when it was last open".into() });
    }
    let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path).map_err(cannot)?;
    let mut head = [0; 16];
    let length = file.metadata().map_err(cannot)?.len();
    let damaged = |what: &str| Err(StoreError::Damaged { path: path.to_owned(), what: what.into() });
    match file.read_exact(&mut head) {
        Err(_) if length == 0 && folder.lives().is_empty() => Ok(()),
        Err(_) if length == 0 => damaged(EMPTIED),
        Err(_) => damaged(&format!("it has {length} bytes")),
        Ok(()) if &head != b"SQLite format 3\0" => damaged("it is no SQLite database"),
        Ok(()) => Ok(()),
    }
}

/// Beside a backup that was put in place by hand the write-ahead log of the file before it may lie, which SQLite would play into the backup.
/// A store's own log never brings another life than one that the folder knows.
fn set_strange_wal_aside(folder: &Folder, path: &Path) -> Result<(), StoreError> {
    let wal = path.with_extension("db-wal");
    let lives = folder.lives();
    if lives.is_empty() || !fs::metadata(&wal).is_ok_and(|wal| wal.len() > 0) {
        return Ok(());
    }
    // As an immutable file it is read without its log. In a store's first moment all of it is in the log.
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let text = path.to_string_lossy().replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    let life = Connection::open_with_flags(format!("file:{text}?immutable=1"), flags)
        .and_then(|conn| conn.query_row("SELECT life FROM store", [], |row| row.get::<_, i64>(0)));
    match life {
        Ok(life) if !lives.contains(&life) => {
            let cannot = |source| StoreError::Folder { path: wal.clone(), source };
            fs::rename(&wal, path.with_extension("db-wal.stranger")).map_err(cannot)?;
            let _ = fs::remove_file(path.with_extension("db-shm"));
            Ok(())
        }
        _ => Ok(()),
    }
}

struct Opened {
    restored: Restored,
    life: i64,
    written: Written,
}

/// Reads everything and begins a new life, in one transaction: either all of it is right, or nothing was done.
fn read_and_begin(conn: &mut Connection, folder: &Folder) -> Result<Opened, Fault> {
    if schema::is_empty(conn)? {
        if !folder.lives().is_empty() {
            return Err(Fault::Damaged(EMPTIED.into()));
        }
        conn.pragma_update(None, "journal_mode", "WAL")?;
    }
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    schema::migrate(&tx)?;
    let before = tx.query_row("SELECT life, epoch FROM store", [], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    let (mut restored, last_step, since_snapshot) = read(&tx)?;
    let lives = folder.lives();
    // Another life than the folder's last one: the file is new, or was put in place of another.
    let epoch: u64 = match before {
        Some((life, epoch)) if lives.contains(&life) => epoch,
        Some((_, epoch)) => {
            restored.warnings.push(
                "this store is a backup that was put in place: work that ended after it was made runs again, tokens that were taken back \
                 since are valid again; look at `stipend queue` and `stipend token list`"
                    .into(),
            );
            epoch + 1
        }
        None => 1,
    };
    let life = random()?;
    if before.is_some() {
        // A crash before the commit leaves the old life, one after it the new life; of a restored file the old one stays unknown.
        let known = before.map(|(life, _)| life).filter(|life| lives.contains(life));
        folder.write_lives(&known.into_iter().chain([life]).collect::<Vec<_>>()).map_err(Fault::Told)?;
    }
    tx.execute("INSERT OR REPLACE INTO store (id, life, epoch) VALUES (1, ?1, ?2)", (life, epoch as i64))?;
    let program = program::register(&tx)?;
    tx.commit()?;
    let written = Written { program, last_step, since_snapshot, since_digest: 0, labels: Labels::new() };
    Ok(Opened { restored: Restored { epoch, ..restored }, life, written })
}

/// A number that no other life has, as far as chance goes.
fn random() -> Result<i64, Fault> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|error| Fault::Damaged(format!("the system has no random numbers: {error}")))?;
    // Not negative, for the text of the file; 0 is a backup's.
    Ok((i64::from_le_bytes(bytes) & i64::MAX).max(1))
}

/// All that a start needs, with the number of the last step, and how many there are since the snapshot.
pub(crate) fn read(conn: &Connection) -> Result<(Restored, u64, u64), Fault> {
    let snapshot = snapshot::load(conn)?;
    let (scheduler, last_step) = journal::replay(conn, snapshot.scheduler, snapshot.step)?;
    let since_snapshot = last_step - snapshot.step;
    let restored = Restored {
        scheduler,
        epoch: 0,
        last_line: conn.query_row("SELECT max(seq) FROM lines", [], |row| row.get::<_, Option<u64>>(0))?.unwrap_or(0),
        last_written: journal::last_written(conn)?,
        names: names(conn)?,
        live: reader::live(conn)?,
        last_changeset: conn.query_row("SELECT max(id) FROM changesets", [], |row| row.get::<_, Option<u64>>(0))?.unwrap_or(0),
        pending: reader::texts(conn, "SELECT json FROM changesets WHERE pending ORDER BY id", "changeset")?,
        people: reader::keyed(conn, "SELECT budget, json FROM people ORDER BY budget", "the people of budget")?,
        tokens: reader::tokens_in_force(conn)?,
        values: pairs(conn)?,
        warnings: snapshot.passed_over,
    };
    Ok((restored, last_step, since_snapshot))
}

fn names(conn: &Connection) -> Result<Vec<(Kind, u32, String)>, Fault> {
    let mut select = conn.prepare("SELECT kind, number, name FROM names ORDER BY kind, number")?;
    let (mut rows, mut names) = (select.query([])?, Vec::new());
    while let Some(row) = rows.next()? {
        let kind: i64 = row.get(0)?;
        let kind = Kind::numbered(kind).ok_or_else(|| Fault::Damaged(format!("there is a name of unknown kind {kind}")))?;
        names.push((kind, row.get(1)?, row.get(2)?));
    }
    Ok(names)
}

fn pairs(conn: &Connection) -> Result<Vec<(String, String)>, Fault> {
    let mut select = conn.prepare("SELECT key, value FROM service ORDER BY key")?;
    let pairs = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(pairs.collect::<Result<_, _>>()?)
}
