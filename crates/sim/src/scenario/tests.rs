use super::*;

const HEAD: &str = "name = \"t\"\ndescription = \"d\"\nmeasure = \"1d\"\n";
const POOL: &str = "[pool]\nnodes = 4\n";
const LAB: &str = "[[budgets]]\npath = \"lab\"\n[[budgets]]\npath = \"lab/a\"\nshare = 60\n";
const WORK: &str = "[[workloads]]\nname = \"w\"\nbudget = \"lab/a\"\ngang = \"2x8\"\nmin_runtime = \"1h\"\nwork = \"2h\"\n";

fn read(parts: &[&str], overrides: &[&str]) -> Result<Scenario, String> {
    let overrides: Vec<String> = overrides.iter().map(|text| (*text).into()).collect();
    Scenario::parse("t.toml", &parts.concat(), &overrides).map_err(|error| error.to_string())
}

/// The message that a wrong scenario gets.
fn wrong(parts: &[&str], overrides: &[&str], expected: &str) {
    let message = read(parts, overrides).err().unwrap_or_else(|| panic!("accepted, instead of: {expected}"));
    assert_eq!(message, expected);
}

#[test]
fn a_small_scenario() {
    let scenario =
        read(&[HEAD, "warmup = \"12h\"\n", POOL, "express_nodes = 1\n", LAB, WORK, "[policy]\nlookback = \"3d\"\nworth_it = 0.5\n"], &[])
            .expect("right");
    assert_eq!(
        (scenario.capacity(), scenario.measure_from(), scenario.measure_to()),
        (Gpus(32), Time(Span::hours(12).0), Time(Span::hours(36).0))
    );
    assert_eq!((scenario.knobs.lookback, scenario.knobs.worth_it), (Span::days(3), Ppm(500_000)));
    assert_eq!(scenario.nodes.iter().filter(|node| node.express).count(), 1);
    assert_eq!((scenario.labels.budgets[1].as_str(), scenario.budgets[1].pools[0].share), ("lab/a", Ppm(600_000)));
    assert_eq!((scenario.labels.workloads, scenario.labels.users), (vec!["w".to_string()], vec!["a".to_string()]));
}

#[test]
fn overrides_take_the_place_of_what_is_written() {
    let scenario = read(&[HEAD, POOL, LAB, WORK], &["pool.nodes=96", "lookback=1d", "kernel=sliding", "seed=7", "policy.below_share=1.5"])
        .expect("right");
    assert_eq!((scenario.nodes.len(), scenario.knobs.lookback, scenario.seed), (96, Span::days(1), 7));
    assert_eq!((scenario.knobs.kernel, scenario.knobs.below_share), (stipend_core::knobs::Kernel::Sliding, Ppm(1_500_000)));
}

#[test]
fn wrong_overrides_name_what_is_near() {
    wrong(&[HEAD, POOL, LAB, WORK], &["lokback=1d"], "--set lokback=1d: there is no field `lokback`; did you mean `lookback`?");
    wrong(&[HEAD, POOL, LAB, WORK], &["pool.node=9"], "--set pool.node=9: there is no field of [pool] `node`; did you mean `nodes`?");
    wrong(&[HEAD, POOL, LAB, WORK], &["nodes"], "--set nodes: expected key=value, such as pool.nodes=96 or lookback=1d");
    wrong(
        &[HEAD, POOL, LAB, WORK],
        &["seed=3", "lookback=soon"],
        "--set lookback=soon: \"soon\" is not a length of time such as \"90s\", \"15m\", \"8h\" or \"7d\" (not negative, at most 20 years)",
    );
    wrong(&[HEAD, POOL, LAB, WORK], &["express_nodes=9"], "--set express_nodes=9: express_nodes = 9: the pool has only 4 nodes");
}

#[test]
fn unknown_fields_and_wrong_values_name_their_line() {
    let message = read(&[HEAD, "[pool]\nnods = 4\n", LAB, WORK], &[]).expect_err("no such field");
    assert!(message.starts_with("t.toml:5: `nods = 4`: unknown field `nods`") && message.ends_with("did you mean `nodes`?"), "{message}");
    let message = read(&[HEAD, POOL, LAB, &WORK.replace("2h", "-2h")], &[]).expect_err("negative");
    assert!(message.starts_with("t.toml:16: `work = \"-2h\"`: \"-2h\" is not a length of time"), "{message}");
    let message = read(&[HEAD, POOL, LAB, &WORK.replace("2h", "99999d")], &[]).expect_err("absurd");
    assert!(message.contains("at most 20 years"), "{message}");
    let message = read(&[HEAD, "[pool\nnodes = 4\n"], &[]).expect_err("no TOML");
    assert!(message.starts_with("t.toml:4: `[pool`"), "{message}");
}

