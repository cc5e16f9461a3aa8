//! What goes over the wire: the JSON of the HTTP API, version 1. Types here are for reading and writing only; they hold no logic.
//!
//! Requests refuse unknown fields. Answers may get further fields; readers pass over what they do not know.
//! Lengths of time are texts such as `"30m"` in requests and integers of milliseconds, `…_ms`, in answers; points in time are integers of
//! milliseconds since 1970 (UTC), `…_ms`.

pub mod backup;
pub mod budget;
pub mod error;
pub mod event;
pub mod length;
pub mod node;
pub mod page;
pub mod query;
pub mod token;
pub mod usage;
pub mod whatif;
pub mod workload;
