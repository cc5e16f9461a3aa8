//! Which changes are tried, in which order, and how far each has to go.

use super::{Change, Counterfactual, Instead, submitted, with_cap, withdrawn};
use crate::cycle;
use crate::explain::Blocker;
use crate::id::WorkloadId;
use crate::quantity::{Gpus, Ppm, Span};
use crate::scheduler::Scheduler;
use crate::spec::{Features, OnPreempt, WorkloadSpec};
use crate::submit::contract;
use crate::workload::{Phase, Workload};
use std::collections::BTreeSet;

/// At most this many states are tried for one workload; what comes later in the order is left out.
const TRIALS_MAX: u32 = 120;

/// At most this many priorities are tried.
const PRIORITIES_MAX: usize = 8;

const MINUTE: i64 = 60_000;

/// Contracts in minutes that are tried beside multiples of the present one.
const FIRST_CONTRACTS: [i64; 4] = [1, 15, 60, 240];

/// One search: the state without the workload, and how many states have been tried.
struct Search<'a> {
    s: &'a Scheduler,
    workload: &'a Workload,
    without: Scheduler,
    trials: u32,
    found: Vec<Counterfactual>,
}

/// Everything that would start a waiting workload now.
pub(super) fn run(s: &Scheduler, id: WorkloadId) -> Vec<Counterfactual> {
    let Some(workload) = s.workloads.get(id.0).filter(|workload| matches!(workload.phase, Phase::Waiting)) else { return Vec::new() };
    let Some(without) = withdrawn(s, id) else { return Vec::new() };
    let mut search = Search { s, workload, without, trials: 0, found: Vec::new() };
    // If it takes no change at all, no change is a reason.
    if search.one(Change::Anew) {
        return search.found;
    }
    let blocker = cycle::judge(s, id);
    search.contract(blocker.as_ref());
    search.terms();
    search.gang();
    search.priority();
    if workload.is_allocated() {
        search.one(Change::Unallocated);
    }
    if let Some(Blocker::Cap { budget, limit, in_use }) = blocker {
        search.cap(id, budget, limit, in_use);
    }
    search.found
}

