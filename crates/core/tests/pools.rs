//! Work that accepts several pools: where it waits, where it goes, and what it is told.

use stipend_core::Scheduler;
use stipend_core::counterfactual::Change;
use stipend_core::entry::{ChargeKind, Entry};
use stipend_core::event::{Event, Exit, Rejection};
use stipend_core::explain::{Blocker, Ids};
use stipend_core::id::{BlockId, BudgetId, LeaseId, NodeId, PoolId, UserId, WorkloadId};
use stipend_core::inquiry::Answer;
use stipend_core::knobs::Knobs;
use stipend_core::quantity::{Gpus, Ppm, Span, Time};
use stipend_core::spec::{BudgetSpec, Changeset, Features, Gang, LeafOrder, NodeSpec, OnPreempt, PoolShare, Pools, Severity, WorkloadSpec};

/// Pools of one node of 8 GPUs each, and two leaves with half of each.
struct Story {
    core: Scheduler,
    log: Vec<Entry>,
    next: u32,
    now: i64,
}

fn pools(order: &[u16]) -> Pools {
    Pools::from_order(&order.iter().map(|pool| PoolId(*pool)).collect::<Vec<_>>()).expect("at least one")
}

fn budget(id: u32, shares: &[u32]) -> BudgetSpec {
    let pools = shares.iter().map(|share| PoolShare { share: Ppm(*share), ..PoolShare::default() }).collect();
    BudgetSpec {
        id: BudgetId(id),
        parent: (id > 0).then_some(BudgetId(0)),
        name: id.to_string(),
        pools,
        order: LeafOrder::Priority,
        closed: false,
    }
}

impl Story {
    fn new(nodes: &[u32], shares: &[&[u32]]) -> Story {
        let mut story = Story { core: Scheduler::new(Time(0)), log: Vec::new(), next: 0, now: 0 };
        let whole = vec![1_000_000; nodes.len()];
        for pool in 0..nodes.len() as u16 {
            story.tell(Event::KnobsSet { pool: PoolId(pool), knobs: Box::default() });
        }
        let mut budgets = vec![budget(0, &whole)];
        budgets.extend(shares.iter().enumerate().map(|(leaf, shares)| budget(leaf as u32 + 1, shares)));
        story.tell(Event::BudgetsChanged(Changeset { based_on: 0, author: String::new(), reason: String::new(), budgets }));
        for (pool, gpus) in nodes.iter().enumerate() {
            let spec = NodeSpec {
                pool: PoolId(pool as u16),
                gpus: *gpus,
                cpus: 0,
                memory: 0,
                block: BlockId(0),
                features: Features(0),
                express: false,
            };
            story.tell(Event::NodeJoined { node: NodeId(pool as u32), spec });
        }
        story
    }

    /// Two equal leaves.
    fn halves(nodes: &[u32]) -> Story {
        let half = vec![500_000; nodes.len()];
        Story::new(nodes, &[&half, &half])
    }

    fn tell(&mut self, event: Event) {
        self.core.apply(Time(self.now * 1000), &event, &mut self.log).expect("a right fact");
    }

    fn try_submit(&mut self, spec: WorkloadSpec) -> Result<WorkloadId, Rejection> {
        let workload = WorkloadId(self.next);
        self.core.apply(Time(self.now * 1000), &Event::Submitted { workload, spec: spec.into() }, &mut self.log)?;
        self.next += 1;
        Ok(workload)
    }

    fn submit(&mut self, leaf: u32, gpus: u32, order: &[u16], min_runtime: Span) -> WorkloadId {
        let spec = WorkloadSpec::new(BudgetId(leaf), UserId(0), pools(order), Gang::new(1, gpus), min_runtime);
        self.try_submit(spec).expect("it can run")
    }

    /// What starts now, and where.
    fn decide(&mut self, at: i64) -> Vec<(WorkloadId, PoolId)> {
        self.now = at;
        let from = self.log.len();
        let (before, digest) = (self.core.clone(), self.core.plan(Time(at * 1000)));
        self.core.decide(Time(at * 1000), &mut self.log);
        let mut replayed = before;
        replayed.commit(&digest, &mut Vec::new());
        assert_eq!(replayed.digest(), self.core.digest(), "a plan that is committed is what was decided");
        let started = self.log[from..].iter();
        started
            .filter_map(|entry| if let Entry::Started { lease, pool, .. } = entry { Some((lease.workload, *pool)) } else { None })
            .collect()
    }

    fn run(&mut self, workload: WorkloadId, attempt: u32) {
        self.tell(Event::LeaseRunning { lease: LeaseId { workload, attempt } });
    }

