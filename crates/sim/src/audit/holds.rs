//! Holds: freed GPUs kept for a claimant, and the start that every preemption buys.

use super::world::{Hold, Id, Phase, Slots};
use super::{Auditor, Law};
use crate::log::line::{Hold as HoldLine, Licence, State, Unhold, UnholdCause};

impl Auditor {
    pub(super) fn hold(&mut self, line: &HoldLine) {
        self.findings.count().holds += 1;
        let Some(id) = self.known(&line.claimant) else { return };
        let workload = &self.world.workloads[&id];
        if !workload.is_waiting() || self.world.holds.contains_key(&id) {
            self.findings.add(Law::Sequence, format!("GPUs are held for {}", line.claimant), "waiting work that has no hold");
            return;
        }
        let slots = self.check_placement(id, &line.placement, &line.claimant);
        if let Some((node, _)) = slots.first() {
            let pool = self.world.nodes.rows[*node].pool;
            self.world.workloads.get_mut(&id).expect("known").settle_in(pool);
            self.ask(id, |other| other == pool);
        }
        // Caps are judged once, when the plan is made.
        self.check_caps(id, self.world.workloads[&id].occupancy());
        self.check_express_bound(id, &slots);
        for (node, gpus) in &slots {
            let row = &self.world.nodes.rows[*node];
            if !self.may_start_on(&self.world.workloads[&id], row) {
                self.findings.add(
                    Law::Node,
                    format!("{} is held for {} while {:?}", row.label, line.claimant, row.state),
                    "a node that its claimant may use",
                );
            }
            let other = gpus.iter().find_map(|gpu| row.gpus[usize::from(*gpu)].hold);
            if let Some(other) = other {
                let seen = format!("a GPU of {} is held for {} and {}", row.label, self.world.label(other), line.claimant);
                self.findings.add(Law::GpuTwice, seen, "no GPU is held twice");
            }
        }
        self.check_backfill(id, slots.iter().map(|(node, _)| *node));
        self.check_open(id, "has GPUs held for it");
        let line = self.world.line(self.world.workloads[&id].leaf).collect();
        let now = self.now();
        self.world.keep(&slots, Some(id));
        self.open_hold_bill(id, now);
        self.world.holds.insert(id, Hold { line, slots, at: now, victims: Default::default(), barred: Vec::new(), licence: Licence::Free });
        self.instant.opened.insert(id);
        for (victim, licence) in self.instant.planned.get(&id).cloned().unwrap_or_default() {
            self.join_hold(id, victim, licence);
        }
    }

    /// Joins a victim to its claimant's hold; the lines of a plan may come in either order.
    pub(super) fn join_hold(&mut self, claimant: Id, victim: Id, licence: Licence) {
        if let Some(hold) = self.world.holds.get_mut(&claimant) {
            hold.victims.insert(victim);
            hold.barred.push(victim);
            hold.licence = hold.licence.max(licence);
        }
    }

    pub(super) fn unhold(&mut self, line: &Unhold) {
        let Some(id) = self.known(&line.claimant) else { return };
        if line.cause == UnholdCause::Started {
            self.instant.said_started.insert(id);
            self.close_hold(id);
            return;
        }
        let Some(hold) = self.world.holds.get(&id) else {
            self.findings.add(Law::Sequence, format!("the hold for {} ends", line.claimant), "it had one");
            return;
        };
        let is_so = match line.cause {
            UnholdCause::VictimStuck => self.has_stuck_node(hold),
            // The line that makes these true may follow in the same instant.
            UnholdCause::Started | UnholdCause::ClaimantGone | UnholdCause::NodeGone => true,
            UnholdCause::Other => false,
        };
        self.close_hold(id);
        self.ask(id, |_| true);
        if !is_so {
            self.untrue_end(id, &format!("{:?}, {}", line.cause, line.why));
        }
        self.instant.said_gone.push((id, line.cause));
    }

