//! What is read from the service's own state.

use super::Service;
use super::budgets::order_name;
use super::input::Answer;
use crate::store::Kind;
use crate::wire::budget::{Budget, BudgetInPool, Tree};
use crate::wire::error::{Code, Problem};
use crate::wire::workload::{State, Submission, Workload};
use std::collections::HashMap;
use stipend_core::id::{PoolId, WorkloadId};
use stipend_core::quantity::Standing;
use stipend_sim::explain::StartEstimate;

/// With more workloads than this an explanation at each submission would cost too much; it is asked for by itself.
const EXPLAINED_MAX: usize = 2_000;

/// Of each budget of a pool, and whether it is below its share.
type Standings = HashMap<u32, (Standing, bool)>;

/// What work holds and waits for.
#[derive(Clone, Copy, Default)]
pub(super) struct Sums {
    pub(super) allocated: u32,
    pub(super) unallocated: u32,
    pub(super) waiting: u64,
    pub(super) waiting_count: u32,
}

impl Sums {
    pub(super) fn add(&mut self, other: &Sums) {
        self.allocated += other.allocated;
        self.unallocated += other.unallocated;
        self.waiting += other.waiting;
        self.waiting_count += other.waiting_count;
    }
}

impl Service {
    /// A workload, whether it has ended or not.
    pub(crate) fn workload(&self, id: u32) -> Answer<Workload> {
        if let Some(live) = self.live.get(id) {
            return Ok(live.view.clone());
        }
        let stored = self.reader.workload(id)?;
        stored.map(|row| row.view).ok_or_else(|| Problem::new(Code::NotFound, format!("there is no workload w{id}")))
    }

    /// The budget tree with its standings.
    pub(crate) fn tree(&self) -> Tree {
        let tree = self.scheduler.tree();
        let sums = self.sums();
        let pools: Vec<(&String, Standings)> = self
            .directory
            .names(Kind::Pool)
            .iter()
            .enumerate()
            .map(|(number, name)| (name, self.standings(PoolId(number as u16))))
            .collect();
        let budget = |budget: &stipend_core::budget::Budget| {
            let people = self.directory.people(budget.spec.id);
            let in_pool = |(number, (name, standings)): (usize, &(&String, Standings))| {
                let pool = PoolId(number as u16);
                let share = budget.share(pool);
                let (standing, below_share) = standings.get(&budget.spec.id.0).copied().unwrap_or((Standing::LAST, false));
                let sum = sums.get(&(budget.spec.id.0, number)).copied().unwrap_or_default();
                BudgetInPool {
                    pool: (*name).clone(),
                    share_percent: f64::from(share.share.0) / 10_000.0,
                    claim: budget.claim(pool).0 as f64 / stipend_core::quantity::Claim::WHOLE.0 as f64,
                    standing: (standing != Standing::LAST).then(|| standing.0 as f64 / Standing::SHARE.0 as f64),
                    below_share,
                    allocated_gpus: sum.allocated,
                    unallocated_gpus: sum.unallocated,
                    waiting_gpus: sum.waiting,
                    gpus_max: share.gpus_max.map(|cap| cap.0),
                    unallocated_gpus_max: share.unallocated_gpus_max.map(|cap| cap.0),
                    min_runtime_max_ms: share.min_runtime_max.map(|cap| cap.0),
                }
            };
            Budget {
                id: budget.spec.id.0,
                path: budget.path.clone(),
                leaf: budget.is_leaf(),
                closed: budget.closed_by.is_some(),
                managers: people.managers,
                members: people.members,
                order: order_name(budget.spec.order).into(),
                pools: pools.iter().enumerate().map(in_pool).collect(),
            }
        };
        Tree { version: tree.version(), budgets: tree.top_down().map(budget).collect() }
    }

    fn standings(&self, pool: PoolId) -> Standings {
        self.scheduler.standings(pool).into_iter().map(|(budget, standing, below)| (budget.0, (standing, below))).collect()
    }

