//! Changesets of the tree: budgets that move, close and open again, and those of a later date.

use stipend_core::Scheduler;
use stipend_core::budget::{Broken, BudgetTree};
use stipend_core::entry::Entry;
use stipend_core::event::{Event, Exit, Rejection};
use stipend_core::id::{BlockId, BudgetId, LeaseId, NodeId, PoolId, UserId, WorkloadId};
use stipend_core::quantity::{Ppm, Span, Standing, Time};
use stipend_core::spec::{BudgetSpec, Changeset, Features, Gang, LeafOrder, NodeSpec, PoolShare, WorkloadSpec};

const POOL: PoolId = PoolId(0);

/// `lab` (0) with `x` (1), which has `a` (3) and `c` (4), and `y` (2), which has `b` (5).
fn tree() -> Vec<BudgetSpec> {
    vec![
        budget(0, None, 100),
        budget(1, Some(0), 50),
        budget(2, Some(0), 50),
        budget(3, Some(1), 60),
        budget(4, Some(1), 40),
        budget(5, Some(2), 60),
    ]
}

fn budget(id: u32, parent: Option<u32>, percent: u32) -> BudgetSpec {
    BudgetSpec {
        id: BudgetId(id),
        parent: parent.map(BudgetId),
        name: format!("b{id}"),
        pools: vec![PoolShare { share: Ppm(percent * 10_000), ..PoolShare::default() }],
        order: LeafOrder::Priority,
        closed: false,
    }
}

fn closed(id: u32, parent: u32, percent: u32) -> BudgetSpec {
    BudgetSpec { closed: true, ..budget(id, Some(parent), percent) }
}

fn change(based_on: u32, budgets: Vec<BudgetSpec>) -> Changeset {
    Changeset { based_on, author: "ann".into(), reason: "plan".into(), budgets }
}

struct Story {
    core: Scheduler,
    log: Vec<Entry>,
}

impl Story {
    /// Two nodes of 8 GPUs.
    fn new() -> Story {
        let mut story = Story { core: Scheduler::new(Time(0)), log: Vec::new() };
        story.tell(0, Event::KnobsSet { pool: POOL, knobs: Box::default() }).expect("the first pool");
        story.tell(0, Event::BudgetsChanged(change(0, tree()))).expect("a right tree");
        for node in 0..2 {
            let spec = NodeSpec { pool: POOL, gpus: 8, cpus: 0, memory: 0, block: BlockId(0), features: Features(0), express: false };
            story.tell(0, Event::NodeJoined { node: NodeId(node), spec }).expect("a new node");
        }
        story
    }

    fn tell(&mut self, minutes: i64, event: Event) -> Result<(), Rejection> {
        self.core.apply(Time(minutes * 60_000), &event, &mut self.log)
    }

    fn change(&mut self, minutes: i64, budgets: Vec<BudgetSpec>) -> Result<(), Rejection> {
        let based_on = self.core.tree().version();
        self.tell(minutes, Event::BudgetsChanged(change(based_on, budgets)))
    }

    fn submit(&mut self, minutes: i64, id: u32, leaf: u32) -> Result<(), Rejection> {
        let spec = WorkloadSpec::new(BudgetId(leaf), UserId(0), POOL, Gang::new(1, 8), Span::hours(1));
        self.tell(minutes, Event::Submitted { workload: WorkloadId(id), spec: spec.into() })
    }

    /// What starts now; it runs at once.
    fn decide(&mut self, minutes: i64) -> Vec<u32> {
        let from = self.log.len();
        self.core.decide(Time(minutes * 60_000), &mut self.log);
        let started = |entry: &Entry| if let Entry::Started { lease, .. } = entry { Some(*lease) } else { None };
        let leases: Vec<LeaseId> = self.log[from..].iter().filter_map(started).collect();
        leases.iter().for_each(|lease| self.tell(minutes, Event::LeaseRunning { lease: *lease }).expect("it starts"));
        leases.iter().map(|lease| lease.workload.0).collect()
    }

    fn end(&mut self, minutes: i64, id: u32, attempt: u32, exit: Exit) {
        let lease = LeaseId { workload: WorkloadId(id), attempt };
        self.tell(minutes, Event::LeaseEnded { lease, exit }).expect("it runs");
    }

    fn standing(&self, budget: u32) -> Standing {
        self.core.standing(POOL, BudgetId(budget)).expect("a budget of the tree")
    }

    fn held(&self) -> Vec<(u32, &str)> {
        let held = |entry: &'_ Entry| matches!(entry, Entry::Held { .. });
        let shown = |entry| if let &Entry::Held { workload, ref why } = entry { (workload.0, why.as_str()) } else { unreachable!() };
        self.log.iter().filter(|entry| held(entry)).map(shown).collect()
    }
}

#[test]
fn a_lease_is_charged_to_the_ancestors_that_it_began_with() {
    let mut story = Story::new();
    story.submit(0, 0, 3).expect("a is open");
    assert_eq!(story.decide(0), [0]);
    let (x, a) = (story.standing(1), story.standing(3));
    story.change(0, vec![budget(3, Some(2), 40)]).expect("y has 40 % left");
    assert_eq!(story.standing(1), x, "what it has committed stays with x");
    assert_eq!(story.standing(2), Standing(0), "y got nothing of it");
    assert_eq!(story.standing(3), a, "and its past with a itself");
    // What it will start from now on is y's, and what it runs goes on to be x's.
    let before = story.standing(1);
    story.submit(30, 1, 3).expect("a is open");
    assert_eq!(story.decide(30), [1]);
    assert!(story.standing(2) > Standing(0));
    story.end(120, 0, 1, Exit::Completed);
    assert!(story.standing(1) > before, "an hour of it was past its contract");
    let y = story.standing(2);
    story.decide(120);
    assert_eq!(story.standing(2), y);
}

