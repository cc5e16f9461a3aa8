//! Requests of people: each is checked whole, then done; its answer goes out when that is on disk.

use super::input::{Answer, Input, Reply};
use super::{Service, Who};
use crate::wire::error::{Code, Problem};
use crate::wire::node::{DrainRequest, Node, Severity};
use crate::wire::token::Role;
use crate::wire::workload::{State, Workload};
use stipend_core::event::Event;
use stipend_core::id::WorkloadId;
use stipend_core::spec;

impl Service {
    /// Takes a request in.
    pub(super) fn request(&mut self, input: Input) {
        match input {
            Input::Submit { who, key, submissions, reply } => self.submit(&who, key, submissions, reply),
            Input::Cancel { who, workload, reason, reply } => {
                let done = self.cancel(&who, workload, reason);
                self.answer_view(workload, done, reply);
            }
            Input::Hold { who, workload, reply } => {
                let done = self.hold(&who, workload);
                self.answer_view(workload, done, reply);
            }
            Input::Release { who, workload, reply } => {
                let done = self.release(&who, workload);
                self.answer_view(workload, done, reply);
            }
            Input::ChangeBudgets { who, request, dry_run, reply } => {
                let changed = self.change_budgets(&who, request, dry_run);
                self.answer(changed, reply);
            }
            Input::Withdraw { who, changeset, reply } => {
                let withdrawn = self.withdraw(&who, changeset);
                self.answer(withdrawn, reply);
            }
            Input::Drain { who, node, request, reply } => {
                let done = self.drain(&who, &node, request);
                self.answer_node(node, done, reply);
            }
            Input::Resume { who, node, reply } => {
                let done = self.resume(&who, &node);
                self.answer_node(node, done, reply);
            }
            Input::MakeToken { who, request, reply } => {
                let made = self.make_token(&who, request);
                self.answer(made, reply);
            }
            Input::RevokeToken { who, token, reply } => {
                let revoked = self.revoke_token(&who, token);
                self.answer(revoked, reply);
            }
            Input::Ask(_) | Input::Report(_) | Input::Shutdown => {}
        }
    }

