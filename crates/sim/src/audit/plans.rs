//! Plans to preempt: who may take what, in what time, and never in circles.

use super::world::{Id, Plan};
use super::{Auditor, Law};
use crate::log::line::{Licence, Occupancy, OnPreempt, Preempting, Severity, Spared, State, Stopping};

impl Auditor {
    pub(super) fn preempting(&mut self, line: &Preempting) {
        self.findings.count().preemptions += 1;
        let Some(victim) = self.leased(&line.workload, line.attempt, "is preempted") else { return };
        let (now, lease) = (self.now(), self.world.lease(victim).expect("leased"));
        let by_force = matches!(line.licence, Licence::Critical | Licence::Administrator);
        if lease.is_protected(now) && !by_force {
            let seen = format!("{} is preempted by licence {:?}, protected until {:?}", line.workload, line.licence, lease.protected_until);
            self.findings.add(Law::Protection, seen, "a protected lease goes on");
        }
        if lease.plan.is_some() && line.claimant.is_some() {
            self.findings.add(Law::Sequence, format!("{} is preempted twice", line.workload), "a gang is stopped once");
        }
        if lease.since == now && !by_force {
            self.findings.add(
                Law::Chain,
                format!("{} is preempted in the instant in which it started", line.workload),
                "no chain of evictions inside an instant",
            );
        }
        let claimant = match &line.claimant {
            Some(label) => {
                let Some(claimant) = self.known(label) else { return };
                self.check_claimant(claimant, victim, line);
                self.note_eviction(victim);
                Some(claimant)
            }
            None => {
                self.check_without_claimant(victim, line);
                None
            }
        };
        self.check_stop_by(victim, line);
        self.record_plan(victim, claimant, line);
    }

    fn record_plan(&mut self, victim: Id, claimant: Option<Id>, line: &Preempting) {
        self.instant.preempted.insert(victim);
        let grace = self.grace(victim);
        let lease = self.world.lease_mut(victim).expect("leased");
        lease.plan = Some(Plan { claimant, licence: line.licence, stop_by: line.stop_by_ms, grace });
        self.world.planned.insert(victim);
        let Some(claimant) = claimant else { return };
        self.findings.count().preemptions_for_claimants += 1;
        let workload = self.world.workloads.get_mut(&victim).expect("leased");
        (workload.barred_by, workload.yielded_to) = (Some(claimant), Some(claimant));
        self.instant.planned.entry(claimant).or_default().push((victim, line.licence));
        self.join_hold(claimant, victim, line.licence);
        self.check_swap(claimant, victim);
    }

