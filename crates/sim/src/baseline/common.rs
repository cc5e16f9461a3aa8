//! What every baseline needs to be a [`Policy`]: it keeps the book, obeys nodes and time limits, and writes the log as the core does.
//! Only the order of starts is left to a [`Queue`].
//!
//! `fifo`, `easy` and `partition` never preempt for a claimant. Their log still says `protected_until` as the core's would (a contract from the
//! moment when all members run), as the least that is promised; in truth a lease is left alone until its time limit, the loss of a node or a
//! critical drain. `priority` and `fair-tree` preempt by [`super::claims`], and say what they promise.
//! Express nodes are nodes like any other. Nothing is charged, so there are no `charged` entries.

use super::book::{Book, Estimate, Phase, Workload};
use super::cluster::Cluster;
use super::guests::Guests;
use super::placement::Choice;
use super::request;
use super::stop::{self, Stop};
use super::tree::Tree;
use crate::policy::Policy;
use std::collections::BTreeSet;
use std::sync::Arc;
use stipend_core::entry::{By, Entry, InPool, Licence, Occupancy, Outcome, Placement};
use stipend_core::event::{Event, Exit, Rejection};
use stipend_core::explain::Why;
use stipend_core::id::{LeaseId, PoolId, WorkloadId};
use stipend_core::knobs::Knobs;
use stipend_core::quantity::{Gpus, Span, Time};
use stipend_core::spec::{NodeState, OnPreempt, WorkloadSpec};

/// An order of starts within one pool.
pub(super) trait Queue {
    /// A workload waits (again): it has its old place in the order of submission.
    fn push(&mut self, id: WorkloadId, workload: &Workload, estimate: &Estimate);

    /// A waiting workload goes away without a start.
    fn remove(&mut self, id: WorkloadId, workload: &Workload);

    /// A workload waits again: if it yielded to somebody here who has not started yet, it is kept back until that is settled.
    fn park(&mut self, _id: WorkloadId) -> bool {
        false
    }

    /// A workload that may be kept back does not wait any more; whether it was.
    fn unpark(&mut self, _id: WorkloadId) -> bool {
        false
    }

    /// A lease of this workload has ended; whether it waits again is said by [`Queue::push`].
    fn ended(&mut self, _id: WorkloadId, _workload: &Workload) {}

    /// For how long a lease that runs from now on is left alone for sure; `None` if that is not a matter of time.
    fn protects(&self, _id: WorkloadId, workload: &Workload) -> Option<Span> {
        let contract = workload.limit().map_or(workload.contract, |left| left.min(workload.contract));
        (workload.occupancy() == Occupancy::Allocated).then_some(contract)
    }

    /// Starts what may start now.
    fn decide(&mut self, desk: &mut Desk<'_>);

    /// When it wants to decide again even if nothing happens.
    fn next_wakeup(&self) -> Option<Time> {
        None
    }

    /// Starts a workload that waits in another pool, if it finds room here after [`Queue::decide`]; it is in no queue of this pool.
    fn guest(&mut self, id: WorkloadId, desk: &mut Desk<'_>) -> bool {
        let Some(choice) = desk.place(id) else { return false };
        desk.start(id, &choice, GUEST);
        true
    }
}

/// Why a workload starts in a pool that is not the first it accepts.
pub(super) const GUEST: &str = "another pool that it accepts has room";

/// What a queue sees of its pool when it decides, and how it starts work.
pub(super) struct Desk<'a> {
    pub(super) at: Time,
    pub(super) pool: PoolId,
    pub(super) cluster: &'a mut Cluster,
    pub(super) book: &'a mut Book,
    pub(super) tree: &'a Tree,
    pub(super) estimate: &'a Estimate,
    pub(super) guests: &'a mut Guests,
    pub(super) knobs: &'a Knobs,
    pub(super) log: &'a mut Vec<Entry>,
}

