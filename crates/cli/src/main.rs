//! Stipend.
fn main() {}
