//! Estimates of first waits: what is said before, and whether it holds.

mod halves;

use halves::{POOL, core};
use stipend_core::Scheduler;
use stipend_core::entry::Entry;
use stipend_core::event::{Event, Exit};
use stipend_core::id::{BudgetId, LeaseId, UserId, WorkloadId};
use stipend_core::quantity::{Span, Time};
use stipend_core::spec::{Gang, WorkloadSpec};
use stipend_core::waits::WaitEstimate;

/// A node of one GPU and two leaves, in which work waits its turn; each minute somebody may come, and who runs may end.
struct Shop {
    core: Scheduler,
    log: Vec<Entry>,
    next: u32,
    runs: Option<(LeaseId, Time)>,
    minute: i64,
}

impl Shop {
    fn new() -> Shop {
        Shop { core: core(1), log: Vec::new(), next: 0, runs: None, minute: 0 }
    }

    fn now(&self) -> Time {
        Time(0) + Span::minutes(self.minute)
    }

    /// Submits work to a leaf, and says what it was told.
    fn submit(&mut self, leaf: u32) -> (WorkloadId, Option<WaitEstimate>) {
        let id = WorkloadId(self.next);
        self.next += 1;
        let spec = WorkloadSpec::new(BudgetId(leaf), UserId(0), POOL, Gang::new(1, 1), Span::minutes(30));
        let from = self.log.len();
        self.core.apply(self.now(), &Event::Submitted { workload: id, spec: spec.into() }, &mut self.log).expect("a right request");
        let told = self.log[from..].iter().find_map(|entry| match entry {
            Entry::Eligible { workload, estimate } if *workload == id => Some(*estimate),
            _ => None,
        });
        (id, told.expect("it is eligible at once"))
    }

    /// Who starts runs for `length` minutes.
    fn pass(&mut self, length: i64) {
        self.minute += 1;
        let now = self.now();
        if let Some((lease, _)) = self.runs.filter(|(_, until)| *until <= now) {
            self.core.apply(now, &Event::LeaseEnded { lease, exit: Exit::Completed }, &mut self.log).expect("it runs");
            self.runs = None;
        }
        let from = self.log.len();
        self.core.decide(now, &mut self.log);
        let started = self.log[from..].iter().find_map(|entry| match entry {
            Entry::Started { lease, .. } => Some(*lease),
            _ => None,
        });
        if let Some(lease) = started {
            self.core.apply(now, &Event::LeaseRunning { lease }, &mut self.log).expect("it starts");
            self.runs = Some((lease, now + Span::minutes(length)));
        }
    }

    /// So many of leaf 1 come every `every` minutes and run for ten.
    fn serve(&mut self, count: u32, every: i64) {
        for _ in 0..count {
            self.submit(1);
            (0..every).for_each(|_| self.pass(10));
        }
    }
}

#[test]
fn nothing_is_said_before_ten_have_started_and_then_what_their_own_leaf_waited() {
    let mut shop = Shop::new();
    shop.serve(9, 12);
    assert_eq!(shop.submit(1).1, None, "nine starts are too few");
    (0..12).for_each(|_| shop.pass(10));
    let (_, told) = shop.submit(1);
    assert!(told.is_some_and(|told| told.to <= Span::minutes(2)), "all began within a minute: {told:?}");
    assert_eq!(shop.submit(2).1, told, "a leaf without a past borrows that of all");
}

#[test]
fn held_work_has_no_estimate_and_a_wait_that_is_given_up_too_late_was_told_wrong() {
    let mut shop = Shop::new();
    shop.serve(12, 12);
    let (long, _) = shop.submit(1);
    (0..5).for_each(|_| shop.pass(6000));
    assert!(shop.runs.is_some_and(|(lease, _)| lease.workload == long));
    let record = |shop: &Shop, id| shop.core.first_start(id).map(|start| (start.record.given, start.record.held));
    let (first, told) = shop.submit(1);
    let (soon, _) = shop.submit(1);
    let before = record(&shop, first).expect("enough is known");
    let cancel = |shop: &mut Shop, workload| {
        let event = Event::Cancelled { workload };
        shop.core.apply(shop.now(), &event, &mut shop.log).expect("it waits");
    };
    cancel(&mut shop, soon);
    assert_eq!(record(&shop, first), Some(before), "who gives up in time proves nothing");
    (0..60).for_each(|_| shop.pass(6000));
    assert!(told.is_some_and(|told| told.to < Span::hours(1)));
    assert_eq!(shop.core.first_start(first), None, "nobody waited as long: nothing is said");
    cancel(&mut shop, first);
    let (other, _) = shop.submit(1);
    assert_eq!(record(&shop, other), Some((before.0 + 1, before.1)));
    shop.core.apply(shop.now(), &Event::Held { workload: other, why: "by its owner".into() }, &mut shop.log).expect("it waits");
    assert_eq!(shop.core.first_start(other), None, "nobody knows when held work is released");
}

/// In a queue that is as it was, about eight in ten hold; and every one can be checked from the log alone.
#[test]
fn in_a_steady_queue_eight_in_ten_hold() {
    let mut shop = Shop::new();
    let mut dice: u64 = 7;
    let mut below = |bound: u64| {
        dice = dice.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (dice >> 33) % bound
    };
    for _ in 0..40_000 {
        if below(12) == 0 {
            shop.submit(1);
        }
        let length = 5 + below(10) as i64;
        shop.pass(length);
    }
    let (probe, _) = shop.submit(1);
    let record = shop.core.first_start(probe).expect("enough is known").record;
    assert!(record.given > 2_500, "{record:?}");
    let part = record.part().expect("some were given").0;
    assert!((700_000..=950_000).contains(&part), "{record:?}");
}