    fn untrue_end(&mut self, claimant: Id, why: &str) {
        let seen = format!("the hold for {} ends without its start: {why}", self.world.label(claimant));
        self.findings.add(Law::NamedStart, seen, "the claimant starts, or the reason given is so");
    }

    /// Whether a lease on one of the hold's nodes outlived its grace.
    fn has_stuck_node(&self, hold: &Hold) -> bool {
        let occupants = hold.slots.iter().flat_map(|(node, _)| self.world.nodes.rows[*node].gpus.iter().filter_map(|gpu| gpu.lease));
        let is_stuck = |id: Id| {
            let lease = self.world.lease(id);
            lease.is_some_and(|lease| lease.stopping_since.is_some_and(|since| self.now() >= since + lease.stop_grace))
        };
        occupants.into_iter().any(is_stuck)
    }

    /// Ends a hold: its charge is settled, its victims are barred no longer.
    pub(super) fn close_hold(&mut self, id: Id) {
        let Some(hold) = self.world.holds.remove(&id) else { return };
        self.close_hold_bill(id, &hold);
        self.world.keep(&hold.slots, None);
        for victim in &hold.barred {
            if let Some(workload) = self.world.workloads.get_mut(victim).filter(|workload| workload.barred_by == Some(id)) {
                workload.barred_by = None;
            }
        }
        self.instant.closed.insert(id, hold);
    }

    /// A claimant starts on its hold and ends it; the strongest licence that its start may name.
    pub(super) fn start_from_hold(&mut self, id: Id, slots: &Slots, label: &str) -> Licence {
        self.close_hold(id);
        // One that ended for another reason holds nothing any more.
        if self.instant.said_gone.iter().any(|(gone, _)| *gone == id) {
            return Licence::Free;
        }
        let Some(hold) = self.instant.closed.get(&id) else { return Licence::Free };
        let held = |node: &usize, gpu: &u8| hold.slots.iter().any(|(other, gpus)| other == node && gpus.contains(gpu));
        if slots.iter().any(|(node, gpus)| gpus.iter().any(|gpu| !held(node, gpu))) {
            self.findings.add(Law::NamedStart, format!("{label} starts beside the GPUs held for it"), "it starts where its plan said");
        }
        self.findings.report.summary.holds_started += 1;
        hold.licence
    }

    /// A victim ended: its claimant's hold waits for one less.
    pub(super) fn leave_hold(&mut self, id: Id, claimant: Option<Id>) {
        if let Some(hold) = claimant.and_then(|claimant| self.world.holds.get_mut(&claimant)) {
            hold.victims.remove(&id);
        }
    }

    /// At an instant's end: each plan has its hold, made of GPUs that are free or being freed, with no victim too many; a hold that is
    /// complete has started; one whose claimant is gone has ended.
    pub(super) fn check_holds(&mut self) {
        for (claimant, victims) in std::mem::take(&mut self.instant.planned) {
            self.check_victims(claimant, &victims);
        }
        for (claimant, cause) in std::mem::take(&mut self.instant.said_gone) {
            self.check_gone(claimant, cause);
        }
        for claimant in self.instant.opened.clone() {
            self.check_being_freed(claimant);
        }
        for claimant in std::mem::take(&mut self.instant.said_started) {
            if !self.instant.started.contains(&claimant) {
                self.findings.add(
                    Law::NamedStart,
                    format!("the hold for {} ended in its start", self.world.label(claimant)),
                    "a start in the same instant",
                );
            }
        }
        let vacant = |node: usize, gpu: &u8| self.world.nodes.rows[node].gpus[usize::from(*gpu)].lease.is_none();
        let complete =
            |hold: &Hold| hold.slots.iter().all(|(node, gpus)| gpus.iter().all(|gpu| vacant(*node, gpu)) && self.is_roomy(*node));
        let waiting: Vec<(Id, bool, bool)> =
            self.world.holds.iter().map(|(id, hold)| (*id, complete(hold), self.world.workloads[id].is_waiting())).collect();
        for (id, complete, is_waiting) in waiting {
            let label = self.world.label(id).to_string();
            if !is_waiting {
                self.findings.add(Law::NamedStart, format!("GPUs are still held for {label}"), "a hold ends when its claimant goes away");
            } else if complete {
                self.findings.add(Law::NamedStart, format!("all GPUs held for {label} are free and it waits"), "it starts at once");
            }
        }
    }

