//! Sessions: small, one for each user and pool, renewed while they are used.

use super::world::{Id, Phase};
use super::{Auditor, Law};
use crate::log::line::{Input, Kind, Occupancy, Renewed, State, Submitted};

/// The most GPUs that a session may have.
const GPUS_MAX: u32 = 8;

impl Auditor {
    /// A session that was accepted is small, and its user has no other in its pools.
    pub(super) fn check_session(&mut self, line: &Submitted) {
        if line.kind != Kind::Session {
            return;
        }
        let is_other = |asked: &Submitted| {
            asked.kind == Kind::Session && asked.user == line.user && asked.pools.iter().any(|pool| line.pools.contains(pool))
        };
        let mut live = self.world.workloads.values().filter(|other| !matches!(other.phase, Phase::Gone | Phase::Between(..)));
        let other = live.find(|other| is_other(&other.asked)).map(|other| other.label.clone());
        if let Some(other) = other {
            self.findings.add(Law::Session, format!("{} has {} and {other}", line.user, line.workload), "one session a user and pool");
        }
        if line.members * line.gpus_per_member > GPUS_MAX {
            self.findings.add(Law::Session, format!("{} is a session", line.workload), format!("at most {GPUS_MAX} GPUs"));
        }
    }

    pub(super) fn input(&mut self, line: &Input) {
        let Some(id) = self.leased(&line.workload, line.attempt, "is used") else { return };
        let is_session = self.world.workloads[&id].asked.kind == Kind::Session;
        let lease = self.world.lease_mut(id).expect("leased");
        let is_new = !std::mem::replace(&mut lease.has_input, true) && lease.running_since.is_some();
        if !is_session || !is_new {
            self.findings.add(Law::Sequence, format!("{} is used", line.workload), "a session that runs, once a contract");
        }
    }

    /// A renewal comes after the contract, to a session that was used, where a start with the contract would be allowed.
    pub(super) fn renewed(&mut self, line: &Renewed) {
        self.findings.count().renewals += 1;
        let Some(id) = self.leased(&line.workload, line.attempt, "is renewed") else { return };
        let (now, workload, lease) = (self.now(), &self.world.workloads[&id], self.world.lease(id).expect("leased"));
        let is_over = lease.occupancy == Occupancy::Allocated && lease.protected_until.is_some_and(|until| until <= now);
        let goes_on = lease.plan.is_none() && lease.stopping_since.is_none();
        if workload.asked.kind != Kind::Session || !lease.has_input || !is_over || !goes_on {
            let seen = format!("{} is renewed", line.workload);
            self.findings.add(Law::Session, seen, "a session past its contract that goes on and was used since it began");
        }
        self.check_renewal(id);
        self.check_open(id, "is renewed");
        let expected = now + self.contract_now(id);
        if line.protected_until_ms != expected {
            let seen = format!("{} is protected until {}", line.workload, line.protected_until_ms);
            self.findings.add(Law::Session, seen, format!("its contract from now on, {expected}"));
        }
        let lease = self.world.lease_mut(id).expect("leased");
        lease.has_input = false;
        lease.protected_until = Some(line.protected_until_ms);
    }

    /// No renewal on a node that leaves service or is promised to others before it is over, nor above a cap.
    fn check_renewal(&mut self, id: Id) {
        let slots = self.world.lease(id).expect("leased").slots.clone();
        let delay = self.promoted_delay(id);
        for (node, _) in &slots {
            if self.world.nodes.rows[*node].state != State::Ready || !self.leaves_in_time(id, *node, delay) {
                let seen = format!("{} is renewed on {}", self.world.label(id), self.world.nodes.rows[*node].label);
                self.findings.add(Law::Session, seen, "a ready node that it has certainly left before it is another's");
            }
        }
        let leaf = self.world.workloads[&id].leaf;
        let over = self.world.line(leaf).find(|budget| {
            let row = &self.world.budgets.rows[*budget];
            row.claim == 0 || row.gpus_max.is_some_and(|cap| row.in_use[Occupancy::Allocated as usize] > i64::from(cap))
        });
        if let Some(over) = over {
            let seen = format!("{} is renewed in {}", self.world.label(id), self.world.budgets.rows[over].path);
            self.findings.add(Law::Session, seen, "a funded budget within its caps");
        }
    }
}
