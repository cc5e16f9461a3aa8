//! The simulator: real and generated workloads driven through the core, and through baselines, by one loop.

pub mod audit;
pub mod baseline;
pub mod budget;
pub mod engine;
pub mod job;
pub mod labels;
pub mod log;
pub mod metrics;
pub mod observer;
pub mod policy;
pub mod random;
pub mod report;
pub mod result;
pub mod scenario;
pub mod trace;
