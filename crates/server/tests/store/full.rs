//! No room on the disk: the writer is told, and what it did before is kept.

use crate::killed::{Said, arguments, spawn};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use stipend_server::store::{Store, StoreError};

/// Lets a child write until it cannot: what it did, and what it was told.
fn fill(mut command: Command, folder: &Path) -> (Said, String) {
    command.stderr(Stdio::piped());
    let mut child = spawn(command, folder);
    let mut said = Said::default();
    for line in BufReader::new(child.stdout.take().expect("a pipe")).lines() {
        said.hear(&line.expect("text"));
    }
    let output = child.wait_with_output().expect("it is gone");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.done > 3, "{told}");
    (said, told)
}

/// A file may not grow beyond a limit: each write past it fails.
#[test]
fn a_limit_on_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Command::new("sh");
    let child = std::env::current_exe().expect("this program");
    // In blocks of 512 bytes; whoever ignores the signal gets an error instead.
    command.args(["-c", "trap '' XFSZ; ulimit -f 3000; exec \"$0\" \"$@\""]).arg(child).args(arguments());
    let (said, told) = fill(command, folder.path());
    assert!(told.contains("Full {") || told.contains("Database {"), "{told}");
    said.check(folder.path());
}

/// A small file system of its own, where this may be mounted.
#[test]
fn a_full_file_system() {
    let folder = tempfile::tempdir().expect("a folder");
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=2m", "tmpfs"]).arg(folder.path()).output();
    if !mounted.is_ok_and(|output| output.status.success()) {
        return;
    }
    let filled = std::panic::catch_unwind(|| {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.args(arguments());
        let (said, told) = fill(command, folder.path());
        assert!(told.contains("Full {"), "{told}");
        // While there is no room, that is what is said; with some, it goes on.
        match Store::open(folder.path()) {
            Ok(_) | Err(StoreError::Full { .. } | StoreError::Folder { .. }) => {}
            Err(other) => panic!("{other:?}"),
        }
        let more = Command::new("mount").args(["-o", "remount,size=64m"]).arg(folder.path()).status().expect("mount");
        assert!(more.success());
        said.check(folder.path());
    });
    let _ = Command::new("umount").arg(folder.path()).status();
    filled.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
}
