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

/// Every kind of value in the place of every other: no message speaks of Rust's types.
#[test]
fn a_value_of_the_wrong_kind_is_said_in_words_of_the_file() {
    wrong(&[HEAD, POOL, LAB, WORK], &["nodes=-1"], "--set nodes=-1: it is the number `-1`; expected a whole number from 0 to 4294967295");
    wrong(&[HEAD, POOL, LAB, WORK], &["="], "--set =: expected key=value, such as pool.nodes=96 or lookback=1d");
    let rust = ["u8", "u16", "u32", "u64", "i16", "i32", "i64", "f64", "struct", "enum", "variant", "invalid type", "tuple"];
    let fields = [
        "measure",
        "seed",
        "drain",
        "name",
        "pool",
        "nodes",
        "features",
        "pool.file",
        "lookback",
        "kernel",
        "worth_it",
        "copies",
        "strict",
    ];
    for field in fields.iter().chain(&[
        "estimates",
        "trace.teams",
        "trace.pools",
        "team_from",
        "rivals.priority.high",
        "model",
        "half_life",
        "budgets",
    ]) {
        for value in ["", "-1", "1.5", "abc", "true", "[1, 2]", "{ a = 1 }", "99999999999999999999", "nan", "1979-05-27"] {
            let Err(message) = read(&[HEAD, POOL, LAB, WORK], &[&format!("{field}={value}")]) else { continue };
            let words: Vec<&str> = message.split(|c: char| !c.is_alphanumeric() && c != ' ').collect();
            let is_rust =
                |word: &&&str| words.iter().any(|said| said.trim() == **word || said.trim().ends_with(&format!("expected {word}")));
            assert_eq!(rust.iter().find(is_rust), None, "{message}");
            assert!(!message.contains("invalid type") && !message.contains("invalid value"), "{message}");
        }
    }
}

