//! Whatever the bytes, reading a trace neither panics nor takes memory out of proportion.

#![no_main]

use libfuzzer_sys::fuzz_target;
use stipend_sim::report::trace::overview;
use stipend_sim::trace::overview::Overview;
use stipend_sim::trace::{Reading, Trace};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(trace) = Trace::read(bytes, Reading { procs_per_gpu: 2 }) {
        let _ = overview("file", &Overview::of(&trace));
    }
});
