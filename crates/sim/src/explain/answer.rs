//! An explanation as `stipend sim explain --format json` prints it, field by field. Times are since the scenario's start.

use super::past::Past;
use super::start::StartEstimate;
use crate::log::licence;
use crate::log::line::Licence;
use crate::scenario::Scenario;
use serde::{Deserialize, Serialize};
use stipend_core::Scheduler;
use stipend_core::counterfactual::{self, Change, nodes};
use stipend_core::entry::Occupancy;
use stipend_core::explain::{BudgetStanding, Names, Tier};
use stipend_core::id::{PoolId, WorkloadId};
use stipend_core::inquiry::{self, Answer, Run, Wait, WaitIn};
use stipend_core::quantity::{GpuMs, Time};
use stipend_core::record::Estimate;

/// What becomes of one workload at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Explained {
    /// The scenario's name, if it is of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scenario: Option<String>,
    /// What its random streams began from, if it is of a scenario.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// The moment, as scenarios write it.
    pub at: String,
    /// The same in milliseconds.
    pub at_ms: i64,
    /// The workload's name.
    pub workload: String,
    /// `waiting`, `running`, `ended` or `refused`.
    pub state: String,
    /// What it asked for, if it was accepted.
    pub request: Option<Request>,
    /// Where it stands, if it waits.
    pub waiting: Option<Waiting>,
    /// What became of work like it, where that is known or counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prospect: Option<Prospect>,
    /// What it holds, if it runs.
    pub running: Option<Running>,
    /// How it ended, if it has.
    pub ended: Option<Ended>,
    /// The plan that takes or took the GPUs of its latest attempt, if one does or did.
    pub preemption: Option<Preemption>,
    /// What happened to it until then.
    pub history: Vec<Moment>,
    /// Moments in the middle of the history that are left out.
    pub history_left_out: u64,
}

/// What a workload asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// The leaf that it is charged to.
    pub budget: String,
    /// Who submitted it.
    pub user: String,
    /// The pools that it names, in its order.
    pub pools: Vec<String>,
    /// Its gang.
    pub members: u32,
    /// GPUs of each member.
    pub gpus_per_member: u32,
    /// The GPUs that it is charged for, in the first of its pools that takes it.
    pub charged_gpus: u32,
    /// Its contract after clamping, when it was submitted, in the same pool.
    pub min_runtime_ms: i64,
    /// Its time limit.
    pub time_limit_ms: Option<i64>,
    /// `resume`, `restart` or `end`.
    pub on_preempt: String,
    /// Its priority in its leaf.
    pub priority: i16,
}

/// What became of work like it, and what that says of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Prospect {
    /// How many of its family completed, failed or reached their limit; 0: its user, its budget and all others tell of it.
    pub outcomes: u32,
    /// How likely it is to complete, in parts per million.
    pub completes_ppm: u32,
    /// The same, less one standard error.
    pub completes_at_least_ppm: u32,
    /// Half of such work ends before it has run so long.
    pub runtime_p50_ms: i64,
    /// And nine in ten.
    pub runtime_p90_ms: i64,
    /// In a budget of the order `completion`: it goes first as if it had been eligible so much longer.
    pub head_start_ms: Option<i64>,
}

/// Where a waiting workload stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Waiting {
    /// Since when it waits for its next start.
    pub since: String,
    /// The same in milliseconds.
    pub since_ms: i64,
    /// How often it has run.
    pub attempts: u32,
    /// In each pool that it names, in its order; where its GPUs are held already, in that one.
    pub pools: Vec<WaitingIn>,
    /// When it may start for the first time, if no start is promised and enough is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimate: Option<StartEstimate>,
    /// What would start it now, the change that is closest first.
    pub counterfactuals: Vec<Counterfactual>,
}

/// Where a waiting workload stands in one pool that it names.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WaitingIn {
    /// Which.
    pub pool: String,
    /// When it starts at the latest: a promise, which only a reservation makes; else `null`.
    pub latest_start: Option<String>,
    /// The same in milliseconds.
    pub latest_start_ms: Option<i64>,
    /// The nodes that are reserved for it; empty without a promise.
    pub reserved_nodes: Vec<String>,
    /// What stops it, the binding limit first.
    pub blockers: Vec<Blocked>,
    /// Where it stands; `null` in a pool that could never take it.
    pub place: Option<Place>,
}

