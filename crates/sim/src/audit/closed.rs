//! Closed budgets: no new work, no start, no contract, no promise; what waits there is held.

use super::world::Id;
use super::{Auditor, Law};

impl Auditor {
    /// Something that a closed budget does not do is done for one of its workloads.
    pub(super) fn check_open(&mut self, id: Id, what: &str) {
        let workload = &self.world.workloads[&id];
        if self.world.is_closed(workload.leaf) {
            let seen = format!("{} {what} in {}", workload.label, self.world.budgets.rows[workload.leaf].path);
            self.findings.add(Law::Closed, seen, "nothing of the kind in a closed budget");
        }
    }

    /// When an instant is over, nobody waits in a closed budget, but for who yielded to a claimant that has not started yet.
    pub(super) fn check_closed(&mut self) {
        if !self.world.budgets.rows.iter().any(|row| row.closed) {
            return;
        }
        let waits = |id: &&Id| {
            let workload = &self.world.workloads[id];
            workload.is_waiting() && workload.barred_by.is_none() && self.world.is_closed(workload.leaf)
        };
        self.findings.count().closed_checks += 1;
        let waiting = self.world.workloads.keys().filter(waits).min().copied();
        if let Some(id) = waiting {
            let seen = format!("{} waits in a closed budget", self.world.label(id));
            self.findings.add(Law::Closed, seen, "it is held");
        }
    }
}
