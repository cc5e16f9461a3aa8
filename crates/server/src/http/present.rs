//! What the service says of the present, kept for a moment: ten times as long as it took to find out. So questions about everything take at
//! most about a tenth of the service's time, however many ask; where it takes no time nothing is kept.

use super::Api;
use super::refusal::Reply;
use crate::service::{Answer, Picture};
use crate::wire::budget::Tree;
use crate::wire::error::{Code, Problem};
use crate::wire::node::{Node, Pool};
use crate::wire::workload::{State, Workload};
use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use stipend_sim::explain::Explained;
use tokio::sync::Mutex;

const TIMES: u32 = 10;

/// A list is explained for so long at most.
const EXPLAINED_FOR: Duration = Duration::from_millis(100);

/// Nothing is kept longer.
const KEPT_MAX: Duration = Duration::from_secs(2);

/// An answer, until when it is good, and after which change it was asked for.
struct Kept<T> {
    answer: Arc<T>,
    until: Instant,
    change: u64,
}

/// One question; whoever asks while it is being answered waits for that answer.
struct Question<T>(Mutex<Option<Kept<T>>>);

impl<T> Default for Question<T> {
    fn default() -> Question<T> {
        Question(Mutex::new(None))
    }
}

impl<T> Question<T> {
    async fn ask(&self, changes: &AtomicU64, find: impl Future<Output = Answer<T>>) -> Answer<Arc<T>> {
        let mut kept = self.0.lock().await;
        let (begin, change) = (Instant::now(), changes.load(Ordering::SeqCst));
        if let Some(kept) = kept.as_ref().filter(|kept| kept.until > begin && kept.change == change) {
            return Ok(Arc::clone(&kept.answer));
        }
        let answer = Arc::new(find.await?);
        let now = Instant::now();
        let until = now + ((now - begin) * TIMES).min(KEPT_MAX);
        *kept = Some(Kept { answer: Arc::clone(&answer), until, change });
        Ok(answer)
    }
}

/// All such questions.
#[derive(Default)]
pub(super) struct Present {
    tree: Question<Tree>,
    nodes: Question<Vec<Node>>,
    pools: Question<Vec<Pool>>,
    picture: Question<Picture>,
    /// Counts changes of the tree and of nodes: whoever made one sees it.
    changes: AtomicU64,
}

impl Api {
    /// The budget tree, at most a moment old.
    pub(super) async fn tree(&self) -> Answer<Arc<Tree>> {
        self.present.tree.ask(&self.present.changes, self.handle.tree()).await
    }

    /// The nodes, at most a moment old.
    pub(super) async fn nodes(&self) -> Answer<Arc<Vec<Node>>> {
        self.present.nodes.ask(&self.present.changes, self.handle.nodes()).await
    }

    /// The pools, at most a moment old.
    pub(super) async fn pools(&self) -> Answer<Arc<Vec<Pool>>> {
        self.present.pools.ask(&self.present.changes, self.handle.pools()).await
    }

    /// Why a workload waits, what would start it, and what happened to it: said from a picture that is at most a moment old.
    pub(super) async fn explained(&self, id: u32) -> Reply<Explained> {
        let picture = self.present.picture.ask(&self.present.changes, self.handle.picture()).await?;
        if let Some(explained) = self.past.read(move |reader| picture.explain(id, reader)).await? {
            return Ok(explained);
        }
        // It was queued after the picture was taken.
        let picture = self.handle.picture().await?;
        let explained = self.past.read(move |reader| picture.explain(id, reader)).await?;
        explained.ok_or_else(|| Problem::new(Code::Unavailable, format!("nothing can be said of w{id} at this moment; ask again")).into())
    }

    /// Says of those that wait what stops them. Alike ones wait for the same; after a moment the rest is left out.
    pub(super) async fn explain_all(&self, mut workloads: Vec<Workload>) -> Reply<Vec<Workload>> {
        if !workloads.iter().any(|view| view.state == State::Waiting) {
            return Ok(workloads);
        }
        let picture = self.present.picture.ask(&self.present.changes, self.handle.picture()).await?;
        let explain = move || {
            let (begin, mut known) = (Instant::now(), HashMap::new());
            for view in workloads.iter_mut().filter(|view| view.state == State::Waiting) {
                let alike = (
                    view.budget.clone(),
                    view.pool.clone(),
                    view.members,
                    view.gpus_per_member,
                    view.min_runtime_ms,
                    view.on_preempt as u8,
                );
                let late = begin.elapsed() > EXPLAINED_FOR;
                view.why = match known.get(&alike) {
                    Some(why) => Option::clone(why),
                    None if late => None,
                    None => known.entry(alike).or_insert_with(|| picture.blocker(view.id)).clone(),
                };
            }
            workloads
        };
        let explained = tokio::task::spawn_blocking(explain).await;
        explained.map_err(|_| Problem::new(Code::Internal, "an explanation failed; this is a defect").into())
    }

    /// Somebody changed the tree or a node: what was kept is old.
    pub(super) fn changed(&self) {
        self.present.changes.fetch_add(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_answer_is_kept_as_long_as_it_was_dear_and_until_a_change() {
        let (question, changes) = (Question::<u32>::default(), AtomicU64::new(0));
        let slow = |answer: u32| async move {
            tokio::time::sleep(Duration::from_millis(300)).await;
            Ok(answer)
        };
        assert_eq!(*question.ask(&changes, slow(1)).await.unwrap(), 1);
        assert_eq!(*question.ask(&changes, slow(2)).await.unwrap(), 1);
        changes.fetch_add(1, Ordering::SeqCst);
        assert_eq!(*question.ask(&changes, slow(3)).await.unwrap(), 3);
    }
}
