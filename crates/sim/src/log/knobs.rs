//! The `policy` line: all knobs of a pool, with their units in their names.

use serde::{Deserialize, Serialize};
use stipend_core::knobs as core;

/// How the past counts in a standing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kernel {
    /// Weight falls in a line from 1 to 0.
    Fading,
    /// Each moment counts 1, then 0.
    Sliding,
}

/// All knobs of a pool, at the start and at each change; what each is for stands at the core's `Knobs`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Policy {
    pub pool: String,
    pub lookback_ms: i64,
    pub kernel: Kernel,
    pub commitments: bool,
    pub credit_max_ms: i64,
    pub below_share_ppm: u32,
    pub quantum_ms: i64,
    pub min_runtime_max_ms: i64,
    pub end_max_ms: i64,
    pub start_timeout_ms: i64,
    pub grace_allocated_ms: i64,
    pub grace_unallocated_ms: i64,
    pub checkpoint_wait_max_ms: i64,
    pub kill_timeout_ms: i64,
    pub worth_it_ppm: u32,
    pub restart_cost_ms: i64,
    pub age_min_ms: i64,
    pub head_start_max_ms: i64,
    pub refund_max_ms: i64,
    pub express_contract_max_ms: i64,
    pub express_gpus_max: u32,
    pub express_budget_max_ppm: u32,
    pub reservations_max: u32,
    pub reservation_gang_min_ppm: u32,
    pub shapes_max: u32,
    pub searches_max: u32,
    pub retry_every_ms: i64,
}

impl Policy {
    /// The line for `pool`. Taking the core's knobs apart here makes a new knob fail to compile until the log shows it.
    pub fn new(pool: String, knobs: &core::Knobs) -> Policy {
        let core::Knobs {
            lookback,
            kernel,
            commitments,
            credit_max,
            below_share,
            quantum,
            min_runtime_max,
            end_max,
            start_timeout,
            grace_allocated,
            grace_unallocated,
            checkpoint_wait_max,
            kill_timeout,
            worth_it,
            restart_cost,
            age_min,
            head_start_max,
            refund_max,
            express_contract_max,
            express_gpus_max,
            express_budget_max,
            reservations_max,
            reservation_gang_min,
            shapes_max,
            searches_max,
            retry_every,
        } = *knobs;
        Policy {
            pool,
            lookback_ms: lookback.0,
            kernel: match kernel {
                core::Kernel::Fading => Kernel::Fading,
                core::Kernel::Sliding => Kernel::Sliding,
            },
            commitments,
            credit_max_ms: credit_max.0,
            below_share_ppm: below_share.0,
            quantum_ms: quantum.0,
            min_runtime_max_ms: min_runtime_max.0,
            end_max_ms: end_max.0,
            start_timeout_ms: start_timeout.0,
            grace_allocated_ms: grace_allocated.0,
            grace_unallocated_ms: grace_unallocated.0,
            checkpoint_wait_max_ms: checkpoint_wait_max.0,
            kill_timeout_ms: kill_timeout.0,
            worth_it_ppm: worth_it.0,
            restart_cost_ms: restart_cost.0,
            age_min_ms: age_min.0,
            head_start_max_ms: head_start_max.0,
            refund_max_ms: refund_max.0,
            express_contract_max_ms: express_contract_max.0,
            express_gpus_max,
            express_budget_max_ppm: express_budget_max.0,
            reservations_max,
            reservation_gang_min_ppm: reservation_gang_min.0,
            shapes_max,
            searches_max,
            retry_every_ms: retry_every.0,
        }
    }
}
