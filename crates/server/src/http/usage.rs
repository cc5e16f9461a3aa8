//! What budgets got, by hour or day.

use super::access::Known;
use super::extract::Params;
use super::refusal::{Refusal, Reply};
use super::{Api, TAG_BUDGETS};
use crate::wire::budget::Tree;
use crate::wire::error::{Code, Problem};
use crate::wire::usage::{BudgetUsage, Step, Usage, UsageFilter, UsageStep};
use crate::wire::workload::{Filter, Workload};
use axum::Json;
use axum::extract::State;
use jiff::Timestamp;
use std::collections::HashMap;
use std::sync::Arc;

const HOUR_MS: i64 = 3_600_000;

/// Steps in one answer.
const STEPS_MAX: i64 = 1500;

/// GPU-milliseconds by budget, pool and step.
type Sums = HashMap<(String, String), Vec<i64>>;

/// The steps of a period.
#[derive(Clone, Copy)]
struct Steps {
    from_ms: i64,
    step_ms: i64,
    count: i64,
}

impl Steps {
    fn new(filter: &UsageFilter, now_ms: i64) -> Reply<Steps> {
        let (step_ms, default_ms) = match filter.by {
            Step::Hour => (HOUR_MS, 48 * HOUR_MS),
            Step::Day => (24 * HOUR_MS, 30 * 24 * HOUR_MS),
        };
        let to_ms = filter.to_ms.unwrap_or(now_ms);
        let from_ms = filter.from_ms.unwrap_or(to_ms.saturating_sub(default_ms)).div_euclid(step_ms).saturating_mul(step_ms);
        // In 128 bits: the ends may be far apart.
        let count = (i128::from(to_ms) - i128::from(from_ms) + i128::from(step_ms) - 1).div_euclid(step_ms.into());
        match count {
            ..1 => Err(Refusal::invalid(format!("the query: from_ms: {from_ms} is not before to_ms: {to_ms}"))),
            count if count > STEPS_MAX.into() => {
                let message = format!("the query: {count} steps; expected at most {STEPS_MAX}: ask for days, or a shorter period");
                Err(Refusal::invalid(message))
            }
            count => Ok(Steps { from_ms, step_ms, count: count as i64 }),
        }
    }

    fn to_ms(self) -> i64 {
        self.from_ms.saturating_add(self.step_ms.saturating_mul(self.count))
    }

    fn index(self, ms: i64) -> usize {
        ((ms - self.from_ms) / self.step_ms).clamp(0, self.count - 1) as usize
    }
}

/// What budgets got in a period, by hour or day.
#[utoipa::path(
    get, path = "/v1/usage", tag = TAG_BUDGETS, params(UsageFilter),
    responses((status = 200, body = Usage), (status = 404, body = Problem)),
)]
pub(super) async fn usage(State(api): State<Arc<Api>>, _: Known, Params(filter): Params<UsageFilter>) -> Reply<Json<Usage>> {
    let now_ms = Timestamp::now().as_millisecond();
    let steps = Steps::new(&filter, now_ms)?;
    let tree = api.tree().await?;
    check(&tree, &filter)?;
    let pools: Vec<String> = api.pools().await?.iter().map(|pool| pool.name.clone()).collect();
    let (charged, running) = api.past.read(move |records| Ok((records.usage(steps.from_ms, steps.to_ms())?, running(records)?))).await?;
    let paths: HashMap<u32, &str> = tree.budgets.iter().map(|budget| (budget.id, budget.path.as_str())).collect();
    let mut owed = Sums::new();
    for hour in api.handle.owed(steps.from_ms, steps.to_ms()).await? {
        let (Some(path), Some(pool)) = (paths.get(&hour.budget), pools.get(usize::from(hour.pool))) else { continue };
        put(&mut owed, path, pool, steps, hour.hour_ms, hour.gpu_ms);
    }
    let mut sums = Sums::new();
    for hour in charged {
        let (Some(path), Some(pool)) = (paths.get(&hour.budget), pools.get(usize::from(hour.pool))) else { continue };
        add(&mut sums, path, pool, steps, hour.hour_ms, hour.run_gpu_ms + hour.held_gpu_ms);
    }
    // What runs is charged when it ends: until now it is added here.
    for workload in running {
        let gpus = i64::from(workload.members) * i64::from(workload.gpus_per_member);
        let mut at = workload.started_ms.unwrap_or(now_ms).max(steps.from_ms);
        while at < now_ms.min(steps.to_ms()) {
            let end = (at.div_euclid(HOUR_MS) + 1).saturating_mul(HOUR_MS).min(now_ms);
            add(&mut sums, &workload.budget, &workload.pool, steps, at, gpus * (end - at));
            at = end;
        }
    }
    Ok(Json(Usage {
        from_ms: steps.from_ms,
        to_ms: steps.to_ms(),
        step_ms: steps.step_ms,
        budgets: rows(&tree, &filter, steps, (&owed, &sums)),
    }))
}

