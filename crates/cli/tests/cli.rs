//! The real program, its whole output.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Runs `stipend` in the folder of these tests, and compares exit code, stdout and stderr with a snapshot.
fn check(args: &[&str], snapshot: &str) {
    check_in(&tests(), args, snapshot);
}

fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

/// The same in another folder.
fn check_in(folder: &Path, args: &[&str], snapshot: &str) {
    let output = stipend(args).current_dir(folder).output().expect("the program starts");
    let text = format!(
        "$ stipend {}\nexit code {}\n--- stdout\n{}--- stderr\n{}",
        args.join(" "),
        output.status.code().expect("it ended by itself"),
        steady(&String::from_utf8_lossy(&output.stdout)),
        String::from_utf8_lossy(&output.stderr),
    );
    let expected = snapbox::Data::read_from(&tests().join("snapshots").join(snapshot), None);
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
        kept.map_or(line.to_owned(), |name| format!("{}{name} …", &line[..line.len() - line.trim_start().len()]))
    };
    text.lines().map(|text| line(text) + "\n").collect()
}

#[test]
fn help() {
    check(&["--help"], "help.txt");
    check(&["sim", "--help"], "help-sim.txt");
    check(&["sim", "run", "--help"], "help-sim-run.txt");
    check(&["sim", "sweep", "--help"], "help-sim-sweep.txt");
    check(&["sim", "explain", "--help"], "help-sim-explain.txt");
    check(&["sim", "check", "--help"], "help-sim-check.txt");
    check(&["sim", "trace", "--help"], "help-sim-trace.txt");
    for command in [
        "analyze", "demo", "serve", "submit", "run", "queue", "show", "explain", "logs", "wait", "cancel", "events", "usage", "whatif",
        "backup",
    ] {
        check(&[command, "--help"], &format!("help-{command}.txt"));
    }
    for (noun, verb) in [
        ("budget", ""),
        ("budget", "set"),
        ("budget", "apply"),
        ("budget", "tree"),
        ("node", "drain"),
        ("token", "create"),
        ("store", "restore"),
    ] {
        let words: Vec<&str> = [noun, verb, "--help"].into_iter().filter(|word| !word.is_empty()).collect();
        check(&words, &format!("help-{}.txt", words[..words.len() - 1].join("-")));
    }
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
    check(&["sim", "trace", "nowhere.csv"], "no-such-trace.txt");
    check(&["sim", "trace", "tiny.toml"], "trace-that-is-none.txt");
    check(&["analyze", "nowhere.txt"], "analyze-no-such-log.txt");
    check(&["analyze", "sacct.txt", "--what-if", "fifo"], "analyze-no-nodes.txt");
    check(&["analyze", "sacct.txt", "--what-if", "lottery", "--nodes", "2"], "analyze-no-such-order.txt");
    check(&["analyze", "--server", "unix:/nowhere/stipend.sock"], "analyze-no-daemon.txt");
    check(&["submit"], "submit-no-budget.txt");
    check(&["submit", "-b", "lab"], "submit-no-command.txt");
    check(&["submit", "-b", "lab", "--min-runtime", "soon", "--", "true"], "submit-no-time.txt");
    check(&["submit", "-b", "lab", "--env", "STIPEND_IS_NOT_SET", "--", "true"], "submit-no-variable.txt");
    check(&["submit", "--file", "submit/misspelt.toml"], "submit-misspelt-toml.txt");
    check(&["submit", "--file", "submit/misspelt.yaml"], "submit-misspelt-yaml.txt");
    check(&["submit", "--file", "submit/wrong.sbatch"], "submit-wrong-script.txt");
    check(&["submit", "--file", "jobs.csv"], "submit-no-spec.txt");
    check(&["show", "x12"], "show-no-number.txt");
    check(&["budget", "set", "lab", "--share", "much"], "budget-set-no-share.txt");
    check(&["queue", "--server", "unix:/nowhere/stipend.sock"], "no-daemon.txt");
    check(&["queue", "--server", "localhost"], "no-address.txt");
    check(&["checkpoint"], "checkpoint-outside.txt");
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
        assert!(output.status.success() && script.contains("STIPEND_COMPLETE"), "{shell}: {script}");
    }
    let complete = |words: &[&str]| {
        let index = words.len().to_string();
        let mut program = stipend(&["--", "stipend"]);
        program.args(words).env("STIPEND_COMPLETE", "bash").env("_CLAP_COMPLETE_INDEX", index).env("_CLAP_IFS", "\n");
        // Nobody answers there: the words of the program itself are known anyhow.
        let output = program.env("STIPEND_SERVER", "unix:/nowhere/stipend.sock").output().expect("the program starts");
        String::from_utf8(output.stdout).expect("words are text").split_whitespace().map(str::to_owned).collect::<Vec<String>>()
    };
    assert_eq!(complete(&["ev"]), ["events"]);
    assert_eq!(complete(&["sim", "sw"]), ["sweep"]);
    assert_eq!(complete(&["sim", "run", "--poli"]), ["--policy"]);
    assert_eq!(complete(&["submit", "--on-preempt", "res"]), ["resume", "restart"]);
    assert_eq!(complete(&["submit", "--budget", "l"]), Vec::<String>::new());
}

