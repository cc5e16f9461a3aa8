//! Writes tiny logs by hand: one call a line, good by default, so that a test shows what it breaks.

use crate::audit::{Auditor, Law, Report};
use crate::log::knobs::Policy;
use crate::log::line::*;
use stipend_core::knobs::Knobs;

pub(super) const SECOND: i64 = 1000;
pub(super) const MINUTE: i64 = 60 * SECOND;
pub(super) const HOUR: i64 = 60 * MINUTE;

/// A log in the making.
#[derive(Clone, Default)]
pub(super) struct Script {
    pub(super) lines: Vec<Line>,
    at: i64,
}

impl Script {
    /// One pool, nodes of 8 GPUs, and `lab` with two halves `lab/a` and `lab/b`.
    pub(super) fn new(nodes: &[&str]) -> Script {
        let mut script = Script::default();
        script.add(LogEvent::Policy(Policy::new("p0".into(), &Knobs { credit_max: Knobs::default().lookback, ..Knobs::default() })));
        for node in nodes {
            script.node(node, |_| {});
        }
        script.budgets(&[("lab", 100.0, 1.0), ("lab/a", 50.0, 0.5), ("lab/b", 50.0, 0.5)]);
        script
    }

    pub(super) fn at(&mut self, at: i64) -> &mut Script {
        self.at = at;
        self
    }

    pub(super) fn add(&mut self, event: LogEvent) -> &mut Script {
        let v = self.lines.is_empty().then_some(VERSION);
        self.lines.push(Line { v, t_ms: self.at, event });
        self
    }

    pub(super) fn node(&mut self, node: &str, change: impl FnOnce(&mut Node)) -> &mut Script {
        let mut line = Node {
            node: node.into(),
            pool: "p0".into(),
            gpus: 8,
            cpus: 0,
            memory_bytes: 0,
            block: "k0".into(),
            features: 0,
            express: false,
            state: State::Ready,
            severity: None,
            drain_until_ms: None,
            reason: String::new(),
        };
        change(&mut line);
        self.add(LogEvent::Node(line))
    }

    pub(super) fn drain(&mut self, node: &str, severity: Severity, until: i64) -> &mut Script {
        self.node(node, |line| (line.state, line.severity, line.drain_until_ms) = (State::Draining, Some(severity), Some(until)))
    }

    pub(super) fn budgets(&mut self, tree: &[(&str, f64, f64)]) -> &mut Script {
        let budget = |(id, (path, share_percent, claim)): (usize, &(&str, f64, f64))| Budget {
            id: id as u32,
            path: (*path).into(),
            pool: "p0".into(),
            share_percent: *share_percent,
            claim: *claim,
            gpus_max: None,
            unallocated_gpus_max: None,
            min_runtime_max_ms: None,
            order: Order::Priority,
            closed: false,
        };
        let budgets = tree.iter().enumerate().map(budget).collect();
        self.add(LogEvent::Budgets(Budgets { version: 1, author: "ann".into(), reason: "first".into(), budgets }))
    }

    /// Changes the budgets of the line before.
    pub(super) fn capped(&mut self, change: impl Fn(&mut Budget)) -> &mut Script {
        if let Some(LogEvent::Budgets(tree)) = self.lines.last_mut().map(|line| &mut line.event) {
            tree.budgets.iter_mut().for_each(change);
        }
        self
    }

    /// Submitted and eligible.
    pub(super) fn submit(&mut self, workload: &str, budget: &str, gpus: u32, contract: i64) -> &mut Script {
        self.submit_as(workload, budget, gpus, contract, |_| {})
    }

    pub(super) fn submit_as(
        &mut self,
        workload: &str,
        budget: &str,
        gpus: u32,
        contract: i64,
        change: impl FnOnce(&mut Submitted),
    ) -> &mut Script {
        let mut line = Submitted {
            name: None,
            workload: workload.into(),
            budget: budget.into(),
            user: "u0".into(),
            family: None,
            pools: vec!["p0".into()],
            members: 1,
            gpus_per_member: gpus,
            cpus_per_member: 0,
            memory_per_member_bytes: 0,
            features: 0,
            same_block: false,
            charged_gpus: gpus,
            min_runtime_ms: contract,
            time_limit_ms: None,
            expected_runtime_ms: None,
            on_preempt: OnPreempt::Resume,
            checkpoint_every_ms: None,
            start: None,
            priority: 0,
            kind: Kind::Batch,
            class: Class::Medium,
            others: Vec::new(),
            skipped: Vec::new(),
        };
        change(&mut line);
        self.add(LogEvent::Submitted(line));
        self.add(LogEvent::Eligible(Eligible { workload: workload.into(), estimate_ms: None }))
    }

    /// Starts with a contract on free GPUs.
    pub(super) fn start(&mut self, workload: &str, attempt: u32, on: &[(&str, std::ops::Range<u8>)]) -> &mut Script {
        self.start_as(workload, attempt, on, Occupancy::Allocated, Licence::Free)
    }

    pub(super) fn start_as(
        &mut self,
        workload: &str,
        attempt: u32,
        on: &[(&str, std::ops::Range<u8>)],
        occupancy: Occupancy,
        licence: Licence,
    ) -> &mut Script {
        let (workload, pool, why) = (workload.into(), "p0".into(), String::new());
        self.add(LogEvent::Started(Started { workload, attempt, pool, occupancy, placement: placed(on), licence, why }))
    }

