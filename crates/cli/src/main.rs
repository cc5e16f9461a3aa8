//! `stipend`: budget scheduling for shared GPU clusters, on the command line.
//!
//! Data goes to stdout, everything else to stderr. Exit codes: 0 done, 1 the thing asked about is not so, 2 the request was wrong.

mod commands;
mod cores;
mod failure;
mod moment;
mod output;
mod progress;
mod names;
mod remote;
#[cfg(test)]
mod samples;
mod simulation;
mod table;

use clap::Parser;
use commands::Cli;
use std::process::ExitCode;

fn main() -> ExitCode {
    // What clap refuses it prints itself, and exits with 2.
    match Cli::parse().run() {
        Ok(answer) => answer.into(),
        Err(failure) => failure.report(),
    }
}
