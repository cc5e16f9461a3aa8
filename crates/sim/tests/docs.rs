//! The reference pages say what the program does: every name occurs, defaults are the program's, examples can be read, figures are computed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use stipend_core::Scheduler;
use stipend_core::entry::Entry;
use stipend_core::event::Event;
use stipend_core::id::{BlockId, BudgetId, LeaseId, NodeId, PoolId, UserId, WorkloadId};
use stipend_core::knobs::Knobs;
use stipend_core::quantity::{Ppm, Span, Time};
use stipend_core::spec::{BudgetSpec, Changeset, Features, Gang, LeafOrder, NodeSpec, PoolShare, WorkloadSpec};
use stipend_sim::log::knobs::Policy;
use stipend_sim::metrics::Metrics;
use stipend_sim::scenario::Scenario;
use stipend_sim::sweep::{Axis, Combination, SweepResult};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository is there")
}

fn page(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The part of a page below a heading, up to the next of the same level or above.
fn section<'a>(page: &'a str, heading: &str) -> &'a str {
    let (_, below) = page.split_once(&format!("\n{heading}\n")).unwrap_or_else(|| panic!("there is no heading `{heading}`"));
    let level = heading.chars().take_while(|c| *c == '#').count();
    let end = (1..=level).filter_map(|n| below.find(&format!("\n{} ", "#".repeat(n)))).min().unwrap_or(below.len());
    &below[..end]
}

/// The first cells of the rows of a page's tables: what stands in back quotes in them.
fn first_cells(page: &str) -> BTreeSet<String> {
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    rows.flat_map(|row| row.split(" | ").next().unwrap_or_default().split('`').skip(1).step_by(2).map(str::to_owned)).collect()
}

/// A scenario of these top-level fields and tables, and of what it needs otherwise.
fn parse(top: &str, tables: &str) -> Result<Scenario, String> {
    let text = format!(
        "{top}\nname = \"t\"\ndescription = \"d\"\nmeasure = \"1d\"\n[[budgets]]\npath = \"lab\"\n\
         [[workloads]]\nname = \"w\"\nbudget = \"lab\"\ngang = \"1\"\nwork = \"1h\"\n{tables}"
    );
    Scenario::parse("t.toml", &text, &[]).map_err(|error| error.to_string())
}

