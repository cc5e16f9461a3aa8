//! No idle GPU that waiting work could use: work of one node, uncapped, that nothing keeps from starting.

use super::world::{Home, Id, Workload};
use super::{Auditor, Law};
use crate::log::line::Occupancy;
use std::collections::{BTreeMap, BTreeSet};

/// Waiting work of one node by pool, GPUs and whether it has a contract.
pub(super) type Queue = BTreeMap<(usize, u32, bool), BTreeSet<Id>>;

/// Of each kind of request this many are tried on this many nodes an instant; work that is capped or does not fit may stand before work
/// that is not, so this is a sample where many wait.
const TRIED: usize = 64;

impl Auditor {
    pub(super) fn queue(&mut self, id: Id) {
        self.ask(id, |_| true);
        let workload = &self.world.workloads[&id];
        if workload.asked.members == 1 {
            for home in &workload.homes {
                self.service.queue.entry(kind(workload, home)).or_default().insert(id);
            }
        }
    }

    pub(super) fn unqueue(&mut self, id: Id) {
        self.ask(id, |_| false);
        let workload = &self.world.workloads[&id];
        for kind in workload.homes.iter().map(|home| kind(workload, home)) {
            if let Some(waiting) = self.service.queue.get_mut(&kind) {
                waiting.remove(&id);
                if waiting.is_empty() {
                    self.service.queue.remove(&kind);
                }
            }
        }
    }

    pub(super) fn check_idle(&mut self) {
        for pool in 0..self.world.pools.rows.len() {
            let Some((most, _)) = self.world.pools.rows[pool].by_free.last().copied() else { continue };
            let waiting: Vec<Id> = self
                .service
                .queue
                .range((pool, 0, false)..=(pool, most as u32, true))
                .flat_map(|(_, ids)| ids.iter().copied().take(TRIED))
                .collect();
            for id in waiting {
                self.findings.count().idle_checks += 1;
                if let Some(node) = self.idle_node_for(id, pool) {
                    let (workload, row) = (&self.world.workloads[&id], &self.world.nodes.rows[node]);
                    let seen = format!("{} for {} GPUs waits beside free GPUs of {}", workload.label, workload.gpus(), row.label);
                    self.findings.add(Law::Idle, seen, "waiting work that fits takes idle GPUs");
                    return;
                }
            }
        }
    }

    /// What started on free GPUs in a pool that it likes less found none in those that it likes better, now that the instant is over.
    pub(super) fn check_preference(&mut self) {
        for (id, place) in std::mem::take(&mut self.instant.fell_back) {
            let Some(workload) = self.world.workloads.get(&id).filter(|workload| workload.asked.members == 1) else { continue };
            self.findings.count().preference_checks += 1;
            let better: Vec<usize> = workload.homes[..place].iter().map(|home| home.pool).collect();
            let missed = better.into_iter().filter(|pool| !self.is_capped(id, *pool)).find_map(|pool| self.free_node_for(id, pool));
            if let Some(node) = missed {
                let (label, row) = (self.world.label(id), &self.world.nodes.rows[node]);
                let seen = format!("{label} starts in a pool that it likes less, beside free GPUs of {}", row.label);
                self.findings.add(Law::Preference, seen, "the first of its pools that has room");
            }
        }
    }

    fn idle_node_for(&self, id: Id, pool: usize) -> Option<usize> {
        if !self.is_unclaimed(id) {
            return None;
        }
        // What a cap keeps from its turn may run before it.
        let may_be_early = self.world.workloads[&id].may_be_early() && !self.is_promised(id) && !self.is_capped_early(id, pool);
        let may_wait = self.is_capped(id, pool) && !may_be_early;
        if may_wait { None } else { self.free_node_for(id, pool) }
    }

    /// A ready node with free GPUs enough for work of one node.
    pub(super) fn free_node_for(&self, id: Id, pool: usize) -> Option<usize> {
        let needs = self.world.workloads[&id].gpus() as usize;
        let nodes = self.world.pools.rows[pool].by_free.range((needs, 0)..).take(TRIED);
        nodes.map(|(_, node)| *node).find(|node| self.fits(id, *node))
    }

