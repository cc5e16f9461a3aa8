//! Bounded service: work of one node, in a leaf below its share, that its licences could serve, is served.
//!
//! Looked at each hour of the log. The bound is the longest contract that may start + the longest protection that runs + grace, after
//! which a claimant needs no longer be worth it. Work that waits longer while, at two looks in a row, some node has GPUs enough that
//! are free, unallocated or past their contract under leaves that stand higher by the licence's own figures, and whose leaf started
//! nothing in between, was passed over.

use super::idle::Queue;
use super::world::Id;
use super::{Auditor, Law};
use crate::log::line::{Occupancy, OnPreempt, State};
use std::collections::BTreeSet;

const EVERY: i64 = 3_600_000;

#[derive(Default)]
pub(super) struct Service {
    pub(super) queue: Queue,
    next_look: Option<i64>,
    /// Work that could have been served at the last look.
    passed_over: BTreeSet<Id>,
    /// Leaves that started something since.
    started: BTreeSet<usize>,
}

impl Service {
    pub(super) fn note_start(&mut self, leaf: usize) {
        self.started.insert(leaf);
    }
}

impl Auditor {
    pub(super) fn check_service(&mut self) {
        let now = self.now();
        if now < *self.service.next_look.get_or_insert(now) {
            return;
        }
        self.service.next_look = Some(now + EVERY);
        let started = std::mem::take(&mut self.service.started);
        let before = std::mem::take(&mut self.service.passed_over);
        for leaf in 0..self.world.budgets.rows.len() {
            let pool = self.world.budgets.rows[leaf].pool;
            if self.world.budgets.rows[leaf].is_leaf {
                self.check_used(leaf, pool);
                self.check_leaf_service(leaf, pool, &before, started.contains(&leaf));
            }
        }
    }

    fn check_leaf_service(&mut self, leaf: usize, pool: usize, before: &BTreeSet<Id>, has_started: bool) {
        let Some(id) = self.longest_waiting(leaf, pool) else { return };
        let (Some(lens), Some(knobs)) = (self.lens(pool), self.world.knobs(pool).cloned()) else { return };
        let waits = lens.now - self.world.workloads[&id].waiting_since;
        let longest = knobs.min_runtime_max_ms.max(knobs.end_max_ms);
        let bound = knobs.min_runtime_max_ms + longest + knobs.start_timeout_ms + knobs.grace_allocated_ms + knobs.retry_every_ms;
        if waits < bound || self.is_capped(id, pool) || !self.is_unclaimed(id) {
            return;
        }
        self.findings.count().service_checks += 1;
        let weighed = self.weigh(leaf, pool, lens, None);
        if weighed.standing_high() >= i128::from(knobs.below_share_ppm).min(1_000_000) {
            return;
        }
        let charged = self.world.workloads[&id].homes.iter().find(|home| home.leaf == leaf).map_or(0, |home| home.charged_gpus);
        let quantum = lens.full(knobs.quantum_ms * i64::from(charged));
        let needed = super::standing::Weighed { committed: weighed.committed + quantum, ..weighed }.standing_high();
        if !self.could_be_served(id, leaf, pool, needed, lens) {
            return;
        }
        if before.contains(&id) && !has_started {
            let seen = format!(
                "{} waits for {waits} ms in {}, at {} ppm",
                self.world.label(id),
                self.world.budgets.rows[leaf].path,
                weighed.standing_high()
            );
            self.findings.add(Law::Service, seen, format!("served within {bound} ms: there are GPUs that it may take"));
        }
        self.service.passed_over.insert(id);
    }

    fn longest_waiting(&self, leaf: usize, pool: usize) -> Option<Id> {
        let queued =
            self.service.queue.iter().filter(|((in_pool, _, allocated), _)| *in_pool == pool && *allocated).flat_map(|(_, ids)| ids);
        let mine = queued.filter(|id| self.world.workloads[id].homes.iter().any(|home| home.leaf == leaf));
        mine.copied().min_by_key(|id| (self.world.workloads[id].waiting_since, *id))
    }

    /// Whether some node has enough GPUs that are free, unallocated, or past their contract under a leaf that stands higher than `needed`.
    fn could_be_served(&mut self, id: Id, leaf: usize, pool: usize, needed: i128, lens: super::standing::Lens) -> bool {
        let leaves: Vec<usize> = (0..self.world.budgets.rows.len())
            .filter(|other| *other != leaf && self.world.budgets.rows[*other].is_leaf)
            .collect::<Vec<_>>();
        let leaves = leaves.into_iter().filter(|other| self.world.budgets.rows[*other].pool == pool).collect::<Vec<_>>();
        let mut higher = BTreeSet::new();
        for other in leaves {
            let weighed = self.weigh(other, pool, lens, None);
            if weighed.entitled > 0 && (weighed.used - weighed.slack) * 1_000_000 / weighed.entitled > needed {
                higher.insert(other);
            }
        }
        let workload = &self.world.workloads[&id];
        let takeable = |lease: Id| {
            let other = &self.world.workloads[&lease];
            let lease = self.world.lease(lease).expect("an occupant has a lease");
            // A gang of several nodes may cost more than it is worth to a claimant of one, and so may larger work that cannot resume;
            // whether it does is not judged here.
            let is_small = other.asked.on_preempt == OnPreempt::Resume || other.gpus() <= workload.gpus();
            let may_be_dear = lease.occupancy == Occupancy::Allocated && !is_small;
            other.asked.members == 1
                && !may_be_dear
                && (lease.occupancy == Occupancy::Unallocated
                    || (!lease.is_protected(lens.now) && lease.running_since.is_some() && higher.contains(&other.leaf)))
        };
        let delay = self.world.knobs(pool).map_or(0, |knobs| {
            knobs.checkpoint_wait_max_ms + knobs.grace_allocated_ms.max(knobs.grace_unallocated_ms) + knobs.kill_timeout_ms
        });
        self.world.nodes.rows.iter().enumerate().any(|(number, node)| {
            let usable = node.pool == pool
                && node.state == State::Ready
                && !node.express
                && node.features & workload.asked.features == workload.asked.features;
            let gpus = node.gpus.iter().filter(|gpu| gpu.hold.is_none() && gpu.lease.is_none_or(takeable)).count();
            usable && self.leaves_in_time(id, number, delay) && node.cpus == 0 && node.memory == 0 && gpus >= workload.gpus() as usize
        })
    }
}