    /// Only waiting allocated work takes GPUs, by a licence whose conditions hold.
    fn check_claimant(&mut self, claimant: Id, victim: Id, line: &Preempting) {
        let pool = self.world.workloads[&victim].pool;
        self.world.workloads.get_mut(&claimant).expect("known").settle_in(pool);
        let (by, of) = (&self.world.workloads[&claimant], &self.world.workloads[&victim]);
        let lease = self.world.lease(victim).expect("leased");
        let knobs = self.world.knobs(by.pool);
        let waits = self.now() - by.eligible_since.unwrap_or(self.now());
        let expected = if !by.is_waiting() || claimant == victim {
            Some("the claimant is other, eligible, waiting work")
        } else if !by.is_allocated() {
            Some("unallocated work takes no allocated lease and evicts nobody")
        } else {
            let allocated = lease.occupancy == Occupancy::Allocated;
            let in_turn = by.asked.priority > of.asked.priority
                || (of.asked.on_preempt == OnPreempt::Resume
                    && by.eligible_since < of.eligible_since
                    && knobs.is_some_and(|knobs| waits >= knobs.age_min_ms));
            let on_express = lease.slots.iter().all(|(node, _)| self.world.nodes.rows[*node].express);
            match line.licence {
                Licence::Unallocated if allocated => Some("licence unallocated takes unallocated work"),
                Licence::Share | Licence::Tree if !allocated || by.leaf == of.leaf => {
                    Some("share and tree take allocated leases of another leaf")
                }
                Licence::OwnLeaf if !allocated || by.leaf != of.leaf || !in_turn => {
                    Some("own_leaf takes lower priority, or by age what can resume")
                }
                Licence::Express if !allocated || !on_express || !self.fits_express(by) => {
                    Some("express takes past-contract leases on express nodes for short contracts")
                }
                Licence::Reservation | Licence::Unallocated | Licence::Share | Licence::Tree | Licence::OwnLeaf | Licence::Express => None,
                Licence::Free | Licence::Drain | Licence::Critical | Licence::Administrator => Some("a licence that a claimant can have"),
            }
        };
        let on_chain = self.instant.preempted.contains(&claimant);
        let (claims, is_taken) = (by.label.clone(), of.label.clone());
        if let Some(expected) = expected {
            self.findings.add(Law::Licence, format!("{claims} takes {is_taken} by licence {:?}", line.licence), expected);
        } else if matches!(line.licence, Licence::Share | Licence::Tree) {
            self.check_standing(claimant, victim, line.licence, true);
            self.note_loss(claimant, victim, line.licence);
        } else if line.licence == Licence::OwnLeaf {
            self.note_loss(claimant, victim, line.licence);
        } else if line.licence == Licence::Reservation {
            self.check_reservation(claimant, victim, line);
        }
        if self.world.workloads[&claimant].asked.members == 1
            && let Some(node) = self.free_node_for(claimant, self.world.workloads[&claimant].pool)
        {
            let seen = format!("{claims} takes {is_taken} beside free GPUs of {}", self.world.nodes.rows[node].label);
            self.findings.add(Law::Minimal, seen, "free GPUs that fit come first");
        }
        if on_chain {
            self.findings.add(
                Law::Chain,
                format!("{claims} is preempted and takes {is_taken} in one instant"),
                "the preempted claim nothing in this instant",
            );
        }
    }

    fn check_without_claimant(&mut self, victim: Id, line: &Preempting) {
        let node = line.node.as_ref().and_then(|node| self.world.nodes.find(node));
        let lease = self.world.lease(victim).expect("leased");
        let row = node.map(|node| &self.world.nodes.rows[node]);
        let is_there = node.is_some_and(|node| lease.slots.iter().any(|(held, _)| *held == node));
        let is_so = match line.licence {
            Licence::Administrator => true,
            Licence::Drain => is_there && row.is_some_and(|row| row.state == State::Draining),
            Licence::Critical => is_there && row.is_some_and(|row| row.state == State::Lost || row.severity == Some(Severity::Critical)),
            _ => false,
        };
        if !is_so {
            let seen = format!("{} is preempted without a claimant by licence {:?} of node {:?}", line.workload, line.licence, line.node);
            self.findings.add(Law::Licence, seen, "a drain or the loss of one of its nodes, or an administrator");
        }
    }

    /// The signal may wait for a checkpoint where the knob allows it, and no longer.
    fn check_stop_by(&mut self, victim: Id, line: &Preempting) {
        let now = self.now();
        let Some(knobs) = self.world.knobs(self.world.workloads[&victim].pool) else { return };
        let latest = match line.claimant {
            Some(_) => (now + knobs.checkpoint_wait_max_ms + self.grace(victim)).max(self.date_of(line.claimant.as_deref())),
            None => i64::MAX,
        };
        if line.stop_by_ms < now || line.stop_by_ms > latest {
            self.findings.add(
                Law::Signal,
                format!("{} is to be stopped by {} ms", line.workload, line.stop_by_ms),
                format!("{now} to {latest} ms"),
            );
        }
    }

