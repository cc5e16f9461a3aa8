//! Every figure by hand arithmetic, on runs of a few entries.

use super::{Metrics, Window};
use crate::job::{Ends, Job};
use crate::observer::Observer;
use crate::result::{BudgetResult, PolicyResult};
use std::sync::Arc;
use std::time::Duration;
use stipend_core::entry::{BudgetEntry, ChargeKind, Class, Entry, GpuSet, Licence, Occupancy, Outcome, Placement, Slot};
use stipend_core::explain::Why;
use stipend_core::id::{BlockId, BudgetId, LeaseId, NodeId, PoolId, UserId, WorkloadId};
use stipend_core::quantity::{Claim, GpuMs, Gpus, Ppm, Span, Time};
use stipend_core::spec::{BudgetSpec, Features, Gang, LeafOrder, NodeSpec, NodeState, PoolShare, Severity, WorkloadSpec};

const POOL: PoolId = PoolId(0);
const ROOT: BudgetId = BudgetId(0);
const A: BudgetId = BudgetId(1);
const B: BudgetId = BudgetId(2);

/// A run written down entry by entry, in minutes.
fn submitted(workload: WorkloadId, spec: Arc<WorkloadSpec>, charged_gpus: Gpus, class: Class) -> Entry {
    let (min_runtime, others, skipped) = (spec.min_runtime, Box::default(), Box::default());
    Entry::Submitted { workload, spec, pool: POOL, charged_gpus, min_runtime, class, others, skipped }
}

struct Tape(Metrics);

impl Tape {
    /// One node of 10 GPUs, and a lab whose team `a` has 60 % and `b` 40 %, measured from minute `from` on.
    fn lab(from: i64) -> Tape {
        let mut tape = Tape(Metrics::new(Window {
            pools: vec![super::PoolWindow { name: "p0".into(), cpus_per_gpu: None }],
            from: minute(from),
            express_kept: true,
        }));
        tape.node(0, 0, 10, NodeState::Ready);
        tape.budgets(&[None, None, None]);
        tape
    }

    fn say(&mut self, at: i64, entry: Entry) -> &mut Tape {
        self.0.entry(minute(at), &entry);
        self
    }

    fn node(&mut self, at: i64, node: u32, gpus: u32, state: NodeState) -> &mut Tape {
        let spec = NodeSpec { pool: POOL, gpus, cpus: 0, memory: 0, block: BlockId(0), features: Features(0), express: node == 9 };
        self.say(at, Entry::Node { node: NodeId(node), spec, state, drain_until: None, reason: String::new() })
    }

    /// The tree, with the caps on GPUs of the root, `a` and `b`.
    fn budgets(&mut self, caps: &[Option<u32>; 3]) -> &mut Tape {
        let budget = |id: BudgetId, path: &str, percent: u32| BudgetEntry {
            spec: BudgetSpec {
                id,
                parent: (id != ROOT).then_some(ROOT),
                name: path.rsplit('/').next().unwrap_or(path).into(),
                pools: vec![PoolShare { share: Ppm(percent * 10_000), gpus_max: caps[id.index()].map(Gpus), ..PoolShare::default() }],
                order: LeafOrder::default(),
                closed: false,
            },
            path: path.into(),
            claims: vec![Claim(u64::from(percent) * 10_000_000)],
        };
        let budgets = vec![budget(ROOT, "lab", 100), budget(A, "lab/a", 60), budget(B, "lab/b", 40)];
        self.say(0, Entry::Budgets { version: 1, author: "test".into(), reason: "test".into(), budgets })
    }

