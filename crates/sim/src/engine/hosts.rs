//! Hosts that fail, drain and come back.

use crate::random::{Purpose, Random};
use crate::scenario::{Failures, Scenario};
use stipend_core::id::NodeId;
use stipend_core::quantity::Span;
use stipend_core::spec::Severity;

/// The state of the hosts that the scheduler is not told.
pub(super) struct Hosts<'a> {
    failures: Option<&'a Failures>,
    random: Vec<Random>,
    /// Out of service, or on its way out.
    pub(super) down: Vec<bool>,
    /// How long the repair after the present failure takes; `None` until somebody brings the host back.
    pub(super) repair: Vec<Option<Span>>,
}

/// How a host fails this time.
pub(super) struct Failure {
    /// `None`: it is lost without a word.
    pub(super) drain: Option<Severity>,
    pub(super) repair: Span,
    /// When it fails again.
    pub(super) next: Span,
}

impl<'a> Hosts<'a> {
    pub(super) fn new(scenario: &'a Scenario, seed: u64) -> Hosts<'a> {
        let nodes = scenario.nodes.len();
        let failures = scenario.failures.as_ref();
        let random = (0..if failures.is_some() { nodes } else { 0 }).map(|node| Random::new(seed, Purpose::Host, node as u64)).collect();
        Hosts { failures, random, down: vec![false; nodes], repair: vec![None; nodes] }
    }

    /// When each host fails first.
    pub(super) fn first(&mut self) -> Vec<(NodeId, Span)> {
        let Some(failures) = self.failures else { return Vec::new() };
        let draws = self.random.iter_mut().enumerate();
        draws.map(|(node, random)| (NodeId(node as u32), after(failures, random))).collect()
    }

    /// Draws a failure; the same draws whether the host is up or not, so that no policy shifts them.
    pub(super) fn draw(&mut self, node: NodeId) -> Option<Failure> {
        let failures = self.failures?;
        let random = &mut self.random[node.index()];
        let drain = Failures::KINDS[random.weighted(&failures.weights)];
        let repair = Span(random.lognormal(failures.repair.0 as f64, 0.8) as i64);
        Some(Failure { drain, repair, next: after(failures, random) })
    }
}

fn after(failures: &Failures, random: &mut Random) -> Span {
    Span(random.exponential(failures.host_mtbf.0 as f64).max(60_000.0) as i64)
}
