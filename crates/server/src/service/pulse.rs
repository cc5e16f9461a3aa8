//! How long the service takes, for the metrics. Nothing is decided by it.

use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use std::time::Instant;

/// Times of the service's work, in seconds.
#[derive(Clone, Debug)]
pub struct Pulse {
    /// A decision of the scheduler: one cycle.
    pub cycles: Histogram,
    /// A transaction, until it was on disk.
    pub commits: Histogram,
}

impl Default for Pulse {
    /// From 50 µs to 1.6 s.
    fn default() -> Pulse {
        let times = || Histogram::new(exponential_buckets(0.000_05, 2.0, 16));
        Pulse { cycles: times(), commits: times() }
    }
}

/// Does something and counts how long it took.
pub(super) fn timed<T>(times: &Histogram, what: impl FnOnce() -> T) -> T {
    let begin = Instant::now();
    let done = what();
    times.observe(begin.elapsed().as_secs_f64());
    done
}
