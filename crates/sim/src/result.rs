//! The result of a run: what `stipend sim run --format json` prints, field by field.
//!
//! Fractions are of capacity (GPUs of ready nodes, and GPUs under lease on draining ones) over the measured time, which begins where the
//! warm-up ends. A field is `null` where there is nothing to say: nothing was owed, nobody waited, the policy makes no promises.

use serde::{Deserialize, Serialize};

/// All policies on one scenario with one seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// The scenario's name.
    pub scenario: String,
    /// What its random streams began from.
    pub seed: u64,
    /// All GPUs, in service or not; what its pools are counted in where none has GPUs.
    pub capacity_gpus: u32,
    /// Days measured, without the warm-up.
    pub sim_days: f64,
    /// One a policy, in the order asked for.
    pub policies: Vec<PolicyResult>,
}

/// One policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PolicyResult {
    /// Its name.
    pub policy: String,
    /// How long the simulation took; the only figure that differs from run to run.
    pub wall_seconds: f64,
    /// Charged GPUs of allocated work, running or waiting, per GPU of capacity, on average.
    pub demand_ratio: f64,
    /// GPU time given to work.
    pub occupancy: f64,
    /// GPU time that led to a completion or a bank.
    pub useful_fraction: f64,
    /// GPU time lost for good: work since the last bank, restarts, starts, graces.
    pub lost_fraction: f64,
    /// The part of it lost by allocated work.
    pub lost_allocated_fraction: f64,
    /// The part of it lost by unallocated work.
    pub lost_unallocated_fraction: f64,
    /// GPU time given to allocated work.
    pub allocated_fraction: f64,
    /// GPU time given to unallocated work.
    pub unallocated_fraction: f64,
    /// The most of what was owed that allocated work could have filled, given what was in service, what was asked for, and that only short
    /// contracts may fill the express nodes that the policy keeps. At most 1.
    pub owed_bound: f64,
    /// What the leaves were owed.
    pub owed_gpu_hours: f64,
    /// What the leaves got, also beyond what they were owed.
    pub delivered_gpu_hours: f64,
    /// Σ over leaves of min(delivered, owed) / Σ owed.
    pub delivered_of_owed: Option<f64>,
    /// The same by leaf and day.
    pub delivered_of_owed_daily: Option<f64>,
    /// Every budget, parents before children.
    pub budgets: Vec<BudgetResult>,
    /// Every pool by itself, by number.
    pub pools: Vec<PoolResult>,
    /// Over leaves and hours.
    pub arrears_claim_hours: Arrears,
    /// By class of allocated work.
    pub slowdown: Slowdowns,
    /// By class of work.
    pub waits: WaitsByClass,
    /// First waits of allocated gangs larger than their leaf's claim (they are in their class too).
    pub gangs_over_claim: Waits,
    /// Attempts that ended by yielding their GPUs.
    pub preemptions: u64,
    /// Those of allocated work.
    pub preemptions_allocated: u64,
    /// See `lost_fraction`.
    pub lost_gpu_hours: f64,
    /// See `useful_fraction`.
    pub useful_gpu_hours: f64,
    /// Reservations given and kept.
    pub promises: Option<Promises>,
    /// Estimates of first waits, and how often they held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimates: Option<Estimates>,
    /// Workloads submitted.
    pub submitted: u64,
    /// Workloads done.
    pub completed: u64,
    /// Workloads that ended for good without being done, cancelled ones apart.
    pub failed: u64,
}

