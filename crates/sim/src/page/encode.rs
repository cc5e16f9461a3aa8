//! What the page carries of one policy, as columns. `assets/data.js` reads them by the same names.

use super::columns::{Block, Column};
use super::reasons::Reason;
use super::recorder::{Bar, Recorder};
use crate::metrics::Metrics;
use crate::metrics::series::Ranks;
use stipend_core::entry::{Class, Occupancy, Outcome, Slot};
use stipend_core::quantity::Time;
use stipend_core::spec::{NodeState, OnPreempt};

/// Whole seconds: what a picture of hours can show.
pub(super) fn seconds(at: Time) -> i64 {
    at.0.div_euclid(1000)
}

/// Leases, the workloads they are of, and outages.
pub(super) fn gantt(run: &Recorder) -> Block {
    let mut block = Block::default();
    leases(run, &mut block);
    placements(run, &mut block);
    reasons(run, &mut block);
    workloads(run, &mut block);
    outages(run, &mut block);
    block
}

fn leases(run: &Recorder, block: &mut Block) {
    let [mut workload, mut attempt, mut start, mut running, mut promoted, mut protected, mut end, mut state] = <[Column; 8]>::default();
    for bar in run.drawn() {
        let from = seconds(bar.start);
        workload.step(bar.lease.workload.0.into());
        attempt.number(bar.lease.attempt.into());
        start.step(from);
        // 0 where there is nothing; else seconds since the start, and one.
        let since_start = |at: Option<Time>| at.map_or(0, |at| u64::try_from(seconds(at) - from + 1).unwrap_or(1));
        running.number(since_start(bar.running));
        promoted.number(since_start(bar.promoted));
        protected.number(since_start(bar.protected_until));
        end.number(since_start(bar.end.map(|(at, _)| at)));
        state.number(outcome(bar) * 2 + u64::from(bar.occupancy == Occupancy::Unallocated));
    }
    let columns = [workload, attempt, start, running, promoted, protected, end, state];
    let names = ["workload", "attempt", "start", "running", "promoted", "protected", "end", "state"];
    names.into_iter().zip(columns).for_each(|(name, column)| block.add(name, column));
}

/// By the order of `OUTCOMES` in `assets/words.js`.
fn outcome(bar: &Bar) -> u64 {
    match bar.end {
        None => 0,
        Some((_, Outcome::Completed)) => 1,
        Some((_, Outcome::Failed)) => 2,
        Some((_, Outcome::Preempted)) => 3,
        Some((_, Outcome::Cancelled)) => 4,
        Some((_, Outcome::TimedOut)) => 5,
        Some((_, Outcome::NodeLost)) => 6,
        Some((_, Outcome::StartTimeout)) => 7,
    }
}

/// For each lease how many slots it has; for each slot its node, and its GPUs as runs of neighbours: 0 for the whole node, else how many
/// runs, and for each the GPUs left out before it and those in it.
fn placements(run: &Recorder, block: &mut Block) {
    let [mut slots, mut nodes, mut gpus] = <[Column; 3]>::default();
    for bar in run.drawn() {
        slots.number(bar.placement.len() as u64);
        let mut before = 0;
        for slot in bar.placement.iter() {
            nodes.signed(i64::from(slot.node.0) - before);
            before = i64::from(slot.node.0) + 1;
            gpu_runs(run, slot, &mut gpus);
        }
    }
    block.add("slots", slots);
    block.add("node", nodes);
    block.add("gpus", gpus);
}

fn gpu_runs(run: &Recorder, slot: &Slot, column: &mut Column) {
    let set = slot.gpus.0;
    if run.nodes.get(&slot.node).is_some_and(|node| node.gpus == set.count_ones()) {
        return column.number(0);
    }
    column.number(u64::from((set & !(set << 1)).count_ones()));
    let (mut at, mut rest) = (0, set);
    while rest != 0 {
        let gap = rest.trailing_zeros();
        let length = (rest >> gap).trailing_ones();
        column.number(u64::from(gap));
        column.number(u64::from(length));
        at += gap + length;
        rest = set.checked_shr(at).unwrap_or(0);
    }
}

/// 0 for no reason, else the template's number and one; then its numbers.
fn reasons(run: &Recorder, block: &mut Block) {
    for (name, numbers_name, of) in [
        ("why_start", "why_start_numbers", (|bar| Some(bar.why_start)) as fn(&Bar) -> Option<Reason>),
        ("why_end", "why_end_numbers", |bar| bar.why_end),
    ] {
        let [mut templates, mut numbers] = <[Column; 2]>::default();
        for bar in run.drawn() {
            templates.number(of(bar).map_or(0, |reason| u64::from(reason.template) + 1));
            of(bar).iter().flat_map(|reason| run.reasons.numbers(*reason)).for_each(|number| numbers.number(*number));
        }
        block.add(name, templates);
        block.add(numbers_name, numbers);
    }
}

