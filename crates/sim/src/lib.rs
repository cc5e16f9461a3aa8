//! The simulator: real and generated workloads driven through the core, and through baselines, by one loop.

pub mod baseline;
pub mod budget;
pub mod job;
pub mod observer;
pub mod policy;
