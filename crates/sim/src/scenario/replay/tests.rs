//! Traces in scenarios: which budgets and pools their rows come to.

use super::super::Scenario;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use stipend_core::id::BudgetId;
use stipend_core::quantity::Ppm;
use stipend_core::spec::{Gang, WorkloadSpec};

const HEAD: &str = "name = \"t\"\ndescription = \"d\"\nmeasure = \"1d\"\n";

const POOLS: &str = "[[pools]]\nname = \"new\"\nmodel = \"H100\"\nnodes = 2\n[[pools]]\nname = \"old\"\nnodes = 4\ngpus_per_node = 4\n\
                     [[pools]]\nname = \"cpu\"\nunit = \"cpu\"\nnodes = 2\ncpus = 128\n";

const SLURM: &str = "JobID|Account|User|Partition|QOS|State|Submit|Start|End|NNodes|NCPUS|AllocTRES\n\
    1|bio|ann|short|high|COMPLETED|1000|1000|4600|1|8|gres/gpu:h100=8\n\
    2|bio|ann|long|low|COMPLETED|1000|1000|4600|1|8|gres/gpu:old=4\n\
    3|chem|bob|long|low|COMPLETED|1000|1000|8200|3|12|gres/gpu=12\n\
    4|chem|bob|night/run|low|COMPLETED|1000|1000|4600|2|100|cpu=100\n\
    5|geo|eve|long|low|COMPLETED|1000|1000|4600|1|8|gres/gpu:k80=2\n\
    6|geo|eve|long|low|COMPLETED|1000|1000|4600|1||billing=1\n";