impl Search<'_> {
    fn spec(&self) -> &WorkloadSpec {
        &self.workload.spec
    }

    /// The contract that a request gets when it is submitted now.
    fn contract_of(&self, spec: &WorkloadSpec) -> Span {
        let budget = self.s.tree.get(spec.budget).expect("work runs in a budget");
        contract(spec, budget, &self.s.pools[spec.pool.index()], &self.s.tree)
    }

    fn try_out(&mut self, change: &Change) -> Option<Instead> {
        if self.trials >= TRIALS_MAX {
            return None;
        }
        self.trials += 1;
        submitted(&self.without, change.spec(self.spec())?)
    }

    /// Tries one change; whether it helps.
    fn one(&mut self, change: Change) -> bool {
        let Some(instead) = self.try_out(&change) else { return false };
        self.found.push(Counterfactual { change, instead });
        true
    }

    /// A shorter contract, and a longer one; for unallocated work the first one that it has.
    fn contract(&mut self, blocker: Option<&Blocker>) {
        let ends = self.workload.is_allocated() && self.spec().on_preempt == OnPreempt::End;
        let make = move |minutes: i64| {
            let (to, fails) = (Span(minutes * MINUTE), None);
            if ends { Change::TimeLimit { to, fails } } else { Change::MinRuntime { to, fails } }
        };
        let now = self.contract_of(self.spec()).0;
        let shorter = self.shorter(now);
        self.stepwise(now / MINUTE + i64::from(now % MINUTE > 0), shorter, make);
        let longer = self.longer(now, blocker);
        self.stepwise(now / MINUTE, longer, make);
    }

    /// Minutes below `now`: the parts of it, and where a rule of the policy begins to hold.
    fn shorter(&self, now: i64) -> Vec<i64> {
        let pool = &self.s.pools[self.spec().pool.index()];
        // What certainly ends before a node drains may still start there.
        let ends = pool.cluster.maintenance.iter().filter_map(|id| pool.cluster.at(*id).drain_until);
        let drains = ends.map(|until| (until - self.s.now - pool.knobs.start_timeout).0);
        let parts = [(3, 4), (1, 2), (1, 3), (1, 4), (1, 6), (1, 8), (1, 16), (1, 32)].map(|(part, of)| now * part / of);
        let rules = drains.chain(parts).chain([pool.knobs.express_contract_max.0, MINUTE]);
        let minutes: BTreeSet<i64> = rules.map(|ms| ms / MINUTE).filter(|minutes| 1 <= *minutes && minutes * MINUTE < now).collect();
        minutes.into_iter().rev().collect()
    }

    /// Minutes above `now`, up to what its caps allow: multiples of it, and what makes the eviction that is too dear worth it.
    fn longer(&self, now: i64, blocker: Option<&Blocker>) -> Vec<i64> {
        let pool = &self.s.pools[self.spec().pool.index()];
        let cap = match self.spec().on_preempt {
            OnPreempt::End => pool.knobs.end_max,
            OnPreempt::Resume | OnPreempt::Restart => {
                self.contract_of(&WorkloadSpec { min_runtime: Span(i64::MAX), ..self.spec().clone() })
            }
        };
        let worth = match blocker {
            Some(Blocker::NotWorthIt { loss, .. }) if pool.knobs.worth_it > Ppm(0) => {
                let part = i128::from(pool.knobs.worth_it.0) * i128::from(self.workload.charged.0.max(1));
                let least = (i128::from(loss.0) * 1_000_000 / part).min(i128::from(cap.0));
                i64::try_from(least).ok()
            }
            _ => None,
        };
        let multiples = [(5, 4), (3, 2), (2, 1), (3, 1), (4, 1), (8, 1), (16, 1)].map(|(times, of)| now * times / of);
        let wanted =
            multiples.into_iter().chain(FIRST_CONTRACTS.map(|minutes| minutes * MINUTE)).chain(worth.map(|ms| ms + MINUTE)).chain([cap.0]);
        let minutes: BTreeSet<i64> =
            wanted.filter(|ms| *ms <= cap.0).map(|ms| ms / MINUTE).filter(|minutes| now < minutes * MINUTE).collect();
        minutes.into_iter().collect()
    }

    /// Tries steps from near to far, and halves the gap between the first that helps and the last that does not. `near` is what it has.
    fn stepwise(&mut self, near: i64, steps: Vec<i64>, make: impl Fn(i64) -> Change) {
        let (mut fails, mut helps) = (near, None);
        for step in steps {
            if let Some(instead) = self.try_out(&make(step)) {
                helps = Some((step, instead));
                break;
            }
            fails = step;
        }
        let Some((mut helping, mut instead)) = helps else { return };
        while 1 < (helping - fails).abs() {
            let middle = fails + (helping - fails) / 2;
            match self.try_out(&make(middle)) {
                Some(better) => (helping, instead) = (middle, better),
                // Without trials left nothing is known of what lies between.
                None if self.trials >= TRIALS_MAX => return,
                None => fails = middle,
            }
        }
        let change = match make(helping) {
            Change::MinRuntime { to, .. } => Change::MinRuntime { to, fails: self.failing(fails) },
            Change::TimeLimit { to, .. } => Change::TimeLimit { to, fails: self.failing(fails) },
            change => change,
        };
        self.found.push(Counterfactual { change, instead });
    }

    /// A contract that was tried and does not do: the present one is not always a whole number of minutes.
    fn failing(&self, minutes: i64) -> Option<Span> {
        let (fails, now) = (Span(minutes * MINUTE), self.contract_of(self.spec()));
        let is_rounded = (fails.0 - now.0).abs() < MINUTE && fails != now;
        (!is_rounded && fails > Span::ZERO).then_some(fails)
    }

    /// What the contract says beside its length.
    fn terms(&mut self) {
        if self.spec().on_preempt != OnPreempt::Resume {
            self.one(Change::OnPreempt { to: OnPreempt::Resume });
        }
    }

    /// A gang that asks for less.
    fn gang(&mut self) {
        let gang = self.spec().gang;
        if gang.same_block && 1 < gang.members {
            self.one(Change::AnyBlock);
        }
        if gang.features != Features(0) {
            self.one(Change::AnyFeatures);
        }
        if 0 < gang.cpus_per_member || 0 < gang.memory_per_member {
            self.one(Change::HostPart);
        }
        let fewer = |count: u32| {
            let parts = [(3, 4), (1, 2), (1, 4), (1, 8), (0, 1)].map(|(part, of)| (i64::from(count) * part / of).max(1));
            let parts: BTreeSet<i64> = parts.into_iter().filter(|part| *part < i64::from(count)).collect();
            parts.into_iter().rev().collect::<Vec<_>>()
        };
        if 1 < gang.members {
            self.stepwise(i64::from(gang.members), fewer(gang.members), |members| Change::Members { to: members as u32 });
        } else {
            let make = |gpus: i64| Change::GpusPerMember { to: gpus as u32 };
            self.stepwise(i64::from(gang.gpus_per_member), fewer(gang.gpus_per_member), make);
        }
    }

    /// A priority above that of work of its leaf that waits or may be taken, the lowest that helps.
    fn priority(&mut self) {
        let (budget, own) = (self.spec().budget, self.spec().priority);
        let of_leaf = self.s.workloads.iter().filter(|(_, other)| other.spec.budget == budget);
        let above: BTreeSet<i16> =
            of_leaf.map(|(_, other)| other.spec.priority.saturating_add(1)).filter(|priority| *priority > own).collect();
        for to in above.into_iter().take(PRIORITIES_MAX) {
            if self.one(Change::Priority { to }) {
                return;
            }
        }
    }

    fn cap(&mut self, id: WorkloadId, budget: crate::id::BudgetId, from: Gpus, in_use: Gpus) {
        let allocated = self.workload.is_allocated();
        let to = in_use + if allocated { self.workload.charged } else { self.spec().gang.gpus() };
        if let Some(instead) = with_cap(self.s, id, budget, allocated, to) {
            self.found.push(Counterfactual { change: Change::Cap { budget, from, to }, instead });
        }
    }
}
