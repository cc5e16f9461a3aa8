//! A workload's way: submitted, eligible, started, running, ended, waiting again.

use super::world::{Home, Id, Lease, Phase, Workload};
use super::{Auditor, Law};
use crate::log::line::{Checkpoint, Eligible, Ended, Held, Occupancy, Outcome, Requeued, Running, Started, Submitted};

impl Auditor {
    pub(super) fn submitted(&mut self, line: &Submitted) {
        self.findings.count().workloads += 1;
        if self.world.id(&line.workload).is_some() {
            self.findings.add(Law::Sequence, format!("{} is submitted again", line.workload), "each workload once");
            return;
        }
        let homes = self.homes(line);
        let Some(first) = homes.first().filter(|_| homes.len() == line.pools.len()).copied() else {
            let seen = format!("{} in budget {} and pools {:?}", line.workload, line.budget, line.pools);
            self.findings.add(Law::Sequence, seen, "a leaf of the tree and a known pool");
            return;
        };
        self.check_session(line);
        let id = self.world.add_workload(Workload {
            label: line.workload.clone(),
            leaf: first.leaf,
            pool: first.pool,
            asked: line.clone(),
            homes,
            attempts: 0,
            ran: 0,
            eligible_since: None,
            waiting_since: self.now(),
            was_early: false,
            phase: Phase::Out,
            barred_by: None,
            yielded_to: None,
        });
        self.check_open(id, "is submitted");
    }

    /// What a workload is in each of its pools, as far as these and its leaf are known.
    fn homes(&self, line: &Submitted) -> Vec<Home> {
        let first = line.pools.first().map(|pool| (pool, line.charged_gpus, line.min_runtime_ms));
        let others = line.others.iter().map(|other| (&other.pool, other.charged_gpus, other.min_runtime_ms));
        let home = |(pool, charged_gpus, min_runtime_ms): (&String, u32, i64)| {
            let pool = self.world.pools.find(pool)?;
            let leaf = self.world.budget(pool, &line.budget).filter(|budget| self.world.budgets.rows[*budget].is_leaf)?;
            Some(Home { pool, leaf, charged_gpus, min_runtime_ms })
        };
        first.into_iter().chain(others).filter_map(home).collect()
    }

    pub(super) fn eligible(&mut self, line: &Eligible) {
        let Some(id) = self.known(&line.workload) else { return };
        let now = self.now();
        let workload = self.world.workloads.get_mut(&id).expect("known");
        if !matches!(workload.phase, Phase::Out) {
            self.findings.add(Law::Sequence, format!("{} becomes eligible", line.workload), "it was new or held");
            return;
        }
        workload.phase = Phase::Waiting;
        // Released work begins to wait anew.
        workload.eligible_since = Some(now);
        workload.waiting_since = now;
        self.queue(id);
        self.check_open(id, "becomes eligible");
    }

    pub(super) fn held(&mut self, line: &Held) {
        let Some(id) = self.known(&line.workload) else { return };
        self.unqueue(id);
        self.promises.given_up.insert(id);
        let workload = self.world.workloads.get_mut(&id).expect("known");
        if matches!(workload.phase, Phase::Out | Phase::Waiting) {
            workload.phase = Phase::Out;
        } else {
            self.findings.add(Law::Sequence, format!("{} is held", line.workload), "only waiting work is held");
        }
    }

