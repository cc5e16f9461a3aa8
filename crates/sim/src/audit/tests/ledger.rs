use super::script::{HOUR, MINUTE, SECOND, Script};
use crate::audit::{self, Law};
use crate::log::line::*;

/// `x` runs for an hour, is charged for it, and ends.
fn run(outcome: Outcome) -> Script {
    let mut s = Script::new(&["n0"]);
    s.submit("x", "lab/a", 8, HOUR).start("x", 1, &[("n0", 0..8)]).at(MINUTE).running("x", 1, HOUR);
    s.at(HOUR).ended("x", 1, outcome);
    s
}

#[test]
fn a_charge_covers_the_lease_exactly() {
    let with = |from: i64, gpus: i64, budget: &str| {
        let mut s = run(Outcome::Completed);
        s.charged("x", 1, budget, ChargeKind::Run, from, gpus).end(2 * HOUR, &[]).laws()
    };
    assert_eq!(with(0, 8, "lab/a"), []);
    assert_eq!(with(1, 8, "lab/a"), [Law::Ledger], "a millisecond is missing");
    assert_eq!(with(-1, 8, "lab/a"), [Law::Ledger], "a millisecond too much");
    assert_eq!(with(0, 7, "lab/a"), [Law::Ledger], "a GPU is missing");
    assert_eq!(with(0, 8, "lab/b"), [Law::Ledger], "somebody else pays");
    assert_eq!(run(Outcome::Completed).end(2 * HOUR, &[]).laws(), [Law::Ledger], "nobody pays");
    let mut s = run(Outcome::Completed);
    s.charged("x", 1, "lab/a", ChargeKind::Run, 0, 8).charged("x", 1, "lab/a", ChargeKind::Run, 0, 8);
    assert_eq!(s.end(2 * HOUR, &[]).laws(), [Law::Ledger], "twice");
}

#[test]
fn a_charge_may_come_in_parts() {
    let mut s = Script::new(&["n0"]);
    s.submit("x", "lab/a", 8, HOUR).start("x", 1, &[("n0", 0..8)]).at(MINUTE).running("x", 1, HOUR);
    s.at(10 * MINUTE).charged("x", 1, "lab/a", ChargeKind::Run, 0, 8);
    s.clone().end(HOUR, &[("x", 1)]).assert_clean();
    s.at(HOUR).ended("x", 1, Outcome::Completed).charged("x", 1, "lab/a", ChargeKind::Run, 10 * MINUTE, 8);
    s.end(2 * HOUR, &[]).assert_clean();
}

#[test]
fn unallocated_work_is_never_charged() {
    let mut s = Script::new(&["n0"]);
    s.submit("x", "lab/a", 8, 0).start_as("x", 1, &[("n0", 0..8)], Occupancy::Unallocated, Licence::Free).at(MINUTE).running("x", 1, 0);
    s.clone().end(HOUR, &[("x", 1)]).assert_clean();
    assert_eq!(s.charged("x", 1, "lab/a", ChargeKind::Run, 0, 8).end(HOUR, &[("x", 1)]).laws(), [Law::Ledger]);
}

#[test]
fn occupancy_and_protection_are_the_contracts() {
    let mut s = Script::new(&["n0"]);
    s.submit("x", "lab/a", 8, HOUR).start_as("x", 1, &[("n0", 0..8)], Occupancy::Unallocated, Licence::Free);
    assert_eq!(s.end(HOUR, &[("x", 1)]).laws(), [Law::Contract]);
    for (limit, contract, laws) in [
        (None, HOUR, vec![]),
        (None, HOUR - 1, vec![Law::Contract]),
        (Some(MINUTE), MINUTE, vec![]),
        (Some(MINUTE), HOUR, vec![Law::Contract]),
    ] {
        let mut s = Script::new(&["n0"]);
        s.submit_as("x", "lab/a", 8, HOUR, |line| line.time_limit_ms = limit)
            .start("x", 1, &[("n0", 0..8)])
            .at(SECOND)
            .running("x", 1, contract);
        assert_eq!(s.end(2 * SECOND, &[("x", 1)]).laws(), laws, "limit {limit:?}, protected for {contract} ms");
    }
}