    fn submit(&mut self, at: i64, workload: u32, budget: BudgetId, gpus: u32, class: Class) -> &mut Tape {
        let min_runtime = if class == Class::Unallocated { Span::ZERO } else { Span::hours(1) };
        let spec = WorkloadSpec::new(budget, UserId(0), POOL, Gang::new(1, gpus), min_runtime);
        let spec = Arc::new(spec);
        let job = Job {
            spec: spec.clone(),
            work: Span::minutes(60),
            ends: Ends::Completed,
            checkpoint_every: Span::hours(1),
            unprotected_every: Span::minutes(30),
            input: None,
            stream: None,
            useful: Ppm::ONE,
            resumes: false,
            cancel_after: None,
        };
        self.0.job(WorkloadId(workload), &job);
        self.say(at, submitted(WorkloadId(workload), spec, Gpus(gpus), class));
        self.say(at, Entry::Eligible { workload: WorkloadId(workload), estimate: None })
    }

    /// Starts and runs at once.
    fn start(&mut self, at: i64, workload: u32, attempt: u32, gpus: u32) -> &mut Tape {
        let placement: Placement = [Slot { node: NodeId(0), gpus: GpuSet((1 << gpus) - 1) }].into();
        let why = Why::Rule("test".into());
        let lease = lease(workload, attempt);
        self.say(at, Entry::Started { lease, pool: POOL, occupancy: Occupancy::Allocated, placement, licence: Licence::Free, why });
        self.say(at, Entry::Running { lease, protected_until: None })
    }

    fn end(&mut self, at: i64, workload: u32, attempt: u32, outcome: Outcome) -> &mut Tape {
        let attempt = (attempt != 0).then_some(attempt);
        self.say(at, Entry::Ended { workload: WorkloadId(workload), attempt, outcome, lost: GpuMs(0), by: stipend_core::entry::By::Itself })
    }

    fn refund(&mut self, at: i64, workload: u32, budget: BudgetId, gpus: u32, from: i64, to: i64) -> &mut Tape {
        let (from, to) = (minute(from), minute(to));
        let gpu_ms = Gpus(gpus).over(to - from);
        let entry =
            Entry::Refunded { workload: WorkloadId(workload), attempt: 1, budget, pool: POOL, kind: ChargeKind::Run, from, to, gpu_ms };
        self.say(at, entry)
    }

    fn finish(&mut self, at: i64) -> PolicyResult {
        self.0.end(minute(at));
        self.0.result("test", Duration::ZERO)
    }
}

fn minute(minute: i64) -> Time {
    Time(minute * 60_000)
}

fn lease(workload: u32, attempt: u32) -> LeaseId {
    LeaseId { workload: WorkloadId(workload), attempt }
}

fn budget<'a>(result: &'a PolicyResult, path: &str) -> &'a BudgetResult {
    result.budgets.iter().find(|budget| budget.path == path).expect("the budget is in the result")
}

#[test]
fn owed_is_the_least_of_claim_and_demand_and_catching_up_counts() {
    let mut tape = Tape::lab(0);
    // a takes 8 of 10 GPUs for the first hour; b's 6 wait for it and run in the second.
    tape.submit(0, 1, A, 8, Class::Medium).start(0, 1, 1, 8).submit(0, 2, B, 6, Class::Medium);
    tape.end(60, 1, 1, Outcome::Completed).start(60, 2, 1, 6).end(120, 2, 1, Outcome::Completed);
    let result = tape.finish(120);

    let (lab, a, b) = (budget(&result, "lab"), budget(&result, "lab/a"), budget(&result, "lab/b"));
    // a: owed min(6, 8) for an hour, got 8.
    assert_eq!((a.owed_gpu_hours, a.delivered_gpu_hours, a.delivered_of_owed), (6.0, 8.0, Some(1.0)));
    assert_eq!((a.beyond_owed_gpu_hours, a.mean_demand_gpus, a.leaf), (2.0, 4.0, true));
    // b: owed min(4, 6) for two hours, got 6 in the second.
    assert_eq!((b.owed_gpu_hours, b.delivered_gpu_hours, b.delivered_of_owed), (8.0, 6.0, Some(0.75)));
    // The lab: min(10, 14) + min(10, 6).
    assert_eq!((lab.owed_gpu_hours, lab.delivered_of_owed, lab.leaf), (16.0, Some(0.875), false));
    // The whole sums over leaves: (6 + 6) / 14.
    assert_eq!((result.owed_gpu_hours, result.delivered_gpu_hours, result.delivered_of_owed), (14.0, 14.0, Some(0.857143)));
    // Arrears in claim-hours: a 0, 0; b 4 / 4, then (4 + 4 − 6) / 4.
    let arrears = result.arrears_claim_hours;
    assert_eq!((arrears.p50, arrears.p90, arrears.max), (Some(0.0), Some(1.0), Some(1.0)));
    assert_eq!((result.occupancy, result.allocated_fraction, result.demand_ratio), (0.7, 0.7, 1.0));
    assert_eq!((result.waits.medium.count, result.waits.medium.p50_s, result.waits.medium.max_s), (2, Some(0.0), Some(3600.0)));
    // a had 1 h of work and took 1 h, b took 2 h.
    assert_eq!((result.slowdown.medium.p50, result.slowdown.medium.p90), (Some(1.0), Some(2.0)));
    // Both gangs are larger than their leaf's claim.
    assert_eq!((result.gangs_over_claim.count, result.submitted, result.completed), (2, 2, 2));
}