#[test]
fn what_a_batch_script_is_here() {
    check(&["submit", "--file", "submit/job.sbatch", "--dry-run", "--", "--lr", "3e-4"], "submit-script.txt");
}

#[test]
fn specs_and_flags_say_the_same() {
    let flags = "-b lab/nlp -n olmo -g 4 -m 2 --min-runtime 30m --on-preempt resume --time-limit 2h --priority 5 --after 3,w4 --array 1-10%2 --pool h100,a100 --feature nvlink --same-block --checkpoint-every 10m --workdir /scratch -e SEED=1 --dry-run -- python train.py";
    let submission = |args: &[&str]| {
        let output = stipend(args).current_dir(tests()).output().expect("the program starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("JSON is text")
    };
    let flags: Vec<&str> = std::iter::once("submit").chain(flags.split(' ')).collect();
    let said = submission(&flags);
    assert_eq!(submission(&["submit", "--file", "submit/job.toml", "--dry-run"]), said);
    assert_eq!(submission(&["submit", "--file", "submit/job.yaml", "--dry-run"]), said);
    let over = submission(&["submit", "--file", "submit/job.toml", "--gpus", "8", "--dry-run", "--", "true"]);
    assert_eq!(over, said.replace("\"gpus\": 4", "\"gpus\": 8").replace("\n    \"python\",\n    \"train.py\"\n", "\n    \"true\"\n"));
}

#[test]
fn a_spec_that_is_far_too_large() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let file = std::fs::File::create(folder.join("large.toml")).expect("the folder takes files");
    file.set_len(50 << 20).expect("there is room");
    check_in(folder, &["submit", "--file", "large.toml"], "submit-large.txt");
}

#[test]
fn a_reader_who_leaves_early_is_no_error() {
    let mut program = stipend(&["completions", "bash"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
    drop(program.stdout.take());
    let output = program.wait_with_output().expect("it ends");
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(0), ""));
}

#[test]
fn a_tiny_scenario_under_every_policy() {
    check(&["sim", "run", "tiny.toml", "--budgets"], "run-table.txt");
    check(&["sim", "run", "tiny.toml", "--policy", "easy,fifo", "--seed", "1,2", "--policy", "easy"], "run-seeds.txt");
    check(&["sim", "run", "tiny.toml", "--policy", "budget", "--format", "json"], "run-json.txt");
}

#[test]
fn scenarios_that_cannot_be_run() {
    check(&["sim", "run", "tiny.toml", "--set", "nodes=0"], "run-no-nodes.txt");
    check(&["sim", "run", "tiny.toml", "--set", "nodse=3"], "run-no-such-field.txt");
    check(&["sim", "run", "tiny.toml", "--events", "nowhere/log.jsonl"], "run-no-such-folder.txt");
    check(&["sim", "run", "tiny.toml", "--events", "-"], "run-events-to-stdout.txt");
    check(&["sim", "run", "tiny.toml", "--set", "nodes=many"], "run-no-number.txt");
}

#[test]
fn what_is_in_a_trace() {
    check(&["sim", "trace", "jobs.csv"], "trace-table.txt");
    check(&["sim", "trace", "jobs.csv", "--format", "json"], "trace-json.txt");
    check(&["sim", "trace", "jobs.swf", "--procs-per-gpu", "4"], "trace-swf.txt");
    check(&["sim", "trace", "pods.csv"], "trace-openb.txt");
}

