//! `[lab]` as it is written.

use crate::scenario::file_work::StartText;
use crate::scenario::length::{Fraction, Length};
use serde::Deserialize;
use stipend_core::quantity::{Ppm, Span};
use toml::Spanned;

/// `[lab]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct LabFile {
    /// The pools that its work accepts, the one it likes best first. Default: all that are counted in GPUs, in their order.
    pub(crate) pools: Option<Spanned<Vec<String>>>,
    /// Outstanding allocated GPUs of all teams together while they are on, as a multiple of the pool.
    pub(crate) demand: Fraction,
    /// The demand of the most modest team as a multiple of its claim, before all are scaled to `demand`.
    pub(crate) factor_min: Fraction,
    /// The demand of the most demanding team as a multiple of its claim; the others lie between, evenly on a logarithmic scale.
    pub(crate) factor_max: Fraction,
    /// Users, divided evenly among the leaf budgets.
    pub(crate) users: u32,
    /// Mean length of a team's busy phases (exponential).
    pub(crate) on: Length,
    /// Mean length of its quiet phases.
    pub(crate) off: Length,
    /// The part of its submissions that a team makes nevertheless in a quiet phase.
    pub(crate) off_submissions: Fraction,
    /// The part of the outstanding allocated GPUs that is in gangs of 128 to 512.
    pub(crate) large: Fraction,
    /// Only teams with at least this claim run such gangs.
    pub(crate) large_claim_min: Fraction,
    /// Outstanding unallocated GPUs, as a part of the allocated ones.
    pub(crate) unallocated: Fraction,
    /// Whether its work may start before its turn. Default: what can resume may.
    pub(crate) start: Option<StartText>,
    /// The part of the medium and unallocated work that can resume; the rest is half `restart`, half `end`.
    pub(crate) resume: Fraction,
    /// The same of the large work.
    pub(crate) large_resume: Fraction,
    /// Mean time from the end of a medium or large workload to the next submission.
    pub(crate) think: Length,
    /// Mean time from the end of a user's test to the next one.
    pub(crate) debug_think: Length,
    /// The part of all work that fails at its end.
    pub(crate) fails: Fraction,
    /// Of how many families each user's gangs of one size are, each with a part of its own that fails. 0: all fail alike, and are of no family.
    pub(crate) families: u32,
    /// Whether the family of work tells how it ends, which no history can: the bound for comparisons. Needs `families`.
    pub(crate) oracle: bool,
}

impl Default for LabFile {
    fn default() -> LabFile {
        let part = |millionths| Fraction(Ppm(millionths));
        LabFile {
            pools: None,
            demand: part(2_200_000),
            factor_min: part(600_000),
            factor_max: part(6_000_000),
            users: 150,
            on: Length(Span::hours(84)),
            off: Length(Span::hours(43)),
            off_submissions: part(200_000),
            large: part(380_000),
            large_claim_min: part(35_000),
            unallocated: part(220_000),
            start: None,
            resume: part(800_000),
            large_resume: part(950_000),
            think: Length(Span::minutes(15)),
            debug_think: Length(Span::minutes(125)),
            fails: part(0),
            families: 0,
            oracle: false,
        }
    }
}