    /// Answers when what was done is on disk. Whoever asked may have gone.
    fn answer<T: Send + 'static>(&mut self, answer: Answer<T>, reply: Reply<T>) {
        self.after.push(Box::new(move |_| {
            let _ = reply.send(answer);
        }));
    }

    /// Answers with the workload as it is then.
    fn answer_view(&mut self, id: u32, done: Answer<()>, reply: Reply<Workload>) {
        self.after.push(Box::new(move |service| {
            let _ = reply.send(done.and_then(|()| service.workload(id)));
        }));
    }

    fn answer_node(&mut self, name: String, done: Answer<()>, reply: Reply<Node>) {
        self.after.push(Box::new(move |service| {
            let _ = reply.send(done.and_then(|()| service.node(&name)));
        }));
    }

    /// Whether somebody may cancel, hold or release a workload: its owner, the managers of its budget and above, administrators.
    fn may_touch(&self, who: &Who, id: u32) -> Answer<()> {
        let Some(live) = self.live.get(id) else {
            return Err(Problem::new(Code::NotFound, format!("there is no workload w{id}, or it has ended")));
        };
        if who.role <= Role::User && live.view.user == who.user {
            return Ok(());
        }
        let tree = self.scheduler.tree();
        let budget = self.directory.budget(tree, &live.view.budget)?;
        self.directory.may_manage_below(who, budget).map_err(|_| {
            let message =
                format!("w{id} is {}'s: only they, managers of {} or above, and administrators may do that", live.view.user, budget.path);
            Problem::new(Code::Forbidden, message)
        })
    }

    fn cancel(&mut self, who: &Who, id: u32, reason: Option<String>) -> Answer<()> {
        self.may_touch(who, id)?;
        let workload = WorkloadId(id);
        let own = self.live.get(id).is_some_and(|live| live.view.user == who.user);
        let event = match (own, reason) {
            (true, None) => Event::Cancelled { workload },
            (_, reason) => {
                let reason = reason.map_or(String::new(), |reason| format!(": {reason}"));
                Event::Stopped { workload, reason: format!("{}{reason}", who.user) }
            }
        };
        self.tell(event).map_err(|rejection| Problem::new(Code::Conflict, self.sentence(&rejection)))?;
        if let Some(live) = self.live.change(id) {
            live.cancelled_by = Some(who.user.clone());
        }
        Ok(())
    }

    fn hold(&mut self, who: &Who, id: u32) -> Answer<()> {
        self.may_touch(who, id)?;
        let state = self.live.get(id).map(|live| live.view.state);
        if state == Some(State::Waiting) {
            let why = format!("{} holds it", who.user);
            let held = self.tell(Event::Held { workload: WorkloadId(id), why });
            held.map_err(|rejection| Problem::new(Code::Conflict, self.sentence(&rejection)))?;
        } else if state != Some(State::Held) {
            let message = format!("w{id} has GPUs; only waiting work can be held");
            return Err(Problem::new(Code::Conflict, message).hint("cancel it, or wait until it is preempted"));
        }
        if let Some(live) = self.live.change(id) {
            live.view.held_by = Some(who.user.clone());
        }
        Ok(())
    }

    fn release(&mut self, who: &Who, id: u32) -> Answer<()> {
        self.may_touch(who, id)?;
        let is_held = |view: &Workload| view.state == State::Held && (view.held_by.is_some() || view.losses > 0);
        let Some(live) = self.live.change(id).filter(|live| is_held(&live.view)) else {
            let message = format!("nobody holds w{id}");
            return Err(Problem::new(Code::Conflict, message));
        };
        (live.view.held_by, live.view.losses, live.view.retry_ms) = (None, 0, None);
        self.release_if_free(id);
        Ok(())
    }

    fn operator(&self, who: &Who) -> Answer<()> {
        if who.role <= Role::Operator {
            return Ok(());
        }
        let message = format!("{} has the role {}; nodes are drained and resumed by operators", who.user, role(who.role));
        Err(Problem::new(Code::Forbidden, message)
            .hint("an administrator makes an operator's token: stipend token create USER --role operator"))
    }

    fn drain(&mut self, who: &Who, node: &str, request: DrainRequest) -> Answer<()> {
        self.operator(who)?;
        let id = self.directory.node(node)?;
        if request.reason.trim().is_empty() {
            return Err(Problem::new(Code::Invalid, "reason: it is empty; say why the node leaves service").hint("others read it"));
        }
        if let Some(past) = request.until_ms.filter(|until| *until <= self.now.0) {
            return Err(Problem::new(Code::Invalid, format!("until_ms = {past}: that is in the past; expected when it comes back")));
        }
        let severity = match request.severity {
            Severity::Maintenance => spec::Severity::Maintenance,
            Severity::Sick => spec::Severity::Sick,
            Severity::Critical => spec::Severity::Critical,
        };
        let reason = format!("{}: {}", who.user, request.reason);
        let drained = self.tell(Event::NodeDrainRequested { node: id, severity, reason });
        drained.map_err(|rejection| Problem::new(Code::Conflict, self.sentence(&rejection)))?;
        self.nodes.comes_back(id, request.until_ms);
        Ok(())
    }

    fn resume(&mut self, who: &Who, node: &str) -> Answer<()> {
        self.operator(who)?;
        let node = self.directory.node(node)?;
        self.tell(Event::NodeReady { node }).map_err(|rejection| Problem::new(Code::Conflict, self.sentence(&rejection)))
    }
}

/// A role's name.
pub(super) fn role(role: Role) -> &'static str {
    match role {
        Role::Admin => "admin",
        Role::Operator => "operator",
        Role::User => "user",
        Role::Viewer => "viewer",
    }
}
