//! Reasons, born with the decision and made of the very values that were compared; nothing is rebuilt afterwards.

use crate::entry::{By, Licence};
use crate::event::Rejection;
use crate::id::{BudgetId, LeaseId, NodeId, PoolId, UserId, WorkloadId};
use crate::quantity::{GpuMs, Gpus, Span, Standing, Time};
use crate::spec::Gang;
use std::borrow::Cow;
use std::sync::Arc;

/// Turns ids into the labels people know. The core compares ids only, so labels never change a decision.
pub trait Names {
    /// The full path of a budget.
    fn budget(&self, id: BudgetId) -> String {
        id.to_string()
    }
    /// A workload's label.
    fn workload(&self, id: WorkloadId) -> String {
        id.to_string()
    }
    /// A node's label.
    fn node(&self, id: NodeId) -> String {
        id.to_string()
    }
    /// A pool's label.
    fn pool(&self, id: PoolId) -> String {
        id.to_string()
    }
    /// In a pool without GPUs, how many CPUs are counted as one.
    fn cpus_per_gpu(&self, _pool: PoolId) -> Option<u32> {
        None
    }
    /// A user's label.
    fn user(&self, id: UserId) -> String {
        id.to_string()
    }
    /// How a point in time is shown.
    fn time(&self, at: Time) -> String {
        Span(at.0).to_string()
    }
}

/// The ids themselves as labels.
pub struct Ids;

impl Names for Ids {}

/// Which part of the order decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Tier {
    /// The leaf is below its own share.
    OwnShare,
    /// The surplus, which goes by the tree.
    Tree,
    /// Idle GPUs, for unallocated work.
    Idle,
}

/// A budget and its standing at the moment of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct BudgetStanding {
    /// Which.
    pub budget: BudgetId,
    /// Its standing.
    pub standing: Standing,
}

/// The reason of a decision.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Why {
    /// A start in rank order: the tier, the standings from below the root to the leaf, and what it took.
    Rank { pool: PoolId, tier: Tier, standings: Box<[BudgetStanding]>, licence: Licence },
    /// It runs unallocated, and its turn has come: the tier, and the standings from below the root to the leaf.
    Turn { tier: Tier, standings: Box<[BudgetStanding]> },
    /// Only a cap keeps it from its turn, and these GPUs are idle: it starts before it, unallocated.
    Early { pool: PoolId },
    /// Somebody used the session since its contract began, and nobody who waits could take its GPUs.
    InUse,
    /// The GPUs held for it are all free now.
    HoldComplete { pool: PoolId, planned: Time },
    /// A lease yields to a claimant.
    Yields(Box<Yield>),
    /// The drain of this node reached its end.
    DrainEnds { node: NodeId },
    /// This node drains critically.
    NodeCritical { node: NodeId },
    /// This node was lost.
    NodeLost { node: NodeId },
    /// Not all members ran in time.
    StartTimeout { limit: Span },
    /// The running time over all attempts reached the limit.
    TimeLimit { limit: Span },
    /// The best-ranked gang that cannot start is promised a start: the tier, the standings from below the root to the leaf, and when the
    /// last protection on its nodes ends.
    Promised { tier: Tier, standings: Box<[BudgetStanding]>, clears: Time },
    /// A promised start moves to an earlier time.
    PromisedEarlier { before: Time, clears: Time },
    /// A promised start moves to other nodes, as it cannot have one of its own in time.
    PromisedElsewhere { before: Time, clears: Time },
    /// The owner withdrew it.
    Owner,
    /// An administrator stopped it.
    Administrator { reason: String },
    /// The claimant started.
    ClaimantStarted,
    /// The claimant went away.
    ClaimantGone,
    /// A victim would not die.
    VictimStuck { lease: LeaseId },
    /// A node of the hold left service.
    HoldNodeGone { node: NodeId },
    /// A rule of a baseline policy; the core itself never says it.
    Rule(Cow<'static, str>),
}

/// Who took a lease's GPUs, by which licence, and both sides' figures.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Yield {
    /// The pool.
    pub pool: PoolId,
    /// The claimant.
    pub claimant: WorkloadId,
    /// The licence.
    pub licence: Licence,
    /// The claimant's side and its standing.
    pub claimant_side: BudgetStanding,
    /// What the quantum adds to the claimant's standing in the comparison.
    pub quantum: Standing,
    /// The victim's side and its standing without commitments.
    pub victim_side: BudgetStanding,
    /// When the victim's protection ended; `None` if it never had one.
    pub protection_ended: Option<Time>,
    /// The GPU time expected to be lost.
    pub loss: GpuMs,
}

