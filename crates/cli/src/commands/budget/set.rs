//! `stipend budget set`.

use super::{Change, To, change, print, show, tree};
use crate::failure::{Failure, Outcome};
use crate::names;
use clap::{Args, ValueEnum};
use std::collections::BTreeMap;
use std::str::FromStr;
use stipend_server::wire::budget::{BudgetChange, PerPool, Tree};
use stipend_server::wire::length::Length;

/// Change a budget, or add one. What is not named stays as it is.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Set {
    /// Which
    #[arg(value_name = "PATH", add = names::budgets())]
    path: String,
    /// It is new
    #[arg(long)]
    new: bool,
    /// Percent of its parent: 40, or by pool: h100=40,a100=10
    #[arg(long, value_name = "PERCENT")]
    share: Option<ByPool<f64>>,
    /// The most GPUs that its allocated work may hold at once: 64, by pool h100=64, or none
    #[arg(long, value_name = "GPUS")]
    gpus_max: Option<ByPool<Cap<u32>>>,
    /// The most GPUs that its unallocated work may hold at once
    #[arg(long, value_name = "GPUS")]
    unallocated_gpus_max: Option<ByPool<Cap<u32>>>,
    /// The longest contract that may start in it: 8h, or none
    #[arg(long, value_name = "TIME")]
    min_runtime_max: Option<ByPool<Cap<crate::moment::Length>>>,
    /// The order of its work, if it is a leaf
    #[arg(long, value_enum, value_name = "ORDER")]
    order: Option<Order>,
    /// Who may change the budgets below it, instead of those who might before
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    managers: Option<Vec<String>>,
    /// Who may submit to it and below, instead of those who might before; `*` is everybody
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    members: Option<Vec<String>>,
    /// Close it: no new work, waiting work held, running work goes on
    #[arg(long, conflicts_with = "reopen")]
    close: bool,
    /// Open it again
    #[arg(long)]
    reopen: bool,
    /// Another path: another name, or another parent
    #[arg(long, value_name = "PATH")]
    rename_to: Option<String>,
    #[command(flatten)]
    change: Change,
    #[command(flatten)]
    to: To,
}

const EXAMPLES: &str = "\
Examples:
  stipend budget set lab/nlp --share 45 --reason 'deadline in December'
  stipend budget set lab/nlp --share 40 --at 2027-01-01 --reason 'new year'
  stipend budget set lab/nlp --share 90 --dry-run
  stipend budget set lab/audio --new --share 10 --members eve,bob \\
      --reason 'a new group'
  stipend budget set lab/nlp --gpus-max none --min-runtime-max 8h -r quiet
  stipend budget set lab/vision --close --reason 'the project is over'";

/// The order of a leaf's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Order {
    /// Priority, then users in turn, then age
    Priority,
    /// Age
    Fifo,
    /// Short contracts first
    ShortestContract,
    /// What is likely to complete first, with a bounded head start
    Completion,
}

/// A cap, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cap<T>(Option<T>);

impl<T: FromStr> FromStr for Cap<T> {
    type Err = T::Err;

    fn from_str(text: &str) -> Result<Cap<T>, T::Err> {
        if text == "none" { Ok(Cap(None)) } else { text.parse().map(|cap| Cap(Some(cap))) }
    }
}

/// One value, or one a pool by name.
#[derive(Clone, Debug, PartialEq)]
enum ByPool<T> {
    All(T),
    By(BTreeMap<String, T>),
}

impl<T: FromStr<Err: std::fmt::Display>> FromStr for ByPool<T> {
    type Err = String;

    fn from_str(text: &str) -> Result<ByPool<T>, String> {
        let value = |text: &str| text.parse::<T>().map_err(|error| format!("`{text}`: {error}"));
        if !text.contains('=') {
            return value(text).map(ByPool::All);
        }
        let parts = text.split(',').map(|part| {
            let (pool, text) = part.split_once('=').ok_or_else(|| format!("`{part}`: it is written POOL=VALUE"))?;
            Ok((pool.to_owned(), value(text)?))
        });
        parts.collect::<Result<_, String>>().map(ByPool::By)
    }
}

