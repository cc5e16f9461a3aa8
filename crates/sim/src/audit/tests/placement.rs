use super::script::{HOUR, MINUTE, SECOND, Script};
use crate::audit::Law;
use crate::log::line::*;

#[test]
fn no_gpu_is_leased_twice() {
    let mut s = Script::new(&["n0"]);
    s.submit("x", "lab/a", 4, HOUR).start("x", 1, &[("n0", 0..4)]).submit("y", "lab/b", 4, HOUR);
    s.clone().start("y", 1, &[("n0", 4..8)]).end(HOUR, &[("x", 1), ("y", 1)]).assert_clean();
    assert_eq!(s.start("y", 1, &[("n0", 3..7)]).end(HOUR, &[("x", 1), ("y", 1)]).laws(), [Law::GpuTwice]);
}

#[test]
fn held_gpus_are_for_their_claimant_only() {
    let mut s = Script::new(&["n0"]);
    s.submit("x", "lab/a", 4, 0).start_as("x", 1, &[("n0", 0..4)], Occupancy::Unallocated, Licence::Free).at(SECOND).running("x", 1, 0);
    s.at(MINUTE).submit("y", "lab/b", 8, HOUR).preempting("x", 1, "y", Licence::Unallocated).hold("y", &[("n0", 0..8)]).stopping(
        "x",
        1,
        10 * SECOND,
    );
    s.submit("z", "lab/b", 4, 0);
    s.clone().end(61 * SECOND, &[("x", 1)]).assert_clean();
    s.start_as("z", 1, &[("n0", 4..8)], Occupancy::Unallocated, Licence::Free);
    assert_eq!(
        s.end(61 * SECOND, &[("x", 1), ("z", 1)]).laws(),
        [Law::GpuTwice, Law::NamedStart],
        "and the hold is made of GPUs that stay taken"
    );
}

#[test]
fn a_gang_starts_whole_each_member_on_one_node() {
    let gang = |members: u32, each: u32, on: &[(&str, std::ops::Range<u8>)]| {
        let mut s = Script::new(&["n0", "n1"]);
        s.submit_as("x", "lab/a", each, HOUR, |line| (line.members, line.charged_gpus) = (members, members * each));
        s.start("x", 1, on).end(HOUR, &[("x", 1)]).laws()
    };
    assert_eq!(gang(2, 4, &[("n0", 0..8)]), [], "two members may share a node");
    assert_eq!(gang(2, 4, &[("n0", 0..4), ("n1", 0..4)]), []);
    assert_eq!(gang(2, 4, &[("n0", 0..4)]), [Law::Gang], "one member is missing");
    assert_eq!(gang(2, 4, &[("n0", 0..6), ("n1", 0..2)]), [Law::Gang], "a member is split");
    assert_eq!(gang(2, 4, &[("n0", 0..8), ("n1", 0..4)]), [Law::Gang], "one too many");
    assert_eq!(gang(1, 8, &[("n0", 1..9)]), [Law::Gang], "there is no GPU 8");
}

#[test]
fn a_gang_for_one_block_is_in_one_block() {
    let mut s = Script::new(&["n0"]);
    s.node("n1", |line| line.block = "k1".into());
    s.submit_as("x", "lab/a", 8, HOUR, |line| (line.members, line.charged_gpus, line.same_block) = (2, 16, true));
    assert_eq!(s.start("x", 1, &[("n0", 0..8), ("n1", 0..8)]).end(HOUR, &[("x", 1)]).laws(), [Law::Gang]);
}

