//! A named pipe into which anybody may drop a word: hints between daemon, supervisors and workloads.
//!
//! A word may get lost (nobody listens, the pipe is full). So a word only ever says "look": what is to be known stands in a file.

use nix::sys::stat::Mode;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Makes the pipe, unless it is there, and listens: whoever has this reads words from it, without end.
pub(super) fn listen(path: &Path) -> io::Result<BufReader<File>> {
    match nix::unistd::mkfifo(path, Mode::S_IRUSR | Mode::S_IWUSR) {
        Ok(()) | Err(nix::errno::Errno::EEXIST) => {}
        Err(error) => return Err(error.into()),
    }
    // Open for writing, too: so a reader is there from now on, and never reads an end.
    Ok(BufReader::new(OpenOptions::new().read(true).write(true).open(path)?))
}

/// Calls `hear` for each word, until it returns false or the pipe breaks.
pub(super) fn each(mut from: BufReader<File>, mut hear: impl FnMut(&str) -> bool) {
    let mut line = Vec::new();
    loop {
        line.clear();
        match from.read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        if !hear(String::from_utf8_lossy(&line).trim()) {
            return;
        }
    }
}

/// Drops a word, without waiting.
///
/// # Errors
/// Nobody listens, or the pipe is full.
pub(super) fn ring(path: &Path, word: &str) -> io::Result<()> {
    let nonblock = nix::fcntl::OFlag::O_NONBLOCK.bits();
    let mut pipe = OpenOptions::new().write(true).custom_flags(nonblock).open(path)?;
    // So short a write is done whole or not at all.
    pipe.write_all(format!("{word}\n").as_bytes())
}
