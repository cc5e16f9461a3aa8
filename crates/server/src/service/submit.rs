//! A submission comes in: checked whole, all of its workloads or none are queued.

use super::gates::gate;
use super::input::{Answer, Reply};
use super::live::{ARRAY, Live, program};
use super::{Directory, Service, Who};
use crate::store::{Kind, Made};
use crate::wire::error::{Code, Problem};
use crate::wire::workload::{ArrayIndex, Kind as WireKind, OnPreempt, Start, State, Submission, Submitted, Workload};
use sha2::{Digest, Sha256};
use std::sync::Arc;
use stipend_core::budget::{Budget, BudgetTree};
use stipend_core::event::Event;
use stipend_core::id::{PoolId, UserId, WorkloadId};
use stipend_core::quantity::Span;
use stipend_core::spec::{self, Gang, Pools, WorkloadSpec};
use stipend_sim::family::family;
use stipend_sim::harmless::is_harmless;

/// More elements than this are a slip of the pen.
const ARRAY_MAX: usize = 10_000;

/// Letters of a workload's name.
const NAME_MAX: usize = 200;

/// More memory and more CPUs than any node has.
const MEMORY_GIB_MAX: u64 = 1 << 20;
const CPUS_MAX: u32 = 1 << 16;

/// A submission that was found to be right.
struct Planned {
    submission: Arc<Submission>,
    spec: Arc<WorkloadSpec>,
    after: Vec<u32>,
    indexes: Vec<u32>,
    at_most: Option<u32>,
}

impl Service {
    pub(super) fn submit(&mut self, who: &Who, key: Option<String>, submissions: Vec<Submission>, reply: Reply<Submitted>) {
        let known = key.as_ref().and_then(|key| self.keys.get(&(who.user.clone(), key.clone())).copied());
        // Where it cannot be found out whether the key is known, nothing is queued: it might be queued twice.
        let known = match (known, &key) {
            (None, Some(key)) => self.reader.key(&who.user, key),
            _ => Ok(known),
        };
        let body = key.is_some().then(|| digest(&submissions));
        let queued = match known {
            Ok(Some(made)) if made.body.is_none() || made.body == body => Ok((made.first..=made.last).collect()),
            Ok(Some(made)) => Err(used_before(key.as_deref(), made)),
            Ok(None) => self.queue(who, &submissions),
            Err(ref problem) => Err(problem.clone()),
        };
        if let (Some(key), Ok(ids), Ok(None)) = (key, &queued, known)
            && let (Some(first), Some(last)) = (ids.first(), ids.last())
        {
            let made = Made { first: *first, last: *last, body };
            self.batch.keys.push((who.user.clone(), key.clone(), made));
            self.keys.insert((who.user.clone(), key), made);
        }
        self.after.push(Box::new(move |service| {
            let _ = reply.send(queued.and_then(|ids: Vec<u32>| service.submitted(&ids, &submissions)));
        }));
    }

    /// Queues all of them, or none.
    fn queue(&mut self, who: &Who, submissions: &[Submission]) -> Answer<Vec<u32>> {
        if submissions.is_empty() {
            return Err(Problem::new(Code::Invalid, "the list of submissions is empty"));
        }
        let planned = submissions.iter().map(|submission| self.planned(who, submission)).collect::<Answer<Vec<Planned>>>()?;
        self.room(who, planned.iter().map(|planned| planned.indexes.len().max(1)).sum())?;
        let mut ids = Vec::new();
        for planned in planned {
            if let Err(problem) = self.queue_planned(who, &planned, &mut ids) {
                for id in ids {
                    self.tell_quietly(Event::Stopped { workload: WorkloadId(id), reason: "another of its request was refused".into() });
                }
                return Err(problem);
            }
        }
        Ok(ids)
    }

    fn room(&self, who: &Who, more: usize) -> Answer<()> {
        let (all, own) = (self.live.len() + more, self.live.of_user(&who.user) + more);
        let (all_max, own_max) = (self.config.waiting_max, self.config.waiting_per_user_max);
        let message = match (all > all_max, own > own_max) {
            (true, _) => format!("the queue is full: {} of at most {all_max} workloads", self.live.len()),
            (_, true) => format!("{} has {} of at most {own_max} workloads in the queue", who.user, self.live.of_user(&who.user)),
            _ => return Ok(()),
        };
        Err(Problem::new(Code::TooMany, message).hint("wait for some to end; the administrator sets waiting_max and waiting_per_user_max"))
    }