    pub(super) fn started(&mut self, line: &Started) {
        self.findings.count().starts += 1;
        let Some(id) = self.known(&line.workload) else { return };
        let workload = &self.world.workloads[&id];
        if !workload.is_waiting() || line.attempt != workload.attempts + 1 {
            let seen = format!("attempt {} of {} starts after attempt {}", line.attempt, line.workload, workload.attempts);
            self.findings.add(Law::Sequence, seen, "waiting, eligible work starts its next attempt");
            // An attempt that is out of order is still counted on; one that holds GPUs already cannot be kept twice.
            if !workload.is_waiting() {
                return;
            }
        }
        let pool = self.world.pools.find(&line.pool);
        let Some(place) = workload.homes.iter().position(|home| Some(home.pool) == pool) else {
            self.findings.add(Law::Node, format!("{} starts in pool {}", line.workload, line.pool), "a pool that it accepts");
            return;
        };
        self.world.workloads.get_mut(&id).expect("known").settle_in(pool.expect("just found"));
        let workload = &self.world.workloads[&id];
        if place > 0 && !self.world.holds.contains_key(&id) {
            self.instant.fell_back.push((id, place));
        }
        let is_early = workload.may_be_early() && line.occupancy == Occupancy::Unallocated;
        if line.occupancy != workload.occupancy() && !is_early {
            let seen = format!("{} with a contract of {} ms starts {:?}", line.workload, workload.asked.min_runtime_ms, line.occupancy);
            self.findings.add(Law::Contract, seen, "allocated with a contract, unallocated without");
        }
        let slots = self.check_placement(id, &line.placement, &line.workload);
        // Before its turn it starts only where it could be promoted.
        self.check_nodes(id, &slots);
        if is_early {
            self.check_early(id);
        }
        if !self.world.holds.contains_key(&id) {
            self.check_caps(id, line.occupancy);
            self.check_express_bound(id, &slots);
            self.check_backfill(id, slots.iter().map(|(node, _)| *node));
        }
        // What is held for it is charged to the ancestors that it had then.
        let line_of_hold = self.world.holds.get(&id).map(|hold| hold.line.clone());
        let line_of_leaf = || self.world.line(self.world.workloads[&id].leaf).collect();
        let charged_to = line_of_hold.unwrap_or_else(line_of_leaf);
        self.check_open(id, "starts");
        self.check_entry(id, line.licence, &slots);
        self.begin_lease(id, line, slots, charged_to);
        self.begin_in_doubt(id);
        if is_early {
            // It waits for its turn where it runs.
            self.ask(id, |other| Some(other) == pool);
        }
    }

    fn begin_lease(&mut self, id: Id, line: &Started, slots: super::world::Slots, charged_to: Vec<usize>) {
        let now = self.now();
        self.unqueue(id);
        self.world.assign(&slots, Some(id), now);
        let start_timeout = self.start_timeout(id);
        let workload = self.world.workloads.get_mut(&id).expect("known");
        workload.attempts = line.attempt;
        (workload.barred_by, workload.yielded_to) = (None, None);
        let lease = Lease {
            line: charged_to.clone(),
            attempt: line.attempt,
            occupancy: line.occupancy,
            slots,
            since: now,
            running_since: None,
            has_input: false,
            promoted_at: None,
            protected_until: None,
            contract: workload.contract(),
            start_timeout,
            last_checkpoint: None,
            is_doubted: false,
            plan: None,
            stopping_since: None,
            is_start_timed_out: false,
            stop_grace: 0,
            is_struck: false,
        };
        let (leaf, gpus) = (workload.leaf, workload.counted(line.occupancy));
        workload.phase = Phase::Leased(Box::new(lease));
        self.world.list_lease(&charged_to, id, true);
        self.world.count_use(&charged_to, line.occupancy, gpus);
        self.instant.started.insert(id);
        self.service.note_start(leaf);
        match line.occupancy {
            Occupancy::Allocated => self.open_bill(id),
            Occupancy::Unallocated => self.findings.count().starts_unallocated += 1,
        }
    }

