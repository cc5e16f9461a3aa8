use super::script::{HOUR, MINUTE, SECOND, Script};
use crate::audit::Law;
use crate::log::line::*;

/// `x` of lab/a has the node; `y` of lab/b takes it when the contract is over, and `x` comes back after `y`.
fn eviction() -> Script {
    let mut s = Script::new(&["n0"]);
    s.submit("x", "lab/a", 8, HOUR).start("x", 1, &[("n0", 0..8)]);
    s.at(10 * SECOND).running("x", 1, HOUR);
    s.at(HOUR).submit("y", "lab/b", 8, HOUR);
    s.at(3610 * SECOND).preempting("x", 1, "y", Licence::Share).hold("y", &[("n0", 0..8)]).stopping("x", 1, 2 * MINUTE);
    s.at(3700 * SECOND).ended("x", 1, Outcome::Preempted).charged("x", 1, "lab/a", ChargeKind::Run, 0, 8).requeued("x");
    s.start_as("y", 1, &[("n0", 0..8)], Occupancy::Allocated, Licence::Share).unhold("y", UnholdCause::Started);
    s.at(3710 * SECOND).running("y", 1, HOUR);
    s.at(8000 * SECOND).ended("y", 1, Outcome::Completed).charged("y", 1, "lab/b", ChargeKind::Run, 3700 * SECOND, 8);
    s.start("x", 2, &[("n0", 0..8)]);
    s.at(8010 * SECOND).running("x", 2, HOUR).end(9000 * SECOND, &[("x", 2)]);
    s
}

/// The story up to the signal.
fn until_signal() -> Script {
    let mut s = eviction();
    s.edit(|line| line.t_ms <= 3610 * SECOND);
    s
}

#[test]
fn an_eviction_by_the_rules_is_clean() {
    let report = eviction().report();
    assert!(report.is_clean(), "{report}");
    let summary = report.summary;
    assert_eq!((summary.standings_compared, summary.holds_started, summary.preemptions_for_claimants, summary.charges), (1, 1, 1, 2));
    assert!(summary.used_checks > 0);
}

#[test]
fn a_protected_lease_is_not_taken() {
    let mut s = eviction();
    s.edit(|line| {
        if let LogEvent::Running(running) = &mut line.event {
            running.protected_until_ms = running.protected_until_ms.map(|until| until + 1);
        }
        true
    });
    assert!(s.laws().contains(&Law::Protection), "one millisecond early");
    let mut s = Script::new(&["n0"]);
    s.submit("x", "lab/a", 8, HOUR).start("x", 1, &[("n0", 0..8)]).at(MINUTE).submit("y", "lab/b", 8, HOUR);
    s.preempting("x", 1, "y", Licence::Share).hold("y", &[("n0", 0..8)]).stopping("x", 1, 2 * MINUTE).end(2 * MINUTE, &[("x", 1)]);
    assert_eq!(s.laws(), [Law::Protection, Law::Standing], "still starting; and lab/a has used next to nothing");
    let mut s = Script::new(&["n0"]);
    s.submit("x", "lab/a", 8, HOUR).start("x", 1, &[("n0", 0..8)]).at(MINUTE).running("x", 1, HOUR);
    s.at(2 * MINUTE).ended("x", 1, Outcome::Preempted).charged("x", 1, "lab/a", ChargeKind::Run, 0, 8).requeued("x").start(
        "x",
        2,
        &[("n0", 0..8)],
    );
    assert_eq!(s.end(HOUR, &[("x", 2)]).laws(), [Law::Protection], "no plan at all");
}

#[test]
fn a_drain_waits_for_protection_and_a_critical_one_does_not() {
    let story = |severity, licence| {
        let mut s = Script::new(&["n0"]);
        s.submit("x", "lab/a", 8, HOUR).start("x", 1, &[("n0", 0..8)]).at(MINUTE).running("x", 1, HOUR);
        s.at(2 * MINUTE).drain("n0", severity, 61 * MINUTE).preempting_for_node("x", 1, "n0", licence).stopping("x", 1, 2 * MINUTE);
        s.end(3 * MINUTE, &[("x", 1)]);
        s.laws()
    };
    assert_eq!(story(Severity::Critical, Licence::Critical), []);
    assert_eq!(story(Severity::Sick, Licence::Drain), [Law::Protection]);
    assert_eq!(story(Severity::Sick, Licence::Critical), [Law::Licence], "the node does not drain critically");
}

