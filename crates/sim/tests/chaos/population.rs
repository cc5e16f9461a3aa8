//! A random cluster, a random tree, random work: small enough to be crowded, odd enough to meet every corner.

use crate::dice::Dice;
use std::collections::BTreeMap;
use std::sync::Arc;
use stipend_core::id::{BlockId, BudgetId, FamilyId, PoolId, UserId};
use stipend_core::knobs::{Kernel, Knobs};
use stipend_core::quantity::{Gpus, Ppm, Span};
use stipend_core::spec::{BudgetSpec, Features, Gang, LeafOrder, NodeSpec, OnPreempt, PoolShare, Pools, Start, WorkloadKind, WorkloadSpec};

pub(crate) const POOL: PoolId = PoolId(0);

/// Histories of several pools have seeds of their own, so that those of one pool stay what they were.
pub(crate) const TWO_POOLS: u64 = 1_000_000;

/// And so have histories in which budgets are moved, closed and opened again: of one pool, and with [`TWO_POOLS`] added, of two.
pub(crate) const REORGANISED: u64 = 30 * TWO_POOLS;

/// How names are given: the same history under other names must be the same history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Naming {
    pub(crate) budget: &'static str,
    pub(crate) user: u32,
}

pub(crate) const PLAIN: Naming = Naming { budget: "plain", user: 0 };
pub(crate) const OTHER: Naming = Naming { budget: "fresh", user: 1000 };

impl Naming {
    /// Another number for each user, in another order.
    pub(crate) fn user(self, number: u32) -> UserId {
        UserId(if self.user == 0 { number } else { self.user - number })
    }
}

/// What a history is made of.
pub(crate) struct Population {
    /// Milliseconds of the unit of time: minutes, hours or days decide how long things take.
    pub(crate) unit: i64,
    /// By pool.
    pub(crate) knobs: Vec<Knobs>,
    pub(crate) nodes: Vec<NodeSpec>,
    pub(crate) budgets: Vec<BudgetSpec>,
    pub(crate) naming: Naming,
    /// Whether work asks for CPUs, memory and features.
    pub(crate) asks: bool,
    pub(crate) gang_max: u32,
    /// Contracts are short beside the work, so that much runs past them and may be taken.
    pub(crate) is_short: bool,
    /// Budgets are moved and closed.
    pub(crate) is_reorganised: bool,
}

impl Population {
    pub(crate) fn new(seed: u64, dice: &mut Dice, naming: Naming) -> Population {
        let mut people = Population::of_one_pool(dice, naming);
        let pools = 1 + (seed / TWO_POOLS % 3) as u16;
        for pool in 1..pools {
            people.knobs.push(knobs(dice, people.unit));
            people.nodes.extend((0..dice.from(1, 8)).map(|_| NodeSpec { pool: PoolId(pool), ..node(dice, people.asks) }));
            share_out(dice, &mut people.budgets);
        }
        people.is_reorganised = seed >= REORGANISED;
        people.gang_max = people.nodes.iter().map(|node| node.gpus).sum::<u32>() / u32::from(pools);
        people
    }

    fn of_one_pool(dice: &mut Dice, naming: Naming) -> Population {
        let unit = *dice.pick(&[10_000, 60_000, 600_000, 3_600_000]);
        let (asks, is_short) = (dice.once_in(3), dice.once_in(2));
        let nodes: Vec<NodeSpec> = (0..dice.from(1, 12)).map(|_| node(dice, asks)).collect();
        Population {
            unit,
            knobs: vec![knobs(dice, unit)],
            budgets: tree(dice, naming),
            naming,
            asks,
            gang_max: nodes.iter().map(|n| n.gpus).sum(),
            is_short,
            is_reorganised: false,
            nodes,
        }
    }

