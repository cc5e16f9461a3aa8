//! One node and two leaves with half of it each: what the stories of these tests begin with.

use stipend_core::Scheduler;
use stipend_core::event::Event;
use stipend_core::id::{BlockId, BudgetId, NodeId, PoolId};
use stipend_core::quantity::{Ppm, Time};
use stipend_core::spec::{BudgetSpec, Changeset, Features, LeafOrder, NodeSpec, PoolShare};

/// The only pool.
pub(crate) const POOL: PoolId = PoolId(0);

/// A core that knows of a node with so many GPUs, and of the leaves 1 and 2, whose work goes first in, first out.
pub(crate) fn core(gpus: u32) -> Scheduler {
    let mut core = Scheduler::new(Time(0));
    let mut tell = |event: Event| core.apply(Time(0), &event, &mut Vec::new()).expect("a sound set-up");
    tell(Event::KnobsSet { pool: POOL, knobs: Box::default() });
    let budget = |id: u32, parent: Option<u32>, share| BudgetSpec {
        id: BudgetId(id),
        parent: parent.map(BudgetId),
        name: format!("b{id}"),
        pools: vec![PoolShare { share: Ppm(share), ..PoolShare::default() }],
        order: LeafOrder::Fifo,
        closed: false,
    };
    let budgets = vec![budget(0, None, 1_000_000), budget(1, Some(0), 500_000), budget(2, Some(0), 500_000)];
    tell(Event::BudgetsChanged(Changeset { based_on: 0, author: "ann".into(), reason: "plan".into(), budgets }));
    let spec = NodeSpec { pool: POOL, gpus, cpus: 0, memory: 0, block: BlockId(0), features: Features(0), express: false };
    tell(Event::NodeJoined { node: NodeId(0), spec });
    core
}
