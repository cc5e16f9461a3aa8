//! Work that runs before its turn, unallocated, and is promoted where it runs.

use super::world::Id;
use super::{Auditor, Law};
use crate::log::line::{Occupancy, Promoted, State};

impl Auditor {
    /// Whether a workload is promised a start.
    pub(super) fn is_promised(&self, id: Id) -> bool {
        self.promises.open.values().any(|promise| promise.workload == id)
    }

    /// Work starts before its turn on free GPUs, where a start with its contract would be allowed but for a cap, and not if it is promised
    /// its turn.
    pub(super) fn check_early(&mut self, id: Id) {
        self.findings.count().starts_early += 1;
        if self.is_promised(id) || self.world.holds.contains_key(&id) {
            let seen = format!("{} starts before its turn", self.world.label(id));
            self.findings.add(Law::Promotion, seen, "what is promised a start, or has GPUs held for it, waits for them");
        }
    }

    /// A promotion is a start in place: the same attempt on the same GPUs, allowed where a start with its contract would be.
    pub(super) fn promoted(&mut self, line: &Promoted) {
        self.findings.count().promotions += 1;
        let Some(id) = self.leased(&line.workload, line.attempt, "is promoted") else { return };
        let (now, workload, lease) = (self.now(), &self.world.workloads[&id], self.world.lease(id).expect("leased"));
        if lease.occupancy == Occupancy::Allocated || !workload.may_be_early() || lease.plan.is_some() || lease.stopping_since.is_some() {
            let seen = format!("{} is promoted", line.workload);
            self.findings.add(Law::Promotion, seen, "a lease before its turn that goes on");
            return;
        }
        self.check_promotion(id);
        self.check_open(id, "is promoted");
        let contract = self.contract_now(id);
        let workload = self.world.workloads.get_mut(&id).expect("leased");
        let (leaf, unallocated, allocated) =
            (workload.leaf, workload.counted(Occupancy::Unallocated), workload.counted(Occupancy::Allocated));
        // As a start would be, it is charged to the ancestors that its leaf has now.
        let charged_to: Vec<usize> = self.world.line(leaf).collect();
        let lease = self.world.lease_mut(id).expect("leased");
        let before = std::mem::replace(&mut lease.line, charged_to.clone());
        (lease.occupancy, lease.promoted_at, lease.contract) = (Occupancy::Allocated, Some(now), contract);
        lease.protected_until = line.protected_until_ms;
        let expected = lease.running_since.map(|_| now + contract);
        if line.protected_until_ms != expected {
            let seen = format!("{} is protected until {:?}", line.workload, line.protected_until_ms);
            self.findings.add(Law::Promotion, seen, format!("its whole contract from now on, {expected:?}"));
        }
        self.ask(id, |_| false);
        self.world.count_use(&before, Occupancy::Unallocated, -unallocated);
        self.world.list_lease(&before, id, false);
        self.world.list_lease(&charged_to, id, true);
        self.world.count_use(&charged_to, Occupancy::Allocated, allocated);
        self.service.note_start(leaf);
        self.open_bill(id);
    }

    /// The contract that it gets where it runs: what is left of its limit, at most.
    pub(super) fn contract_now(&self, id: Id) -> i64 {
        let workload = &self.world.workloads[&id];
        let ran = self.world.lease(id).and_then(|lease| lease.running_since).map_or(0, |since| self.now() - since);
        let left = workload.asked.time_limit_ms.map_or(i64::MAX, |limit| limit - workload.ran - ran);
        workload.asked.min_runtime_ms.min(left)
    }

    /// By how much a promotion now is over later than a start now would be: what runs needs no time to start, and has less of its limit left.
    pub(super) fn promoted_delay(&self, id: Id) -> i64 {
        let (workload, lease) = (&self.world.workloads[&id], self.world.lease(id).expect("leased"));
        let starts_by = lease.running_since.map_or(lease.since + lease.start_timeout, |_| self.now());
        starts_by - self.now() - self.start_timeout(id) + self.contract_now(id) - workload.contract()
    }

    /// Caps, drains, express nodes and promises to others, as for a start.
    fn check_promotion(&mut self, id: Id) {
        let slots = self.world.lease(id).expect("leased").slots.clone();
        self.check_caps(id, Occupancy::Allocated);
        self.check_express_bound(id, &slots);
        let delay = self.promoted_delay(id);
        for (node, _) in &slots {
            let (workload, row) = (&self.world.workloads[&id], &self.world.nodes.rows[*node]);
            let expected = if row.state != State::Ready {
                "a ready node"
            } else if row.express && !self.fits_express(workload) {
                "express nodes for short contracts only"
            } else if !self.leaves_in_time(id, *node, delay) {
                "a node that it has certainly left before it is another's"
            } else {
                continue;
            };
            let seen = format!("{} is promoted on {}", workload.label, row.label);
            self.findings.add(Law::Promotion, seen, expected);
        }
    }
}