    pub(crate) fn workload(&self, dice: &mut Dice, leaves: &[BudgetId]) -> Arc<WorkloadSpec> {
        let on_preempt = *dice.pick(&[OnPreempt::Resume, OnPreempt::Resume, OnPreempt::Restart, OnPreempt::End]);
        let min_runtime = match dice.below(if self.is_short { 10 } else { 5 }) {
            0 | 1 => Span::ZERO,
            5.. => Span::minutes(dice.from(1, 3)),
            2 => Span(60_000.max(dice.around(self.unit))),
            3 => Span::minutes(dice.from(1, 15)),
            _ => Span::minutes(dice.from(1, 480)),
        };
        let limit = dice.around(self.unit * 10).max(1000);
        let time_limit = (dice.once_in(3) || (on_preempt == OnPreempt::End && !dice.once_in(10))).then_some(Span(limit));
        Arc::new(WorkloadSpec {
            budget: *dice.pick(leaves),
            user: self.naming.user(dice.below(5) as u32),
            // No dice are thrown for it.
            family: (limit % 4 > 0).then_some(FamilyId(limit.unsigned_abs() % 7)),
            pools: self.pools(dice),
            gang: self.gang(dice),
            min_runtime,
            time_limit,
            // What the policy must not look at: any number will do, and no dice are thrown for it.
            expected_runtime: (limit % 3 == 0).then_some(Span(limit)),
            on_preempt,
            // Mostly what may be: `end` work may not, and is refused now and then. No dice are thrown for it, either.
            start: if limit % 2 == 0 && (on_preempt != OnPreempt::End || limit % 64 == 0) { Start::Whenever } else { Start::Guaranteed },
            priority: dice.from(-2, 2) as i16,
            checkpoint_every: dice.once_in(2).then(|| Span(dice.around(self.unit))),
            kind: if dice.once_in(10) { WorkloadKind::Session } else { WorkloadKind::Batch },
        })
    }

    /// One pool, or several in any order; now and then one that does not exist.
    fn pools(&self, dice: &mut Dice) -> Pools {
        let mut left: Vec<PoolId> = (0..self.knobs.len() as u16).map(PoolId).collect();
        if left.len() == 1 {
            return POOL.into();
        }
        let mut order = Vec::new();
        for _ in 0..dice.from(1, left.len() as i64) {
            order.push(left.remove(dice.below(left.len() as u64) as usize));
        }
        if dice.once_in(100) {
            order.push(PoolId(dice.below(5) as u16));
        }
        Pools::from_order(&order).expect("at least one")
    }

    fn gang(&self, dice: &mut Dice) -> Gang {
        let gpus_per_member = *dice.pick(&[1, 1, 1, 2, 2, 3, 4, 4, 8, 8, 16]);
        let members = match dice.below(6) {
            0 => dice.from(2, 4) as u32,
            1 => (self.gang_max / gpus_per_member).max(1),
            _ => 1,
        };
        let mut gang = Gang::new(members, gpus_per_member);
        gang.same_block = dice.once_in(8);
        if self.asks {
            gang.cpus_per_member = if dice.once_in(3) { dice.from(1, 40) as u32 } else { 0 };
            gang.memory_per_member = if dice.once_in(4) { dice.from(1, 300) as u64 } else { 0 };
            gang.features = Features(if dice.once_in(4) { dice.below(4) } else { 0 });
        }
        gang
    }
}

fn node(dice: &mut Dice, asks: bool) -> NodeSpec {
    NodeSpec {
        pool: POOL,
        gpus: *dice.pick(&[1, 2, 4, 8, 8, 8, 8, 16]),
        cpus: if asks { *dice.pick(&[0, 16, 64, 96]) } else { 0 },
        memory: if asks { *dice.pick(&[0, 512, 1000]) } else { 0 },
        block: BlockId(dice.below(3) as u32),
        features: Features(dice.below(4)),
        express: dice.once_in(6),
    }
}

fn knobs(dice: &mut Dice, unit: i64) -> Knobs {
    let mut knobs = Knobs {
        lookback: Span((unit * dice.from(5, 300)).max(600_000)),
        kernel: *dice.pick(&[Kernel::Fading, Kernel::Sliding]),
        min_runtime_max: Span::minutes(dice.from(5, 480)),
        quantum: Span(dice.from(0, unit)),
        restart_cost: Span(dice.from(0, unit / 10)),
        worth_it: Ppm(*dice.pick(&[250_000, 1_000_000, 10_000_000])),
        ..Knobs::default()
    };
    // Drawn from what was drawn before, so that histories of older days stay the same.
    knobs.reservations_max = (knobs.quantum.0 % 5) as u32;
    knobs.reservation_gang_min = Ppm((knobs.lookback.0 / 1000 % 600_000) as u32);
    knobs.credit_max = Span(knobs.lookback.0 / (1 + knobs.quantum.0 % 7));
    vary(dice, &mut knobs, unit);
    knobs
}

