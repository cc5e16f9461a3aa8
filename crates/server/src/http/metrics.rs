//! `/metrics`, as Prometheus and OpenMetrics read it.

use super::access::Known;
use super::refusal::Reply;
use super::{Api, TAG_DAEMON};
use crate::wire::budget::Tree;
use crate::wire::error::{Code, Problem};
use crate::wire::node::{Node, Pool};
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

type Number = Gauge<f64, AtomicU64>;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfPool {
    pool: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfBudget {
    pool: String,
    budget: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfNodes {
    pool: String,
    state: String,
}

/// Measures of the daemon, the pools and the budgets.
#[utoipa::path(
    get, path = "/metrics", tag = TAG_DAEMON,
    responses((status = 200, body = String, content_type = "application/openmetrics-text")),
)]
pub(super) async fn metrics(State(api): State<Arc<Api>>, _: Known) -> Reply<Response> {
    let (pools, tree, nodes) = (api.pools().await?, api.tree().await?, api.nodes().await?);
    let mut registry = Registry::with_prefix("stipend");
    api.tally.register(&mut registry);
    let pulse = api.handle.pulse();
    registry.register_with_unit("cycle", "Time of a decision of the scheduler", Unit::Seconds, pulse.cycles.clone());
    registry.register_with_unit("commit", "Time until a transaction was on disk", Unit::Seconds, pulse.commits.clone());
    register_pools(&mut registry, &pools);
    register_budgets(&mut registry, &tree);
    register_nodes(&mut registry, &nodes);
    let mut text = String::new();
    encode(&mut text, &registry).map_err(|error| Problem::new(Code::Internal, format!("the metrics cannot be written: {error}")))?;
    Ok(([(header::CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], text).into_response())
}

/// Fills one family of gauges.
fn gauges<L: EncodeLabelSet + Clone + Eq + std::hash::Hash + std::fmt::Debug + Send + Sync + 'static>(
    registry: &mut Registry,
    (name, help): (&str, &str),
    values: impl Iterator<Item = (L, f64)>,
) {
    let family = Family::<L, Number>::default();
    values.for_each(|(labels, value)| {
        family.get_or_create(&labels).set(value);
    });
    registry.register(name, help, family);
}

fn register_pools(registry: &mut Registry, pools: &[Pool]) {
    let mut gauge = |name: &str, help: &str, value: &dyn Fn(&Pool) -> f64| {
        gauges(registry, (name, help), pools.iter().map(|pool| (OfPool { pool: pool.name.clone() }, value(pool))));
    };
    let ratio = |part: u32, whole: u32| if whole == 0 { 0.0 } else { f64::from(part) / f64::from(whole) };
    gauge("gpus", "GPUs of all nodes", &|pool| pool.gpus.into());
    gauge("gpus_available", "GPUs of healthy nodes", &|pool| pool.gpus_available.into());
    gauge("gpus_allocated", "GPUs under charged leases", &|pool| pool.gpus_allocated.into());
    gauge("gpus_unallocated", "GPUs under leases that are not charged", &|pool| pool.gpus_unallocated.into());
    gauge("availability_ratio", "GPUs of healthy nodes of all GPUs", &|pool| ratio(pool.gpus_available, pool.gpus));
    gauge("occupancy_ratio", "GPUs given to a workload of all available GPUs", &|pool| {
        ratio(pool.gpus_allocated + pool.gpus_unallocated, pool.gpus_available)
    });
    gauge("workloads_waiting", "Workloads that wait", &|pool| pool.waiting.into());
    gauge("gpus_waiting", "GPUs that they ask for", &|pool| pool.waiting_gpus as f64);
}

fn register_budgets(registry: &mut Registry, tree: &Tree) {
    let of_pools = || tree.budgets.iter().flat_map(|budget| budget.pools.iter().map(move |pool| (budget, pool)));
    let labels = |path: &str, pool: &str| OfBudget { pool: pool.into(), budget: path.into() };
    let standings = of_pools().filter_map(|(budget, pool)| Some((labels(&budget.path, &pool.pool), pool.standing?)));
    gauges(registry, ("budget_standing", "Used, lapsed and committed by what the budget is entitled to; 1 is what it is owed"), standings);
    let claims = of_pools().map(|(budget, pool)| (labels(&budget.path, &pool.pool), pool.claim));
    gauges(registry, ("budget_claim_ratio", "The budget's part of the pool"), claims);
    let allocated = of_pools().map(|(budget, pool)| (labels(&budget.path, &pool.pool), pool.allocated_gpus.into()));
    gauges(registry, ("budget_gpus_allocated", "GPUs of its allocated work"), allocated);
    let unallocated = of_pools().map(|(budget, pool)| (labels(&budget.path, &pool.pool), pool.unallocated_gpus.into()));
    gauges(registry, ("budget_gpus_unallocated", "GPUs of its unallocated work"), unallocated);
    let waiting = of_pools().map(|(budget, pool)| (labels(&budget.path, &pool.pool), pool.waiting_gpus as f64));
    gauges(registry, ("budget_gpus_waiting", "GPUs that its waiting work asks for"), waiting);
}

fn register_nodes(registry: &mut Registry, nodes: &[Node]) {
    let family = Family::<OfNodes, Number>::default();
    for node in nodes {
        family.get_or_create(&OfNodes { pool: node.pool.clone(), state: node.state.clone() }).inc();
    }
    registry.register("nodes", "Nodes by state", family);
}
