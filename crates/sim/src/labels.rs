//! What budgets, users, nodes and workloads are called.

use stipend_core::explain::Names;
use stipend_core::id::{BudgetId, NodeId, PoolId, UserId, WorkloadId};
use stipend_core::quantity::Time;

/// Labels by number.
#[derive(Clone, Debug, Default)]
pub struct Labels {
    /// Full paths.
    pub budgets: Vec<String>,
    /// Users.
    pub users: Vec<String>,
    /// The workloads that a scenario names; they have the first numbers.
    pub workloads: Vec<String>,
    /// Pools.
    pub pools: Vec<String>,
    /// In a pool without GPUs, how many CPUs are counted as one.
    pub cpus_per_gpu: Vec<Option<u32>>,
    /// Nodes, as far as they have names.
    pub nodes: Vec<String>,
}

impl Names for Labels {
    fn budget(&self, id: BudgetId) -> String {
        label(&self.budgets, id.index()).unwrap_or_else(|| id.to_string())
    }
    fn workload(&self, id: WorkloadId) -> String {
        label(&self.workloads, id.index()).unwrap_or_else(|| id.to_string())
    }
    fn node(&self, id: NodeId) -> String {
        label(&self.nodes, id.index()).filter(|name| !name.is_empty()).unwrap_or_else(|| id.to_string())
    }
    fn pool(&self, id: PoolId) -> String {
        label(&self.pools, id.index()).unwrap_or_else(|| id.to_string())
    }
    fn cpus_per_gpu(&self, pool: PoolId) -> Option<u32> {
        self.cpus_per_gpu.get(pool.index()).copied().flatten()
    }
    fn user(&self, id: UserId) -> String {
        label(&self.users, id.index()).unwrap_or_else(|| id.to_string())
    }
    /// Hours and minutes since the start, as scenarios write them: `26:05`, `0:00:30`.
    fn time(&self, at: Time) -> String {
        let seconds = at.0.div_euclid(1000);
        let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        if rest == 0 { format!("{hours}:{minutes:02}") } else { format!("{hours}:{minutes:02}:{rest:02}") }
    }
}

fn label(labels: &[String], index: usize) -> Option<String> {
    labels.get(index).cloned()
}
