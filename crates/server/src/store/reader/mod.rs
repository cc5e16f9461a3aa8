//! Reading what is on disk, from any thread: never waits for the writer, and never makes it wait.

mod log;
mod usage;
mod workloads;

pub use log::LineFilter;
pub use usage::{Usage, UserUsage};
pub(crate) use workloads::{live, view};

use super::error::{Fault, StoreError};
use super::folder::Folder;
use super::{Made, TokenOwner, schema};
use crate::wire::budget::Changeset;
use crate::wire::error::{Code, Problem};
use crate::wire::page::{Cursor, Page};
use crate::wire::token::Token;
use rusqlite::{Connection, OptionalExtension, Params};
use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};

/// The most items of a page.
const LIMIT_MAX: u32 = 1000;

/// A connection that reads. Each call sees all that was committed before it.
#[derive(Debug)]
pub struct Reader {
    pub(super) conn: Connection,
    path: PathBuf,
}

impl Reader {
    /// Reads the store in a data folder, whether or not a daemon has it open.
    ///
    /// # Errors
    /// There is none, or it cannot be read.
    pub fn open(folder: &Path) -> Result<Reader, StoreError> {
        Reader::open_file(&Folder::database_in(folder))
    }

    pub(crate) fn open_file(path: &Path) -> Result<Reader, StoreError> {
        let conn = schema::open_to_read(path).map_err(|fault| fault.of(path))?;
        Ok(Reader { conn, path: path.to_owned() })
    }

    /// Changesets, the newest first.
    ///
    /// # Errors
    /// A bad cursor, or the store cannot be read.
    pub fn changesets(&self, cursor: &Cursor) -> Result<Page<Changeset>, Problem> {
        let (below, limit) = (below(cursor.cursor.as_deref())?, limit(cursor.limit)?);
        let query = "SELECT json FROM changesets WHERE id < ?1 ORDER BY id DESC LIMIT ?2";
        let items = self.told(texts_with::<Changeset>(&self.conn, query, (below, limit), "changeset"))?;
        let next = items.last().filter(|_| items.len() == limit as usize).map(|last| last.id.to_string());
        Ok(Page { items, next })
    }

    /// A changeset by its number.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn changeset(&self, id: u64) -> Result<Option<Changeset>, Problem> {
        let Ok(id) = i64::try_from(id) else { return Ok(None) };
        self.told(texts_with(&self.conn, "SELECT json FROM changesets WHERE id = ?1", [id], "changeset")).map(|mut found| found.pop())
    }

    /// All tokens that ever were, by number.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn tokens(&self) -> Result<Vec<Token>, Problem> {
        self.told(texts(&self.conn, "SELECT json FROM tokens ORDER BY id", "token"))
    }

    /// What the token with this SHA-256 may do; `None` where there is none, or it was taken back.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn token_owner(&self, hash: &[u8; 32]) -> Result<Option<TokenOwner>, Problem> {
        let query = "SELECT json FROM tokens WHERE hash = ?1 AND NOT revoked";
        let found = self.told(texts_with::<Token>(&self.conn, query, [hash], "token"))?;
        Ok(found.into_iter().next().map(|token| TokenOwner { id: token.id, user: token.user, role: token.role }))
    }

    /// What a user made with an idempotency key.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn key(&self, user: &str, key: &str) -> Result<Option<Made>, Problem> {
        let find = || -> Result<_, Fault> {
            let mut select = self.conn.prepare_cached("SELECT first, last, body FROM keys WHERE user = ?1 AND key = ?2")?;
            Ok(select.query_row([user, key], |row| Ok(Made { first: row.get(0)?, last: row.get(1)?, body: row.get(2)? })).optional()?)
        };
        self.told(find())
    }

    /// A fault in words for whoever asked.
    fn told<T>(&self, result: Result<T, Fault>) -> Result<T, Problem> {
        result.map_err(|fault| {
            let error = fault.of(&self.path);
            let source = std::error::Error::source(&error).map(|source| format!(": {source}")).unwrap_or_default();
            let problem = Problem::new(Code::Unavailable, format!("{error}{source}"));
            Problem { hint: error.hint(), ..problem }
        })
    }
}

/// Where a list that goes down goes on.
fn below(cursor: Option<&str>) -> Result<i64, Problem> {
    let Some(cursor) = cursor else { return Ok(i64::MAX) };
    cursor.parse::<u32>().map(i64::from).map_err(|_| {
        let message = format!("cursor = \"{cursor}\": expected the `next` of the page before");
        Problem::new(Code::Invalid, message)
    })
}

/// How many items are wanted.
fn limit(limit: Option<u32>) -> Result<u32, Problem> {
    match limit {
        None => Ok(100),
        Some(limit @ 1..=LIMIT_MAX) => Ok(limit),
        Some(limit) => Err(Problem::new(Code::Invalid, format!("limit = {limit}: expected 1 to {LIMIT_MAX}"))),
    }
}

/// Values that are kept as JSON.
pub(crate) fn texts<T: DeserializeOwned>(conn: &Connection, query: &str, what: &str) -> Result<Vec<T>, Fault> {
    texts_with(conn, query, [], what)
}

fn texts_with<T: DeserializeOwned>(conn: &Connection, query: &str, params: impl Params, what: &str) -> Result<Vec<T>, Fault> {
    let mut select = conn.prepare_cached(query)?;
    let (mut rows, mut found) = (select.query(params)?, Vec::new());
    while let Some(row) = rows.next()? {
        found.push(parse(row.get_ref(0)?, || what.to_owned())?);
    }
    Ok(found)
}

/// Values that are kept as JSON by a number.
pub(crate) fn keyed<T: DeserializeOwned>(conn: &Connection, query: &str, what: &str) -> Result<Vec<(u32, T)>, Fault> {
    let mut select = conn.prepare(query)?;
    let (mut rows, mut found) = (select.query([])?, Vec::new());
    while let Some(row) = rows.next()? {
        let key = row.get(0)?;
        found.push((key, parse(row.get_ref(1)?, || format!("{what} {key}"))?));
    }
    Ok(found)
}

/// The tokens that were not taken back.
pub(crate) fn tokens_in_force(conn: &Connection) -> Result<Vec<(Token, [u8; 32])>, Fault> {
    let mut select = conn.prepare("SELECT json, hash FROM tokens WHERE NOT revoked ORDER BY id")?;
    let (mut rows, mut found) = (select.query([])?, Vec::new());
    while let Some(row) = rows.next()? {
        found.push((parse(row.get_ref(0)?, || "a token".into())?, row.get(1)?));
    }
    Ok(found)
}

fn parse<T: DeserializeOwned>(value: rusqlite::types::ValueRef<'_>, what: impl Fn() -> String) -> Result<T, Fault> {
    let damaged = |error: String| Fault::Damaged(format!("{} cannot be read: {error}", what()));
    let text = value.as_bytes().map_err(|error| damaged(error.to_string()))?;
    serde_json::from_slice(text).map_err(|error| damaged(error.to_string()))
}
