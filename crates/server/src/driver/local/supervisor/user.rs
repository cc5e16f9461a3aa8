//! Members that run as another user than the daemon, which is root then.
//!
//! The supervisor starts itself once more; that process takes on the user with all groups, which the standard library cannot set, and
//! becomes the member's command.

use super::super::folder::{Folder, Order};
use super::member::{Which, own_environment, why_not};
use anyhow::Context;
use nix::unistd::{Uid, User, initgroups, setgid, setuid};
use std::ffi::CString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// In the environment of the process that becomes a member: which of its commands.
const ASKED: &str = "STIPEND_BECOME";

/// Of the daemon's own environment, what other users' workloads inherit, beside the search path.
const SHARED: [&str; 3] = ["LANG", "LC_ALL", "TZ"];

/// As a shell does when it cannot start a command.
const CANNOT_START: i32 = 127;

/// Another user to run as.
pub(super) struct Other(User);

/// Whom the members run as, if it is not the user of the daemon.
///
/// # Errors
/// There is no such user.
pub(super) fn of(order: &Order) -> io::Result<Option<Other>> {
    let Some(name) = order.program.run_as.as_ref().filter(|_| Uid::effective().is_root()) else { return Ok(None) };
    match User::from_name(name)? {
        Some(user) => Ok(Some(Other(user))),
        None => Err(io::Error::other(format!("there is no user {name}"))),
    }
}

/// Lets that user call the supervisor, and write checkpoints.
pub(super) fn prepare(order: &Order, folder: &Folder) -> io::Result<()> {
    // An unknown one is said when the members are started.
    let Ok(Some(Other(user))) = of(order) else { return Ok(()) };
    for path in [&folder.control(), &order.checkpoints] {
        std::os::unix::fs::chown(path, Some(user.uid.as_raw()), Some(user.gid.as_raw()))?;
    }
    Ok(())
}

impl Other {
    /// Starts this very program again, to become the member's command.
    pub(super) fn command(&self, which: Which) -> Command {
        let mut start = Command::new("/proc/self/exe");
        start.args(std::env::args_os().skip(1));
        let word = match which {
            Which::Restore => "restore",
            Which::Main => "main",
            Which::Checkpoint => "checkpoint",
        };
        let User { name, dir, shell, .. } = &self.0;
        // What the daemon's environment holds, tokens for instance, is not another user's.
        start.env_clear().envs(std::env::vars_os().filter(|(key, _)| SHARED.iter().any(|shared| key == shared)));
        start.env("USER", name).env("LOGNAME", name).env("HOME", dir).env("SHELL", shell);
        start.env(ASKED, word);
        start
    }
}

/// Whether this process is to become a member, and what of it.
pub(super) fn asked() -> Option<Which> {
    match std::env::var(ASKED).ok()?.as_str() {
        "restore" => Some(Which::Restore),
        "main" => Some(Which::Main),
        "checkpoint" => Some(Which::Checkpoint),
        _ => None,
    }
}

/// Becomes the user, then the command. Comes back only if that fails.
pub(super) fn become_member(dir: &Path, which: Which) -> anyhow::Result<()> {
    let order = Folder(dir.to_path_buf()).order()?;
    let Some(Other(user)) = of(&order)? else { anyhow::bail!("there is nobody to become") };
    initgroups(&CString::new(user.name.clone())?, user.gid).context("cannot take on the groups")?;
    setgid(user.gid).context("cannot take on the group")?;
    setuid(user.uid).context("cannot take on the user")?;
    if !order.program.workdir.is_empty() {
        // Once more, as the user: root may enter where the user may not.
        let entered = std::env::set_current_dir(&order.program.workdir);
        entered.with_context(|| format!("cannot enter the working directory {}", order.program.workdir))?;
    }
    let (program, arguments) = which.of(&order.program).split_first().context("there is no command")?;
    let error = Command::new(program).args(arguments).envs(own_environment(&order.program)).env_remove(ASKED).exec();
    eprintln!("stipend: {}", why_not(&order.program, which, &error));
    std::process::exit(CANNOT_START);
}