    fn check_gone(&mut self, claimant: Id, cause: UnholdCause) {
        let is_so = match cause {
            // One that was held because its budget was closed may wait again by now.
            UnholdCause::ClaimantGone => {
                let waits = self.world.workloads.get(&claimant).is_some_and(|workload| workload.is_waiting());
                !waits || self.promises.given_up.contains(&claimant)
            }
            UnholdCause::NodeGone => {
                let hold = self.instant.closed.get(&claimant);
                let is_gone = |node: usize| self.instant.left.contains(&node) || self.world.nodes.rows[node].state != State::Ready;
                hold.is_some_and(|hold| hold.slots.iter().any(|(node, _)| is_gone(*node)))
            }
            _ => true,
        };
        if !is_so {
            self.untrue_end(claimant, &format!("{cause:?}"));
        }
    }

    fn check_victims(&mut self, claimant: Id, victims: &[(Id, Licence)]) {
        let label = self.world.label(claimant).to_string();
        let Some(hold) = self.world.holds.get(&claimant).or_else(|| self.instant.closed.get(&claimant)) else {
            self.findings.add(
                Law::NamedStart,
                format!("{} leases are preempted for {label}, which has no hold", victims.len()),
                "the freed GPUs are held for it",
            );
            return;
        };
        let counts_hosts = |node: usize| self.world.nodes.rows[node].cpus > 0 || self.world.nodes.rows[node].memory > 0;
        for (victim, _) in victims {
            let Some(lease) = self.world.lease(*victim) else { continue };
            let shares = |(node, gpus): &(usize, Vec<u8>)| {
                hold.slots.iter().any(|(held, kept)| held == node && kept.iter().any(|gpu| gpus.contains(gpu)))
            };
            let same_node = |(node, _): &(usize, Vec<u8>)| hold.slots.iter().any(|(held, _)| held == node);
            // A victim may be needed for its CPUs or memory alone.
            let gives_room = lease.slots.iter().any(|slot| counts_hosts(slot.0) && same_node(slot));
            if !lease.slots.iter().any(shares) && !gives_room {
                let seen = format!("{} is preempted for {label}, which takes none of its GPUs", self.world.label(*victim));
                self.findings.add(Law::Minimal, seen, "each victim gives GPUs to the start");
            }
        }
    }

    fn check_being_freed(&mut self, claimant: Id) {
        let Some(hold) = self.world.holds.get(&claimant) else { return };
        let gpus = hold.slots.iter().flat_map(|(node, gpus)| gpus.iter().map(|gpu| &self.world.nodes.rows[*node].gpus[usize::from(*gpu)]));
        let occupants = gpus.filter_map(|gpu| gpu.lease);
        let stays = |id: &Id| self.world.lease(*id).is_some_and(|lease| lease.plan.is_none() && lease.stopping_since.is_none());
        let Some(staying) = occupants.into_iter().find(stays) else { return };
        let seen = format!("GPUs of {} are held for {}", self.world.label(staying), self.world.label(claimant));
        self.findings.add(Law::NamedStart, seen, "a hold is made of GPUs that are free or being freed");
    }

    /// Whether work waits for nothing but its turn: not behind its own hold, nor barred.
    pub(super) fn is_unclaimed(&self, id: Id) -> bool {
        let workload = &self.world.workloads[&id];
        let has_yielded = workload.yielded_to.is_some_and(|claimant| self.world.holds.contains_key(&claimant));
        let is_apart =
            workload.barred_by.is_some() || has_yielded || self.world.holds.contains_key(&id) || self.instant.preempted.contains(&id);
        matches!(workload.phase, Phase::Waiting) && !is_apart
    }
}
