//! `stipend budget tree`.

use super::To;
use crate::failure::{Answer, Outcome};
use crate::names;
use crate::output;
use crate::table::{Column, Table};
use clap::Args;
use stipend_server::wire::budget::{Budget, BudgetInPool, Tree};

/// Show the tree: what each budget is owed, and how it stands.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TreeCommand {
    /// Only from this budget on down
    #[arg(value_name = "PATH", add = names::budgets())]
    from: Option<String>,
    #[command(flatten)]
    to: To,
}

const EXAMPLES: &str = "\
Examples:
  stipend budget tree
  stipend budget tree lab/nlp --format json

share     its part of its parent, in percent
claim     its part of the whole pool
standing  what it used and has committed to, of what it was entitled to over
          the lookback: 100 % is what it is owed; < marks who goes first, being
          below its share
alloc., unalloc., waiting
          GPUs that its work holds charged, holds uncharged, and asks for";

impl TreeCommand {
    pub(super) fn run(self) -> Outcome {
        let mut tree = super::tree(&self.to.remote.daemon()?)?;
        if let Some(from) = &self.from {
            let from = super::show::find(&tree, from)?.path.clone();
            tree.budgets.retain(|budget| budget.path == from || is_below(&budget.path, &from));
        }
        output::data(self.to.format, &tree, || table(&tree).text(output::width()))?;
        Ok(Answer::Yes)
    }
}

fn is_below(path: &str, other: &str) -> bool {
    path.strip_prefix(other).is_some_and(|rest| rest.starts_with('/'))
}

/// One row a budget and pool; a pool is named where there are several.
pub(in crate::commands) fn table(tree: &Tree) -> Table {
    let mut table = Table::new(&[
        ("budget", Column::Shrinks),
        ("share", Column::Figures),
        ("claim", Column::Figures),
        ("standing", Column::Figures),
        ("alloc.", Column::Figures),
        ("unalloc.", Column::Figures),
        ("waiting", Column::Figures),
        ("limits", Column::Shrinks),
    ]);
    let several = tree.budgets.iter().any(|budget| budget.pools.len() > 1);
    let top = tree.budgets.iter().map(|budget| budget.path.matches('/').count()).min().unwrap_or(0);
    for (_, budget, there) in rows(tree) {
        let depth = budget.path.matches('/').count() - top;
        let name = if depth == 0 { &budget.path } else { budget.path.rsplit('/').next().unwrap_or_default() };
        let pool = if several { format!(" in {}", there.pool) } else { String::new() };
        let mark = if there.below_share { " <" } else { "  " };
        table.row([
            format!("{}{name}{pool}", "  ".repeat(depth)),
            percent(there.share_percent),
            percent(there.claim * 100.0),
            there.standing.map_or("–".into(), |standing| percent(standing * 100.0)) + mark,
            there.allocated_gpus.to_string(),
            there.unallocated_gpus.to_string(),
            there.waiting_gpus.to_string(),
            limits(budget, there),
        ]);
    }
    table
}

/// Each budget in each pool, a parent right before its children, in the order of their paths.
fn rows(tree: &Tree) -> Vec<(Vec<&str>, &Budget, &BudgetInPool)> {
    let parts = |budget: &'_ Budget| -> Vec<String> { budget.path.split('/').map(str::to_owned).collect() };
    let mut budgets: Vec<&Budget> = tree.budgets.iter().collect();
    budgets.sort_by_key(|budget| parts(budget));
    budgets.into_iter().flat_map(|budget| budget.pools.iter().map(move |there| (budget.path.split('/').collect(), budget, there))).collect()
}

/// `37.5 %`, `40 %`
pub(in crate::commands) fn percent(percent: f64) -> String {
    let text = format!("{percent:.2}");
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Caps and what else is not as usual.
pub(super) fn limits(budget: &Budget, there: &BudgetInPool) -> String {
    let some = [
        budget.closed.then(|| "closed".to_owned()),
        there.gpus_max.map(|most| format!("{most} GPUs")),
        there.unallocated_gpus_max.map(|most| format!("{most} unallocated")),
        there.min_runtime_max_ms.map(|most| format!("contracts of {}", crate::moment::long(most))),
    ];
    some.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    #[test]
    fn a_tree_of_two_teams() {
        let expected = "\
budget    share  claim   standing  alloc.  unalloc.  waiting  limits
──────────────────────────────────────────────────────────────────────────────────────────
lab       100 %  100 %   87.5 %         0         2       24
  nlp      60 %   60 %    100 % <       4         2       24
  vision   40 %   40 %  112.5 %         8         2       24  8 GPUs, contracts of 8 h";
        assert_eq!(
            table(&samples::tree()).text(None),
            expected.replace(
                "──────────────────────────────────────────────────────────────────────────────────────────",
                &"─".repeat(table(&samples::tree()).text(None).lines().nth(1).unwrap_or_default().chars().count())
            )
        );
    }

    #[test]
    fn figures_without_needless_digits() {
        assert_eq!([100.0, 37.5, 0.0, 33.333].map(percent), ["100 %", "37.5 %", "0 %", "33.33 %"]);
    }

    #[test]
    fn children_stand_below_their_parents_whatever_their_names() {
        let mut tree = samples::tree();
        tree.budgets[2].path = "lab-2".into();
        tree.budgets.reverse();
        let order: Vec<&str> = rows(&tree).iter().map(|(_, budget, _)| budget.path.as_str()).collect();
        assert_eq!(order, ["lab", "lab/nlp", "lab-2"]);
    }
}
