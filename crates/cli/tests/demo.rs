//! The demonstration, as whoever tries the program first sees it.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

fn demo() -> (Child, PathBuf) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stipend"));
    let child = command.arg("demo").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
    let folder = std::env::temp_dir().join(format!("stipend-demo-{}", child.id()));
    (child, folder)
}

#[test]
fn the_demo_shows_what_it_says_and_leaves_nothing_behind() {
    let (child, folder) = demo();
    let output = child.wait_with_output().expect("it ends");
    let said = String::from_utf8(output.stdout).expect("text");
    assert_eq!(output.status.code(), Some(0), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let shown = [
        "is preempted for w",
        "allocated work takes unallocated",
        "below its share (lab/vision",
        "goes on from step ",
        " is preempted as gpu-2 drains",
        "node gpu-2 is ready",
        "== The end",
        "Nothing is left of it",
    ];
    for part in shown {
        assert!(said.split_whitespace().collect::<Vec<_>>().join(" ").contains(part), "{part} is missing:\n{said}");
    }
    assert!(!folder.exists(), "{} is left", folder.display());
}

#[test]
fn an_interrupted_demo_leaves_nothing_behind() {
    let (mut child, folder) = demo();
    let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    let started = lines.by_ref().any(|line| line.is_ok_and(|line| line.contains(" starts on gpu-")));
    assert!(started && folder.exists());
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).expect("it is ours");
    // Read on: somebody who does not would stop it.
    lines.for_each(drop);
    let output = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && said.contains("interrupted"), "{said}");
    assert!(!folder.exists(), "{} is left", folder.display());
}