    fn end(&mut self, at: i64, workload: WorkloadId, attempt: u32, exit: Exit) {
        self.now = at;
        self.tell(Event::LeaseEnded { lease: LeaseId { workload, attempt }, exit });
    }

    fn why(&self, workload: WorkloadId) -> Vec<String> {
        let there = self.core.explain(workload).expect("it waits").pools;
        there.iter().map(|there| format!("{}: {}", there.pool, there.blockers[0].text(there.pool, &Ids))).collect()
    }
}

const HOUR: Span = Span::hours(1);

#[test]
fn it_goes_to_the_pool_named_first_whatever_the_numbers() {
    let mut story = Story::halves(&[8, 8]);
    let first = story.submit(1, 8, &[1, 0], HOUR);
    let second = story.submit(1, 8, &[1, 0], HOUR);
    assert_eq!(story.decide(0), [(first, PoolId(1)), (second, PoolId(0))]);
    let third = story.submit(1, 8, &[1, 0], HOUR);
    assert_eq!(story.decide(1), []);
    story.end(2, second, 1, Exit::Done);
    assert_eq!(story.decide(2), [(third, PoolId(0))], "what it likes less is free first");
}

#[test]
fn two_pools_that_are_each_liked_better() {
    // Pool 0 is gone through first; the work that likes pool 1 better is left to it.
    let mut story = Story::halves(&[8, 8]);
    let likes_one = story.submit(1, 8, &[1, 0], HOUR);
    let likes_zero = story.submit(2, 8, &[0, 1], HOUR);
    assert_eq!(story.decide(0), [(likes_zero, PoolId(0)), (likes_one, PoolId(1))]);
}

#[test]
fn what_was_left_to_another_pool_comes_back() {
    // Both leaves like pool 1 better, and work that likes pool 0 better makes the two pools depend on each other.
    let mut story = Story::halves(&[8, 8]);
    let older = story.submit(1, 8, &[1], HOUR);
    let younger = story.submit(2, 8, &[1, 0], HOUR);
    story.submit(2, 4, &[0, 1], Span::ZERO);
    let started = story.decide(0);
    assert_eq!(started[..2], [(older, PoolId(1)), (younger, PoolId(0))]);
    assert_eq!(started.len(), 2, "unallocated work takes nothing that comes back could use");
}

#[test]
fn a_start_in_one_pool_ends_the_wait_in_the_others() {
    let mut story = Story::halves(&[8, 8]);
    let one = story.submit(1, 8, &[0, 1], HOUR);
    story.decide(0);
    story.tell(Event::Cancelled { workload: one });
    story.end(1, one, 1, Exit::Failed);
    assert_eq!(story.core.live_workloads(), 0);
    assert_eq!(story.decide(1), []);
    let held = story.submit(1, 8, &[0, 1], HOUR);
    story.tell(Event::Held { workload: held, why: "later".into() });
    assert_eq!(story.decide(2), []);
    assert_eq!(story.why(held), ["p0: held: later", "p1: held: later"]);
    story.tell(Event::Released { workload: held });
    assert_eq!(story.decide(3), [(held, PoolId(0))]);
    let withdrawn = story.submit(1, 8, &[1, 0], Span::ZERO);
    story.tell(Event::Cancelled { workload: withdrawn });
    assert_eq!(story.decide(4), []);
}

#[test]
fn preempted_in_one_pool_it_goes_to_another() {
    let mut story = Story::halves(&[8, 8]);
    let other = story.submit(2, 8, &[1], HOUR);
    let victim = story.submit(1, 8, &[0, 1], Span::ZERO);
    assert_eq!(story.decide(0), [(victim, PoolId(0)), (other, PoolId(1))]);
    story.run(victim, 1);
    let claimant = story.submit(2, 8, &[0], HOUR);
    assert_eq!(story.decide(60), []);
    story.end(65, victim, 1, Exit::Failed);
    assert_eq!(story.decide(65), [(claimant, PoolId(0))]);
    story.end(70, other, 1, Exit::Done);
    assert_eq!(story.decide(70), [(victim, PoolId(1))]);
    // Its eligible time is one and was kept, and so were its attempts.
    let attempts = story.log.iter().filter_map(|entry| match entry {
        Entry::Started { lease, pool, .. } if lease.workload == victim => Some((lease.attempt, *pool)),
        _ => None,
    });
    assert_eq!(attempts.collect::<Vec<_>>(), [(1, PoolId(0)), (2, PoolId(1))]);
}

