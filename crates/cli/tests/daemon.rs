//! The real program against a real daemon, in a folder of its own, with real processes.

mod lab;

use lab::{Lab, words};

#[test]
fn work_is_queued_runs_and_is_shown() {
    let lab = Lab::start("work");
    assert_eq!(lab.run(&["submit", "-b", "lab/nlp", "-n", "hello", "--", "echo", "out of w0"]).stdout, "w0\n");
    assert_eq!(lab.run(&["wait", "w0"]).stdout, "w0 completed\n");
    assert_eq!(lab.run(&["logs", "w0"]).stdout, "out of w0\n");
    let shown = lab.run(&["show", "0"]).stdout;
    assert!(shown.starts_with("workload  w0, hello\nstate     completed, exit code 0\n"), "{shown}");
    let queue = lab.run(&["queue", "--all", "--format", "json"]).stdout;
    assert!(queue.contains("\"id\": 0") && queue.contains("\"state\": \"completed\""), "{queue}");
    let table = lab.run(&["queue", "--all"]);
    assert!(table.stdout.lines().all(|line| line.chars().count() <= 80) && table.stderr == "1 has ended\n", "{}", table.stdout);
    let explained = lab.run(&["explain", "w0"]).stdout;
    assert!(explained.contains("w0") && explained.contains("has ended"), "{explained}");
    let events = lab.run(&["events", "--workload", "w0"]).stdout;
    assert!(events.contains("w0 submitted by ") && events.contains("w0 completed"), "{events}");
}

#[test]
fn exit_codes_say_what_became_of_it() {
    let lab = Lab::start("codes");
    let failed = lab.any(&["run", "-b", "lab/nlp", "--", "sh", "-c", "echo on stdout; exit 7"]);
    assert_eq!((failed.code, failed.stdout.as_str()), (7, "on stdout\n"), "{}", failed.stderr);
    assert!(failed.stderr.contains("w0 is queued") && failed.stderr.ends_with("w0 failed, exit code 7\n"), "{}", failed.stderr);
    assert_eq!(lab.any(&["wait", "w0"]).code, 1);
    assert_eq!(lab.any(&["run", "-b", "lab/nlp", "--", "true"]).code, 0);
    let limited = lab.any(&["run", "-b", "lab/nlp", "--time-limit", "1s", "--", "sleep", "600"]);
    assert_eq!(limited.code, 124, "{}", limited.stderr);
}

#[test]
fn what_the_daemon_has_done_is_analysed() {
    let lab = Lab::start("analyze");
    let none = lab.any(&["analyze"]);
    assert!(none.code == 2 && none.stderr.contains("no work yet"), "{}", none.stderr);
    for seed in ["train_seed3", "train_seed4"] {
        assert_eq!(lab.any(&["run", "-b", "lab/nlp", "-g", "2", "-n", seed, "--", "sh", "-c", "sleep 1; exit 3"]).code, 3);
    }
    lab.run(&["run", "-b", "lab/eval", "-n", "check", "--", "true"]);
    let told = lab.run(&["analyze"]).stdout;
    assert!(told.starts_with("the daemon's history: event log, from ") && told.contains("3 jobs, "), "{told}");
    assert!(told.contains("train_seed") && told.contains("0 of 2") && told.contains("lab/nlp"), "{told}");
}

#[test]
fn an_interrupted_run_cancels_its_workload() {
    let lab = Lab::start("interrupt");
    let mut run = lab.spawn(&["run", "-b", "lab/nlp", "--", "sh", "-c", "echo ready; sleep 600"]);
    lab.until("it runs", || lab.run(&["queue"]).stdout.contains("running"));
    lab::interrupt(&run);
    let status = run.wait().expect("it ends");
    assert_eq!(status.code(), Some(130));
    assert!(lab.run(&["show", "w0"]).stdout.contains("\nstate     cancelled"));
}

