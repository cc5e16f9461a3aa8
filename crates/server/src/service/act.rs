//! What follows from the scheduler's entries: lines of the log, views of workloads, charges, and commands for the engine.

use super::Service;
use super::live::program;
use super::losses::losses;
use crate::driver::{Command, Launch, Member};
use crate::store::{Charge, Line};
use crate::wire::workload::{State, Workload};
use std::sync::Arc;
use stipend_core::entry::{By, ChargeKind, Entry, Occupancy, Outcome, Placement};
use stipend_core::explain::{Names, Why};
use stipend_core::id::{LeaseId, PoolId, WorkloadId};
use stipend_core::quantity::{GpuMs, Span, Time};
use stipend_sim::log;
use stipend_sim::log::line::LogEvent;

impl Service {
    /// Acts on all new entries, and on what follows from them.
    pub(super) fn act(&mut self) {
        while !self.log.is_empty() {
            for (at, entry) in std::mem::take(&mut self.log) {
                self.line(at, &entry);
                self.on(at, entry);
            }
            self.open_gates();
        }
    }

    /// The entry as a line of the event log.
    fn line(&mut self, at: Time, entry: &Entry) {
        let mut event = log::event(entry, &self.labels());
        if let (LogEvent::Submitted(submitted), Entry::Submitted { workload, .. }) = (&mut event, entry) {
            submitted.name = self.live.get(workload.0).map(|live| live.view.name.clone()).filter(|name| !name.is_empty());
        }
        let name = event.name().to_string();
        let whole = log::line::Line { v: (self.next_line == 1).then_some(log::line::VERSION), t_ms: at.0, event };
        let json = serde_json::to_string(&whole).expect("a line is plain data");
        let line = Line { seq: self.next_line, t_ms: at.0, event: name, workload: workload_of(entry).map(|id| id.0), json };
        self.next_line += 1;
        self.batch.lines.push(line);
    }

    fn on(&mut self, at: Time, entry: Entry) {
        match entry {
            Entry::Submitted { workload, min_runtime, pool, .. } => {
                let pool = self.labels().pool(pool);
                self.change(workload, |view| (view.min_runtime_ms, view.pool) = (min_runtime.0, pool));
            }
            Entry::Eligible { workload, .. } => {
                self.waits(workload);
                self.change(workload, |view| view.why = None);
            }
            Entry::Requeued { workload } => {
                self.waits(workload);
                self.pause_after_losses(workload);
            }
            Entry::Held { workload, why } => self.change(workload, |view| (view.state, view.why) = (State::Held, Some(why))),
            Entry::Started { lease, pool, occupancy, placement, why, .. } => self.started(at, lease, pool, occupancy, &placement, &why),
            Entry::Running { lease, protected_until } => {
                self.change(lease.workload, |view| view.state = if view.state == State::Starting { State::Running } else { view.state });
                self.protected(lease, protected_until);
            }
            Entry::Promoted { lease, protected_until, why } => {
                let why = why.text(&self.labels());
                self.change(lease.workload, |view| (view.allocated, view.why) = (true, Some(why)));
                self.protected(lease, protected_until);
            }
            Entry::Renewed { lease, protected_until, .. } => self.protected(lease, Some(protected_until)),
            Entry::Preempting { lease, why, .. } => {
                let why = why.text(&self.labels());
                if let Some(live) = self.live.change(lease.workload.0) {
                    (live.view.why, live.leaving) = (Some(why), Some(lease.attempt));
                }
            }
            Entry::Stopping { lease, grace } => {
                self.stopping(at, lease);
                self.commands.push(Command::Stop { lease, grace });
            }
            Entry::Spared { lease } => self.change(lease.workload, |view| view.why = None),
            Entry::Ended { workload, attempt, outcome, by, .. } => {
                let why = match outcome {
                    Outcome::Completed => None,
                    // It was told with the plan, in more words.
                    Outcome::Preempted => self.live.get(workload.0).and_then(|live| live.view.why.clone()),
                    _ if by == By::Itself => Some("it ended by itself".into()),
                    _ => Some(by.text(&self.labels())),
                };
                self.ended(at, (workload, attempt), (outcome, &by), why);
            }
            Entry::Charged { workload, budget, pool, kind, from, to, gpu_ms, .. } => {
                self.charge(workload, (budget.0, pool), kind, (from, to), gpu_ms);
            }
            Entry::Refunded { workload, budget, pool, kind, from, to, gpu_ms, .. } => {
                self.charge(workload, (budget.0, pool), kind, (from, to), GpuMs(-gpu_ms.0));
            }
            Entry::Node { node, spec, state, drain_until, reason } => self.node_changed(node, &spec, state, drain_until, reason),
            _ => {}
        }
    }