/// Changes some of the knobs.
pub(crate) fn vary(dice: &mut Dice, knobs: &mut Knobs, unit: i64) {
    match dice.below(8) {
        0 => knobs.quantum = Span(dice.from(0, unit)),
        1 => knobs.commitments = !knobs.commitments,
        2 => knobs.below_share = Ppm(dice.from(1_000_000, 1_500_000) as u32),
        3 => knobs.worth_it = Ppm(dice.from(0, 10_000_000) as u32),
        4 => knobs.start_timeout = Span::seconds(dice.from(30, 900)),
        5 => knobs.checkpoint_wait_max = Span(dice.from(0, unit)),
        6 => (knobs.grace_allocated, knobs.grace_unallocated) = (Span::seconds(dice.from(1, 200)), Span::seconds(dice.from(1, 60))),
        _ => knobs.age_min = Span(dice.around(unit * 5)),
    }
}

/// One to four levels below a root that has everything.
fn tree(dice: &mut Dice, naming: Naming) -> Vec<BudgetSpec> {
    let mut budgets = vec![budget(0, None, 1_000_000, naming)];
    let depth = dice.from(1, 3);
    let mut above = vec![0u32];
    for _ in 0..depth {
        let mut level = Vec::new();
        for parent in above {
            if parent != 0 && dice.once_in(3) {
                continue;
            }
            let mut left = 1_000_000;
            for _ in 0..dice.from(1, 3) {
                let id = budgets.len() as u32;
                let share = if dice.once_in(10) { 0 } else { dice.from(1, left.max(1)) };
                left -= share;
                let mut child = budget(id, Some(parent), share.min(1_000_000), naming);
                cap(dice, &mut child);
                budgets.push(child);
                level.push(id);
            }
        }
        above = level;
    }
    budgets
}

pub(crate) fn budget(id: u32, parent: Option<u32>, share: i64, naming: Naming) -> BudgetSpec {
    let pools = vec![PoolShare { share: Ppm(share as u32), ..PoolShare::default() }];
    BudgetSpec {
        id: BudgetId(id),
        parent: parent.map(BudgetId),
        name: format!("{}{id}", naming.budget),
        pools,
        order: LeafOrder::Priority,
        closed: false,
    }
}

/// Every budget gets a share of one more pool.
fn share_out(dice: &mut Dice, budgets: &mut [BudgetSpec]) {
    let mut left: BTreeMap<Option<BudgetId>, i64> = BTreeMap::new();
    for budget in budgets {
        let left = left.entry(budget.parent).or_insert(1_000_000);
        let share = if budget.parent.is_none() { 1_000_000 } else { dice.from(0, *left) };
        *left -= share;
        budget.pools.push(PoolShare { share: Ppm(share as u32), ..PoolShare::default() });
        let pool = budget.pools.len() - 1;
        cap_in(dice, budget, pool);
    }
}

/// Sometimes a cap, sometimes another order.
pub(crate) fn cap(dice: &mut Dice, budget: &mut BudgetSpec) {
    cap_in(dice, budget, 0);
}

fn cap_in(dice: &mut Dice, budget: &mut BudgetSpec, pool: usize) {
    let pool = &mut budget.pools[pool];
    match dice.below(8) {
        0 => pool.gpus_max = Some(Gpus(dice.from(0, 24) as u32)),
        1 => pool.unallocated_gpus_max = Some(Gpus(dice.from(0, 24) as u32)),
        2 => pool.min_runtime_max = Some(Span::minutes(dice.from(1, 480))),
        3 => budget.order = LeafOrder::Fifo,
        4 => budget.order = LeafOrder::ShortestContract,
        5 => budget.order = LeafOrder::Completion,
        _ => {}
    }
}
