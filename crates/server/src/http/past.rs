//! What is read from the store: by connections of its own, on threads that may wait, a few at a time.

use super::refusal::Reply;
use crate::store::Line;
use crate::wire::budget::Changeset;
use crate::wire::error::{Code, Problem};
use crate::wire::page::Page;
use crate::wire::workload::{Filter, Submission, Workload};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Semaphore;

/// So many connections read at once.
const READERS_MAX: usize = 4;

/// GPU time that a budget was charged in a pool in one hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hourly {
    /// The leaf's number.
    pub budget: u32,
    /// The pool's number.
    pub pool: u16,
    /// The start of the hour.
    pub hour_ms: i64,
    /// How much, less refunds.
    pub gpu_ms: i64,
}

/// What can be read from the store.
pub trait Records: Send {
    /// A page of workloads, newest first.
    fn workloads(&self, filter: &Filter) -> anyhow::Result<Page<Workload>>;
    /// One workload, as it is and as it was submitted.
    fn workload(&self, id: u32) -> anyhow::Result<Option<(Workload, Submission)>>;
    /// Lines of the event log from a number on, of one workload or all.
    fn lines(&self, from: u64, workload: Option<u32>, limit: usize) -> anyhow::Result<Vec<Line>>;
    /// The number of the last line, 0 in an empty log.
    fn last_line(&self) -> anyhow::Result<u64>;
    /// Changesets below a number (`None`: all), newest first.
    fn changesets(&self, below: Option<u64>, limit: usize) -> anyhow::Result<Vec<Changeset>>;
    /// Charges of a period by budget, pool and hour.
    fn charges(&self, from_ms: i64, to_ms: i64) -> anyhow::Result<Vec<Hourly>>;
}

type Open = dyn Fn() -> anyhow::Result<Box<dyn Records>> + Send + Sync;

/// The readers: opened when they are needed, and kept.
pub(super) struct Past {
    open: Box<Open>,
    idle: Arc<Mutex<Vec<Box<dyn Records>>>>,
    turns: Semaphore,
}

impl Past {
    pub(super) fn new(open: Box<Open>) -> Past {
        Past { open, idle: Arc::default(), turns: Semaphore::new(READERS_MAX) }
    }

    /// Reads something. Whoever no longer waits for it does not stop it.
    pub(super) async fn read<T, F>(&self, question: F) -> Reply<T>
    where
        T: Send + 'static,
        F: FnOnce(&dyn Records) -> anyhow::Result<T> + Send + 'static,
    {
        let failed = |error: anyhow::Error| {
            tracing::error!("the store cannot be read: {error:#}");
            Problem::new(Code::Unavailable, format!("the store cannot be read: {error}"))
        };
        let _turn = self.turns.acquire().await.expect("it is never closed");
        let kept = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let reader = kept.map_or_else(|| (self.open)(), Ok).map_err(failed)?;
        let idle = self.idle.clone();
        let read = tokio::task::spawn_blocking(move || {
            let answer = question(&*reader);
            idle.lock().unwrap_or_else(PoisonError::into_inner).push(reader);
            answer
        });
        let answer = read.await.map_err(|stopped| Problem::new(Code::Unavailable, format!("the daemon stops: {stopped}")))?;
        Ok(answer.map_err(failed)?)
    }
}
