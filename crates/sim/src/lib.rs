//! The simulator: real and generated workloads driven through the core, and through baselines, by one loop.
pub mod audit;
pub mod job;
pub mod log;
pub mod observer;
pub mod policy;
