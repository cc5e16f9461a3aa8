//! The service: one thread that owns the scheduler, and the loop that every shell of the core has.

mod handle;

pub use handle::{Handle, Who};
