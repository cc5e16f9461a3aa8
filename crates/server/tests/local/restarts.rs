//! The daemon, its supervisors or the machine go away.

use crate::engine::{Engine, kill, lease, lives, script, until};
use nix::sys::signal::Signal;
use stipend_core::event::Exit;
use stipend_core::quantity::Span;
use stipend_server::driver::{Command, Driver, Report};

#[test]
fn workloads_outlive_the_daemon_and_lose_nothing() {
    let mut engine = Engine::new();
    let wait = |name: &str| format!("echo begin; while [ ! -e {}/{name} ]; do sleep 0.01; done; echo end; exit 4", engine.data.display());
    let (first, second) = (wait("one"), wait("two"));
    engine.launch(script(lease(1, 1), &first));
    engine.launch(script(lease(2, 1), &second));
    engine.running(lease(2, 1));
    engine.driver = None;
    std::fs::write(engine.data.join("one"), "").expect("written");
    until("end", || std::fs::read_to_string(engine.folder(lease(1, 1)).join("status")).ok().filter(|text| text.contains("ended")));
    engine.restart();
    let found = engine.observe();
    assert_eq!(found.len(), 2);
    let end = found[0].end.expect("it ended meanwhile");
    assert_eq!((end.exit, end.code), (Exit::Failed, Some(4)));
    assert!(found[1].end.is_none() && found[1].running_since.is_some());
    std::fs::write(engine.data.join("two"), "").expect("written");
    engine.ends(lease(2, 1), Exit::Failed, Some(4), None);
    assert_eq!(engine.output(lease(2, 1), 0), "begin\nend\n");
}

#[test]
fn a_dead_supervisor_leaves_nothing_behind() {
    let mut engine = Engine::new();
    let path = engine.data.display().to_string();
    engine.launch(script(
        lease(1, 1),
        &format!("(setsid sh -c 'echo $$ > {path}/away; exec sleep 1000' &) ; echo $$ > {path}/main; exec sleep 1000"),
    ));
    let (away, main) = (engine.file("away"), engine.file("main"));
    kill(engine.supervisor(lease(1, 1)), Signal::SIGKILL);
    engine.ends(lease(1, 1), Exit::Infrastructure, None, None);
    assert!(!lives(&away) && !lives(&main));
}

#[test]
fn a_supervisor_that_died_while_nobody_looked_is_found_out_later() {
    let mut engine = Engine::new();
    let path = engine.data.display().to_string();
    engine.launch(script(lease(1, 1), &format!("echo $$ > {path}/main; exec sleep 1000")));
    let main = engine.file("main");
    engine.driver = None;
    kill(engine.supervisor(lease(1, 1)), Signal::SIGKILL);
    assert!(lives(&main));
    engine.restart();
    engine.ends(lease(1, 1), Exit::Infrastructure, None, None);
    assert!(!lives(&main));
}

#[test]
fn what_runs_in_a_folder_that_was_taken_away_is_ended() {
    let mut engine = Engine::new();
    let path = engine.data.display().to_string();
    engine.launch(script(lease(1, 1), &format!("echo $$ > {path}/one; exec sleep 1000")));
    let one = engine.file("one");
    std::fs::remove_dir_all(engine.folder(lease(1, 1))).expect("it is there");
    engine.ends(lease(1, 1), Exit::Infrastructure, None, None);
    assert!(!lives(&one));
    // Also where nobody looks at that moment: its next attempt would run beside it.
    engine.launch(script(lease(2, 1), &format!("echo $$ > {path}/two; exec sleep 1000")));
    let two = engine.file("two");
    engine.driver = None;
    std::fs::remove_dir_all(engine.folder(lease(2, 1))).expect("it is there");
    engine.restart();
    assert!(engine.observe().is_empty() && !lives(&two));
}

#[test]
fn a_process_that_only_has_the_same_number_is_left_alone() {
    let mut engine = Engine::new();
    engine.launch(script(lease(1, 1), "exec sleep 1000"));
    engine.running(lease(1, 1));
    engine.driver = None;
    kill(engine.supervisor(lease(1, 1)), Signal::SIGKILL);
    // As if the ids had been given to others since: this test has the id of a member, but not its start.
    let path = engine.folder(lease(1, 1)).join("status");
    let me = std::process::id();
    let status = std::fs::read_to_string(&path).expect("a status");
    let line = format!("{{\"at\":1,\"event\":\"group\",\"member\":0,\"pid\":{me},\"start\":1}}\n");
    std::fs::write(&path, status + &line).expect("written");
    engine.restart();
    engine.ends(lease(1, 1), Exit::Infrastructure, None, None);
}

