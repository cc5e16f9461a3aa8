//! How the rest of the daemon talks to the service.

use super::Service;
use super::history::Picture;
use super::input::{Answer, Input, Reply};
use super::owed::OwedHour;
use super::pulse::Pulse;
use super::tokens::{Bearers, hash};
use crate::driver::{Report, Reports};
use crate::store::Line;
use crate::whatif::Fork;
use crate::wire::budget::{Changeset, ChangesetRequest, Tree};
use crate::wire::error::{Code, Problem};
use crate::wire::node::{DrainRequest, Node, Pool};
use crate::wire::token::{NewToken, Role, Token, TokenRequest};
use crate::wire::whatif::WhatIfRequest;
use crate::wire::workload::{Submission, Submitted, Workload};
use std::path::PathBuf;
use std::sync::mpsc::Sender;
use std::sync::{Arc, PoisonError};
use stipend_core::id::{LeaseId, WorkloadId};
use tokio::sync::{broadcast, oneshot};

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
    pub(super) inputs: Sender<Input>,
    pub(super) lines: broadcast::Sender<Arc<Line>>,
    pub(super) bearers: Bearers,
    pub(super) pulse: Pulse,
}

impl Handle {
    /// Who bears this token.
    pub fn authenticate(&self, token: &str) -> Option<Who> {
        self.bearers.read().unwrap_or_else(PoisonError::into_inner).get(&hash(token)).cloned()
    }

    /// Queues workloads, all or none. With a key that was used before by the same user, the first answer again.
    pub async fn submit(&self, who: Who, key: Option<String>, submissions: Vec<Submission>) -> Answer<Submitted> {
        self.request(|reply| Input::Submit { who, key, submissions, reply }).await
    }

    /// Its owner (or who may) withdraws a workload.
    pub async fn cancel(&self, who: Who, workload: u32, reason: Option<String>) -> Answer<Workload> {
        self.request(|reply| Input::Cancel { who, workload, reason, reply }).await
    }

    /// A waiting workload may not start for now.
    pub async fn hold(&self, who: Who, workload: u32) -> Answer<Workload> {
        self.request(|reply| Input::Hold { who, workload, reply }).await
    }

    /// It may again.
    pub async fn release(&self, who: Who, workload: u32) -> Answer<Workload> {
        self.request(|reply| Input::Release { who, workload, reply }).await
    }

    /// Changes the budget tree, now or at its date; with `dry_run` only says what it would be.
    pub async fn change_budgets(&self, who: Who, request: ChangesetRequest, dry_run: bool) -> Answer<Changeset> {
        self.request(|reply| Input::ChangeBudgets { who, request, dry_run, reply }).await
    }

    /// Takes a changeset back that waits for its date.
    pub async fn withdraw(&self, who: Who, changeset: u64) -> Answer<Changeset> {
        self.request(|reply| Input::Withdraw { who, changeset, reply }).await
    }

    /// Takes a node out of service.
    pub async fn drain(&self, who: Who, node: String, request: DrainRequest) -> Answer<Node> {
        self.request(|reply| Input::Drain { who, node, request, reply }).await
    }

    /// Takes a node back into service.
    pub async fn resume(&self, who: Who, node: String) -> Answer<Node> {
        self.request(|reply| Input::Resume { who, node, reply }).await
    }

    /// Makes a token.
    pub async fn make_token(&self, who: Who, request: TokenRequest) -> Answer<NewToken> {
        self.request(|reply| Input::MakeToken { who, request, reply }).await
    }

    /// Takes a token back.
    pub async fn revoke_token(&self, who: Who, token: u64) -> Answer<Token> {
        self.request(|reply| Input::RevokeToken { who, token, reply }).await
    }

    /// All tokens, without their secrets.
    pub async fn tokens(&self, who: Who) -> Answer<Vec<Token>> {
        self.ask(move |service| service.list_tokens(&who)).await
    }

    /// The budget tree now.
    pub async fn tree(&self) -> Answer<Tree> {
        self.ask(|service| Ok(service.tree())).await
    }

