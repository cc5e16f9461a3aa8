//! Tables and pictures of hand-made sweeps, compared as a whole.

use super::{page, picture, table};
use crate::report::tests::four;
use crate::sweep::{Axis, Combination, SweepResult};

fn axis(key: &str, values: &[&str]) -> Axis {
    Axis { key: key.into(), values: values.iter().map(|value| (*value).to_owned()).collect() }
}

/// The further a combination is from the first, the worse; `seeds` of each, and so many policies.
fn sweep(axes: Vec<Axis>, seeds: u64, policies: usize) -> SweepResult {
    let mut values: Vec<Vec<String>> = vec![Vec::new()];
    for axis in &axes {
        values = values.iter().flat_map(|v| axis.values.iter().map(|value| [v.clone(), vec![value.clone()]].concat())).collect();
    }
    let results = |index: usize| {
        (1..=seeds).map(move |seed| {
            let mut run = four(seed, 0.01 * index as f64 + 0.002 * seed as f64);
            run.policies.truncate(policies);
            run
        })
    };
    let combinations = values.into_iter().enumerate().map(|(index, values)| Combination { values, results: results(index).collect() });
    SweepResult { axes, combinations: combinations.collect() }
}

fn check(actual: &str, expected: snapbox::Data) {
    snapbox::assert_data_eq!(format!("{actual}\n"), expected.raw());
}

fn narrow(text: &str) -> &str {
    let widest = text.lines().map(|line| line.chars().count()).max();
    assert!(widest <= Some(80), "a line is {widest:?} characters wide:\n{text}");
    text
}

#[test]
fn one_field_under_two_policies() {
    let sweep = sweep(vec![axis("lookback", &["1d", "7d", "28d"])], 1, 2);
    check(narrow(&table(&sweep)), snapbox::file!["../snapshots/sweep-one.txt"]);
    check(&picture(&sweep), snapbox::file!["../snapshots/sweep-one.svg": Text]);
}

#[test]
fn two_fields_and_three_seeds() {
    let sweep = sweep(vec![axis("lookback", &["1d", "7d"]), axis("min_runtime_max", &["2h", "8h", "24h"])], 3, 1);
    check(narrow(&table(&sweep)), snapbox::file!["../snapshots/sweep-two.txt"]);
    check(&picture(&sweep), snapbox::file!["../snapshots/sweep-two.svg": Text]);
    check(&page(&sweep, "What is <swept>"), snapbox::file!["../snapshots/sweep-two.html": Text]);
}

/// The figures fit the width whatever the fields are called, and what is equal in all rows has no best.
#[test]
fn three_fields_with_long_names_fold() {
    let long = |number: usize| axis(&format!("a_field_with_a_long_name_{number}"), &["a_long_value", "another"]);
    let table = table(&sweep(vec![long(1), long(2), axis("c", &["1", "2"])], 1, 1));
    narrow(&table);
    let occupancy = |line: &&str| line.contains("99.97");
    assert!(table.lines().filter(occupancy).count() == 8 && !table.contains("99.97*"), "{table}");
}

#[test]
fn markup_in_names_stays_text() {
    let picture = picture(&sweep(vec![axis("a", &["<b>", "&"])], 1, 1));
    assert!(picture.contains("&lt;b&gt;") && !picture.contains("<b>"));
}