/// Where a waiting workload stands among the others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Place {
    /// The contract that it would get, after clamping.
    pub min_runtime_ms: i64,
    /// The standings from below the root to its leaf.
    pub standings: Vec<Standing>,
    /// `own_share`: its leaf is below its share; `tree`: the surplus; `idle`: unallocated work.
    pub order: String,
    /// Leaves that go before its own, in their order.
    pub ahead: Vec<Leaf>,
    /// Leaves with waiting work of its kind that come after its own.
    pub leaves_behind: u32,
    /// Waiting workloads of its own leaf that go before it.
    pub ahead_in_leaf: u32,
    /// When enough GPUs are unprotected in number, wherever they lie and whoever may take them; `null` if they are now.
    pub unprotected: Option<String>,
    /// The same in milliseconds.
    pub unprotected_ms: Option<i64>,
    /// What is blocked is looked at again then at the latest.
    pub looks_again: Option<String>,
    /// The same in milliseconds.
    pub looks_again_ms: Option<i64>,
}

/// A budget's standing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Standing {
    /// Its path.
    pub budget: String,
    /// What it has had of what it was entitled to, in parts per million; `null` if it is entitled to nothing.
    pub standing_ppm: Option<u64>,
}

/// A leaf that goes first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Leaf {
    /// Its path.
    pub budget: String,
    /// How many of its workloads wait.
    pub waiting: u32,
    /// `own_share`, `tree` or `idle`, as above.
    pub order: String,
    /// Of the two budgets that are compared, that leaf's.
    pub their_side: Standing,
    /// And the workload's.
    pub own_side: Standing,
}

/// Something that stops a workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Blocked {
    /// A sentence.
    pub text: String,
}

/// A change that would start it now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Counterfactual {
    /// A sentence.
    pub text: String,
    /// How many leases it would preempt.
    pub preempts: u32,
}

/// What a running workload holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Running {
    /// Its attempt, from 1.
    pub attempt: u32,
    /// `allocated` or `unallocated`.
    pub occupancy: String,
    /// The pool whose GPUs it holds.
    pub pool: String,
    /// Its nodes.
    pub nodes: String,
    /// When its GPUs were assigned.
    pub started: String,
    /// The same in milliseconds.
    pub started_ms: i64,
    /// The strongest licence that its start used.
    pub licence: Option<Licence>,
    /// Whether all its members run.
    pub is_complete: bool,
    /// When its protection ends or ended; `null` while it starts, and of unallocated work.
    pub protected_until: Option<String>,
    /// The same in milliseconds.
    pub protected_until_ms: Option<i64>,
    /// Whether its protection has not ended yet.
    pub is_protected: bool,
    /// The standings from below the root to its leaf.
    pub standings: Vec<Standing>,
    /// What would be lost if it were stopped now, as far as the scheduler knows.
    pub loss_gpu_hours: f64,
    /// Whether it says that it begins anew and is not believed, so that the loss counts as if it resumed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_doubted: bool,
    /// Why it is on its way out, if it is.
    pub leaving: Option<String>,
    /// When it must have left.
    pub leaving_by: Option<String>,
    /// What stops its promotion, the binding limit first, if it runs before its turn.
    pub turn: Vec<String>,
    /// Who waits and is licensed to take its GPUs now: of each leaf the workload that goes first.
    pub takers: Vec<Taker>,
}

/// A waiting workload with a licence to take a lease.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Taker {
    /// Which.
    pub workload: String,
    /// Its leaf.
    pub budget: String,
    /// Its licence.
    pub licence: Licence,
    /// What is compared, where the licence compares.
    pub claimant_side: Standing,
    /// What its gang adds to its side.
    pub quantum_ppm: u64,
    /// The running workload's side, without commitments.
    pub victim_side: Standing,
    /// The most that evictions for it may lose, where that counts.
    pub loss_limit_gpu_hours: Option<f64>,
}

/// How a workload ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ended {
    /// When.
    pub at: String,
    /// The same in milliseconds.
    pub at_ms: i64,
    /// How.
    pub outcome: String,
    /// Who or what ended it.
    pub by: String,
    /// What was lost with its last attempt, as far as the scheduler knows.
    pub lost_gpu_hours: f64,
}

/// A plan to preempt a workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Preemption {
    /// When it was made.
    pub at: String,
    /// The same in milliseconds.
    pub at_ms: i64,
    /// For whom; `null` for a drain.
    pub claimant: Option<String>,
    /// By which licence.
    pub licence: Licence,
    /// Both sides' figures, when its protection had ended, what was expected to be lost.
    pub why: String,
}

