//! The daemon: the core over a journal in SQLite, drivers that carry out what it decides, and an HTTP API.
//!
//! One thread, the [`service`], owns the scheduler. It takes [`service::Input`]s in batches, tells the core, lets it decide once, writes
//! everything into the [`store`] in one transaction, and only then answers and commands the [`driver`].
//! Whoever only reads either asks the service, or reads the store through a connection of its own.

pub mod client;
pub mod config;
pub mod driver;
pub mod http;
pub mod record;
pub mod serve;
pub mod service;
pub mod store;
pub mod whatif;
pub mod wire;
