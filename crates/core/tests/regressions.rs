//! Faults that random histories found, each as short as it can be told.

use stipend_core::Scheduler;
use stipend_core::entry::{Entry, Outcome};
use stipend_core::event::{Event, Exit};
use stipend_core::id::{BlockId, BudgetId, LeaseId, NodeId, PoolId, UserId, WorkloadId};
use stipend_core::quantity::{Ppm, Span, Time};
use stipend_core::spec::{BudgetSpec, Changeset, Features, Gang, LeafOrder, NodeSpec, PoolShare, Severity, WorkloadSpec};

const POOL: PoolId = PoolId(0);

/// One node of 8 GPUs, and two leaves with half of it each.
struct Story {
    core: Scheduler,
    log: Vec<Entry>,
}

fn budget(id: u32, share: u32) -> BudgetSpec {
    let pools = vec![PoolShare { share: Ppm(share), ..PoolShare::default() }];
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
    fn new() -> Story {
        let mut story = Story { core: Scheduler::new(Time(0)), log: Vec::new() };
        story.tell(0, Event::KnobsSet { pool: POOL, knobs: Box::default() });
        story.change(0, 0, vec![budget(0, 1_000_000), budget(1, 500_000), budget(2, 500_000)]);
        let spec = NodeSpec { pool: POOL, gpus: 8, cpus: 0, memory: 0, block: BlockId(0), features: Features(0), express: false };
        story.tell(0, Event::NodeJoined { node: NodeId(0), spec });
        story
    }

    fn tell(&mut self, seconds: i64, event: Event) {
        self.core.apply(Time(seconds * 1000), &event, &mut self.log).expect("a right fact");
    }

    fn change(&mut self, seconds: i64, based_on: u32, budgets: Vec<BudgetSpec>) {
        self.tell(seconds, Event::BudgetsChanged(Changeset { based_on, author: String::new(), reason: String::new(), budgets }));
    }

    fn submit(&mut self, seconds: i64, id: u32, leaf: u32, min_runtime: Span) {
        let spec = WorkloadSpec::new(BudgetId(leaf), UserId(0), POOL, Gang::new(1, 8), min_runtime);
        self.tell(seconds, Event::Submitted { workload: WorkloadId(id), spec: spec.into() });
    }

    /// What is decided now.
    fn decide(&mut self, seconds: i64) -> Vec<Entry> {
        let from = self.log.len();
        self.core.decide(Time(seconds * 1000), &mut self.log);
        self.log[from..].to_vec()
    }
}

fn lease(id: u32, attempt: u32) -> LeaseId {
    LeaseId { workload: WorkloadId(id), attempt }
}

fn started(entries: &[Entry]) -> Vec<LeaseId> {
    entries.iter().filter_map(|entry| if let Entry::Started { lease, .. } = entry { Some(*lease) } else { None }).collect()
}

#[test]
fn unallocated_work_is_not_started_where_a_contract_waits() {
    let mut story = Story::new();
    story.submit(0, 0, 1, Span::ZERO);
    assert_eq!(started(&story.decide(0)), [lease(0, 1)]);
    story.tell(1, Event::LeaseRunning { lease: lease(0, 1) });
    story.submit(60, 1, 1, Span::hours(1));
    story.decide(60);
    // The claimant goes away after the signal, and another comes.
    story.tell(61, Event::Cancelled { workload: WorkloadId(1) });
    story.submit(62, 2, 2, Span::hours(1));
    story.decide(62);
    story.tell(63, Event::LeaseEnded { lease: lease(0, 1), exit: Exit::Failed });
    let entries = story.decide(63);
    assert_eq!(started(&entries), [lease(2, 1)]);
    assert!(!entries.iter().any(|entry| matches!(entry, Entry::Preempting { .. })), "nobody is started to be stopped");
}

#[test]
fn a_drain_waits_for_a_protection_that_began_late() {
    let mut story = Story::new();
    story.submit(0, 0, 1, Span::hours(1));
    story.decide(0);
    story.tell(60, Event::NodeDrainRequested { node: NodeId(0), severity: Severity::Sick, reason: "fan".into() });
    story.decide(60);
    // Nobody was told anything for two hours; then its start is reported before anybody acts on the timeout.
    story.tell(7200, Event::LeaseRunning { lease: lease(0, 1) });
    let is_preempted = |entries: &[Entry]| entries.iter().any(|entry| matches!(entry, Entry::Preempting { .. }));
    assert!(!is_preempted(&story.decide(7200)));
    let shown = story.log.iter().rev().find_map(|entry| if let Entry::Node { drain_until, .. } = entry { *drain_until } else { None });
    assert_eq!(shown, Some(Time(10_800_000)), "the later end is shown");
    assert!(!is_preempted(&story.decide(10_799)));
    assert!(is_preempted(&story.decide(10_800)));
}

#[test]
fn a_leaf_whose_claim_was_taken_away_starts_no_contract() {
    let mut story = Story::new();
    story.submit(0, 0, 1, Span::hours(1));
    story.change(1, 1, vec![budget(1, 0)]);
    assert_eq!(started(&story.decide(1)), []);
    let why = story.core.explain(WorkloadId(0)).expect("it waits").pools[0].blockers[0].text(POOL, &stipend_core::explain::Ids);
    assert!(why.contains("no claim on the pool"), "{why}");
    story.change(2, 2, vec![budget(1, 100_000)]);
    assert_eq!(started(&story.decide(2)), [lease(0, 1)], "and does once it has one again");
    story.tell(3, Event::LeaseEnded { lease: lease(0, 1), exit: Exit::Done });
    assert!(story.log.iter().any(|entry| matches!(entry, Entry::Ended { outcome: Outcome::Completed, .. })));
}

#[test]
fn the_last_multiple_of_a_clamped_contract_counts() {
    // It asks for a day and gets eight hours: what is lost after ten hours is two, not ten.
    let mut story = Story::new();
    story.submit(0, 0, 1, Span::hours(24));
    story.decide(0);
    story.tell(0, Event::LeaseRunning { lease: lease(0, 1) });
    story.tell(36_000, Event::LeaseEnded { lease: lease(0, 1), exit: Exit::Infrastructure });
    let refunded = story.log.iter().find_map(|entry| if let Entry::Refunded { from, .. } = entry { Some(*from) } else { None });
    assert_eq!(refunded, Some(Time(28_800_000)));
}