#[test]
fn held_gpus_are_charged_from_the_end_of_their_last_occupant() {
    let story = |from: i64, gpus: i64| {
        let mut s = Script::new(&["n0"]);
        s.submit("x", "lab/a", 4, 0).start_as("x", 1, &[("n0", 0..4)], Occupancy::Unallocated, Licence::Free);
        s.submit("z", "lab/a", 4, 0).start_as("z", 1, &[("n0", 4..8)], Occupancy::Unallocated, Licence::Free);
        s.at(MINUTE).submit("y", "lab/b", 8, HOUR).preempting("x", 1, "y", Licence::Unallocated).preempting(
            "z",
            1,
            "y",
            Licence::Unallocated,
        );
        s.hold("y", &[("n0", 0..8)]).stopping("x", 1, 10 * SECOND).stopping("z", 1, 10 * SECOND);
        s.at(62 * SECOND).ended("x", 1, Outcome::Preempted).requeued("x").at(65 * SECOND).ended("z", 1, Outcome::Preempted).requeued("z");
        if gpus > 0 {
            s.charged("y", 1, "lab/b", ChargeKind::Hold, from, gpus);
        }
        s.start_as("y", 1, &[("n0", 0..8)], Occupancy::Allocated, Licence::Unallocated).unhold("y", UnholdCause::Started);
        s.end(HOUR, &[("y", 1)]).laws()
    };
    assert_eq!(story(62 * SECOND, 4), []);
    assert_eq!(story(61 * SECOND, 4), [Law::Ledger]);
    assert_eq!(story(62 * SECOND, 8), [Law::Ledger]);
    assert_eq!(story(0, 0), [Law::Ledger]);
}

#[test]
fn a_refund_is_a_part_of_a_charge_once_for_a_fault() {
    let with = |outcome: Outcome, parts: &[(i64, i64, i64)]| {
        let mut s = run(outcome);
        s.charged("x", 1, "lab/a", ChargeKind::Run, 0, 8);
        if outcome == Outcome::NodeLost {
            s.node("n0", |line| line.state = State::Lost).requeued("x");
        }
        parts.iter().for_each(|(from, to, gpus)| _ = s.refunded("x", 1, "lab/a", *from, *to, *gpus));
        s.end(2 * HOUR, &[]).laws()
    };
    assert_eq!(with(Outcome::NodeLost, &[(0, HOUR, 8)]), []);
    assert_eq!(with(Outcome::Completed, &[(0, HOUR, 8)]), [Law::Refund], "no fault");
    assert_eq!(with(Outcome::NodeLost, &[(-1, HOUR, 8)]), [Law::Ledger, Law::Refund, Law::Used], "more than was charged");
    assert_eq!(with(Outcome::NodeLost, &[(0, HOUR, 9)]), [Law::Ledger, Law::Refund, Law::Used], "more GPUs");
    assert_eq!(with(Outcome::NodeLost, &[(0, HOUR, 8), (MINUTE, HOUR, 8)]), [Law::Ledger, Law::Refund, Law::Used], "twice");
}

#[test]
fn a_refund_is_bounded() {
    let mut s = run(Outcome::NodeLost);
    s.edit(|line| {
        if let LogEvent::Policy(policy) = &mut line.event {
            policy.refund_max_ms = HOUR - 1;
        }
        true
    });
    s.node("n0", |line| line.state = State::Lost)
        .charged("x", 1, "lab/a", ChargeKind::Run, 0, 8)
        .refunded("x", 1, "lab/a", 0, HOUR, 8)
        .requeued("x");
    assert_eq!(s.end(2 * HOUR, &[]).laws(), [Law::Ledger, Law::Refund]);
}