/// Something that happened to a workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Moment {
    /// When.
    pub at: String,
    /// The same in milliseconds.
    pub at_ms: i64,
    /// What.
    pub text: String,
}

impl Explained {
    pub(super) fn new(scenario: &Scenario, seed: u64, at: Time, id: WorkloadId, scheduler: &Scheduler, past: Past) -> Explained {
        let is_accepted = past.request.is_some();
        let mut explained = Explained::present(scheduler, at, id, &scenario.labels).with(past);
        if explained.state.is_empty() {
            explained.state = if is_accepted { "ended" } else { "refused" }.into();
        }
        Explained { scenario: Some(scenario.name.clone()), seed: Some(seed), ..explained }
    }

    /// The same with its past.
    pub fn with(mut self, past: Past) -> Explained {
        if let Some(running) = &mut self.running {
            running.licence = past.licence;
        }
        let Past { moments, left_out, request, preemption, ended, .. } = past;
        Explained { request, ended, preemption, history: moments, history_left_out: left_out, ..self }
    }

    /// What the scheduler itself says of a workload now, without its past; `state` is empty if it is not live.
    pub fn now(scheduler: &Scheduler, id: WorkloadId, names: &dyn Names) -> Explained {
        Explained::present(scheduler, scheduler.now(), id, names)
    }

    fn present(scheduler: &Scheduler, at: Time, id: WorkloadId, names: &dyn Names) -> Explained {
        let (mut waiting, mut running) = (None, None);
        match scheduler.inquire(id) {
            Some(Answer::Waiting(wait)) => {
                let is_promised = wait.pools.iter().any(|pool| pool.explanation.latest_start.is_some());
                let estimate = scheduler.first_start(id).filter(|_| !is_promised).map(|start| StartEstimate::new(&start, names));
                waiting = Some(Waiting { estimate, ..Waiting::new(&wait, names) });
            }
            Some(Answer::Running(run)) => running = Some(Running::new(&run, at, names)),
            None => {}
        }
        let state = match (&waiting, &running) {
            (Some(_), _) => "waiting",
            (_, Some(_)) => "running",
            _ => "",
        };
        Explained {
            scenario: None,
            seed: None,
            at: names.time(at),
            at_ms: at.0,
            workload: names.workload(id),
            state: state.into(),
            request: None,
            waiting,
            prospect: scheduler.prospect(id).and_then(|prospect| Prospect::new(&prospect)),
            running,
            ended: None,
            preemption: None,
            history: Vec::new(),
            history_left_out: 0,
        }
    }
}

impl Request {
    /// From the log's line.
    pub(super) fn of_line(of: &crate::log::line::Submitted) -> Request {
        Request {
            budget: of.budget.clone(),
            user: of.user.clone(),
            pools: of.pools.clone(),
            members: of.members,
            gpus_per_member: of.gpus_per_member,
            charged_gpus: of.charged_gpus,
            min_runtime_ms: of.min_runtime_ms,
            time_limit_ms: of.time_limit_ms,
            on_preempt: format!("{:?}", of.on_preempt).to_lowercase(),
            priority: of.priority,
        }
    }
}

impl Prospect {
    /// Nothing is said where nothing is known of its family and nothing hangs on it.
    fn new(prospect: &inquiry::Prospect) -> Option<Prospect> {
        let Estimate { outcomes, completes, completes_at_least, runtime_p50, runtime_p90, .. } = prospect.estimate;
        (outcomes > 0 || prospect.head_start.is_some()).then_some(Prospect {
            outcomes,
            completes_ppm: completes.0,
            completes_at_least_ppm: completes_at_least.0,
            runtime_p50_ms: runtime_p50.0,
            runtime_p90_ms: runtime_p90.0,
            head_start_ms: prospect.head_start.map(|head_start| head_start.0),
        })
    }
}

impl Waiting {
    fn new(wait: &Wait, names: &dyn Names) -> Waiting {
        let several = wait.pools.len() > 1;
        let first = wait.pools[0].explanation.pool;
        Waiting {
            since: names.time(wait.since),
            since_ms: wait.since.0,
            attempts: wait.attempts,
            pools: wait.pools.iter().map(|there| WaitingIn::new(there, names)).collect(),
            estimate: None,
            counterfactuals: wait.counterfactuals.iter().map(|one| Counterfactual::new(one, first, several, names)).collect(),
        }
    }
}