    fn change(&mut self, id: WorkloadId, change: impl FnOnce(&mut Workload)) {
        if let Some(live) = self.live.change(id.0) {
            change(&mut live.view);
        }
    }

    fn waits(&mut self, id: WorkloadId) {
        if let Some(live) = self.live.change(id.0) {
            (live.is_over, live.launch) = (false, None);
            (live.view.state, live.view.protected_until_ms, live.view.ended_ms) = (State::Waiting, None, None);
        }
    }

    /// It is told to stop: why it started is no reason any more. What a plan does not tell is its owner's doing, or that of the clock.
    fn stopping(&mut self, at: Time, lease: LeaseId) {
        let Some(live) = self.live.change(lease.workload.0) else { return };
        let (cancelled, view) = (live.cancelled_by.take(), &mut live.view);
        if live.leaving != Some(lease.attempt) {
            let ran = view.ran_ms + view.started_ms.map_or(0, |started| at.0 - started);
            view.why = match cancelled {
                Some(user) => Some(format!("{user} cancelled it")),
                None if view.time_limit_ms.is_some_and(|limit| ran >= limit) => Some("it reached its time limit".into()),
                None if view.state == State::Starting => Some("not all of its members ran in time".into()),
                None => None,
            };
        }
        view.state = State::Stopping;
    }

    fn started(&mut self, at: Time, lease: LeaseId, pool: PoolId, occupancy: Occupancy, placement: &Placement, why: &Why) {
        let why = why.text(&self.labels());
        let pool = self.labels().pool(pool);
        let slots: Vec<(String, Vec<u8>)> = {
            let labels = self.labels();
            placement.iter().map(|slot| (labels.node(slot.node), gpus(slot.gpus.0))).collect()
        };
        let Some(live) = self.live.change(lease.workload.0) else { return };
        let view = &mut live.view;
        (view.state, view.started_ms, view.attempts, view.why) = (State::Starting, Some(at.0), lease.attempt, Some(why));
        (view.allocated, view.pool, view.protected_until_ms) = (occupancy == Occupancy::Allocated, pool, None);
        view.placement = slots.into_iter().collect();
        (view.exit_code, view.idle_since_ms, view.retry_ms) = (None, None, None);
        self.launch(lease);
    }

    /// Commands the engine to start a lease, or to say what became of it.
    pub(super) fn launch(&mut self, lease: LeaseId) {
        let Some(launch) = self.launch_of(lease) else { return };
        if let Some(live) = self.live.change(lease.workload.0) {
            live.launch = Some(launch.clone());
        }
        self.commands.push(Command::Launch(launch));
    }

    fn launch_of(&self, lease: LeaseId) -> Option<Box<Launch>> {
        let live = self.live.get(lease.workload.0)?;
        if let Some(launch) = live.launch.as_ref().filter(|launch| launch.lease == lease) {
            return Some(launch.clone());
        }
        let submission = match &live.submission {
            Some(submission) => Arc::clone(submission),
            None => Arc::new(self.reader.workload(live.view.id).ok()??.submission?),
        };
        let view = &live.view;
        Some(Box::new(Launch {
            lease,
            epoch: self.epoch,
            program: Arc::new(program(&submission, view, self.config.run_as)),
            members: members(view),
            user: view.user.clone(),
            budget: view.budget.clone(),
            pool: view.pool.clone(),
            cpus_per_member: submission.cpus.unwrap_or(0),
            memory_per_member: submission.memory_gib.unwrap_or(0) << 30,
            contract: if view.allocated { Span(view.min_runtime_ms) } else { Span::ZERO },
        }))
    }