#[test]
fn the_preempted_wait_again() {
    let mut s = run(Outcome::NodeLost);
    s.node("n0", |line| line.state = State::Lost).charged("x", 1, "lab/a", ChargeKind::Run, 0, 8);
    assert_eq!(s.clone().end(2 * HOUR, &[]).laws(), [Law::Requeue]);
    s.requeued("x").end(2 * HOUR, &[]).assert_clean();
    let mut s = run(Outcome::Completed);
    s.charged("x", 1, "lab/a", ChargeKind::Run, 0, 8).requeued("x");
    assert_eq!(s.end(2 * HOUR, &[]).laws(), [Law::Requeue], "it is done");
}

#[test]
fn attempts_count_up_by_one_and_time_never_runs_back() {
    for attempt in [0, 2] {
        let mut s = Script::new(&["n0"]);
        s.submit("x", "lab/a", 8, HOUR).start("x", attempt, &[("n0", 0..8)]);
        assert_eq!(s.end(HOUR, &[("x", attempt)]).laws(), [Law::Sequence]);
    }
    let mut s = Script::new(&["n0"]);
    s.at(10).submit("x", "lab/a", 9, HOUR).at(9).submit("y", "lab/a", 9, HOUR);
    assert_eq!(s.end(HOUR, &[]).laws(), [Law::TimeOrder]);
}

#[test]
fn lines_follow_from_the_lines_before() {
    let mut s = Script::new(&["n0"]);
    s.submit("x", "lab/a", 8, HOUR).start("x", 1, &[("n0", 0..8)]);
    let broken = |change: fn(&mut Script)| {
        let mut s = s.clone();
        change(&mut s);
        s.laws()
    };
    assert_eq!(broken(|s| _ = s.end(HOUR, &[])), [Law::Sequence], "a lease is not listed at the end");
    assert_eq!(broken(|s| _ = s.running("x", 2, HOUR)), [Law::Sequence], "another attempt");
    assert_eq!(broken(|s| _ = s.running("nobody", 1, HOUR)), [Law::Sequence]);
    assert_eq!(broken(|s| _ = s.start("x", 2, &[("n0", 0..8)])), [Law::Sequence], "it runs already");
    assert_eq!(broken(|s| _ = s.cancelled("x")), [Law::Sequence], "it has a lease");
    assert_eq!(broken(|s| _ = s.submit("y", "lab", 8, HOUR)), [Law::Sequence], "not a leaf");
    assert_eq!(broken(|s| _ = s.budgets(&[("lab", 100.0, 1.0), ("lab/a", 60.0, 0.6), ("lab/b", 50.0, 0.5)])), [Law::Sequence], "110 %");
    assert_eq!(broken(|s| _ = s.running("x", 1, HOUR).running("x", 1, HOUR)), [Law::Sequence]);
}

#[test]
fn outcomes_are_what_happened() {
    for outcome in [Outcome::TimedOut, Outcome::StartTimeout] {
        let mut s = run(outcome);
        s.charged("x", 1, "lab/a", ChargeKind::Run, 0, 8);
        if outcome == Outcome::StartTimeout {
            s.requeued("x").start("x", 2, &[("n0", 0..8)]);
        }
        let live: &[(&str, u32)] = if outcome == Outcome::StartTimeout { &[("x", 2)] } else { &[] };
        assert_eq!(s.end(2 * HOUR, live).laws(), [Law::Contract], "{outcome:?}");
    }
}

