//! What came of a sweep, for people: a table with the best of each column marked, a picture, a page with both, and what it
//! brings somebody.

mod figures;
mod heat;
mod lines;
mod page;
mod picture;
mod table;
#[cfg(test)]
mod tests;
mod watched;

pub use page::page;
pub(in crate::report) use picture::escape;
pub use picture::picture;
pub use table::table;
pub use watched::watched;

use crate::sweep::SweepResult;

/// `lab: 1024 GPUs, 30 days, seed 1, under budget`
fn title(sweep: &SweepResult) -> String {
    let results = &sweep.combinations[0].results;
    let run = &results[0];
    let days = (run.sim_days * 10.0).round() / 10.0;
    let unit = if days == 1.0 { "day" } else { "days" };
    let seeds = match results.len() {
        1 => format!("seed {}", run.seed),
        count => format!("{count} seeds"),
    };
    // What is swept may be the size of the pool.
    let sizes: Vec<u32> = sweep.combinations.iter().map(|combination| combination.results[0].capacity_gpus).collect();
    let gpus = match (sizes.iter().min(), sizes.iter().max()) {
        (Some(least), Some(most)) if least < most => format!("{least} to {most}"),
        _ => run.capacity_gpus.to_string(),
    };
    let under = match run.policies.as_slice() {
        [policy] => format!(", under {}", policy.policy),
        _ => String::new(),
    };
    format!("{}: {gpus} GPUs, {days} {unit}, {seeds}{under}", run.scenario)
}