#[test]
fn what_became_of_a_logs_jobs() {
    check(&["analyze", "sacct.txt"], "analyze-table.txt");
    check(&["analyze", "sacct.txt", "--format", "json"], "analyze-json.txt");
    check(&["analyze", "sacct.txt", "--what-if", "shortest-contract", "--nodes", "3"], "analyze-what-if.txt");
    check(&["analyze", "sacct.txt", "--what-if", "completion", "--nodes", "3"], "analyze-completion.txt");
    check(&["analyze", "jobs.csv"], "analyze-csv.txt");
    check(&["analyze", "jobs.swf"], "analyze-swf.txt");
    check(&["analyze", "pods.csv"], "analyze-openb.txt");
}

/// A log of ours says the same wherever it is read.
#[test]
fn an_event_log_is_a_log_of_jobs() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let log = folder.join("past.jsonl").to_str().expect("a path in UTF-8").to_owned();
    let run = stipend(&["sim", "run", "tiny.toml", "--policy", "budget", "--events", &log]).current_dir(tests()).output();
    assert!(run.expect("the program starts").status.success());
    check_in(folder, &["analyze", "past.jsonl"], "analyze-events.txt");
    check_in(folder, &["sim", "trace", "past.jsonl"], "trace-events.txt");
    let root = tests().join("../../..");
    let replay =
        ["sim", "run", "scenarios/trace.toml", "--set", "nodes=3", "--set", "measure=1d", "--policy", "budget", "--format", "json"];
    let output = stipend(&[replay.as_slice(), &["--set", &format!("trace={log}")]].concat()).current_dir(root).output();
    let output = output.expect("the program starts");
    let result = String::from_utf8(output.stdout).expect("JSON is text");
    assert!(output.status.success() && result.contains("\"completed\": "), "{result}{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_report_of_an_analysis_is_one_page_that_asks_for_nothing() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let page = folder.join("analysis.html");
    let report = page.to_str().expect("a path in UTF-8");
    let output = stipend(&["analyze", "sacct.txt", "--report", report]).current_dir(tests()).output().expect("the program starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let page = std::fs::read_to_string(&page).expect("it was written");
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n") && page.contains("train_lr_seed"));
    let asks = ["http:", "https:", "src=", "href=", "@import", "url(", "<script"];
    assert!(asks.iter().all(|what| !page.contains(what)), "it opens without a network");
}

/// The guide's own commands, on a log that has the columns it asks for.
#[test]
fn the_guide_to_last_months_jobs() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("guide");
    std::fs::create_dir_all(&folder).expect("a folder");
    let log = std::fs::read_to_string(tests().join("sacct.txt")).expect("the log");
    std::fs::write(folder.join("sacct.txt"), &log).expect("there is room");
    let guide = include_str!("../../../docs/guides/analyze.md");
    let columns = guide.split("--format ").nth(1).and_then(|rest| rest.split(' ').next()).expect("columns");
    let header = log.lines().next().expect("a header");
    assert!(columns.split(',').all(|column| header.split('|').any(|known| known == column)), "{columns}");
    let commands: Vec<&str> = guide.lines().filter_map(|line| line.strip_prefix("stipend ")).collect();
    assert!(commands.len() >= 4, "{commands:?}");
    for command in commands {
        let output = stipend(&command.split(' ').collect::<Vec<_>>()).current_dir(&folder).output().expect("the program starts");
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn a_trace_is_simulated_with_the_shares_of_a_file() {
    check(&["sim", "run", "replay.toml", "--policy", "budget", "--budgets"], "run-replay.txt");
    check(&["sim", "run", "replay.toml", "--policy", "budget", "--set", "shares_rest=1", "--strict"], "run-replay-strict.txt");
    check(&["sim", "run", "replay.toml", "--set", "shares=usage"], "run-replay-two-shares.txt");
    check(&["sim", "run", "replay.toml", "--set", "copies=0"], "run-replay-no-copies.txt");
    check(&["sim", "run", "replay.toml", "--set", "shares_file=jobs.swf"], "run-replay-no-shares.txt");
}

#[test]
fn a_sweep_of_a_tiny_scenario() {
    check(&["sim", "sweep", "tiny.toml", "--set", "nodes=2,3", "--set", "lookback=1h,1d", "--set", "measure=12h"], "sweep-table.txt");
    check(&["sim", "sweep", "tiny.toml", "--set", "nodes=2,3,4", "--policy", "budget,easy", "--seed", "1,2"], "sweep-seeds.txt");
    check(&["sim", "sweep", "tiny.toml", "--set", "nodes=2,3", "--policy", "budget,fifo", "--watch", "lab/late"], "sweep-watched.txt");
}

#[test]
fn a_workload_that_waits_runs_and_has_ended() {
    check(&["sim", "explain", "tiny.toml", "--at", "6:00", "--workload", "g-3"], "explain-waiting.txt");
    check(&["sim", "explain", "tiny.toml", "--at", "6:00", "--workload", "g-3", "--format", "json"], "explain-json.txt");
    check(&["sim", "explain", "tiny.toml", "--at", "10h", "--workload", "g-1", "--set", "grace_allocated=1m"], "explain-again.txt");
    check(&["sim", "explain", "tiny.toml", "--at", "3:30", "--workload", "l-1"], "explain-running.txt");
    check(&["sim", "explain", "tiny.toml", "--at", "14:00", "--workload", "look-1"], "explain-ended.txt");
}

#[test]
fn what_cannot_be_explained() {
    let explain = |at: &str, workload: &str, snapshot: &str| {
        check(&["sim", "explain", "tiny.toml", "--at", at, "--workload", workload], snapshot);
    };
    explain("1:00", "l-1", "explain-too-early.txt");
    explain("1:00", "lok-1", "explain-no-such-workload.txt");
    explain("10 o'clock", "l-1", "explain-no-time.txt");
    explain("2d", "l-1", "explain-too-late.txt");
}

#[test]
fn sweeps_that_cannot_be_run() {
    check(&["sim", "sweep", "tiny.toml"], "sweep-no-set.txt");
    check(&["sim", "sweep", "tiny.toml", "--set", "nodes=3"], "sweep-of-nothing.txt");
    check(&["sim", "sweep", "tiny.toml", "--set", "lookback=1d,7x"], "sweep-wrong-value.txt");
    check(&["sim", "sweep", "tiny.toml", "--set", "nodes=2,3", "--picture", "nowhere/p.svg"], "sweep-no-such-folder.txt");
    check(&["sim", "sweep", "tiny.toml", "--set", "nodes=2,3", "--watch", "lab"], "sweep-no-such-budget.txt");
    check(&["sim", "sweep", "tiny.toml", "--set", "behaviours.what=honest,squat"], "sweep-no-behaviours.txt");
}

#[test]
fn a_sweep_as_json_picture_and_page_is_the_same_on_any_core() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sweep");
    std::fs::create_dir_all(&folder).expect("there is room");
    let scenario = tests().join("tiny.toml");
    let sweep = |name: &str| {
        let (picture, page) = (format!("{name}.svg"), format!("{name}.html"));
        let args = ["sim", "sweep", scenario.to_str().expect("a path in UTF-8"), "--set", "nodes=2,3,4", "--format", "json"];
        let output = stipend(&args).args(["--picture", &picture, "--report", &page]).current_dir(&folder).output().expect("it starts");
        assert_eq!(String::from_utf8_lossy(&output.stderr), format!("written: {picture}\nwritten: {page}\n"));
        let read = |file: &str| std::fs::read_to_string(folder.join(file)).expect("it was written");
        let json = steady(&String::from_utf8(output.stdout).expect("JSON is text"));
        (json, read(&picture), read(&page))
    };
    let first = sweep("first");
    assert_eq!(first, sweep("second"));
    assert!(first.0.contains("\"values\": [\n        \"2\"\n      ]") && first.0.contains("\"delivered_of_owed\""), "{}", first.0);
    assert!(first.1.starts_with("<svg ") && first.2.contains(&first.1));
}

#[test]
fn a_page_with_pictures_is_one_file() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let scenario = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tiny.toml");
    let run = |path: &str| stipend(&["sim", "run", scenario, "--report", path]).current_dir(folder).output().expect("the program starts");
    let written = run("page.html");
    let said = String::from_utf8_lossy(&written.stderr).into_owned();
    assert!(said.starts_with("page with pictures, ") && said.ends_with(" kB: page.html\n"), "{said}");
    let page = std::fs::read_to_string(folder.join("page.html")).expect("the page was written");
    assert!(page.starts_with("<!doctype html>") && page.trim_end().ends_with("</html>"));
    for policy in ["budget", "fifo", "easy", "partition"] {
        assert!(page.contains(&format!("<th scope=\"col\">{policy}</th>")), "{policy}");
    }
    let refused = run("nowhere/page.html");
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2));
    assert!(said.starts_with("error: cannot write nowhere/page.html"), "{said}");
}

