//! The simulator: real and generated workloads driven through the core, and through baselines, by one loop.
pub mod audit;
pub mod baseline;
pub mod job;
pub mod log;
pub mod metrics;
pub mod observer;
mod percentile;
pub mod policy;
pub mod report;
pub mod result;