impl Why {
    /// One line for people.
    pub fn text(&self, names: &dyn Names) -> String {
        match self {
            Why::Rank { pool, tier: Tier::Idle, .. } => {
                format!("idle {}: runs unallocated, never charged, may be preempted at any time", unit(*pool, names))
            }
            Why::Rank { pool, tier, standings, licence } => {
                let unit = unit(*pool, names);
                let taken = match licence {
                    Licence::Free => format!("on free {unit}"),
                    Licence::Unallocated => format!("taking unallocated work's {unit}"),
                    Licence::Reservation => "on the nodes that were reserved for it".to_string(),
                    _ => format!("taking past-contract {unit}"),
                };
                format!("{}, {taken}", rank_text(*tier, standings, names))
            }
            Why::Early { pool } => {
                format!("idle {} before its turn: not charged and not protected until its contract can begin", unit(*pool, names))
            }
            Why::InUse => "it was used since its contract began, and nobody who waits could take its GPUs".into(),
            Why::Turn { tier, standings } => format!("{}, where it runs", rank_text(*tier, standings, names)),
            Why::HoldComplete { pool, planned } => {
                format!("the {} held for it since {} are free", unit(*pool, names), names.time(*planned))
            }
            Why::Yields(y) => yield_text(y, names),
            Why::DrainEnds { node } => format!("the drain of {} ends", names.node(*node)),
            Why::NodeCritical { node } => format!("{} drains critically", names.node(*node)),
            Why::NodeLost { node } => format!("{} was lost", names.node(*node)),
            Why::StartTimeout { limit } => format!("not all members ran within {limit}"),
            Why::TimeLimit { limit } => format!("it ran for its time limit of {limit}"),
            Why::Promised { tier, standings, clears } => {
                let last = names.time(*clears);
                format!("{}, and cannot start now; the last protection on these nodes ends by {last}", rank_text(*tier, standings, names))
            }
            Why::PromisedEarlier { before, clears } => {
                format!("earlier than {}: the last protection on these nodes ends by {}", names.time(*before), names.time(*clears))
            }
            Why::PromisedElsewhere { before, clears } => format!(
                "a node cannot be had in time for {}; the last protection on these ends by {}",
                names.time(*before),
                names.time(*clears)
            ),
            Why::Owner => "its owner withdrew it".into(),
            Why::Administrator { reason } => format!("an administrator stopped it: {reason}"),
            Why::ClaimantStarted => "started".into(),
            Why::ClaimantGone => "the claimant went away".into(),
            Why::VictimStuck { lease } => format!("{} attempt {} would not die", names.workload(lease.workload), lease.attempt),
            Why::HoldNodeGone { node } => format!("{} left service", names.node(*node)),
            Why::Rule(rule) => rule.clone().into_owned(),
        }
    }
}

fn rank_text(tier: Tier, standings: &[BudgetStanding], names: &dyn Names) -> String {
    let path: Vec<String> = standings.iter().map(|s| format!("{} {}", names.budget(s.budget), s.standing)).collect();
    let tier = if tier == Tier::OwnShare { "below its share" } else { "its turn in the tree" };
    format!("{tier} ({})", path.join(" > "))
}

fn yield_text(y: &Yield, names: &dyn Names) -> String {
    let unit = unit(y.pool, names);
    let claimant = names.workload(y.claimant);
    let protection = match y.protection_ended {
        Some(at) => format!("its protection ended at {}", names.time(at)),
        None => "it was never protected".into(),
    };
    let compared = || {
        format!(
            "{} {} + quantum {} < {} {}",
            names.budget(y.claimant_side.budget),
            y.claimant_side.standing,
            y.quantum,
            names.budget(y.victim_side.budget),
            y.victim_side.standing
        )
    };
    let licence = match y.licence {
        Licence::Unallocated => format!("allocated work takes unallocated {unit}"),
        Licence::Share => format!("a leaf below its share takes past-contract {unit} ({})", compared()),
        Licence::Tree => format!("its side of the tree is below its share ({})", compared()),
        Licence::OwnLeaf => "same budget, goes first by priority or age".to_string(),
        Licence::Express => format!("a short contract takes past-contract {unit} on express nodes"),
        Licence::Reservation => "the node was reserved for it, and its date has come".to_string(),
        other => format!("{other:?}"),
    };
    format!("yields to {claimant}: {licence}; {protection}; expected loss {}", minutes(y.loss, y.pool, names))
}