#[test]
fn a_day_does_not_make_up_for_another() {
    const DAY: i64 = 24 * 60;
    let mut tape = Tape::lab(0);
    // b asks for 4 on the first day and waits; on the second it has 8.
    tape.submit(0, 1, B, 4, Class::Medium).submit(DAY, 2, B, 4, Class::Medium).start(DAY, 1, 1, 4).start(DAY, 2, 1, 4);
    let result = tape.finish(2 * DAY);
    let b = budget(&result, "lab/b");
    assert_eq!((b.owed_gpu_hours, b.delivered_gpu_hours), (192.0, 192.0));
    assert_eq!((b.delivered_of_owed, b.delivered_of_owed_daily), (Some(1.0), Some(0.5)));
    assert_eq!((result.delivered_of_owed, result.delivered_of_owed_daily), (Some(1.0), Some(0.5)));
    // It ends a day of its claim behind, then works it off.
    assert_eq!(result.arrears_claim_hours.max, Some(24.0));
    // a asked for nothing: nothing owed, nothing to divide by.
    assert_eq!(budget(&result, "lab/a").delivered_of_owed, None);
}

#[test]
fn a_refund_leaves_the_hours_it_was_charged_in() {
    const DAY: i64 = 24 * 60;
    let mut tape = Tape::lab(60);
    tape.submit(0, 1, B, 4, Class::Medium).start(0, 1, 1, 4);
    // Of the refunded 90 minutes, 30 lie in the warm-up and 60 in the first measured hour.
    tape.end(DAY, 1, 1, Outcome::NodeLost).refund(DAY, 1, B, 4, 30, 120);
    let result = tape.finish(DAY + 60);
    assert_eq!(budget(&result, "lab/b").delivered_gpu_hours, 4.0 * 22.0);
    assert_eq!(budget(&result, "lab").delivered_gpu_hours, 4.0 * 22.0);
    assert_eq!(result.arrears_claim_hours.p50, Some(0.0));
    assert_eq!(result.arrears_claim_hours.max, Some(1.0));
    // Occupancy is what the GPUs did, refunded or not: 23 of 24 hours, 4 of 10 GPUs.
    assert_eq!(result.occupancy, 0.383333);
    // Never requeued: it ended for good.
    assert_eq!((result.failed, result.completed), (1, 0));
}