/// One budget.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BudgetResult {
    /// Its full path.
    pub path: String,
    /// Whether work is charged to it directly; the whole's figures sum over leaves.
    pub leaf: bool,
    /// The fraction of all GPUs that it is funded with, at the end.
    pub claim: f64,
    /// Charged GPUs of its allocated work that ran, or waited held back by no cap, on average.
    pub mean_demand_gpus: f64,
    /// min(claim × capacity, demand) over time.
    pub owed_gpu_hours: f64,
    /// Charged GPU time of its allocated leases, less refunds.
    pub delivered_gpu_hours: f64,
    /// min(1, delivered / owed).
    pub delivered_of_owed: Option<f64>,
    /// The same day by day.
    pub delivered_of_owed_daily: Option<f64>,
    /// What it got beyond what it was owed: time that other budgets left.
    pub beyond_owed_gpu_hours: f64,
    /// GPU time of its work, allocated or not, that led to a completion or a bank.
    pub useful_gpu_hours: f64,
    /// Credit that lapsed because it asked for nothing.
    pub lapsed_gpu_hours: Option<f64>,
}

/// One pool, in GPUs, or in CPUs where it has no GPUs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PoolResult {
    /// Its name.
    pub pool: String,
    /// What it is counted in: `gpu` or `cpu`.
    pub unit: String,
    /// How many, in service or not.
    pub capacity: u32,
    /// What allocated work asked of it, running here, or waiting with this as its first pool, per unit of capacity.
    pub demand_ratio: f64,
    /// Time given to work.
    pub occupancy: f64,
    /// Time that led to a completion or a bank.
    pub useful_fraction: f64,
    /// Time lost for good.
    pub lost_fraction: f64,
    /// What the leaves were owed here.
    pub owed_hours: f64,
    /// What they got here.
    pub delivered_hours: f64,
    /// Σ over leaves of min(delivered, owed) / Σ owed.
    pub delivered_of_owed: Option<f64>,
}

/// How far behind, in hours of the budget's own claim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Arrears {
    /// Median.
    pub p50: Option<f64>,
    /// 90th percentile.
    pub p90: Option<f64>,
    /// The worst.
    pub max: Option<f64>,
}

/// (completed − eligible) / work of completed workloads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Slowdown {
    /// Workloads that completed.
    pub count: u64,
    /// Median.
    pub p50: Option<f64>,
    /// 90th percentile.
    pub p90: Option<f64>,
}

/// Slowdowns by class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Slowdowns {
    /// At most 8 GPUs and a contract of at most 15 minutes.
    pub debug: Slowdown,
    /// Neither debug nor largest.
    pub medium: Slowdown,
    /// Gangs of at least an eighth of the pool.
    pub largest: Slowdown,
}

/// Waits of one class, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Waits {
    /// How many, those that never started included.
    pub count: u64,
    /// Those that never started; they count with their wait so far.
    pub never_started: u64,
    /// Median.
    pub p50_s: Option<f64>,
    /// 90th percentile.
    pub p90_s: Option<f64>,
    /// 99th percentile.
    pub p99_s: Option<f64>,
    /// The longest.
    pub max_s: Option<f64>,
}

/// Waits from eligible to running for the first time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WaitsByClass {
    /// All allocated work.
    pub all: Waits,
    /// At most 8 GPUs and a contract of at most 15 minutes.
    pub debug: Waits,
    /// Neither debug nor largest.
    pub medium: Waits,
    /// Gangs of at least an eighth of the pool.
    pub largest: Waits,
    /// Unallocated work.
    pub unallocated: Waits,
    /// Allocated work that had run, from its requeue to its running again.
    pub requeued: Waits,
}

/// Estimates: how long work was said to wait for its first start. A range means to hold for eight in ten.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimates {
    /// How many; of work that was given up before its range was over nothing is known, and it does not count.
    pub given: u64,
    /// Started within the range.
    pub held: u64,
}

/// Reservations: starts promised at the latest.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Promises {
    /// How many.
    pub given: u64,
    /// Started by the date.
    pub kept: u64,
    /// Started before it.
    pub early: u64,
    /// Nodes were lost without a substitute.
    pub broken_nodes: u64,
    /// By the owner or its budget.
    pub broken_owner: u64,
    /// By the policy: never.
    pub broken_policy: u64,
    /// The longest start after its date.
    pub late_max_s: f64,
    /// Median of eligible → promise.
    pub time_to_promise_p50_s: Option<f64>,
    /// 90th percentile of it.
    pub time_to_promise_p90_s: Option<f64>,
}
