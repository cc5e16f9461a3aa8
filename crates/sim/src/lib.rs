//! The simulator: real and generated workloads driven through the core, and through baselines, by one loop.
pub mod engine;
pub(crate) mod generate;
pub mod job;
pub mod labels;
pub mod observer;
pub mod policy;
pub(crate) mod population;
pub mod random;
pub mod scenario;
pub mod trace;
