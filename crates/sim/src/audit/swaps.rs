//! No pair swaps twice within one contract: two workloads that evict each other by turns make no progress.

use super::world::Id;
use super::{Auditor, Law};
use std::collections::BTreeMap;

/// Who evicted whom of each pair that is live, the last three times.
#[derive(Default)]
pub(super) struct Swaps {
    pairs: BTreeMap<(Id, Id), Vec<(i64, Id)>>,
    /// Pairs of workloads that are gone are dropped when the table has this many.
    prune_at: usize,
}

impl Auditor {
    pub(super) fn check_swap(&mut self, claimant: Id, victim: Id) {
        let now = self.now();
        let times = self.swaps.pairs.entry((claimant.min(victim), claimant.max(victim))).or_default();
        times.push((now, claimant));
        if times.len() > 3 {
            times.remove(0);
        }
        let contract = [claimant, victim].map(|id| self.world.workloads[&id].asked.min_runtime_ms).into_iter().min().unwrap_or(0);
        if let [(first, a), (_, b), (_, c)] = times[..]
            && a == c
            && a != b
            && now - first < contract
        {
            let seen = format!(
                "{} and {} evict each other by turns within {} ms",
                self.world.label(claimant),
                self.world.label(victim),
                now - first
            );
            self.findings.add(Law::Swap, seen, format!("not within one contract, {contract} ms"));
        }
        if self.swaps.pairs.len() > self.swaps.prune_at {
            self.swaps.pairs.retain(|(a, b), _| self.world.workloads.contains_key(a) && self.world.workloads.contains_key(b));
            self.swaps.prune_at = 2 * self.swaps.pairs.len() + 1000;
        }
    }
}
