//! The API of a real daemon: a store on disk, real processes, a free port and a unix socket.

mod access;
mod bounds;
mod budgets;
mod daemon;
mod document;
mod follow;
mod fuzz;
mod hooks;
mod workloads;

use std::path::Path;

/// Not a test: the supervisors of the others, each in a process of its own.
#[test]
fn supervise_entry() {
    if let Some(folder) = std::env::args().find(|argument| argument.contains("/leases/")) {
        stipend_server::driver::local::supervise(Path::new(&folder)).expect("supervised");
    }
}