    fn protected(&mut self, lease: LeaseId, until: Option<Time>) {
        self.change(lease.workload, |view| view.protected_until_ms = until.map(|until| until.0));
        self.commands.push(Command::Protected { lease, until });
    }

    fn ended(&mut self, at: Time, (id, attempt): (WorkloadId, Option<u32>), (outcome, by): (Outcome, &By), why: Option<String>) {
        let Some(live) = self.live.change(id.0) else { return };
        let view = &mut live.view;
        view.state = match outcome {
            Outcome::Completed => State::Completed,
            Outcome::Cancelled => State::Cancelled,
            Outcome::TimedOut => State::TimedOut,
            Outcome::Failed | Outcome::Preempted | Outcome::NodeLost | Outcome::StartTimeout => State::Failed,
        };
        view.preemptions += u32::from(outcome == Outcome::Preempted);
        view.losses = losses(view, at, outcome == Outcome::NodeLost && *by == By::Itself);
        (view.ended_ms, view.protected_until_ms, view.idle_since_ms) = (Some(at.0), None, None);
        view.why = why;
        live.is_over = true;
        self.over.push(id.0);
        if let Some(attempt) = attempt {
            live.view.ran_ms += live.view.started_ms.map_or(0, |started| at.0 - started);
            self.commands.push(Command::Forget { lease: LeaseId { workload: id, attempt } });
        }
    }

    fn charge(&mut self, workload: WorkloadId, to: (u32, PoolId), kind: ChargeKind, when: (Time, Time), gpu_ms: GpuMs) {
        let user = self.live.get(workload.0).and_then(|live| self.directory.find(crate::store::Kind::User, &live.view.user));
        self.batch.charges.push(Charge {
            budget: to.0,
            pool: to.1.0,
            user: user.unwrap_or(u32::MAX),
            from_ms: when.0.0,
            to_ms: when.1.0,
            gpu_ms: gpu_ms.0,
            run: kind == ChargeKind::Run,
        });
    }
}

/// A gang's members in the order of ranks: a node may carry several.
fn members(view: &Workload) -> Vec<Member> {
    let member = |node: &String, gpus: &[u8]| Member { node: node.clone(), gpus: gpus.iter().map(|gpu| u32::from(*gpu)).collect() };
    let per_member = view.gpus_per_member.max(1) as usize;
    view.placement.iter().flat_map(|(node, gpus)| gpus.chunks(per_member).map(move |gpus| member(node, gpus))).collect()
}

/// The indexes of a set of GPUs.
fn gpus(bits: u64) -> Vec<u8> {
    (0..64).filter(|gpu| bits >> gpu & 1 == 1).collect()
}

/// The workload that an entry is about.
fn workload_of(entry: &Entry) -> Option<WorkloadId> {
    match entry {
        Entry::Submitted { workload, .. }
        | Entry::Eligible { workload, .. }
        | Entry::Held { workload, .. }
        | Entry::Doubted { workload, .. }
        | Entry::Reserved { workload, .. }
        | Entry::Unreserved { workload, .. }
        | Entry::Ended { workload, .. }
        | Entry::Requeued { workload }
        | Entry::Charged { workload, .. }
        | Entry::Refunded { workload, .. } => Some(*workload),
        Entry::Started { lease, .. }
        | Entry::Running { lease, .. }
        | Entry::Promoted { lease, .. }
        | Entry::Renewed { lease, .. }
        | Entry::Input { lease }
        | Entry::Checkpoint { lease }
        | Entry::Preempting { lease, .. }
        | Entry::Stopping { lease, .. }
        | Entry::Spared { lease } => Some(lease.workload),
        Entry::Hold { claimant, .. } | Entry::Unhold { claimant, .. } => Some(*claimant),
        Entry::Policy { .. }
        | Entry::Node { .. }
        | Entry::Budgets { .. }
        | Entry::Gap { .. }
        | Entry::Refused { .. }
        | Entry::Granted { .. }
        | Entry::Lapsed { .. } => None,
    }
}