    /// Of each budget and pool, with all that is below it.
    fn sums(&self) -> HashMap<(u32, usize), Sums> {
        let tree = self.scheduler.tree();
        let lines: HashMap<&str, &stipend_core::budget::Budget> = tree.top_down().map(|budget| (budget.path.as_str(), budget)).collect();
        let mut sums: HashMap<(u32, usize), Sums> = HashMap::new();
        for ((budget, pool), sum) in self.leaf_sums() {
            let (Some(budget), Some(pool)) = (lines.get(budget), self.directory.find(Kind::Pool, pool)) else { continue };
            for id in &budget.line {
                sums.entry((id.0, pool as usize)).or_default().add(&sum);
            }
        }
        sums
    }

    /// Of each leaf and pool, by name: one walk over all workloads, which may be a hundred thousand.
    pub(super) fn leaf_sums(&self) -> HashMap<(&str, &str), Sums> {
        let mut sums: HashMap<(&str, &str), Sums> = HashMap::new();
        for view in self.live.iter().map(|live| &live.view) {
            let sum = sums.entry((&view.budget, &view.pool)).or_default();
            let gpus = view.members * view.gpus_per_member;
            match view.state {
                State::Waiting => (sum.waiting, sum.waiting_count) = (sum.waiting + u64::from(gpus), sum.waiting_count + 1),
                state if state.is_leased() && view.allocated => sum.allocated += gpus,
                state if state.is_leased() => sum.unallocated += gpus,
                _ => {}
            }
        }
        sums
    }

    /// What will happen to a workload that was just queued.
    pub(super) fn notes(&self, workload: &Workload, submission: &Submission) -> Vec<String> {
        let mut notes = Vec::new();
        let asked = submission.min_runtime.0;
        let contract = stipend_core::quantity::Span(workload.min_runtime_ms);
        if contract < asked {
            notes.push(format!("its min runtime of {asked} is clamped to {contract}, by its time limit or a cap"));
        }
        notes.push(match contract.0 {
            0 => {
                "unallocated: never charged, never protected, preempted whenever somebody needs the GPUs; --min-runtime protects it".into()
            }
            _ => format!("allocated: charged to {} from its start, protected for {contract} once all members run", workload.budget),
        });
        match workload.state {
            State::Waiting if self.live.len() <= EXPLAINED_MAX => notes.extend(self.waits_for(workload.id)),
            State::Waiting => notes.push(format!("it waits; stipend explain w{} says for what", workload.id)),
            State::Held => notes.extend(workload.why.clone()),
            State::Starting | State::Running => {
                let nodes: Vec<&str> = workload.placement.keys().map(String::as_str).collect();
                notes.push(format!("it starts now on {}", nodes.join(", ")));
            }
            _ => {}
        }
        notes
    }

    fn waits_for(&self, id: u32) -> Vec<String> {
        let Some(explanation) = self.scheduler.explain(WorkloadId(id)) else { return Vec::new() };
        let labels = self.labels();
        let several = explanation.pools.len() > 1;
        let of_pool = |pool: &stipend_core::explain::PoolExplanation| {
            use stipend_core::explain::Names;
            let place = if several { format!("in {}: ", labels.pool(pool.pool)) } else { String::new() };
            let blocker = pool.blockers.first().map_or("nothing stops it".into(), |blocker| blocker.text(pool.pool, &labels));
            let ahead = match pool.ahead_in_leaf {
                0 => String::new(),
                ahead => format!("; {ahead} of its budget go first"),
            };
            let date = match pool.latest_start {
                Some(at) => format!("; it starts by {} at the latest", labels.time(at)),
                None => String::new(),
            };
            format!("{place}it waits: {blocker}{ahead}{date}")
        };
        let is_promised = explanation.pools.iter().any(|pool| pool.latest_start.is_some());
        let start = self.scheduler.first_start(WorkloadId(id)).filter(|_| !is_promised);
        let estimate = start.map(|start| format!("an estimate: {}", StartEstimate::new(&start, &labels).text()));
        explanation.pools.iter().map(of_pool).chain(estimate).collect()
    }
}
