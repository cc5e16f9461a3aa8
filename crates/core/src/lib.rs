//! Stipend's core: a pure, deterministic scheduler that decides by budget.
//!
//! Facts come in as [`event::Event`]s, each with the time at which it is told; decisions go out as [`entry::Entry`]s, each with its reason.
//! There is no I/O, no clock, no randomness, no floating point and no hash order here: the same facts give the same decisions, byte for byte.
//!
//! The loop of every shell (simulator, daemon) is the same: [`Scheduler::apply`] each fact of an instant, [`Scheduler::decide`] once,
//! act on the entries, wait for the next fact or for [`Scheduler::next_wakeup`].

mod apply;
pub mod budget;
mod changeset;
mod claim;
mod cluster;
mod completion;
pub mod counterfactual;
mod cycle;
mod demand;
#[cfg(test)]
mod dice;
mod digest;
mod doubt;
pub mod entry;
pub mod event;
mod eviction;
pub mod explain;
pub mod id;
pub mod inquiry;
pub mod knobs;
mod lease;
mod ledger;
mod licence;
mod node_set;
mod order;
mod perform;
mod placement;
mod plan;
mod pool;
pub mod quantity;
mod queue;
pub mod record;
mod recovery;
mod reservation;
mod scheduler;
mod session;
pub mod spec;
mod submit;
mod table;
pub mod waits;
mod window;
mod workload;

pub use plan::Plan;
pub use scheduler::Scheduler;