/// Why a gang can never run in a pool, and the largest that could.
pub fn never_fits(pool: PoolId, gang: &Gang, members_max: u32, names: &dyn Names) -> String {
    let each = amount(gang.gpus_per_member, pool, names);
    let members = |n: u32| format!("{n} {}", if n == 1 { "member" } else { "members" });
    let why = match members_max {
        0 => {
            let hint = if gang.gpus_per_member > 1 { "; ask for more members that are smaller" } else { "" };
            format!(": no node holds one member of {each} with its CPUs, memory and features{hint}")
        }
        n => format!("; what could: {} of {each}{}", members(n), if gang.same_block { " in one block" } else { "" }),
    };
    format!("a gang of {} of {each} can never fit this pool{why}", members(gang.members))
}

/// What a pool's nodes are counted in.
pub(crate) fn unit(pool: PoolId, names: &dyn Names) -> &'static str {
    if names.cpus_per_gpu(pool).is_some() { "CPUs" } else { "GPUs" }
}

/// So many of them.
pub(crate) fn amount(gpus: u32, pool: PoolId, names: &dyn Names) -> String {
    format!("{} {}", gpus * names.cpus_per_gpu(pool).unwrap_or(1), unit(pool, names))
}

fn minutes(time: GpuMs, pool: PoolId, names: &dyn Names) -> String {
    let (each, unit) = names.cpus_per_gpu(pool).map_or((1, "GPU-min"), |cpus| (cpus, "CPU-min"));
    format!("{} {unit}", GpuMinutes(GpuMs(time.0 * i64::from(each))))
}

/// Shows GPU time in GPU-minutes with one decimal, in integers.
struct GpuMinutes(GpuMs);

impl std::fmt::Display for GpuMinutes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let tenths = self.0.0 / 6000;
        write!(f, "{}.{}", tenths / 10, tenths % 10)
    }
}

impl By {
    /// A few words for people.
    pub fn text(&self, names: &dyn Names) -> String {
        match self {
            By::Itself => "itself".into(),
            By::Claimant(claimant) => format!("claimant {}", names.workload(*claimant)),
            By::Drain => "drain".into(),
            By::CriticalDrain => "critical drain".into(),
            By::NodeLost => "node lost".into(),
            By::StartTimeout => "start timeout".into(),
            By::TimeLimit => "time limit".into(),
            By::Owner => "owner".into(),
            By::Administrator(reason) => format!("administrator: {reason}"),
        }
    }
}

/// What keeps waiting work from starting, the binding limit first.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Blocker {
    /// It is held.
    Held { why: String },
    /// The budget has no claim on the pool any more.
    ZeroClaim { budget: BudgetId },
    /// The budget, or one above it, is closed: what runs there before its turn gets no contract any more.
    BudgetClosed { budget: BudgetId },
    /// A cap of this budget; work of its own frees it.
    Cap { budget: BudgetId, limit: Gpus, in_use: Gpus },
    /// The GPUs that it may take are enough in number but not in shape.
    Fragmented { needed_members: u32, members_fitting: u32, free: Gpus },
    /// Everything is in use by work that is protected or that its licences do not reach.
    InUse { needed: Gpus, reachable: Gpus, protected_until: Option<Time> },
    /// It fits on nodes that are promised to this workload from then on, and might not have left by then.
    Reserved { workload: WorkloadId, from: Time, gone_by: Time },
    /// It starts on its reserved nodes at the latest then, which is so near that it waits for them.
    DateNear { latest_start: Time },
    /// It runs unallocated on this node, where no contract like its own may start: it leaves service, or is set aside for short ones.
    NotThere { node: NodeId },
    /// It runs unallocated and is on its way out.
    Leaving,
    /// The eviction that would serve it loses more than it is worth.
    NotWorthIt { loss: GpuMs, limit: GpuMs },
    /// This cycle looked for victims as often as it may; it is tried again at once.
    SearchesSpent,
    /// The scheduler was away, and evictions go slowly for some minutes: it is tried again then.
    AfterGap { until: Time },
    /// It yielded its GPUs to a claimant that has not started yet.
    Yielded,
    /// Its GPUs are held; some are still being vacated.
    HoldIncomplete,
    /// Others of its own budget, or of budgets further below their share, go first.
    Behind { leaf: BudgetId },
    /// It needs more GPUs than there are on nodes in service: the others are drained, being repaired or lost.
    OutOfService { needed: Gpus, in_service: Gpus, all: Gpus },
    /// The pool could never take it, so it does not wait there. Never part of a plan.
    #[cfg_attr(feature = "serde", serde(skip))]
    Skipped(Rejection),
}

