//! `stipend pool`.

use crate::failure::{Answer, Outcome};
use crate::output::{self, Format};
use crate::remote::Remote;
use crate::table::{Column, Table};
use clap::{Args, Subcommand};
use stipend_server::wire::node::Pool;

/// List pools: nodes with one kind of GPU, scheduled together.
#[derive(Debug, Subcommand)]
pub(super) enum PoolCommand {
    List(List),
}

/// List pools: how many GPUs there are, who has them, and what waits.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct List {
    /// How to print them; `json` is a list
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    format: Format,
    #[command(flatten)]
    remote: Remote,
}

const EXAMPLES: &str = "\
Examples:
  stipend pool list
  stipend pool list --format json";

impl PoolCommand {
    pub(super) fn run(self) -> Outcome {
        let PoolCommand::List(list) = self;
        let pools = list.remote.daemon()?.get::<Vec<Pool>>("/v1/pools")?;
        output::data(list.format, &pools, || table(&pools).text(output::width()))?;
        Ok(Answer::Yes)
    }
}

fn table(pools: &[Pool]) -> Table {
    let mut table = Table::new(&[
        ("pool", Column::Words),
        ("GPUs", Column::Figures),
        ("healthy", Column::Figures),
        ("allocated", Column::Figures),
        ("unallocated", Column::Figures),
        ("idle", Column::Figures),
        ("waiting", Column::Figures),
        ("for GPUs", Column::Figures),
    ]);
    for pool in pools {
        let used = pool.gpus_allocated + pool.gpus_unallocated;
        table.row([
            pool.name.clone(),
            pool.gpus.to_string(),
            pool.gpus_available.to_string(),
            pool.gpus_allocated.to_string(),
            pool.gpus_unallocated.to_string(),
            pool.gpus_available.saturating_sub(used).to_string(),
            pool.waiting.to_string(),
            pool.waiting_gpus.to_string(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool() {
        let pool =
            Pool { name: "gpu".into(), gpus: 16, gpus_available: 8, gpus_allocated: 4, gpus_unallocated: 3, waiting: 12, waiting_gpus: 96 };
        let expected = "\
pool  GPUs  healthy  allocated  unallocated  idle  waiting  for GPUs
────────────────────────────────────────────────────────────────────
gpu     16        8          4            3     1       12        96";
        assert_eq!(table(&[pool]).text(None), expected);
    }
}
