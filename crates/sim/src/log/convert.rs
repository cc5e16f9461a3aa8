//! From the core's entries to lines: labels for ids, words for enums.

use crate::log::knobs::Policy;
use crate::log::line::*;
use crate::refusal::Refusal;
use stipend_core::entry::{self, Entry};
use stipend_core::event::Rejection;
use stipend_core::explain::{Names, Why};
use stipend_core::id::{LeaseId, PoolId, WorkloadId};
use stipend_core::quantity::{GpuMs, Time};
use stipend_core::spec;

/// The event that `entry` becomes.
pub fn event(entry: &Entry, names: &dyn Names) -> LogEvent {
    let workload = |id: &WorkloadId| names.workload(*id);
    let of = |lease: &LeaseId| (names.workload(lease.workload), lease.attempt);
    let pool = |id: &PoolId| names.pool(*id);
    match entry {
        Entry::Policy { pool, knobs } => LogEvent::Policy(Policy::new(names.pool(*pool), knobs)),
        Entry::Node { node, spec, state, drain_until, reason } => {
            let (state, severity) = node_state(*state);
            LogEvent::Node(Node {
                node: names.node(*node),
                pool: pool(&spec.pool),
                gpus: spec.gpus,
                cpus: spec.cpus,
                memory_bytes: spec.memory,
                block: spec.block.to_string(),
                features: spec.features.0,
                express: spec.express,
                state,
                severity,
                drain_until_ms: drain_until.map(ms),
                reason: reason.clone(),
            })
        }
        Entry::Budgets { version, author, reason, budgets } => LogEvent::Budgets(Budgets {
            version: *version,
            author: author.clone(),
            reason: reason.clone(),
            budgets: budgets.iter().flat_map(|of| budget(of, names)).collect(),
        }),
        Entry::Submitted { workload, spec, pool, charged_gpus, min_runtime, class, others, skipped } => {
            let first = entry::InPool { pool: *pool, charged_gpus: *charged_gpus, min_runtime: *min_runtime };
            LogEvent::Submitted(Submitted {
                pools: std::iter::once(pool).chain(others.iter().map(|other| &other.pool)).map(|id| names.pool(*id)).collect(),
                others: others.iter().map(|other| in_pool(other, names)).collect(),
                skipped: skipped.iter().map(|(pool, rejection)| skip(*pool, rejection, names)).collect(),
                ..submitted(*workload, spec, &first, *class, names)
            })
        }
        Entry::Doubted { workload: id, budget, until } => {
            LogEvent::Doubted(Doubted { workload: workload(id), budget: names.budget(*budget), until_ms: ms(*until) })
        }
        Entry::Gap { from } => LogEvent::Gap(Gap { from_ms: ms(*from) }),
        Entry::Refused { rejection } => LogEvent::Refused(Refused { why: Refusal { rejection, names }.to_string() }),
        Entry::Eligible { workload: id, estimate } => {
            LogEvent::Eligible(Eligible { workload: workload(id), estimate_ms: estimate.map(|of| [of.from.0, of.to.0]) })
        }
        Entry::Held { workload: id, why } => LogEvent::Held(Held { workload: workload(id), why: why.clone() }),
        Entry::Started { lease, pool: in_pool, occupancy, placement: slots, licence: by, why } => {
            let (workload, attempt) = of(lease);
            let occupancy = match occupancy {
                entry::Occupancy::Allocated => Occupancy::Allocated,
                entry::Occupancy::Unallocated => Occupancy::Unallocated,
            };
            LogEvent::Started(Started {
                workload,
                attempt,
                pool: pool(in_pool),
                occupancy,
                placement: placement(slots, names),
                licence: licence(*by),
                why: why.text(names),
            })
        }
        Entry::Running { lease, protected_until } => {
            let (workload, attempt) = of(lease);
            LogEvent::Running(Running { workload, attempt, protected_until_ms: protected_until.map(ms) })
        }
        Entry::Promoted { lease, protected_until, why } => {
            let (workload, attempt) = of(lease);
            LogEvent::Promoted(Promoted { workload, attempt, protected_until_ms: protected_until.map(ms), why: why.text(names) })
        }
        Entry::Renewed { lease, protected_until, why } => {
            let (workload, attempt) = of(lease);
            LogEvent::Renewed(Renewed { workload, attempt, protected_until_ms: ms(*protected_until), why: why.text(names) })
        }
        Entry::Input { lease } => {
            let (workload, attempt) = of(lease);
            LogEvent::Input(Input { workload, attempt })
        }
        Entry::Checkpoint { lease } => {
            let (workload, attempt) = of(lease);
            LogEvent::Checkpoint(Checkpoint { workload, attempt })
        }
        Entry::Preempting { .. } | Entry::Stopping { .. } | Entry::Spared { .. } | Entry::Hold { .. } | Entry::Unhold { .. } => {
            preemption(entry, names)
        }
        Entry::Reserved { .. } | Entry::Unreserved { .. } => promise(entry, names),
        Entry::Ended { workload: id, attempt, outcome: how, lost, by } => LogEvent::Ended(Ended {
            workload: workload(id),
            attempt: *attempt,
            outcome: outcome(*how),
            lost_gpu_ms: lost.0,
            by: by.text(names),
        }),
        Entry::Requeued { workload: id } => LogEvent::Requeued(Requeued { workload: workload(id) }),
        Entry::Charged { .. } | Entry::Refunded { .. } | Entry::Granted { .. } | Entry::Lapsed { .. } => ledger(entry, names),
    }
}

