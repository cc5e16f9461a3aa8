//! What is asked, before it waits: refusals, the contract after clamping, the class.

use stipend_core::entry::Class;
use stipend_core::event::Rejection;
use stipend_core::knobs::Knobs;
use stipend_core::quantity::{Gpus, Span};
use stipend_core::spec::{Gang, OnPreempt, WorkloadSpec};

/// Numbers that no policy could work with.
pub(super) fn check(spec: &WorkloadSpec) -> Result<(), Rejection> {
    let refuse = |field, value: String, expected: &str| Err(Rejection::Request { field, value, expected: expected.into() });
    let limit = spec.time_limit.map_or(1, |limit| limit.0);
    let expected = spec.expected_runtime.map_or(1, |expected| expected.0);
    match spec.gang {
        Gang { members: 0, .. } => refuse("members", "0".into(), "at least 1"),
        Gang { gpus_per_member: 0, .. } => refuse("gpus_per_member", "0".into(), "at least 1"),
        _ if spec.min_runtime.0 < 0 => refuse("min_runtime", spec.min_runtime.to_string(), "0 or more"),
        _ if limit <= 0 => refuse("time_limit", Span(limit).to_string(), "more than 0"),
        _ if expected <= 0 => refuse("expected_runtime", Span(expected).to_string(), "more than 0"),
        _ if spec.on_preempt == OnPreempt::End && spec.time_limit.is_none() => {
            refuse("time_limit", "none".into(), "`end` work states its time limit")
        }
        _ => Ok(()),
    }
}

/// The contract after clamping, as the core clamps it.
pub(super) fn contract(spec: &WorkloadSpec, cap: Span, knobs: &Knobs) -> Span {
    let limit = spec.time_limit.unwrap_or(Span(i64::MAX));
    match spec.on_preempt {
        _ if spec.min_runtime == Span::ZERO => Span::ZERO,
        OnPreempt::End => limit.min(knobs.end_max),
        _ => spec.min_runtime.min(limit).min(cap).min(knobs.min_runtime_max),
    }
}

/// The class of a request in a pool of so many GPUs.
pub(super) fn class(gang: &Gang, contract: Span, pool_gpus: u64) -> Class {
    let gpus = gang.gpus();
    match contract {
        Span::ZERO => Class::Unallocated,
        _ if gpus <= Gpus(8) && contract <= Span::minutes(15) => Class::Debug,
        _ if u64::from(gpus.0) * 8 >= pool_gpus => Class::Largest,
        _ => Class::Medium,
    }
}
