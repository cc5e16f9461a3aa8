//! Small scenarios in which it is known what would have to be different.

use super::{Blocked, Explained, Unexplained, WaitingIn, explain};
use crate::scenario::{Scenario, time};

/// Two nodes of 8 GPUs, and teams `a` and `b` with a half each.
fn run(workloads: &str, at: &str, name: &str) -> Result<Explained, Unexplained> {
    run_with("", workloads, at, name)
}

/// The same with more said of the pool.
fn run_with(pool: &str, workloads: &str, at: &str, name: &str) -> Result<Explained, Unexplained> {
    let text = format!(
        "name = \"t\"\ndescription = \"d\"\nmeasure = \"2d\"\n[pool]\nnodes = 2\n{pool}\n[[budgets]]\npath = \"lab\"\n\
         [[budgets]]\npath = \"lab/a\"\nshare = 50\n[[budgets]]\npath = \"lab/b\"\nshare = 50\n{workloads}"
    );
    let scenario = Scenario::parse("t.toml", &text, &[]).unwrap_or_else(|error| panic!("{error}"));
    explain(&scenario, 1, time(at).expect("a time"), name, None)
}

fn workload(name: &str, budget: &str, more: &str) -> String {
    format!("[[workloads]]\nname = \"{name}\"\nbudget = \"lab/{budget}\"\n{more}\n")
}

fn instead(workloads: &[String], at: &str, name: &str) -> Vec<String> {
    let explained = run(&workloads.concat(), at, name).expect("it is there");
    let waiting = explained.waiting.unwrap_or_else(|| panic!("{name} is {}", explained.state));
    waiting.counterfactuals.into_iter().map(|one| one.text).collect()
}

/// What certainly ends before a node drains may start there: its limit may be 5:00 less the ten minutes that a start may take.
#[test]
fn a_shorter_time_limit_fits_before_a_drain() {
    let drain = "[[happenings]]\nat = \"0:30\"\nwhat = \"drain\"\nnode = 0\nseverity = \"maintenance\"\nreason = \"new cables\"\n";
    let workloads = [
        workload("keeps", "a", "gang = \"1x4\"\nmin_runtime = \"5h\"\nwork = \"9h\""),
        workload("full", "b", "gang = \"1x8\"\nmin_runtime = \"8h\"\nwork = \"9h\""),
        workload(
            "asks",
            "a",
            "at = \"1:00\"\ngang = \"1x4\"\nmin_runtime = \"8h\"\ntime_limit = \"8h\"\non_preempt = \"end\"\nwork = \"8h\"",
        ),
        drain.to_owned(),
    ];
    let texts = instead(&workloads, "1:00", "asks");
    assert_eq!(texts[0], "with a time limit of 3 h 50 min it would start now on n0; with 3 h 51 min it would not", "{texts:?}");
}

/// A contract of at most 15 minutes may run on an express node.
#[test]
fn a_shorter_contract_may_run_on_an_express_node() {
    let workloads = [
        workload("full", "b", "gang = \"1x8\"\nmin_runtime = \"8h\"\nwork = \"9h\""),
        workload("asks", "a", "at = \"1:00\"\ngang = \"1x4\"\nmin_runtime = \"6h\"\nwork = \"8h\""),
    ];
    let explained = run_with("express_nodes = 1", &workloads.concat(), "1:00", "asks").expect("it is there");
    let texts: Vec<String> = explained.waiting.expect("it waits").counterfactuals.into_iter().map(|one| one.text).collect();
    assert_eq!(texts[0], "with a min runtime of 15 min it would start now on n1; with 16 min it would not", "{texts:?}");
    assert_eq!(texts[1], "unallocated (min runtime 0, never charged, never protected) it would start now on n1", "{texts:?}");
}