#[test]
fn nodes_have_what_is_asked_for() {
    let story = |node: fn(&mut Node), ask: fn(&mut Submitted)| {
        let mut s = Script::new(&[]);
        s.node("n0", node).submit_as("x", "lab/a", 4, HOUR, ask).start("x", 1, &[("n0", 0..4)]).submit_as("y", "lab/a", 4, HOUR, ask);
        s.start("y", 1, &[("n0", 4..8)]).end(HOUR, &[("x", 1), ("y", 1)]).laws()
    };
    assert_eq!(story(|n| n.features = 3, |w| w.features = 2), []);
    assert_eq!(story(|n| n.features = 1, |w| w.features = 2), [Law::Node]);
    assert_eq!(story(|n| n.cpus = 64, |w| w.cpus_per_member = 32), []);
    assert_eq!(story(|n| n.cpus = 63, |w| w.cpus_per_member = 32), [Law::Node]);
    assert_eq!(
        story(|n| n.cpus = 64, |w| w.cpus_per_member = if w.workload == "x" { 33 } else { 0 }),
        [Law::Node],
        "y takes the node's part"
    );
    assert_eq!(story(|n| n.memory_bytes = 99, |w| w.memory_per_member_bytes = 50), [Law::Node]);
}

#[test]
fn draining_nodes_take_only_what_surely_leaves_in_time() {
    let start = |severity, until: i64, contract: i64| {
        let mut s = Script::new(&["n0"]);
        let occupancy = if contract > 0 { Occupancy::Allocated } else { Occupancy::Unallocated };
        s.drain("n0", severity, until).submit("x", "lab/a", 8, contract).start_as("x", 1, &[("n0", 0..8)], occupancy, Licence::Free);
        s.end(SECOND, &[("x", 1)]).laws()
    };
    assert_eq!(start(Severity::Maintenance, 70 * MINUTE, HOUR), [], "start timeout and contract fit");
    assert_eq!(start(Severity::Maintenance, 70 * MINUTE - 1, HOUR), [Law::Node]);
    assert_eq!(start(Severity::Maintenance, SECOND, 0), [], "unallocated work may");
    assert_eq!(start(Severity::Sick, 70 * MINUTE, 0), [Law::Node]);
    assert_eq!(start(Severity::Critical, 70 * MINUTE, HOUR), [Law::Node]);
    for state in [State::Lost, State::Drained, State::Repairing] {
        let mut s = Script::new(&["n0"]);
        s.node("n0", |line| line.state = state).submit("x", "lab/a", 8, HOUR).start("x", 1, &[("n0", 0..8)]);
        assert_eq!(s.end(SECOND, &[("x", 1)]).laws(), [Law::Node], "{state:?}");
    }
}

#[test]
fn express_nodes_run_short_contracts_and_unallocated_work() {
    let start = |gpus: u32, contract: i64| {
        let mut s = Script::new(&[]);
        s.node("n0", |line| (line.express, line.gpus) = (true, 16));
        let occupancy = if contract > 0 { Occupancy::Allocated } else { Occupancy::Unallocated };
        s.submit("x", "lab/a", gpus, contract).start_as("x", 1, &[("n0", 0..gpus as u8)], occupancy, Licence::Free);
        s.end(SECOND, &[("x", 1)]).laws()
    };
    assert_eq!(start(8, 15 * MINUTE), []);
    assert_eq!(start(8, 15 * MINUTE + 1), [Law::Express]);
    assert_eq!(start(9, 15 * MINUTE), [Law::Express]);
    assert_eq!(start(16, 0), []);
}

#[test]
fn caps_hold_at_every_start_at_every_level() {
    let start = |capped: &'static str, unallocated: bool| {
        let mut s = Script::new(&["n0"]);
        s.budgets(&[("lab", 100.0, 1.0), ("lab/a", 50.0, 0.5), ("lab/b", 50.0, 0.5)]).capped(|budget| {
            if budget.path == capped {
                (budget.gpus_max, budget.unallocated_gpus_max) = (Some(7), Some(7));
            }
        });
        let (contract, occupancy) = if unallocated { (0, Occupancy::Unallocated) } else { (HOUR, Occupancy::Allocated) };
        for (workload, gpus) in [("x", 0..4), ("y", 4..8)] {
            s.submit(workload, "lab/a", 4, contract).start_as(workload, 1, &[("n0", gpus)], occupancy, Licence::Free);
        }
        s.end(SECOND, &[("x", 1), ("y", 1)]).laws()
    };
    assert_eq!(start("none", false), []);
    for unallocated in [false, true] {
        assert_eq!(start("lab/a", unallocated), [Law::Cap]);
        assert_eq!(start("lab", unallocated), [Law::Cap]);
    }
    let mut s = Script::new(&["n0"]);
    s.budgets(&[("lab", 100.0, 1.0), ("lab/a", 0.0, 0.0), ("lab/b", 50.0, 0.5)]);
    s.submit("x", "lab/a", 8, HOUR).start("x", 1, &[("n0", 0..8)]);
    assert_eq!(s.end(SECOND, &[("x", 1)]).laws(), [Law::Cap], "a zero claim runs no contract");
}

