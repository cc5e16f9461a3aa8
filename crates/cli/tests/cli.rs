//! The real program, its whole output.

use std::path::Path;
use std::process::{Command, Stdio};

/// Runs `stipend` in the folder of these tests, and compares exit code, stdout and stderr with a snapshot.
fn check(args: &[&str], snapshot: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let output = stipend(args).current_dir(&folder).output().expect("the program starts");
    let text = format!(
        "$ stipend {}\nexit code {}\n--- stdout\n{}--- stderr\n{}",
        args.join(" "),
        output.status.code().expect("it ended by itself"),
        steady(&String::from_utf8_lossy(&output.stdout)),
        String::from_utf8_lossy(&output.stderr),
    );
    let expected = snapbox::Data::read_from(&folder.join("snapshots").join(snapshot), None);
    snapbox::assert_data_eq!(text, expected.raw());
}

fn stipend(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stipend"));
    command.args(args).env("COLUMNS", "80").stdin(Stdio::null());
    command
}

/// Without the one figure that differs from run to run.
fn steady(text: &str) -> String {
    let line = |line: &str| {
        let kept = ["wall seconds", "\"wall_seconds\":"].into_iter().find(|name| line.trim_start().starts_with(name));
        kept.map_or(line.to_owned(), |name| format!("{name} …"))
    };
    text.lines().map(|text| line(text) + "\n").collect()
}

#[test]
fn help() {
    check(&["--help"], "help.txt");
    check(&["sim", "--help"], "help-sim.txt");
    check(&["sim", "run", "--help"], "help-sim-run.txt");
    check(&["sim", "check", "--help"], "help-sim-check.txt");
    check(&["completions", "--help"], "help-completions.txt");
    check(&["man", "--help"], "help-man.txt");
}

#[test]
fn wrong_requests() {
    check(&[], "no-command.txt");
    check(&["sim", "run"], "no-scenario.txt");
    check(&["sim", "run", "nowhere.toml"], "no-such-scenario.txt");
    check(&["sim", "run", "nowhere.toml", "--policy", "lottery"], "no-such-policy.txt");
    check(&["sim", "run", "nowhere.toml", "--seed", "-1"], "no-such-seed.txt");
    check(&["sim", "check", "nowhere.jsonl"], "no-such-log.txt");
    check(&["completions", "powerfish"], "no-such-shell.txt");
    check(&["man", "sim", "rum"], "no-such-page.txt");
}

#[test]
fn manual_pages() {
    check(&["man", "sim", "check"], "man-sim-check.txt");
}

#[test]
fn completions_know_every_command() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = stipend(&["completions", shell]).output().expect("the program starts");
        let script = String::from_utf8(output.stdout).expect("a script is text");
        assert!(output.status.success() && script.contains("sim") && script.contains("policy"), "{shell}: {script}");
    }
}

#[test]
fn a_reader_who_leaves_early_is_no_error() {
    let mut program = stipend(&["completions", "bash"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
    drop(program.stdout.take());
    let output = program.wait_with_output().expect("it ends");
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(0), ""));
}