/// An eviction that loses 65 minutes of 8 GPUs is worth a quarter of a contract of 4 h 20 min, and of a longer one.
#[test]
fn a_longer_contract_makes_an_eviction_worth_it() {
    let workloads = [
        workload("old", "a", "gang = \"1x8\"\nmin_runtime = \"1h\"\nwork = \"20h\"\non_preempt = \"restart\"\ncount = 2"),
        workload("asks", "b", "at = \"1:00\"\ngang = \"1x8\"\nmin_runtime = \"2h\"\nwork = \"8h\""),
    ];
    let texts = instead(&workloads, "1:00", "asks");
    assert_eq!(
        texts[0],
        "with a min runtime of 4 h 20 min it would start on n0 by 1:02, by preempting 1 lease; with 4 h 19 min it would not"
    );
}

/// lab/a may hold 8 GPUs, and has 6; "asks" for 8 more.
fn capped(start: &str) -> Scenario {
    let capped = "[[workloads]]\nname = \"first\"\nbudget = \"lab/a\"\ngang = \"1x6\"\nmin_runtime = \"4h\"\nwork = \"9h\"\n";
    let asks = format!("at = \"0:30\"\ngang = \"1x8\"\nmin_runtime = \"4h\"\nwork = \"4h\"\nstart = \"{start}\"");
    let text = format!(
        "name = \"t\"\ndescription = \"d\"\nmeasure = \"2d\"\n[pool]\nnodes = 2\n[[budgets]]\npath = \"lab\"\n\
         [[budgets]]\npath = \"lab/a\"\nshare = 50\ngpus_max = 8\n{capped}{}",
        workload("asks", "a", &asks)
    );
    Scenario::parse("t.toml", &text, &[]).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn work_before_its_turn_says_what_its_turn_waits_for() {
    let explained = explain(&capped("whenever"), 1, time("1h").expect("a time"), "asks", None).expect("it runs");
    let page = explained.to_string();
    let running = explained.running.expect("it runs");
    assert_eq!(running.turn, ["the cap of lab/a on 8 GPUs at once is reached (6 in use); it frees when that budget's own work ends"]);
    assert!(page.contains("not before its turn") && page.contains("its turn"), "{page}");
}

#[test]
fn a_cap_a_smaller_gang_and_no_contract() {
    let explained = explain(&capped("guaranteed"), 1, time("1h").expect("a time"), "asks", None).expect("it waits");
    let texts: Vec<String> = explained.waiting.expect("it waits").counterfactuals.into_iter().map(|one| one.text).collect();
    assert_eq!(
        texts,
        [
            "with 2 GPUs it would start now on n0; with 3 it would not",
            "unallocated (min runtime 0, never charged, never protected) it would start now on n1",
            "with a cap of lab/a on 14 GPUs, instead of 8, it would start now on n1",
        ]
    );
}

#[test]
fn who_could_take_a_lease_and_by_which_licence() {
    let workloads = [
        workload("old", "a", "gang = \"1x8\"\nmin_runtime = \"1h\"\nwork = \"20h\"\non_preempt = \"restart\"\ncount = 2"),
        workload("asks", "b", "at = \"0:30\"\ngang = \"1x8\"\nmin_runtime = \"1h\"\nwork = \"8h\""),
    ];
    let protected = run(&workloads.concat(), "0:59", "old-1").expect("it runs").running.expect("it runs");
    assert!(protected.is_protected && protected.takers.is_empty());
    let past = run(&workloads.concat(), "1:30", "old-1").expect("it runs");
    let running = past.running.clone().expect("it runs");
    assert!(!running.is_protected && running.takers.len() == 1);
    assert_eq!((running.takers[0].workload.as_str(), running.takers[0].loss_limit_gpu_hours), ("asks", Some(2.0)));
    assert!(past.to_string().contains("asks of lab/b: a leaf below its share may"), "{past}");
}

#[test]
fn what_is_not_there() {
    let one = workload("asks", "a", "at = \"3:00\"\ngang = \"1x8\"\nmin_runtime = \"1h\"\nwork = \"1h\"");
    let message = |at: &str, name: &str| run(&one, at, name).expect_err("it is not there").to_string();
    assert_eq!(message("1:00", "asks"), "workload asks: it is submitted at 3:00, and has not been at 1:00");
    assert_eq!(message("1:00", "aks"), "workload aks: the scenario has no such workload; did you mean asks?");
    assert_eq!(message("4:00", "w7"), "workload w7: it has not been submitted by 4:00; the last until then is asks");
    assert_eq!(message("3d", "asks"), "at 72:00: the scenario ends at 48:00");
}

#[test]
fn no_line_is_too_wide() {
    let long = "a_budget_with_quite_a_long_name";
    let text = format!(
        "name = \"t\"\ndescription = \"d\"\nmeasure = \"2d\"\n[pool]\nnodes = 2\n[[budgets]]\npath = \"lab\"\n[[budgets]]\npath = \"lab/{long}\"\nshare = 50\n{}",
        workload("asks", long, "gang = \"2x8\"\nmin_runtime = \"1h\"\nwork = \"8h\"\ncount = 3")
    );
    let scenario = Scenario::parse("t.toml", &text, &[]).unwrap_or_else(|error| panic!("{error}"));
    for name in ["asks-1", "asks-2", "asks-3"] {
        let text = explain(&scenario, 1, time("9:30").expect("a time"), name, None).expect("it is there").to_string();
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(80), "{widest:?}:\n{text}");
    }
}

