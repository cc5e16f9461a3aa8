//! The tables, how an older store gets them, and how connections are opened.

use super::error::Fault;
use rusqlite::{Connection, OpenFlags};
use std::path::Path;
use std::time::Duration;

/// Says that a database is a store of this program: "Stip".
const APPLICATION: i64 = 0x5374_6970;

/// What makes schema n + 1 of schema n. Those that were released are never changed.
const MIGRATIONS: &[&str] = &[include_str!("schema/1.sql"), include_str!("schema/2.sql")];

/// Brings a database to this program's schema, inside the caller's transaction.
pub(crate) fn migrate(conn: &Connection) -> Result<(), Fault> {
    if !is_empty(conn)? {
        known(conn)?;
    }
    conn.pragma_update(None, "application_id", APPLICATION)?;
    upgrade(conn, MIGRATIONS)
}

/// Whether it is a store of this program, or of an older one.
pub(crate) fn known(conn: &Connection) -> Result<(), Fault> {
    if is_empty(conn)? {
        return Err(Fault::Damaged("it is empty".into()));
    }
    let application: i64 = conn.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let (found, known) = (version(conn)?, MIGRATIONS.len() as i64);
    match application == APPLICATION {
        false => Err(Fault::Foreign("it is the database of another program".into())),
        true if found > known => Err(Fault::Newer { found, known }),
        true => Ok(()),
    }
}

/// Whether nothing was ever written to it, not even by another program.
pub(crate) fn is_empty(conn: &Connection) -> Result<bool, Fault> {
    Ok(conn.query_row("SELECT count(*) = 0 FROM sqlite_schema", [], |row| row.get(0))?)
}

fn version(conn: &Connection) -> Result<i64, Fault> {
    Ok(conn.pragma_query_value(None, "user_version", |row| row.get(0))?)
}

fn upgrade(conn: &Connection, migrations: &[&str]) -> Result<(), Fault> {
    let found = version(conn)?;
    for step in migrations.iter().skip(usize::try_from(found).map_err(|_| Fault::Damaged(format!("its schema is {found}")))?) {
        conn.execute_batch(step)?;
    }
    Ok(conn.pragma_update(None, "user_version", migrations.len() as i64)?)
}

/// A connection that writes. Each commit is on disk when it returns.
pub(crate) fn open_to_write(path: &Path) -> Result<Connection, Fault> {
    let conn = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    conn.busy_timeout(Duration::from_secs(30))?;
    conn.pragma_update(None, "synchronous", "FULL")?;
    conn.pragma_update(None, "temp_store", "MEMORY")?;
    conn.pragma_update(None, "cache_size", -65_536)?;
    conn.set_prepared_statement_cache_capacity(64);
    Ok(conn)
}

/// A connection that reads, and sees at each query what was committed before it.
pub(crate) fn open_to_read(path: &Path) -> Result<Connection, Fault> {
    let conn = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    conn.busy_timeout(Duration::from_secs(30))?;
    conn.pragma_update(None, "cache_size", -8192)?;
    conn.set_prepared_statement_cache_capacity(128);
    Ok(conn)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_schema_is_brought_up_step_by_step() {
        let steps = ["CREATE TABLE a (x)", "ALTER TABLE a ADD COLUMN y DEFAULT 7", "CREATE TABLE b AS SELECT x + y AS z FROM a"];
        let conn = Connection::open_in_memory().expect("memory");
        upgrade(&conn, &steps[..1]).expect("schema 1");
        conn.execute("INSERT INTO a VALUES (35)", []).expect("a row");
        upgrade(&conn, &steps).expect("schema 3");
        upgrade(&conn, &steps).expect("nothing to do");
        assert_eq!(conn.query_row("SELECT z FROM b", [], |row| row.get::<_, i64>(0)), Ok(42));
    }

    #[test]
    fn this_program_knows_its_own_schema() {
        let conn = Connection::open_in_memory().expect("memory");
        migrate(&conn).expect("a new store");
        migrate(&conn).expect("nothing to do");
        let known = MIGRATIONS.len() as i64;
        conn.pragma_update(None, "user_version", known + 1).expect("a newer one");
        assert!(matches!(migrate(&conn), Err(Fault::Newer { found, .. }) if found == known + 1));
        let other = Connection::open_in_memory().expect("memory");
        other.execute("CREATE TABLE notes (text)", []).expect("a table");
        assert!(matches!(migrate(&other), Err(Fault::Foreign(_))));
    }
}
