//! Snapshots: the scheduler's whole state, so that a start need not replay all that ever was.
//!
//! They are MessagePack with the names of fields, compressed by Zstandard, whose checksum covers them. So a newer core can read what an
//! older one wrote: a new field needs a serde default, one that was renamed an alias. The last two are kept, with the steps after the
//! older one.

use super::error::Fault;
use super::program;
use rusqlite::{Connection, OptionalExtension, TransactionBehavior};
use std::io::{BufWriter, Write};
use stipend_core::Scheduler;
use stipend_core::quantity::Time;

/// Bytes of a part.
const PART: usize = 512 * 1024;

/// Rows of the journal that are deleted in one transaction.
const PRUNED_AT_ONCE: usize = 400;

/// A snapshot as it is written.
pub(crate) struct Packed {
    digest: u64,
    bytes: Vec<u8>,
}

/// Writes a scheduler's state down.
pub(crate) fn pack(scheduler: &Scheduler) -> Result<Packed, Fault> {
    let write = || -> Result<Vec<u8>, Box<dyn std::error::Error>> {
        let mut zstd = zstd::Encoder::new(Vec::new(), 1)?;
        zstd.include_checksum(true)?;
        let mut buffer = BufWriter::with_capacity(1 << 16, zstd);
        rmp_serde::encode::write_named(&mut buffer, scheduler)?;
        buffer.flush()?;
        Ok(buffer.into_inner().map_err(|error| error.into_error())?.finish()?)
    };
    let bytes = write().map_err(|error| Fault::Damaged(format!("a snapshot cannot be written: {error}")))?;
    Ok(Packed { digest: scheduler.digest(), bytes })
}

/// Stores a snapshot of the state after `step`, and lets go of what is no longer needed, inside the caller's transaction.
pub(crate) fn store(conn: &Connection, program: i64, step: u64, at: Time, packed: &Packed) -> Result<(), Fault> {
    remove(conn, step)?;
    packed.parts().try_for_each(|(part, bytes)| store_part(conn, step, part, bytes))?;
    complete(conn, program, step, at, packed)?;
    while prune_some(conn)? {}
    Ok(())
}

/// The same in many short transactions, between which others write. Only the last but those of pruning makes it count.
pub(crate) fn store_aside(conn: &mut Connection, program: i64, step: u64, at: Time, packed: &Packed) -> Result<(), Fault> {
    alone(conn, |conn| remove(conn, step))?;
    // What was not synced before is with the last part.
    conn.pragma_update(None, "synchronous", "NORMAL")?;
    for (part, bytes) in packed.parts() {
        alone(conn, |conn| store_part(conn, step, part, bytes))?;
    }
    conn.pragma_update(None, "synchronous", "FULL")?;
    alone(conn, |conn| complete(conn, program, step, at, packed))?;
    while alone(conn, prune_some)? {}
    Ok(())
}

fn alone<T>(conn: &mut Connection, work: impl FnOnce(&Connection) -> Result<T, Fault>) -> Result<T, Fault> {
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let done = work(&tx)?;
    tx.commit()?;
    Ok(done)
}

impl Packed {
    fn parts(&self) -> impl ExactSizeIterator<Item = (usize, &[u8])> {
        self.bytes.chunks(PART).enumerate()
    }
}

fn store_part(conn: &Connection, step: u64, part: usize, bytes: &[u8]) -> Result<(), Fault> {
    let mut insert = conn.prepare_cached("INSERT INTO snapshot_parts (step, part, bytes) VALUES (?1, ?2, ?3)")?;
    insert.execute((step, part, bytes))?;
    Ok(())
}

/// All parts are there.
fn complete(conn: &Connection, program: i64, step: u64, at: Time, packed: &Packed) -> Result<(), Fault> {
    let insert = "INSERT INTO snapshots (step, at_ms, program, digest, parts) VALUES (?1, ?2, ?3, ?4, ?5)";
    conn.execute(insert, (step, at.0, program, packed.digest as i64, packed.parts().len()))?;
    Ok(())
}

