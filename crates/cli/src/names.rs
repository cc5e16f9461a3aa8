//! What things of the daemon are called on the command line, and how a shell completes them.

use crate::remote::{Query, Remote};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use serde::Serialize;
use std::ffi::OsStr;
use std::fmt;
use std::str::FromStr;
use stipend_server::wire::budget::Tree;
use stipend_server::wire::node::{Node, Pool};
use stipend_server::wire::workload::Workload;

/// So many workloads are offered.
const OFFERED: usize = 200;

/// A workload's number, as it is typed: `123` or `w123`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Id(pub(crate) u32);

impl FromStr for Id {
    type Err = String;

    fn from_str(text: &str) -> Result<Id, String> {
        text.strip_prefix('w')
            .unwrap_or(text)
            .parse()
            .map(Id)
            .map_err(|_| "it is not the number of a workload, such as 123 or w123".to_owned())
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "w{}", self.0)
    }
}

/// What a value of an enum is called over the wire: `timed_out`.
pub(crate) fn word(value: impl Serialize) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}

/// Paths of budgets.
pub(crate) fn budgets() -> ArgValueCompleter {
    completer(|| Some(ask::<Tree>("/v1/budgets")?.budgets.into_iter().map(|budget| (budget.path, String::new())).collect()))
}

/// Paths of budgets in which work runs.
pub(crate) fn leaves() -> ArgValueCompleter {
    completer(|| {
        let leaves = ask::<Tree>("/v1/budgets")?.budgets.into_iter().filter(|budget| budget.leaf && !budget.closed);
        Some(leaves.map(|budget| (budget.path, String::new())).collect())
    })
}

/// Workloads that have not ended.
pub(crate) fn live() -> ArgValueCompleter {
    completer(|| workloads(false))
}

/// All workloads.
pub(crate) fn all() -> ArgValueCompleter {
    completer(|| workloads(true))
}

/// Nodes.
pub(crate) fn nodes() -> ArgValueCompleter {
    completer(|| Some(ask::<Vec<Node>>("/v1/nodes")?.into_iter().map(|node| (node.name, node.state)).collect()))
}

/// Pools.
pub(crate) fn pools() -> ArgValueCompleter {
    completer(|| Some(ask::<Vec<Pool>>("/v1/pools")?.into_iter().map(|pool| (pool.name, String::new())).collect()))
}

fn workloads(all: bool) -> Option<Vec<(String, String)>> {
    let daemon = Remote::from_environment().daemon().ok()?;
    let query = Query::default().with("all", all.then_some(true));
    let found = daemon.list::<Workload>("/v1/workloads", &query, OFFERED).ok()?;
    Some(found.into_iter().map(|workload| (Id(workload.id).to_string(), about(&workload))).collect())
}

fn about(workload: &Workload) -> String {
    format!("{} of {}, {}", workload.name, workload.user, word(workload.state))
}

fn ask<T: serde::de::DeserializeOwned>(path: &str) -> Option<T> {
    Remote::from_environment().daemon().ok()?.get(path).ok()
}

/// Offers what begins as typed; nothing where no daemon answers.
fn completer(candidates: impl Fn() -> Option<Vec<(String, String)>> + Send + Sync + 'static) -> ArgValueCompleter {
    ArgValueCompleter::new(move |typed: &OsStr| {
        let typed = typed.to_string_lossy();
        let known = candidates().unwrap_or_default().into_iter().filter(|(name, _)| name.starts_with(typed.as_ref()));
        let candidate = |(name, help): (String, String)| CompletionCandidate::new(name).help((!help.is_empty()).then(|| help.into()));
        known.map(candidate).collect::<Vec<_>>()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_with_and_without_their_letter() {
        assert_eq!("123".parse(), Ok(Id(123)));
        assert_eq!("w123".parse(), Ok(Id(123)));
        for wrong in ["", "w", "x1", "-1", "ww1", "1.5", "4294967296"] {
            assert!(wrong.parse::<Id>().is_err(), "{wrong}");
        }
    }
}
