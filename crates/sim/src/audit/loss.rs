//! What an eviction by comparison loses is worth it: at most a part of the claimant's contract, unless the claimant is overdue.

use super::world::Id;
use super::{Auditor, Law};
use crate::log::line::{Licence, OnPreempt};

impl Auditor {
    /// Adds what a victim taken by `share` or `tree`, or by age inside a leaf, is expected to lose to what its claimant's plan loses.
    pub(super) fn note_loss(&mut self, claimant: Id, victim: Id, licence: Licence) {
        let (by, of) = (&self.world.workloads[&claimant], &self.world.workloads[&victim]);
        let Some(knobs) = self.world.knobs(by.pool) else { return };
        // Who is below its share and has waited longer than the longest contract takes what it needs, on one node, from work that can
        // resume or is no larger than itself.
        let is_overdue = self.now() - by.waiting_since > knobs.min_runtime_max_ms;
        let is_small = of.asked.on_preempt == OnPreempt::Resume || of.gpus() <= by.gpus();
        if licence == Licence::OwnLeaf && of.asked.priority < by.asked.priority {
            return;
        }
        if licence == Licence::Share && is_overdue && by.asked.members == 1 && is_small {
            return;
        }
        let contract = i128::from(by.asked.charged_gpus) * i128::from(by.contract());
        let limit = contract * i128::from(knobs.worth_it_ppm) / 1_000_000;
        let lost = i128::from(of.gpus()) * i128::from(self.at_stake(victim) + knobs.restart_cost_ms);
        let losses = self.instant.losses.entry(claimant).or_insert((0, limit));
        losses.0 += lost;
    }

    /// How long the victim's progress goes back that a stop now would lose.
    fn at_stake(&self, victim: Id) -> i64 {
        let (now, workload) = (self.now(), &self.world.workloads[&victim]);
        let lease = self.world.lease(victim).expect("leased");
        if workload.asked.on_preempt != OnPreempt::Resume && !lease.is_doubted {
            return now - lease.since;
        }
        // What reports nothing banks at each multiple of the interval that it stated, or of its contract.
        let (every, from) = match workload.asked.checkpoint_every_ms {
            Some(every) => (every, lease.running_since),
            None => (lease.contract, lease.contract_from()),
        };
        match (lease.last_checkpoint, from) {
            (Some(at), _) => now - at,
            (None, Some(since)) if every > 0 => (now - since) % every,
            _ => now - lease.since,
        }
    }

    /// At an instant's end, when each plan has all its victims.
    pub(super) fn check_losses(&mut self) {
        for (claimant, (lost, limit)) in std::mem::take(&mut self.instant.losses) {
            self.findings.count().losses_compared += 1;
            if lost > limit {
                let seen = format!("the victims of {} lose {lost} GPU-ms", self.world.label(claimant));
                self.findings.add(Law::WorthIt, seen, format!("at most {limit} GPU-ms, a part of its contract"));
            }
        }
    }
}