/// The lines of a plan, from its making to its end.
fn preemption(entry: &Entry, names: &dyn Names) -> LogEvent {
    let of = |lease: &LeaseId| (names.workload(lease.workload), lease.attempt);
    match entry {
        Entry::Preempting { lease, claimant, node, licence: by, stop_by, why } => {
            let (workload, attempt) = of(lease);
            LogEvent::Preempting(Preempting {
                workload,
                attempt,
                claimant: claimant.map(|id| names.workload(id)),
                node: node.map(|id| names.node(id)),
                licence: licence(*by),
                stop_by_ms: ms(*stop_by),
                why: why.text(names),
            })
        }
        Entry::Stopping { lease, grace } => {
            let (workload, attempt) = of(lease);
            LogEvent::Stopping(Stopping { workload, attempt, grace_ms: grace.0 })
        }
        Entry::Spared { lease } => {
            let (workload, attempt) = of(lease);
            LogEvent::Spared(Spared { workload, attempt })
        }
        Entry::Hold { claimant, placement: slots } => {
            LogEvent::Hold(Hold { claimant: names.workload(*claimant), placement: placement(slots, names) })
        }
        Entry::Unhold { claimant, why } => {
            LogEvent::Unhold(Unhold { claimant: names.workload(*claimant), cause: cause(why), why: why.text(names) })
        }
        other => unreachable!("not a line of a plan: {other:?}"),
    }
}

/// The lines of a promised start.
fn promise(entry: &Entry, names: &dyn Names) -> LogEvent {
    match entry {
        Entry::Reserved { reservation, workload, pool, latest_start, nodes, why } => LogEvent::Reserved(Reserved {
            reservation: reservation.to_string(),
            workload: names.workload(*workload),
            pool: names.pool(*pool),
            latest_start_ms: ms(*latest_start),
            nodes: nodes.iter().map(|id| names.node(*id)).collect(),
            why: why.text(names),
        }),
        Entry::Unreserved { reservation, workload, why } => LogEvent::Unreserved(Unreserved {
            reservation: reservation.to_string(),
            workload: names.workload(*workload),
            why: match why {
                entry::Unreserved::Started => UnreservedCause::Started,
                entry::Unreserved::Owner => UnreservedCause::Owner,
                entry::Unreserved::Budget => UnreservedCause::Budget,
                entry::Unreserved::NodesLost => UnreservedCause::NodesLost,
            },
        }),
        other => unreachable!("not a line of a promise: {other:?}"),
    }
}

