//! The program and its daemon as processes in a folder of their own.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The program, in a folder, with nothing of the caller's settings.
pub(crate) fn program(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stipend"));
    command.current_dir(folder).stdin(Stdio::null());
    for variable in ["STIPEND_TOKEN", "STIPEND_DATA", "STIPEND_SERVER"] {
        command.env_remove(variable);
    }
    command
}

/// The daemon, with the configuration and the data that are in a folder.
pub(crate) fn serve(folder: &Path) -> Command {
    let mut command = program(folder);
    command.args(["serve", "--listen", "none", "--config", "stipend.toml", "--data"]).arg(folder.join("data"));
    command
}

/// Starts it; what it says goes to `daemon.log` in the folder.
pub(crate) fn start(mut command: Command, folder: &Path) -> Child {
    let log = File::options().create(true).append(true).open(folder.join("daemon.log")).expect("there is room");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().expect("the program starts")
}