    fn planned(&mut self, who: &Who, submission: &Submission) -> Answer<Planned> {
        let tree = self.scheduler.tree();
        check_texts(submission)?;
        let budget = self.directory.budget(tree, &submission.budget)?;
        self.directory.may_submit(who, budget)?;
        let (indexes, at_most) = submission.array.as_deref().map_or(Ok((Vec::new(), None)), array)?;
        let after = self.unfinished(&submission.after)?;
        let user = UserId(self.directory.number(Kind::User, &who.user));
        let budget = self.directory.budget(self.scheduler.tree(), &submission.budget)?;
        let spec = Arc::new(resolved(&self.directory, budget, submission, user)?);
        self.scheduler.check(&spec).map_err(|rejection| Problem::new(Code::Invalid, self.sentence(&rejection)))?;
        let program = program(submission, &view(submission, who, 0, 0), self.config.run_as);
        self.driver.check(&program).map_err(|message| Problem::new(Code::Invalid, message))?;
        Ok(Planned { submission: Arc::new(submission.clone()), spec, after, indexes, at_most })
    }

    fn unfinished(&self, after: &[u32]) -> Answer<Vec<u32>> {
        let mut waits_for = Vec::new();
        for id in after {
            if self.live.get(*id).is_some_and(|live| !live.view.state.is_over()) {
                waits_for.push(*id);
                continue;
            }
            let state =
                self.workload(*id).map_err(|_| Problem::new(Code::Invalid, format!("after = {id}: there is no workload w{id}")))?.state;
            if state != State::Completed {
                let message = format!("after = {id}: w{id} did not complete, so this would never start");
                return Err(Problem::new(Code::Invalid, message));
            }
        }
        Ok(waits_for)
    }

    fn queue_planned(&mut self, who: &Who, planned: &Planned, ids: &mut Vec<u32>) -> Answer<()> {
        let first = self.next_workload;
        let elements = planned.indexes.len().max(1);
        for place in 0..elements {
            let id = self.next_workload;
            let told = self.tell(Event::Submitted { workload: WorkloadId(id), spec: Arc::clone(&planned.spec) });
            told.map_err(|rejection| Problem::new(Code::Invalid, self.sentence(&rejection)))?;
            self.next_workload += 1;
            let mut view = view(&planned.submission, who, id, self.now.0);
            view.after.clone_from(&planned.after);
            let at_most = planned.at_most;
            view.array = planned.indexes.get(place).map(|index| ArrayIndex { array: first, index: *index, at_most });
            let beyond = at_most.is_some_and(|at_most| place >= at_most as usize);
            let why = gate(&view).or_else(|| beyond.then(|| ARRAY.into()));
            let row = crate::store::WorkloadRow { view: view.clone(), submission: Some((*planned.submission).clone()) };
            self.live.insert(Live::new(view, Some(Arc::clone(&planned.submission))));
            self.batch.workloads.push(row);
            if let Some(why) = why {
                self.tell_quietly(Event::Held { workload: WorkloadId(id), why });
            }
            ids.push(id);
        }
        Ok(())
    }

    /// What is answered: the workloads as they are now, and what will happen.
    fn submitted(&self, ids: &[u32], submissions: &[Submission]) -> Answer<Submitted> {
        let workloads = ids.iter().map(|id| self.workload(*id)).collect::<Answer<Vec<Workload>>>()?;
        let mut notes = Vec::new();
        if let ([workload], [submission]) = (&workloads[..], submissions) {
            notes = self.notes(workload, submission);
        }
        Ok(Submitted { workloads, notes })
    }
}

/// What tells one request from another, however it was written.
fn digest(submissions: &[Submission]) -> [u8; 32] {
    Sha256::digest(serde_json::to_vec(submissions).expect("a submission is plain data")).into()
}