#[test]
fn when_the_machine_goes_down_it_is_not_the_workload_that_failed() {
    let mut engine = Engine::new();
    let loops = "while :; do sleep 0.01; done";
    engine.launch(script(lease(1, 1), &format!("trap 'echo bye; exit 0' TERM; echo ready; {loops}")));
    engine.launch(script(lease(2, 1), "echo $$; exec sleep 1000"));
    until("trap", || (engine.output(lease(1, 1), 0) == "ready\n").then_some(()));
    kill(engine.supervisor(lease(1, 1)), Signal::SIGTERM);
    engine.ends(lease(1, 1), Exit::Infrastructure, Some(0), None);
    assert!(engine.output(lease(1, 1), 0).ends_with("bye\n"));
    // As an init system does: everybody at once, the member first.
    let main: i32 = until("process", || engine.output(lease(2, 1), 0).trim().parse().ok());
    let supervisor = engine.supervisor(lease(2, 1));
    kill(main, Signal::SIGTERM);
    kill(supervisor, Signal::SIGTERM);
    engine.ends(lease(2, 1), Exit::Infrastructure, None, Some(15));
}

#[test]
fn another_boot_left_nothing() {
    let mut engine = Engine::new();
    engine.launch(script(lease(1, 1), "exec sleep 1000"));
    engine.running(lease(1, 1));
    engine.driver = None;
    kill(engine.supervisor(lease(1, 1)), Signal::SIGKILL);
    let path = engine.folder(lease(1, 1)).join("status");
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("a boot");
    let status = std::fs::read_to_string(&path).expect("a status");
    std::fs::write(&path, status.replace(boot.trim(), "another")).expect("written");
    let main: serde_json::Value = serde_json::from_str(status.lines().nth(1).expect("a line")).expect("JSON");
    kill(i32::try_from(main["pid"].as_i64().expect("a process")).expect("small"), Signal::SIGKILL);
    engine.restart();
    engine.ends(lease(1, 1), Exit::Infrastructure, None, None);
    let found = engine.observe();
    let end = found[0].end.expect("it is over");
    assert!(end.at.0 > 0 && found[0].running_since.is_some_and(|since| since <= end.at));
}

#[test]
fn orders_work_while_the_daemon_comes_and_goes() {
    let mut engine = Engine::new();
    let count = 12;
    let path = engine.data.join("runs").display().to_string();
    for number in 1..=count {
        let launch = script(lease(number, 1), &format!("echo {number} >> {path}; sleep 0.{number:02}; exit {number}"));
        for _ in 0..2 {
            engine.launch(launch.clone());
            engine.restart();
        }
        engine.launch(launch);
    }
    engine.restart();
    for number in 1..=count {
        let end = engine.ended(lease(number, 1));
        assert_eq!((end.exit, end.code), (Exit::Failed, Some(i32::try_from(number).expect("small"))));
    }
    let mut runs: Vec<u32> = std::fs::read_to_string(&path).expect("runs").lines().map(|line| line.parse().expect("a number")).collect();
    runs.sort_unstable();
    assert_eq!(runs, (1..=count).collect::<Vec<_>>(), "each ran once");
}

#[test]
fn an_older_epochs_lease_is_ended_before_the_new_one_starts() {
    let mut engine = Engine::new();
    let path = engine.data.display().to_string();
    engine.launch(script(lease(1, 1), &format!("echo $$ > {path}/old; trap '' TERM; while :; do sleep 0.01; done")));
    let old = engine.file("old");
    let mut launch = script(lease(1, 1), &format!("kill -0 {} 2>/dev/null && echo both; echo new", old.trim()));
    launch.epoch = 2;
    engine.launch(launch.clone());
    engine.ends(lease(1, 1), Exit::Failed, None, Some(9));
    engine.ends(lease(1, 1), Exit::Completed, Some(0), None);
    assert_eq!(engine.output(lease(1, 1), 0), "new\n");
    // The older one is not carried out any more.
    launch.epoch = 1;
    engine.launch(launch.clone());
    engine.driver().command(Command::Forget { lease: lease(1, 1) });
    assert!(engine.observe().is_empty());
    launch.epoch = 3;
    engine.launch(launch);
    engine.running(lease(1, 1));
    engine.end(lease(1, 1));
}

