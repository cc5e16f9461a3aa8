//! A batch as rows, all but its steps.

use super::error::Fault;
use super::{Batch, Charge, Kind, Line, Made, WorkloadRow};
use crate::wire::workload::State;
use rusqlite::Connection;
use serde::Serialize;
use std::collections::HashMap;

/// What lists are filtered by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Label {
    Budget = 0,
    Pool = 1,
    User = 2,
}

/// The numbers of labels that were met, so that they are looked up once.
pub(crate) type Labels = HashMap<(Label, String), i64>;

const HOUR_MS: i64 = 3_600_000;

/// Writes a batch.
pub(crate) fn write(conn: &Connection, labels: &mut Labels, batch: &Batch) -> Result<(), Fault> {
    for line in &batch.lines {
        write_line(conn, line)?;
    }
    for (from, to) in &batch.moved {
        move_budget(conn, labels, from, to)?;
    }
    for row in &batch.workloads {
        write_workload(conn, labels, row)?;
    }
    for charge in &batch.charges {
        write_charge(conn, charge)?;
    }
    write_rest(conn, batch)
}

fn json(value: &impl Serialize) -> Result<String, Fault> {
    serde_json::to_string(value).map_err(|error| Fault::Damaged(format!("a value cannot be written: {error}")))
}

fn write_line(conn: &Connection, line: &Line) -> Result<(), Fault> {
    let mut insert = conn.prepare_cached("INSERT INTO lines (seq, t_ms, event, workload, json) VALUES (?1, ?2, ?3, ?4, ?5)")?;
    insert.execute((line.seq, line.t_ms, &line.event, line.workload, &line.json))?;
    Ok(())
}

fn write_workload(conn: &Connection, labels: &mut Labels, row: &WorkloadRow) -> Result<(), Fault> {
    let view = &row.view;
    let (state, text) = (view.state.number(), json(view)?);
    let user = label(conn, labels, Label::User, &view.user)?;
    let budget = label(conn, labels, Label::Budget, &view.budget)?;
    let pool = label(conn, labels, Label::Pool, &view.pool)?;
    // Most changes leave what is indexed as it is, and then the indexes need not be touched.
    let mut same =
        conn.prepare_cached("UPDATE workloads SET view = ?2 WHERE id = ?1 AND state = ?3 AND user = ?4 AND budget = ?5 AND pool = ?6")?;
    if row.submission.is_some() || same.execute((view.id, &text, state, user, budget, pool))? == 0 {
        let mut insert = conn.prepare_cached(
            "INSERT INTO workloads (id, state, user, budget, pool, view) VALUES (?1, ?3, ?4, ?5, ?6, ?2)
            ON CONFLICT (id) DO UPDATE SET state = ?3, user = ?4, budget = ?5, pool = ?6, view = ?2",
        )?;
        insert.execute((view.id, &text, state, user, budget, pool))?;
    }
    if let Some(submission) = &row.submission {
        let mut insert = conn.prepare_cached("INSERT OR REPLACE INTO submissions (id, json) VALUES (?1, ?2)")?;
        insert.execute((view.id, json(submission)?))?;
    }
    Ok(())
}

/// The number of a label, which is made where there is none.
fn label(conn: &Connection, labels: &mut Labels, kind: Label, name: &str) -> Result<i64, Fault> {
    let key = (kind, name.to_owned());
    if let Some(id) = labels.get(&key) {
        return Ok(*id);
    }
    conn.execute("INSERT OR IGNORE INTO labels (kind, name) VALUES (?1, ?2)", (kind as i64, name))?;
    let id = conn.query_row("SELECT id FROM labels WHERE kind = ?1 AND name = ?2", (kind as i64, name), |row| row.get(0))?;
    labels.insert(key, id);
    Ok(id)
}

/// A budget has another path, and so have its descendants: what ran in them is found there from now on.
fn move_budget(conn: &Connection, labels: &mut Labels, from: &str, to: &str) -> Result<(), Fault> {
    labels.clear();
    let find = "SELECT id, name FROM labels WHERE kind = ?1 AND (name = ?2 OR substr(name, 1, length(?2) + 1) = ?2 || '/')";
    let mut select = conn.prepare_cached(find)?;
    let moved = select.query_map((Label::Budget as i64, from), |row| Ok((row.get(0)?, row.get(1)?)))?;
    let moved = moved.collect::<Result<Vec<(i64, String)>, _>>()?;
    for (id, name) in moved {
        let path = format!("{to}{}", &name[from.len()..]);
        let there = "SELECT id FROM labels WHERE kind = ?1 AND name = ?2";
        let there =
            rusqlite::OptionalExtension::optional(conn.query_row(there, (Label::Budget as i64, &path), |row| row.get::<_, i64>(0)))?;
        match there {
            // A closed budget may have had this path once.
            Some(other) => {
                conn.execute("UPDATE workloads SET budget = ?1 WHERE budget = ?2", (other, id))?;
                conn.execute("DELETE FROM labels WHERE id = ?1", [id])?
            }
            None => conn.execute("UPDATE labels SET name = ?1 WHERE id = ?2", (&path, id))?,
        };
    }
    Ok(())
}

