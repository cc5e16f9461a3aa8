//! One machine: real processes, each lease under a supervisor that outlives the daemon.