/// A line that is shown is short, and moves no cursor.
#[test]
fn what_is_shown_of_a_scenario_is_harmless() {
    let long = format!("measure = \"{}\u{1b}[2J\"\n", "9".repeat(100_000));
    let message = read(&["name = \"t\"\n", &long], &[]).expect_err("no length of time");
    assert!(message.len() < 1000 && !message.contains('\u{1b}'), "{}", &message[..500]);
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

const TWO: &str = "[[pools]]\nname = \"h100\"\nnodes = 2\nfeatures = [\"nvlink\"]\n[[pools]]\nname = \"a100\"\nnodes = 1\n\
                   policy = { lookback = \"1d\" }\ngroups = [{ nodes = 2, gpus = 4, block = 7 }]\n";

fn listed(scenario: &Scenario) -> &stipend_core::spec::WorkloadSpec {
    &scenario.listed[0].job.spec
}

#[test]
fn several_pools_with_their_own_knobs_and_shares() {
    let lab = LAB.replace("share = 60", "share = { h100 = 60, a100 = 10 }\ngpus_max = { h100 = 8 }");
    let work = WORK.replace("gang", "pools = [\"a100\", \"h100\"]\nfeatures = [\"nvlink\"]\ngang");
    let scenario = read(&[HEAD, TWO, &lab, &work], &[]).expect("right");
    assert_eq!((scenario.capacity(), scenario.labels.pools.join(" ")), (Gpus(32), "h100 a100".into()));
    assert_eq!((scenario.pools[0].knobs.lookback, scenario.pools[1].knobs.lookback), (Span::days(7), Span::days(1)));
    let of_a = &scenario.budgets[1].pools;
    assert_eq!((of_a[0].share, of_a[1].share, of_a[0].gpus_max, of_a[1].gpus_max), (Ppm(600_000), Ppm(100_000), Some(Gpus(8)), None));
    assert_eq!(listed(&scenario).pools.iter().collect::<Vec<_>>(), [PoolId(1), PoolId(0)]);
    assert_eq!((listed(&scenario).gang.features.0, scenario.nodes[0].features.0, scenario.nodes[2].features.0), (1, 1, 0));
    let any = read(&[HEAD, TWO, LAB, WORK], &[]).expect("right");
    assert_eq!(listed(&any).pools.iter().collect::<Vec<_>>(), [PoolId(0), PoolId(1)], "all of them, in their order");
    let set = read(&[HEAD, TWO, LAB, WORK], &["pools.a100.nodes=5", "pools.h100.lookback=2d", "quantum=1m"]).expect("right");
    assert_eq!((set.nodes.len(), set.pools[0].knobs.lookback, set.pools[1].knobs.quantum), (9, Span::days(2), Span::minutes(1)));
}

#[test]
fn pools_that_are_wrong() {
    wrong(&[HEAD, POOL, TWO, LAB, WORK], &[], "t.toml:4: `[pool]`: there are [[pools]], too: write one [pool], or [[pools]] with names");
    wrong(&[HEAD, "[[pools]]\nnodes = 1\n", LAB, WORK], &[], "t.toml:4: `[[pools]]`: a pool of [[pools]] needs a name = \"h100\"");
    let work = WORK.replace("gang", "pools = [\"a10\"]\ngang");
    wrong(&[HEAD, TWO, LAB, &work], &[], "t.toml:21: `pools = [\"a10\"]`: there is no pool `a10`; did you mean `a100`?");
    let work = WORK.replace("gang", "features = [\"nvlnk\"]\ngang");
    wrong(&[HEAD, TWO, LAB, &work], &[], "t.toml:21: `features = [\"nvlnk\"]`: features: no node has `nvlnk`; did you mean `nvlink`?");
    let lab = LAB.replace("share = 60", "share = { h10 = 60 }");
    wrong(&[HEAD, TWO, &lab, WORK], &[], "t.toml:17: `share = { h10 = 60 }`: there is no pool `h10`; did you mean `h100`?");
    wrong(&[HEAD, TWO, LAB, WORK], &["pools.a10.nodes=5"], "--set pools.a10.nodes=5: there is no pool `a10`; did you mean `a100`?");
    let message = "--set pools.a100.nods=5: there is no field of pool a100 `nods`; did you mean `nodes`?";
    wrong(&[HEAD, TWO, LAB, WORK], &["pools.a100.nods=5"], message);
    let message = "--set pools.x.nodes=5: this scenario has one pool; its fields are set by pool.nodes, its knobs by their names";
    wrong(&[HEAD, POOL, LAB, WORK], &["pools.x.nodes=5"], message);
}

#[test]
fn a_pool_without_gpus_is_counted_in_cpus() {
    let pool = "[pool]\nname = \"cpu\"\nunit = \"cpu\"\nnodes = 2\ncpus = 200\n";
    let scenario = read(&[HEAD, pool, LAB, &WORK.replace("2x8", "1x33")], &[]).expect("right");
    // 200 CPUs in words of 64 bits: four are counted as one.
    assert_eq!((scenario.pools[0].cpus_per_gpu, scenario.nodes[0].gpus, scenario.nodes[0].cpus), (Some(4), 50, 0));
    assert_eq!(listed(&scenario).gang.gpus_per_member, 9);
    let message = "t.toml:4: `[pool]`: pool cpu: every node of it needs cpus = 96, for it is counted in CPUs";
    wrong(&[HEAD, &pool.replace("cpus = 200\n", ""), LAB, WORK], &[], message);
    let mixed = "[[pools]]\nname = \"h100\"\nnodes = 1\n[[pools]]\nname = \"cpu\"\nunit = \"cpu\"\nnodes = 1\ncpus = 64\n";
    let work = WORK.replace("gang", "pools = [\"h100\", \"cpu\"]\ngang");
    let message = "t.toml:20: `pools = [\"h100\", \"cpu\"]`: pools: h100 and cpu are not counted in the same; a gang is so many GPUs or so \
                   many CPUs";
    wrong(&[HEAD, mixed, LAB, &work], &[], message);
}

/// A scenario with a list of nodes beside it.
fn with_list(name: &str, list: &str, scenario: &str) -> Result<Scenario, String> {
    let folder = std::env::temp_dir().join(format!("stipend-nodes-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for the test");
    std::fs::write(folder.join("nodes.csv"), list).expect("the list");
    std::fs::write(folder.join("s.toml"), scenario).expect("the scenario");
    let read = Scenario::load(&folder.join("s.toml"), &[]).map_err(|error| error.to_string());
    std::fs::remove_dir_all(&folder).expect("the folder is ours");
    read
}

#[test]
fn nodes_from_a_list_make_pools() {
    let list = "sn,cpu_milli,memory_mib,gpu,model\nn-0,64000,262144,2,P100\nn-1,96000,393216,8,V100\nn-2,96500,393216,0,\nn-3,64000,262144,2,P100\n";
    let head = [HEAD, "node_list = \"nodes.csv\"\n", LAB, &WORK.replace("2x8", "1x8")].concat();
    let scenario = with_list("pools", list, &head).expect("right");
    assert_eq!(scenario.labels.pools, ["P100", "V100", "cpu"]);
    assert_eq!(scenario.labels.nodes, ["n-0", "n-3", "n-1", "n-2"]);
    assert_eq!(scenario.pools.iter().map(|pool| pool.cpus_per_gpu).collect::<Vec<_>>(), [None, None, Some(2)]);
    let first = &scenario.nodes[0];
    assert_eq!((first.gpus, first.cpus, first.memory >> 30, scenario.nodes[3].gpus), (2, 64, 256, 48));
    assert_eq!(scenario.capacity(), Gpus(12), "those with GPUs");
}

#[test]
fn nodes_from_a_list_of_ones_own() {
    let list = "Name,Count,GPUs,Block,Features,Express,rack\nrow,3,8,b1,nvlink|fast,false,7\nlast,1,4,b2,,true,8\n";
    let pool = "[pool]\nname = \"main\"\nfile = \"nodes.csv\"\n";
    let work = WORK.replace("gang", "features = [\"fast\"]\ngang");
    let scenario = with_list("own", list, &[HEAD, pool, LAB, &work].concat()).expect("right");
    assert_eq!((scenario.labels.nodes.join(" "), scenario.labels.pools.join(" ")), ("row-0 row-1 row-2 last".into(), "main".into()));
    assert!(scenario.nodes[0].block == scenario.nodes[2].block && scenario.nodes[2].block != scenario.nodes[3].block);
    assert!(scenario.nodes[3].express && listed(&scenario).gang.features.0 == 0b10);
    let bad = with_list("bad", "gpus\n8\n-1\n", &[HEAD, pool, LAB, WORK].concat()).expect_err("not a number");
    assert!(bad.ends_with("nodes.csv: line 3: gpus = -1: expected a whole number that is not negative"), "{bad}");
    let bad = with_list("none", "name,rack\na,1\n", &[HEAD, pool, LAB, WORK].concat()).expect_err("no GPUs");
    assert!(bad.contains("the columns are name, rack; one of gpus, gpu, cpus, cpu or cpu_milli is needed"), "{bad}");
}
