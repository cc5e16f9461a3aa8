use super::*;

fn kin(family: u64, user: u32) -> Kin {
    Kin { family: Some(FamilyId(family)), user: UserId(user), budget: BudgetId(1) }
}

fn told(outcomes: &[(Kin, i64, bool)]) -> Records {
    let mut records = Records::default();
    for (kin, minutes, completed) in outcomes {
        records.ended(*kin, Span::minutes(*minutes), *completed);
    }
    records
}

#[test]
fn without_a_past_everything_is_even() {
    let estimate = Records::default().estimate(kin(1, 1), Span::ZERO);
    assert_eq!((estimate.outcomes, estimate.completes), (0, Ppm(500_000)));
    assert!(estimate.completes_at_least < Ppm(400_000));
}

#[test]
fn a_family_is_judged_by_its_own_past_and_a_newcomer_by_its_kin() {
    let mut outcomes = vec![(kin(1, 1), 60, true); 20];
    outcomes.extend(vec![(kin(2, 1), 60, false); 20]);
    outcomes.extend(vec![(kin(3, 2), 60, true); 20]);
    let records = told(&outcomes);
    let completes = |family, user| records.estimate(kin(family, user), Span::ZERO).completes.0;
    assert!(completes(1, 1) > 850_000 && completes(2, 1) < 150_000, "{} {}", completes(1, 1), completes(2, 1));
    // A new family is between its user's others; one of a user without failures is better off.
    assert!((300_000..700_000).contains(&completes(9, 1)) && completes(9, 2) > 800_000);
    // A user who is new is as good as all.
    assert!((450_000..750_000).contains(&completes(9, 9)));
}

#[test]
fn who_is_little_known_is_trusted_less() {
    let few = told(&[(kin(1, 1), 60, true); 2]).estimate(kin(1, 1), Span::ZERO);
    let many = told(&[(kin(1, 1), 60, true); 40]).estimate(kin(1, 1), Span::ZERO);
    let doubt = |e: Estimate| e.completes.0 - e.completes_at_least.0;
    assert!(doubt(few) > 2 * doubt(many), "{few:?} {many:?}");
    assert!(few.completes_at_least < many.completes_at_least);
}

#[test]
fn what_has_run_past_the_time_of_most_deaths_is_no_longer_the_risk_that_it_was() {
    let mut outcomes = vec![(kin(1, 1), 20, false); 15];
    outcomes.extend(vec![(kin(1, 1), 600, true); 15]);
    let records = told(&outcomes);
    let at = |minutes| records.estimate(kin(1, 1), Span::minutes(minutes)).completes.0;
    assert!((450_000..550_000).contains(&at(0)) && at(120) > 850_000, "{} {}", at(0), at(120));
}

#[test]
fn short_failures_cost_less_than_long_ones() {
    let with_failures = |minutes| {
        let mut outcomes = vec![(kin(1, 1), 600, true); 10];
        outcomes.extend(vec![(kin(1, 1), minutes, false); 10]);
        told(&outcomes).estimate(kin(1, 1), Span::ZERO).useful.0
    };
    assert!(with_failures(2) > with_failures(600) + 200_000);
}

#[test]
fn the_past_fades() {
    let mut outcomes = vec![(kin(1, 1), 60, false); 500];
    outcomes.extend(vec![(kin(1, 1), 60, true); 60]);
    let completes = told(&outcomes).estimate(kin(1, 1), Span::ZERO).completes.0;
    assert!(completes > 600_000, "{completes}");
}

#[test]
fn run_times_are_quantiles_of_what_ended() {
    let mut outcomes = vec![(kin(1, 1), 10, true); 40];
    outcomes.extend(vec![(kin(1, 1), 1000, true); 15]);
    let estimate = told(&outcomes).estimate(kin(1, 1), Span::ZERO);
    assert_eq!((estimate.runtime_p50, estimate.runtime_p90), (Span::minutes(16), Span::minutes(1024)));
}

#[test]
fn memory_is_bounded_and_the_longest_silent_family_is_forgotten() {
    let mut records = told(&[(kin(0, 1), 60, true), (kin(1, 1), 60, true)]);
    (2..FAMILIES_MAX as u64).for_each(|family| records.ended(kin(family, 1), Span::minutes(1), true));
    records.ended(kin(0, 1), Span::minutes(60), true);
    records.ended(kin(u64::MAX, 1), Span::minutes(60), true);
    let seen = |family| records.estimate(kin(family, 1), Span::ZERO).outcomes;
    assert_eq!((records.families.len(), records.latest.len()), (FAMILIES_MAX, FAMILIES_MAX));
    assert_eq!((seen(0), seen(1), seen(2), seen(u64::MAX)), (2, 0, 1, 1));
}

#[test]
fn nothing_overflows() {
    let records = told(&[(kin(1, 1), i64::MAX / 60_000, true), (kin(1, 1), 0, false), (kin(1, 1), -5, false)]);
    for ran in [Span(i64::MIN), Span::ZERO, Span(i64::MAX)] {
        let estimate = records.estimate(kin(1, 1), ran);
        assert!(estimate.completes_at_least <= estimate.completes && estimate.useful <= Ppm(1_000_000));
        assert!(estimate.runtime_p50 <= estimate.runtime_p90);
    }
}

/// Tiny work that completes, under the name of work that fails after hours, raises the odds and not the part of the time that is useful.
#[test]
fn fillers_do_not_buy_a_place() {
    let failing = vec![(kin(1, 1), 600, false); 10];
    let honest = told(&failing).estimate(kin(1, 1), Span::ZERO);
    let fillers: Vec<_> = failing.into_iter().chain(vec![(kin(1, 1), 1, true); 60]).collect();
    let filled = told(&fillers).estimate(kin(1, 1), Span::ZERO);
    assert!(filled.completes.0 > honest.completes.0 + 500_000, "{filled:?}");
    assert!(filled.useful.0 < honest.useful.0 + 50_000, "{honest:?} {filled:?}");
}

/// A new name begins as its user's others: who has only failed gains nothing that he would keep, and never more than a user without a past has.
#[test]
fn a_new_name_sheds_no_record() {
    let mut outcomes = vec![(kin(1, 1), 600, false); 20];
    outcomes.extend(vec![(kin(5, 2), 600, true); 20]);
    let records = told(&outcomes);
    let useful = |family, user| records.estimate(kin(family, user), Span::ZERO).useful.0;
    assert!(useful(9, 1) < useful(1, 1) + 150_000, "{} {}", useful(9, 1), useful(1, 1));
    assert!(useful(9, 1) + 200_000 < useful(9, 9), "{} {}", useful(9, 1), useful(9, 9));
}