/// The key is that of another request.
fn used_before(key: Option<&str>, made: Made) -> Problem {
    let queued = if made.first == made.last { format!("w{}", made.first) } else { format!("w{} to w{}", made.first, made.last) };
    let message = format!("idempotency-key: `{}` is that of another request of yours, which queued {queued}", key.unwrap_or_default());
    Problem::new(Code::Conflict, message)
        .hint("nothing was queued; a new request needs a new key, the same request may be sent again with its own")
}

/// A submission with its names resolved.
fn resolved(directory: &Directory, budget: &Budget, submission: &Submission, user: UserId) -> Answer<WorkloadSpec> {
    let pools = pools_of(directory, submission, budget)?;
    let gang = Gang {
        members: submission.members.unwrap_or(1),
        gpus_per_member: submission.gpus.unwrap_or(1),
        cpus_per_member: submission.cpus.unwrap_or(0),
        memory_per_member: submission.memory_gib.unwrap_or(0) << 30,
        features: directory.features(&submission.features)?,
        same_block: submission.same_block,
    };
    let name = submission.name.clone().unwrap_or_else(|| submission.command.join(" "));
    let family = family(directory.name(Kind::User, user.0), &name, gang.gpus().0.into());
    Ok(WorkloadSpec { family: Some(family.id()), ..spec(submission, (budget.spec.id, user), pools, gang) })
}

/// A submission of the past, if all that it names still exists.
pub(crate) fn spec_of_submission(directory: &Directory, tree: &BudgetTree, submission: &Submission, user: &str) -> Option<WorkloadSpec> {
    let budget = directory.budget(tree, &submission.budget).ok()?;
    let user = UserId(directory.find(Kind::User, user)?);
    resolved(directory, budget, submission, user).ok()
}

/// The pools that a submission names, else those in which its budget has a claim, else all.
fn pools_of(directory: &Directory, submission: &Submission, budget: &Budget) -> Answer<Pools> {
    let named = submission.pools.iter().map(|name| directory.pool(name)).collect::<Answer<Vec<PoolId>>>()?;
    let all = || (0..directory.names(Kind::Pool).len()).map(|number| PoolId(number as u16));
    let funded: Vec<PoolId> = all().filter(|pool| budget.claim(*pool).0 > 0).collect();
    let pools = [named, funded, all().collect()].into_iter().find(|pools| !pools.is_empty()).unwrap_or_default();
    Pools::from_order(&pools).ok_or_else(|| Problem::new(Code::Unavailable, "there is no pool yet"))
}

/// The request as the core takes it.
fn spec(of: &Submission, (budget, user): (stipend_core::id::BudgetId, UserId), pools: Pools, gang: Gang) -> WorkloadSpec {
    let whenever = of.on_preempt == OnPreempt::Resume && of.min_runtime.0 > Span::ZERO && of.kind == WireKind::Batch;
    WorkloadSpec {
        time_limit: of.time_limit.map(|limit| limit.0),
        expected_runtime: of.expected_runtime.map(|expected| expected.0),
        on_preempt: match of.on_preempt {
            OnPreempt::Resume => spec::OnPreempt::Resume,
            OnPreempt::Restart => spec::OnPreempt::Restart,
            OnPreempt::End => spec::OnPreempt::End,
        },
        start: match of.start {
            Some(Start::Whenever) => spec::Start::Whenever,
            None if whenever => spec::Start::Whenever,
            _ => spec::Start::Guaranteed,
        },
        priority: of.priority,
        checkpoint_every: of.checkpoint_every.map(|every| every.0),
        kind: match of.kind {
            WireKind::Batch => spec::WorkloadKind::Batch,
            WireKind::Session => spec::WorkloadKind::Session,
        },
        ..WorkloadSpec::new(budget, user, pools, gang, of.min_runtime.0)
    }
}