#[test]
fn a_licence_must_be_had() {
    for (licence, laws) in [
        (Licence::Unallocated, vec![Law::Licence, Law::Signal]),
        (Licence::OwnLeaf, vec![Law::Licence]),
        (Licence::Express, vec![Law::Licence]),
        (Licence::Free, vec![Law::Licence]),
        (Licence::Tree, vec![Law::Standing]),
    ] {
        let mut s = until_signal();
        s.edit(|line| {
            if let LogEvent::Preempting(preempting) = &mut line.event {
                preempting.licence = licence;
                if licence == Licence::Unallocated {
                    preempting.stop_by_ms += HOUR;
                }
            }
            true
        });
        assert_eq!(s.end(3620 * SECOND, &[("x", 1)]).laws(), laws, "{licence:?}: lab/a is below its share, in another leaf, allocated");
    }
}

#[test]
fn unallocated_work_evicts_nobody() {
    let mut s = until_signal();
    s.edit(|line| {
        if let LogEvent::Submitted(submitted) = &mut line.event
            && submitted.workload == "y"
        {
            submitted.min_runtime_ms = 0;
        }
        true
    });
    assert_eq!(s.end(3620 * SECOND, &[("x", 1)]).laws(), [Law::Licence]);
}

#[test]
fn a_claimant_that_stands_no_lower_takes_nothing_by_share() {
    let mut s = Script::new(&["n0"]);
    s.submit("x", "lab/a", 4, 10 * MINUTE).start("x", 1, &[("n0", 0..4)]).submit("z", "lab/b", 4, 10 * MINUTE).start(
        "z",
        1,
        &[("n0", 4..8)],
    );
    s.at(SECOND).running("x", 1, 10 * MINUTE).running("z", 1, 10 * MINUTE);
    s.at(2 * HOUR).submit("y", "lab/b", 4, HOUR);
    s.preempting("x", 1, "y", Licence::Share)
        .hold("y", &[("n0", 0..4)])
        .stopping("x", 1, 2 * MINUTE)
        .end(121 * MINUTE, &[("x", 1), ("z", 1)]);
    assert_eq!(s.laws(), [Law::Standing]);
}

#[test]
fn a_commitment_counts_on_the_claimants_side() {
    // lab/b used nothing, but another claimant of it was just promised an hour of 8 GPUs: more than lab/a used.
    let story = |other: bool| {
        let mut s = Script::new(&["n0", "n1"]);
        s.submit("x", "lab/a", 8, 10 * MINUTE).start("x", 1, &[("n0", 0..8)]).at(SECOND).running("x", 1, 10 * MINUTE);
        s.at(50 * MINUTE);
        s.submit("z", if other { "lab/b" } else { "lab/a" }, 8, HOUR).start("z", 1, &[("n1", 0..8)]);
        s.submit("y", "lab/b", 8, HOUR).preempting("x", 1, "y", Licence::Share).hold("y", &[("n0", 0..8)]).stopping("x", 1, 2 * MINUTE);
        s.laws()
    };
    assert_eq!(story(true), [Law::Standing]);
    assert_eq!(story(false), []);
}

#[test]
fn every_preemption_buys_its_start() {
    let mut s = until_signal();
    s.edit(|line| !matches!(line.event, LogEvent::Hold(_)));
    assert_eq!(s.end(3620 * SECOND, &[("x", 1)]).laws(), [Law::NamedStart], "no hold");

    let mut s = eviction();
    s.edit(|line| line.t_ms < 3700 * SECOND || !matches!(&line.event, LogEvent::Started(started) if started.workload == "y"));
    assert!(s.laws().contains(&Law::NamedStart), "the hold says that it ended in a start");

    let mut s = until_signal();
    s.at(3700 * SECOND).ended("x", 1, Outcome::Preempted).charged("x", 1, "lab/a", ChargeKind::Run, 0, 8).requeued("x");
    assert_eq!(s.end(3800 * SECOND, &[]).laws(), [Law::NamedStart], "the hold is complete, and its claimant waits");

    for cause in [UnholdCause::ClaimantGone, UnholdCause::VictimStuck, UnholdCause::NodeGone, UnholdCause::Other] {
        let mut s = until_signal();
        s.at(3620 * SECOND).unhold("y", cause);
        assert_eq!(s.end(3630 * SECOND, &[("x", 1)]).laws(), [Law::NamedStart], "{cause:?} is not so");
    }
}

