//! What a daemon may answer, for tests of how it is shown.

use serde_json::json;
use std::collections::BTreeMap;
use stipend_server::wire::budget::{Budget, BudgetInPool, Tree};
use stipend_server::wire::workload::{State, Workload};

/// Noon on 30 November 2026, UTC.
pub(crate) const NOON: i64 = 1_796_040_000_000;

/// A workload that waits, submitted ten minutes before noon. As JSON, so that new fields with defaults do not matter here.
pub(crate) fn workload(id: u32) -> Workload {
    let waiting = json!({
        "id": id, "name": "train", "user": "ann", "budget": "lab/nlp", "pool": "gpu", "state": "waiting",
        "members": 1, "gpus_per_member": 4, "min_runtime_ms": 0, "on_preempt": "resume", "priority": 0, "kind": "batch",
        "submitted_ms": NOON - 600_000, "allocated": false, "attempts": 0, "preemptions": 0, "ran_ms": 0,
        "why": "all GPUs are held by work that is protected until 12:30",
    });
    serde_json::from_value(waiting).expect("a workload")
}

/// A workload that runs since five minutes before noon, protected for 20 more.
pub(crate) fn running(id: u32) -> Workload {
    Workload {
        state: State::Running,
        min_runtime_ms: 1_500_000,
        started_ms: Some(NOON - 300_000),
        protected_until_ms: Some(NOON + 1_200_000),
        allocated: true,
        attempts: 1,
        placement: BTreeMap::from([("gpu-1".into(), vec![0, 1, 2, 3])]),
        why: Some("lab/nlp stands lowest".into()),
        ..workload(id)
    }
}

/// A lab of two teams.
pub(crate) fn tree() -> Tree {
    Tree { version: 3, budgets: vec![budget(0, "lab", 100.0, 1.0), budget(1, "lab/nlp", 60.0, 0.6), budget(2, "lab/vision", 40.0, 0.4)] }
}

fn budget(id: u32, path: &str, share_percent: f64, claim: f64) -> Budget {
    let in_pool = BudgetInPool {
        pool: "gpu".into(),
        share_percent,
        claim,
        standing: Some(0.875 + f64::from(id) / 8.0),
        below_share: id == 1,
        allocated_gpus: 4 * id,
        unallocated_gpus: 2,
        waiting_gpus: 24,
        gpus_max: (id == 2).then_some(8),
        unallocated_gpus_max: None,
        min_runtime_max_ms: (id == 2).then_some(28_800_000),
    };
    let managers = if id == 1 { vec!["ann".to_owned()] } else { Vec::new() };
    Budget {
        id,
        path: path.into(),
        leaf: id != 0,
        closed: false,
        managers,
        members: vec!["*".into()],
        order: "priority".into(),
        pools: vec![in_pool],
    }
}
