//! Which program wrote what.
//!
//! A step of the journal means what the core that made it does with it. So steps are replayed by the very same core only, told by a hash
//! over its sources; what another core left behind is read from snapshots, which are written field by field with their names.

use super::error::Fault;
use rusqlite::{Connection, OptionalExtension};

/// The program that runs, for people.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The core that it is built from.
pub(crate) const CORE: &str = env!("STIPEND_CORE");

/// The number under which this program writes.
pub(crate) fn register(conn: &Connection) -> Result<i64, Fault> {
    let find = "SELECT id FROM programs WHERE version = ?1 AND core = ?2";
    if let Some(id) = conn.query_row(find, (VERSION, CORE), |row| row.get(0)).optional()? {
        return Ok(id);
    }
    conn.execute("INSERT INTO programs (version, core) VALUES (?1, ?2)", (VERSION, CORE))?;
    Ok(conn.last_insert_rowid())
}

/// The version and the core of a program by its number.
pub(crate) fn named(conn: &Connection, id: i64) -> Result<(String, String), Fault> {
    let found = conn.query_row("SELECT version, core FROM programs WHERE id = ?1", [id], |row| Ok((row.get(0)?, row.get(1)?)));
    found.optional()?.ok_or_else(|| Fault::Damaged(format!("program {id}, which wrote a part of it, is not listed")))
}