impl Desk<'_> {
    /// Nodes for a waiting workload among everything that is free.
    pub(super) fn place(&self, id: WorkloadId) -> Option<Choice> {
        let workload = self.book.get(id).expect("only waiting work is queued");
        self.cluster.place(self.cluster.free(0), &workload.spec.gang)
    }

    /// Changes whenever a decision could come out differently: something became free or was taken, or is expected to end at another time.
    pub(super) fn version(&self) -> u64 {
        self.cluster.free(0).version() + self.book.version()
    }

    /// Starts a waiting workload on the chosen nodes; the queue forgets it by itself.
    pub(super) fn start(&mut self, id: WorkloadId, choice: &Choice, rule: &'static str) {
        let gang = self.book.get(id).expect("only waiting work is queued").spec.gang;
        let placement = self.cluster.take(id, &gang, choice);
        self.guests.remove(self.book.get(id).expect("only waiting work is queued"));
        self.started(id, placement, Licence::Free, rule);
    }

    /// Starts a waiting workload on GPUs that were kept for it.
    pub(super) fn start_on(&mut self, id: WorkloadId, placement: &Placement, licence: Licence, rule: &'static str) {
        let gang = self.book.get(id).expect("only waiting work is queued").spec.gang;
        self.cluster.take_exactly(id, &gang, placement);
        self.started(id, placement.clone(), licence, rule);
    }

    fn started(&mut self, id: WorkloadId, placement: Placement, licence: Licence, rule: &'static str) {
        let workload = self.book.get(id).expect("only waiting work is queued");
        let occupancy = workload.occupancy();
        let end = self.at + workload.expected(self.estimate);
        let lease = self.book.start(self.at, id, placement.clone(), end, self.at + self.knobs.start_timeout);
        let why = Why::Rule(rule.into());
        self.log.push(Entry::Started { lease, pool: self.pool, occupancy, placement, licence, why });
    }
}

/// One pool.
pub(super) struct Pool<Q> {
    knobs: Knobs,
    pub(super) cluster: Cluster,
    pub(super) queue: Q,
}

/// A baseline with its order of starts.
pub(super) struct Baseline<Q> {
    estimate: Estimate,
    make_queue: Box<dyn Fn() -> Q>,
    pub(super) pools: Vec<Pool<Q>>,
    tree: Tree,
    pub(super) book: Book,
    pub(super) guests: Guests,
}

impl<Q: Queue> Baseline<Q> {
    /// A baseline without pools or budgets; every pool that comes gets a queue of its own.
    pub(super) fn new(make_queue: impl Fn() -> Q + 'static, estimate: Estimate) -> Baseline<Q> {
        let make_queue = Box::new(make_queue);
        Baseline { estimate, make_queue, pools: Vec::new(), tree: Tree::default(), book: Book::default(), guests: Guests::default() }
    }

    fn set_knobs(&mut self, pool: PoolId, knobs: Box<Knobs>, log: &mut Vec<Entry>) -> Result<(), Rejection> {
        let expected = PoolId(self.pools.len() as u16);
        match self.pools.get_mut(pool.index()) {
            Some(known) => known.knobs = (*knobs).clone(),
            None if pool == expected => {
                let queue = (self.make_queue)();
                self.pools.push(Pool { knobs: (*knobs).clone(), cluster: Cluster::default(), queue });
            }
            None => return Err(Rejection::PoolNumber { pool, expected }),
        }
        log.push(Entry::Policy { pool, knobs });
        Ok(())
    }

