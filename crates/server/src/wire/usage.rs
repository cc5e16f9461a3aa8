//! GPU time that budgets got.

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// The length of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Hours, from full UTC hours on.
    Hour,
    /// Days of UTC.
    #[default]
    Day,
}

/// Which usage.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct UsageFilter {
    /// Only this budget and those below.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<String>,
    /// Only in this pool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// From when on, rounded down to a step. Default: 30 days ago, or two days with steps of an hour.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_ms: Option<i64>,
    /// Until when, rounded up to a step. Default: now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_ms: Option<i64>,
    /// Default `day`.
    #[param(inline)]
    pub by: Step,
}

/// What budgets got in a period.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Usage {
    /// The start of the first step.
    pub from_ms: i64,
    /// The end of the last step; it may be in the future.
    pub to_ms: i64,
    /// The length of a step.
    pub step_ms: i64,
    /// Each budget in each pool, parents before children.
    pub budgets: Vec<BudgetUsage>,
}

/// What a budget got in a pool, with all that is below it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BudgetUsage {
    /// The budget's path.
    pub budget: String,
    /// The pool.
    pub pool: String,
    /// Its part of the pool now, 0 to 1.
    pub claim: f64,
    /// Its standing now; see the budget tree.
    pub standing: Option<f64>,
    /// GPU-hours that were charged to it, less refunds, with what runs until now.
    pub delivered_gpu_hours: f64,
    /// GPU-hours that it was owed: at each moment the lesser of its claim and its demand; `null` where that was not recorded.
    pub owed_gpu_hours: Option<f64>,
    /// By step.
    pub steps: Vec<UsageStep>,
}

/// One step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct UsageStep {
    /// When it begins.
    pub from_ms: i64,
    /// GPU-hours delivered.
    pub delivered_gpu_hours: f64,
    /// GPU-hours owed; `null` where that was not recorded.
    pub owed_gpu_hours: Option<f64>,
}
