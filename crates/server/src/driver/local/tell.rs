//! What a workload tells of itself: `stipend checkpoint`, `stipend done`, `stipend input`, called inside of it.

use super::bell;
use super::folder::Folder;
use anyhow::{Context, bail};

/// The workload banked its progress now.
///
/// # Errors
/// It is not called inside a workload, or its supervisor does not listen any more.
pub fn checkpoint() -> anyhow::Result<()> {
    tell("checkpoint")
}

/// The workload is done: however it ends, and if it is being stopped, it is not to be run again.
///
/// # Errors
/// As [`checkpoint`].
pub fn done() -> anyhow::Result<()> {
    tell("done")
}

/// Somebody used the session now.
///
/// # Errors
/// As [`checkpoint`].
pub fn input() -> anyhow::Result<()> {
    tell("input")
}

fn tell(word: &str) -> anyhow::Result<()> {
    let Some(dir) = std::env::var_os("STIPEND_LEASE_DIR") else {
        bail!("this is for workloads: it works only inside one, where STIPEND_LEASE_DIR is set");
    };
    let control = Folder(dir.into()).control();
    bell::ring(&control, word).with_context(|| format!("the workload's supervisor does not listen at {}", control.display()))
}