/// A scenario with a trace beside it.
fn with_trace(trace: &str, scenario: &[&str]) -> Result<Scenario, String> {
    static FOLDERS: AtomicU32 = AtomicU32::new(0);
    let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
    let folder: PathBuf = std::env::temp_dir().join(format!("stipend-replay-{}-{number}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for the test");
    std::fs::write(folder.join("jobs"), trace).expect("the trace");
    std::fs::write(folder.join("s.toml"), scenario.concat()).expect("the scenario");
    let read = Scenario::load(&folder.join("s.toml"), &[]).map_err(|error| error.to_string());
    std::fs::remove_dir_all(&folder).expect("the folder is ours");
    read
}

fn specs(scenario: &Scenario) -> Vec<WorkloadSpec> {
    let (trace, rules) = scenario.trace.as_ref().expect("it replays one");
    (0..).zip(&trace.rows).map(|(number, row)| (*rules.job(row, number, trace.named_family(row)).spec).clone()).collect()
}

/// Path and share of each budget in a pool.
fn shares(scenario: &Scenario, pool: usize) -> Vec<(&str, u32)> {
    let share = |id: BudgetId| scenario.budgets[id.index()].pools[pool].share.0 / 1000;
    scenario.budgets.iter().map(|budget| (scenario.labels.budgets[budget.id.index()].as_str(), share(budget.id))).collect()
}

fn remarks(scenario: &Scenario) -> String {
    scenario.trace().expect("it replays one").remarks().join("\n")
}

#[test]
fn columns_of_a_slurm_log_become_levels_of_the_tree() {
    let trace = "[trace]\nfile = \"jobs\"\nshares = \"usage\"\nbudget = \"site/{partition}/{account}\"\n";
    let scenario = with_trace(SLURM, &[HEAD, "[pool]\nnodes = 8\n", trace]).expect("right");
    // 8, 4, 24 and 2 GPU-hours: 38 in all, 30 in `long`.
    assert_eq!(
        shares(&scenario, 0),
        [("site", 1000), ("site/short", 210), ("site/short/bio", 1000), ("site/long", 789), ("site/long/bio", 133)]
            .into_iter()
            .chain([("site/long/chem", 800), ("site/long/geo", 66)])
            .collect::<Vec<_>>()
    );
    let paths: Vec<&str> = specs(&scenario).iter().map(|spec| scenario.labels.budgets[spec.budget.index()].as_str()).collect();
    assert_eq!(paths, ["site/short/bio", "site/long/bio", "site/long/chem", "site/long/geo"]);
    // The team is a column like the others, in any place, and a name is one part of the path whatever is in it.
    let trace = "[trace]\nfile = \"jobs\"\nshares = \"equal\"\nteam_from = \"qos\"\nbudget = \"{team}/x-{partition}\"\n";
    let scenario = with_trace(SLURM, &[HEAD, POOLS, "[[budgets]]\npath = \"low\"\n", trace]).map(|_| ());
    assert!(scenario.expect_err("two roots").contains("there is a root already, `low`"));
    let trace = trace.replace("{team}/", "low/{team}/");
    let scenario = with_trace(SLURM, &[HEAD, POOLS, &trace]).expect("right");
    let paths = &scenario.labels.budgets;
    assert_eq!(paths[1..], ["low/high", "low/high/x-short", "low/low", "low/low/x-long", "low/low/x-night-run"]);
}

#[test]
fn rules_and_shares_name_a_team_of_several_columns_with_a_slash() {
    let trace = "[trace]\nfile = \"jobs\"\nbudget = \"site/{partition}/{account}\"\n[trace.teams.\"long/chem\"]\nunallocated = 1\n\
                 [[budgets]]\npath = \"site\"\n[[budgets]]\npath = \"site/long\"\nshare = 60\n[[budgets]]\npath = \"site/long/chem\"\nshare = 50\n";
    let scenario = with_trace(SLURM, &[HEAD, "[pool]\nnodes = 8\n", trace]).expect("right");
    assert_eq!(specs(&scenario).iter().map(|spec| spec.min_runtime.0).collect::<Vec<_>>(), [0]);
    assert!(scenario.trace().unwrap().notes().contains("budget = \"site/short/bio\": there is no such budget"));
}

#[test]
fn only_a_slurm_log_has_columns_that_become_levels() {
    let trace = "[trace]\nfile = \"jobs\"\nshares = \"usage\"\nbudget = \"site/{partition}/{team}\"\n";
    let message = with_trace("submit_s,work_s,gpus,team\n0,60,1,a\n", &[HEAD, "[pool]\nnodes = 8\n", trace]).expect_err("no such column");
    assert!(message.contains("s.toml:9: `budget = \"site/{partition}/{team}\"`: ") && message.ends_with("write {team}"), "{message}");
}

#[test]
fn work_without_gpus_goes_to_pools_of_cpus() {
    let trace = "[trace]\nfile = \"jobs\"\nshares = \"usage\"\n";
    let scenario = with_trace(SLURM, &[HEAD, POOLS, trace]).expect("right");
    let spec = specs(&scenario).into_iter().find(|spec| spec.pools.first.index() == 2).expect("one needs CPUs only");
    // Two nodes with 50 CPUs each; of 128 CPUs two are counted as one.
    assert_eq!((spec.gang, spec.pools.iter().count()), (Gang::new(2, 25), 1));
    assert_eq!(shares(&scenario, 2), [("trace", 1000), ("trace/bio", 0), ("trace/chem", 1000), ("trace/geo", 0)]);
    assert_eq!(shares(&scenario, 0), [("trace", 1000), ("trace/bio", 315), ("trace/chem", 631), ("trace/geo", 52)]);
    assert!(
        remarks(&scenario)
            .contains("1 rows are left aside: jobs without a GPU that do not say how many CPUs they had (the first in line 7)")
    );
    let without = with_trace(SLURM, &[HEAD, "[pool]\nnodes = 8\n", trace]).expect("right");
    assert_eq!(specs(&without).len(), 4);
    assert!(remarks(&without).contains("2 rows are left aside: jobs without a GPU: a scenario with a pool of CPUs takes them"));
}

#[test]
fn pools_are_found_by_name_or_model_in_the_order_of_the_row() {
    let pods = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n\
        a,1000,1,1,1000,,LS,Running,0,60,0\nb,1000,1,1,1000,OLD|A10|h100,LS,Running,0,60,0\n\
        c,1000,1,1,1000,A10|P4,LS,Running,0,60,0\nd,120000,1,0,0,,LS,Running,0,60,0\n";
    let trace = "[trace]\nfile = \"jobs\"\nshares = \"usage\"\npools = [\"old\"]\n";
    let scenario = with_trace(pods, &[HEAD, POOLS, trace]).expect("right");
    let orders: Vec<Vec<usize>> = specs(&scenario).iter().map(|spec| spec.pools.iter().map(|pool| pool.index()).collect()).collect();
    assert_eq!(orders, [vec![1], vec![1, 0], vec![1], vec![2]]);
    assert!(remarks(&scenario).contains("1 rows ask for `A10`, `P4`, and no pool has that name or model"), "{}", remarks(&scenario));
    // With one pool there is nothing to tell apart.
    let scenario = with_trace(pods, &[HEAD, "[pool]\nnodes = 2\n[trace]\nfile = \"jobs\"\nshares = \"usage\"\n"]).expect("right");
    assert!(!remarks(&scenario).contains("A10"), "{}", remarks(&scenario));
}

/// The widest node counts of the pools that the row accepts, not one of others: 64 parts of a node of CPUs are no GPUs.
#[test]
fn rows_are_cut_by_the_nodes_of_their_own_pools() {
    let csv = "submit_s,work_s,gpus,team,pools\n0,60,16,a,h100\n0,60,8,a,old\n0,60,8,a,old|h100\n";
    let trace = "[trace]\nfile = \"jobs\"\nshares = \"equal\"\n";
    let scenario = with_trace(csv, &[HEAD, POOLS, trace]).expect("right");
    assert_eq!(specs(&scenario).iter().map(|spec| spec.gang).collect::<Vec<_>>(), [Gang::new(2, 8), Gang::new(2, 4), Gang::new(1, 8)]);
    assert_eq!(scenario.budgets[1].pools[2].share, Ppm::ONE);
}
