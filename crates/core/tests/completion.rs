//! The order by completion: who goes first, and the bound of who may be passed by whom.

use std::collections::BTreeMap;
use stipend_core::Scheduler;
use stipend_core::entry::Entry;
use stipend_core::event::{Event, Exit};
use stipend_core::id::{BlockId, BudgetId, FamilyId, LeaseId, NodeId, PoolId, UserId, WorkloadId};
use stipend_core::knobs::Knobs;
use stipend_core::quantity::{Ppm, Span, Time};
use stipend_core::spec::{BudgetSpec, Changeset, Features, Gang, LeafOrder, NodeSpec, PoolShare, WorkloadSpec};

const POOL: PoolId = PoolId(0);
const HEAD_START: Span = Span::hours(4);

/// Numbers that look random, the same every time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) % bound
    }
}

fn scheduler(order: LeafOrder) -> Scheduler {
    let mut core = Scheduler::new(Time(0));
    let mut tell = |event: Event| core.apply(Time(0), &event, &mut Vec::new()).expect("a sound set-up");
    // Age has a rule of its own, which is not in question here.
    let knobs = Knobs { head_start_max: HEAD_START, age_min: Span::days(400), ..Knobs::default() };
    tell(Event::KnobsSet { pool: POOL, knobs: Box::new(knobs) });
    let share = PoolShare { share: Ppm(1_000_000), ..PoolShare::default() };
    let budget = |id: u32, parent: Option<u32>| BudgetSpec {
        id: BudgetId(id),
        parent: parent.map(BudgetId),
        name: format!("b{id}"),
        pools: vec![share],
        order,
        closed: false,
    };
    let budgets = vec![budget(0, None), budget(1, Some(0))];
    tell(Event::BudgetsChanged(Changeset { based_on: 0, author: "ann".into(), reason: "plan".into(), budgets }));
    let spec = NodeSpec { pool: POOL, gpus: 8, cpus: 0, memory: 0, block: BlockId(0), features: Features(0), express: false };
    tell(Event::NodeJoined { node: NodeId(0), spec });
    core
}

/// Work of four families, of which the higher fail more often, comes faster than one node can do it; their starts in order, with when each
/// became eligible and of which family it is.
fn starts(order: LeafOrder, seed: u64, named: bool) -> Vec<(Time, Time, u64)> {
    let (mut core, mut dice) = (scheduler(order), Dice(seed));
    let (mut log, mut eligible, mut starts): (Vec<Entry>, BTreeMap<u32, (Time, u64)>, _) = (Vec::new(), BTreeMap::new(), Vec::new());
    let mut running: Option<(LeaseId, Time)> = None;
    let mut next = 0;
    for minute in 0..6000 {
        let at = Time(minute * 60_000);
        if let Some((lease, _)) = running.filter(|(_, until)| *until <= at) {
            let family = eligible[&lease.workload.0].1;
            let exit = if dice.below(4) < family { Exit::Failed } else { Exit::Completed };
            core.apply(at, &Event::LeaseEnded { lease, exit }, &mut log).expect("it runs");
            running = None;
        }
        if dice.below(20) == 0 {
            let family = dice.below(4);
            let spec = WorkloadSpec {
                family: named.then_some(FamilyId(family)),
                ..WorkloadSpec::new(BudgetId(1), UserId(0), POOL, Gang::new(1, 8), Span::minutes(30))
            };
            core.apply(at, &Event::Submitted { workload: WorkloadId(next), spec: spec.into() }, &mut log).expect("a right request");
            eligible.insert(next, (at, family));
            next += 1;
        }
        core.decide(at, &mut log);
        for entry in log.drain(..) {
            if let Entry::Started { lease, .. } = entry {
                core.apply(at, &Event::LeaseRunning { lease }, &mut Vec::new()).expect("it starts");
                running = Some((lease, at + Span::minutes(20 + dice.below(20) as i64)));
                let (since, family) = eligible[&lease.workload.0];
                starts.push((at, since, family));
            }
        }
    }
    starts
}

/// Nothing is passed by what became eligible more than the head start later; and the head start is used.
#[test]
fn nothing_is_passed_by_what_came_more_than_a_head_start_later() {
    let mut longest = Span::ZERO;
    for seed in 0..8 {
        let starts = starts(LeafOrder::Completion, seed, true);
        assert!(starts.len() > 100);
        for (place, (at, since, _)) in starts.iter().enumerate() {
            // Who started later had been waiting when this one started, if it was eligible then.
            for (_, passed_since, _) in starts[place + 1..].iter().filter(|(_, passed_since, _)| passed_since < since && passed_since <= at)
            {
                longest = longest.max(*since - *passed_since);
            }
        }
    }
    assert!(longest <= HEAD_START, "{longest}");
    assert!(longest > Span::hours(1), "{longest}");
}

