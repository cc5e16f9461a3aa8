//! `stipend`: budget scheduling for shared GPU clusters, on the command line.
//!
//! Data goes to stdout, everything else to stderr. Exit codes: 0 done, 1 the thing asked about is not so, 2 the request was wrong.

mod commands;
mod cores;
mod failure;
mod interrupt;
mod moment;
mod names;
mod narrative;
mod output;
mod progress;
mod remote;
#[cfg(test)]
mod samples;
mod simulation;
mod table;

use clap::{CommandFactory, Parser};
use clap_complete::CompleteEnv;
use commands::{COMPLETIONS, Cli};
use std::process::ExitCode;

fn main() -> ExitCode {
    // A shell that completes a line asks in its own way, and gets nothing else.
    CompleteEnv::with_factory(Cli::command).var(COMPLETIONS).complete();
    // What clap refuses it prints itself, and exits with 2.
    match Cli::parse().run() {
        Ok(answer) => answer.into(),
        Err(failure) => failure.report(),
    }
}
