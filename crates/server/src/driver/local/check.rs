//! Whether a program could be started on this machine, before it is queued: a submission that cannot run is refused with what is missing.

use crate::record::Program;
use nix::unistd::{Uid, User};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// What is missing, if something is.
pub(super) fn check(program: &Program) -> Result<(), String> {
    let workdir = Path::new(&program.workdir);
    if !workdir.is_absolute() {
        return Err(format!("workdir = \"{}\": expected an absolute path", program.workdir));
    }
    if !workdir.is_dir() {
        return Err(format!("workdir = \"{}\": there is no such folder on this machine", program.workdir));
    }
    if let Some(user) = program.run_as.as_ref().filter(|_| Uid::effective().is_root())
        && !matches!(User::from_name(user), Ok(Some(_)))
    {
        return Err(format!("there is no user {user} on this machine, and workloads run as whoever submitted them"));
    }
    let [command, ..] = &program.command[..] else { return Err("command: it is empty; give a program and its arguments".into()) };
    let path = program.env.get("PATH").cloned().or_else(|| std::env::var("PATH").ok()).unwrap_or_default();
    let found = found(command, workdir, &path);
    if let Some(file) = found.as_ref().filter(|file| !is_executable(file)) {
        return Err(format!("command: {} is not executable; chmod +x makes it so", file.display()));
    }
    if found.is_none() {
        let place = if command.contains('/') { String::new() } else { format!(", nor in PATH={path}") };
        return Err(format!("command: there is no program `{command}` in {}{place}", workdir.display()));
    }
    Ok(())
}

fn is_executable(file: &Path) -> bool {
    std::fs::metadata(file).is_ok_and(|about| about.permissions().mode() & 0o111 != 0)
}

/// Where a command is: by its path from the working directory, else in the folders of `PATH`.
fn found(command: &str, workdir: &Path, path: &str) -> Option<PathBuf> {
    if command.contains('/') {
        return Some(workdir.join(command)).filter(|file| file.is_file());
    }
    path.split(':').filter(|folder| !folder.is_empty()).map(|folder| workdir.join(folder).join(command)).find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(command: &str, workdir: &str) -> Program {
        Program { command: vec![command.into()], workdir: workdir.into(), ..Program::default() }
    }

    #[test]
    fn what_is_missing_is_named() {
        assert_eq!(check(&program("sh", "/")), Ok(()));
        assert_eq!(check(&program("/bin/sh", "/")), Ok(()));
        assert_eq!(check(&program("bin/sh", "/")), Ok(()));
        assert!(check(&program("no-such-program", "/")).unwrap_err().contains("there is no program `no-such-program` in /, nor in PATH="));
        assert!(check(&program("/etc/passwd", "/")).unwrap_err().contains("chmod +x"));
        assert!(check(&program("/no/such", "/")).unwrap_err().contains("there is no program `/no/such`"));
        assert!(check(&program("sh", "/no/such/folder")).unwrap_err().contains("there is no such folder"));
        assert!(check(&program("sh", "relative")).unwrap_err().contains("expected an absolute path"));
        assert!(check(&Program { workdir: "/".into(), ..Program::default() }).unwrap_err().contains("it is empty"));
    }
}