#[test]
fn a_hold_ends_without_its_start_for_the_reasons_listed() {
    let mut s = until_signal();
    s.at(3620 * SECOND).cancelled("y").unhold("y", UnholdCause::ClaimantGone);
    s.end(3630 * SECOND, &[("x", 1)]).assert_clean();
    let mut s = until_signal();
    s.at(3620 * SECOND).drain("n0", Severity::Sick, 3700 * SECOND).unhold("y", UnholdCause::NodeGone);
    s.end(3630 * SECOND, &[("x", 1)]).assert_clean();
    let mut s = until_signal();
    s.at(3620 * SECOND).drain("n0", Severity::Sick, 3700 * SECOND).unhold("y", UnholdCause::NodeGone).node("n0", |_| {});
    s.end(3630 * SECOND, &[("x", 1)]).assert_clean();
    let mut s = until_signal();
    s.at(3731 * SECOND).drain("n0", Severity::Critical, 3731 * SECOND).unhold("y", UnholdCause::VictimStuck);
    s.end(3740 * SECOND, &[("x", 1)]).assert_clean();
    let mut s = until_signal();
    s.at(3620 * SECOND).cancelled("y");
    assert_eq!(s.end(3630 * SECOND, &[("x", 1)]).laws(), [Law::NamedStart], "its claimant is gone and the hold stays");
}

#[test]
fn a_hold_is_made_of_gpus_that_become_free() {
    let mut s = Script::new(&["n0", "n1"]);
    s.submit("x", "lab/a", 8, HOUR).start("x", 1, &[("n0", 0..8)]).submit("z", "lab/a", 8, HOUR).start("z", 1, &[("n1", 0..8)]);
    s.running("x", 1, HOUR).running("z", 1, HOUR).at(2 * HOUR).submit("y", "lab/b", 8, HOUR);
    s.preempting("x", 1, "y", Licence::Share).hold("y", &[("n1", 0..8)]).stopping("x", 1, 2 * MINUTE);
    assert_eq!(s.end(121 * MINUTE, &[("x", 1), ("z", 1)]).laws(), [Law::NamedStart, Law::Minimal], "x gives nothing, z is not stopped");
}

#[test]
fn a_start_is_where_its_plan_said() {
    let mut s = Script::new(&["n0", "n1"]);
    s.submit("x", "lab/a", 8, HOUR).start("x", 1, &[("n0", 0..8)]).submit("z", "lab/a", 8, HOUR).start("z", 1, &[("n1", 0..8)]);
    s.running("x", 1, HOUR).running("z", 1, HOUR).at(2 * HOUR).submit("y", "lab/b", 8, HOUR);
    s.preempting("x", 1, "y", Licence::Share).hold("y", &[("n0", 0..8)]).stopping("x", 1, 2 * MINUTE);
    s.at(2 * HOUR + SECOND).ended("z", 1, Outcome::Completed).charged("z", 1, "lab/a", ChargeKind::Run, 0, 8);
    s.start("y", 1, &[("n1", 0..8)]);
    assert_eq!(s.end(3 * HOUR, &[("x", 1), ("y", 1)]).laws(), [Law::NamedStart]);
}

#[test]
fn victims_do_not_slip_back_in() {
    let mut s = Script::new(&["n0", "n1"]);
    s.submit_as("x", "lab/a", 4, HOUR, |line| (line.members, line.charged_gpus) = (2, 8)).start("x", 1, &[("n0", 0..4), ("n1", 0..4)]);
    s.submit("z", "lab/a", 4, HOUR).start("z", 1, &[("n0", 4..8)]).submit("w", "lab/a", 4, HOUR).start("w", 1, &[("n1", 4..8)]);
    s.running("x", 1, HOUR).running("z", 1, HOUR).running("w", 1, HOUR).at(2 * HOUR).submit("y", "lab/b", 8, HOUR);
    s.preempting("z", 1, "y", Licence::Share).preempting("x", 1, "y", Licence::Share).hold("y", &[("n0", 0..8)]);
    s.stopping("z", 1, 2 * MINUTE).stopping("x", 1, 2 * MINUTE);
    s.at(2 * HOUR + SECOND).ended("z", 1, Outcome::Preempted).charged("z", 1, "lab/a", ChargeKind::Run, 0, 4).requeued("z");
    s.at(2 * HOUR + 2 * SECOND).ended("w", 1, Outcome::Completed).charged("w", 1, "lab/a", ChargeKind::Run, 0, 4);
    s.clone().end(2 * HOUR + 3 * SECOND, &[("x", 1)]).assert_clean();
    s.start("z", 2, &[("n1", 4..8)]);
    assert_eq!(s.end(2 * HOUR + 3 * SECOND, &[("x", 1), ("z", 2)]).laws(), [Law::ReEntry]);
}

