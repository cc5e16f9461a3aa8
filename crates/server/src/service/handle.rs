//! How the rest of the daemon talks to the service.

use crate::store::Line;
use crate::wire::budget::{Changeset, ChangesetRequest, Tree};
use crate::wire::error::{Code, Problem};
use crate::wire::node::{DrainRequest, Node, Pool};
use crate::wire::token::{NewToken, Role, Token, TokenRequest};
use crate::wire::workload::{Submission, Submitted, Workload};
use std::sync::Arc;
use tokio::sync::broadcast;

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Who {
    /// By name.
    pub user: String,
    /// What they may do.
    pub role: Role,
}

/// Talks to the service thread. Each call that changes something returns when the change is on disk.
#[derive(Clone)]
pub struct Handle {
    lines: broadcast::Sender<Arc<Line>>,
}

type Answer<T> = Result<T, Problem>;

fn not_yet<T>() -> Answer<T> {
    Err(Problem::new(Code::Unavailable, "not built yet"))
}

impl Handle {
    /// Who bears this token.
    pub fn authenticate(&self, _token: &str) -> Option<Who> {
        None
    }

    /// Queues workloads, all or none. With a key that was used before by the same user, the first answer again.
    pub async fn submit(&self, _who: Who, _key: Option<String>, _submissions: Vec<Submission>) -> Answer<Submitted> {
        not_yet()
    }

    /// Its owner (or who may) withdraws a workload.
    pub async fn cancel(&self, _who: Who, _workload: u32, _reason: Option<String>) -> Answer<Workload> {
        not_yet()
    }

    /// A waiting workload may not start for now.
    pub async fn hold(&self, _who: Who, _workload: u32) -> Answer<Workload> {
        not_yet()
    }

    /// It may again.
    pub async fn release(&self, _who: Who, _workload: u32) -> Answer<Workload> {
        not_yet()
    }

    /// Changes the budget tree, now or at its date; with `dry_run` only says what it would be.
    pub async fn change_budgets(&self, _who: Who, _request: ChangesetRequest, _dry_run: bool) -> Answer<Changeset> {
        not_yet()
    }

    /// Takes a changeset back that waits for its date.
    pub async fn withdraw(&self, _who: Who, _changeset: u64) -> Answer<Changeset> {
        not_yet()
    }

    /// Takes a node out of service.
    pub async fn drain(&self, _who: Who, _node: String, _request: DrainRequest) -> Answer<Node> {
        not_yet()
    }

    /// Takes a node back into service.
    pub async fn resume(&self, _who: Who, _node: String) -> Answer<Node> {
        not_yet()
    }

    /// Makes a token.
    pub async fn make_token(&self, _who: Who, _request: TokenRequest) -> Answer<NewToken> {
        not_yet()
    }

    /// Takes a token back.
    pub async fn revoke_token(&self, _who: Who, _token: u64) -> Answer<Token> {
        not_yet()
    }

    /// The budget tree now.
    pub async fn tree(&self) -> Answer<Tree> {
        not_yet()
    }

    /// The nodes now.
    pub async fn nodes(&self) -> Answer<Vec<Node>> {
        not_yet()
    }

    /// The pools now.
    pub async fn pools(&self) -> Answer<Vec<Pool>> {
        not_yet()
    }

    /// What can be said of a live workload: `stipend_sim::explain`'s JSON.
    pub async fn explain(&self, _workload: u32) -> Answer<serde_json::Value> {
        not_yet()
    }

    /// New lines of the event log from now on. Whoever falls behind reads what it missed from the store.
    pub fn follow(&self) -> broadcast::Receiver<Arc<Line>> {
        self.lines.subscribe()
    }
}
