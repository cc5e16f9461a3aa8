//! The local driver with real processes, which do what real ones do.

mod engine;
mod gangs;
mod hostile;
mod restarts;
mod stops;

use engine::{Engine, lease, program, script, tell};
use std::path::Path;
use stipend_core::event::Exit;
use stipend_server::driver::{Command, Driver, Member, Report};

/// Not a test: the supervisors of the others, each in a process of its own.
#[test]
fn supervise_entry() {
    if let Some(folder) = std::env::args().find(|argument| argument.contains("/leases/")) {
        // What a workload wants in its environment, libraries to be loaded too, no process of root's gets.
        assert_eq!(std::env::var_os("MINE"), None);
        stipend_server::driver::local::supervise(Path::new(&folder)).expect("supervised");
    }
}

/// Not a test: what a workload calls.
#[test]
fn tell_entry() {
    use stipend_server::driver::local::{checkpoint, done, input};
    for word in std::env::args() {
        match word.as_str() {
            "checkpoint" => checkpoint().expect("told"),
            "done" => done().expect("told"),
            "input" => input().expect("told"),
            _ => {}
        }
    }
}

#[test]
fn a_workload_runs_and_its_exit_code_and_output_are_known() {
    let mut engine = Engine::new();
    engine.launch(script(lease(1, 1), "echo out; echo err >&2; exit 0"));
    engine.launch(script(lease(2, 1), "exit 7"));
    engine.ends(lease(1, 1), Exit::Completed, Some(0), None);
    assert_eq!(engine.output(lease(1, 1), 0), "out\nerr\n");
    if !engine.seen.iter().any(|report| matches!(report, Report::Ended { lease: over, .. } if *over == lease(2, 1))) {
        engine.ends(lease(2, 1), Exit::Failed, Some(7), None);
    }
    let of_first = engine.seen.iter().filter(|report| !matches!(report, Report::Ended { .. }));
    let running = of_first.filter(|report| matches!(report, Report::Running { lease: running, .. } if *running == lease(1, 1)));
    assert_eq!(running.count(), 1);
}

#[test]
fn the_environment_says_who_and_where() {
    let mut engine = Engine::new();
    let mut launch = script(lease(5, 2), "env | sort");
    launch.members = vec![Member { node: "a".into(), gpus: vec![0, 5] }, Member { node: "b".into(), gpus: vec![1, 2] }];
    let set = &mut program(&mut launch).env;
    set.insert("MINE".into(), "yes".into());
    set.insert("STIPEND_ARRAY_INDEX".into(), "7".into());
    set.insert("STIPEND_LEASE_DIR".into(), "/elsewhere".into());
    // Nobody takes other GPUs than its own.
    set.insert("CUDA_VISIBLE_DEVICES".into(), "0,1,2,3,4,5,6,7".into());
    engine.launch(launch);
    engine.ends(lease(5, 2), Exit::Completed, Some(0), None);
    let first = engine.output(lease(5, 2), 0);
    for line in [
        "CUDA_VISIBLE_DEVICES=0,5",
        "STIPEND_RANK=0",
        "STIPEND_NODE=a",
        "MINE=yes",
        "STIPEND_ATTEMPT=2",
        "STIPEND_VIRTUAL=1",
        "STIPEND_ARRAY_INDEX=7",
    ] {
        assert!(first.lines().any(|own| own == line), "no {line} in {first}");
    }
    assert!(!first.contains("/elsewhere"), "{first}");
    let second = engine.output(lease(5, 2), 1);
    for line in
        ["CUDA_VISIBLE_DEVICES=1,2", "STIPEND_RANK=1", "STIPEND_NODE=b", "STIPEND_NODES=a,b", "STIPEND_MEMBERS=2", "STIPEND_WORKLOAD=5"]
    {
        assert!(second.lines().any(|own| own == line), "no {line} in {second}");
    }
}

#[test]
fn what_cannot_be_started_fails_at_once_and_says_why() {
    let mut engine = Engine::new();
    let mut launches: Vec<_> = (1..=3).map(|number| script(lease(number, 1), "")).collect();
    program(&mut launches[0]).command = vec!["no-such-program".into()];
    program(&mut launches[1]).workdir = "/no/such/folder".into();
    program(&mut launches[2]).command = vec!["/etc/passwd".into()];
    for (launch, why) in launches.into_iter().zip(["no such program", "/no/such/folder does not exist", "no permission"]) {
        let of = launch.lease;
        engine.launch(launch);
        engine.ends(of, Exit::Failed, None, None);
        assert!(engine.output(of, 0).contains(why), "{}", engine.output(of, 0));
    }
}