    /// Whether a cap, a zero claim or a lowered limit on contracts keeps it from starting.
    pub(super) fn is_capped(&self, id: Id, pool: usize) -> bool {
        let workload = &self.world.workloads[&id];
        let Some(home) = workload.homes.iter().find(|home| home.pool == pool) else { return true };
        let allocated = workload.is_allocated();
        if allocated && (self.world.budgets.rows[home.leaf].claim == 0 || workload.contract() <= 0) {
            return true;
        }
        let gpus = i64::from(home.charged_gpus.max(workload.gpus()));
        let held: i64 = if allocated {
            let held: i64 = self
                .world
                .holds
                .keys()
                .filter_map(|id| self.world.workloads.get(id).filter(|claimant| claimant.pool == pool))
                .map(|claimant| i64::from(claimant.asked.charged_gpus.max(claimant.gpus())))
                .sum();
            held + self.promised_gpus(pool)
        } else {
            0
        };
        self.world.line(home.leaf).any(|budget| {
            let row = &self.world.budgets.rows[budget];
            let cap = if allocated { row.gpus_max } else { row.unallocated_gpus_max };
            let is_full = cap.is_some_and(|cap| row.in_use[usize::from(!allocated)] + held + gpus > i64::from(cap));
            is_full || (allocated && row.min_runtime_max.is_some_and(|max| home.min_runtime_ms > max))
        })
    }

    /// A cap on unallocated GPUs keeps it from starting before its turn.
    fn is_capped_early(&self, id: Id, pool: usize) -> bool {
        let workload = &self.world.workloads[&id];
        let Some(home) = workload.home(pool) else { return true };
        self.world.line(home.leaf).any(|budget| {
            let row = &self.world.budgets.rows[budget];
            let in_use = row.in_use[Occupancy::Unallocated as usize] + i64::from(workload.gpus());
            row.unallocated_gpus_max.is_some_and(|cap| in_use > i64::from(cap))
        })
    }

    /// Features, CPUs and memory, with what was not asked for taken as the node's part, rounded up.
    fn fits(&self, id: Id, node: usize) -> bool {
        let (asked, row) = (&self.world.workloads[&id].asked, &self.world.nodes.rows[node]);
        // One try stands for a class of contracts that differ by less than a factor of 4: a longer one may not have left in time.
        let longer = 3 * self.world.workloads[&id].contract_in(self.world.nodes.rows[node].pool);
        if !self.leaves_in_time(id, node, longer)
            || row.features & asked.features != asked.features
            || (row.express && asked.min_runtime_ms > 0)
        {
            return false;
        }
        if row.cpus == 0 && row.memory == 0 {
            return true;
        }
        let gpus = row.gpus.len() as u64;
        let part = |whole: u64, of: u32| (whole * u64::from(of)).div_ceil(gpus);
        let mut cpus = u64::from(row.cpus);
        let mut memory = row.memory;
        let mut take = |asked: &crate::log::line::Submitted, here: u32| {
            let members = u64::from(here / asked.gpus_per_member);
            cpus = cpus.saturating_sub((members * u64::from(asked.cpus_per_member)).max(part(u64::from(row.cpus), here)));
            memory = memory.saturating_sub((members * asked.memory_per_member_bytes).max(part(row.memory, here)));
        };
        let mut leases: BTreeMap<Id, u32> = BTreeMap::new();
        // A held GPU's CPUs are kept with it, beside those of whoever still occupies it.
        for user in row.gpus.iter().flat_map(|gpu| [gpu.lease, gpu.hold]).flatten() {
            *leases.entry(user).or_default() += 1;
        }
        leases.iter().for_each(|(user, here)| take(&self.world.workloads[user].asked, *here));
        let enough = |left: u64, asked: u64, whole: u64| whole == 0 || left >= asked.max(part(whole, self.world.workloads[&id].gpus()));
        enough(cpus, asked.cpus_per_member.into(), row.cpus.into()) && enough(memory, asked.memory_per_member_bytes, row.memory)
    }
}

fn kind(workload: &Workload, home: &Home) -> (usize, u32, bool) {
    (home.pool, workload.asked.gpus_per_member, workload.is_allocated())
}