#[test]
fn a_refund_that_does_not_divide_evenly_is_subtracted_exactly() {
    let mut tape = Tape::lab(0);
    tape.submit(0, 1, A, 1, Class::Medium).start(0, 1, 1, 1).end(180, 1, 1, Outcome::NodeLost);
    let (from, to) = (Time(1), Time(10_800_000));
    let gpu_ms = GpuMs(10_799_998);
    tape.say(180, Entry::Refunded { workload: WorkloadId(1), attempt: 1, budget: A, pool: POOL, kind: ChargeKind::Run, from, to, gpu_ms });
    tape.0.end(minute(180));
    let left: i64 = tape.0.books[0].delivery.in_tree_order()[1].hours.iter().map(|hour| hour.delivered.0).sum();
    assert_eq!(left, 2);
}

#[test]
fn what_the_warm_up_saw_does_not_count() {
    let mut tape = Tape::lab(60);
    tape.submit(0, 1, A, 4, Class::Medium).start(30, 1, 1, 4);
    tape.submit(59, 2, A, 2, Class::Medium).submit(60, 3, B, 2, Class::Debug);
    tape.start(90, 2, 1, 2).start(90, 3, 1, 2);
    // Of what the first banks at minute 90, the half hour since the warm-up counts at most.
    tape.0.banked(minute(90), lease(1, 1), Gpus(4).over(Span::minutes(60)));
    tape.0.lost(minute(50), lease(1, 1), Occupancy::Allocated, Gpus(4).over(Span::minutes(20)));
    tape.0.lost(minute(100), lease(3, 1), Occupancy::Unallocated, Gpus(2).over(Span::minutes(10)));
    tape.end(50, 9, 0, Outcome::Failed).end(120, 1, 1, Outcome::Completed);
    let result = tape.finish(120);
    assert_eq!((result.useful_gpu_hours, result.lost_gpu_hours), (2.0, 0.333));
    assert_eq!((result.useful_fraction, result.lost_unallocated_fraction, result.lost_allocated_fraction), (0.2, 0.033333, 0.0));
    assert_eq!((result.waits.all.count, result.waits.debug.p50_s, result.waits.medium.count), (1, Some(1800.0), 0));
    assert_eq!((result.slowdown.medium.count, result.submitted, result.completed), (0, 1, 1));
    // One measured hour: a is owed min(6, 6) and has 4, then 6; b is owed 2 and has 0, then 2.
    assert_eq!(budget(&result, "lab/a").delivered_of_owed, Some(0.833333));
    assert_eq!(budget(&result, "lab/b").delivered_of_owed, Some(0.5));
    assert_eq!(result.occupancy, 0.6);
}

#[test]
fn a_draining_node_counts_with_what_is_under_lease() {
    let mut tape = Tape::lab(0);
    tape.submit(0, 1, A, 10, Class::Largest).start(0, 1, 1, 4);
    // 10 GPUs for an hour, 4 for an hour, none for an hour, 10 again.
    tape.node(60, 0, 10, NodeState::Draining(Severity::Sick)).end(120, 1, 1, Outcome::Preempted).say(120, requeued(1));
    tape.node(180, 0, 10, NodeState::Ready);
    let result = tape.finish(240);
    assert_eq!(result.occupancy, round6(8.0 / 24.0));
    // 60 % of each hour's capacity: 6 + 2.4 + 0 + 6.
    let a = budget(&result, "lab/a");
    assert_eq!((a.owed_gpu_hours, a.delivered_gpu_hours), (14.4, 20.0));
    assert_eq!((result.preemptions, result.preemptions_allocated), (1, 1));
    assert_eq!(tape.0.capacity(), Gpus(10));
}