/// The lines that the ledger is made of.
fn ledger(entry: &Entry, names: &dyn Names) -> LogEvent {
    match entry {
        Entry::Charged { workload, attempt, budget, pool, kind, from, to, gpu_ms: GpuMs(gpu_ms) } => LogEvent::Charged(Charged {
            workload: names.workload(*workload),
            attempt: *attempt,
            budget: names.budget(*budget),
            pool: names.pool(*pool),
            kind: charge_kind(*kind),
            from_ms: ms(*from),
            to_ms: ms(*to),
            gpu_ms: *gpu_ms,
        }),
        Entry::Refunded { workload, attempt, budget, pool, kind, from, to, gpu_ms: GpuMs(gpu_ms) } => LogEvent::Refunded(Refunded {
            workload: names.workload(*workload),
            attempt: *attempt,
            budget: names.budget(*budget),
            pool: names.pool(*pool),
            kind: charge_kind(*kind),
            from_ms: ms(*from),
            to_ms: ms(*to),
            gpu_ms: *gpu_ms,
        }),
        Entry::Granted { budget, pool, gpu_ms: GpuMs(gpu_ms) } => {
            LogEvent::Granted(Granted { budget: names.budget(*budget), pool: names.pool(*pool), gpu_ms: *gpu_ms })
        }
        Entry::Lapsed { budget, pool, from, to, gpu_ms: GpuMs(gpu_ms) } => LogEvent::Lapsed(Lapsed {
            budget: names.budget(*budget),
            pool: names.pool(*pool),
            from_ms: ms(*from),
            to_ms: ms(*to),
            gpu_ms: *gpu_ms,
        }),
        other => unreachable!("not a line of the ledger: {other:?}"),
    }
}

/// One line's part for each pool; a budget without a share in one has nothing there.
fn budget(of: &entry::BudgetEntry, names: &dyn Names) -> impl Iterator<Item = Budget> {
    let shares = of.spec.pools.iter().copied().chain(std::iter::repeat(spec::PoolShare::default()));
    shares.zip(&of.claims).enumerate().map(move |(pool, (share, claim))| Budget {
        id: of.spec.id.0,
        path: of.path.clone(),
        pool: names.pool(PoolId(u16::try_from(pool).expect("pool numbers are u16"))),
        share_percent: f64::from(share.share.0) / 10_000.0,
        // A claim is at most 10⁹, so a double holds it exactly and prints it with at most nine decimals.
        claim: claim.0 as f64 / 1e9,
        gpus_max: share.gpus_max.map(|gpus| gpus.0),
        unallocated_gpus_max: share.unallocated_gpus_max.map(|gpus| gpus.0),
        min_runtime_max_ms: share.min_runtime_max.map(|span| span.0),
        order: match of.spec.order {
            spec::LeafOrder::Priority => Order::Priority,
            spec::LeafOrder::Fifo => Order::Fifo,
            spec::LeafOrder::ShortestContract => Order::ShortestContract,
            spec::LeafOrder::Completion => Order::Completion,
        },
        closed: of.spec.closed,
    })
}

fn in_pool(of: &entry::InPool, names: &dyn Names) -> InPool {
    InPool { pool: names.pool(of.pool), charged_gpus: of.charged_gpus.0, min_runtime_ms: of.min_runtime.0 }
}

fn skip(pool: PoolId, rejection: &Rejection, names: &dyn Names) -> Skipped {
    Skipped { pool: names.pool(pool), why: Refusal { rejection, names }.to_string() }
}