/// GPU time goes to the hours in which it was used, to the millisecond: the parts sum to the whole.
fn write_charge(conn: &Connection, charge: &Charge) -> Result<(), Fault> {
    let mut add = conn.prepare_cached(
        "INSERT INTO charges (hour, budget, pool, user, run, gpu_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
        ON CONFLICT (hour, budget, pool, user, run) DO UPDATE SET gpu_ms = gpu_ms + excluded.gpu_ms",
    )?;
    for (hour, gpu_ms) in by_hour(charge) {
        add.execute((hour, charge.budget, charge.pool, charge.user, charge.run, gpu_ms))?;
    }
    Ok(())
}

/// A charge by the hours that it covers.
fn by_hour(charge: &Charge) -> Vec<(i64, i64)> {
    let (from, to) = (charge.from_ms, charge.to_ms);
    let first = from.div_euclid(HOUR_MS);
    if to <= from {
        return vec![(first, charge.gpu_ms)];
    }
    let until = |at: i64| (i128::from(charge.gpu_ms) * i128::from(at - from) / i128::from(to - from)) as i64;
    let last = (to - 1).div_euclid(HOUR_MS);
    (first..=last).map(|hour| (hour, until(to.min((hour + 1) * HOUR_MS)) - until(from.max(hour * HOUR_MS)))).collect()
}

fn write_rest(conn: &Connection, batch: &Batch) -> Result<(), Fault> {
    for (kind, number, name) in &batch.names {
        conn.execute("INSERT OR REPLACE INTO names (kind, number, name) VALUES (?1, ?2, ?3)", (kind.number(), number, name))?;
    }
    for changeset in &batch.changesets {
        let pending = changeset.version.is_none() && !changeset.withdrawn;
        let replace = "INSERT OR REPLACE INTO changesets (id, pending, json) VALUES (?1, ?2, ?3)";
        conn.execute(replace, (changeset.id, pending, json(changeset)?))?;
    }
    for (budget, people) in &batch.people {
        conn.execute("INSERT OR REPLACE INTO people (budget, json) VALUES (?1, ?2)", (budget, json(people)?))?;
    }
    for (token, hash) in &batch.tokens {
        let replace = "INSERT OR REPLACE INTO tokens (id, hash, revoked, json) VALUES (?1, ?2, ?3, ?4)";
        conn.execute(replace, (token.id, hash, token.revoked_ms.is_some(), json(token)?))?;
    }
    for (user, key, Made { first, last, body }) in &batch.keys {
        let mut replace = conn.prepare_cached("INSERT OR REPLACE INTO keys (user, key, first, last, body) VALUES (?1, ?2, ?3, ?4, ?5)")?;
        replace.execute((user, key, first, last, body))?;
    }
    for (key, value) in &batch.values {
        let mut replace = conn.prepare_cached("INSERT OR REPLACE INTO service (key, value) VALUES (?1, ?2)")?;
        replace.execute((key, value))?;
    }
    Ok(())
}

impl State {
    /// In the order of a life: from 5 on it has ended.
    pub(crate) fn number(self) -> i64 {
        State::ALL.iter().position(|state| *state == self).expect("all are listed") as i64
    }

    pub(crate) const ALL: [State; 9] = [
        State::Held,
        State::Waiting,
        State::Starting,
        State::Running,
        State::Stopping,
        State::Completed,
        State::Failed,
        State::Cancelled,
        State::TimedOut,
    ];

    /// Those that have not ended.
    pub(crate) const LIVE: &[State] = State::ALL.split_at(5).0;
}

impl Kind {
    const ALL: [Kind; 5] = [Kind::Pool, Kind::Node, Kind::User, Kind::Block, Kind::Feature];

    pub(crate) fn number(self) -> i64 {
        Kind::ALL.iter().position(|kind| *kind == self).expect("all are listed") as i64
    }

    pub(crate) fn numbered(number: i64) -> Option<Kind> {
        Kind::ALL.get(usize::try_from(number).ok()?).copied()
    }
}