#[test]
fn no_chain_inside_an_instant() {
    let mut s = Script::new(&["n0", "n1"]);
    s.submit("x", "lab/a", 8, 0).start_as("x", 1, &[("n0", 0..8)], Occupancy::Unallocated, Licence::Free);
    s.submit("y", "lab/b", 8, HOUR).preempting("x", 1, "y", Licence::Unallocated).hold("y", &[("n0", 0..8)]).stopping("x", 1, 10 * SECOND);
    assert_eq!(s.end(SECOND, &[("x", 1)]).laws(), [Law::Chain, Law::Minimal], "x started in this instant, and y could have had n1");
}

#[test]
fn no_pair_swaps_twice_within_a_contract() {
    let mut s = Script::new(&["n0"]);
    s.submit_as("x", "lab/a", 8, HOUR, |line| line.priority = 1).submit_as("y", "lab/a", 8, HOUR, |line| line.priority = 1);
    s.start("x", 1, &[("n0", 0..8)]);
    let mut at = 0;
    for (round, (victim, claimant)) in [("x", "y"), ("y", "x"), ("x", "y")].into_iter().enumerate() {
        let attempt = round as u32 / 2 + 1;
        s.at(at + SECOND)
            .running(victim, attempt, HOUR)
            .at(at + 10 * SECOND)
            .preempting(victim, attempt, claimant, Licence::OwnLeaf)
            .hold(claimant, &[("n0", 0..8)])
            .stopping(victim, attempt, 2 * MINUTE);
        s.at(at + 20 * SECOND).ended(victim, attempt, Outcome::Preempted).charged(
            victim,
            attempt,
            "lab/a",
            ChargeKind::Run,
            if round == 0 { 0 } else { at },
            8,
        );
        s.requeued(victim)
            .start_as(claimant, (round as u32).div_ceil(2) + 1, &[("n0", 0..8)], Occupancy::Allocated, Licence::OwnLeaf)
            .unhold(claimant, UnholdCause::Started);
        at += 20 * SECOND;
    }
    assert_eq!(
        s.end(HOUR, &[("y", 2)]).laws(),
        [Law::Protection, Law::Licence, Law::Swap],
        "also: nobody had the priority, everybody was protected"
    );
}

#[test]
fn victims_are_signalled_in_time_and_have_their_grace() {
    let mut s = until_signal();
    s.edit(|line| !matches!(line.event, LogEvent::Stopping(_)));
    s.at(3800 * SECOND).submit("late", "lab/a", 8, HOUR);
    assert_eq!(s.end(3900 * SECOND, &[("x", 1)]).laws(), [Law::Signal], "no signal");
    for grace in [MINUTE, 3 * MINUTE] {
        let mut s = until_signal();
        s.edit(|line| {
            if let LogEvent::Stopping(stopping) = &mut line.event {
                stopping.grace_ms = grace;
            }
            true
        });
        assert_eq!(s.end(3620 * SECOND, &[("x", 1)]).laws(), [Law::Signal], "a grace of {grace} ms");
    }
    let mut s = until_signal();
    s.edit(|line| {
        if let LogEvent::Preempting(preempting) = &mut line.event {
            preempting.stop_by_ms += HOUR;
        }
        true
    });
    assert_eq!(s.end(3620 * SECOND, &[("x", 1)]).laws(), [Law::Signal], "stopped an hour later");
}

#[test]
fn a_victim_that_gives_nothing_is_one_too_many() {
    let mut s = Script::new(&["n0", "n1"]);
    s.submit("x", "lab/a", 8, HOUR).start("x", 1, &[("n0", 0..8)]).submit("z", "lab/a", 8, HOUR).start("z", 1, &[("n1", 0..8)]);
    s.running("x", 1, HOUR).running("z", 1, HOUR).at(2 * HOUR).submit("y", "lab/b", 8, HOUR);
    s.preempting("x", 1, "y", Licence::Share).hold("y", &[("n0", 0..8)]).stopping("x", 1, 2 * MINUTE);
    s.clone().end(121 * MINUTE, &[("x", 1), ("z", 1)]).assert_clean();
    s.preempting("z", 1, "y", Licence::Share).stopping("z", 1, 2 * MINUTE);
    assert_eq!(s.end(121 * MINUTE, &[("x", 1), ("z", 1)]).laws(), [Law::Minimal]);
}