#[test]
fn work_below_its_share_is_served_in_bounded_time() {
    let story = |served: bool| {
        let mut s = Script::new(&["n0"]);
        s.submit("x", "lab/a", 8, HOUR).start("x", 1, &[("n0", 0..8)]).at(SECOND).running("x", 1, HOUR).submit("y", "lab/b", 8, HOUR);
        for hour in 1..40 {
            s.at(hour * HOUR);
            if served && hour == 20 {
                s.preempting("x", 1, "y", Licence::Share).hold("y", &[("n0", 0..8)]).stopping("x", 1, 2 * MINUTE);
            }
            s.add(LogEvent::Refused(Refused { why: "something happens each hour".into() }));
            if served && hour == 20 {
                s.at(hour * HOUR + MINUTE).ended("x", 1, Outcome::Preempted).charged("x", 1, "lab/a", ChargeKind::Run, 0, 8).requeued("x");
                s.start_as("y", 1, &[("n0", 0..8)], Occupancy::Allocated, Licence::Share).unhold("y", UnholdCause::Started);
                s.at(hour * HOUR + 2 * MINUTE).running("y", 1, HOUR);
            }
        }
        let last = if served { "y" } else { "x" };
        let report = s.end(41 * HOUR, &[(last, 1)]).report();
        assert!(served || report.summary.service_checks > 0);
        s.laws()
    };
    assert_eq!(story(true), []);
    assert_eq!(story(false), [Law::Service]);
}

#[test]
fn a_log_is_checked_from_its_text() {
    let mut s = run(Outcome::Completed);
    s.charged("x", 1, "lab/a", ChargeKind::Run, 1, 8).end(2 * HOUR, &[]);
    let text: String = s.lines.iter().map(|line| serde_json::to_string(line).unwrap() + "\n").collect();
    let report = audit::check(text.as_bytes()).unwrap();
    assert_eq!(report, s.report());
    let first = &report.violations[0];
    assert_eq!((first.law, first.line, first.t_ms), (Law::Ledger, 9, HOUR));
}

#[test]
fn lapses_are_exact() {
    // lab/b has 4 GPUs by claim and asks for nothing for two hours; 1 h of its claim is the most that it may fall behind by that. After two
    // hours it lacks 4 GPUs x 2 h, of which 1/84 h each has faded: 3.952 GPU-h more than it may, to a few parts per million of its share.
    let story = |waits: bool, cap: Option<u32>, lapsed: i64| {
        let knobs = stipend_core::knobs::Knobs { credit_max: stipend_core::quantity::Span::hours(1), ..Default::default() };
        let mut s = Script::new(&["n0"]);
        s.add(LogEvent::Policy(crate::log::knobs::Policy::new("p0".into(), &knobs)));
        s.budgets(&[("lab", 100.0, 1.0), ("lab/a", 50.0, 0.5), ("lab/b", 50.0, 0.5)]);
        s.capped(|budget| budget.gpus_max = cap.filter(|_| budget.path == "lab/b"));
        s.submit("x", "lab/a", 8, 8 * HOUR).start("x", 1, &[("n0", 0..8)]).running("x", 1, 8 * HOUR);
        if waits {
            s.submit("y", "lab/b", 8, HOUR);
        }
        s.at(2 * HOUR);
        let line = |from_ms| Lapsed { budget: "lab/b".into(), pool: "p0".into(), from_ms, to_ms: from_ms + HOUR, gpu_ms: lapsed };
        if lapsed > 0 {
            s.add(LogEvent::Lapsed(line(HOUR)));
        }
        s.end(2 * HOUR + MINUTE, &[("x", 1)]).laws()
    };
    let beyond = 14_228_571;
    assert_eq!(story(false, None, beyond), []);
    assert_eq!(story(false, None, beyond + 10_000), [Law::Credit], "above its floor");
    assert_eq!(story(false, None, beyond - 10_000), [Law::Credit], "too little");
    assert_eq!(story(false, None, 0), [Law::Credit], "nothing");
    assert_eq!(story(true, None, 0), [], "it asks for all of its claim");
    assert_eq!(story(true, None, beyond), [Law::Credit]);
    assert_eq!(story(true, Some(4), beyond), [], "a cap holds back what it asks for");
    assert_eq!(story(true, Some(4), beyond + 10_000), [Law::Credit], "above its floor all the same");
}