fn remove(conn: &Connection, step: u64) -> Result<(), Fault> {
    conn.execute("DELETE FROM snapshots WHERE step = ?1", [step])?;
    conn.execute("DELETE FROM snapshot_parts WHERE step = ?1", [step])?;
    Ok(())
}

/// All but the last two snapshots go, and the steps that the older of them holds; not all at once. Whether there may be more.
fn prune_some(conn: &Connection) -> Result<bool, Fault> {
    let second = "SELECT step FROM snapshots ORDER BY step DESC LIMIT 1 OFFSET 1";
    let Some(kept) = conn.query_row(second, [], |row| row.get::<_, u64>(0)).optional()? else { return Ok(false) };
    conn.execute("DELETE FROM snapshots WHERE step < ?1", [kept])?;
    let parts = "DELETE FROM snapshot_parts WHERE rowid IN (SELECT rowid FROM snapshot_parts WHERE step < ?1 LIMIT ?2)";
    let parts = conn.execute(parts, (kept, PRUNED_AT_ONCE / 100))?;
    let rows = "DELETE FROM journal WHERE step IN (SELECT step FROM journal WHERE step <= ?1 ORDER BY step LIMIT ?2)";
    let rows = conn.execute(rows, (kept, PRUNED_AT_ONCE))?;
    Ok(parts + rows > 0)
}

/// Where the newest readable snapshot stands, its scheduler, and what was wrong with newer ones.
pub(crate) struct Loaded {
    pub(crate) step: u64,
    pub(crate) scheduler: Option<Scheduler>,
    pub(crate) passed_over: Vec<String>,
}

/// Reads the newest snapshot that can be read; without any the journal must begin at its first step.
pub(crate) fn load(conn: &Connection) -> Result<Loaded, Fault> {
    let mut select = conn.prepare("SELECT step, program, digest, parts FROM snapshots ORDER BY step DESC")?;
    let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get::<_, i64>(2)? as u64, row.get(3)?)))?;
    let mut passed_over = Vec::new();
    for row in rows {
        let (step, program, digest, parts) = row?;
        match read(conn, step, program, digest, parts) {
            Ok(scheduler) => return Ok(Loaded { step, scheduler: Some(scheduler), passed_over }),
            Err(Fault::Damaged(what)) => passed_over.push(what),
            Err(fault) => return Err(fault),
        }
    }
    match passed_over.is_empty() {
        true => Ok(Loaded { step: 0, scheduler: None, passed_over }),
        false => Err(Fault::Damaged(passed_over.join("; "))),
    }
}

fn read(conn: &Connection, step: u64, program: i64, digest: u64, parts: u64) -> Result<Scheduler, Fault> {
    let damaged = |what: String| Fault::Damaged(format!("its snapshot at step {step} {what}"));
    let mut select = conn.prepare_cached("SELECT bytes FROM snapshot_parts WHERE step = ?1 ORDER BY part")?;
    let (mut rows, mut packed, mut found) = (select.query([step])?, Vec::new(), 0);
    while let Some(row) = rows.next()? {
        packed.extend_from_slice(row.get_ref(0)?.as_blob().map_err(|error| damaged(format!("has a bad part: {error}")))?);
        found += 1;
    }
    if found != parts {
        return Err(damaged(format!("has {found} of {parts} parts")));
    }
    let bytes = zstd::decode_all(packed.as_slice()).map_err(|error| damaged(format!("cannot be unpacked: {error}")))?;
    let (version, core) = program::named(conn, program)?;
    let scheduler = rmp_serde::from_slice::<Scheduler>(&bytes)
        .map_err(|error| damaged(format!("was written by stipend {version} (core {core}) and cannot be read: {error}")))?;
    // Another core may count other things into its digest.
    match core == program::CORE && scheduler.digest() != digest {
        true => Err(damaged("is not what was written: the digest differs".into())),
        false => Ok(scheduler),
    }
}
