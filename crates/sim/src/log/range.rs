//! Numbers that no log of a real cluster holds are refused with the line, so that whoever reads on may add and multiply.

use crate::log::knobs::Policy;
use crate::log::line::*;

/// Points in time and lengths, in ms: 126 years before and after the origin.
const TIME_MAX: i64 = 4_000_000_000_000;
/// GPUs of one gang.
const GANG_MAX: u64 = 1_000_000;
/// GPU time of one entry of the ledger.
const GPU_MS_MAX: i64 = 4_000_000_000_000_000_000;
/// Days of a lookback, in ms.
const LOOKBACK: (i64, i64) = (60_000, 400 * 86_400_000);

/// Which number is out of range, if one is.
pub(super) fn check(line: &Line) -> Result<(), String> {
    time("t_ms", line.t_ms)?;
    match &line.event {
        LogEvent::Policy(policy) => check_policy(policy),
        LogEvent::Node(node) => {
            within("gpus", node.gpus.into(), (1, 64))?;
            within("memory_bytes", i64::try_from(node.memory_bytes).unwrap_or(i64::MAX), (0, 1 << 53))?;
            maybe_time("drain_until_ms", node.drain_until_ms)
        }
        LogEvent::Budgets(tree) => tree.budgets.iter().try_for_each(check_budget),
        LogEvent::Submitted(submitted) => check_submitted(submitted),
        LogEvent::Running(running) => maybe_time("protected_until_ms", running.protected_until_ms),
        LogEvent::Renewed(renewed) => time("protected_until_ms", renewed.protected_until_ms),
        LogEvent::Promoted(promoted) => maybe_time("protected_until_ms", promoted.protected_until_ms),
        LogEvent::Preempting(preempting) => time("stop_by_ms", preempting.stop_by_ms),
        LogEvent::Reserved(reserved) => time("latest_start_ms", reserved.latest_start_ms),
        LogEvent::Stopping(stopping) => time("grace_ms", stopping.grace_ms),
        LogEvent::Ended(ended) => within("lost_gpu_ms", ended.lost_gpu_ms, (-GPU_MS_MAX, GPU_MS_MAX)),
        LogEvent::Charged(Charged { from_ms, to_ms, gpu_ms, .. })
        | LogEvent::Refunded(Refunded { from_ms, to_ms, gpu_ms, .. })
        | LogEvent::Lapsed(Lapsed { from_ms, to_ms, gpu_ms, .. }) => {
            time("from_ms", *from_ms)?;
            time("to_ms", *to_ms)?;
            within("gpu_ms", *gpu_ms, (-GPU_MS_MAX, GPU_MS_MAX))
        }
        LogEvent::Doubted(doubted) => time("until_ms", doubted.until_ms),
        LogEvent::Gap(gap) => time("from_ms", gap.from_ms),
        LogEvent::Granted(granted) => within("gpu_ms", granted.gpu_ms, (-GPU_MS_MAX, GPU_MS_MAX)),
        LogEvent::Refused(_)
        | LogEvent::Eligible(_)
        | LogEvent::Held(_)
        | LogEvent::Started(_)
        | LogEvent::Checkpoint(_)
        | LogEvent::Input(_)
        | LogEvent::Spared(_)
        | LogEvent::Hold(_)
        | LogEvent::Unhold(_)
        | LogEvent::Unreserved(_)
        | LogEvent::Requeued(_)
        | LogEvent::EndOfLog(_) => Ok(()),
    }
}

fn check_policy(policy: &Policy) -> Result<(), String> {
    within("lookback_ms", policy.lookback_ms, LOOKBACK)?;
    let spans = [
        ("credit_max_ms", policy.credit_max_ms),
        ("quantum_ms", policy.quantum_ms),
        ("min_runtime_max_ms", policy.min_runtime_max_ms),
        ("end_max_ms", policy.end_max_ms),
        ("start_timeout_ms", policy.start_timeout_ms),
        ("grace_allocated_ms", policy.grace_allocated_ms),
        ("grace_unallocated_ms", policy.grace_unallocated_ms),
        ("checkpoint_wait_max_ms", policy.checkpoint_wait_max_ms),
        ("kill_timeout_ms", policy.kill_timeout_ms),
        ("restart_cost_ms", policy.restart_cost_ms),
        ("age_min_ms", policy.age_min_ms),
        ("head_start_max_ms", policy.head_start_max_ms),
        ("refund_max_ms", policy.refund_max_ms),
        ("express_contract_max_ms", policy.express_contract_max_ms),
        ("retry_every_ms", policy.retry_every_ms),
    ];
    spans.into_iter().try_for_each(|(field, span)| within(field, span, (0, LOOKBACK.1)))
}

fn check_budget(budget: &Budget) -> Result<(), String> {
    if !(0.0..=100.0).contains(&budget.share_percent) {
        return Err(wrong("share_percent", budget.share_percent, "from 0 to 100"));
    }
    if !(0.0..=1.0).contains(&budget.claim) {
        return Err(wrong("claim", budget.claim, "from 0 to 1"));
    }
    maybe_time("min_runtime_max_ms", budget.min_runtime_max_ms)
}

fn check_submitted(submitted: &Submitted) -> Result<(), String> {
    let gpus = u64::from(submitted.members) * u64::from(submitted.gpus_per_member);
    if gpus == 0 || gpus > GANG_MAX {
        return Err(wrong("members × gpus_per_member", gpus, &format!("from 1 to {GANG_MAX}")));
    }
    within("charged_gpus", submitted.charged_gpus.into(), (0, GANG_MAX as i64))?;
    within("memory_per_member_bytes", i64::try_from(submitted.memory_per_member_bytes).unwrap_or(i64::MAX), (0, 1 << 53))?;
    within("min_runtime_ms", submitted.min_runtime_ms, (0, TIME_MAX))?;
    within("time_limit_ms", submitted.time_limit_ms.unwrap_or(0), (0, TIME_MAX))?;
    within("expected_runtime_ms", submitted.expected_runtime_ms.unwrap_or(0), (0, TIME_MAX))?;
    for other in &submitted.others {
        within("charged_gpus", other.charged_gpus.into(), (0, GANG_MAX as i64))?;
        within("min_runtime_ms", other.min_runtime_ms, (0, TIME_MAX))?;
    }
    within("checkpoint_every_ms", submitted.checkpoint_every_ms.unwrap_or(0), (0, TIME_MAX))
}

fn time(field: &str, value: i64) -> Result<(), String> {
    within(field, value, (-TIME_MAX, TIME_MAX))
}

fn maybe_time(field: &str, value: Option<i64>) -> Result<(), String> {
    time(field, value.unwrap_or(0))
}

fn within(field: &str, value: i64, (least, most): (i64, i64)) -> Result<(), String> {
    if (least..=most).contains(&value) { Ok(()) } else { Err(wrong(field, value, &format!("from {least} to {most}"))) }
}

fn wrong(field: &str, value: impl std::fmt::Display, right: &str) -> String {
    format!("`{field}` is {value}; it must be {right}")
}
