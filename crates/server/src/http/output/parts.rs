//! The parts of one member's output: its beginning, what came before, and what is written now.
//!
//! The driver sets a file aside when it has grown to its bound: `member-0.log` becomes `member-0.first.log`, later `member-0.before.log`. Files
//! that are open are read to their end whatever they are called by then.

use axum::body::Bytes;
use nix::fcntl::OFlag;
use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Read at once.
const CHUNK: usize = 64 << 10;

/// Output that is being read.
pub(super) struct Parts {
    /// What is written now.
    path: PathBuf,
    /// Bytes yet to be passed over.
    skip: u64,
    /// In the order in which they were written.
    open: VecDeque<File>,
    begun: bool,
}

impl Parts {
    /// The output that is written to `path`, from this byte of what is kept on.
    pub(super) fn new(path: PathBuf, skip: u64) -> Parts {
        Parts { path, skip, open: VecDeque::new(), begun: false }
    }

    /// Whether any of it was found.
    pub(super) fn found(&self) -> bool {
        self.begun
    }

    /// Some more of it; empty where there is no more now.
    pub(super) fn read(&mut self) -> io::Result<Bytes> {
        if !self.begun {
            self.begin()?;
        }
        let mut chunk = vec![0; CHUNK];
        while let Some(part) = self.open.front_mut() {
            let count = part.read(&mut chunk)?;
            if count > 0 {
                chunk.truncate(count);
                return Ok(chunk.into());
            }
            if self.open.len() > 1 {
                self.open.pop_front();
            } else if !self.set_aside()? {
                break;
            }
            // What was written until it was set aside is read first.
        }
        Ok(Bytes::new())
    }

    fn begin(&mut self) -> io::Result<()> {
        let parts = [self.path.with_extension("first.log"), self.path.with_extension("before.log"), self.path.clone()];
        for part in parts {
            match open(&part) {
                Ok(file) => self.open.push_back(file),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        self.begun = !self.open.is_empty();
        for part in &mut self.open {
            let passed = self.skip.min(part.metadata()?.len());
            part.seek(SeekFrom::Start(passed))?;
            self.skip -= passed;
        }
        Ok(())
    }

    /// Whether the last open file was set aside, and another is written now.
    fn set_aside(&mut self) -> io::Result<bool> {
        let Some(last) = self.open.back() else { return Ok(false) };
        // Where it is gone, the attempt is over and its files were moved.
        let Ok(now) = fs::metadata(&self.path) else { return Ok(false) };
        if now.ino() == last.metadata()?.ino() {
            return Ok(false);
        }
        self.open.push_back(open(&self.path)?);
        Ok(true)
    }
}

/// Opens a file, and only a file: a workload that put a link or a pipe in its place does not make the daemon read or wait.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    let file = File::options().read(true).custom_flags(flags.bits()).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{} is not a file", path.display()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn all(parts: &mut Parts) -> String {
        let mut text = String::new();
        loop {
            let bytes = parts.read().unwrap();
            if bytes.is_empty() {
                return text;
            }
            text.push_str(std::str::from_utf8(&bytes).unwrap());
        }
    }

    #[test]
    fn nothing_is_lost_when_a_file_is_set_aside_while_it_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("member-0.log");
        let (first, before) = (path.with_extension("first.log"), path.with_extension("before.log"));
        let mut parts = Parts::new(path.clone(), 0);
        assert_eq!(all(&mut parts), "");
        let mut file = File::create(&path).unwrap();
        write!(file, "one ").unwrap();
        assert_eq!(all(&mut parts), "one ");
        write!(file, "two ").unwrap();
        fs::rename(&path, &first).unwrap();
        let mut file = File::create(&path).unwrap();
        write!(file, "three ").unwrap();
        assert_eq!(all(&mut parts), "two three ");
        fs::rename(&path, &before).unwrap();
        fs::write(&path, "four").unwrap();
        assert_eq!(all(&mut parts), "four");
        // Whoever comes now gets all that is kept, from wherever they like.
        assert_eq!(all(&mut Parts::new(path.clone(), 0)), "one two three four");
        assert_eq!(all(&mut Parts::new(path.clone(), 10)), "ree four");
        assert_eq!(all(&mut Parts::new(path, 1000)), "");
    }

    #[test]
    fn what_is_no_file_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("member-0.log");
        let secret = folder.path().join("secret");
        fs::write(&secret, "secret").unwrap();
        std::os::unix::fs::symlink(&secret, &path).unwrap();
        assert!(Parts::new(path.clone(), 0).read().is_err());
        fs::remove_file(&path).unwrap();
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(Parts::new(path, 0).read().is_err());
    }
}
