//! Whatever the bytes, reading a trace neither panics nor takes memory out of proportion.

#![no_main]

#[path = "../look.rs"]
mod look;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| look::look(bytes));