#[test]
fn each_pool_has_its_own_contract_and_charge() {
    let mut story = Story::halves(&[8, 8]);
    let knobs = Knobs { min_runtime_max: Span::minutes(30), ..Knobs::default() };
    story.tell(Event::KnobsSet { pool: PoolId(1), knobs: Box::new(knobs) });
    story.submit(2, 8, &[0], HOUR);
    story.decide(0);
    let one = story.submit(1, 8, &[0, 1], HOUR);
    story.decide(0);
    story.run(one, 1);
    let until =
        story.log.iter().rev().find_map(|e| if let Entry::Running { protected_until, .. } = e { Some(*protected_until) } else { None });
    assert_eq!(until, Some(Some(Time(1_800_000))));
    story.end(600, one, 1, Exit::Done);
    let charged = story.log.iter().find_map(|entry| match entry {
        Entry::Charged { pool, kind: ChargeKind::Run, gpu_ms, .. } => Some((*pool, gpu_ms.0)),
        _ => None,
    });
    assert_eq!(charged, Some((PoolId(1), 8 * 600_000)));
    assert!(story.core.standing(PoolId(1), BudgetId(1)) > story.core.standing(PoolId(0), BudgetId(1)));
}

/// Neither a protection nor a quantum is what stops work where the nodes are gone.
#[test]
fn work_that_waits_for_nodes_out_of_service_is_told_so() {
    let mut story = Story::halves(&[8, 4]);
    let (whole, half) = (story.submit(1, 8, &[0], HOUR), story.submit(1, 2, &[1], Span::ZERO));
    story.tell(Event::NodeLost { node: NodeId(0) });
    story.tell(Event::NodeLost { node: NodeId(1) });
    story.decide(0);
    let elsewhere = "take new work: its nodes are draining, drained, being repaired or lost";
    assert_eq!(story.why(whole), [format!("p0: needs 8 GPUs; none of the pool's 8 GPUs {elsewhere}")]);
    assert_eq!(story.why(half), [format!("p1: needs 2 GPUs; none of the pool's 4 GPUs {elsewhere}")]);
    story.tell(Event::NodeReady { node: NodeId(0) });
    story.decide(1);
    assert_eq!(story.core.explain(whole), None, "it has started");
    // A node that drains takes no new work, though it counts while somebody is still on it: what ends there frees nothing.
    story.tell(Event::NodeDrainRequested { node: NodeId(0), severity: Severity::Sick, reason: "a fan".into() });
    let next = story.submit(1, 8, &[0], HOUR);
    story.decide(2);
    assert_eq!(story.why(next), [format!("p0: needs 8 GPUs; none of the pool's 8 GPUs {elsewhere}")]);
    let Some(Answer::Waiting(wait)) = story.core.inquire(next) else { panic!("it waits") };
    assert_eq!(wait.pools[0].place.as_ref().and_then(|place| place.unprotected), None);
}

#[test]
fn pools_that_never_could_take_it_are_skipped_with_a_reason() {
    let mut story = Story::halves(&[8, 4]);
    let large = |order: &[u16]| WorkloadSpec::new(BudgetId(1), UserId(0), pools(order), Gang::new(1, 8), HOUR);
    let skipped = story.try_submit(large(&[1, 0])).expect("one takes it");
    let Some(Entry::Submitted { pool, skipped: reasons, .. }) = story.log.iter().find(|e| matches!(e, Entry::Submitted { .. })) else {
        panic!("it was submitted")
    };
    assert_eq!((*pool, reasons[0].0), (PoolId(0), PoolId(1)));
    assert!(matches!(reasons[0].1, Rejection::GangNeverFits { .. }));
    assert!(matches!(story.try_submit(large(&[1])), Err(Rejection::GangNeverFits { .. })), "and refused where none does");
    assert_eq!(story.try_submit(large(&[0, 7])), Err(Rejection::PoolUnknown(PoolId(7))));
    assert!(matches!(story.try_submit(large(&[0, 1, 0])), Err(Rejection::Request { field: "pools", .. })));
    story.tell(Event::Held { workload: skipped, why: "later".into() });
    let there = story.core.explain(skipped).expect("it waits").pools;
    assert!(matches!(there[0].blockers[..], [Blocker::Skipped(Rejection::GangNeverFits { .. })]));
    // Work that cannot go on has its limit for its contract, and a pool may bound that.
    let knobs = Knobs { end_max: Span::hours(2), ..Knobs::default() };
    story.tell(Event::KnobsSet { pool: PoolId(0), knobs: Box::new(knobs) });
    let long = |order: &[u16]| {
        let spec = WorkloadSpec::new(BudgetId(1), UserId(0), pools(order), Gang::new(1, 1), HOUR);
        WorkloadSpec { on_preempt: OnPreempt::End, time_limit: Some(Span::hours(3)), ..spec }
    };
    assert!(matches!(story.try_submit(long(&[0])), Err(Rejection::Request { field: "time_limit", .. })));
    assert!(story.try_submit(long(&[0, 1])).is_ok());
}

