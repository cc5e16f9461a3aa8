//! Nothing is due while nobody decides. After a gap of more than a minute: nothing is evicted in its instant, and at most a tenth of a pool in each minute for ten minutes.

use super::world::Id;
use super::{Auditor, Law};
use crate::log::line::Gap;
use std::collections::BTreeMap;

const MINUTE: i64 = 60_000;
const MINUTES: i64 = 10;

#[derive(Default)]
pub(super) struct Gaps {
    /// When the last one was over.
    over: Option<i64>,
    /// By pool and minute since then, the GPUs that claimants took.
    evicted: BTreeMap<(usize, i64), i64>,
}

impl Auditor {
    pub(super) fn gap(&mut self, line: &Gap) {
        let now = self.now();
        self.findings.count().gaps += 1;
        self.findings.forgive(line.from_ms);
        if line.from_ms >= now - MINUTE {
            return;
        }
        self.gaps = Gaps { over: Some(now), evicted: BTreeMap::new() };
        self.excuse_after_gap();
    }

    /// What was due meanwhile, or is while evictions go slowly, may come late.
    pub(super) fn excuse_after_gap(&mut self) {
        if self.gaps.over.is_some_and(|over| self.now() < over + MINUTES * MINUTE) {
            (0..self.world.pools.rows.len()).for_each(|pool| self.excuse_pool(pool));
        }
    }

    /// A claimant takes a lease.
    pub(super) fn note_eviction(&mut self, victim: Id) {
        let now = self.now();
        let Some(over) = self.gaps.over.filter(|over| now < over + MINUTES * MINUTE) else { return };
        let workload = &self.world.workloads[&victim];
        let (pool, gpus) = (workload.pool, i64::from(workload.gpus()));
        self.findings.count().gap_evictions += 1;
        let of_pool: usize = self.world.nodes.rows.iter().filter(|node| node.pool == pool).map(|node| node.gpus.len()).sum();
        let evicted = self.gaps.evicted.entry((pool, (now - over) / MINUTE)).or_default();
        *evicted += gpus;
        if now == over || *evicted * 10 > of_pool as i64 {
            let seen = format!("{evicted} of {of_pool} GPUs are taken in one minute, {} ms after a gap", now - over);
            self.findings.add(Law::Gap, seen, "none in its instant, at most a tenth of the pool in each minute for ten minutes");
        }
    }
}
