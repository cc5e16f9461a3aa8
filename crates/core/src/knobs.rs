//! The knobs of a pool's policy, each with its unit, its default and what it is for.

use crate::quantity::{Ppm, Span};

/// How the past counts in a standing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Kernel {
    /// Weight falls in a line from 1 (now) to 0 (one lookback ago).
    Fading,
    /// Each moment counts 1 for one lookback, then 0.
    Sliding,
}

/// The knobs of one pool. All are settled by measurement: see `docs/results.md`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Knobs {
    /// Over how long shares are delivered.
    pub lookback: Span,
    /// How the past counts within it.
    pub kernel: Kernel,
    /// Whether a contract counts in the standing as a whole from its start.
    pub commitments: bool,
    /// How far a budget's standing may fall below its share because it asked for nothing: by so much time of its claim. A lookback or more
    /// is no limit.
    pub credit_max: Span,
    /// A leaf whose standing is below this is *below its share*: it goes first and may take past-contract leases.
    pub below_share: Ppm,
    /// A claimant must stand lower than its victim by its own gang times this much time.
    pub quantum: Span,
    /// The longest contract of work that can go on or start again.
    pub min_runtime_max: Span,
    /// The longest time limit of `end` work, whose contract is its time limit.
    pub end_max: Span,
    /// A start that takes longer is stopped and requeued.
    pub start_timeout: Span,
    /// From the stop signal to the kill, allocated work.
    pub grace_allocated: Span,
    /// From the stop signal to the kill, unallocated work.
    pub grace_unallocated: Span,
    /// A stop waits for the victim's next checkpoint where one is known to come within this.
    pub checkpoint_wait_max: Span,
    /// How long after its end of grace a victim may still hold its GPUs before its nodes drain critically.
    pub kill_timeout: Span,
    /// An eviction is worth it if the expected loss is at most this part of the claimant's contract in GPU time.
    pub worth_it: Ppm,
    /// What each new lease of resumed work pays before it makes progress.
    pub restart_cost: Span,
    /// Work eligible longer than this (or three times its leaf's median wait) goes before all younger work of its leaf.
    pub age_min: Span,
    /// In a leaf whose order is by completion, work that certainly completes goes first as if it had been eligible this much longer; less
    /// likely work has a smaller part of it. So nothing is passed by what became eligible more than this later. 0 is `fifo`.
    pub head_start_max: Span,
    /// Time lost to a fault of the infrastructure is refunded for at most this long.
    pub refund_max: Span,
    /// The longest contract that may run on express GPUs.
    pub express_contract_max: Span,
    /// The largest gang that may run on express GPUs.
    pub express_gpus_max: u32,
    /// The most express GPUs that one budget's contracts may hold at once, as a part of the express GPUs.
    pub express_budget_max: Ppm,
    /// At most this many reservations at a time.
    pub reservations_max: u32,
    /// The smallest gang that may get a reservation, as a part of the pool's GPUs; it needs more than one node in any case.
    pub reservation_gang_min: Ppm,
    /// At most this many shapes of a leaf are tried in one cycle; the rest rotate.
    pub shapes_max: u32,
    /// At most this many searches for victims in one cycle; the rest wait for the next.
    pub searches_max: u32,
    /// What found no victims is tried again after this, or when something was freed or a protection ended.
    pub retry_every: Span,
}

impl Default for Knobs {
    fn default() -> Knobs {
        Knobs {
            lookback: Span::days(7),
            kernel: Kernel::Fading,
            commitments: true,
            credit_max: Span::hours(24),
            below_share: Ppm(1_100_000),
            quantum: Span::minutes(15),
            min_runtime_max: Span::hours(8),
            end_max: Span::hours(24),
            start_timeout: Span::minutes(10),
            grace_allocated: Span::seconds(120),
            grace_unallocated: Span::seconds(10),
            checkpoint_wait_max: Span::minutes(5),
            kill_timeout: Span::seconds(60),
            worth_it: Ppm(250_000),
            restart_cost: Span::minutes(5),
            age_min: Span::hours(24),
            head_start_max: Span::hours(24),
            refund_max: Span::hours(8),
            express_contract_max: Span::minutes(15),
            express_gpus_max: 8,
            express_budget_max: Ppm(500_000),
            reservations_max: 4,
            reservation_gang_min: Ppm(125_000),
            shapes_max: 64,
            searches_max: 16,
            retry_every: Span::minutes(5),
        }
    }
}