fn submitted(id: WorkloadId, of: &spec::WorkloadSpec, first: &entry::InPool, class: entry::Class, names: &dyn Names) -> Submitted {
    Submitted {
        workload: names.workload(id),
        name: None,
        budget: names.budget(of.budget),
        user: names.user(of.user),
        family: of.family.map(|family| format!("{:016x}", family.0)),
        pools: Vec::new(),
        members: of.gang.members,
        gpus_per_member: of.gang.gpus_per_member,
        cpus_per_member: of.gang.cpus_per_member,
        memory_per_member_bytes: of.gang.memory_per_member,
        features: of.gang.features.0,
        same_block: of.gang.same_block,
        charged_gpus: first.charged_gpus.0,
        min_runtime_ms: first.min_runtime.0,
        time_limit_ms: of.time_limit.map(|span| span.0),
        expected_runtime_ms: of.expected_runtime.map(|span| span.0),
        on_preempt: match of.on_preempt {
            spec::OnPreempt::Resume => OnPreempt::Resume,
            spec::OnPreempt::Restart => OnPreempt::Restart,
            spec::OnPreempt::End => OnPreempt::End,
        },
        checkpoint_every_ms: of.checkpoint_every.map(|span| span.0),
        start: (first.min_runtime.0 > 0).then_some(match of.start {
            spec::Start::Guaranteed => Start::Guaranteed,
            spec::Start::Whenever => Start::Whenever,
        }),
        priority: of.priority,
        kind: match of.kind {
            spec::WorkloadKind::Batch => Kind::Batch,
            spec::WorkloadKind::Session => Kind::Session,
        },
        class: match class {
            entry::Class::Debug => Class::Debug,
            entry::Class::Medium => Class::Medium,
            entry::Class::Largest => Class::Largest,
            entry::Class::Unallocated => Class::Unallocated,
        },
        others: Vec::new(),
        skipped: Vec::new(),
    }
}

fn ms(at: Time) -> i64 {
    at.0
}

fn placement(slots: &[entry::Slot], names: &dyn Names) -> Placement {
    let gpus = |set: u64| (0..64u8).filter(|gpu| set >> gpu & 1 == 1).collect();
    Placement(slots.iter().map(|slot| (names.node(slot.node), gpus(slot.gpus.0))).collect())
}

fn node_state(state: spec::NodeState) -> (State, Option<Severity>) {
    match state {
        spec::NodeState::Ready => (State::Ready, None),
        spec::NodeState::Draining(spec::Severity::Maintenance) => (State::Draining, Some(Severity::Maintenance)),
        spec::NodeState::Draining(spec::Severity::Sick) => (State::Draining, Some(Severity::Sick)),
        spec::NodeState::Draining(spec::Severity::Critical) => (State::Draining, Some(Severity::Critical)),
        spec::NodeState::Drained => (State::Drained, None),
        spec::NodeState::Repairing => (State::Repairing, None),
        spec::NodeState::Lost => (State::Lost, None),
    }
}

pub(crate) fn licence(of: entry::Licence) -> Licence {
    match of {
        entry::Licence::Free => Licence::Free,
        entry::Licence::Unallocated => Licence::Unallocated,
        entry::Licence::Express => Licence::Express,
        entry::Licence::OwnLeaf => Licence::OwnLeaf,
        entry::Licence::Tree => Licence::Tree,
        entry::Licence::Share => Licence::Share,
        entry::Licence::Reservation => Licence::Reservation,
        entry::Licence::Drain => Licence::Drain,
        entry::Licence::Critical => Licence::Critical,
        entry::Licence::Administrator => Licence::Administrator,
    }
}

fn outcome(of: entry::Outcome) -> Outcome {
    match of {
        entry::Outcome::Completed => Outcome::Completed,
        entry::Outcome::Failed => Outcome::Failed,
        entry::Outcome::Preempted => Outcome::Preempted,
        entry::Outcome::Cancelled => Outcome::Cancelled,
        entry::Outcome::TimedOut => Outcome::TimedOut,
        entry::Outcome::NodeLost => Outcome::NodeLost,
        entry::Outcome::StartTimeout => Outcome::StartTimeout,
    }
}

fn charge_kind(of: entry::ChargeKind) -> ChargeKind {
    match of {
        entry::ChargeKind::Run => ChargeKind::Run,
        entry::ChargeKind::Hold => ChargeKind::Hold,
    }
}

/// The reasons that may end a hold, as words; the sentence for people stands beside it.
fn cause(why: &Why) -> UnholdCause {
    match why {
        Why::ClaimantStarted | Why::HoldComplete { .. } => UnholdCause::Started,
        Why::ClaimantGone | Why::Owner | Why::Administrator { .. } => UnholdCause::ClaimantGone,
        Why::VictimStuck { .. } => UnholdCause::VictimStuck,
        Why::HoldNodeGone { .. } | Why::NodeLost { .. } | Why::NodeCritical { .. } => UnholdCause::NodeGone,
        _ => UnholdCause::Other,
    }
}
