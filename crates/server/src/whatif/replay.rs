//! The recent past once more, under the same scheduler with other budgets.

use crate::wire::whatif::Figures;
use std::collections::BTreeMap;
use stipend_core::Scheduler;
use stipend_core::entry::Entry;
use stipend_core::id::WorkloadId;
use stipend_core::quantity::Time;
use stipend_sim::engine;
use stipend_sim::metrics::Metrics;
use stipend_sim::observer::Observer;
use stipend_sim::scenario::{Recorded, Scenario};

/// First waits by leaf.
#[derive(Default)]
struct Waits {
    submitted: BTreeMap<WorkloadId, (u32, Time)>,
    of_leaf: BTreeMap<u32, Vec<i64>>,
    from: Time,
}

impl Observer for Waits {
    fn entry(&mut self, at: Time, entry: &Entry) {
        match entry {
            Entry::Submitted { workload, spec, .. } => {
                self.submitted.insert(*workload, (spec.budget.0, at));
            }
            Entry::Started { lease, .. } => {
                if let Some((leaf, since)) = self.submitted.remove(&lease.workload).filter(|(_, since)| *since >= self.from) {
                    self.of_leaf.entry(leaf).or_default().push((at - since).0);
                }
            }
            _ => {}
        }
    }
}

/// What each leaf gets, by path.
pub(super) fn replay(recorded: Recorded) -> BTreeMap<String, Figures> {
    let scenario = Scenario::from(recorded);
    let mut metrics = Metrics::new(scenario.window(true));
    let mut waits = Waits { from: scenario.measure_from(), ..Waits::default() };
    engine::run(&scenario, 1, &mut Scheduler::new(Time(0)), &mut [&mut metrics, &mut waits], None);
    let result = metrics.result("budget", std::time::Duration::ZERO);
    let number: BTreeMap<&str, u32> = scenario.labels.budgets.iter().zip(0..).map(|(path, number)| (path.as_str(), number)).collect();
    let leaf = |of: &stipend_sim::result::BudgetResult| {
        let mut all = number.get(of.path.as_str()).and_then(|number| waits.of_leaf.get(number)).cloned().unwrap_or_default();
        all.sort_unstable();
        let rank = |percent: usize| Some(*all.get((all.len() * percent).div_ceil(100).max(1) - 1)? as f64 / 1000.0);
        let figures = Figures {
            delivered_gpu_hours: of.delivered_gpu_hours,
            owed_gpu_hours: of.owed_gpu_hours,
            starts: all.len() as u64,
            wait_p50_s: rank(50),
            wait_p90_s: rank(90),
        };
        (of.path.clone(), figures)
    };
    result.budgets.iter().filter(|budget| budget.leaf).map(leaf).collect()
}
