//! Lists of workloads.

use super::super::WorkloadRow;
use super::super::error::Fault;
use super::super::rows::Label;
use super::{Reader, below, limit, parse, texts_with};
use crate::wire::error::{Code, Problem};
use crate::wire::page::Page;
use crate::wire::workload::{Filter, State, Workload};
use rusqlite::{CachedStatement, Connection, OptionalExtension, Rows};
use std::collections::BTreeSet;

/// Index entries that are looked at for one page. A filter that lets little through gives short pages, never slow ones.
const LOOKED_AT_MAX: usize = 50_000;

/// Leaves whose own lists are merged; of more leaves than that all work is looked through.
const LEAVES_MERGED_MAX: usize = 16;

impl Reader {
    /// Workloads, the newest first. A page may hold fewer than asked for, or none, and still have a `next`.
    ///
    /// # Errors
    /// The filter has a bad value, or the store cannot be read.
    pub fn workloads(&self, filter: &Filter) -> Result<Page<Workload>, Problem> {
        let (states, below, limit) = (states(filter)?, below(filter.cursor.as_deref())?, limit(filter.limit)?);
        self.told(self.find_workloads(filter, &states, below, limit as usize))
    }

    /// A workload with its submission.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn workload(&self, id: u32) -> Result<Option<WorkloadRow>, Problem> {
        let find = || {
            let Some(view) = view(&self.conn, i64::from(id))? else { return Ok(None) };
            let submission = texts_with(&self.conn, "SELECT json FROM submissions WHERE id = ?1", [id], "a submission")?.pop();
            Ok(Some(WorkloadRow { view, submission }))
        };
        self.told(find())
    }

    fn find_workloads(&self, filter: &Filter, states: &[State], below: i64, limit: usize) -> Result<Page<Workload>, Fault> {
        let nothing = Page { items: Vec::new(), next: None };
        let number = |kind, name: &Option<String>| name.as_ref().map(|name| self.label(kind, name)).transpose();
        let (user, pool) = (number(Label::User, &filter.user)?, number(Label::Pool, &filter.pool)?);
        let budgets = filter.budget.as_ref().map(|path| self.budgets(path)).transpose()?;
        // Nothing ever ran for a name that has no number.
        if user == Some(None) || pool == Some(None) || budgets.as_ref().is_some_and(BTreeSet::is_empty) {
            return Ok(nothing);
        }
        let (user, pool) = (user.flatten(), pool.flatten());
        let keys = keys(user, budgets.as_ref(), states);
        let mut statements = keys.iter().map(|key| self.conn.prepare_cached(key.query())).collect::<Result<Vec<_>, _>>()?;
        let mut lists =
            statements.iter_mut().zip(&keys).map(|(statement, key)| List::new(statement, key, below)).collect::<Result<Vec<_>, _>>()?;
        let passes = |entry: &Entry| {
            pool.is_none_or(|pool| pool == entry.pool) && budgets.as_ref().is_none_or(|budgets| budgets.contains(&entry.budget))
        };
        let (mut items, mut looked_at, mut last) = (Vec::new(), 0, None);
        // One more is looked for, to know whether there is a next page.
        while let Some(list) = lists.iter_mut().filter(|list| list.head.is_some()).max_by_key(|list| list.head.as_ref().map(|head| head.id))
        {
            let next = || last.map(|id: i64| id.to_string());
            let head = list.head.take().expect("it was just seen");
            let passes = passes(&head);
            if looked_at == LOOKED_AT_MAX || (passes && items.len() == limit) {
                return Ok(Page { items, next: next() });
            }
            looked_at += 1;
            last = Some(head.id);
            if passes {
                items.extend(view(&self.conn, head.id)?);
            }
            list.advance()?;
        }
        Ok(Page { items, next: None })
    }

    fn label(&self, kind: Label, name: &str) -> Result<Option<i64>, Fault> {
        let mut select = self.conn.prepare_cached("SELECT id FROM labels WHERE kind = ?1 AND name = ?2")?;
        Ok(select.query_row((kind as i64, name), |row| row.get(0)).optional()?)
    }

    /// A budget and its descendants, those that ever had work.
    fn budgets(&self, path: &str) -> Result<BTreeSet<i64>, Fault> {
        // '0' follows '/', so this is all that begins with the path and a slash.
        let query = "SELECT id FROM labels WHERE kind = ?1 AND (name = ?2 OR (name > ?2 || '/' AND name < ?2 || '0'))";
        let mut select = self.conn.prepare_cached(query)?;
        let found = select.query_map((Label::Budget as i64, path), |row| row.get(0))?;
        Ok(found.collect::<Result<_, _>>()?)
    }
}