    fn submit(&mut self, id: WorkloadId, spec: Arc<WorkloadSpec>, log: &mut Vec<Entry>) -> Result<(), Rejection> {
        if self.book.knows(id) {
            return Err(Rejection::WorkloadKnown(id));
        }
        let first = spec.pools.iter().find(|pool| pool.index() >= self.pools.len());
        if let Some(unknown) = first {
            return Err(Rejection::PoolUnknown(unknown));
        }
        let (mut accepted, mut skipped) = (Vec::new(), Vec::new());
        for pool in spec.pools.iter() {
            match self.in_pool(&spec, pool) {
                Ok(terms) => accepted.push(terms),
                Err(rejection) => skipped.push((pool, rejection)),
            }
        }
        let Some(&InPool { pool, charged_gpus, min_runtime }) = accepted.first() else { return Err(skipped.swap_remove(0).1) };
        let class = request::class(&spec.gang, min_runtime, self.pools[pool.index()].cluster.gpus());
        let homes = accepted.iter().map(|terms| (terms.pool, terms.min_runtime)).collect();
        let (others, skipped) = (accepted[1..].into(), skipped.into());
        log.push(Entry::Submitted { workload: id, spec: spec.clone(), pool, charged_gpus, min_runtime, class, others, skipped });
        log.push(Entry::Eligible { workload: id, estimate: None });
        self.book.submit(id, spec, homes);
        self.enqueue(id);
        Ok(())
    }

    /// What a pool would give a workload, or why it never could take it.
    fn in_pool(&mut self, spec: &WorkloadSpec, id: PoolId) -> Result<InPool, Rejection> {
        let pool = &mut self.pools[id.index()];
        let terms = self.tree.terms(spec.budget, id)?;
        request::check(spec)?;
        let min_runtime = request::contract(spec, terms.min_runtime_max, &pool.knobs);
        if terms.claim.0 == 0 && min_runtime > Span::ZERO {
            return Err(Rejection::ZeroClaim { path: self.tree.path(spec.budget) });
        }
        let fit = pool.cluster.fit(&spec.gang);
        if fit.members_max < spec.gang.members {
            return Err(Rejection::GangNeverFits { pool: id, gang: spec.gang, members_max: fit.members_max });
        }
        Ok(InPool { pool: id, charged_gpus: Gpus(spec.gang.members * fit.charged_gpus), min_runtime })
    }

    /// A workload waits in the queue of the first pool that takes it, or until whom it yielded to has started.
    fn enqueue(&mut self, id: WorkloadId) {
        let first = self.book.get(id).expect("it was just put there").homes[0].0;
        self.book.settle_in(id, first);
        if self.pools.iter_mut().any(|pool| pool.queue.park(id)) {
            return;
        }
        let workload = self.book.get(id).expect("it was just put there");
        self.pools[first.index()].queue.push(id, workload, &self.estimate);
        self.guests.push(id, workload);
    }

    /// A waiting workload leaves its pool's queue.
    fn dequeue(&mut self, id: WorkloadId) {
        let workload = self.book.get(id).expect("the caller has seen it wait");
        if self.pools.iter_mut().any(|pool| pool.queue.unpark(id)) {
            return;
        }
        self.pools[workload.pool.index()].queue.remove(id, workload);
        self.guests.remove(workload);
    }

    fn hold(&mut self, id: WorkloadId, why: String, log: &mut Vec<Entry>) -> Result<(), Rejection> {
        if !matches!(self.book.get(id)?.phase, Phase::Waiting) {
            return Err(Rejection::WorkloadState { workload: id, message: "only waiting work can be held" });
        }
        self.dequeue(id);
        self.book.set_phase(id, Phase::Held);
        log.push(Entry::Held { workload: id, why });
        Ok(())
    }

    fn release(&mut self, id: WorkloadId, log: &mut Vec<Entry>) -> Result<(), Rejection> {
        if !matches!(self.book.get(id)?.phase, Phase::Held) {
            return Err(Rejection::WorkloadState { workload: id, message: "only held work can be released" });
        }
        self.book.set_phase(id, Phase::Waiting);
        self.enqueue(id);
        log.push(Entry::Eligible { workload: id, estimate: None });
        Ok(())
    }

    /// Its owner or an administrator ends a workload, wherever it is.
    fn withdraw(&mut self, at: Time, id: WorkloadId, why: Stop, log: &mut Vec<Entry>) -> Result<(), Rejection> {
        match self.book.get(id)?.phase {
            Phase::Leased(_) => self.stop(at, id, why, log),
            Phase::Waiting => {
                self.dequeue(id);
                self.end_waiting(id, &why, log);
            }
            Phase::Held => self.end_waiting(id, &why, log),
        }
        Ok(())
    }

