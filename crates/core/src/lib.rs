//! Stipend's core: a pure, deterministic scheduler. (skeleton)
pub mod entry;
pub mod event;
pub mod explain;
pub mod id;
pub mod knobs;
pub mod quantity;
pub mod spec;