/// The largest gang is promised a start: by when and where is said in place of what is only likely.
#[test]
fn a_promised_start_is_said() {
    let pool = "[[pool.groups]]\nnodes = 4\ngpus = 8";
    let workloads = [
        workload("full", "b", "gang = \"1x8\"\nmin_runtime = \"8h\"\nwork = \"20h\"\ncount = 6"),
        workload("huge", "a", "at = \"1:00\"\ngang = \"5x8\"\nmin_runtime = \"8h\"\nwork = \"9h\""),
        workload("asks", "a", "at = \"1:00\"\ngang = \"1x8\"\nmin_runtime = \"8h\"\nwork = \"9h\""),
    ];
    let promised = run_with(pool, &workloads.concat(), "1:10", "huge").expect("it is there");
    let there = &promised.waiting.as_ref().expect("it waits").pools[0];
    assert_eq!((there.latest_start.as_deref(), there.reserved_nodes.len()), (Some("8:02"), 5), "{promised}");
    let text = promised.to_string();
    assert!(
        text.contains("when     it starts at 8:02 at the latest, on n0, n1, n2 and 2 other nodes; they\n         are reserved for it"),
        "{text}"
    );
    assert!(!text.contains("estimate"), "{text}");
    assert!(text.contains("promised to start by 8:02 at the latest"), "{text}");
    let started = run_with(pool, &workloads.concat(), "8:10", "huge").expect("it is there").to_string();
    assert!(
        started.contains("started on the nodes that were reserved for it") && started.contains("its promise is over, as it starts"),
        "{started}"
    );
    let other = run_with(pool, &workloads.concat(), "1:10", "asks").expect("it is there");
    let there = &other.waiting.as_ref().expect("it waits").pools[0];
    assert!(
        there.latest_start.is_none()
            && there.reserved_nodes.is_empty()
            && other.to_string().contains("when     an estimate: from 8:00 on as many"),
        "{other}"
    );
}

/// Where work accepts several pools, each is told by its name, and only there.
#[test]
fn several_pools_are_told_one_by_one() {
    let workloads = [
        workload("full", "b", "gang = \"2x8\"\nmin_runtime = \"8h\"\nwork = \"9h\""),
        workload("asks", "a", "at = \"1:00\"\ngang = \"1x8\"\nmin_runtime = \"1h\"\nwork = \"8h\""),
    ];
    let mut explained = run(&workloads.concat(), "1:00", "asks").expect("it is there");
    assert!(!explained.to_string().contains("p0"), "{explained}");
    let request = explained.request.as_mut().expect("it was accepted");
    request.pools.push("h100".into());
    let waiting = explained.waiting.as_mut().expect("it waits");
    waiting.pools.push(WaitingIn { pool: "h100".into(), blockers: vec![Blocked { text: "too small".into() }], ..waiting.pools[0].clone() });
    let text = explained.to_string();
    for told in
        ["1x8 GPUs, in p0, else h100, min runtime 1 h", "because  in p0: needs 8 GPUs; 0 are within reach", "because  in h100: too small"]
    {
        assert!(text.contains(told), "{told}: {text}");
    }
}