/// The fields of a part of the scenario, from the program's own answer to one that is not there.
fn fields(top: &str, table: &str) -> BTreeSet<String> {
    let message = parse(top, table).expect_err("no such field");
    let (_, expected) = message.split_once("expected ").unwrap_or_else(|| panic!("{message}"));
    let list = expected.split("; did you mean").next().unwrap_or_default();
    list.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn every_field_of_a_scenario_is_in_the_reference() {
    let page = page("docs/reference/scenario.md");
    let parts = [
        ("## Top level", fields("zzzz = 1", "")),
        ("## `[pool]`", fields("", "[pool]\nzzzz = 1")),
        ("### `[[pool.groups]]`", fields("", "[[pool.groups]]\nzzzz = 1")),
        ("## `[[budgets]]`", fields("", "[[budgets]]\nzzzz = 1")),
        ("## `[model]`", fields("", "[model]\nzzzz = 1")),
        ("## `[failures]`", fields("", "[failures]\nzzzz = 1")),
        ("## `[[workloads]]`", fields("", "[[workloads]]\nzzzz = 1")),
        ("## `[[streams]]`", fields("", "[[streams]]\nzzzz = 1")),
        ("## `[lab]`", fields("", "[lab]\nzzzz = 1")),
        ("## `[rivals.estimate]`", fields("", "[rivals.estimate]\nzzzz = 1")),
        ("## `[rivals.priority]`", fields("", "[rivals.priority]\nzzzz = 1")),
        ("## `[rivals.fair_tree]`", fields("", "[rivals.fair_tree]\nzzzz = 1")),
        ("## `[trace]`", fields("", "[trace]\nzzzz = 1")),
    ];
    for (heading, fields) in parts {
        assert!(fields.len() >= 2, "{heading}: {fields:?}");
        let own = section(&page, heading).split("\n### ").next().unwrap_or_default();
        assert_eq!(first_cells(own), fields, "{heading}: left is the page, right the program");
    }
    let behaviours = first_cells(section(&page, "## `[[behaviours]]`"));
    let known: BTreeSet<String> =
        fields("", "[[behaviours]]\nzzzz = 1").union(&fields("", "[[behaviours]]\nwhat = \"zzzz\"")).cloned().collect();
    assert_eq!(behaviours, known, "behaviours: left is the page, right the program");
    let happenings = first_cells(section(&page, "## `[[happenings]]`"));
    let known: BTreeSet<String> =
        fields("", "[[happenings]]\nzzzz = 1").union(&fields("", "[[happenings]]\nat = \"1h\"\nwhat = \"zzzz\"")).cloned().collect();
    assert_eq!(happenings, known, "happenings: left is the page, right the program");
}

/// Rows of a section's table whose default is one value: the field and that value.
fn defaults(page: &str, heading: &str) -> Vec<(String, String)> {
    let rows = section(page, heading).split("\n### ").next().unwrap_or_default().lines().filter(|line| line.starts_with("| `"));
    let cells = rows.filter_map(|row| match row.split(" | ").collect::<Vec<_>>()[..] {
        [name, _, default, _, ..] => Some((name.trim_start_matches("| ").trim_matches('`').to_owned(), default)),
        _ => None,
    });
    let values = cells.filter_map(|(name, default)| {
        Some((name, default.strip_prefix('`')?.strip_suffix('`').filter(|value| !value.contains('`'))?.to_owned()))
    });
    values.collect()
}

#[test]
fn the_defaults_in_the_reference_are_the_program_s() {
    let page = page("docs/reference/scenario.md");
    let closed = "[[streams]]\nbudget = \"lab\"\noutstanding = 3\ngangs = [\"1\"]\nwork = \"1h\"\n";
    let open = "[[workloads]]\nname = \"v\"\nbudget = \"lab\"\ngang = \"1\"\nwork = \"1h\"\n";
    let parts = [
        ("## Top level", "", 2),
        ("## `[pool]`", "[pool]\nnodes = 128\n", 3),
        ("## `[model]`", "[model]\n", 2),
        ("## `[[workloads]]`", open, 8),
        ("## `[[streams]]`", closed, 8),
        ("## `[lab]`", "[lab]\n", 14),
        ("## `[rivals.estimate]`", "[rivals.estimate]\n", 2),
        ("## `[rivals.priority]`", "[rivals.priority]\n", 5),
        ("## `[rivals.fair_tree]`", "[rivals.fair_tree]\n", 14),
    ];
    for (heading, table, least) in parts {
        let defaults = defaults(&page, heading);
        assert!(defaults.len() >= least, "{heading}: {defaults:?}");
        for (name, value) in defaults.iter().filter(|(name, _)| !(heading == "## `[pool]`" && name == "nodes")) {
            let pool = if heading == "## `[pool]`" { "" } else { "[pool]\nnodes = 128\n" };
            let value = quoted(value);
            let top = if heading == "## Top level" { format!("{name} = {value}") } else { String::new() };
            let set = if heading == "## Top level" { String::new() } else { format!("{name} = {value}\n") };
            let with = parse(&top, &format!("{table}{set}{pool}")).unwrap_or_else(|error| panic!("{heading} {name} = {value}: {error}"));
            let without = parse("", &format!("{table}{pool}")).unwrap_or_else(|error| panic!("{heading}: {error}"));
            assert_eq!(shown(&with), shown(&without), "{heading}: {name} = {value} is not the default");
        }
    }
}

/// A word of a choice becomes a text; other values are written as they are.
fn quoted(value: &str) -> String {
    let is_word = value != "true" && value != "false" && value.starts_with(|c: char| c.is_ascii_lowercase());
    if is_word { format!("\"{value}\"") } else { value.to_owned() }
}

fn shown(scenario: &Scenario) -> String {
    format!("{scenario:?}")
}

#[test]
fn every_knob_is_in_the_reference_with_its_default() {
    let page = page("docs/reference/knobs.md");
    let policy = serde_json::to_value(Policy::new("p0".into(), &Knobs::default())).expect("a line of the log");
    let names = policy.as_object().expect("an object").keys().filter(|key| *key != "pool");
    let names: BTreeSet<String> = names.map(|key| key.trim_end_matches("_ms").trim_end_matches("_ppm").to_owned()).collect();
    assert_eq!(first_cells(&page), names, "left is the page, right the program");
    for row in page.lines().filter(|line| line.starts_with("| `")) {
        let mut quoted = row.split('`').skip(1).step_by(2);
        let (name, default) = (quoted.next().expect("a name"), quoted.next().expect("a default"));
        let scenario =
            parse("", &format!("[pool]\nnodes = 1\n[policy]\n{name} = {default}\n")).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(scenario.knobs, Knobs::default(), "{name} = {default} is not the default");
    }
}

#[test]
fn the_example_of_the_reference_is_a_scenario() {
    let page = page("docs/reference/scenario.md");
    let (_, below) = page.split_once("```toml\n").expect("an example");
    let text = below.split("```").next().unwrap_or_default();
    let scenario = Scenario::parse("scenario.md", text, &[]).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(scenario.name, "two-teams");
}

/// All keys of a JSON value, at any depth.
fn keys(value: &serde_json::Value, into: &mut BTreeSet<String>) {
    match value {
        serde_json::Value::Object(map) => map.iter().for_each(|(key, value)| {
            into.insert(key.clone());
            keys(value, into);
        }),
        serde_json::Value::Array(list) => list.iter().for_each(|value| keys(value, into)),
        _ => {}
    }
}

#[test]
fn every_field_of_an_explanation_is_in_the_reference() {
    let whole = page("docs/reference/result.md");
    let page = section(&whole, "## Of an explanation");
    let scenario = Scenario::load(&root().join("scenarios/tiny.toml"), &[]).unwrap_or_else(|error| panic!("{error}"));
    let mut names = BTreeSet::new();
    // One that waits with GPUs it could have, one that runs, one whose GPUs were taken.
    for (at, workload) in [("2:30", "finetune"), ("2:30", "pretrain"), ("0:45", "sweep-1"), ("1:00", "sweep-1")] {
        let at = stipend_sim::scenario::time(at).expect("a time");
        let explained = stipend_sim::explain::explain(&scenario, 1, at, workload, None).unwrap_or_else(|error| panic!("{error}"));
        keys(&serde_json::to_value(explained).expect("a result"), &mut names);
    }
    assert!(names.contains("counterfactuals") && names.contains("takers") && names.contains("preemption"), "{names:?}");
    for name in names {
        let is_there = |name: &str| page.contains(&format!("`{name}`"));
        assert!(is_there(&name) || name.strip_suffix("_ms").is_some_and(is_there), "{name} is not in docs/reference/result.md");
    }
}

#[test]
fn every_field_of_the_result_is_in_the_reference() {
    let page = page("docs/reference/result.md");
    let scenario = Scenario::load(&root().join("scenarios/tiny.toml"), &[]).unwrap_or_else(|error| panic!("{error}"));
    let mut metrics = Metrics::new(scenario.window(true));
    let mut scheduler = Scheduler::new(Time(0));
    stipend_sim::engine::run(&scenario, 1, &mut scheduler, &mut [&mut metrics], None);
    let mut names = BTreeSet::new();
    keys(&serde_json::to_value(metrics.result("budget", std::time::Duration::ZERO)).expect("a result"), &mut names);
    let combination = Combination { values: Vec::new(), results: Vec::new() };
    let sweep = SweepResult { axes: vec![Axis { key: "k".into(), values: Vec::new() }], combinations: vec![combination] };
    keys(&serde_json::to_value(sweep).expect("a result"), &mut names);
    for name in names.into_iter().chain(["scenario", "seed", "capacity_gpus", "sim_days", "policies"].map(str::to_owned)) {
        assert!(page.contains(&format!("`{name}`")), "{name} is not in docs/reference/result.md");
    }
}

#[test]
fn every_event_and_law_is_in_the_reference() {
    let page = page("docs/reference/event-log.md");
    let check = |source: &str, from: &str, to: &str, name: fn(&str) -> Option<&str>| {
        let source = self::page(source);
        let (_, below) = source.split_once(from).expect("it begins so");
        let listed = below.split(to).next().unwrap_or_default();
        let names: Vec<&str> = listed.lines().filter_map(|line| name(line.trim())).collect();
        assert!(names.len() > 10, "{names:?}");
        names.iter().for_each(|name| assert!(page.contains(&format!("| `{name}` |")), "{name} has no row in docs/reference/event-log.md"));
    };
    check("crates/sim/src/log/line.rs", "\nevents! {", "\n}", |line| line.strip_prefix('"')?.split('"').next());
    check("crates/sim/src/audit/findings.rs", "pub enum Law {", "\n}", |line| line.strip_suffix(',').filter(|name| !name.contains(' ')));
}

/// The core with a pool of 128 GPUs, `nlp` funded with 25 % and `vision` with 75 %, each running 64 GPUs from the start.
fn worked_example() -> Scheduler {
    let mut core = Scheduler::new(Time(0));
    let mut log: Vec<Entry> = Vec::new();
    let mut tell = |core: &mut Scheduler, event: Event| core.apply(Time(0), &event, &mut log).expect("a right fact");
    tell(&mut core, Event::KnobsSet { pool: PoolId(0), knobs: Box::default() });
    for node in 0..16 {
        let spec = NodeSpec { pool: PoolId(0), gpus: 8, cpus: 0, memory: 0, block: BlockId(0), features: Features(0), express: false };
        tell(&mut core, Event::NodeJoined { node: NodeId(node), spec });
    }
    let budget = |id, parent: Option<u32>, name: &str, share| BudgetSpec {
        id: BudgetId(id),
        parent: parent.map(BudgetId),
        name: name.into(),
        pools: vec![PoolShare { share: Ppm(share), ..PoolShare::default() }],
        order: LeafOrder::Priority,
        closed: false,
    };
    let budgets = vec![budget(0, None, "lab", 1_000_000), budget(1, Some(0), "nlp", 250_000), budget(2, Some(0), "vision", 750_000)];
    tell(&mut core, Event::BudgetsChanged(Changeset { based_on: 0, author: "a".into(), reason: "r".into(), budgets }));
    for (workload, budget) in [(0, 1), (1, 2)] {
        tell(&mut core, Event::Submitted { workload: WorkloadId(workload), spec: spec(budget, 8, Span::hours(1)) });
    }
    start(&mut core, Time(0), &[0, 1]);
    core
}

fn spec(budget: u32, members: u32, min_runtime: Span) -> Arc<WorkloadSpec> {
    Arc::new(WorkloadSpec::new(BudgetId(budget), UserId(budget), PoolId(0), Gang::new(members, 8), min_runtime))
}

fn start(core: &mut Scheduler, at: Time, workloads: &[u32]) {
    let mut log = Vec::new();
    core.decide(at, &mut log);
    for workload in workloads {
        core.apply(at, &Event::LeaseRunning { lease: LeaseId { workload: WorkloadId(*workload), attempt: 1 } }, &mut log)
            .expect("it started");
    }
}

#[test]
fn the_worked_example_of_the_policy_page_is_what_the_core_computes() {
    let page = page("docs/concepts/policy.md");
    let mut core = worked_example();
    let standing = |core: &Scheduler, budget| core.standing(PoolId(0), BudgetId(budget)).expect("a budget").to_string();
    for (day, label) in [(1, "1 day"), (2, "2 days"), (3, "3 days")] {
        core.decide(Time(Span::days(day).0), &mut Vec::new());
        let row = page.lines().find(|line| line.starts_with(&format!("| {label} |"))).expect("a row a day");
        for budget in [1, 2] {
            assert!(row.contains(&format!("{} |", standing(&core, budget))), "{row}: {}", standing(&core, budget));
        }
    }

    // A commitment counts at once: 16 GPUs for 8 hours, on nodes that come just then (a larger pool entitles to more, from then on only).
    let mut core = worked_example();
    let day = Time(Span::days(1).0);
    core.apply(day, &Event::Cancelled { workload: WorkloadId(1) }, &mut Vec::new()).expect("it runs");
    core.apply(
        day,
        &Event::LeaseEnded { lease: LeaseId { workload: WorkloadId(1), attempt: 1 }, exit: stipend_core::event::Exit::Failed },
        &mut Vec::new(),
    )
    .expect("it was stopped");
    core.apply(day, &Event::Submitted { workload: WorkloadId(2), spec: spec(1, 2, Span::hours(8)) }, &mut Vec::new())
        .expect("a right request");
    let before = standing(&core, 1);
    start(&mut core, day, &[2]);
    let sentence = format!("its standing jumps from {before} to (1,426.3 + 128) / 2,688 = {} in that moment", standing(&core, 1));
    assert!(page.contains(&sentence), "{sentence}");
}