    /// The date of a claimant that has a promise: what is on its nodes leaves by then, and need not leave before.
    fn date_of(&self, claimant: Option<&str>) -> i64 {
        let id = claimant.and_then(|label| self.world.id(label));
        let promise = self.promises.open.values().find(|promise| Some(promise.workload) == id);
        promise.map_or(i64::MIN, |promise| promise.latest_start)
    }

    /// The pool's grace for this lease.
    fn grace(&self, victim: Id) -> i64 {
        let knobs = self.world.knobs(self.world.workloads[&victim].pool);
        let allocated = self.world.lease(victim).is_some_and(|lease| lease.occupancy == Occupancy::Allocated);
        knobs.map_or(0, |knobs| if allocated { knobs.grace_allocated_ms } else { knobs.grace_unallocated_ms })
    }

    pub(super) fn stopping(&mut self, line: &Stopping) {
        let Some(id) = self.leased(&line.workload, line.attempt, "is stopped") else { return };
        let (now, grace, is_late) = (self.now(), self.grace(id), self.is_start_late(id));
        let lease = self.world.lease_mut(id).expect("leased");
        lease.is_start_timed_out |= is_late;
        let by_force = lease.plan.as_ref().is_some_and(|plan| matches!(plan.licence, Licence::Critical | Licence::Administrator));
        let again = lease.stopping_since.replace(now).is_some();
        lease.stop_grace = line.grace_ms;
        if again && !by_force {
            self.findings.add(Law::Signal, format!("{} is stopped again", line.workload), "one stop signal an attempt");
        }
        let planned = lease.plan.as_ref().map_or(grace, |plan| plan.grace);
        let is_shortened = by_force && (0..=grace.max(planned)).contains(&line.grace_ms);
        if line.grace_ms != grace && line.grace_ms != planned && !is_shortened {
            self.findings.add(Law::Signal, format!("{} has a grace of {} ms", line.workload, line.grace_ms), format!("{grace} ms"));
        }
    }

    pub(super) fn spared(&mut self, line: &Spared) {
        let Some(id) = self.leased(&line.workload, line.attempt, "is spared") else { return };
        let lease = self.world.lease_mut(id).expect("leased");
        let claimant = lease.plan.as_ref().and_then(|plan| plan.claimant);
        match (claimant, lease.stopping_since) {
            (Some(claimant), None) => {
                lease.plan = None;
                self.world.planned.remove(&id);
                let workload = self.world.workloads.get_mut(&id).expect("leased");
                (workload.barred_by, workload.yielded_to) = (None, None);
                if let Some(hold) = self.world.holds.get_mut(&claimant) {
                    hold.victims.remove(&id);
                }
                self.instant.spared.push((id, claimant));
            }
            _ => self.findings.add(
                Law::Sequence,
                format!("{} is spared", line.workload),
                "it was to yield to a claimant and has no signal yet",
            ),
        }
    }

    /// At an instant's end: what was planned is joined to its hold; who was spared lost its claimant.
    pub(super) fn check_plans(&mut self) {
        for (victim, claimant) in std::mem::take(&mut self.instant.spared) {
            if self.world.holds.contains_key(&claimant) && !self.instant.closed.contains_key(&claimant) {
                let seen = format!("{} is spared while GPUs are held for {}", self.world.label(victim), self.world.label(claimant));
                self.findings.add(Law::NamedStart, seen, "a plan is carried out while its claimant waits");
            }
        }
    }

    /// No lease whose signal is due waits for it.
    pub(super) fn check_signals(&mut self) {
        let now = self.now();
        let planned: Vec<Id> = self.world.planned.iter().copied().collect();
        for id in planned {
            let lease = self.world.lease(id).expect("a victim has a lease");
            let plan = lease.plan.as_ref().expect("a victim has a plan");
            if lease.stopping_since.is_none() && plan.stop_by < now {
                let seen = format!("{} was to be stopped by {} ms and has no signal", self.world.label(id), plan.stop_by);
                self.findings.add(Law::Signal, seen, "the signal comes in time");
            }
        }
    }
}
