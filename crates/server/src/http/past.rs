//! What is read from the store: by connections of its own, on threads that may wait, a few at a time.

use super::refusal::Reply;
use crate::store::Reader;
use crate::wire::error::{Code, Problem};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Semaphore;

/// So many connections read at once.
const READERS_MAX: usize = 4;

/// The readers: opened when they are needed, and kept.
pub(super) struct Past {
    /// The data folder.
    folder: PathBuf,
    idle: Arc<Mutex<Vec<Reader>>>,
    turns: Arc<Semaphore>,
}

impl Past {
    pub(super) fn new(folder: PathBuf) -> Past {
        Past { folder, idle: Arc::default(), turns: Arc::new(Semaphore::new(READERS_MAX)) }
    }

    /// Reads something. Whoever no longer waits for it does not stop it.
    pub(super) async fn read<T, F>(&self, question: F) -> Reply<T>
    where
        T: Send + 'static,
        F: FnOnce(&Reader) -> Result<T, Problem> + Send + 'static,
    {
        let turn = self.turns.clone().acquire_owned().await.expect("it is never closed");
        let (idle, folder) = (self.idle.clone(), self.folder.clone());
        let read = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            let kept = idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let reader = kept.map_or_else(|| Reader::open(&folder), Ok);
            let reader = reader.map_err(|error| Problem::new(Code::Unavailable, format!("the store cannot be read: {error}")))?;
            let answer = question(&reader);
            idle.lock().unwrap_or_else(PoisonError::into_inner).push(reader);
            answer
        });
        let answer = read.await.map_err(|stopped| Problem::new(Code::Unavailable, format!("the daemon stops: {stopped}")))?;
        answer.map_err(|problem| {
            if problem.code == Code::Unavailable {
                tracing::error!("{}", problem.message);
            }
            problem.into()
        })
    }
}
