//! The data folder: who has it, and which life of the store it last saw.

use super::error::StoreError;
use nix::fcntl::{Flock, FlockArg};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A daemon that was killed while it started a process may leave its lock to that for a moment.
const PATIENCE: Duration = Duration::from_secs(10);

/// A locked data folder.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    _lock: Flock<File>,
}

impl Folder {
    /// Makes the folder if need be, for its owner only, and takes its lock. The lock goes when the process does, however it does.
    pub(crate) fn lock(path: &Path) -> Result<Folder, StoreError> {
        let cannot = |path: &Path| {
            let path = path.to_owned();
            |source| StoreError::Folder { path, source }
        };
        fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(cannot(path))?;
        let name = path.join("lock");
        let mut options = OpenOptions::new();
        let mut file = options.read(true).write(true).create(true).truncate(false).mode(0o600).open(&name).map_err(cannot(&name))?;
        let end = Instant::now() + PATIENCE;
        let mut lock = loop {
            match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
                Ok(lock) => break lock,
                Err((unlocked, nix::Error::EWOULDBLOCK)) => {
                    let pid = fs::read_to_string(&name).ok().and_then(|text| text.trim().parse::<i32>().ok());
                    let is_alive = pid.is_none_or(|pid| Path::new(&format!("/proc/{pid}")).exists());
                    if is_alive || Instant::now() >= end {
                        return Err(StoreError::Locked { folder: path.to_owned(), pid });
                    }
                    file = unlocked;
                    std::thread::sleep(Duration::from_millis(10));
                }
                Err((_, error)) => return Err(cannot(&name)(error.into())),
            }
        };
        let written = lock.set_len(0).and_then(|()| writeln!(lock, "{}", std::process::id()));
        written.map_err(cannot(&name))?;
        Ok(Folder { path: path.to_owned(), _lock: lock })
    }

    /// The database's file in a data folder.
    pub(crate) fn database_in(path: &Path) -> PathBuf {
        path.join("stipend.db")
    }

    /// The database's file.
    pub(crate) fn database(&self) -> PathBuf {
        Folder::database_in(&self.path)
    }

    /// Makes what was renamed in it last.
    pub(crate) fn sync(path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }

    /// The numbers of the lives that the store may be in; none in a new folder, or in one that has lost the file.
    pub(crate) fn lives(&self) -> Vec<i64> {
        let text = fs::read_to_string(self.path.join("life")).unwrap_or_default();
        text.lines().filter_map(|line| i64::from_str_radix(line, 16).ok()).collect()
    }

    /// Writes them, whole or not at all.
    pub(crate) fn write_lives(&self, lives: &[i64]) -> Result<(), StoreError> {
        let text: String = lives.iter().map(|life| format!("{life:x}\n")).collect();
        let (name, next) = (self.path.join("life"), self.path.join("life.next"));
        let write = || -> io::Result<()> {
            let mut file = File::create(&next)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&next, &name)?;
            Folder::sync(&self.path)
        };
        write().map_err(|source| StoreError::Folder { path: name.clone(), source })
    }
}