#[test]
fn work_that_waits_again_after_a_move_follows_its_budget() {
    let mut story = Story::new();
    story.submit(0, 0, 3).expect("a is open");
    story.decide(0);
    story.change(10, vec![budget(3, Some(2), 40)]).expect("y has 40 % left");
    story.end(20, 0, 1, Exit::Infrastructure);
    assert_eq!(story.decide(20), [0]);
    assert!(story.standing(2) > Standing(0), "its second attempt began after the move");
}

#[test]
fn a_move_keeps_the_tree_a_tree() {
    let mut story = Story::new();
    let refused = |story: &mut Story, budgets| story.change(1, budgets).expect_err("it breaks the tree");
    assert!(matches!(refused(&mut story, vec![budget(3, Some(2), 60)]), Rejection::SharesAbove100 { sum_ppm: 1_200_000, .. }));
    assert!(matches!(refused(&mut story, vec![budget(1, Some(3), 50)]), Rejection::Root { .. }), "below itself");
    assert!(matches!(refused(&mut story, vec![budget(0, Some(2), 50)]), Rejection::Root { .. }), "the root stays the root");
    assert!(matches!(refused(&mut story, vec![budget(3, Some(9), 1)]), Rejection::ParentUnknown { .. }));
    story.submit(1, 0, 5).expect("b is open");
    assert!(matches!(refused(&mut story, vec![budget(3, Some(5), 1)]), Rejection::LeafInUse { .. }));
    // Two change places at once: only the tree that comes out counts.
    story.change(1, vec![budget(3, Some(2), 40), budget(5, Some(1), 60)]).expect("each has room after the other left");
    assert_eq!(story.core.tree().get(BudgetId(5)).map(|b| b.path.as_str()), Some("b0/b1/b5"));
}

#[test]
fn a_closed_budget_holds_what_waits_and_lets_run_what_runs() {
    let mut story = Story::new();
    (0..3).for_each(|id| story.submit(0, id, 3).expect("a is open"));
    assert_eq!(story.decide(0), [0, 1]);
    // The program is closed, and with it the budget below.
    story.change(1, vec![closed(1, 0, 50)]).expect("a budget may be closed");
    assert_eq!(story.held(), [(2, "the budget b0/b1 is closed")]);
    assert_eq!(story.submit(2, 3, 3), Err(Rejection::BudgetClosed { path: "b0/b1".into() }));
    assert_eq!(story.tell(2, Event::Released { workload: WorkloadId(2) }), Err(Rejection::BudgetClosed { path: "b0/b1".into() }));
    story.end(10, 0, 1, Exit::Infrastructure);
    assert_eq!(story.held()[1..], [(0, "the budget b0/b1 is closed")], "what is requeued is held, too");
    assert_eq!(story.decide(10), []);
    story.change(20, vec![budget(1, Some(0), 50)]).expect("a budget may be opened");
    assert_eq!(story.decide(20), [0]);
    story.end(30, 1, 1, Exit::Completed);
    assert_eq!(story.decide(30), [2]);
}

#[test]
fn work_that_its_owner_held_stays_held_when_a_budget_opens() {
    let mut story = Story::new();
    story.submit(0, 0, 3).expect("a is open");
    story.tell(0, Event::Held { workload: WorkloadId(0), why: "not yet".into() }).expect("it waits");
    story.change(1, vec![closed(3, 1, 60)]).expect("a budget may be closed");
    story.change(2, vec![budget(3, Some(1), 60)]).expect("a budget may be opened");
    assert_eq!(story.decide(2), []);
    story.tell(3, Event::Released { workload: WorkloadId(0) }).expect("its budget is open");
    assert_eq!(story.decide(3), [0]);
}

#[test]
fn changes_of_later_dates_are_held_against_each_other() {
    let now = BudgetTree::default().changed(&change(0, tree()), 1).expect("a right tree");
    let more_for_y = (Time(20), change(7, vec![budget(2, Some(0), 40)]));
    let less_for_x = (Time(10), change(1, vec![budget(1, Some(0), 30)]));
    let new = (Time(15), change(1, vec![budget(6, Some(0), 20)]));
    // In the order of their dates, whatever the order of the list and whatever they were based on.
    let then = now.changed_later(&[more_for_y.clone(), less_for_x.clone(), new.clone()], 1).expect("30 + 40 + 20 %");
    assert_eq!(then.version(), now.version() + 3);
    let greedy = (Time(15), change(1, vec![budget(6, Some(0), 35), budget(2, Some(0), 30)]));
    let broken = now
        .changed_later(&[more_for_y.clone(), less_for_x, greedy.clone()], 1)
        .expect_err("30 + 35 + 30 % are well, 30 + 35 + 40 % are not");
    assert_eq!(broken.place, 0, "the later one is named, which the new one breaks: {broken:?}");
    // Without the first, the second is refused itself.
    assert!(matches!(now.changed_later(&[greedy], 1), Err(Broken { place: 0, at: Time(15), rejection: Rejection::SharesAbove100 { .. } })));
}
