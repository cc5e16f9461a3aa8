//! The event log.

use super::super::Line;
use super::super::error::Fault;
use super::Reader;
use crate::wire::error::Problem;
use rusqlite::{OptionalExtension, Row};

/// Which lines of the event log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineFilter {
    /// From this number on.
    pub from_seq: u64,
    /// Only those about this workload.
    pub workload: Option<u32>,
    /// Only from this time on.
    pub from_ms: Option<i64>,
    /// Only before this time.
    pub to_ms: Option<i64>,
}

impl Reader {
    /// The first lines that the filter lets through, at most so many, in their order. To go on, ask from the last one's number plus one.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn lines(&self, filter: &LineFilter, limit: u32) -> Result<Vec<Line>, Problem> {
        self.told(self.find_lines(filter, limit))
    }

    /// The number of the last line; 0 in an empty log.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn last_line(&self) -> Result<u64, Problem> {
        let last = || -> Result<_, Fault> {
            let mut select = self.conn.prepare_cached("SELECT max(seq) FROM lines")?;
            Ok(select.query_row([], |row| row.get::<_, Option<u64>>(0))?.unwrap_or(0))
        };
        self.told(last())
    }

    fn find_lines(&self, filter: &LineFilter, limit: u32) -> Result<Vec<Line>, Fault> {
        // Time never goes back in the log, so a time is a place in it.
        let from = filter.from_ms.map(|at| self.first_at(at)).transpose()?.unwrap_or(0);
        let from = from.max(i64::try_from(filter.from_seq).unwrap_or(i64::MAX));
        let to = filter.to_ms.map(|at| self.first_at(at)).transpose()?.unwrap_or(i64::MAX);
        let mut select = self.conn.prepare_cached(match filter.workload {
            Some(_) => {
                "SELECT seq, t_ms, event, workload, json FROM lines WHERE workload = ?4 AND seq >= ?1 AND seq < ?2 ORDER BY seq LIMIT ?3"
            }
            None => "SELECT seq, t_ms, event, workload, json FROM lines WHERE seq >= ?1 AND seq < ?2 AND ?4 IS NULL ORDER BY seq LIMIT ?3",
        })?;
        let rows = select.query_map((from, to, limit, filter.workload), line)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// The number of the first line at a time or later.
    fn first_at(&self, at_ms: i64) -> Result<i64, Fault> {
        let mut select = self.conn.prepare_cached("SELECT seq FROM lines WHERE t_ms >= ?1 ORDER BY t_ms, seq LIMIT 1")?;
        Ok(select.query_row([at_ms], |row| row.get(0)).optional()?.unwrap_or(i64::MAX))
    }
}

fn line(row: &Row<'_>) -> rusqlite::Result<Line> {
    Ok(Line { seq: row.get(0)?, t_ms: row.get(1)?, event: row.get(2)?, workload: row.get(3)?, json: row.get(4)? })
}