/// Work that nothing tells apart keeps its order among itself, however its user's and its budget's records move meanwhile.
#[test]
fn equal_work_keeps_its_order() {
    for seed in 0..8 {
        let starts = starts(LeafOrder::Completion, seed, true);
        for family in 0..4 {
            let since: Vec<Time> = starts.iter().filter(|start| start.2 == family).map(|(_, since, _)| *since).collect();
            assert!(since.is_sorted(), "seed {seed}, family {family}");
        }
        assert!(crate::starts(LeafOrder::Completion, seed, false).is_sorted_by_key(|(_, since, _)| *since), "seed {seed}");
    }
}

/// What completes waits less than what fails, which is not so in the order of arrival.
#[test]
fn work_that_completes_waits_less() {
    let waits = |order| {
        let all: Vec<_> = (0..8).flat_map(|seed| starts(order, seed, true)).collect();
        let mean = |family: u64| {
            let of: Vec<i64> = all.iter().filter(|start| start.2 == family).map(|(at, since, _)| (*at - *since).0).collect();
            of.iter().sum::<i64>() / of.len() as i64 / 60_000
        };
        (mean(0), mean(3))
    };
    let ((good, bad), (good_by_age, bad_by_age)) = (waits(LeafOrder::Completion), waits(LeafOrder::Fifo));
    assert!(good + 60 < bad, "{good} and {bad} min");
    assert!((good_by_age - bad_by_age).abs() < 60 && good < good_by_age, "{good_by_age} and {bad_by_age} min");
}

/// What waits in a leaf is sorted anew, with its head start, when the order becomes completion; and back again.
#[test]
fn a_leaf_may_change_its_order_while_work_waits() {
    for (changes, expected) in [(vec![LeafOrder::Completion], 15), (vec![LeafOrder::Completion, LeafOrder::Fifo], 14)] {
        let (mut core, mut log) = (scheduler(LeafOrder::Fifo), Vec::new());
        let mut minute = 0;
        let mut tell = |core: &mut Scheduler, log: &mut Vec<Entry>, event: Event| {
            minute += 1;
            core.apply(Time(minute * 60_000), &event, log).expect("it is right");
            core.decide(Time(minute * 60_000), log);
        };
        let submit = |id: u32, family: u64| {
            let spec = WorkloadSpec::new(BudgetId(1), UserId(0), POOL, Gang::new(1, 8), Span::minutes(30));
            let spec = WorkloadSpec { family: Some(FamilyId(family)), ..spec };
            Event::Submitted { workload: WorkloadId(id), spec: spec.into() }
        };
        // Of family 0 everything completed, of family 1 nothing.
        for id in 0..12 {
            let lease = LeaseId { workload: WorkloadId(id), attempt: 1 };
            tell(&mut core, &mut log, submit(id, u64::from(id) % 2));
            tell(&mut core, &mut log, Event::LeaseRunning { lease });
            tell(&mut core, &mut log, Event::LeaseEnded { lease, exit: if id % 2 == 0 { Exit::Completed } else { Exit::Failed } });
        }
        for (id, family) in [(13, 0), (14, 1), (15, 0)] {
            tell(&mut core, &mut log, submit(id, family));
        }
        for (version, order) in (1..).zip(changes) {
            let pools = vec![PoolShare { share: Ppm(1_000_000), ..PoolShare::default() }];
            let leaf = BudgetSpec { id: BudgetId(1), parent: Some(BudgetId(0)), name: "b1".into(), pools, order, closed: false };
            let change = Changeset { based_on: version, author: "ann".into(), reason: "try it".into(), budgets: vec![leaf] };
            tell(&mut core, &mut log, Event::BudgetsChanged(change));
        }
        let lease = LeaseId { workload: WorkloadId(13), attempt: 1 };
        tell(&mut core, &mut log, Event::LeaseRunning { lease });
        tell(&mut core, &mut log, Event::LeaseEnded { lease, exit: Exit::Completed });
        let last = log.iter().rev().find_map(|entry| if let Entry::Started { lease, .. } = entry { Some(lease.workload.0) } else { None });
        assert_eq!(last, Some(expected));
    }
}
