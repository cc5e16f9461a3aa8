//! Old history goes: workloads that have ended, and lines of the event log. What the scheduler needs stands in its own state, and usage in sums.

use super::error::StoreError;
use super::writer::Store;
use crate::wire::workload::State;
use rusqlite::{Connection, Result};

/// At most so many rows are looked at and go at once: nobody waits long for that.
const ROWS_MAX: i64 = 2_000;

impl Store {
    /// Takes away some of what ended, or was said, before this time; whether there may be more. What has not ended keeps all of its lines, and
    /// the log its last one: lines are numbered on from it. Keys of requests go with the workloads that they made.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn prune(&mut self, before_ms: i64) -> std::result::Result<bool, StoreError> {
        let mut more = false;
        self.write(|conn, _| {
            more = prune_workloads(conn, before_ms)? | prune_lines(conn, before_ms)?;
            Ok(())
        })?;
        Ok(more)
    }
}

fn prune_workloads(conn: &Connection, before_ms: i64) -> Result<bool> {
    let mut old = Vec::new();
    for state in State::LIVE.len()..State::ALL.len() {
        // Numbers are given in the order of submission: what ended long ago has the lowest.
        let query = "SELECT id FROM (SELECT id, view FROM workloads WHERE state = ?1 ORDER BY id LIMIT ?2) WHERE view ->> 'ended_ms' < ?3";
        let mut select = conn.prepare_cached(query)?;
        let ids = select.query_map((state as i64, ROWS_MAX, before_ms), |row| row.get::<_, i64>(0))?;
        old.extend(ids.collect::<Result<Vec<_>>>()?);
    }
    for id in &old {
        conn.prepare_cached("DELETE FROM workloads WHERE id = ?1")?.execute([id])?;
        conn.prepare_cached("DELETE FROM submissions WHERE id = ?1")?.execute([id])?;
        conn.prepare_cached("DELETE FROM lines WHERE workload = ?1 AND seq < (SELECT max(seq) FROM lines)")?.execute([id])?;
    }
    let first = conn.query_row("SELECT min(id) FROM workloads", [], |row| row.get::<_, Option<i64>>(0))?;
    if let Some(first) = first.filter(|_| !old.is_empty()) {
        conn.execute("DELETE FROM keys WHERE last < ?1", [first])?;
    }
    Ok(old.len() as i64 >= ROWS_MAX)
}

/// Lines that are about no workload. The others go with theirs.
fn prune_lines(conn: &Connection, before_ms: i64) -> Result<bool> {
    let old = "DELETE FROM lines WHERE seq IN (SELECT seq FROM lines WHERE t_ms < ?1 AND workload IS NULL \
               AND seq < (SELECT max(seq) FROM lines) ORDER BY t_ms LIMIT ?2)";
    Ok(conn.prepare_cached(old)?.execute((before_ms, ROWS_MAX))? as i64 == ROWS_MAX)
}
