//! What the shell tells the core about budgets, nodes and workloads.

use crate::id::{BlockId, BudgetId, FamilyId, PoolId, UserId};
use crate::quantity::{Gpus, Ppm, Span};

/// Which order a leaf's own work has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum LeafOrder {
    /// Priority, then the user who had least, then the longest eligible.
    #[default]
    Priority,
    /// The longest eligible first.
    Fifo,
    /// The shortest contract (GPUs × min runtime) first.
    ShortestContract,
    /// The longest eligible first, with a head start for what is likely to complete: see [`crate::record`].
    Completion,
}

/// What a budget has in one pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct PoolShare {
    /// Its part of its parent.
    pub share: Ppm,
    /// The most GPUs its allocated work may hold at once.
    pub gpus_max: Option<Gpus>,
    /// The most GPUs its unallocated work may hold at once.
    pub unallocated_gpus_max: Option<Gpus>,
    /// The longest contract that may start here.
    pub min_runtime_max: Option<Span>,
}

/// One budget as a changeset states it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct BudgetSpec {
    /// Its number.
    pub id: BudgetId,
    /// Its parent; `None` for the root, which stays the root.
    pub parent: Option<BudgetId>,
    /// The last part of its path.
    pub name: String,
    /// What it has in each pool, by pool number; a pool beyond the end counts as no share.
    pub pools: Vec<PoolShare>,
    /// The order of its work, if it is a leaf.
    pub order: LeafOrder,
    /// It and all below it take no new work, and what waits is held; what runs keeps its contract.
    pub closed: bool,
}

/// A change of the budget tree: the budgets it adds or sets, all others stay as they are. One that names another parent moves the budget
/// with all below it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Changeset {
    /// The version of the tree that the author saw; a stale one is refused and nothing is lost.
    pub based_on: u32,
    /// Who.
    pub author: String,
    /// Why.
    pub reason: String,
    /// What.
    pub budgets: Vec<BudgetSpec>,
}

/// What happens to a workload when it is preempted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum OnPreempt {
    /// It goes on from its last checkpoint.
    Resume,
    /// It starts again from nothing.
    Restart,
    /// It cannot go on: its contract is its time limit.
    End,
}

/// Whether work with a contract may run before it has one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Start {
    /// It starts with its contract or not at all.
    #[default]
    Guaranteed,
    /// Rather than wait beside idle GPUs it starts unallocated, and is promoted in place when its turn comes. Not for `end` work, which a
    /// preemption would end.
    Whenever,
}

/// Batch work, or somebody at a keyboard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum WorkloadKind {
    /// Runs by itself.
    #[default]
    Batch,
    /// Interactive.
    Session,
}

/// Features a node has or a workload needs, as bits that the shell assigns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Features(pub u64);

/// A gang: `members × gpus_per_member`, each member on one node, started whole or not at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Gang {
    /// At least 1.
    pub members: u32,
    /// At least 1.
    pub gpus_per_member: u32,
    /// CPUs each member asks for; 0 takes the node's part of its GPUs.
    pub cpus_per_member: u32,
    /// Bytes of memory each member asks for; 0 takes the node's part of its GPUs.
    pub memory_per_member: u64,
    /// Features that each of its nodes must have.
    pub features: Features,
    /// All members in one block.
    pub same_block: bool,
}

impl Gang {
    /// A gang of GPUs alone.
    pub fn new(members: u32, gpus_per_member: u32) -> Gang {
        Gang { members, gpus_per_member, cpus_per_member: 0, memory_per_member: 0, features: Features(0), same_block: false }
    }

    /// All its GPUs.
    pub fn gpus(&self) -> Gpus {
        Gpus(self.members * self.gpus_per_member)
    }
}

/// The pools a workload accepts: at least one, the one it likes best first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Pools {
    /// The one it likes best.
    pub first: PoolId,
    /// The others, in order; none of them twice.
    pub others: Box<[PoolId]>,
}

impl Pools {
    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = PoolId> {
        std::iter::once(self.first).chain(self.others.iter().copied())
    }

    /// Several pools in order; `None` if there are none.
    pub fn from_order(pools: &[PoolId]) -> Option<Pools> {
        let (first, others) = pools.split_first()?;
        Some(Pools { first: *first, others: others.into() })
    }
}

impl From<PoolId> for Pools {
    fn from(first: PoolId) -> Pools {
        Pools { first, others: Box::default() }
    }
}

/// A workload as submitted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct WorkloadSpec {
    /// The leaf budget it is charged to.
    pub budget: BudgetId,
    /// Who submitted it.
    pub user: UserId,
    /// The work that it is like, by whose past it is judged where the leaf's order is by completion; `None` where the shell cannot tell.
    pub family: Option<FamilyId>,
    /// Where it may run: it waits in all of them, and starts in the first that it can.
    pub pools: Pools,
    /// What it needs.
    pub gang: Gang,
    /// The contract: how long it is protected once it runs. 0 is unallocated work.
    pub min_runtime: Span,
    /// The most running time over all attempts; `end` work must state it.
    pub time_limit: Option<Span>,
    /// How long its owner thinks that it runs, over all attempts. It is a hint: nothing ends by it, and the policy does not look at it.
    pub expected_runtime: Option<Span>,
    /// What happens when it is preempted.
    pub on_preempt: OnPreempt,
    /// Whether it may start before its contract can.
    pub start: Start,
    /// Order inside its leaf budget, nothing else; higher goes first.
    pub priority: i16,
    /// How often it checkpoints, counted from its lease's start, where that is known.
    pub checkpoint_every: Option<Span>,
    /// Batch or session.
    pub kind: WorkloadKind,
}

impl WorkloadSpec {
    /// Batch work that resumes and starts with its contract, without limits, hints or priority; what differs is set on top of it.
    pub fn new(budget: BudgetId, user: UserId, pools: impl Into<Pools>, gang: Gang, min_runtime: Span) -> WorkloadSpec {
        WorkloadSpec {
            budget,
            user,
            family: None,
            pools: pools.into(),
            gang,
            min_runtime,
            time_limit: None,
            expected_runtime: None,
            on_preempt: OnPreempt::Resume,
            start: Start::Guaranteed,
            priority: 0,
            checkpoint_every: None,
            kind: WorkloadKind::Batch,
        }
    }
}

/// A node as it joins.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct NodeSpec {
    /// The pool it belongs to.
    pub pool: PoolId,
    /// 1 to 64.
    pub gpus: u32,
    /// Its CPUs; 0 means that CPUs are not counted here.
    pub cpus: u32,
    /// Its memory in bytes; 0 means that memory is not counted here.
    pub memory: u64,
    /// The block it stands in.
    pub block: BlockId,
    /// What it has.
    pub features: Features,
    /// Set aside for short contracts and unallocated work.
    pub express: bool,
}

/// Why and how urgently a node drains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Severity {
    /// Planned: what certainly ends before the drain's end may still start.
    Maintenance,
    /// Nothing starts; occupants go on until their protection ends.
    Sick,
    /// Everything stops at once, refunded.
    Critical,
}

/// The state of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum NodeState {
    /// In use.
    Ready,
    /// On its way out, with the reason's severity.
    Draining(Severity),
    /// Empty and out.
    Drained,
    /// The repair hook runs.
    Repairing,
    /// Gone without a word.
    Lost,
}