#[test]
fn the_spared_lost_their_claimant() {
    let mut s = until_signal();
    s.edit(|line| !matches!(line.event, LogEvent::Stopping(_)));
    s.at(3610 * SECOND).cancelled("y").unhold("y", UnholdCause::ClaimantGone).spared("x", 1);
    s.end(4000 * SECOND, &[("x", 1)]).assert_clean();
    let mut s = until_signal();
    s.edit(|line| !matches!(line.event, LogEvent::Stopping(_)));
    s.at(3610 * SECOND).spared("x", 1);
    assert_eq!(s.end(4000 * SECOND, &[("x", 1)]).laws(), [Law::NamedStart]);
}

#[test]
fn what_an_eviction_loses_is_worth_it() {
    // A claimant of 8 GPUs and an hour may cost 120 GPU-minutes: of 8 GPUs, ten minutes since the last bank and five for the restart.
    let story = |banked: i64, at: i64, change: fn(&mut Submitted)| {
        let mut s = Script::new(&["n0"]);
        s.submit_as("x", "lab/a", 8, HOUR, change).start("x", 1, &[("n0", 0..8)]).running("x", 1, HOUR);
        s.at(MINUTE).submit("y", "lab/b", 8, HOUR);
        s.at(banked).add(LogEvent::Checkpoint(Checkpoint { workload: "x".into(), attempt: 1 }));
        s.at(at).preempting("x", 1, "y", Licence::Share).hold("y", &[("n0", 0..8)]).stopping("x", 1, 2 * MINUTE);
        s.laws_to_the_end(&[("x", 1)])
    };
    assert_eq!(story(2 * HOUR, 130 * MINUTE, |_| {}), []);
    assert_eq!(story(2 * HOUR, 130 * MINUTE + 1, |_| {}), [Law::WorthIt]);
    assert_eq!(story(2 * HOUR, 130 * MINUTE, |x| x.on_preempt = OnPreempt::Restart), [Law::WorthIt], "all is lost since it started");
    assert_eq!(story(2 * HOUR, 9 * HOUR, |_| {}), [], "the claimant has waited longer than the longest contract");
    let silent = |at: i64, every: Option<i64>| {
        let mut s = Script::new(&["n0"]);
        s.submit_as("x", "lab/a", 8, HOUR, |x| x.checkpoint_every_ms = every).start("x", 1, &[("n0", 0..8)]).running("x", 1, HOUR);
        s.at(at).submit("y", "lab/b", 8, HOUR).preempting("x", 1, "y", Licence::Share).hold("y", &[("n0", 0..8)]).stopping(
            "x",
            1,
            2 * MINUTE,
        );
        s.laws_to_the_end(&[("x", 1)])
    };
    assert_eq!(silent(2 * HOUR + 10 * MINUTE, None), [], "since the last multiple of its contract");
    assert_eq!(silent(2 * HOUR + 30 * MINUTE, None), [Law::WorthIt]);
    assert_eq!(silent(2 * HOUR + 30 * MINUTE, Some(15 * MINUTE)), [], "it states a shorter interval");
}

#[test]
fn losses_of_one_plan_add_up() {
    let mut s = Script::new(&["n0"]);
    s.submit("x", "lab/a", 4, HOUR).start("x", 1, &[("n0", 0..4)]).submit("z", "lab/a", 4, HOUR).start("z", 1, &[("n0", 4..8)]);
    s.running("x", 1, HOUR).running("z", 1, HOUR).at(2 * HOUR + 15 * MINUTE);
    let one = s
        .clone()
        .submit("y", "lab/b", 4, HOUR)
        .preempting("x", 1, "y", Licence::Share)
        .hold("y", &[("n0", 0..4)])
        .stopping("x", 1, 2 * MINUTE)
        .laws();
    assert_eq!(one, [Law::WorthIt], "4 GPUs for 20 minutes, for 4 GPU-hours");
    s.submit("y", "lab/b", 8, HOUR)
        .preempting("x", 1, "y", Licence::Share)
        .preempting("z", 1, "y", Licence::Share)
        .hold("y", &[("n0", 0..8)]);
    s.stopping("x", 1, 2 * MINUTE).stopping("z", 1, 2 * MINUTE);
    assert_eq!(s.laws(), [Law::WorthIt]);
    s.edit(|line| {
        if let LogEvent::Submitted(line) = &mut line.event
            && line.workload == "y"
        {
            line.min_runtime_ms = 80 * MINUTE;
        }
        true
    });
    assert_eq!(s.laws(), [], "each half as much as 8 GPUs for 80 minutes are worth");
}

