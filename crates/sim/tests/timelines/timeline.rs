//! A run as a person reads it: one line for each fact or decision that matters, with its reason.

use crate::facts::shown;
use std::collections::BTreeSet;
use stipend_core::Scheduler;
use stipend_core::entry::{BudgetEntry, By, Entry, Licence, Occupancy};
use stipend_core::explain::{Names, Why};
use stipend_core::id::{LeaseId, PoolId, WorkloadId};
use stipend_core::quantity::{GpuMs, Gpus, Span, Time};
use stipend_core::spec::{Gang, NodeState, OnPreempt, WorkloadSpec};
use stipend_sim::job::Job;
use stipend_sim::labels::Labels;
use stipend_sim::observer::Observer;

/// Writes the lines while a run goes on.
pub(crate) struct Timeline<'a> {
    labels: &'a Labels,
    pub(crate) lines: Vec<String>,
    /// The last submission, of which a refusal may speak.
    last_job: Option<WorkloadId>,
    /// Leases whose stop signal goes out in the instant of their plan, which needs no line of its own.
    planned: BTreeSet<(Time, LeaseId)>,
    budgets_seen: bool,
}

impl<'a> Timeline<'a> {
    pub(crate) fn new(labels: &'a Labels) -> Timeline<'a> {
        Timeline { labels, lines: Vec::new(), last_job: None, planned: BTreeSet::new(), budgets_seen: false }
    }

    fn line(&mut self, at: Time, what: impl AsRef<str>) {
        self.lines.push(format!("{} {}", self.labels.time(at), what.as_ref()));
    }

    /// Who waits at the end, and what for, the binding limit first; those of one budget that are told the same share a line.
    pub(crate) fn explain(&mut self, scheduler: &Scheduler) {
        let explanations = (0..self.labels.workloads.len()).filter_map(|number| scheduler.explain(WorkloadId(number as u32)));
        let mut told: Vec<(String, String, Vec<String>)> = Vec::new();
        let in_pools = explanations.flat_map(|explanation| {
            let several = explanation.pools.len() > 1;
            explanation.pools.into_iter().map(move |pool| (explanation.workload, several, pool))
        });
        for (workload, several, there) in in_pools {
            let pool = if several { format!("in {}: ", self.labels.pool(there.pool)) } else { String::new() };
            let standings: Vec<String> =
                there.standings.iter().map(|s| format!("{} {}", self.labels.budget(s.budget), s.standing)).collect();
            let blockers: Vec<String> = there.blockers.iter().map(|blocker| blocker.text(there.pool, self.labels)).collect();
            let (standings, blockers) = (standings.join(" > "), pool + &blockers.join("; "));
            let name = self.labels.workload(workload);
            match told.last_mut() {
                Some((same, also, names)) if *same == standings && *also == blockers => names.push(name),
                _ => told.push((standings, blockers, vec![name])),
            }
        }
        if !told.is_empty() {
            self.lines.push(format!("waiting at {}:", self.labels.time(scheduler.now())));
        }
        for (standings, blockers, names) in told {
            let names = match &names[..] {
                [first, .., last] if names.len() > 4 => format!("{first} … {last}, {} in all", names.len()),
                _ => names.join(", "),
            };
            let standings = if standings.is_empty() { standings } else { format!(" ({standings})") };
            self.lines.push(format!("  {names}{standings}: {blockers}"));
        }
    }

    fn submitted(&mut self, at: Time, workload: WorkloadId, spec: &WorkloadSpec, charged: Gpus, contract: Span) {
        let on_preempt = match spec.on_preempt {
            OnPreempt::Resume => "",
            OnPreempt::Restart => ", restarts",
            OnPreempt::End => ", ends when preempted",
        };
        let contract = match (contract == spec.min_runtime, contract) {
            (_, Span::ZERO) => "unallocated".into(),
            (true, contract) => format!("min {contract}"),
            (false, contract) => format!("min {contract} (asked for {})", spec.min_runtime),
        };
        let limit = spec.time_limit.map(|limit| format!(", limit {limit}")).unwrap_or_default();
        let charged = if charged == spec.gang.gpus() { String::new() } else { format!(", charged as {}", self.amount(spec, charged)) };
        let priority = if spec.priority == 0 { String::new() } else { format!(", priority {}", spec.priority) };
        let (name, budget, gang) = (self.labels.workload(workload), self.labels.budget(spec.budget), gang(&spec.gang));
        self.line(at, format!("submit {name} {budget} {gang} {contract}{limit}{on_preempt}{priority}{charged}"));
    }

    /// In what the first of its pools is counted in.
    fn amount(&self, spec: &WorkloadSpec, gpus: Gpus) -> String {
        self.labels.cpus_per_gpu(spec.pools.first).map_or(format!("{} GPUs", gpus.0), |cpus| format!("{} CPUs", gpus.0 * cpus))
    }

    /// The pool's label and a space, where there are several.
    fn pool(&self, pool: PoolId) -> String {
        if self.labels.pools.len() > 1 { format!("{} ", self.labels.pool(pool)) } else { String::new() }
    }

    fn preempting(&mut self, at: Time, lease: LeaseId, licence: Licence, stop_by: Time, why: &Why) {
        self.planned.insert((at, lease));
        let (name, reason) = (self.labels.workload(lease.workload), why.text(self.labels));
        let licence = format!("{licence:?}").to_lowercase();
        self.line(at, format!("preempt {name} ({licence}, gone by {}): {reason}", self.labels.time(stop_by)));
    }

    fn budgets(&mut self, at: Time, budgets: &[BudgetEntry]) {
        if std::mem::replace(&mut self.budgets_seen, true) {
            let shares: Vec<String> = budgets
                .iter()
                .filter(|b| b.spec.parent.is_some())
                .map(|b| {
                    let closed = if b.spec.closed { " closed" } else { "" };
                    format!("{} {} %{closed}", b.path, f64::from(b.spec.pools[0].share.0) / 10_000.0)
                })
                .collect();
            self.line(at, format!("budgets {}", shares.join(", ")));
        }
    }
}

impl Observer for Timeline<'_> {
    fn job(&mut self, workload: WorkloadId, _job: &Job) {
        self.last_job = Some(workload);
    }

