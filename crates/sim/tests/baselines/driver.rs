//! The least that drives a policy: submissions and ends on a heap, no failures. The engine is the real one.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use stipend_core::entry::Entry;
use stipend_core::event::{Event, Exit};
use stipend_core::id::{BlockId, BudgetId, LeaseId, NodeId, PoolId, UserId, WorkloadId};
use stipend_core::knobs::Knobs;
use stipend_core::quantity::{Ppm, Span, Time};
use stipend_core::spec::{BudgetSpec, Changeset, Features, Gang, LeafOrder, NodeSpec, OnPreempt, PoolShare, WorkloadSpec};
use stipend_sim::policy::Policy;

/// One workload of an open loop.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) submit: Time,
    pub(crate) gang: Gang,
    pub(crate) run: Span,
    pub(crate) time_limit: Span,
    pub(crate) team: u32,
}

/// What happens, in the order in which it is told at one instant: ends come before submissions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    End(LeaseId),
    Submit(u32),
}

/// A node of a pool without CPUs, memory or features.
pub(crate) fn node(gpus: u32, block: u32) -> NodeSpec {
    NodeSpec { pool: PoolId(0), gpus, cpus: 0, memory: 0, block: BlockId(block), features: Features(0), express: false }
}

/// A root with equal shares for `teams` leaves, numbered from 1.
pub(crate) fn equal_teams(teams: u32) -> Changeset {
    let budget = |id: u32, parent: Option<u32>, share: u32| BudgetSpec {
        id: BudgetId(id),
        parent: parent.map(BudgetId),
        name: format!("team-{id}"),
        pools: vec![PoolShare { share: Ppm(share), ..PoolShare::default() }],
        order: LeafOrder::Fifo,
        closed: false,
    };
    let mut budgets = vec![budget(0, None, 1_000_000)];
    budgets.extend((1..=teams).map(|id| budget(id, Some(0), 1_000_000 / teams)));
    Changeset { based_on: 0, author: "test".into(), reason: "start".into(), budgets }
}

/// What the scheduler is told of a job.
pub(crate) fn spec(job: &Job) -> Arc<WorkloadSpec> {
    let spec = WorkloadSpec::new(BudgetId(job.team), UserId(0), PoolId(0), job.gang, job.time_limit);
    Arc::new(WorkloadSpec { time_limit: Some(job.time_limit), on_preempt: OnPreempt::Restart, ..spec })
}

/// Tells the policy of the pool; everybody is in service.
pub(crate) fn set_up(policy: &mut dyn Policy, nodes: &[NodeSpec], teams: u32, log: &mut Vec<Entry>) {
    let knobs = Box::new(Knobs::default());
    let mut events = vec![Event::KnobsSet { pool: PoolId(0), knobs }, Event::BudgetsChanged(equal_teams(teams))];
    let joins = nodes.iter().enumerate();
    events.extend(joins.map(|(number, spec)| Event::NodeJoined { node: NodeId(number as u32), spec: spec.clone() }));
    for event in events {
        policy.apply(Time(0), event, log).expect("the pool is set up as it should be");
    }
}

/// Runs the jobs to their end and returns when each started; `None` for those that never did.
pub(crate) fn start_times(policy: &mut dyn Policy, nodes: &[NodeSpec], jobs: &[Job], teams: u32) -> Vec<Option<Time>> {
    let mut log = Vec::new();
    set_up(policy, nodes, teams, &mut log);
    let submits = jobs.iter().enumerate().map(|(number, job)| Reverse((job.submit, What::Submit(number as u32))));
    let mut heap: BinaryHeap<Reverse<(Time, What)>> = submits.collect();
    let mut starts = vec![None; jobs.len()];
    while let Some(&Reverse((now, _))) = heap.peek() {
        while heap.peek().is_some_and(|Reverse((at, _))| *at == now) {
            let Some(Reverse((_, what))) = heap.pop() else { break };
            let event = match what {
                What::End(lease) => Event::LeaseEnded { lease, exit: Exit::Completed },
                What::Submit(number) => Event::Submitted { workload: WorkloadId(number), spec: spec(&jobs[number as usize]) },
            };
            policy.apply(now, event, &mut log).expect("what the driver tells is true");
        }
        log.clear();
        policy.decide(now, &mut log);
        for entry in std::mem::take(&mut log) {
            let Entry::Started { lease, .. } = entry else { continue };
            policy.apply(now, Event::LeaseRunning { lease }, &mut log).expect("it has just started");
            starts[lease.workload.index()] = Some(now);
            heap.push(Reverse((now + jobs[lease.workload.index()].run, What::End(lease))));
        }
    }
    starts
}