/// A new workload as lists show it.
fn view(of: &Submission, who: &Who, id: u32, now_ms: i64) -> Workload {
    let program = of.command.first().map(|program| program.rsplit('/').next().unwrap_or(program).to_string());
    Workload {
        id,
        name: of.name.clone().or(program).unwrap_or_default(),
        user: who.user.clone(),
        budget: of.budget.clone(),
        pool: String::new(),
        state: State::Waiting,
        members: of.members.unwrap_or(1),
        gpus_per_member: of.gpus.unwrap_or(1),
        min_runtime_ms: of.min_runtime.0.0,
        time_limit_ms: of.time_limit.map(|limit| limit.0.0),
        expected_runtime_ms: of.expected_runtime.map(|expected| expected.0.0),
        ran_ms: 0,
        on_preempt: of.on_preempt,
        priority: of.priority,
        kind: of.kind,
        submitted_ms: now_ms,
        started_ms: None,
        ended_ms: None,
        protected_until_ms: None,
        allocated: false,
        attempts: 0,
        preemptions: 0,
        losses: 0,
        retry_ms: None,
        placement: Default::default(),
        exit_code: None,
        array: None,
        after: Vec::new(),
        held_by: None,
        idle_since_ms: None,
        why: None,
    }
}

/// Names are for tables, and what is run must be able to start.
fn check_texts(of: &Submission) -> Answer<()> {
    let wrong = |field: &str, expected: &str| Err(Problem::new(Code::Invalid, format!("{field}: expected {expected}")));
    if of.name.as_ref().is_some_and(|name| name.is_empty() || name.chars().count() > NAME_MAX || !name.chars().all(is_harmless)) {
        return wrong("name", &format!("1 to {NAME_MAX} letters, without such as break a line, turn the text or cannot be seen"));
    }
    if of.env.iter().any(|(name, value)| name.is_empty() || name.contains(['=', '\0']) || value.contains('\0')) {
        return wrong("env", "names that are not empty and have no `=`, and values without NUL");
    }
    let mut words = of.command.iter().chain(&of.checkpoint_command).chain(&of.restore_command).chain(&of.workdir);
    if words.any(|word| word.contains('\0')) {
        return wrong("command", "words without NUL");
    }
    if of.memory_gib.is_some_and(|gib| gib > MEMORY_GIB_MAX) {
        return wrong("memory_gib", &format!("at most {MEMORY_GIB_MAX}"));
    }
    if of.cpus.is_some_and(|cpus| cpus > CPUS_MAX) {
        return wrong("cpus", &format!("at most {CPUS_MAX}"));
    }
    Ok(())
}

/// Reads `1-10`, `0,3,7`, `1-100:10%5`.
fn array(text: &str) -> Answer<(Vec<u32>, Option<u32>)> {
    let wrong = || {
        let message = format!("array = \"{text}\": expected indexes such as 1-10, 0,3,7 or 1-100%5, at most {ARRAY_MAX} of them");
        Problem::new(Code::Invalid, message)
    };
    let (indexes, at_most) = match text.split_once('%') {
        Some((indexes, at_most)) => (indexes, Some(at_most.parse().ok().filter(|most| *most > 0).ok_or_else(wrong)?)),
        None => (text, None),
    };
    let mut all = Vec::new();
    for part in indexes.split(',') {
        let (range, step) = part.split_once(':').unwrap_or((part, "1"));
        let (from, to) = range.split_once('-').unwrap_or((range, range));
        let (from, to): (u32, u32) = (from.trim().parse().map_err(|_| wrong())?, to.trim().parse().map_err(|_| wrong())?);
        let step: usize = step.parse().ok().filter(|step| *step > 0).ok_or_else(wrong)?;
        if from > to || (to - from) as usize / step + all.len() >= ARRAY_MAX {
            return Err(wrong());
        }
        all.extend((from..=to).step_by(step));
    }
    let distinct: std::collections::BTreeSet<&u32> = all.iter().collect();
    if distinct.len() < all.len() {
        return Err(Problem::new(Code::Invalid, format!("array = \"{text}\": an index is there twice")));
    }
    Ok((all, at_most))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays() {
        assert_eq!(array("1-4%2").unwrap(), (vec![1, 2, 3, 4], Some(2)));
        assert_eq!(array("0,3,7").unwrap(), (vec![0, 3, 7], None));
        assert_eq!(array("1-9:4").unwrap(), (vec![1, 5, 9], None));
        assert!(array("1,1").unwrap_err().message.contains("an index is there twice"));
        for wrong in ["", "x", "4-1", "1-4%0", "1-4%", "1-", "0-4294967295", "1-5:0"] {
            assert!(array(wrong).unwrap_err().message.contains("expected indexes"), "{wrong}");
        }
    }
}