#[test]
fn budgets_that_cannot_be() {
    let more = "[[budgets]]\npath = \"lab/b\"\nshare = 45.5\n";
    wrong(
        &[HEAD, POOL, LAB, more, WORK],
        &[],
        "t.toml:13: `share = 45.5`: share: the children of `lab` have 105.5 % together (a 60 %, b 45.5 %); they may have at most 100 %",
    );
    wrong(
        &[HEAD, POOL, LAB, "[[budgets]]\npath = \"lab/nlp/olmo\"\nshare = 5\n", WORK],
        &[],
        "t.toml:12: `path = \"lab/nlp/olmo\"`: path = \"lab/nlp/olmo\": its parent `lab/nlp` does not exist; add [[budgets]] with path = \"lab/nlp\"",
    );
    wrong(
        &[HEAD, POOL, LAB, "[[budgets]]\npath = \"lab/b\"\nshare = -5\n", WORK],
        &[],
        "t.toml:13: `share = -5`: share = -5: a share is a percentage of the parent, from 0 to 100",
    );
    wrong(
        &[HEAD, POOL, LAB, &WORK.replace("lab/a", "lab")],
        &[],
        "t.toml:13: `budget = \"lab\"`: budget = \"lab\": work is charged to leaf budgets only; take one of lab/a",
    );
    wrong(&[HEAD, POOL, WORK], &[], "t.toml: there are no budgets: add [[budgets]] with path = \"lab\" for the root, and others below it");
}

#[test]
fn pools_and_gangs_that_cannot_be() {
    wrong(&[HEAD, LAB, WORK], &[], "t.toml: the scenario has no nodes: give it a [pool] with nodes = 16, or [[pool.groups]]");
    wrong(
        &[HEAD, "[pool]\nnodes = 0\n", LAB, WORK],
        &[],
        "t.toml:4: `[pool]`: nodes = 0: the scenario has no nodes; give it nodes = 16, or [[pool.groups]]",
    );
    wrong(
        &[HEAD, POOL, LAB, &WORK.replace("2x8", "5x8")],
        &[],
        "t.toml:14: `gang = \"5x8\"`: a gang of 5x8 can never fit this pool; the largest of 8 GPUs a member is 4x8",
    );
    wrong(
        &[HEAD, POOL, LAB, &WORK.replace("2x8", "1x16")],
        &[],
        "t.toml:14: `gang = \"1x16\"`: a gang of 1x16 can never fit this pool: no node has room for one member; the largest node has 8 GPUs",
    );
}

#[test]
fn work_that_cannot_be() {
    wrong(
        &[HEAD, POOL, LAB, WORK, "on_preempt = \"end\"\n"],
        &[],
        "t.toml:12: `name = \"w\"`: on_preempt = \"end\": work that cannot go on after a preemption must state its time_limit, which is its contract",
    );
    wrong(&[HEAD, POOL, LAB, WORK, WORK], &[], "t.toml:18: `name = \"w\"`: name = \"w\": two workloads have this name");
    wrong(&[HEAD, POOL, LAB], &[], "t.toml: nothing is ever submitted: give the scenario [[workloads]], [[streams]], a [lab] or a [trace]");
    wrong(
        &[HEAD, POOL, LAB, WORK, "[[happenings]]\nat = \"1:00\"\nwhat = \"lose\"\nnode = 4\n"],
        &[],
        "t.toml:17: `[[happenings]]`: node = 4: the nodes are numbered from 0 to 3",
    );
}

#[test]
fn a_trace_needs_a_readable_file() {
    let trace = "[trace]\nbudget = \"lab/{team}\"\n";
    wrong(&[HEAD, POOL, LAB, trace], &[], "t.toml:11: `[trace]`: the scenario replays a file: name it with --set trace=FILE");
    let message = read(&[HEAD, POOL, LAB, trace], &["trace=no/such/file.csv"]).expect_err("no such file");
    assert_eq!(message, "no/such/file.csv: cannot be read");
}

#[test]
fn every_scenario_of_the_project_can_be_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut read = 0;
    for entry in std::fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("it can be listed").path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            read += 1;
            match Scenario::load(&path, &[]) {
                Ok(scenario) => assert!(!scenario.description.is_empty()),
                Err(error) => assert!(error.to_string().ends_with("name it with --set trace=FILE"), "{error}"),
            }
        }
    }
    assert!(read > 5);
}
