//! `stipend sim explain`: what becomes of one workload of a scenario, and why, at one moment.
//!
//! The scenario runs until then under `budget`; the scheduler itself answers for what is live, and what has ended is told from its entries.

mod answer;
mod history;
mod past;
mod start;
mod text;

pub use answer::{
    Blocked, Counterfactual, Ended, Explained, Leaf, Moment, Place, Preemption, Request, Running, Standing, Taker, Waiting, WaitingIn,
};

use crate::engine;
use crate::scenario::Scenario;
use crate::scenario::overrides::nearest;
use history::History;
pub use past::Past;
pub use start::StartEstimate;
use stipend_core::Scheduler;
use stipend_core::event::Event;
use stipend_core::explain::Names;
use stipend_core::id::WorkloadId;
use stipend_core::quantity::Time;

/// Why there is nothing to explain.
#[derive(Debug, thiserror::Error)]
pub enum Unexplained {
    /// Nothing is called so.
    #[error("workload {name}: the scenario has no such workload{near}")]
    Unknown {
        /// As asked for.
        name: String,
        /// What may have been meant.
        near: String,
    },
    /// It comes later, or never.
    #[error("workload {name}: {message}")]
    NotThere {
        /// As asked for.
        name: String,
        /// When it comes.
        message: String,
    },
    /// The scenario is over by then.
    #[error("at {at}: the scenario ends at {end}")]
    Over {
        /// As asked for.
        at: String,
        /// Its end.
        end: String,
    },
}

/// Runs the scenario until `at` and explains the workload called `name`: one that the scenario names, or a number such as `w123`.
pub fn explain(
    scenario: &Scenario,
    seed: u64,
    at: Time,
    name: &str,
    progress: Option<engine::Progress<'_>>,
) -> Result<Explained, Unexplained> {
    let labels = &scenario.labels;
    if scenario.measure_to() < at {
        return Err(Unexplained::Over { at: labels.time(at), end: labels.time(scenario.measure_to()) });
    }
    let id = find(scenario, name)?;
    let (mut scheduler, mut history) = (Scheduler::new(Time(0)), History::new(id, labels));
    engine::run_until(scenario, seed, &mut scheduler, &mut [&mut history], at, progress);
    // The last thing that happened may lie before it. A tick is never refused.
    scheduler.apply(at, &Event::Tick, &mut Vec::new()).expect("time goes on");
    if !history.is_known() {
        return Err(Unexplained::NotThere { name: name.into(), message: not_there(scenario, id, at, &history) });
    }
    Ok(Explained::new(scenario, seed, at, id, &scheduler, history.past))
}

/// The number of the workload called so.
fn find(scenario: &Scenario, name: &str) -> Result<WorkloadId, Unexplained> {
    let named = &scenario.labels.workloads;
    let number = || name.strip_prefix('w').unwrap_or(name).parse().ok().map(WorkloadId);
    let named_so = named.iter().position(|known| known == name).map(|index| WorkloadId(index as u32));
    named_so.or_else(number).ok_or_else(|| {
        let known: Vec<&str> = named.iter().map(String::as_str).collect();
        let near = match nearest(name, &known) {
            Some(near) => format!("; did you mean {near}?"),
            None if known.is_empty() => "; its workloads have numbers, such as w123".into(),
            None => format!("; it names {}; all have numbers, such as w123", some(&known)),
        };
        Unexplained::Unknown { name: name.into(), near }
    })
}

/// A few of them, and how many more there are.
fn some(names: &[&str]) -> String {
    const SHOWN: usize = 8;
    let shown = names.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
    if names.len() <= SHOWN { shown } else { format!("{shown} and {} more", names.len() - SHOWN) }
}

fn not_there(scenario: &Scenario, id: WorkloadId, at: Time, history: &History<'_>) -> String {
    let labels = &scenario.labels;
    match (scenario.listed.get(id.index()), history.last()) {
        (Some(listed), _) => format!("it is submitted at {}, and has not been at {}", labels.time(listed.at), labels.time(at)),
        (None, Some(last)) => format!("it has not been submitted by {}; the last until then is {}", labels.time(at), labels.workload(last)),
        (None, None) => format!("nothing has been submitted by {}", labels.time(at)),
    }
}

#[cfg(test)]
mod tests;
