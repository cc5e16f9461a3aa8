//! A few plain sentences made from the figures, also where a baseline wins. Over several seeds they speak of medians.

use super::cell::Unit;
use super::rows::{Better, DEBUG_WAITS, MEASURES, Measure, OWED, USEFUL, last_part, worst_team};
use super::seeds::median;
use super::table::{BESIDE, wrap};
use crate::result::{PolicyResult, RunResult};

/// What the table says about the first policy beside the others, as a list in lines of the report's width.
pub(super) fn sentences(runs: &[RunResult]) -> String {
    list(runs).iter().map(|sentence| wrap("- ", "  ", sentence)).collect::<Vec<_>>().join("\n")
}

/// The same, sentence by sentence.
pub(crate) fn list(runs: &[RunResult]) -> Vec<String> {
    let mut sentences = vec![demand(runs), owed(runs)];
    sentences.extend(bound(runs));
    sentences.push(useful(runs));
    sentences.extend(debug_waits(runs));
    sentences.extend(ahead(runs));
    sentences.extend(behind(runs));
    sentences
}

fn demand(runs: &[RunResult]) -> String {
    let ratio = of(runs, 0, |policy| Some(policy.demand_ratio)).unwrap_or(0.0);
    let consequence = if ratio < 1.0 { "there is room for all of it on average" } else { "some of it must wait under any policy" };
    format!("Under {}, work with a contract asked for {} times the capacity; {consequence}.", name(runs, 0), Unit::Number.text(ratio))
}

fn owed(runs: &[RunResult]) -> String {
    if of(runs, 0, |policy| policy.delivered_of_owed).is_none() {
        return "No budget was owed anything: none with a claim asked for allocated time.".into();
    }
    let one = |index: usize| {
        let part = Unit::Percent.cell(&[of(runs, index, |policy| policy.delivered_of_owed)]);
        let worst = Unit::Percent.cell(&[of(runs, index, |policy| worst_team(policy)?.delivered_of_owed)]);
        let who = match runs {
            [run] => worst_team(&run.policies[index]).map_or(String::new(), |team| format!(" ({})", last_part(&team.path))),
            _ => String::new(),
        };
        format!("{} {part}, and {worst} to its worst team{who}", name(runs, index))
    };
    format!("Of the GPU time that budgets were owed, delivered: {}.", each(runs, one, &MEASURES[OWED]).join("; "))
}

/// Said only where something stands in the way.
fn bound(runs: &[RunResult]) -> Option<String> {
    let bound = of(runs, 0, |policy| Some(policy.owed_bound))?;
    (bound < 1.0).then(|| {
        let bound = Unit::Percent.text(bound);
        format!("At most {bound} could be delivered under {}: only short contracts may fill its express nodes.", name(runs, 0))
    })
}

fn useful(runs: &[RunResult]) -> String {
    let one = |index: usize| {
        let percent = |figure: fn(&PolicyResult) -> Option<f64>| Unit::Percent.cell(&[of(runs, index, figure)]);
        format!("{} {} and {}", name(runs, index), percent(|policy| Some(policy.occupancy)), percent(|policy| Some(policy.useful_fraction)))
    };
    format!("Of the capacity, given to work and useful in the end: {}.", each(runs, one, &MEASURES[USEFUL]).join("; "))
}

fn debug_waits(runs: &[RunResult]) -> Option<String> {
    of(runs, 0, |policy| policy.waits.debug.p90_s)?;
    let one = |index: usize| {
        let wait = Unit::Seconds.cell(&[of(runs, index, |policy| policy.waits.debug.p90_s)]);
        format!("{} {wait}", name(runs, index))
    };
    Some(format!("Nine of ten debug runs start within: {}.", each(runs, one, &MEASURES[DEBUG_WAITS]).join("; ")))
}

/// Where no other policy is better.
fn ahead(runs: &[RunResult]) -> Option<String> {
    if runs[0].policies.len() < 2 {
        return None;
    }
    let ahead = MEASURES.iter().filter(|measure| of(runs, 0, measure.of).is_some() && rivals(runs, measure).is_empty());
    let names: Vec<&str> = ahead.map(|measure| measure.name).collect();
    let none = format!("In nothing compared here is {} the best.", name(runs, 0));
    Some(if names.is_empty() { none } else { format!("No other policy beats {} in: {}.", name(runs, 0), names.join(", ")) })
}

/// Where another policy is better, and by how much.
fn behind(runs: &[RunResult]) -> Option<String> {
    let losses: Vec<String> = MEASURES.iter().filter_map(|measure| loss(runs, measure)).collect();
    (!losses.is_empty()).then(|| format!("It is beaten in: {}.", losses.join("; ")))
}

/// `useful work (easy 99.36 %, against 93.3 %)`; where more policies are better than fit into the table's width, the best of them.
fn loss(runs: &[RunResult], measure: &Measure) -> Option<String> {
    let own = measure.unit.text(of(runs, 0, measure.of)?);
    let mut rivals = rivals(runs, measure);
    if runs[0].policies.len() > BESIDE {
        rivals.sort_by(|(_, a), (_, b)| measure.better.first(*a, *b));
        rivals.truncate(1);
    }
    let texts = rivals.iter().map(|(index, value)| format!("{} {}", name(runs, *index), measure.unit.text(*value)));
    (!rivals.is_empty()).then(|| format!("{} ({}, against {own})", measure.name, texts.collect::<Vec<_>>().join(", ")))
}

/// The other policies that are better in a measure, with their figures. Differences that the table does not show are none.
fn rivals(runs: &[RunResult], measure: &Measure) -> Vec<(usize, f64)> {
    let Some(own) = of(runs, 0, measure.of) else { return Vec::new() };
    let others = (1..runs[0].policies.len()).filter_map(|index| Some((index, of(runs, index, measure.of)?)));
    let better = |value: f64| match measure.better {
        Better::Higher => own < value,
        Better::Lower => value < own,
        Better::Neither => false,
    };
    others.filter(|(_, value)| better(*value) && measure.unit.text(*value) != measure.unit.text(own)).collect()
}

/// A figure of one policy: its median over the seeds.
fn of(runs: &[RunResult], index: usize, figure: fn(&PolicyResult) -> Option<f64>) -> Option<f64> {
    let figures: Vec<Option<f64>> = runs.iter().map(|run| figure(&run.policies[index])).collect();
    median(&figures)
}

fn name(runs: &[RunResult], index: usize) -> &str {
    &runs[0].policies[index].policy
}

/// What is said of every policy; where there are many, of the first and of the best of the others. The table has them all.
fn each(runs: &[RunResult], one: impl Fn(usize) -> String, measure: &Measure) -> Vec<String> {
    let policies = runs[0].policies.len();
    if policies <= BESIDE {
        return (0..policies).map(one).collect();
    }
    let figures = (1..policies).filter_map(|index| Some((index, of(runs, index, measure.of)?)));
    let best = figures.min_by(|(_, a), (_, b)| measure.better.first(*a, *b));
    let best = best.map(|(index, _)| format!("the best of the others, {}", one(index)));
    [one(0)].into_iter().chain(best).collect()
}
