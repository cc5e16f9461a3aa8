//! What a change would bring, before anybody makes it.

use super::budget::BudgetChange;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// A change to try. The same text, as a file, can be applied as a changeset; its knobs go into the daemon's configuration.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WhatIfRequest {
    /// Why; for the changeset that may follow.
    pub reason: String,
    /// Budgets, as in a changeset.
    pub budgets: Vec<BudgetChange>,
    /// Knobs of all pools, as under `[policy]` in the daemon's configuration: `{"quantum": "30m"}`.
    #[schema(value_type = Object)]
    pub policy: Map<String, Value>,
    /// Knobs of single pools, over those.
    pub pools: Vec<PoolKnobs>,
    /// Replay the submissions of so many days, 1 to 90. Default 30.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub days: Option<u32>,
}

/// Knobs of one pool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PoolKnobs {
    /// Which pool.
    pub name: String,
    /// What is changed there.
    #[schema(value_type = Object)]
    pub policy: Map<String, Value>,
}

/// Who gains and who loses. Nothing was touched.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WhatIf {
    /// What would be changed, a line each.
    pub difference: Vec<String>,
    /// Days of real submissions that were replayed, by the same scheduler, as things are and with the change.
    pub days: f64,
    /// How many workloads were replayed.
    pub replayed: u64,
    /// Each leaf budget in the replay.
    pub budgets: Vec<Gain>,
    /// Each live workload in the projection of the queue. An estimate: it knows no future submissions and no faults.
    pub queue: Vec<Move>,
    /// What must be known to read it.
    pub notes: Vec<String>,
}

/// A leaf budget as things are, and with the change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Gain {
    /// Its path.
    pub budget: String,
    /// As things are.
    pub before: Figures,
    /// With the change.
    pub after: Figures,
}

/// What a leaf budget gets in a replay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Figures {
    /// GPU-hours of its allocated work.
    pub delivered_gpu_hours: f64,
    /// GPU-hours it was owed.
    pub owed_gpu_hours: f64,
    /// Workloads that started.
    pub starts: u64,
    /// Their median wait, in seconds.
    pub wait_p50_s: Option<f64>,
    /// The wait that 9 of 10 do not exceed.
    pub wait_p90_s: Option<f64>,
}

/// When a live workload would start, as things are and with the change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Move {
    /// Which.
    pub workload: u32,
    /// For people.
    pub name: String,
    /// Its budget.
    pub budget: String,
    /// As things are; `null` if not within the horizon. Of a running one the present moment.
    pub start_before_ms: Option<i64>,
    /// With the change.
    pub start_after_ms: Option<i64>,
    /// Preemptions as things are.
    pub preemptions_before: u32,
    /// With the change.
    pub preemptions_after: u32,
}