impl WaitingIn {
    fn new(there: &WaitIn, names: &dyn Names) -> WaitingIn {
        let of = &there.explanation;
        WaitingIn {
            pool: names.pool(of.pool),
            latest_start: of.latest_start.map(|at| names.time(at)),
            latest_start_ms: of.latest_start.map(|at| at.0),
            reserved_nodes: of.reserved.iter().map(|node| names.node(*node)).collect(),
            blockers: of.blockers.iter().map(|blocker| Blocked { text: blocker.text(of.pool, names) }).collect(),
            place: there.place.as_ref().map(|place| Place::new(place, there, names)),
        }
    }
}

impl Place {
    fn new(place: &inquiry::Place, there: &WaitIn, names: &dyn Names) -> Place {
        let shown = |at: Option<Time>| (at.map(|at| names.time(at)), at.map(|at| at.0));
        let (unprotected, unprotected_ms) = shown(place.unprotected);
        let (looks_again, looks_again_ms) = shown(place.looks_again);
        let ahead = |leaf: &inquiry::Ahead| Leaf {
            budget: names.budget(leaf.leaf),
            waiting: leaf.waiting,
            order: order(leaf.tier),
            their_side: Standing::new(&leaf.their_side, names),
            own_side: Standing::new(&leaf.own_side, names),
        };
        Place {
            min_runtime_ms: place.contract.0,
            standings: standings(&there.explanation.standings, names),
            order: order(place.tier),
            ahead: place.ahead.iter().map(ahead).collect(),
            leaves_behind: place.behind,
            ahead_in_leaf: there.explanation.ahead_in_leaf,
            unprotected,
            unprotected_ms,
            looks_again,
            looks_again_ms,
        }
    }
}

impl Counterfactual {
    /// A cap is one pool's; where there are several, that is said.
    fn new(one: &counterfactual::Counterfactual, first: PoolId, several: bool, names: &dyn Names) -> Counterfactual {
        let text = one.text(first, names);
        let text = match one.change {
            Change::Cap { pool, .. } if several => format!("in {}: {text}", names.pool(pool)),
            _ => text,
        };
        Counterfactual { text, preempts: one.instead.leases() }
    }
}

impl Running {
    fn new(run: &Run, at: Time, names: &dyn Names) -> Running {
        Running {
            attempt: run.lease.attempt,
            pool: names.pool(run.pool),
            occupancy: if run.occupancy == Occupancy::Allocated { "allocated" } else { "unallocated" }.into(),
            nodes: nodes(&run.placement, names),
            started: names.time(run.started),
            started_ms: run.started.0,
            licence: None,
            is_complete: run.running.is_some(),
            protected_until: run.protected_until.map(|until| names.time(until)),
            protected_until_ms: run.protected_until.map(|until| until.0),
            is_protected: run.protected_until.is_some_and(|until| at < until),
            standings: standings(&run.standings, names),
            loss_gpu_hours: gpu_hours(run.loss),
            is_doubted: run.doubted,
            leaving: run.leaving.as_ref().map(|(by, _)| by.text(names)),
            leaving_by: run.leaving.as_ref().map(|(_, at)| names.time(*at)),
            turn: run.turn.iter().map(|blocker| blocker.text(run.pool, names)).collect(),
            takers: run.takers.iter().map(|taker| Taker::new(taker, names)).collect(),
        }
    }
}

impl Taker {
    fn new(taker: &inquiry::Taker, names: &dyn Names) -> Taker {
        Taker {
            workload: names.workload(taker.workload),
            budget: names.budget(taker.leaf),
            licence: licence(taker.licence),
            claimant_side: Standing::new(&taker.claimant_side, names),
            quantum_ppm: taker.quantum.0,
            victim_side: Standing::new(&taker.victim_side, names),
            loss_limit_gpu_hours: taker.loss_limit.map(gpu_hours),
        }
    }
}

impl Standing {
    fn new(of: &BudgetStanding, names: &dyn Names) -> Standing {
        let standing_ppm = (of.standing != stipend_core::quantity::Standing::LAST).then_some(of.standing.0);
        Standing { budget: names.budget(of.budget), standing_ppm }
    }
}

fn standings(of: &[BudgetStanding], names: &dyn Names) -> Vec<Standing> {
    of.iter().map(|one| Standing::new(one, names)).collect()
}

fn order(tier: Tier) -> String {
    match tier {
        Tier::OwnShare => "own_share",
        Tier::Tree => "tree",
        Tier::Idle => "idle",
    }
    .into()
}

fn gpu_hours(gpu_ms: GpuMs) -> f64 {
    gpu_ms.0 as f64 / 3_600_000.0
}