    fn end_waiting(&mut self, id: WorkloadId, why: &Stop, log: &mut Vec<Entry>) {
        self.book.remove(id);
        let lost = Gpus(0).over(Span::ZERO);
        log.push(Entry::Ended { workload: id, attempt: None, outcome: Outcome::Cancelled, lost, by: stop::by(why) });
    }

    /// Tells a lease to stop, once: the first reason counts.
    pub(super) fn stop(&mut self, at: Time, id: WorkloadId, why: Stop, log: &mut Vec<Entry>) {
        let workload = self.book.get(id).expect("the caller has seen its lease");
        if workload.lease().is_none_or(|lease| lease.stop.is_some()) {
            return;
        }
        let knobs = &self.pools[workload.pool.index()].knobs;
        let grace = match (&why, workload.occupancy()) {
            (Stop::NodeLost(_), _) => Span::ZERO,
            (_, Occupancy::Allocated) => knobs.grace_allocated,
            (_, Occupancy::Unallocated) => knobs.grace_unallocated,
        };
        let lease = LeaseId { workload: id, attempt: workload.attempt };
        if let Stop::NodeCritical(node) = why {
            let why = Why::NodeCritical { node };
            log.push(Entry::Preempting { lease, claimant: None, node: Some(node), licence: Licence::Critical, stop_by: at, why });
        }
        log.push(Entry::Stopping { lease, grace });
        self.book.stop(id, why, at + grace);
    }

    fn run(&mut self, at: Time, lease: LeaseId, log: &mut Vec<Entry>) -> Result<(), Rejection> {
        let (workload, current) = self.book.leased(lease)?;
        if current.running.is_some() {
            return Err(Rejection::LeaseState { lease, message: "it already runs" });
        }
        let protects = self.pools[workload.pool.index()].queue.protects(lease.workload, workload);
        let protected_until = protects.map(|span| at + span);
        let end = if current.stop.is_some() { current.end } else { at + workload.expected(&self.estimate) };
        self.book.run(at, lease.workload, end);
        log.push(Entry::Running { lease, protected_until });
        Ok(())
    }

    fn bank(&mut self, at: Time, lease: LeaseId, log: &mut Vec<Entry>) -> Result<(), Rejection> {
        self.book.leased(lease)?;
        self.book.bank(at, lease.workload);
        log.push(Entry::Checkpoint { lease });
        Ok(())
    }

    fn end(&mut self, at: Time, lease: LeaseId, exit: Exit, log: &mut Vec<Entry>) -> Result<(), Rejection> {
        self.book.leased(lease)?;
        let ended = self.book.end(at, lease.workload);
        let workload = self.book.get(lease.workload)?;
        let outcome = stop::outcome(exit, ended.stop.as_ref());
        let lost = if outcome == Outcome::Completed { Gpus(0).over(Span::ZERO) } else { workload.loss(at, &ended) };
        let by = ended.stop.as_ref().map_or(By::Itself, stop::by);
        log.push(Entry::Ended { workload: lease.workload, attempt: Some(lease.attempt), outcome, lost, by });
        let again = match outcome {
            Outcome::StartTimeout => true,
            Outcome::NodeLost | Outcome::Preempted => workload.spec.on_preempt != OnPreempt::End,
            _ => false,
        };
        let again = again && workload.limit().is_none_or(|left| left > Span::ZERO);
        let pool = workload.pool;
        self.pools[pool.index()].cluster.release(lease.workload, &workload.spec.gang, &ended.placement);
        self.pools[pool.index()].queue.ended(lease.workload, workload);
        if again {
            log.push(Entry::Requeued { workload: lease.workload });
            self.enqueue(lease.workload);
        } else {
            self.book.remove(lease.workload);
        }
        for slot in ended.placement.iter() {
            self.drained(pool, slot.node, log);
        }
        Ok(())
    }