    pub(super) fn running(&mut self, line: &Running) {
        let Some(id) = self.leased(&line.workload, line.attempt, "runs") else { return };
        let now = self.now();
        let cap = self.contract_cap(id);
        if self.is_start_late(id) {
            let nodes: Vec<usize> = self.world.lease(id).expect("leased").slots.iter().map(|(node, _)| *node).collect();
            self.excuse(nodes.into_iter());
        }
        let lease = self.world.lease_mut(id).expect("leased");
        if lease.running_since.replace(now).is_some() {
            self.findings.add(Law::Sequence, format!("{} runs for the second time", line.workload), "once an attempt");
            return;
        }
        lease.protected_until = line.protected_until_ms;
        let full = now + lease.contract;
        // A cap that was lowered since the submission may have shortened the contract, never the protection of what runs.
        let may_be = match lease.occupancy {
            Occupancy::Unallocated => [None, None],
            // Who was told to stop while it started gets no protection any more.
            Occupancy::Allocated if lease.plan.is_some() || lease.stopping_since.is_some() => [None, Some(full)],
            Occupancy::Allocated => [Some(full), Some(full.min(now + cap))],
        };
        if !may_be.contains(&line.protected_until_ms) {
            let seen = format!("{} is protected until {:?}", line.workload, line.protected_until_ms);
            self.findings.add(Law::Contract, seen, format!("{:?}", may_be[0]));
        }
    }

    /// The pool's start timeout now.
    pub(super) fn start_timeout(&self, id: Id) -> i64 {
        self.world.knobs(self.world.workloads[&id].pool).map_or(0, |knobs| knobs.start_timeout_ms)
    }

    /// Whether a lease does not run yet and its start timeout is over.
    pub(super) fn is_start_late(&self, id: Id) -> bool {
        let (now, timeout) = (self.now(), self.start_timeout(id));
        self.world.lease(id).is_some_and(|lease| lease.running_since.is_none() && now - lease.since >= lease.start_timeout.min(timeout))
    }

    /// The longest contract that its pool and its budgets allow now.
    fn contract_cap(&self, id: Id) -> i64 {
        let workload = &self.world.workloads[&id];
        let end = workload.asked.on_preempt == crate::log::line::OnPreempt::End;
        let of_pool =
            self.world.knobs(workload.pool).map_or(i64::MAX, |knobs| if end { knobs.end_max_ms } else { knobs.min_runtime_max_ms });
        let of_budgets = self.world.line(workload.leaf).filter_map(|budget| self.world.budgets.rows[budget].min_runtime_max).min();
        of_pool.min(of_budgets.unwrap_or(i64::MAX)).min(i64::MAX / 2)
    }

    pub(super) fn checkpoint(&mut self, line: &Checkpoint) {
        let Some(id) = self.leased(&line.workload, line.attempt, "banks") else { return };
        let now = self.now();
        let lease = self.world.lease_mut(id).expect("leased");
        lease.last_checkpoint = Some(now);
        if lease.running_since.is_none() {
            self.findings.add(Law::Sequence, format!("{} banks while it starts", line.workload), "running work banks");
        }
    }

    pub(super) fn ended(&mut self, line: &Ended) {
        match line.attempt {
            Some(attempt) => {
                let Some(id) = self.leased(&line.workload, attempt, "ends") else { return };
                self.check_outcome(id, line);
                self.end_lease(id, line.outcome);
            }
            None => {
                let Some(id) = self.known(&line.workload) else { return };
                if self.world.lease(id).is_some() {
                    self.findings.add(Law::Sequence, format!("{} ends while it waits", line.workload), "it has a lease: name the attempt");
                    return;
                }
                self.unqueue(id);
                self.promises.given_up.insert(id);
                self.world.workloads.get_mut(&id).expect("known").phase = Phase::Gone;
                self.instant.ended.insert(id);
            }
        }
    }

