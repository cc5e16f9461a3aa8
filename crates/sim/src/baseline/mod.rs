//! Policies to compare with: what a cluster gets without budgets. All of them keep to the same contracts with the engine as the core does,
//! and write the same log; none of them preempts.

mod book;
mod cluster;
mod common;
mod easy;
mod fifo;
mod free;
mod guests;
mod hosts;
mod line;
mod partition;
mod placement;
mod request;
mod shapes;
mod stop;
mod tree;

pub use book::Estimate;
pub use easy::easy;
pub use fifo::fifo;
pub use partition::partition;
