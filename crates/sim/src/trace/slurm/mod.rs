//! What Slurm says about jobs: `sacct` as text and as JSON, the answers of `slurmrestd`, and tables of the accounting database.
//!
//! A reader makes a [`attempt::Record`] of each record, whatever its form; records are collected, put together to jobs ([`fold`]), and those become
//! rows of the trace. Only a job's own record counts, never its steps. `docs/slurm.md` lists the forms and every rule.

mod attempt;
mod collect;
mod column;
mod fold;
mod id;
mod json;
mod layout;
mod lenient;
mod nodes;
mod scan;
mod split;
mod state;
mod text;
mod tres;
mod value;

use super::builder::Builder;
use super::input::Input;
use collect::Collector;
use layout::Layout;

/// Whether a file that begins so is text that `sacct` wrote, with these columns if somebody named them.
pub(super) fn is_text(head: &[u8], columns: Option<&str>) -> bool {
    columns.is_some() || Layout::find(head).is_some()
}

/// Whether a file that begins so is JSON of Slurm.
pub(super) fn is_json(head: &[u8]) -> bool {
    scan::is_json(head)
}

/// Whether a file that begins so lists nodes.
pub(super) fn is_nodes(head: &[u8]) -> bool {
    nodes::is_list(head)
}

/// What a list of nodes says about them.
pub(super) fn describe_nodes(input: &mut Input<'_>) -> Result<String, String> {
    nodes::describe(input)
}

/// Reads `sacct` as text.
pub(super) fn read_text(input: &mut Input<'_>, builder: &mut Builder) -> Result<(), String> {
    let named = builder.reading.columns.clone();
    let layout = Layout::detect(input.head().map_err(|error| error.to_string())?, named.as_deref())?;
    let mut collector = Collector::new(builder);
    text::read(input, &layout, &mut collector)?;
    collector.finish()
}

/// Reads `sacct --json`, or the jobs of `slurmrestd`.
pub(super) fn read_json(input: &mut Input<'_>, builder: &mut Builder) -> Result<(), String> {
    let mut collector = Collector::new(builder);
    json::read(input, &mut collector)?;
    collector.finish()
}

#[cfg(test)]
mod tests;
