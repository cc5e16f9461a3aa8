//! Policies to compare with: what a cluster gets without budgets. All of them keep to the same contracts with the engine as the core does,
//! and write the same log. `fifo`, `easy` and `partition` never preempt for a claimant; the rivals `priority` and `fair-tree` do.

mod book;
mod claims;
mod cluster;
mod common;
mod easy;
mod fair_tree;
mod fifo;
mod free;
mod guests;
mod hosts;
mod line;
mod partition;
mod placement;
mod priority;
mod request;
mod shapes;
mod stop;
mod tree;
mod victims;

pub use book::Estimate;
pub use easy::easy;
pub use fair_tree::{FairTreeSettings, PreemptFor, fair_tree};
pub use fifo::fifo;
pub use partition::partition;
pub use priority::{PrioritySettings, priority};
