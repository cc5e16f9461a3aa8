//! One self-contained page of a run: the table, what was owed and delivered over time, waits, and who ran where and why.
//!
//! The page opens from a file, without a network. It is made of `assets/`, plain HTML, CSS and JavaScript that need no build step, and of the
//! run's data: small things as JSON, the rest as deflated columns in base64. The figures are those of [`crate::metrics`], the reasons those
//! of the event log; the page computes neither.

mod columns;
mod encode;
mod html;
mod reasons;
mod recorder;
#[cfg(test)]
mod tests;

use crate::metrics::Metrics;
use crate::result::RunResult;
use crate::scenario::Scenario;
use columns::Block;
use encode::seconds;
pub use recorder::Recorder;
use serde::Serialize;

/// What the page carries of one policy.
#[derive(Clone, Debug)]
pub struct Drawn {
    facts: PolicyFacts,
    figures: Block,
    gantt: Block,
}

/// What is small, as JSON.
#[derive(Clone, Debug, Serialize)]
struct PolicyFacts {
    policy: String,
    end: i64,
    leases: usize,
    budgets: Vec<BudgetFacts>,
    nodes: Vec<NodeFacts>,
    /// Templates of reasons.
    templates: Vec<String>,
    /// In the order of the outages' columns.
    outage_reasons: Vec<String>,
}

#[derive(Clone, Debug, Serialize)]
struct BudgetFacts {
    path: String,
    leaf: bool,
    claim: f64,
}

#[derive(Clone, Debug, Serialize)]
struct NodeFacts {
    id: u32,
    name: String,
    pool: u16,
    gpus: u32,
    express: bool,
}

/// What is the same under every policy.
#[derive(Serialize)]
struct Facts<'a> {
    title: String,
    seed: u64,
    seeds: usize,
    capacity: u32,
    /// When measuring began, in seconds since the start of the run.
    from: i64,
    budgets: &'a [String],
    users: &'a [String],
    /// Names that workloads have besides their numbers, the first ones.
    workloads: &'a [String],
    policies: Vec<&'a PolicyFacts>,
}

impl Drawn {
    /// What to draw of a run that has ended.
    pub fn new(policy: &str, recorder: &Recorder, metrics: &Metrics) -> Drawn {
        let budgets = metrics.series().into_iter();
        let facts = PolicyFacts {
            policy: policy.to_owned(),
            end: seconds(recorder.end),
            leases: recorder.drawn().count(),
            budgets: budgets.map(|budget| BudgetFacts { path: budget.path, leaf: budget.leaf, claim: budget.claim }).collect(),
            nodes: recorder
                .nodes
                .iter()
                .map(|(id, node)| NodeFacts {
                    id: id.0,
                    name: recorder.names.node(*id),
                    pool: node.pool.0,
                    gpus: node.gpus,
                    express: node.express,
                })
                .collect(),
            templates: recorder.reasons.templates().to_vec(),
            outage_reasons: recorder.outages.iter().map(|outage| outage.reason.clone()).collect(),
        };
        Drawn { facts, figures: encode::figures(metrics), gantt: encode::gantt(recorder) }
    }
}

/// The page. `runs` is one result a seed; `drawn` is what to draw, of the first seed, one a policy in the order of the results.
pub fn page(scenario: &Scenario, runs: &[RunResult], drawn: &[Drawn]) -> String {
    let facts = Facts {
        title: crate::report::table::title(runs),
        seed: runs[0].seed,
        seeds: runs.len(),
        capacity: runs[0].capacity_gpus,
        from: seconds(scenario.measure_from()),
        budgets: &scenario.labels.budgets,
        users: &scenario.labels.users,
        workloads: &scenario.labels.workloads,
        policies: drawn.iter().map(|drawn| &drawn.facts).collect(),
    };
    let json = serde_json::to_string(&facts).expect("facts are JSON");
    html::assemble(&scenario.description, runs, &json, drawn)
}
