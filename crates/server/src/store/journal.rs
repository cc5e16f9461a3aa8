//! The journal: the scheduler's steps, a row for each batch, until a snapshot holds what they did.

use super::error::Fault;
use super::program;
use super::{Batch, Step};
use rusqlite::Connection;
use stipend_core::Scheduler;
use stipend_core::quantity::Time;

/// Steps that came from one program, in their order.
struct Row {
    step: u64,
    steps: u64,
    program: i64,
    digest: Option<u64>,
    crc: u32,
    bytes: Vec<u8>,
}

/// Writes a batch's steps behind those that are there.
pub(crate) fn append(conn: &Connection, program: i64, last: u64, batch: &Batch) -> Result<u64, Fault> {
    let Some(at) = batch.steps.iter().map(Step::at).max() else { return Ok(last) };
    let bytes = postcard::to_stdvec(&batch.steps).map_err(|error| Fault::Damaged(format!("a step cannot be written: {error}")))?;
    let row = Row { step: last + 1, steps: batch.steps.len() as u64, program, digest: batch.digest, crc: 0, bytes };
    let mut insert =
        conn.prepare_cached("INSERT INTO journal (step, steps, at_ms, program, digest, crc, bytes) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")?;
    insert.execute((row.step, row.steps, at.0, row.program, row.digest.map(|digest| digest as i64), row.crc(), &row.bytes))?;
    Ok(last + row.steps)
}

impl Row {
    /// Over all that a replay rests on.
    fn crc(&self) -> u32 {
        let mut crc = crc32fast::Hasher::new();
        let numbers = [self.step, self.steps, self.program as u64, u64::from(self.digest.is_some()), self.digest.unwrap_or(0)];
        numbers.iter().for_each(|number| crc.update(&number.to_le_bytes()));
        crc.update(&self.bytes);
        crc.finalize()
    }

    fn wrong_checksum(&self) -> Fault {
        let to = self.step + self.steps.max(1) - 1;
        Fault::Damaged(format!("the checksum of steps {} to {to} in its journal is wrong", self.step))
    }

    fn decode(&self) -> Result<Vec<Step>, Fault> {
        let (from, to) = (self.step, self.step + self.steps.max(1) - 1);
        if self.crc() != self.crc {
            return Err(self.wrong_checksum());
        }
        let steps = postcard::from_bytes::<Vec<Step>>(&self.bytes)
            .map_err(|error| Fault::Damaged(format!("steps {from} to {to} in its journal cannot be read: {error}")))?;
        match steps.len() as u64 == self.steps {
            true => Ok(steps),
            false => Err(Fault::Damaged(format!("steps {from} to {to} in its journal are {}", steps.len()))),
        }
    }
}

/// Calls `each` with the rows after a step, in their order; they leave no gap.
fn rows_after(conn: &Connection, step: u64, mut each: impl FnMut(Row) -> Result<(), Fault>) -> Result<u64, Fault> {
    let mut select = conn.prepare("SELECT step, steps, program, digest, crc, bytes FROM journal WHERE step > ?1 ORDER BY step")?;
    let (mut rows, mut last) = (select.query([step])?, step);
    while let Some(row) = rows.next()? {
        let digest = row.get::<_, Option<i64>>(3)?.map(|digest| digest as u64);
        let row = Row { step: row.get(0)?, steps: row.get(1)?, program: row.get(2)?, digest, crc: row.get(4)?, bytes: row.get(5)? };
        if row.step != last + 1 {
            return Err(Fault::Damaged(format!("steps {} to {} are missing in its journal", last + 1, row.step - 1)));
        }
        last += row.steps;
        each(row)?;
    }
    Ok(last)
}

/// Replays all steps after `after`, which is where `scheduler` is. It refuses nothing and ends where the journal does, or says why not.
pub(crate) fn replay(conn: &Connection, mut scheduler: Option<Scheduler>, after: u64) -> Result<(Option<Scheduler>, u64), Fault> {
    let ours = |id: i64| program::named(conn, id).map(|(_, core)| core == program::CORE);
    let mut foreign = None;
    let mut log = Vec::new();
    let last = rows_after(conn, after, |row| {
        // Whose they are is said before they are looked into: a foreign step may not even be readable.
        if foreign.is_some() || !ours(row.program)? {
            foreign.get_or_insert(row.program);
            return Ok(());
        }
        for (step, number) in row.decode()?.iter().zip(row.step..) {
            let scheduler = scheduler.get_or_insert_with(|| Scheduler::new(step.at()));
            take(scheduler, step, &mut log).map_err(|what| Fault::Damaged(format!("step {number} of its journal {what}")))?;
        }
        match (row.digest, &scheduler) {
            (Some(digest), Some(scheduler)) if scheduler.digest() != digest => {
                let to = row.step + row.steps - 1;
                Err(Fault::Damaged(format!("after step {to} of its journal the scheduler is not what it was then: the digest differs")))
            }
            _ => Ok(()),
        }
    })?;
    match foreign {
        Some(id) => {
            let (version, core) = program::named(conn, id)?;
            Err(Fault::OtherCore { program: format!("stipend {version} (core {core})"), steps: last - after })
        }
        None => Ok((scheduler, last)),
    }
}

/// Whether all steps are as they were written.
pub(crate) fn check(conn: &Connection) -> Result<(), Fault> {
    let first: Option<u64> = conn.query_row("SELECT min(step) FROM journal", [], |row| row.get(0))?;
    rows_after(conn, first.unwrap_or(1) - 1, |row| match row.crc() == row.crc {
        true => Ok(()),
        false => Err(row.wrong_checksum()),
    })?;
    Ok(())
}

/// Takes one step again.
fn take(scheduler: &mut Scheduler, step: &Step, log: &mut Vec<stipend_core::entry::Entry>) -> Result<(), String> {
    log.clear();
    match step {
        Step::Event { at, event } => {
            scheduler.apply(*at, event, log).map_err(|rejection| format!("is refused, and was not before: {rejection:?}"))
        }
        Step::Plan { plan, .. } => {
            scheduler.commit(plan, log);
            Ok(())
        }
    }
}

/// When the last step was made, or the last snapshot.
pub(crate) fn last_written(conn: &Connection) -> Result<Option<Time>, Fault> {
    let newest = "SELECT max(at_ms) FROM (SELECT at_ms FROM journal UNION ALL SELECT at_ms FROM snapshots)";
    Ok(conn.query_row(newest, [], |row| row.get::<_, Option<i64>>(0))?.map(Time))
}
