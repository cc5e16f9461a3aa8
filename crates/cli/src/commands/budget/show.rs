//! `stipend budget show`.

use super::To;
use super::tree::{limits, percent};
use crate::failure::{Answer, Failure, Outcome};
use crate::names;
use crate::output;
use crate::table::wrap;
use clap::Args;
use stipend_server::wire::budget::{Budget, Tree};

/// Show a budget: people, order, and in each pool what it is owed and how it stands.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Show {
    /// Which
    #[arg(value_name = "PATH", add = names::budgets())]
    path: String,
    #[command(flatten)]
    to: To,
}

const EXAMPLES: &str = "\
Examples:
  stipend budget show lab/nlp
  stipend budget show lab/nlp --format json";

/// The width of the words at the left.
const MARGIN: usize = 10;

impl Show {
    pub(super) fn run(self) -> Outcome {
        let tree = super::tree(&self.to.remote.daemon()?)?;
        let budget = find(&tree, &self.path)?;
        output::data(self.to.format, budget, || page(budget, output::width()))?;
        Ok(Answer::Yes)
    }
}

/// The budget of this path.
pub(super) fn find<'a>(tree: &'a Tree, path: &str) -> Result<&'a Budget, Failure> {
    let path = path.trim_end_matches('/');
    tree.budgets.iter().find(|budget| budget.path == path).ok_or_else(|| {
        let known: Vec<&str> = tree.budgets.iter().map(|budget| budget.path.as_str()).collect();
        let near = stipend_sim::scenario::nearest(path, &known).map(|near| format!("did you mean {near}?"));
        Failure::new(format!("there is no budget {path}")).hint(near.unwrap_or_else(|| "`stipend budget tree` shows them".to_owned()))
    })
}

fn page(budget: &Budget, width: Option<usize>) -> String {
    let people = |names: &[String]| if names.is_empty() { "–".to_owned() } else { names.join(", ") };
    let kind = match (budget.leaf, budget.closed) {
        (_, true) => "closed: it takes no new work",
        (true, false) => "a leaf: work runs in it",
        (false, false) => "its children share it",
    };
    let mut lines =
        vec![("budget", format!("{}, {kind}", budget.path)), ("managers", people(&budget.managers)), ("members", people(&budget.members))];
    if budget.leaf {
        lines.push(("order", budget.order.clone()));
    }
    for there in &budget.pools {
        let standing =
            there.standing.map_or("it is entitled to nothing".into(), |standing| format!("it stands at {}", percent(standing * 100.0)));
        let below = if there.below_share { ", below its share: it goes first" } else { "" };
        let limits = match limits(budget, there) {
            limits if limits.is_empty() => String::new(),
            limits => format!("; at most {limits}"),
        };
        lines.push((
            "",
            format!(
                "in {}: {} of its parent, {} of the pool{limits}; {standing}{below}; {} GPUs allocated, {} unallocated, {} waited for",
                there.pool,
                percent(there.share_percent),
                percent(there.claim * 100.0),
                there.allocated_gpus,
                there.unallocated_gpus,
                there.waiting_gpus
            ),
        ));
    }
    let said = lines.into_iter().map(|(word, text)| wrap(&format!("{word:MARGIN$}"), &" ".repeat(MARGIN), &text, width));
    said.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    #[test]
    fn one_budget() {
        let expected = "\
budget    lab/nlp, a leaf: work runs in it
managers  ann
members   *
order     priority
          in gpu: 60 % of its parent, 60 % of the pool; it stands at 100 %,
          below its share: it goes first; 4 GPUs allocated, 2 unallocated, 24
          waited for";
        assert_eq!(page(&samples::tree().budgets[1], Some(78)), expected);
    }

    #[test]
    fn a_slip_of_the_pen() {
        let message = find(&samples::tree(), "lab/nlq").unwrap_err().to_string();
        assert_eq!(message, "error: there is no budget lab/nlq\nhint: did you mean lab/nlp?");
    }
}
