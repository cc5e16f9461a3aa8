//! Nodes and pools.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How urgently a node drains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Planned: what certainly ends before the drain's end may still start.
    Maintenance,
    /// Nothing starts; occupants go on until their protection ends.
    #[default]
    Sick,
    /// Everything stops at once, refunded.
    Critical,
}

/// Take a node out of service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DrainRequest {
    /// Default `sick`.
    pub severity: Severity,
    /// Why.
    pub reason: String,
    /// It comes back by itself then, without being repaired. Default: after its repair, or when somebody resumes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until_ms: Option<i64>,
}

/// A node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Its pool.
    pub pool: String,
    /// `ready`, `draining`, `drained`, `repairing`, `lost`.
    pub state: String,
    /// Of a drain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub severity: Option<Severity>,
    /// Of a drain or loss, with who asked for it.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub reason: String,
    /// When the last protection on it ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drain_until_ms: Option<i64>,
    /// When it comes back by itself, if that was said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub back_ms: Option<i64>,
    /// GPUs.
    pub gpus: u32,
    /// GPUs under lease.
    pub gpus_used: u32,
    /// CPUs; 0 where they are not counted.
    pub cpus: u32,
    /// Bytes; 0 where it is not counted.
    pub memory_bytes: u64,
    /// The block it stands in.
    pub block: String,
    /// What it has.
    pub features: Vec<String>,
    /// Set aside for short contracts and unallocated work.
    pub express: bool,
    /// The workloads on it.
    pub workloads: Vec<u32>,
}

/// A pool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Pool {
    /// Its name.
    pub name: String,
    /// GPUs of all nodes.
    pub gpus: u32,
    /// GPUs of healthy nodes.
    pub gpus_available: u32,
    /// Under charged leases.
    pub gpus_allocated: u32,
    /// Under leases that are not charged.
    pub gpus_unallocated: u32,
    /// Workloads that wait for it.
    pub waiting: u32,
    /// GPUs they ask for.
    pub waiting_gpus: u64,
}