    fn entry(&mut self, at: Time, entry: &Entry) {
        let labels = self.labels;
        let name = |id: WorkloadId| labels.workload(id);
        match entry {
            Entry::Submitted { workload, spec, charged_gpus, min_runtime, .. } => {
                self.last_job = None;
                self.submitted(at, *workload, spec, *charged_gpus, *min_runtime);
            }
            Entry::Refused { rejection } => {
                let whose = self.last_job.take().map(|id| format!("{}: ", name(id))).unwrap_or_default();
                self.line(at, format!("refuse {whose}{rejection:?}"));
            }
            Entry::Held { workload, why } => self.line(at, format!("held {}: {why}", name(*workload))),
            Entry::Started { lease, pool, occupancy, placement, licence, why } => {
                let occupancy = if *occupancy == Occupancy::Allocated { "allocated" } else { "unallocated" };
                let again = if lease.attempt > 1 { format!(" again ({})", lease.attempt) } else { String::new() };
                let licence = format!("{licence:?}").to_lowercase();
                self.line(
                    at,
                    format!(
                        "start {}{again} {}{} {occupancy} {licence}: {}",
                        name(lease.workload),
                        self.pool(*pool),
                        shown(placement),
                        why.text(labels)
                    ),
                );
            }
            Entry::Running { lease, protected_until: Some(until) } => {
                self.line(at, format!("run {}, protected until {}", name(lease.workload), labels.time(*until)));
            }
            Entry::Renewed { lease, protected_until, why } => {
                let (name, until) = (name(lease.workload), labels.time(*protected_until));
                self.line(at, format!("renew {name}, protected until {until}: {}", why.text(labels)));
            }
            Entry::Input { lease } => self.line(at, format!("input {}", name(lease.workload))),
            Entry::Promoted { lease, protected_until, why } => {
                let until = protected_until.map_or("once it runs".into(), |until| format!("until {}", labels.time(until)));
                self.line(at, format!("promote {}, protected {until}: {}", name(lease.workload), why.text(labels)));
            }
            Entry::Preempting { lease, licence, stop_by, why, .. } => self.preempting(at, *lease, *licence, *stop_by, why),
            Entry::Stopping { lease, .. } if !self.planned.contains(&(at, *lease)) => {
                self.line(at, format!("stop {}", name(lease.workload)))
            }
            Entry::Spared { lease } => self.line(at, format!("spare {}", name(lease.workload))),
            Entry::Hold { claimant, placement } => self.line(at, format!("hold {} for {}", shown(placement), name(*claimant))),
            Entry::Unhold { claimant, why } if *why != Why::ClaimantStarted => {
                self.line(at, format!("unhold {}: {}", name(*claimant), why.text(labels)))
            }
            Entry::Reserved { reservation, workload, latest_start, nodes, why, .. } => {
                let nodes: Vec<String> = nodes.iter().map(|node| node.to_string()).collect();
                let (name, by, why) = (name(*workload), labels.time(*latest_start), why.text(labels));
                self.line(at, format!("reserve {reservation} {name} starts by {by} on {}: {why}", nodes.join(" ")));
            }
            Entry::Unreserved { reservation, workload, why } => {
                let why = format!("{why:?}").to_lowercase();
                self.line(at, format!("unreserve {reservation} {}: {why}", name(*workload)));
            }
            Entry::Ended { workload, attempt, outcome, lost, by } => {
                let outcome = format!("{outcome:?}").to_lowercase();
                let waiting = if attempt.is_none() { " while waiting" } else { "" };
                let lost = if lost.0 == 0 { String::new() } else { format!(", lost {}", gpu_hours(*lost)) };
                let by = if matches!(by, By::Itself | By::Claimant(_)) { String::new() } else { format!(", by {}", by.text(labels)) };
                self.line(at, format!("end {} {outcome}{waiting}{lost}{by}", name(*workload)));
            }
            Entry::Gap { from } => self.line(at, format!("gap since {}", labels.time(*from))),
            Entry::Requeued { workload } => self.line(at, format!("requeue {}", name(*workload))),
            Entry::Refunded { workload, gpu_ms, .. } => self.line(at, format!("refund {} {}", name(*workload), gpu_hours(*gpu_ms))),
            Entry::Granted { budget, gpu_ms, .. } if at > Time(0) => {
                self.line(at, format!("grant {} {}", labels.budget(*budget), gpu_hours(*gpu_ms)))
            }
            Entry::Node { node, state, drain_until, reason, .. } if at > Time(0) || *state != NodeState::Ready => {
                let until = drain_until.map(|until| format!(" until {}", labels.time(until))).unwrap_or_default();
                let reason = if reason.is_empty() { String::new() } else { format!(": {reason}") };
                self.line(at, format!("node n{} {state:?}{until}{reason}", node.0).to_lowercase());
            }
            Entry::Budgets { budgets, .. } => self.budgets(at, budgets),
            _ => {}
        }
    }
}

fn gang(gang: &Gang) -> String {
    let block = if gang.same_block { " in one block" } else { "" };
    format!("{}x{}{block}", gang.members, gang.gpus_per_member)
}

fn gpu_hours(gpu_ms: GpuMs) -> String {
    format!("{:.2} GPU-h", gpu_ms.0 as f64 / 3_600_000.0)
}