#[test]
fn a_start_timeout_is_judged_at_the_signal() {
    let story = |signal: i64| {
        let mut s = Script::new(&["n0"]);
        s.submit("x", "lab/a", 8, HOUR).start("x", 1, &[("n0", 0..8)]).at(signal).stopping("x", 1, 2 * MINUTE);
        s.at(signal + MINUTE).add(LogEvent::Running(Running { workload: "x".into(), attempt: 1, protected_until_ms: None }));
        s.at(signal + 90 * SECOND).ended("x", 1, Outcome::StartTimeout).charged("x", 1, "lab/a", ChargeKind::Run, 0, 8);
        s.requeued("x").start("x", 2, &[("n0", 0..8)]);
        s.laws_to_the_end(&[("x", 2)])
    };
    assert_eq!(story(10 * MINUTE), [], "all members ran within the grace, too late");
    assert_eq!(story(10 * MINUTE - 1), [Law::Contract]);
}

#[test]
fn what_is_imputed_to_a_child_is_not_its_parents() {
    // lab/b/c is born with an imputed past of 8 GPUs for two days; lab/b itself has used nothing.
    let story = |granted: &'static str| {
        let mut s = Script::new(&["n0"]);
        s.budgets(&[("lab", 100.0, 1.0), ("lab/a", 50.0, 0.5), ("lab/b", 20.0, 0.2)]);
        s.submit("x", "lab/a", 8, HOUR).start("x", 1, &[("n0", 0..8)]).running("x", 1, HOUR).at(96 * HOUR);
        s.budgets(&[("lab", 100.0, 1.0), ("lab/a", 50.0, 0.5), ("lab/b", 20.0, 0.2), ("lab/b/c", 100.0, 0.2)]);
        s.add(LogEvent::Granted(Granted { budget: granted.into(), pool: "p0".into(), gpu_ms: 8 * 70 * HOUR }));
        s.submit("y", "lab/b/c", 8, HOUR).preempting("x", 1, "y", Licence::Tree).hold("y", &[("n0", 0..8)]).stopping("x", 1, 2 * MINUTE);
        s.laws_to_the_end(&[("x", 1)])
    };
    assert_eq!(story("lab/b/c"), []);
    assert_eq!(story("lab/b"), [Law::Standing]);
}

#[test]
fn after_a_gap_evictions_go_slowly() {
    // From minute 10 to minute 30 nobody decides: y waits beside GPUs that w left at minute 20. Then z takes 8 of the pool's 16 GPUs.
    let story = |is_told: bool, from: i64, taken: i64| {
        let mut s = Script::new(&["n0", "n1"]);
        s.submit("u", "lab/a", 8, 0).start_as("u", 1, &[("n0", 0..8)], Occupancy::Unallocated, Licence::Free).running("u", 1, 0);
        s.submit("w", "lab/a", 8, HOUR).start("w", 1, &[("n1", 0..8)]).running("w", 1, HOUR);
        s.at(20 * MINUTE).submit("y", "lab/b", 8, HOUR).ended("w", 1, Outcome::Completed);
        s.charged("w", 1, "lab/a", ChargeKind::Run, 0, 8).at(30 * MINUTE);
        if is_told {
            s.add(LogEvent::Gap(Gap { from_ms: from }));
        }
        s.start("y", 1, &[("n1", 0..8)]).running("y", 1, HOUR).at(taken).submit("z", "lab/b", 8, HOUR);
        s.preempting("u", 1, "z", Licence::Unallocated).hold("z", &[("n0", 0..8)]).stopping("u", 1, 10 * SECOND);
        s.laws_to_the_end(&[("u", 1), ("y", 1)])
    };
    assert_eq!(story(true, 10 * MINUTE, 40 * MINUTE), []);
    assert_eq!(story(false, 10 * MINUTE, 40 * MINUTE), [Law::Idle], "nobody says that nobody was there");
    assert_eq!(story(true, 25 * MINUTE, 40 * MINUTE), [Law::Idle], "somebody was there when w ended");
    assert_eq!(story(true, 10 * MINUTE, 30 * MINUTE), [Law::Gap], "in the first cycle");
    assert_eq!(story(true, 10 * MINUTE, 39 * MINUTE), [Law::Gap], "more than a tenth in a minute");
    assert_eq!(story(true, 30 * MINUTE - SECOND, 40 * MINUTE), [Law::Idle], "a second excuses a second");
}
