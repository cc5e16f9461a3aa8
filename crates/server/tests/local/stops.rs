//! Stopping: signal, grace, checkpoint command, deadline.

use crate::engine::{Engine, lease, program, script, tell, until};
use stipend_core::event::Exit;
use stipend_core::quantity::Span;
use stipend_server::driver::Report;

#[test]
fn a_stop_is_a_signal_with_a_deadline_and_the_end_comes_at_the_deadline() {
    let mut engine = Engine::new();
    // The first saves and goes, the second does not care.
    engine.launch(script(
        lease(1, 1),
        "trap 'echo until $(cat $STIPEND_DEADLINE_FILE); exit 3' TERM; echo ready; while :; do sleep 0.01; done",
    ));
    engine.launch(script(lease(2, 1), "trap '' TERM; echo ready; while :; do sleep 0.01; done"));
    for number in [1, 2] {
        until("trap", || (engine.output(lease(number, 1), 0) == "ready\n").then_some(()));
    }
    engine.stop(lease(1, 1), Span::minutes(10));
    engine.ends(lease(1, 1), Exit::Failed, Some(3), None);
    let said = engine.output(lease(1, 1), 0);
    let deadline: i64 = said.lines().find_map(|line| line.strip_prefix("until ")).expect("a deadline").parse().expect("seconds");
    assert!(deadline > 1_700_000_000, "{deadline}");
    engine.stop(lease(2, 1), Span(50));
    engine.ends(lease(2, 1), Exit::Failed, None, Some(9));
}

#[test]
fn the_checkpoint_command_runs_before_the_signal_and_banks() {
    let mut engine = Engine::new();
    let mut launch = script(lease(1, 1), "trap 'echo signal; exit 0' TERM; echo ready; while :; do sleep 0.01; done");
    program(&mut launch).checkpoint_command =
        vec!["sh".into(), "-c".into(), "echo saving; echo saved > $STIPEND_CHECKPOINT_DIR/state".into()];
    engine.launch(launch);
    until("trap", || (engine.output(lease(1, 1), 0) == "ready\n").then_some(()));
    engine.stop(lease(1, 1), Span::minutes(10));
    // That it ended well inside the grace is for the core to judge.
    engine.ends(lease(1, 1), Exit::Completed, Some(0), None);
    // Some shells say that what they waited for was terminated.
    let said = engine.output(lease(1, 1), 0).replace("Terminated\n", "");
    assert_eq!(said, "ready\nsaving\nsignal\n");
    assert!(engine.seen.iter().any(|report| matches!(report, Report::Checkpointed { .. })));
    // The next attempt finds it, and restores before it goes on.
    let mut again = script(lease(1, 2), "echo going on");
    program(&mut again).restore_command = vec!["sh".into(), "-c".into(), "cat $STIPEND_CHECKPOINT_DIR/state".into()];
    engine.launch(again);
    engine.ends(lease(1, 2), Exit::Completed, Some(0), None);
    assert_eq!(engine.output(lease(1, 2), 0), "saved\ngoing on\n");
}

#[test]
fn a_checkpoint_command_that_hangs_leaves_time_for_the_signal() {
    let mut engine = Engine::new();
    let mut launch = script(lease(1, 1), "trap 'echo signal; exit 0' TERM; echo ready; while :; do sleep 0.01; done");
    program(&mut launch).checkpoint_command = vec!["sleep".into(), "1000".into()];
    engine.launch(launch);
    until("trap", || (engine.output(lease(1, 1), 0) == "ready\n").then_some(()));
    engine.stop(lease(1, 1), Span(8000));
    engine.ends(lease(1, 1), Exit::Completed, Some(0), None);
    let said = engine.output(lease(1, 1), 0);
    assert!(said.contains("signal"), "{said}");
    assert!(!engine.seen.iter().any(|report| matches!(report, Report::Checkpointed { .. })));
}

#[test]
fn a_failed_restore_fails_the_attempt_and_the_command_does_not_run() {
    let mut engine = Engine::new();
    let mut launch = script(lease(1, 2), "echo going on");
    program(&mut launch).restore_command = vec!["sh".into(), "-c".into(), "exit 5".into()];
    engine.launch(launch.clone());
    engine.ends(lease(1, 2), Exit::Failed, Some(5), None);
    assert_eq!(engine.output(lease(1, 2), 0), "");
    // The first attempt has nothing to restore.
    launch.lease = lease(2, 1);
    engine.launch(launch);
    engine.ends(lease(2, 1), Exit::Completed, Some(0), None);
}

#[test]
fn who_says_done_is_done_however_it_ends() {
    let mut engine = Engine::new();
    engine.launch(script(lease(1, 1), &format!("{}; echo told; exec sleep 1000", tell("done"))));
    until("told", || engine.output(lease(1, 1), 0).contains("told\n").then_some(()));
    engine.stop(lease(1, 1), Span::minutes(10));
    engine.ends(lease(1, 1), Exit::Done, None, Some(15));
}

#[test]
fn an_earlier_deadline_holds_and_a_later_one_does_not() {
    let mut engine = Engine::new();
    engine.launch(script(lease(1, 1), "trap '' TERM; echo ready; while :; do sleep 0.01; done"));
    until("trap", || (engine.output(lease(1, 1), 0) == "ready\n").then_some(()));
    engine.stop(lease(1, 1), Span::hours(10));
    let path = engine.folder(lease(1, 1)).join("deadline");
    let deadline = || std::fs::read_to_string(&path).ok()?.trim().parse::<i64>().ok();
    let first = until("deadline", deadline);
    engine.stop(lease(1, 1), Span::hours(20));
    engine.stop(lease(1, 1), Span::hours(5));
    let second = until("earlier deadline", || deadline().filter(|&second| second != first));
    assert!(second < first, "{second} is not before {first}");
    engine.stop(lease(1, 1), Span::ZERO);
    engine.ends(lease(1, 1), Exit::Failed, None, Some(9));
}

#[test]
fn what_is_stopped_before_it_began_never_runs() {
    let mut engine = Engine::new();
    let path = engine.data.join("ran").display().to_string();
    for number in 1..=8 {
        engine.launch(script(lease(number, 1), &format!("trap 'exit 1' TERM; echo {number} >> {path}; while :; do sleep 0.01; done")));
        engine.stop(lease(number, 1), Span::ZERO);
    }
    for number in 1..=8 {
        engine.ended(lease(number, 1));
    }
    let running = engine.reported().iter().filter(|report| matches!(report, Report::Running { .. })).count();
    let ran = std::fs::read_to_string(&path).unwrap_or_default().lines().count();
    assert!(ran <= running, "{ran} ran, of {running} that were said to");
    // What was never launched has ended, too: no process of it is left.
    engine.stop(lease(9, 1), Span::ZERO);
    engine.ends(lease(9, 1), Exit::Infrastructure, None, None);
}