#[test]
fn what_is_wrong_is_said_with_what_would_be_right() {
    let lab = Lab::start("wrong");
    let wrong = |args: &[&str], parts: &[&str]| {
        let said = lab.any(args);
        assert_eq!((said.code, said.stdout.as_str()), (2, ""), "{args:?}: {}", said.stderr);
        assert!(parts.iter().all(|part| said.stderr.contains(part)), "{args:?}: {}", said.stderr);
    };
    wrong(&["submit", "-b", "lab/nlq", "--", "true"], &["lab/nlq", "lab/nlp"]);
    wrong(&["submit", "-b", "lab", "--", "true"], &["lab"]);
    wrong(&["submit", "-b", "lab/nlp", "-m", "9", "-g", "8", "--", "true"], &["9"]);
    wrong(&["submit", "-b", "lab/nlp", "--gpus", "99", "--", "true"], &["gpus = 99: expected from 1 to 64 for each member"]);
    wrong(&["submit", "-b", "lab/nlp", "--", "/nowhere/program"], &["/nowhere/program"]);
    wrong(&["submit", "-b", "lab/nlp", "-D", "/nowhere", "--", "true"], &["/nowhere"]);
    wrong(&["show", "w12"], &["w12"]);
    wrong(&["cancel", "w12"], &["w12"]);
    wrong(&["node", "drain", "gpu-9", "--reason", "x"], &["gpu-9"]);
    wrong(&["budget", "show", "lab/nlq"], &["there is no budget lab/nlq", "did you mean lab/nlp?"]);
    wrong(&["budget", "set", "lab/nlq", "--share", "1"], &["there is no budget lab/nlq", "--new"]);
    wrong(&["budget", "set", "lab/nlp", "--share", "90", "--reason", "more"], &["100 %"]);
    wrong(&["budget", "set", "lab/nlp", "--share", "20"], &["needs a reason", "--reason"]);
    wrong(&["serve", "--listen", "none", "--data", lab.data()], &["in use by another daemon"]);
}

#[test]
fn budgets_are_shown_changed_and_told() {
    let lab = Lab::start("budgets");
    let tree = lab.run(&["budget", "tree"]).stdout;
    assert!(tree.contains("  nlp      50 %   50 %     0 % <") && tree.lines().all(|line| line.chars().count() <= 80), "{tree}");
    let would = lab.run(&["budget", "set", "lab/nlp", "--share", "40", "--dry-run"]);
    assert!(would.stdout.contains("lab/nlp") && would.stderr.contains("nothing was changed"), "{} {}", would.stdout, would.stderr);
    lab.run(&["budget", "set", "lab/nlp", "--share", "40", "--gpus-max", "8", "--reason", "a test"]);
    lab.run(&["budget", "set", "lab/audio", "--new", "--share", "10", "--members", "eve", "-r", "a new group"]);
    let shown = lab.run(&["budget", "show", "lab/nlp"]).stdout;
    assert!(shown.contains("40 % of its parent, 40 % of the pool; at most 8 GPUs"), "{shown}");
    lab.run(&["budget", "set", "lab/nlp", "--gpus-max", "none", "-r", "no cap"]);
    assert!(!lab.run(&["budget", "show", "lab/nlp"]).stdout.contains("at most 8 GPUs"));
    lab.run(&["budget", "set", "lab/nlp", "--gpus-max", "6", "-r", "a cap"]);
    lab.write("free.toml", "reason = \"no cap\"\n[[budgets]]\npath = \"lab/nlp\"\ngpus_max = \"none\"\n");
    lab.run(&["budget", "apply", "free.toml"]);
    assert!(!lab.run(&["budget", "show", "lab/nlp"]).stdout.contains("at most 6 GPUs"));
    let history = lab.run(&["budget", "history"]).stdout;
    assert!(history.contains("a test") && history.contains("lab/audio"), "{history}");

    lab.write("plan.toml", "reason = \"the plan\"\n[[budgets]]\npath = \"lab/vision\"\nshare = 25\n");
    assert!(lab.run(&["budget", "diff", "plan.toml"]).stdout.contains("lab/vision"));
    let whatif = lab.run(&["whatif", "plan.toml", "--days", "1"]).stdout;
    assert!(whatif.contains("lab/vision") && whatif.contains("the queue as it is now"), "{whatif}");
    lab.run(&["budget", "apply", "plan.toml"]);
    lab.write("knobs.toml", "[policy]\nquantum = \"30m\"\n[[pools]]\nname = \"gpu\"\npolicy = { below_share = 1.25 }\n");
    let whatif = lab.run(&["whatif", "knobs.toml", "--days", "1"]).stdout;
    assert!(whatif.contains("gpu: quantum: 15 min -> 30 min") && whatif.contains("gpu: below_share: 1.1 -> 1.25"), "{whatif}");
    for (text, said) in [
        ("[policy]\nquantun = \"30m\"\n", "policy: unknown field `quantun`"),
        ("[policy]\nquantum = 30\n", "policy: quantum = 30: "),
        ("[policy]\nbelow_share = 0.5\n", "below_share"),
        ("[[pools]]\nname = \"cpu\"\n", "there is no pool"),
    ] {
        lab.write("wrong.toml", text);
        let wrong = lab.any(&["whatif", "wrong.toml"]);
        assert!(wrong.code == 2 && wrong.stderr.contains(said), "{text}{}", wrong.stderr);
    }
    assert!(lab.run(&["usage", "--since", "1d"]).stdout.contains("lab/vision"));
    let sheet = lab.run(&["budget", "export"]).stdout;
    lab.write("tree.csv", &sheet.replace(",25,", ",20,"));
    lab.run(&["budget", "apply", "tree.csv", "--at", "+1d", "--reason", "later"]);
    let waits = lab.run(&["budget", "history", "--limit", "1"]).stdout;
    assert!(waits.contains("waits for") && waits.contains("later"), "{waits}");
    let number = waits.split(',').next().expect("it begins with its number");
    assert!(lab.run(&["budget", "withdraw", number]).stdout.contains("withdrawn"));
}