#[test]
fn the_output_of_what_is_over_has_a_bound() {
    let mut engine = Engine::new();
    engine.restart_with(|settings| settings.kept_max = 3);
    for number in 1..=5 {
        engine.launch(script(lease(number, 1), "echo said"));
        engine.end(lease(number, 1));
        engine.driver().command(Command::Forget { lease: lease(number, 1) });
    }
    assert!(engine.observe().is_empty());
    let kept: Vec<bool> = (1..=5).map(|number| engine.output(lease(number, 1), 0) == "said\n").collect();
    assert_eq!(kept, [false, false, true, true, true]);
    engine.restart_with(|settings| settings.kept_max = 1);
    let only_the_last = || (1..=5).all(|number| (engine.output(lease(number, 1), 0) == "said\n") == (number == 5)).then_some(());
    until("the bound", only_the_last);
}

#[test]
fn a_machine_that_cannot_start_a_supervisor_is_drained() {
    let mut engine = Engine::new();
    engine.restart_with(|settings| settings.supervisor = vec!["/no/such/program".into()]);
    engine.launch(script(lease(1, 1), "echo said"));
    engine.wait("fault", |report| matches!(report, Report::NodeFault { node, .. } if node == "a").then_some(()));
    engine.ends(lease(1, 1), Exit::Infrastructure, None, None);
    // Also one that starts and does nothing.
    engine.restart_with(|settings| settings.supervisor = vec!["true".into()]);
    engine.launch(script(lease(2, 1), "echo said"));
    engine.wait("fault", |report| matches!(report, Report::NodeFault { node, .. } if node == "a").then_some(()));
    engine.ends(lease(2, 1), Exit::Infrastructure, None, None);
    assert!(engine.observe().is_empty());
    engine.stop(lease(2, 1), Span::ZERO);
    engine.ends(lease(2, 1), Exit::Infrastructure, None, None);
}

#[test]
fn a_node_is_repaired_checked_and_comes_back_or_stays_out() {
    let mut engine = Engine::new();
    let repair = |engine: &mut Engine, repair: &str, health: &str| {
        let command = |script: &str| ["sh", "-c", script].map(str::to_string).to_vec();
        engine.restart_with(|settings| (settings.repair_command, settings.health_command) = (command(repair), command(health)));
        engine.driver().command(Command::Repair { node: "a".into(), reason: "Xid 79".into() });
        engine.wait("repair", |report| match report {
            Report::NodeHealthy { node } => Some(Ok(node.clone())),
            Report::RepairFailed { reason, .. } => Some(Err(reason.clone())),
            _ => None,
        })
    };
    assert_eq!(repair(&mut engine, "test \"$STIPEND_NODE $STIPEND_REASON\" = 'a Xid 79'", "true"), Ok("a".into()));
    let failed = repair(&mut engine, "echo one; echo it is broken >&2; exit 3", "true").expect_err("it fails");
    assert!(failed.contains("repair command") && failed.ends_with("it is broken"), "{failed}");
    let failed = repair(&mut engine, "true", "exit 1").expect_err("it fails");
    assert!(failed.contains("health check"), "{failed}");
}

#[test]
fn what_the_daemon_before_did_not_come_to_waits_for_an_order() {
    let mut engine = Engine::new();
    // The daemon dies after it made the folders, before it started anybody who would begin.
    engine.restart_with(|settings| settings.supervisor = vec!["true".into()]);
    for number in [1, 2] {
        engine.launch(script(lease(number, 1), "echo ran"));
    }
    engine.restart();
    let found = engine.observe();
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found.iter().all(|lease| lease.running_since.is_none() && lease.end.is_none()), "{found:?}");
    engine.stop(lease(1, 1), Span::minutes(10));
    engine.ends(lease(1, 1), Exit::Failed, None, None);
    assert_eq!(engine.output(lease(1, 1), 0), "");
    engine.launch(script(lease(2, 1), "echo ran"));
    engine.ends(lease(2, 1), Exit::Completed, Some(0), None);
    assert_eq!(engine.output(lease(2, 1), 0), "ran\n");
}

#[test]
fn a_grace_goes_on_while_the_daemon_is_away() {
    let mut engine = Engine::new();
    let go = engine.data.join("go").display().to_string();
    let text = format!("trap 'while [ ! -e {go} ]; do sleep 0.01; done; exit 3' TERM; echo ready; while :; do sleep 0.01; done");
    engine.launch(script(lease(1, 1), &text));
    until("trap", || (engine.output(lease(1, 1), 0) == "ready\n").then_some(()));
    assert!(!engine.observe()[0].is_stopping);
    engine.stop(lease(1, 1), Span::hours(10));
    engine.restart();
    let found = engine.observe();
    assert!(found[0].is_stopping && found[0].end.is_none());
    std::fs::write(engine.data.join("go"), "").expect("written");
    engine.ends(lease(1, 1), Exit::Failed, Some(3), None);
}
