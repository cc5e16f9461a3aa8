//! A small lab with the real core: what a service would do in its turns, without the service.

use crate::dice::Dice;
use stipend_core::Scheduler;
use stipend_core::entry::Entry;
use stipend_core::event::{Event, Exit};
use stipend_core::id::{BlockId, BudgetId, LeaseId, NodeId, PoolId, UserId, WorkloadId};
use stipend_core::knobs::Knobs;
use stipend_core::quantity::{Ppm, Span, Time};
use stipend_core::spec::{BudgetSpec, Changeset, Features, Gang, LeafOrder, NodeSpec, PoolShare, WorkloadSpec};
use stipend_server::store::{Batch, Line, Restored, Step};

const POOL: PoolId = PoolId(0);

/// The scheduler, and what the engine under it would know.
pub(crate) struct Lab {
    pub(crate) scheduler: Scheduler,
    pub(crate) now: Time,
    turn: u64,
    workloads: u32,
    lines: u64,
    leases: Vec<LeaseId>,
}

impl Lab {
    /// A lab, and the batch that makes it.
    pub(crate) fn new() -> (Lab, Batch) {
        let now = Time(1_000_000);
        let mut lab = Lab { scheduler: Scheduler::new(now), now, turn: 0, workloads: 0, lines: 0, leases: Vec::new() };
        let mut events = vec![Event::KnobsSet { pool: POOL, knobs: Box::new(Knobs::default()) }];
        let budget = |id: u32, share: u32, name: &str| BudgetSpec {
            id: BudgetId(id),
            parent: (id > 0).then_some(BudgetId(0)),
            name: name.into(),
            pools: vec![PoolShare { share: Ppm(share), ..PoolShare::default() }],
            order: LeafOrder::default(),
            closed: false,
        };
        let budgets = vec![budget(0, 1_000_000, "lab"), budget(1, 600_000, "nlp"), budget(2, 400_000, "vision")];
        events.push(Event::BudgetsChanged(Changeset { based_on: 0, author: "ann".into(), reason: "the first".into(), budgets }));
        for node in 0..4 {
            let spec = NodeSpec { pool: POOL, gpus: 8, cpus: 0, memory: 0, block: BlockId(0), features: Features(0), express: false };
            events.push(Event::NodeJoined { node: NodeId(node), spec });
        }
        let batch = lab.tell(events);
        (lab, batch)
    }

    /// The lab as it was found in a store.
    pub(crate) fn restored(restored: Restored) -> Lab {
        let values: std::collections::BTreeMap<String, String> = restored.values.into_iter().collect();
        let numbers = |key: &str| values[key].split_whitespace().map(|number| number.parse().expect("a number")).collect::<Vec<u32>>();
        let leases = numbers("leases").chunks(2).map(|lease| LeaseId { workload: WorkloadId(lease[0]), attempt: lease[1] }).collect();
        Lab {
            scheduler: restored.scheduler.expect("a scheduler"),
            now: restored.last_written.expect("a time"),
            turn: u64::from(numbers("turn")[0]),
            workloads: numbers("workloads")[0],
            lines: restored.last_line,
            leases,
        }
    }

    pub(crate) fn turns(&self) -> u64 {
        self.turn
    }

    /// Some time later: some work ends, some is submitted, and all is decided.
    pub(crate) fn turn(&mut self, dice: &mut Dice) -> Batch {
        self.now = self.now + Span(dice.below(400_000) as i64);
        let mut events = Vec::new();
        for lease in std::mem::take(&mut self.leases) {
            match dice.below(4) {
                0 => events.push(Event::LeaseEnded { lease, exit: *dice.pick(&[Exit::Completed, Exit::Failed, Exit::Infrastructure]) }),
                1 => {
                    events.push(Event::LeaseRunning { lease });
                    self.leases.push(lease);
                }
                _ => self.leases.push(lease),
            }
        }
        for _ in 0..dice.below(4) {
            let gang = Gang::new(1 + dice.below(2) as u32, 1 + dice.below(8) as u32);
            let min_runtime = Span::minutes(*dice.pick(&[0, 10, 60]));
            let (budget, user) = (BudgetId(1 + dice.below(2) as u32), UserId(dice.below(3) as u32));
            let spec = WorkloadSpec::new(budget, user, POOL, gang, min_runtime).into();
            events.push(Event::Submitted { workload: WorkloadId(self.workloads), spec });
            self.workloads += 1;
        }
        self.tell(events)
    }

    fn tell(&mut self, events: Vec<Event>) -> Batch {
        let (mut batch, mut log, at) = (Batch::default(), Vec::new(), self.now);
        for event in events {
            if self.scheduler.apply(at, &event, &mut log).is_ok() {
                batch.steps.push(Step::Event { at, event });
            }
        }
        batch.steps.push(Step::Plan { at, plan: self.scheduler.decide(at, &mut log) });
        for entry in log {
            match &entry {
                Entry::Started { lease, .. } => self.leases.push(*lease),
                Entry::Ended { workload, .. } => self.leases.retain(|lease| lease.workload != *workload),
                _ => {}
            }
            self.lines += 1;
            batch.lines.push(Line { seq: self.lines, t_ms: at.0, event: "entry".into(), workload: None, json: format!("{entry:?}") });
        }
        self.turn += 1;
        let leases: Vec<String> = self.leases.iter().map(|lease| format!("{} {}", lease.workload.0, lease.attempt)).collect();
        let values = [("turn", self.turn.to_string()), ("workloads", self.workloads.to_string()), ("leases", leases.join(" "))];
        batch.values = values.map(|(key, value)| (key.into(), value)).into();
        batch
    }
}
