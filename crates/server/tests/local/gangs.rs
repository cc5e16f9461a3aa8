//! Gangs: several members, one lease.

use crate::engine::{Engine, lease, program, script, until};
use stipend_core::event::Exit;
use stipend_core::id::LeaseId;
use stipend_server::driver::{Launch, Member, Report};

fn gang(lease: LeaseId, text: &str) -> Launch {
    let mut launch = script(lease, text);
    launch.members = ["a", "b"].map(|node| Member { node: node.into(), gpus: vec![0] }).to_vec();
    launch
}

#[test]
fn members_find_each_other_and_are_reported_one_by_one() {
    let mut engine = Engine::new();
    let path = engine.data.display().to_string();
    let meet = format!("echo here > {path}/$STIPEND_RANK; while [ ! -e {path}/0 ] || [ ! -e {path}/1 ]; do sleep 0.01; done; echo met");
    engine.launch(gang(lease(1, 1), &meet));
    engine.ends(lease(1, 1), Exit::Completed, Some(0), None);
    assert_eq!((engine.output(lease(1, 1), 0), engine.output(lease(1, 1), 1)), ("met\n".into(), "met\n".into()));
    let told: Vec<String> = engine
        .seen
        .iter()
        .filter_map(|report| match report {
            Report::MemberRunning { node, .. } => Some(node.clone()),
            Report::Running { .. } => Some("all".into()),
            _ => None,
        })
        .collect();
    assert_eq!(told, ["a", "b", "all"]);
}

#[test]
fn one_member_that_fails_ends_the_gang_with_its_code() {
    let mut engine = Engine::new();
    engine.launch(gang(lease(1, 1), "[ $STIPEND_RANK = 1 ] && exit 9; trap 'echo stopped; exit 0' TERM; while :; do sleep 0.01; done"));
    engine.ends(lease(1, 1), Exit::Failed, Some(9), None);
}

#[test]
fn one_member_that_is_finished_waits_for_the_others() {
    let mut engine = Engine::new();
    let path = engine.data.display().to_string();
    engine.launch(gang(
        lease(1, 1),
        &format!("[ $STIPEND_RANK = 0 ] && exit 0; echo up; while [ ! -e {path}/go ]; do sleep 0.01; done; exit 0"),
    ));
    until("second", || (engine.output(lease(1, 1), 1) == "up\n").then_some(()));
    assert!(engine.observe()[0].end.is_none());
    std::fs::write(engine.data.join("go"), "").expect("written");
    engine.ends(lease(1, 1), Exit::Completed, Some(0), None);
}

#[test]
fn a_gang_that_cannot_start_starts_no_member() {
    let mut engine = Engine::new();
    let mut launch = gang(lease(1, 1), "");
    program(&mut launch).command = vec!["no-such-program".into()];
    engine.launch(launch);
    engine.ends(lease(1, 1), Exit::Failed, None, None);
    assert!(!engine.seen.iter().any(|report| matches!(report, Report::Running { .. } | Report::MemberRunning { .. })));
}
