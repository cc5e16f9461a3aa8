use super::*;

#[test]
fn buckets_begin_where_the_one_before_ends() {
    assert_eq!([0, 1, 2, 3, 4, 5].map(|place| begins(place).0), [0, 1000, 1500, 2000, 3000, 4000]);
    for place in 0..BUCKETS - 1 {
        assert_eq!(bucket(begins(place)), place);
        assert_eq!(bucket(Span(begins(place + 1).0 - 1)), place);
    }
    assert_eq!(bucket(Span::days(3650)), BUCKETS - 1, "whatever is longer is in the last");
}

fn history(minutes: impl IntoIterator<Item = i64>) -> History {
    let mut history = History::default();
    minutes.into_iter().for_each(|wait| history.add(Span::minutes(wait)));
    history
}

#[test]
fn a_range_holds_the_middle_eight_tenths_and_needs_ten_waits() {
    assert_eq!(history(1..=9).range(Span::ZERO), None, "nine are too few");
    let waits = history(1..=100);
    let range = waits.range(Span::ZERO).expect("a hundred are enough");
    let inside = (1..=100).filter(|wait| range.holds(Span::minutes(*wait))).count();
    assert!((80..=95).contains(&inside), "{inside} of a hundred in {range:?}");
    assert!(range.from > Span::minutes(5) && range.to < Span::minutes(128), "{range:?}: neither end is a guess");
    let same = history([7; 10]).range(Span::ZERO).expect("ten are enough");
    assert!(same.holds(Span::minutes(7)) && same.to < Span::minutes(12), "{same:?}");
}

#[test]
fn who_has_waited_is_told_what_those_waited_that_waited_as_long() {
    let waits = history((0..50).chain([600; 20]));
    let fresh = waits.range(Span::ZERO).expect("enough");
    let later = waits.range(Span::hours(3)).expect("the twenty that waited ten hours");
    assert_eq!((fresh.like, later.like), (70, 20));
    assert!(later.from >= Span::hours(3) && later.holds(Span::hours(10)) && !fresh.holds(Span::hours(20)));
    assert_eq!(waits.range(Span::hours(40)), None, "nobody waited that long: nothing is said");
}

#[test]
fn the_past_fades() {
    let mut waits = history([600; 200]);
    (0..1000).for_each(|_| waits.add(Span::minutes(1)));
    let range = waits.range(Span::ZERO).expect("enough");
    assert!(range.to < Span::minutes(5), "{range:?}");
    assert!(range.like <= KEPT);
}
