//! Work that says it begins anew after a preemption is believed, until it shows that it does not.

mod halves;

use halves::{POOL, core};
use stipend_core::Scheduler;
use stipend_core::entry::Entry;
use stipend_core::event::{Event, Exit};
use stipend_core::id::{BudgetId, LeaseId, UserId, WorkloadId};
use stipend_core::inquiry::Answer;
use stipend_core::quantity::{GpuMs, Span, Time};
use stipend_core::spec::{Gang, OnPreempt, WorkloadSpec};

/// Four GPUs and two leaves; work of one GPU each, so all that comes starts at once.
struct Shop {
    core: Scheduler,
    log: Vec<Entry>,
    now: Time,
    next: u32,
}

impl Shop {
    fn new() -> Shop {
        Shop { core: core(4), log: Vec::new(), now: Time(0), next: 0 }
    }

    fn tell(&mut self, event: Event) {
        self.core.apply(self.now, &event, &mut self.log).expect("a right event");
        self.core.decide(self.now, &mut self.log);
    }

    /// Submits work with a contract of an hour, which runs from now on.
    fn run(&mut self, leaf: u32, on_preempt: OnPreempt) -> WorkloadId {
        let id = WorkloadId(self.next);
        self.next += 1;
        let spec = WorkloadSpec { on_preempt, ..WorkloadSpec::new(BudgetId(leaf), UserId(0), POOL, Gang::new(1, 1), Span::hours(1)) };
        self.tell(Event::Submitted { workload: id, spec: spec.into() });
        self.tell(Event::LeaseRunning { lease: LeaseId { workload: id, attempt: 1 } });
        id
    }

    /// An attempt ends after so long; if it is cut short, the next one runs from then on.
    fn end(&mut self, workload: WorkloadId, attempt: u32, after: Span, exit: Exit) {
        self.now = self.now + after;
        self.tell(Event::LeaseEnded { lease: LeaseId { workload, attempt }, exit });
        if exit == Exit::Infrastructure {
            self.tell(Event::LeaseRunning { lease: LeaseId { workload, attempt: attempt + 1 } });
        }
    }

    /// What is said to be lost if it were stopped now, and whether it is doubted.
    fn loss(&self, id: WorkloadId) -> (GpuMs, bool) {
        match self.core.inquire(id) {
            Some(Answer::Running(run)) => (run.loss, run.doubted),
            other => panic!("{id:?} runs: {other:?}"),
        }
    }

    fn doubts(&self) -> Vec<(WorkloadId, BudgetId)> {
        let of = |entry: &Entry| match entry {
            Entry::Doubted { workload, budget, .. } => Some((*workload, *budget)),
            _ => None,
        };
        self.log.iter().filter_map(of).collect()
    }
}

/// The restart that every loss counts.
const COST: Span = Span::minutes(5);

#[test]
fn a_leaf_whose_work_did_not_begin_anew_is_not_believed_for_a_lookback() {
    let mut shop = Shop::new();
    let (liar, before, resumes) = (shop.run(1, OnPreempt::Restart), shop.run(1, OnPreempt::Restart), shop.run(1, OnPreempt::Resume));
    let other = shop.run(2, OnPreempt::Restart);
    shop.end(liar, 1, Span::minutes(630), Exit::Infrastructure);
    assert_eq!(shop.loss(before), (GpuMs(Span::minutes(630 + 5).0), false), "all that it ran, and a restart");
    shop.end(liar, 2, Span::minutes(300), Exit::Completed);
    assert_eq!(shop.doubts(), [(liar, BudgetId(1))]);
    let since_contract = GpuMs((Span::minutes(30) + COST).0);
    assert_eq!(shop.loss(before), (since_contract, true), "15 h 30: what it ran since the last multiple of its contract, and a restart");
    assert_eq!(shop.loss(before).0, shop.loss(resumes).0, "as work that resumes and reports nothing");
    assert_eq!(shop.loss(other), (GpuMs(Span::minutes(930 + 5).0), false), "another leaf is believed");
    let during = shop.run(1, OnPreempt::Restart);
    assert!(shop.loss(during).1, "what starts meanwhile is doubted");
    for workload in [before, during, resumes, other] {
        shop.end(workload, 1, Span::ZERO, Exit::Failed);
    }
    shop.now = shop.now + Span::days(7);
    let after = shop.run(1, OnPreempt::Restart);
    assert!(!shop.loss(after).1, "after a lookback it is believed again");
}

#[test]
fn what_can_have_begun_anew_is_believed() {
    for (earlier, last, exit, on_preempt) in [
        (10, 5, Exit::Completed, OnPreempt::Restart),  // half of it, and no less
        (10, 20, Exit::Completed, OnPreempt::Restart), // it did all its work
        (10, 1, Exit::Failed, OnPreempt::Restart),     // it did not do its work
        (10, 1, Exit::Completed, OnPreempt::Resume),   // it never said so
    ] {
        let mut shop = Shop::new();
        let id = shop.run(1, on_preempt);
        shop.end(id, 1, Span::hours(earlier), Exit::Infrastructure);
        shop.end(id, 2, Span::hours(last), exit);
        assert_eq!(shop.doubts(), [], "{earlier} h, then {last} h, {exit:?}, {on_preempt:?}");
    }
}