    fn end_lease(&mut self, id: Id, outcome: Outcome) {
        let now = self.now();
        let goes_on = matches!(outcome, Outcome::Preempted | Outcome::NodeLost | Outcome::StartTimeout);
        let phase = if goes_on {
            Phase::Between(outcome, self.world.lease(id).is_some_and(|lease| lease.running_since.is_some()))
        } else {
            Phase::Gone
        };
        let workload = self.world.workloads.get_mut(&id).expect("leased");
        let Phase::Leased(lease) = std::mem::replace(&mut workload.phase, phase) else { return };
        let gpus = workload.counted(lease.occupancy);
        let overstayed = lease.stopping_since.is_some_and(|since| now > since + lease.stop_grace);
        let ran = lease.running_since.map_or(0, |since| now - since);
        workload.ran += ran;
        if outcome == Outcome::NodeLost || lease.is_struck {
            // The infrastructure ended it, whoever was to have its GPUs.
            workload.barred_by = None;
        }
        workload.was_early = workload.is_allocated() && lease.occupancy == Occupancy::Unallocated;
        self.note_run(id, lease.attempt, outcome, ran);
        self.ask(id, |_| false);
        self.world.planned.remove(&id);
        self.world.assign(&lease.slots, None, now);
        self.world.list_lease(&lease.line, id, false);
        self.world.count_use(&lease.line, lease.occupancy, -gpus);
        self.close_bill(id, lease.attempt, outcome);
        if overstayed {
            self.excuse(lease.slots.iter().map(|(node, _)| *node));
        }
        self.leave_hold(id, lease.plan.and_then(|plan| plan.claimant));
        self.instant.ended.insert(id);
    }

    fn check_outcome(&mut self, id: Id, line: &Ended) {
        let (now, workload) = (self.now(), &self.world.workloads[&id]);
        let lease = self.world.lease(id).expect("leased");
        let ran = workload.ran + lease.running_since.map_or(0, |since| now - since);
        // Judged at the signal: within the grace its members may all run after all. Without a signal, now.
        let is_late = if lease.stopping_since.is_some() { lease.is_start_timed_out } else { self.is_start_late(id) };
        let (law, holds, expected) = match line.outcome {
            Outcome::Preempted if lease.plan.is_none() && !lease.is_struck && lease.is_protected(now) => {
                (Law::Protection, false, "nothing takes a protected lease without a plan that may")
            }
            Outcome::Preempted => (Law::Sequence, lease.plan.is_some() || lease.is_struck, "a plan to preempt it came before"),
            Outcome::TimedOut => {
                (Law::Contract, workload.asked.time_limit_ms.is_some_and(|limit| ran >= limit), "its time limit is reached")
            }
            Outcome::StartTimeout => {
                (Law::Contract, is_late, "it was still starting after the whole start timeout when it was told to stop")
            }
            Outcome::Completed | Outcome::Failed | Outcome::Cancelled | Outcome::NodeLost => return,
        };
        if !holds {
            self.findings.add(
                law,
                format!("attempt {} of {} ends as {:?} after running for {ran} ms", lease.attempt, workload.label, line.outcome),
                expected,
            );
        }
    }

    pub(super) fn requeued(&mut self, line: &Requeued) {
        let (Some(id), now) = (self.known(&line.workload), self.now()) else { return };
        let workload = self.world.workloads.get_mut(&id).expect("known");
        let Phase::Between(outcome, has_run) = workload.phase else {
            self.findings.add(
                Law::Requeue,
                format!("{} waits again", line.workload),
                "its attempt was preempted or failed by the infrastructure",
            );
            return;
        };
        workload.phase = Phase::Waiting;
        if !workload.was_early {
            workload.waiting_since = now;
        }
        // What never ran has nothing to go on with, and loses nothing.
        if outcome == Outcome::Preempted && has_run && !workload.can_go_on() {
            self.findings.add(Law::Requeue, format!("{} waits again after it was preempted", line.workload), "it cannot go on");
        }
        self.queue(id);
    }

    /// Preempted work that can go on waits again in the same instant.
    pub(super) fn check_requeues(&mut self) {
        for id in self.instant.ended.clone() {
            let Some(workload) = self.world.workloads.get_mut(&id) else { continue };
            if let Phase::Between(outcome, _) = workload.phase {
                workload.phase = Phase::Gone;
                if workload.can_go_on() {
                    self.findings.add(Law::Requeue, format!("{} ended as {outcome:?} and is gone", workload.label), "it waits again");
                }
            }
        }
    }

    pub(super) fn forget_if_gone(&mut self, id: Id) {
        if matches!(self.world.workloads.get(&id), Some(Workload { phase: Phase::Gone, .. })) {
            // It had none, or the log is wrong and that was said.
            self.close_hold(id);
            self.world.remove_workload(id);
        }
    }
}