/// The states that a filter lets through.
fn states(filter: &Filter) -> Result<Vec<State>, Problem> {
    let Some(text) = &filter.state else {
        return Ok(if filter.all { &State::ALL[..] } else { State::LIVE }.to_vec());
    };
    let name = |state: &State| serde_json::to_value(state).ok().and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default();
    let known: Vec<(String, State)> = State::ALL.iter().map(|state| (name(state), *state)).collect();
    let read = |part: &str| {
        known.iter().find(|(name, _)| name == part.trim()).map(|(_, state)| *state).ok_or_else(|| {
            let names: Vec<&str> = known.iter().map(|(name, _)| name.as_str()).collect();
            Problem::new(Code::Invalid, format!("state = \"{}\": expected some of {}, with commas between", part.trim(), names.join(", ")))
        })
    };
    let mut states = text.split(',').map(read).collect::<Result<Vec<State>, Problem>>()?;
    states.sort();
    states.dedup();
    Ok(states)
}

/// Which entries of which index.
#[derive(Clone, Copy)]
enum Key {
    State { state: i64 },
    User { user: i64, state: i64 },
    Budget { budget: i64, state: i64 },
}

/// The lists that together hold all that is wanted, and as little else as can be.
fn keys(user: Option<i64>, budgets: Option<&BTreeSet<i64>>, states: &[State]) -> Vec<Key> {
    let states = states.iter().map(|state| state.number());
    match (user, budgets) {
        (Some(user), _) => states.map(|state| Key::User { user, state }).collect(),
        (None, Some(budgets)) if budgets.len() <= LEAVES_MERGED_MAX => {
            states.flat_map(|state| budgets.iter().map(move |budget| Key::Budget { budget: *budget, state })).collect()
        }
        (None, _) => states.map(|state| Key::State { state }).collect(),
    }
}

impl Key {
    fn query(&self) -> &'static str {
        match self {
            Key::State { .. } => "SELECT id, budget, pool FROM workloads WHERE state = ?1 AND id < ?3 AND ?2 = 0 ORDER BY id DESC",
            Key::User { .. } => "SELECT id, budget, pool FROM workloads WHERE user = ?2 AND state = ?1 AND id < ?3 ORDER BY id DESC",
            Key::Budget { .. } => "SELECT id, budget, pool FROM workloads WHERE budget = ?2 AND state = ?1 AND id < ?3 ORDER BY id DESC",
        }
    }

    fn params(&self) -> (i64, i64) {
        match *self {
            Key::State { state } => (state, 0),
            Key::User { user, state } => (state, user),
            Key::Budget { budget, state } => (state, budget),
        }
    }
}

struct Entry {
    id: i64,
    budget: i64,
    pool: i64,
}

/// One index's entries, the newest first, read as far as they are wanted.
struct List<'a> {
    rows: Rows<'a>,
    head: Option<Entry>,
}

impl<'a> List<'a> {
    fn new(statement: &'a mut CachedStatement<'_>, key: &Key, below: i64) -> Result<List<'a>, Fault> {
        let (state, of) = key.params();
        let mut list = List { rows: statement.query((state, of, below))?, head: None };
        list.advance()?;
        Ok(list)
    }

    fn advance(&mut self) -> Result<(), Fault> {
        self.head = match self.rows.next()? {
            Some(row) => Some(Entry { id: row.get(0)?, budget: row.get(1)?, pool: row.get(2)? }),
            None => None,
        };
        Ok(())
    }
}

/// A workload as lists show it.
pub(crate) fn view(conn: &Connection, id: i64) -> Result<Option<Workload>, Fault> {
    let query = "SELECT view, name FROM workloads JOIN labels ON labels.id = budget WHERE workloads.id = ?1";
    let mut select = conn.prepare_cached(query)?;
    let mut rows = select.query([id])?;
    rows.next()?.map(read).transpose()
}

/// All that have not ended, by number.
pub(crate) fn live(conn: &Connection) -> Result<Vec<Workload>, Fault> {
    let ended = State::LIVE.len() as i64;
    let query = "SELECT view, name FROM workloads JOIN labels ON labels.id = budget WHERE state < ?1";
    let mut select = conn.prepare(query)?;
    let (mut rows, mut found) = (select.query([ended])?, Vec::new());
    while let Some(row) = rows.next()? {
        found.push(read(row)?);
    }
    found.sort_by_key(|workload| workload.id);
    Ok(found)
}

/// The budget may have another path by now than when the row was written.
fn read(row: &rusqlite::Row<'_>) -> Result<Workload, Fault> {
    let view: Workload = parse(row.get_ref(0)?, || "a workload".into())?;
    Ok(Workload { budget: row.get(1)?, ..view })
}