#[test]
fn work_that_was_preempted_goes_on_from_its_checkpoint() {
    let lab = Lab::start("preempt");
    let training = "step=$(cat $STIPEND_CHECKPOINT_DIR/step 2>/dev/null || echo 0); echo from $step; \
                    trap 'exit 1' TERM; while [ ! -e finish ]; do sleep 0.05 & wait $!; step=$((step + 1)); \
                    echo $step > $STIPEND_CHECKPOINT_DIR/step; \"$STIPEND\" checkpoint; done";
    let program = format!("STIPEND={}", env!("CARGO_BIN_EXE_stipend"));
    lab.run(&["submit", "-b", "lab/nlp", "-g", "8", "-m", "2", "--on-preempt", "resume", "-e", &program, "--", "sh", "-c", training]);
    lab.until("it wrote a checkpoint", || lab.run(&["events"]).stdout.contains("w0 wrote a checkpoint"));
    assert_eq!(lab.any(&["run", "-b", "lab/vision", "--min-runtime", "1m", "--", "true"]).code, 0);
    lab.until("it runs again", || {
        lab.run(&["show", "w0"]).stdout.contains("attempt 2") && lab.any(&["logs", "w0"]).stdout.contains("from ")
    });
    let log = lab.run(&["logs", "w0"]).stdout;
    assert!(!log.contains("from 0\n"), "{log}");
    let events = lab.run(&["events"]).stdout;
    assert!(events.contains("w0 is preempted for w1: ") && events.contains("allocated work takes unallocated GPUs"), "{events}");
    lab.write("finish", "");
    assert_eq!(lab.run(&["wait", "w0"]).stdout, "w0 completed\n");
}

#[test]
fn a_node_is_drained_and_comes_back() {
    let lab = Lab::start("drain");
    assert!(lab.run(&["pool", "list"]).stdout.contains("gpu     16"));
    let drained = lab.run(&["node", "drain", "gpu-2", "--reason", "fan 3 is loud"]).stdout;
    assert!(drained.contains("fan 3 is loud"), "{drained}");
    lab.run(&["submit", "-b", "lab/nlp", "-g", "8", "-m", "2", "--", "true"]);
    lab.run(&["hold", "w0"]);
    assert!(lab.run(&["queue"]).stdout.contains("held"));
    lab.run(&["release", "w0"]);
    lab.run(&["node", "resume", "gpu-2"]);
    assert_eq!(lab.run(&["wait", "w0"]).stdout, "w0 completed\n");
    assert!(lab.any(&["node", "drain", "gpu-1", "-r", "x", "--until", "2020-01-01"]).stderr.contains("that is in the past"));
    lab.run(&["node", "drain", "gpu-1", "-r", "new firmware", "--until", "+3s"]);
    lab.until("it comes back", || !lab.run(&["node", "list"]).stdout.contains("new firmware"));
    assert!(lab.run(&["events"]).stdout.contains("node gpu-1 is drained"));
}

