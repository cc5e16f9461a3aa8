//! Work before its turn and its promotion, sessions and their renewal.

use super::script::{HOUR, MINUTE, Script};
use crate::audit::Law;
use crate::log::line::*;

fn promoted(s: &mut Script, workload: &str, until: i64) -> Script {
    let (workload, protected_until_ms) = (workload.into(), Some(until));
    s.add(LogEvent::Promoted(Promoted { workload, attempt: 1, protected_until_ms, why: String::new() })).clone()
}

fn renewed(s: &mut Script, workload: &str, until: i64) -> Script {
    s.add(LogEvent::Renewed(Renewed { workload: workload.into(), attempt: 1, protected_until_ms: until, why: String::new() })).clone()
}

fn input(s: &mut Script, workload: &str) -> Script {
    s.add(LogEvent::Input(Input { workload: workload.into(), attempt: 1 })).clone()
}

/// lab/a may hold 8 GPUs, and `x` has them; `y` runs before its turn. All of it is up to a minute after the start.
fn early(start: Start) -> Script {
    let mut s = Script::new(&["n0", "n1"]);
    s.capped(|budget| budget.gpus_max = (budget.path == "lab/a").then_some(8));
    s.submit("x", "lab/a", 8, HOUR).start("x", 1, &[("n0", 0..8)]);
    s.submit_as("y", "lab/a", 8, HOUR, |line| line.start = Some(start));
    s.start_as("y", 1, &[("n1", 0..8)], Occupancy::Unallocated, Licence::Free);
    s.at(MINUTE).running("x", 1, HOUR).running("y", 1, 0);
    s
}

/// `x` is done an hour later, and it is `y`'s turn.
fn turn() -> Script {
    let mut s = early(Start::Whenever);
    s.at(HOUR + MINUTE).ended("x", 1, Outcome::Completed).charged("x", 1, "lab/a", ChargeKind::Run, 0, 8);
    s
}

#[test]
fn a_promoted_lease_is_charged_and_protected_from_then_on() {
    let turn_comes = HOUR + MINUTE;
    let mut good = promoted(&mut turn(), "y", turn_comes + HOUR);
    good.clone().end(3 * HOUR, &[("y", 1)]).assert_clean();
    good.at(3 * HOUR).ended("y", 1, Outcome::Completed);
    good.clone().charged("y", 1, "lab/a", ChargeKind::Run, turn_comes, 8).end(4 * HOUR, &[]).assert_clean();
    let from_its_start = good.charged("y", 1, "lab/a", ChargeKind::Run, 0, 8).end(4 * HOUR, &[]).laws();
    assert_eq!(from_its_start, [Law::Ledger]);
    assert_eq!(promoted(&mut turn(), "y", turn_comes + HOUR - 1).laws_to_the_end(&[("y", 1)]), [Law::Promotion]);
}

#[test]
fn a_promotion_counts_as_a_start() {
    let until = 2 * HOUR + MINUTE;
    assert_eq!(promoted(&mut early(Start::Whenever), "y", HOUR + MINUTE).laws_to_the_end(&[("x", 1), ("y", 1)]), [Law::Cap]);
    let mut drains = turn();
    drains.drain("n1", Severity::Sick, until);
    assert_eq!(promoted(&mut drains, "y", until).laws_to_the_end(&[("y", 1)]), [Law::Promotion]);
    let mut twice = promoted(&mut turn(), "y", until);
    assert_eq!(promoted(&mut twice, "y", until).laws_to_the_end(&[("y", 1)]), [Law::Promotion]);
}

#[test]
fn a_promoted_lease_never_restarts() {
    let mut s = promoted(&mut turn(), "y", 2 * HOUR + MINUTE);
    s.at(2 * HOUR).start("y", 2, &[("n0", 0..8)]);
    assert_eq!(s.laws_to_the_end(&[("y", 1)]), [Law::Sequence]);
}

#[test]
fn only_who_says_so_starts_before_its_turn() {
    assert_eq!(early(Start::Whenever).laws_to_the_end(&[("x", 1), ("y", 1)]), []);
    assert_eq!(early(Start::Guaranteed).laws_to_the_end(&[("x", 1), ("y", 1)]), [Law::Contract]);
}

/// A session of an hour on all of the only node, which runs from a minute on.
fn session() -> Script {
    let mut s = Script::new(&["n0"]);
    s.submit_as("x", "lab/a", 8, HOUR, |line| line.kind = Kind::Session).start("x", 1, &[("n0", 0..8)]);
    s.at(MINUTE).running("x", 1, HOUR);
    s
}

#[test]
fn a_session_is_renewed_after_its_contract_if_it_was_used() {
    let (over, until) = (HOUR + MINUTE, 2 * HOUR + MINUTE);
    let used = || input(&mut session(), "x");
    let mut good = renewed(used().at(over), "x", until);
    good.clone().end(2 * HOUR, &[("x", 1)]).assert_clean();
    assert_eq!(renewed(good.at(until), "x", until + HOUR).laws_to_the_end(&[("x", 1)]), [Law::Session], "not used since");
    assert_eq!(renewed(session().at(over), "x", until).laws_to_the_end(&[("x", 1)]), [Law::Session], "never used");
    assert_eq!(renewed(used().at(over - 1), "x", until - 1).laws_to_the_end(&[("x", 1)]), [Law::Session], "not over yet");
    assert_eq!(renewed(used().at(over), "x", until + 1).laws_to_the_end(&[("x", 1)]), [Law::Session], "too long");
    let mut drains = used();
    drains.drain("n0", Severity::Maintenance, over);
    assert_eq!(renewed(drains.at(over), "x", until).laws_to_the_end(&[("x", 1)]), [Law::Session], "its node drains");
}

#[test]
fn a_user_has_one_small_session() {
    let and = |gpus: u32, change: fn(&mut Submitted)| {
        let mut s = session();
        s.submit_as("z", "lab/b", gpus, HOUR, change).laws_to_the_end(&[("x", 1)])
    };
    assert_eq!(and(8, |line| line.kind = Kind::Session), [Law::Session]);
    assert_eq!(and(8, |line| (line.kind, line.user) = (Kind::Session, "u1".into())), []);
    assert_eq!(and(9, |line| (line.kind, line.user) = (Kind::Session, "u1".into())), [Law::Session]);
    assert_eq!(and(9, |_| {}), []);
}