#[test]
fn the_log_of_a_run_passes_the_audit_and_a_changed_one_does_not() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let log = folder.join("log.jsonl");
    let run = |args: &[&str]| stipend(args).current_dir(folder).output().expect("the program starts");
    let scenario = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tiny.toml");
    let written = run(&["sim", "run", scenario, "--policy", "fifo", "--policy", "budget", "--events", "log.jsonl"]);
    assert_eq!(String::from_utf8_lossy(&written.stderr), "event log of budget with seed 1: log.jsonl\n");
    let audited = run(&["sim", "check", "log.jsonl"]);
    assert_eq!(audited.status.code(), Some(0), "{}", String::from_utf8_lossy(&audited.stdout));

    // A log without its charges is a ledger that does not add up.
    let text = std::fs::read_to_string(&log).expect("the log was written");
    let without: String = text.lines().filter(|line| !line.contains("\"charged\"")).map(|line| format!("{line}\n")).collect();
    std::fs::write(folder.join("without.jsonl"), without).expect("the folder takes files");
    assert_eq!(run(&["sim", "check", "without.jsonl"]).status.code(), Some(1));
}

#[test]
fn a_damaged_log_is_refused_with_its_line() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let run = |args: &[&str]| stipend(args).current_dir(folder).output().expect("the program starts");
    let scenario = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tiny.toml");
    run(&["sim", "run", scenario, "--policy", "budget", "--events", "whole.jsonl"]);
    let whole = std::fs::read(folder.join("whole.jsonl")).expect("the log was written");
    let check = |log: &[u8]| {
        std::fs::write(folder.join("damaged.jsonl"), log).expect("the folder takes files");
        let output = run(&["sim", "check", "damaged.jsonl"]);
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    assert_eq!(check(&whole).0, Some(0));
    for part in 0..30 {
        let at = whole.len() * part / 30;
        let line = 1 + whole[..at].iter().filter(|byte| **byte == b'\n').count();
        let (code, message) = check(&whole[..at]);
        // A line that lacks nothing but its end is whole, and what is missing is the next one.
        let missing = line + usize::from(whole[at] == b'\n');
        assert!(code == Some(2) && message.contains(&format!("line {missing} ")), "cut off at byte {at}, in line {missing}: {message}");
        let mut other = whole.clone();
        other[at] = 0xff;
        let (code, message) = check(&other);
        assert!(code == Some(2) && message.contains(&format!("line {line} ")), "no text at byte {at}, in line {line}: {message}");
    }
    for (value, field) in [("\"gpus\":0,", "gpus"), ("\"gpus\":99999999999,", "gpus"), ("\"gpus\":\"x\",", "gpus"), ("", "gpus")] {
        let text = String::from_utf8(whole.clone()).expect("a log is text");
        let (code, message) = check(text.replacen("\"gpus\":8,", value, 1).as_bytes());
        assert!(code == Some(2) && message.contains(field) && message.contains("line "), "{value}: {message}");
    }
}

