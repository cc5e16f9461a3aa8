//! The simulator: real and generated workloads driven through the core, and through baselines, by one loop.

pub mod analyze;
pub mod audit;
pub mod baseline;
pub mod engine;
pub mod explain;
pub mod family;
pub(crate) mod generate;
pub mod harmless;
pub mod job;
pub mod labels;
pub mod log;
pub mod metrics;
pub mod observer;
pub mod page;
mod percentile;
pub mod plain;
pub mod policy;
mod population;
pub mod random;
pub mod refusal;
pub mod report;
pub mod result;
pub mod scenario;
pub mod sweep;
pub mod trace;