impl Set {
    pub(super) fn run(self) -> Outcome {
        let daemon = self.to.remote.daemon()?;
        let tree = tree(&daemon)?;
        match (show::find(&tree, &self.path), self.new) {
            (Err(unknown), false) if self.share.is_some() => return Err(unknown.hint("add --new if it is to be a new budget")),
            (Err(unknown), false) => return Err(unknown),
            (Ok(_), true) => {
                return Err(Failure::new(format!("there is a budget {} already", self.path)).hint("leave --new out to change it"));
            }
            _ => {}
        }
        let budgets = vec![self.written(&tree)];
        let made = change(&daemon, tree.version, budgets, &self.change)?;
        print(&made, self.to.format, self.change.dry_run)
    }

    fn written(&self, tree: &Tree) -> BudgetChange {
        let order = self.order.map(|order| match order {
            Order::Priority => "priority",
            Order::Fifo => "fifo",
            Order::ShortestContract => "shortest-contract",
            Order::Completion => "completion",
        });
        BudgetChange {
            path: self.path.trim_end_matches('/').to_owned(),
            share: self.share.clone().map(|share| match share {
                ByPool::All(share) => PerPool::All(share),
                ByPool::By(shares) => PerPool::By(shares),
            }),
            gpus_max: self.gpus_max.as_ref().map(|cap| caps(cap, tree, |most| *most)),
            unallocated_gpus_max: self.unallocated_gpus_max.as_ref().map(|cap| caps(cap, tree, |most| *most)),
            min_runtime_max: self.min_runtime_max.as_ref().map(|cap| caps(cap, tree, |length| Length(length.0))),
            order: order.map(str::to_owned),
            managers: self.managers.clone().map(named),
            members: self.members.clone().map(named),
            closed: self.close.then_some(true).or(self.reopen.then_some(false)),
            rename_to: self.rename_to.clone(),
        }
    }
}

/// `--members ''` names nobody.
fn named(names: Vec<String>) -> Vec<String> {
    names.into_iter().filter(|name| !name.is_empty()).collect()
}

/// A cap for all pools is written out for each, as only there it can be lifted.
fn caps<T, W>(cap: &ByPool<Cap<T>>, tree: &Tree, wire: impl Fn(&T) -> W) -> PerPool<Option<W>> {
    let one = |cap: &Cap<T>| cap.0.as_ref().map(&wire);
    match cap {
        ByPool::All(cap) => PerPool::By(pools(tree).map(|pool| (pool.to_owned(), one(cap))).collect()),
        ByPool::By(caps) => PerPool::By(caps.iter().map(|(pool, cap)| (pool.clone(), one(cap))).collect()),
    }
}

fn pools(tree: &Tree) -> impl Iterator<Item = &str> {
    tree.budgets.first().into_iter().flat_map(|budget| budget.pools.iter().map(|there| there.pool.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;
    use clap::Parser;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        set: Set,
    }

    fn written(args: &str) -> Result<String, String> {
        let args = shlex::split(&format!("set {args}")).expect("words");
        let set = Cli::try_parse_from(args).map_err(|error| error.to_string().lines().next().unwrap_or_default().to_owned())?.set;
        Ok(serde_json::to_string(&set.written(&samples::tree())).expect("it is JSON"))
    }

    #[test]
    fn only_what_is_named_is_changed() {
        assert_eq!(written("lab/nlp --share 45.5").as_deref(), Ok(r#"{"path":"lab/nlp","share":45.5}"#));
        assert_eq!(written("lab/nlp --share h100=40,a100=10").as_deref(), Ok(r#"{"path":"lab/nlp","share":{"a100":10.0,"h100":40.0}}"#));
        assert_eq!(
            written("lab --close --members '' --managers ann,bob").as_deref(),
            Ok(r#"{"path":"lab","managers":["ann","bob"],"members":[],"closed":true}"#)
        );
    }

    #[test]
    fn a_cap_is_lifted_in_each_pool() {
        let expected = r#"{"path":"lab","gpus_max":{"gpu":null},"min_runtime_max":{"gpu":"8h"}}"#;
        assert_eq!(written("lab --gpus-max none --min-runtime-max 8h").as_deref(), Ok(expected));
    }

    #[test]
    fn values_that_are_none() {
        let wrong = |args: &str, message: &str| assert_eq!(written(args).unwrap_err(), message);
        wrong("lab --share much", "error: invalid value 'much' for '--share <PERCENT>': `much`: invalid float literal");
        wrong("lab --gpus-max a=1,2", "error: invalid value 'a=1,2' for '--gpus-max <GPUS>': `2`: it is written POOL=VALUE");
    }
}
