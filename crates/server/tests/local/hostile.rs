//! Workloads that do not behave: whatever they do, when their lease has ended no process of theirs is left.

use crate::engine::{Engine, lease, lives, script, until};
use stipend_core::event::Exit;
use stipend_core::quantity::Span;

/// Starts a daemon that leaves group, session and parent behind, and writes its process id into a file.
fn daemon(path: &str, prelude: &str) -> String {
    format!(
        "(setsid sh -c \"({prelude} echo \\$\\$ > {path}.new; sh -c 'echo \\$PPID > {path}.new'; mv {path}.new {path}; while :; do sleep 0.05; done) &\" &)"
    )
}

#[test]
fn a_daemon_that_was_left_behind_goes_when_the_command_ends() {
    let mut engine = Engine::new();
    let path = engine.data.join("away").display().to_string();
    engine.launch(script(lease(1, 1), &format!("{}; while [ ! -e {path} ]; do sleep 0.01; done; exit 0", daemon(&path, ""))));
    engine.ends(lease(1, 1), Exit::Completed, Some(0), None);
    assert!(!lives(&engine.file("away")));
}

#[test]
fn a_daemon_that_ignores_the_signal_goes_when_the_command_has_gone() {
    let mut engine = Engine::new();
    let path = engine.data.join("away").display().to_string();
    engine.launch(script(lease(1, 1), &format!("{}; exec sleep 1000", daemon(&path, "trap '' TERM;"))));
    let away = engine.file("away");
    // Its own grace would be long: it left the group that gets the signal, so it is not waited for.
    engine.stop(lease(1, 1), Span::hours(10));
    engine.ends(lease(1, 1), Exit::Failed, None, Some(15));
    assert!(!lives(&away));
}

#[test]
fn a_child_in_the_group_has_the_grace_though_its_parent_is_gone() {
    let mut engine = Engine::new();
    let path = engine.data.join("go").display().to_string();
    let child =
        format!("trap 'while [ ! -e {path} ]; do sleep 0.01; done; echo saved; exit 0' TERM; echo up; while :; do sleep 0.01; done");
    engine.launch(script(lease(1, 1), &format!("sh -c \"{child}\" & sleep 1000")));
    until("child", || (engine.output(lease(1, 1), 0) == "up\n").then_some(()));
    engine.stop(lease(1, 1), Span::hours(10));
    until("stopping", || std::fs::read_to_string(engine.folder(lease(1, 1)).join("status")).ok().filter(|text| text.contains("stopping")));
    assert!(engine.observe()[0].end.is_none());
    std::fs::write(&path, "").expect("written");
    engine.ends(lease(1, 1), Exit::Failed, None, Some(15));
    assert!(engine.output(lease(1, 1), 0).contains("saved"));
}

#[test]
fn one_that_forks_on_and_on_is_ended_whole() {
    let mut engine = Engine::new();
    let path = engine.data.display().to_string();
    // Each generation starts the next in a session of its own and goes; at most a few live at a time.
    let bomb = format!("{path}/bomb");
    std::fs::write(&bomb, "#!/bin/sh\ntrap '' TERM\n[ -e $1/stop ] && exit 0\necho >> $1/generations\nsetsid $0 $1 &\nexit 0\n")
        .expect("written");
    std::fs::set_permissions(&bomb, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("set");
    engine.launch(script(lease(1, 1), &format!("{bomb} {path} & {bomb} {path} & exec sleep 1000")));
    let generations = || std::fs::metadata(format!("{path}/generations")).map_or(0, |file| file.len());
    until("generations", || (generations() > 50).then_some(()));
    engine.stop(lease(1, 1), Span::ZERO);
    engine.ended(lease(1, 1));
    let then = generations();
    std::thread::sleep(std::time::Duration::from_millis(100));
    assert_eq!(generations(), then, "somebody is left");
    std::fs::write(format!("{path}/stop"), "").expect("written");
}

#[test]
fn stopped_processes_end_too() {
    let mut engine = Engine::new();
    engine.launch(script(lease(1, 1), "echo $$; kill -STOP $$"));
    let main = until("process", || Some(engine.output(lease(1, 1), 0)).filter(|text| text.ends_with('\n')));
    engine.stop(lease(1, 1), Span(100));
    engine.ended(lease(1, 1));
    assert!(!lives(&main));
}

#[test]
fn output_without_end_is_bounded_and_does_not_stop_the_workload() {
    let mut engine = Engine::new();
    engine.restart_with(|settings| settings.output_max = 300 << 10);
    engine.launch(script(lease(1, 1), "echo the beginning; yes | head -c 5000000; echo the end"));
    engine.ends(lease(1, 1), Exit::Completed, Some(0), None);
    let files: Vec<_> = std::fs::read_dir(engine.folder(lease(1, 1))).expect("a folder").map(|entry| entry.expect("an entry")).collect();
    let logs = files.iter().filter(|file| file.file_name().to_string_lossy().starts_with("member-0"));
    let bytes: u64 = logs.map(|file| file.metadata().expect("a file").len()).sum();
    assert!((200 << 10..600 << 10).contains(&bytes), "{bytes}");
    assert!(engine.output(lease(1, 1), 0).ends_with("the end\n"));
    let first = std::fs::read_to_string(engine.folder(lease(1, 1)).join("member-0.first.log")).expect("the beginning");
    assert!(first.starts_with("the beginning\n"));
    assert!(engine.output(lease(1, 1), 0).contains("bytes between them are gone"));
}

#[test]
fn a_silent_reader_and_a_closed_output_do_no_harm() {
    let mut engine = Engine::new();
    engine.launch(script(lease(1, 1), "read line && exit 1; exec >&- 2>&-; sleep 0.05; exit 6"));
    engine.ends(lease(1, 1), Exit::Failed, Some(6), None);
}

#[test]
fn a_workload_that_floods_its_supervisor_can_be_stopped() {
    let mut engine = Engine::new();
    engine.launch(script(lease(1, 1), "trap '' TERM; echo up; yes nonsense > $STIPEND_LEASE_DIR/control"));
    until("up", || (engine.output(lease(1, 1), 0) == "up\n").then_some(()));
    engine.stop(lease(1, 1), Span(50));
    engine.ends(lease(1, 1), Exit::Failed, None, Some(9));
}