#[test]
fn a_cap_holds_demand_back_at_any_level() {
    // a may hold 5: of its gangs of 4, 4 and 8, one runs and none has room.
    let mut tape = Tape::lab(0);
    tape.budgets(&[None, Some(5), None]);
    tape.submit(0, 1, A, 4, Class::Medium).submit(0, 2, A, 4, Class::Medium).submit(0, 3, A, 8, Class::Medium).start(0, 1, 1, 4);
    let result = tape.finish(60);
    assert_eq!((budget(&result, "lab/a").mean_demand_gpus, budget(&result, "lab").mean_demand_gpus), (4.0, 4.0));
    assert_eq!(result.demand_ratio, 1.6);

    // The lab may hold 6: while a runs 4, two GPUs of b's have room, one of its three gangs of 1 is too many.
    let mut tape = Tape::lab(0);
    tape.budgets(&[Some(6), None, None]);
    tape.submit(0, 1, A, 4, Class::Medium).start(0, 1, 1, 4);
    for workload in 2..5 {
        tape.submit(0, workload, B, 1, Class::Medium);
    }
    tape.end(60, 1, 1, Outcome::Completed);
    let result = tape.finish(120);
    assert_eq!((budget(&result, "lab/b").mean_demand_gpus, budget(&result, "lab").mean_demand_gpus), (2.5, 4.5));
}

#[test]
fn waits_that_never_ended_and_waits_after_a_requeue() {
    let mut tape = Tape::lab(0);
    tape.submit(0, 1, A, 4, Class::Medium).submit(0, 2, A, 4, Class::Unallocated).submit(0, 3, B, 4, Class::Debug);
    tape.start(1, 1, 1, 4).start(2, 2, 1, 4).end(10, 1, 1, Outcome::Preempted).say(10, requeued(1));
    tape.end(10, 2, 1, Outcome::Preempted).say(10, requeued(2)).start(15, 1, 2, 4).start(16, 2, 2, 4);
    tape.end(20, 1, 2, Outcome::Preempted).say(20, requeued(1));
    // Held for a while: only the time since its release counts.
    tape.submit(20, 4, B, 1, Class::Debug)
        .say(20, held(4))
        .say(50, Entry::Eligible { workload: WorkloadId(4), estimate: None })
        .start(51, 4, 1, 1);
    tape.submit(20, 5, B, 1, Class::Largest).end(25, 5, 0, Outcome::Cancelled);
    let result = tape.finish(60);
    let waits = result.waits;
    assert_eq!((waits.medium.count, waits.medium.never_started, waits.medium.max_s), (1, 0, Some(60.0)));
    assert_eq!((waits.debug.count, waits.debug.never_started, waits.debug.p50_s, waits.debug.max_s), (2, 1, Some(60.0), Some(3600.0)));
    assert_eq!((waits.largest.count, waits.largest.never_started, waits.largest.max_s), (1, 1, Some(300.0)));
    assert_eq!((waits.all.count, waits.all.never_started), (4, 2));
    assert_eq!((waits.unallocated.count, waits.unallocated.max_s), (1, Some(120.0)));
    // Only the allocated one: 5 minutes, then 40 so far.
    assert_eq!((waits.requeued.count, waits.requeued.never_started), (2, 1));
    assert_eq!((waits.requeued.p50_s, waits.requeued.max_s), (Some(300.0), Some(2400.0)));
    assert_eq!((result.preemptions, result.preemptions_allocated), (3, 2));
    // Unallocated time is no demand and no delivery.
    assert_eq!(result.unallocated_fraction, round6(4.0 * 52.0 / 600.0));
}

#[test]
fn express_nodes_bound_what_can_be_filled() {
    // 10 ordinary and 10 express GPUs; a is owed 12 of 20, but only one GPU of its work may run on express nodes.
    let mut tape = Tape::lab(0);
    tape.node(0, 9, 10, NodeState::Ready);
    tape.submit(0, 1, A, 12, Class::Medium).submit(0, 2, A, 1, Class::Debug);
    let result = tape.finish(60);
    assert_eq!((result.owed_gpu_hours, result.owed_bound), (12.0, round6(11.0 / 12.0)));
}

fn requeued(workload: u32) -> Entry {
    Entry::Requeued { workload: WorkloadId(workload) }
}

fn held(workload: u32) -> Entry {
    Entry::Held { workload: WorkloadId(workload), why: String::new() }
}

fn round6(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}
