//! Searches for victims on small random clusters against brute force.

use super::*;
use crate::dice::Dice;
use crate::event::{Event, Exit};
use crate::id::{BudgetId, LeaseId, PoolId, UserId};
use crate::knobs::Knobs;
use crate::licence::{Claimant, Judge};
use crate::order::Standings;
use crate::placement::tests::{Left, assert_fits, fewest_blocks, gang, ground, node};
use crate::quantity::{Ppm, Span};
use crate::scheduler::Scheduler;
use crate::spec::{BudgetSpec, Changeset, LeafOrder, PoolShare, WorkloadSpec};
use std::cell::Cell;
use std::sync::Arc;

const POOL: PoolId = PoolId(0);
const VICTIMS: BudgetId = BudgetId(1);
const CLAIMANTS: BudgetId = BudgetId(2);

fn workload(budget: BudgetId, gang: Gang, min_runtime: Span) -> Event {
    let spec = WorkloadSpec::new(budget, UserId(0), POOL, gang, min_runtime);
    Event::Submitted { workload: WorkloadId(0), spec: Arc::new(spec) }
}

struct Setting {
    scheduler: Scheduler,
    at: Time,
    next: u32,
}

impl Setting {
    /// Two leaves with half a pool each; all that a victim loses is worth it.
    fn new(dice: &mut Dice) -> Setting {
        let mut setting = Setting { scheduler: Scheduler::new(Time(0)), at: Time(0), next: 0 };
        let knobs = Knobs { worth_it: Ppm(u32::MAX), quantum: Span::ZERO, restart_cost: Span::ZERO, ..Knobs::default() };
        setting.tell(&Event::KnobsSet { pool: POOL, knobs: Box::new(knobs) });
        let budget = |id: u32, share: u32| BudgetSpec {
            id: BudgetId(id),
            parent: (id > 0).then_some(BudgetId(0)),
            name: id.to_string(),
            pools: vec![PoolShare { share: Ppm(share), ..PoolShare::default() }],
            order: LeafOrder::Priority,
            closed: false,
        };
        let budgets = vec![budget(0, 1_000_000), budget(1, 500_000), budget(2, 500_000)];
        setting.tell(&Event::BudgetsChanged(Changeset { based_on: 0, author: String::new(), reason: String::new(), budgets }));
        for number in 0..1 + dice.below(4) {
            setting.tell(&Event::NodeJoined { node: NodeId(number), spec: node(dice) });
        }
        setting
    }

    fn tell(&mut self, event: &Event) -> bool {
        self.scheduler.apply(self.at, event, &mut Vec::new()).is_ok()
    }

    fn submit(&mut self, event: Event) -> Option<WorkloadId> {
        let Event::Submitted { spec, .. } = event else { return None };
        let workload = WorkloadId(self.next);
        let taken = self.tell(&Event::Submitted { workload, spec });
        self.next += u32::from(taken);
        taken.then_some(workload)
    }

    /// Leases with and without contracts, past and protected, some gone and some on their way out.
    fn fill(&mut self, dice: &mut Dice) {
        for _ in 0..dice.below(12) {
            let contract = dice.pick(&[Span::ZERO, Span::minutes(1), Span::minutes(1), Span::hours(8)]);
            let Some(id) = self.submit(workload(VICTIMS, gang(dice), contract)) else { continue };
            self.scheduler.decide(self.at, &mut Vec::new());
            let lease = LeaseId { workload: id, attempt: 1 };
            if self.scheduler.workloads.get(id.0).is_some_and(|workload| workload.lease().is_none())
                || !self.tell(&Event::LeaseRunning { lease })
            {
                self.tell(&Event::Cancelled { workload: id });
            }
        }
        self.at = self.at + Span::hours(2);
        self.tell(&Event::Tick);
        for id in 0..self.next {
            match dice.below(8) {
                0 | 1 => _ = self.tell(&Event::LeaseEnded { lease: LeaseId { workload: WorkloadId(id), attempt: 1 }, exit: Exit::Done }),
                2 => _ = self.tell(&Event::Cancelled { workload: WorkloadId(id) }),
                _ => {}
            }
        }
    }