#[test]
fn an_audit_as_a_table_and_as_json() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("audit");
    std::fs::create_dir_all(&folder).expect("there is room");
    let scenario = tests().join("tiny.toml");
    let args =
        ["sim", "run", scenario.to_str().expect("a path in UTF-8"), "--set", "measure=2h", "--policy", "budget", "--events", "kept.jsonl"];
    assert!(stipend(&args).current_dir(&folder).output().expect("the program starts").status.success());
    // Two runs of the same attempt, the second where the first still runs.
    let text = std::fs::read_to_string(folder.join("kept.jsonl")).expect("the log was written");
    let started = text.lines().find(|line| line.contains("\"started\"")).expect("something started");
    std::fs::write(folder.join("broken.jsonl"), text.replacen(started, &format!("{started}\n{started}"), 1))
        .expect("the folder takes files");
    check_in(&folder, &["sim", "check", "kept.jsonl"], "check-kept-table.txt");
    check_in(&folder, &["sim", "check", "kept.jsonl", "--format", "json"], "check-kept-json.txt");
    check_in(&folder, &["sim", "check", "broken.jsonl"], "check-broken-table.txt");
    check_in(&folder, &["sim", "check", "broken.jsonl", "--format", "json"], "check-broken-json.txt");
}

#[test]
fn a_slurm_log_of_its_own() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    check_in(&root, &["sim", "trace", "scenarios/slurm-sample.txt"], "trace-slurm.txt");
    check_in(
        &root,
        &["sim", "run", "scenarios/slurm.toml", "--set", "trace=scenarios/slurm-sample.txt", "--policy", "budget,easy"],
        "run-slurm.txt",
    );
}