    /// The nodes now.
    pub async fn nodes(&self) -> Answer<Vec<Node>> {
        self.ask(|service| Ok(service.list_nodes())).await
    }

    /// The pools now.
    pub async fn pools(&self) -> Answer<Vec<Pool>> {
        self.ask(|service| Ok(service.list_pools())).await
    }

    /// One workload now, whether it has ended or not.
    pub async fn workload(&self, workload: u32) -> Answer<Workload> {
        self.ask(move |service| service.workload(workload)).await
    }

    /// The present, to be asked at leisure.
    pub async fn picture(&self) -> Answer<Picture> {
        self.ask(|service| Ok(service.picture())).await
    }

    /// Where the output of a member of an attempt is kept (the last attempt by default), if somebody may read it.
    pub async fn output(&self, who: Who, workload: u32, attempt: Option<u32>, member: u32) -> Answer<PathBuf> {
        self.ask(move |service| service.output(&who, workload, attempt, member)).await
    }

    /// Everything that is needed to say what a change would bring: [`whatif`](crate::whatif::whatif) says it, and takes a while.
    pub async fn fork(&self, who: Who, request: WhatIfRequest) -> Answer<Fork> {
        self.ask(move |service| service.fork(&who, request)).await
    }

    /// What budgets were owed in the hours that begin in a period.
    pub async fn owed(&self, from_ms: i64, to_ms: i64) -> Answer<Vec<OwedHour>> {
        self.ask(move |service| Ok(service.owed(from_ms, to_ms))).await
    }

    /// How long the service takes.
    pub fn pulse(&self) -> &Pulse {
        &self.pulse
    }

    /// New lines of the event log from now on. Whoever falls behind reads what it missed from the store.
    pub fn follow(&self) -> broadcast::Receiver<Arc<Line>> {
        self.lines.subscribe()
    }

    /// Everything is written down, a snapshot made, and the service ends. What runs goes on.
    pub fn shut_down(&self) {
        // It may be gone already.
        let _ = self.inputs.send(Input::Shutdown);
    }

    async fn request<T>(&self, input: impl FnOnce(Reply<T>) -> Input) -> Answer<T> {
        let (reply, answer) = oneshot::channel();
        self.inputs.send(input(reply)).map_err(|_| gone())?;
        answer.await.unwrap_or_else(|_| Err(gone()))
    }

    async fn ask<T: Send + 'static>(&self, question: impl FnOnce(&Service) -> Answer<T> + Send + 'static) -> Answer<T> {
        let (reply, answer) = oneshot::channel();
        let question = Box::new(move |service: &Service| {
            // Whoever asked may have gone.
            let _ = reply.send(question(service));
        });
        self.inputs.send(Input::Ask(question)).map_err(|_| gone())?;
        answer.await.unwrap_or_else(|_| Err(gone()))
    }
}

fn gone() -> Problem {
    Problem::new(Code::Unavailable, "the daemon is stopping, or cannot write to its store; nothing was changed")
        .hint("look at the daemon's own log")
}

/// The driver's way to the service.
pub(super) struct ReportSink(pub(super) Sender<Input>);

impl Reports for ReportSink {
    fn report(&self, report: Report) {
        let _ = self.0.send(Input::Report(report));
    }
}

impl Service {
    /// Whoever may touch a workload may read its output.
    pub(crate) fn output(&self, who: &Who, id: u32, attempt: Option<u32>, member: u32) -> Answer<PathBuf> {
        let view = self.workload(id)?;
        if !(who.role == Role::Admin || view.user == who.user) {
            let budget = self.directory.budget(self.scheduler.tree(), &view.budget)?;
            self.directory.may_manage_below(who, budget)?;
        }
        let attempt = attempt.unwrap_or(view.attempts);
        if attempt == 0 {
            return Err(Problem::new(Code::Conflict, format!("w{id} has not started yet, so it has no output")));
        }
        let path = self.driver.output(LeaseId { workload: WorkloadId(id), attempt }, member);
        path.ok_or_else(|| Problem::new(Code::NotFound, format!("the output of w{id}, attempt {attempt}, member {member}, is not kept")))
    }
}