#[test]
fn commands_may_come_twice() {
    let mut engine = Engine::new();
    let launch = script(lease(1, 1), &format!("echo started; {}", tell("checkpoint")));
    for _ in 0..3 {
        engine.launch(launch.clone());
    }
    engine.ends(lease(1, 1), Exit::Completed, Some(0), None);
    engine.launch(launch.clone());
    engine.driver().command(Command::Forget { lease: lease(1, 1) });
    engine.driver().command(Command::Forget { lease: lease(1, 1) });
    // Even after it was forgotten it does not run again; its end is said again.
    engine.launch(launch);
    engine.ends(lease(1, 1), Exit::Completed, Some(0), None);
    assert!(engine.observe().is_empty());
    assert_eq!(engine.output(lease(1, 1), 0).lines().filter(|line| *line == "started").count(), 1);
    assert!(engine.seen.iter().any(|report| matches!(report, Report::Checkpointed { .. })));
}

#[test]
fn root_runs_a_workload_as_its_user() {
    if !nix::unistd::Uid::effective().is_root() {
        // Only root can.
        return;
    }
    let mut engine = Engine::new();
    // As the store makes it.
    std::fs::set_permissions(&engine.data, std::os::unix::fs::PermissionsExt::from_mode(0o700)).expect("set");
    engine.restart();
    let mut launch = script(
        lease(1, 2),
        &format!("id -un; id -Gn; echo $HOME $MINE; echo state > $STIPEND_CHECKPOINT_DIR/state; {}", tell("checkpoint")),
    );
    let own = program(&mut launch);
    own.run_as = Some("nobody".into());
    own.env.insert("MINE".into(), "yes".into());
    own.restore_command = vec!["sh".into(), "-c".into(), "echo as $(id -u)".into()];
    engine.launch(launch);
    engine.ends(lease(1, 2), Exit::Completed, Some(0), None);
    let said = engine.output(lease(1, 2), 0);
    let nobody = nix::unistd::User::from_name("nobody").expect("users").expect("nobody");
    // The process that becomes the member is this test program, which says that it runs one test.
    let lines: Vec<&str> = said.lines().filter(|line| !line.is_empty() && !line.starts_with("running")).collect();
    assert_eq!(lines[0], format!("as {}", nobody.uid), "{said}");
    assert_eq!(lines[1], "nobody", "{said}");
    assert!(!lines[2].contains("root"), "{said}");
    assert_eq!(lines[3], format!("{} yes", nobody.dir.display()));
    assert!(engine.seen.iter().any(|report| matches!(report, Report::Checkpointed { .. })), "{said}");
    let mut nowhere = script(lease(2, 1), "true");
    program(&mut nowhere).run_as = Some("no-such-user".into());
    engine.launch(nowhere);
    engine.ends(lease(2, 1), Exit::Failed, None, None);
    assert!(engine.output(lease(2, 1), 0).contains("no user no-such-user"));
    let mut missing = script(lease(3, 1), "true");
    program(&mut missing).run_as = Some("nobody".into());
    program(&mut missing).command = vec!["no-such-program".into()];
    engine.launch(missing);
    engine.ends(lease(3, 1), Exit::Failed, Some(127), None);
    assert!(engine.output(lease(3, 1), 0).contains("no such program"));
}

#[test]
fn this_machine_is_a_node_whatever_it_has() {
    let (node, why) = stipend_server::driver::local::discover("all");
    assert!(!node.name.is_empty() && node.cpus > 0 && node.memory > 0, "{node:?}");
    assert_eq!(node.gpus == 0, why.is_some());
}

#[test]
fn limits_that_the_machine_cannot_hold_keep_nobody_from_running() {
    let mut engine = Engine::new();
    let mut launch = script(lease(1, 1), "echo within; cat /proc/self/cgroup");
    (launch.cpus_per_member, launch.memory_per_member) = (1, 256 << 20);
    engine.launch(launch);
    engine.ends(lease(1, 1), Exit::Completed, Some(0), None);
    assert!(engine.output(lease(1, 1), 0).starts_with("within\n"));
}