    /// A pool's queue, and what it sees when it decides.
    pub(super) fn desk<'a>(&'a mut self, at: Time, id: PoolId, log: &'a mut Vec<Entry>) -> (&'a mut Q, Desk<'a>) {
        let Pool { knobs, cluster, queue } = &mut self.pools[id.index()];
        let (book, tree, estimate) = (&mut self.book, &self.tree, &self.estimate);
        (queue, Desk { at, pool: id, cluster, book, tree, estimate, guests: &mut self.guests, knobs, log })
    }

    /// Stops what has run for its time limit or did not start in time, and corrects what was expected to have ended by now.
    fn settle(&mut self, at: Time, log: &mut Vec<Entry>) {
        while let Some(lease) = self.book.start_due(at) {
            let pool = self.book.get(lease.workload).expect("it has a lease").pool;
            self.stop(at, lease.workload, Stop::StartTimeout(self.pools[pool.index()].knobs.start_timeout), log);
        }
        while let Some(id) = self.book.due(at) {
            let workload = self.book.get(id).expect("it has a lease");
            let lease = workload.lease().expect("it has a lease");
            let limit = workload.limit_end().filter(|_| lease.stop.is_none() && lease.running.is_some());
            match (limit, workload.spec.time_limit) {
                (Some(end), Some(limit)) if end <= at => self.stop(at, id, Stop::TimeLimit(limit), log),
                // It does not keep to what was expected of it: twice as long, and never less than a second.
                _ => {
                    let twice = at + (at - lease.started).max(Span::seconds(1));
                    self.book.expect_end(id, limit.map_or(twice, |end| end.min(twice)));
                }
            }
        }
    }
}

impl<Q: Queue> Policy for Baseline<Q> {
    fn apply(&mut self, at: Time, event: Event, log: &mut Vec<Entry>) -> Result<(), Rejection> {
        match event {
            Event::KnobsSet { pool, knobs } => self.set_knobs(pool, knobs, log),
            Event::BudgetsChanged(change) => self.tree.change(change).map(|entry| log.push(entry)),
            Event::NodeJoined { node, spec } => self.join(node, spec, log),
            Event::NodeDrainRequested { node, severity, reason } => self.drain(at, node, severity, reason, log),
            Event::NodeRepairing { node } => self.set_node(node, NodeState::Repairing, "repair".into(), log).map(|_| ()),
            Event::NodeReady { node } => self.set_node(node, NodeState::Ready, "healthy".into(), log).map(|_| ()),
            Event::NodeLost { node } => self.lose(at, node, log),
            Event::Submitted { workload, spec } => self.submit(workload, spec, log),
            Event::Held { workload, why } => self.hold(workload, why, log),
            Event::Released { workload } => self.release(workload, log),
            Event::Cancelled { workload } => self.withdraw(at, workload, Stop::Owner, log),
            Event::Stopped { workload, reason } => self.withdraw(at, workload, Stop::Administrator(reason), log),
            // The engine says when the last of them runs.
            Event::MemberRunning { lease, .. } => self.book.leased(lease).map(|_| ()),
            Event::LeaseRunning { lease } => self.run(at, lease, log),
            Event::Checkpointed { lease } => self.bank(at, lease, log),
            Event::LeaseEnded { lease, exit } => self.end(at, lease, exit, log),
            // Nobody renews anything here.
            Event::Input { lease } => self.book.leased(lease).map(|_| ()),
            Event::Tick | Event::Gap { .. } => Ok(()),
        }
    }

    fn decide(&mut self, at: Time, log: &mut Vec<Entry>) {
        self.settle(at, log);
        let mut next: BTreeSet<u16> = (0..self.pools.len() as u16).collect();
        while let Some(number) = next.pop_first() {
            let (queue, mut desk) = self.desk(at, PoolId(number), log);
            queue.decide(&mut desk);
            for id in self.guests.take_back() {
                self.enqueue(id);
                next.insert(self.book.get(id).expect("it waits again").pool.0);
            }
        }
        self.seat_guests(at, log);
    }

    fn next_wakeup(&self) -> Option<Time> {
        self.pools.iter().filter_map(|pool| pool.queue.next_wakeup()).chain(self.book.next_due()).min()
    }
}