/// The workloads that have a lease to be drawn, by number.
fn workloads(run: &Recorder, block: &mut Block) {
    let mut numbers: Vec<_> = run.drawn().map(|bar| bar.lease.workload).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let [mut id, mut budget, mut user, mut members, mut gpus, mut contract, mut priority, mut kind] = <[Column; 8]>::default();
    for workload in numbers {
        let Some(of) = run.submissions.get(&workload) else { continue };
        id.step(workload.0.into());
        budget.number(of.spec.budget.0.into());
        user.number(of.spec.user.0.into());
        members.number(of.spec.gang.members.into());
        gpus.number(of.spec.gang.gpus_per_member.into());
        contract.number((of.min_runtime.0 / 1000).unsigned_abs());
        priority.signed(of.spec.priority.into());
        kind.number(class(of.class) * 3 + on_preempt(of.spec.on_preempt));
    }
    let columns = [id, budget, user, members, gpus, contract, priority, kind];
    let names = ["id", "budget", "user", "members", "gpus_per_member", "contract", "priority", "kind"];
    names.into_iter().zip(columns).for_each(|(name, column)| block.add(name, column));
}

/// By the order of `CLASSES` in `assets/words.js`.
fn class(of: Class) -> u64 {
    match of {
        Class::Debug => 0,
        Class::Medium => 1,
        Class::Largest => 2,
        Class::Unallocated => 3,
    }
}

/// By the order of `ON_PREEMPT` in `assets/words.js`.
fn on_preempt(of: OnPreempt) -> u64 {
    match of {
        OnPreempt::Resume => 0,
        OnPreempt::Restart => 1,
        OnPreempt::End => 2,
    }
}

/// Reasons of outages stand in the page's text, in this order.
fn outages(run: &Recorder, block: &mut Block) {
    let [mut node, mut from, mut length, mut state] = <[Column; 4]>::default();
    for outage in &run.outages {
        node.number(outage.node.0.into());
        from.step(seconds(outage.from));
        length.number(outage.to.map_or(0, |to| u64::try_from(seconds(to) - seconds(outage.from) + 1).unwrap_or(1)));
        state.number(node_state(outage.state));
    }
    let columns = [node, from, length, state];
    let names = ["outage_node", "outage_from", "outage_length", "outage_state"];
    names.into_iter().zip(columns).for_each(|(name, column)| block.add(name, column));
}

/// By the order of `NODE_STATES` in `assets/words.js`.
fn node_state(of: NodeState) -> u64 {
    match of {
        NodeState::Ready => 0,
        NodeState::Draining(_) => 1,
        NodeState::Drained => 2,
        NodeState::Repairing => 3,
        NodeState::Lost => 4,
    }
}

/// Owed, delivered and arrears of each budget, in hundredths; distributions.
pub(super) fn figures(metrics: &Metrics) -> Block {
    let mut block = Block::default();
    let hundredths = |value: f64| (value * 100.0).round() as i64;
    for (index, budget) in metrics.series().iter().enumerate() {
        let [mut owed, mut delivered, mut arrears] = <[Column; 3]>::default();
        budget.owed_gpus.iter().for_each(|gpus| owed.step(hundredths(*gpus)));
        budget.delivered_gpus.iter().for_each(|gpus| delivered.step(hundredths(*gpus)));
        budget.arrears_claim_hours.iter().for_each(|hours| arrears.step(hours.map_or(-1, hundredths)));
        block.add(&format!("owed{index}"), owed);
        block.add(&format!("delivered{index}"), delivered);
        block.add(&format!("arrears{index}"), arrears);
    }
    let all = [("wait", metrics.wait_ranks()), ("slowdown", metrics.slowdown_ranks())];
    for (what, classes) in all {
        for (class, ranks) in classes {
            block.add(&format!("{what}_{class}"), distribution(&ranks));
        }
    }
    block
}

/// How many there are, how many of them never started, and the values.
fn distribution(ranks: &Ranks) -> Column {
    let mut column = Column::default();
    column.number(ranks.count);
    column.number(ranks.never_started);
    ranks.values.iter().for_each(|value| column.step(i64::try_from(*value).unwrap_or(i64::MAX / 2)));
    column
}