/// Allocated work that holds GPUs.
fn running(records: &crate::store::Reader) -> Result<Vec<Workload>, Problem> {
    let mut filter = Filter { state: Some("starting,running,stopping".into()), limit: Some(1000), ..Filter::default() };
    let mut found = Vec::new();
    loop {
        let page = records.workloads(&filter)?;
        found.extend(page.items.into_iter().filter(|workload| workload.allocated));
        match page.next {
            Some(next) => filter.cursor = Some(next),
            None => return Ok(found),
        }
    }
}

fn check(tree: &Tree, filter: &UsageFilter) -> Reply<()> {
    let Some(path) = &filter.budget else { return Ok(()) };
    if tree.budgets.iter().any(|budget| budget.path == *path) {
        return Ok(());
    }
    Err(Problem::new(Code::NotFound, format!("there is no budget `{path}`")).hint("stipend budget tree shows all").into())
}

/// Adds to a leaf and everything above it.
fn add(sums: &mut Sums, leaf: &str, pool: &str, steps: Steps, at_ms: i64, gpu_ms: i64) {
    let mut path = Some(leaf);
    while let Some(budget) = path {
        put(sums, budget, pool, steps, at_ms, gpu_ms);
        path = budget.rsplit_once('/').map(|(above, _)| above);
    }
}

fn put(sums: &mut Sums, budget: &str, pool: &str, steps: Steps, at_ms: i64, gpu_ms: i64) {
    let steps_of = sums.entry((budget.into(), pool.into())).or_insert_with(|| vec![0; steps.count as usize]);
    steps_of[steps.index(at_ms)] += gpu_ms;
}

fn rows(tree: &Tree, filter: &UsageFilter, steps: Steps, (owed, sums): (&Sums, &Sums)) -> Vec<BudgetUsage> {
    let hours = |gpu_ms: i64| gpu_ms as f64 / HOUR_MS as f64;
    let below = |path: &str| {
        filter
            .budget
            .as_ref()
            .is_none_or(|budget| path == budget || path.strip_prefix(budget.as_str()).is_some_and(|rest| rest.starts_with('/')))
    };
    let of_pools = tree.budgets.iter().filter(|budget| below(&budget.path));
    let of_pools = of_pools.flat_map(|budget| budget.pools.iter().map(move |pool| (budget, pool)));
    let row = |(budget, pool): (&crate::wire::budget::Budget, &crate::wire::budget::BudgetInPool)| {
        let none = vec![0; steps.count as usize];
        let place = (budget.path.clone(), pool.pool.clone());
        let (owed, sums) = (owed.get(&place).unwrap_or(&none), sums.get(&place).unwrap_or(&none));
        let step = |(index, gpu_ms): (usize, &i64)| UsageStep {
            from_ms: steps.from_ms + steps.step_ms * index as i64,
            delivered_gpu_hours: hours(*gpu_ms),
            owed_gpu_hours: Some(hours(owed[index])),
        };
        BudgetUsage {
            budget: budget.path.clone(),
            pool: pool.pool.clone(),
            claim: pool.claim,
            standing: pool.standing,
            delivered_gpu_hours: hours(sums.iter().sum()),
            owed_gpu_hours: Some(hours(owed.iter().sum())),
            steps: sums.iter().enumerate().map(step).collect(),
        }
    };
    of_pools.filter(|(_, pool)| filter.pool.as_ref().is_none_or(|name| *name == pool.pool)).map(row).collect()
}