impl Blocker {
    /// One line for people, of what stops work in `pool`.
    pub fn text(&self, pool: PoolId, names: &dyn Names) -> String {
        let amount = |gpus: u32| amount(gpus, pool, names);
        match self {
            Blocker::Held { why } => format!("held: {why}"),
            Blocker::ZeroClaim { budget } => {
                format!("{} has no claim on the pool; it may run unallocated work only", names.budget(*budget))
            }
            Blocker::BudgetClosed { budget } => format!("the budget {} is closed: nothing there gets a contract", names.budget(*budget)),
            Blocker::Cap { budget, limit, in_use } => {
                let (limit, in_use) = (amount(limit.0), in_use.0 * names.cpus_per_gpu(pool).unwrap_or(1));
                let budget = names.budget(*budget);
                format!("the cap of {budget} on {limit} at once is reached ({in_use} in use); it frees when that budget's own work ends")
            }
            Blocker::Fragmented { needed_members, members_fitting, free } => {
                format!("{} are within reach but fit only {members_fitting} of {needed_members} members", amount(free.0))
            }
            Blocker::InUse { needed, reachable, protected_until } => {
                let until = protected_until.map(|t| format!("; the next protection ends at {}", names.time(t))).unwrap_or_default();
                let reachable = reachable.0 * names.cpus_per_gpu(pool).unwrap_or(1);
                format!(
                    "needs {}; {reachable} are within reach, the rest is protected, or stands less than a quantum higher{until}",
                    amount(needed.0)
                )
            }
            Blocker::OutOfService { all: Gpus(0), .. } => "the pool has no nodes yet".into(),
            Blocker::OutOfService { needed, in_service, all } => {
                let (here, whose) = match in_service.0 * names.cpus_per_gpu(pool).unwrap_or(1) {
                    0 => ("none".into(), "its"),
                    some => (some.to_string(), "the other"),
                };
                format!(
                    "needs {}; {here} of the pool's {} take new work: {whose} nodes are draining, drained, being repaired or lost",
                    amount(needed.0),
                    amount(all.0)
                )
            }
            Blocker::Reserved { workload, from, gone_by } => format!(
                "it fits only on nodes that are reserved for {} from {}, and with its contract it might be there until {}",
                names.workload(*workload),
                names.time(*from),
                names.time(*gone_by)
            ),
            Blocker::DateNear { latest_start } => {
                format!("its reserved nodes are its own at {} at the latest, and it waits for them", names.time(*latest_start))
            }
            Blocker::NotThere { node } => {
                format!("it runs on {}, which leaves service or is set aside for short contracts", names.node(*node))
            }
            Blocker::Leaving => "it is being stopped where it runs".into(),
            Blocker::NotWorthIt { loss, limit } => {
                let limit = limit.0 * i64::from(names.cpus_per_gpu(pool).unwrap_or(1));
                format!("an eviction would lose {}, more than the {} it is worth", minutes(*loss, pool, names), GpuMinutes(GpuMs(limit)))
            }
            Blocker::AfterGap { until } => format!(
                "the scheduler was away, and evicts at most a tenth of the pool a minute for 10 minutes; it is tried again at {}",
                names.time(*until)
            ),
            Blocker::SearchesSpent => "not looked at yet in full: many searches were due at once".into(),
            Blocker::Yielded => "it yielded to a workload that has not started yet, and waits until it has".into(),
            Blocker::HoldIncomplete => format!("{} are held for it; the last of them are being vacated", unit(pool, names)),
            Blocker::Behind { leaf } => format!("other work of {} goes first", names.budget(*leaf)),
            Blocker::Skipped(Rejection::GangNeverFits { pool, gang, members_max }) => never_fits(*pool, gang, *members_max, names),
            Blocker::Skipped(Rejection::Request { field, value, expected }) => format!("{field} = {value}: expected {expected}"),
            Blocker::Skipped(other) => format!("{other:?}"),
        }
    }
}

/// Where a waiting workload stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// Which workload.
    pub workload: WorkloadId,
    /// When this was true.
    pub at: Time,
    /// Where it stands in each pool that it names, in its order.
    pub pools: Vec<PoolExplanation>,
}

/// Where a waiting workload stands in one pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolExplanation {
    /// Which pool.
    pub pool: PoolId,
    /// The standings from below the root to its leaf.
    pub standings: Vec<BudgetStanding>,
    /// Waiting workloads of its leaf that go before it.
    pub ahead_in_leaf: u32,
    /// When it starts at the latest: a promise, which only a reservation makes.
    pub latest_start: Option<Time>,
    /// The nodes on which it does; empty without a promise.
    pub reserved: Arc<[NodeId]>,
    /// What stops it, the binding limit first.
    pub blockers: Vec<Blocker>,
}