    pub(super) fn running(&mut self, workload: &str, attempt: u32, contract: i64) -> &mut Script {
        let protected_until_ms = (contract > 0).then_some(self.at + contract);
        self.add(LogEvent::Running(Running { workload: workload.into(), attempt, protected_until_ms }))
    }

    pub(super) fn preempting(&mut self, workload: &str, attempt: u32, claimant: &str, licence: Licence) -> &mut Script {
        let grace = if licence == Licence::Unallocated { 10 * SECOND } else { 2 * MINUTE };
        self.add(LogEvent::Preempting(Preempting {
            workload: workload.into(),
            attempt,
            claimant: Some(claimant.into()),
            node: None,
            licence,
            stop_by_ms: self.at + grace,
            why: String::new(),
        }))
    }

    pub(super) fn preempting_for_node(&mut self, workload: &str, attempt: u32, node: &str, licence: Licence) -> &mut Script {
        self.add(LogEvent::Preempting(Preempting {
            workload: workload.into(),
            attempt,
            claimant: None,
            node: Some(node.into()),
            licence,
            stop_by_ms: self.at,
            why: String::new(),
        }))
    }

    pub(super) fn stopping(&mut self, workload: &str, attempt: u32, grace_ms: i64) -> &mut Script {
        self.add(LogEvent::Stopping(Stopping { workload: workload.into(), attempt, grace_ms }))
    }

    pub(super) fn spared(&mut self, workload: &str, attempt: u32) -> &mut Script {
        self.add(LogEvent::Spared(Spared { workload: workload.into(), attempt }))
    }

    pub(super) fn hold(&mut self, claimant: &str, on: &[(&str, std::ops::Range<u8>)]) -> &mut Script {
        self.add(LogEvent::Hold(Hold { claimant: claimant.into(), placement: placed(on) }))
    }

    pub(super) fn unhold(&mut self, claimant: &str, cause: UnholdCause) -> &mut Script {
        self.add(LogEvent::Unhold(Unhold { claimant: claimant.into(), cause, why: String::new() }))
    }

    pub(super) fn ended(&mut self, workload: &str, attempt: u32, outcome: Outcome) -> &mut Script {
        self.add(LogEvent::Ended(Ended { workload: workload.into(), attempt: Some(attempt), outcome, lost_gpu_ms: 0, by: String::new() }))
    }

    pub(super) fn cancelled(&mut self, workload: &str) -> &mut Script {
        self.add(LogEvent::Ended(Ended {
            workload: workload.into(),
            attempt: None,
            outcome: Outcome::Cancelled,
            lost_gpu_ms: 0,
            by: String::new(),
        }))
    }

    pub(super) fn requeued(&mut self, workload: &str) -> &mut Script {
        self.add(LogEvent::Requeued(Requeued { workload: workload.into() }))
    }

    /// Charged from `from` to now.
    pub(super) fn charged(&mut self, workload: &str, attempt: u32, budget: &str, kind: ChargeKind, from_ms: i64, gpus: i64) -> &mut Script {
        let (to_ms, gpu_ms) = (self.at, gpus * (self.at - from_ms));
        self.add(LogEvent::Charged(Charged {
            workload: workload.into(),
            attempt,
            budget: budget.into(),
            pool: "p0".into(),
            kind,
            from_ms,
            to_ms,
            gpu_ms,
        }))
    }

    pub(super) fn refunded(&mut self, workload: &str, attempt: u32, budget: &str, from_ms: i64, to_ms: i64, gpus: i64) -> &mut Script {
        let (kind, gpu_ms) = (ChargeKind::Run, gpus * (to_ms - from_ms));
        self.add(LogEvent::Refunded(Refunded {
            workload: workload.into(),
            attempt,
            budget: budget.into(),
            pool: "p0".into(),
            kind,
            from_ms,
            to_ms,
            gpu_ms,
        }))
    }

    pub(super) fn end(&mut self, at: i64, leases: &[(&str, u32)]) -> &mut Script {
        let leases = leases.iter().map(|(workload, attempt)| Lease { workload: (*workload).into(), attempt: *attempt }).collect();
        self.at(at).add(LogEvent::EndOfLog(EndOfLog { leases }))
    }

    /// Drops the lines for which `keep` says no; it may change the others.
    pub(super) fn edit(&mut self, mut keep: impl FnMut(&mut Line) -> bool) -> &mut Script {
        self.lines.retain_mut(|line| keep(line));
        self
    }

    pub(super) fn report(&self) -> Report {
        let mut auditor = Auditor::default();
        for (number, line) in (1..).zip(&self.lines) {
            auditor.line(number, line);
        }
        auditor.finish()
    }

    /// The laws that are broken, each once.
    pub(super) fn laws(&self) -> Vec<Law> {
        let mut laws: Vec<Law> = self.report().violations.iter().map(|violation| violation.law).collect();
        laws.sort();
        laws.dedup();
        laws
    }

    /// The laws that are broken when the log ends here with these leases.
    pub(super) fn laws_to_the_end(&mut self, leases: &[(&str, u32)]) -> Vec<Law> {
        self.end(self.at + SECOND, leases).laws()
    }

    pub(super) fn assert_clean(&self) {
        let report = self.report();
        assert!(report.is_clean(), "{report}");
    }
}

fn placed(on: &[(&str, std::ops::Range<u8>)]) -> Placement {
    Placement(on.iter().map(|(node, gpus)| ((*node).into(), gpus.clone().collect())).collect())
}
