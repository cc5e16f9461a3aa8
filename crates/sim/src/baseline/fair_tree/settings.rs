//! How a site sets Slurm up, by the names that Slurm's own settings have.

use stipend_core::quantity::{Ppm, Span};

/// Who may be preempted, and by whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PreemptFor {
    /// Nobody (`PreemptMode=OFF`).
    Nobody,
    /// The scavenger QOS, by every other.
    Scavenger,
    /// That, and the normal QOS by the share QOS (work of an account within its share) and by the debug QOS.
    Share,
}

/// How `fair-tree` is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FairTreeSettings {
    /// `PriorityDecayHalfLife`: after this, usage counts half; zero counts all usage for ever.
    pub half_life: Span,
    /// `PriorityCalcPeriod`: usage, ranks and priorities are computed this often.
    pub calc_period: Span,
    /// `PriorityWeightFairshare`.
    pub weight_fairshare: u32,
    /// `PriorityWeightAge`.
    pub weight_age: u32,
    /// `PriorityWeightJobSize`; the larger job has the larger factor.
    pub weight_size: u32,
    /// `PriorityWeightQOS`.
    pub weight_qos: u32,
    /// `PriorityMaxAge`: from this wait on the age factor is whole.
    pub max_age: Span,
    /// `bf_interval`: the backfill runs at most this often.
    pub backfill_interval: Span,
    /// `bf_max_job_test`: the most jobs that one backfill looks at.
    pub backfill_jobs: u32,
    /// How many of them at most get a reservation of nodes that no other may delay.
    pub backfill_reservations: u32,
    /// `bf_window`: the backfill looks no further ahead.
    pub backfill_window: Span,
    /// `PreemptMode` and the list of QOS that each may preempt.
    pub preempt: PreemptFor,
    /// `PreemptExemptTime` of the normal QOS: so long a job runs at least.
    pub exempt: Span,
    /// `GrpTRES` of the share QOS, as a multiple of an account's claim × capacity.
    pub share_max: Ppm,
}

impl Default for FairTreeSettings {
    fn default() -> FairTreeSettings {
        FairTreeSettings {
            half_life: Span::days(14),
            calc_period: Span::minutes(5),
            weight_fairshare: 100_000,
            weight_age: 1000,
            weight_size: 0,
            weight_qos: 100_000,
            max_age: Span::days(7),
            backfill_interval: Span::minutes(1),
            backfill_jobs: 500,
            backfill_reservations: 8,
            backfill_window: Span::days(4),
            preempt: PreemptFor::Nobody,
            exempt: Span::hours(1),
            share_max: Ppm(1_000_000),
        }
    }
}