    /// What is left of each node if what leaves anyway and these victims were gone.
    fn left_without(&self, victims: &[WorkloadId]) -> Vec<Left> {
        let pool = &self.scheduler.pools[0];
        let host = |node: &crate::cluster::Node| Host { cpus: node.spec.cpus.into(), memory: node.spec.memory as i64 };
        let mut left: Vec<Left> = pool
            .cluster
            .iter()
            .map(|(id, node)| Left { id, spec: node.spec.clone(), gpus: GpuSet::first(node.spec.gpus), host: host(node) })
            .collect();
        for (id, workload) in self.scheduler.workloads.iter() {
            let Some(lease) = workload.lease().filter(|lease| lease.stop.is_none() && !victims.contains(&WorkloadId(id))) else { continue };
            for slot in lease.placement.iter() {
                let node = left.iter_mut().find(|node| node.id == slot.node).expect("a node of the cluster");
                node.gpus = node.gpus.minus(slot.gpus);
                let members = slot.gpus.count() / workload.spec.gang.gpus_per_member;
                node.host = node.host.plus(Cluster::member_host(&node.spec, &workload.spec.gang).times(-i64::from(members)));
            }
        }
        left
    }

    /// Leases that the claimant may take.
    fn takeable(&self, past: bool) -> Vec<WorkloadId> {
        let is_takeable = |workload: &Workload| {
            workload.lease().is_some_and(|lease| {
                lease.stop.is_none() && (!workload.is_allocated() || (past && lease.protected_until.is_some_and(|until| until <= self.at)))
            })
        };
        self.scheduler.workloads.iter().filter(|(_, workload)| is_takeable(workload)).map(|(id, _)| WorkloadId(id)).collect()
    }

    fn search(&mut self, claimant: WorkloadId, past: bool) -> Result<Found, Blocker> {
        let s = &mut self.scheduler;
        let workload = s.workloads.get(claimant.0).expect("it waits");
        let claimant = Claimant { workload, terms: &workload.terms, overdue: false, aged_before: Time::MIN };
        let mut judge = Judge { pool: &mut s.pools[0], tree: &s.tree, standings: &mut Standings::default(), at: self.at };
        let licences = Licences::new(&claimant, past, &mut judge);
        Search {
            pool: judge.pool,
            workloads: &s.workloads,
            licences: &licences,
            ground: ground(&[Lane::General]),
            past,
            worth: true,
            at: self.at,
            may_fit: true,
            too_dear: &Cell::new(false),
        }
        .run()
    }
}

#[test]
fn victims_are_found_if_and_only_if_they_suffice_and_none_is_one_too_many() {
    let (mut found_none, mut found_some, mut evicted) = (0, 0, 0);
    for seed in 0..3000 {
        let mut dice = Dice::new(seed);
        let mut setting = Setting::new(&mut dice);
        setting.fill(&mut dice);
        let claimant = gang(&mut dice);
        let past = dice.once_in(2);
        let Some(id) = setting.submit(workload(CLAIMANTS, claimant, Span::hours(8))) else { continue };
        let takeable = setting.takeable(past);
        // Somebody who used nothing at all stands no lower than another.
        let serves = |victims: &[WorkloadId]| fewest_blocks(&setting.left_without(victims), &claimant).is_some();
        let (all, nobody) = (serves(&takeable), serves(&[]));
        let found = setting.search(id, past);
        assert_eq!(found.is_ok(), all, "seed {seed}: {claimant:?} with {takeable:?}: {:?}", found.err());
        let Ok(found) = found else {
            found_none += 1;
            continue;
        };
        let victims: Vec<WorkloadId> = found.victims.iter().map(|victim| victim.id).collect();
        assert!(victims.iter().all(|victim| takeable.contains(victim)), "seed {seed}: only what may be taken");
        assert_fits(&setting.left_without(&victims), &claimant, &found.slots, &format!("seed {seed}"));
        for one in &victims {
            let others: Vec<WorkloadId> = victims.iter().copied().filter(|victim| victim != one).collect();
            assert!(fewest_blocks(&setting.left_without(&others), &claimant).is_none(), "seed {seed}: {one} is one too many");
        }
        assert_eq!(victims.is_empty(), nobody, "seed {seed}: what leaves anyway comes first");
        found_some += 1;
        evicted += victims.len();
    }
    assert!(found_none > 200 && found_some > 200 && evicted > 200, "{found_none} {found_some} {evicted}");
}