#[test]
fn no_gpu_idles_beside_work_that_could_use_it() {
    let idle = |prepare: fn(&mut Script), contract: i64, gpus: u32| {
        let mut s = Script::new(&[]);
        prepare(&mut s);
        if !s.lines.iter().any(|line| matches!(line.event, LogEvent::Node(_))) {
            s.node("n0", |_| {});
        }
        s.submit("x", "lab/a", gpus, contract).end(SECOND, &[]).laws()
    };
    assert_eq!(idle(|_| {}, 0, 8), [Law::Idle]);
    assert_eq!(idle(|_| {}, HOUR, 8), [Law::Idle]);
    assert_eq!(idle(|_| {}, 0, 9), [], "it does not fit");
    assert_eq!(
        idle(|s| _ = s.node("n0", |n| (n.state, n.severity) = (State::Draining, Some(Severity::Sick))), 0, 8),
        [],
        "the node is sick"
    );
    assert_eq!(idle(|s| _ = s.node("n0", |n| n.express = true), 0, 8), [Law::Idle], "express nodes, too, for unallocated work");
    assert_eq!(idle(|s| _ = s.node("n0", |n| n.express = true), HOUR, 8), [], "not for a contract");
    let tree = |s: &mut Script| {
        s.budgets(&[("lab", 100.0, 1.0), ("lab/a", 50.0, 0.5), ("lab/b", 50.0, 0.5)]);
        s.capped(|budget| budget.unallocated_gpus_max = Some(7));
    };
    assert_eq!(idle(tree, 0, 8), [], "a cap");
    let mut s = Script::new(&["n0"]);
    s.submit_as("x", "lab/a", 4, HOUR, |line| (line.members, line.charged_gpus) = (3, 12));
    s.end(SECOND, &[]).assert_clean();
}

#[test]
fn a_node_keeps_cpus_for_the_work_that_it_runs() {
    let mut s = Script::new(&[]);
    s.node("n0", |line| line.cpus = 64).submit_as("x", "lab/a", 4, HOUR, |line| line.cpus_per_member = 40);
    s.start("x", 1, &[("n0", 0..4)]).submit_as("y", "lab/a", 4, 0, |line| line.cpus_per_member = 30);
    s.end(SECOND, &[("x", 1)]).assert_clean();
}

#[test]
fn no_budgets_contracts_camp_on_express_nodes() {
    let story = |nodes: &[&str], contract: i64, gpus: &[(&'static str, u8)]| {
        let mut s = Script::new(&[]);
        for node in nodes {
            s.node(node, |line| line.express = true);
        }
        for (k, (node, gpus)) in gpus.iter().enumerate() {
            let workload = format!("w{k}");
            let occupancy = if contract == 0 { Occupancy::Unallocated } else { Occupancy::Allocated };
            s.submit(&workload, "lab/a", u32::from(*gpus), contract).start_as(&workload, 1, &[(node, 0..*gpus)], occupancy, Licence::Free);
        }
        s.laws()
    };
    assert_eq!(story(&["n0", "n1"], 10 * MINUTE, &[("n0", 8)]), [], "half of 16");
    assert_eq!(story(&["n0", "n1"], 10 * MINUTE, &[("n0", 8), ("n1", 1)]), [Law::Express]);
    assert_eq!(story(&["n0", "n1"], 0, &[("n0", 8), ("n1", 8)]), [], "work without a contract may fill them");
    assert_eq!(story(&["n0"], 10 * MINUTE, &[("n0", 8)]), [], "one gang of the largest kind, however few there are");
}