#[test]
fn others_come_with_a_token() {
    let lab = Lab::start("tokens");
    let token = lab.run(&["token", "create", "eve"]).stdout;
    lab.write("eve.token", &token);
    lab.run(&["submit", "-b", "lab/nlp", "--token-file", "eve.token", "--", "true"]);
    assert!(lab.run(&["queue", "--all", "--user", "eve"]).stdout.contains("w0"));
    let refused = lab.any(&["node", "drain", "gpu-1", "--reason", "x", "--token-file", "eve.token"]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    let tokens = lab.run(&["token", "list"]).stdout;
    let eve = tokens.lines().find(|line| line.contains("eve")).expect("it is listed");
    lab.run(&["token", "revoke", eve.split_whitespace().next().expect("its number")]);
    assert_eq!(lab.any(&["queue", "--token-file", "eve.token"]).code, 2);
}

#[test]
fn a_daemon_that_was_killed_goes_on_where_it_was() {
    let mut lab = Lab::start("killed");
    lab.run(&["submit", "-b", "lab/nlp", "--", "sh", "-c", "while [ ! -e finish ]; do sleep 0.05; done; echo done; exit 3"]);
    lab.until("it runs", || lab.run(&["queue"]).stdout.contains("running"));
    let token = lab.run(&["token", "create", "eve"]).stdout;
    lab.write("eve.token", &token);
    lab.run(&["backup", "kept.db", "--data", lab.data()]);
    lab.run(&["store", "check", "kept.db"]);
    lab.run(&["token", "revoke", "2"]);
    lab.stop();
    assert!(lab.log().contains("stopped: 1 run on without the daemon (w0), 0 wait"), "{}", lab.log());
    lab.serve();
    assert!(lab.log().contains("workloads: 1 adopted as they run"), "{}", lab.log());
    lab.kill();
    lab.write("finish", "");
    lab.serve();
    assert_eq!(lab.any(&["wait", "w0"]).stdout, "w0 failed, exit code 3\n");
    assert_eq!(lab.run(&["logs", "w0"]).stdout, "done\n");
    lab.run(&["submit", "-b", "lab/nlp", "--", "true"]);
    lab.kill();
    lab.run(&["store", "check", lab.data()]);
    let restored = lab.run(&["store", "restore", "kept.db", "--data", lab.data()]).stderr;
    let after = restored.split_once("is kept: ").and_then(|(_, kept)| kept.split_once('\n')).expect("what was there is kept").1;
    let expected = "ended since, and run again once the daemon is started: w0
  those that shall not: stipend cancel w0
submitted since, and forgotten: w1; what of them still runs is stopped
taken back since, and valid again: token 2 of eve (user)
  to take it back: stipend token revoke 2
";
    assert_eq!(after, expected);
    lab.serve();
    lab.run(&["queue", "--all", "--token-file", "eve.token"]);
    assert_eq!(lab.any(&["wait", "w0"]).stdout, "w0 failed, exit code 3\n");
}

#[test]
fn work_that_ends_its_own_supervisor_is_held_after_the_third_time() {
    let mut lab = Lab::start("losses");
    lab.run(&["submit", "-b", "lab/nlp", "--", "sh", "-c", "echo came; kill -9 $PPID; exec sleep 600"]);
    let shown = |lab: &Lab| lab.run(&["show", "w0", "--format", "json"]).stdout;
    lab.until("it is paused", || shown(&lab).contains("it tries again at"));
    // The pause is kept, too.
    lab.kill();
    lab.serve();
    lab.until("it is held", || shown(&lab).contains("stipend release w0 lets it try again"));
    assert!(shown(&lab).contains("\"attempts\": 3"), "{}", shown(&lab));
    let events = lab.run(&["events"]).stdout;
    assert_eq!(events.lines().filter(|line| line.contains("w0 is held")).count(), 2, "{events}");
    lab.run(&["release", "w0"]);
    lab.until("it tries again", || shown(&lab).contains("\"attempts\": 4"));
}

#[test]
fn what_waits_or_leaves_says_why_and_what_has_ended_does_not() {
    let lab = Lab::start("why");
    let stubborn = "trap '' TERM; echo up; while [ ! -e finish ]; do sleep 0.05; done";
    lab.run(&["submit", "-b", "lab/nlp", "-g", "8", "-m", "2", "--min-runtime", "1h", "--", "sh", "-c", stubborn]);
    lab.until("it runs", || lab.any(&["logs", "w0"]).stdout == "up\n" && lab.run(&["queue"]).stdout.contains("running"));
    lab.run(&["submit", "-b", "lab/nlp", "-g", "8", "--min-runtime", "1h", "--", "true"]);
    let queue = lab.run(&["queue"]).stdout;
    let lines: Vec<&str> = queue.lines().collect();
    assert!(lines[2].contains("running") && lines[3].contains("waiting"), "{queue}");
    assert!(lines[4].starts_with("      needs 8 GPUs; 0 are within reach"), "{queue}");
    assert!(lines.iter().all(|line| line.chars().count() <= 80), "{queue}");
    assert!(lab.run(&["show", "w1"]).stdout.contains("why       needs 8 GPUs; 0 are within reach"), "{}", lab.run(&["show", "w1"]).stdout);
    lab.run(&["cancel", "w0"]);
    let shown = lab.run(&["show", "w0"]).stdout;
    assert!(shown.contains("state     stopping\n") && shown.contains(" cancelled it\n"), "{shown}");
    lab.write("finish", "");
    lab.run(&["wait", "w1"]);
    let shown = lab.run(&["show", "w1"]).stdout;
    assert!(shown.contains("state     completed") && !shown.contains("\nwhy "), "{shown}");
}

#[test]
fn a_repair_that_the_daemon_did_not_outlive_is_begun_anew() {
    let config = "[pool]\nname = \"gpu\"\nnodes = 1\ngpus_per_node = 8\n[daemon]\nrun_as = \"daemon\"\nhealth_command = [\"true\"]\n\
                  repair_command = [\"sh\", \"-c\", \"while [ ! -e parts ]; do sleep 0.05; done\"]\n";
    let mut lab = Lab::with("repair", config);
    lab.run(&["node", "drain", "gpu-1", "--reason", "fan 3 is loud"]);
    lab.until("it is repaired", || lab.run(&["node", "list"]).stdout.contains("repairing"));
    lab.kill();
    lab.serve();
    assert!(lab.run(&["node", "list"]).stdout.contains("repairing"));
    lab.write("parts", "");
    lab.until("it is back", || lab.run(&["node", "list"]).stdout.contains("ready"));
}

#[test]
fn of_a_gang_all_members_are_heard() {
    let lab = Lab::start("gang");
    let said = lab.any(&["run", "-b", "lab/nlp", "-m", "3", "--", "sh", "-c", "echo rank $STIPEND_RANK; echo on $STIPEND_NODE"]);
    let mut lines: Vec<&str> = said.stdout.lines().collect();
    lines.sort_unstable();
    assert_eq!((said.code, lines.len()), (0, 6), "{}{}", said.stdout, said.stderr);
    assert!(["[0] rank 0", "[1] rank 1", "[2] rank 2"].iter().all(|line| lines.contains(line)), "{}", said.stdout);
    let killed = lab.any(&["run", "-b", "lab/nlp", "--", "sh", "-c", "kill -9 $$"]);
    assert_eq!(killed.code, 137, "{}", killed.stderr);
}

#[test]
fn a_session_says_that_it_is_used() {
    let lab = Lab::start("session");
    let program = format!("STIPEND={}", env!("CARGO_BIN_EXE_stipend"));
    let said = lab.any(&["run", "-b", "lab/nlp", "--session", "-e", &program, "--", "sh", "-c", "\"$STIPEND\" input && echo told"]);
    assert_eq!((said.code, said.stdout.as_str()), (0, "told\n"), "{}", said.stderr);
    assert!(lab.run(&["events", "--all"]).stdout.contains("input"), "{}", lab.run(&["events", "--all"]).stdout);
    assert!(lab.run(&["usage", "--format", "csv"]).stdout.starts_with("budget,pool,from,delivered_gpu_hours,owed_gpu_hours\nlab"));
}

#[test]
fn completions_know_budgets_and_workloads() {
    let lab = Lab::start("completions");
    lab.run(&["submit", "-b", "lab/nlp", "--", "sleep", "600"]);
    assert_eq!(words(&lab, &["submit", "--budget", "lab/n"]), ["lab/nlp"]);
    assert_eq!(words(&lab, &["budget", "show", "lab"]), ["lab", "lab/nlp", "lab/vision", "lab/eval"]);
    assert_eq!(words(&lab, &["cancel", "w"]), ["w0"]);
    assert_eq!(words(&lab, &["node", "drain", "gpu"]), ["gpu-1", "gpu-2"]);
}

#[test]
fn the_guide_begins_with_a_configuration_that_works() {
    let config = include_str!("../../../docs/guides/stipend.toml");
    let guide = include_str!("../../../docs/guides/monday.md");
    assert!(guide.contains(config), "docs/guides/monday.md shows another configuration than docs/guides/stipend.toml");
    let lab = Lab::with("guide", config);
    assert!(lab.run(&["budget", "tree"]).stdout.contains("vision"));
}