#[test]
fn a_claim_in_one_of_its_pools_is_enough() {
    let mut story = Story::new(&[8, 8], &[&[0, 500_000], &[500_000, 0]]);
    let spec = |order: &[u16]| WorkloadSpec::new(BudgetId(1), UserId(0), pools(order), Gang::new(1, 8), HOUR);
    assert!(matches!(story.try_submit(spec(&[0])), Err(Rejection::ZeroClaim { .. })));
    let first = story.try_submit(spec(&[0, 1])).expect("it has a claim in one");
    assert_eq!(story.decide(0), [(first, PoolId(1))], "pool 0 is free, and its budget has no claim there");
    let second = story.try_submit(spec(&[0, 1])).expect("it has a claim in one");
    assert_eq!(story.decide(1), []);
    assert!(story.why(second)[0].contains("no claim on the pool"), "{:?}", story.why(second));
    let budgets = vec![budget(1, &[500_000, 500_000])];
    story.tell(Event::BudgetsChanged(Changeset { based_on: 1, author: String::new(), reason: String::new(), budgets }));
    assert_eq!(story.decide(2), [(second, PoolId(0))], "shares change any day");
}

#[test]
fn caps_and_reasons_are_by_pool() {
    let mut story = Story::halves(&[8, 8]);
    let mut capped = budget(1, &[500_000, 500_000]);
    capped.pools[0].gpus_max = Some(Gpus(4));
    story.tell(Event::BudgetsChanged(Changeset { based_on: 1, author: String::new(), reason: String::new(), budgets: vec![capped] }));
    story.submit(2, 8, &[1], HOUR);
    story.decide(0);
    let one = story.submit(1, 8, &[0, 1], HOUR);
    story.decide(1);
    let why = story.why(one);
    assert!(why[0].starts_with("p0: the cap of b1 on 4 GPUs at once"), "{why:?}");
    assert!(why[1].starts_with("p1: needs 8 GPUs; 0 are within reach"), "{why:?}");
}

#[test]
fn it_is_answered_for_each_pool_and_for_one_that_would_take_it() {
    let mut story = Story::halves(&[8, 8, 8, 4]);
    let there = story.submit(2, 8, &[1], HOUR);
    story.submit(2, 8, &[0], HOUR);
    story.decide(0);
    let one = story.submit(1, 8, &[1, 3, 0], HOUR);
    assert_eq!(story.decide(1), []);
    let Some(Answer::Waiting(wait)) = story.core.inquire(one) else { panic!("it waits") };
    let pools: Vec<_> = wait.pools.iter().map(|there| (there.explanation.pool, there.place.is_some())).collect();
    assert_eq!(pools, [(PoolId(1), true), (PoolId(3), false), (PoolId(0), true)], "in its order, and pool 3 is too small");
    let texts: Vec<String> = wait.counterfactuals.iter().map(|one| one.text(PoolId(1), &Ids)).collect();
    assert_eq!(texts[0], "in pool p2 it would start now on n2", "{texts:?}");
    assert!(!texts.iter().any(|text| text.contains("p3")), "{texts:?}");
    assert_eq!(wait.counterfactuals[0].change, Change::Pools { to: PoolId(2) });
    let Some(Answer::Running(run)) = story.core.inquire(there) else { panic!("it runs") };
    assert_eq!(run.pool, PoolId(1));
}

#[test]
fn who_may_take_a_lease_is_asked_in_the_pool_where_it_is() {
    let mut story = Story::halves(&[8, 8]);
    let full = story.submit(2, 8, &[1], HOUR);
    let victim = story.submit(1, 8, &[1, 0], Span::ZERO);
    assert_eq!(story.decide(0), [(full, PoolId(1)), (victim, PoolId(0))]);
    let waits = story.submit(2, 4, &[1], HOUR);
    story.decide(1);
    let takers = |story: &Story| match story.core.inquire(victim) {
        Some(Answer::Running(run)) => run.takers.iter().map(|taker| taker.workload).collect::<Vec<_>>(),
        other => panic!("it runs: {other:?}"),
    };
    assert_eq!(takers(&story), [], "{waits} waits in the other pool");
    let claimant = story.submit(2, 4, &[1, 0], HOUR);
    assert_eq!(takers(&story), [claimant]);
}
