//! What can go wrong with the store, said so that somebody can act on it.

use rusqlite::ErrorCode;
use std::io;
use std::path::{Path, PathBuf};

/// Why the store cannot be opened, read or written. After a failed opening it is as it was before.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Somebody else has it open.
    #[error("the data folder {} is in use by another daemon{}", folder.display(), process(*pid))]
    Locked { folder: PathBuf, pid: Option<i32> },
    /// The folder cannot be made, read or written.
    #[error("cannot use {}", path.display())]
    Folder { path: PathBuf, source: io::Error },
    /// A file is not what it should be.
    #[error("{} is damaged: {what}", path.display())]
    Damaged { path: PathBuf, what: String },
    /// It is in order, but of something else.
    #[error("{} is not a store of this program: {what}", path.display())]
    Foreign { path: PathBuf, what: String },
    /// A newer program made it.
    #[error("{} has schema {found}, and this program ({}) knows schemas up to {known}", path.display(), env!("CARGO_PKG_VERSION"))]
    Newer { path: PathBuf, found: i64, known: i64 },
    /// Another program was killed before it could write its state down, and only that program can replay its steps.
    #[error("{} ends with {steps} steps of {program}, which only that program can replay", path.display())]
    OtherCore { path: PathBuf, program: String, steps: u64 },
    /// No room.
    #[error("no room to write {}", path.display())]
    Full { path: PathBuf, source: rusqlite::Error },
    /// A write failed before; what is on disk is no longer known, so nothing more is written.
    #[error("{} failed to take a write before, and takes no more until it is opened again", path.display())]
    Stopped { path: PathBuf },
    /// Anything else that SQLite says.
    #[error("cannot read or write {}", path.display())]
    Database { path: PathBuf, source: rusqlite::Error },
}

/// The data folder of a store; `None` of a file that lies elsewhere or has another name, such as a backup.
fn data_folder(path: &Path) -> Option<&Path> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty())?;
    path.ends_with("stipend.db").then_some(folder)
}

fn process(pid: Option<i32>) -> String {
    pid.map_or_else(String::new, |pid| format!(" (process {pid})"))
}

impl StoreError {
    /// What to do next.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            StoreError::Locked { .. } => "stop that daemon, or give this one another folder with --data".into(),
            StoreError::Folder { .. } => "the daemon needs a folder that it may write to".into(),
            StoreError::Damaged { path, .. } => match data_folder(path) {
                Some(folder) => {
                    let folder = folder.display();
                    format!(
                        "nothing was changed; `stipend store restore BACKUP --data {folder}` puts a backup in its place and keeps this one"
                    )
                }
                None => "nothing was changed; this copy is of no use, take another backup".into(),
            },
            StoreError::Foreign { .. } => "nothing was changed; give the daemon a folder of its own with --data".into(),
            StoreError::Newer { .. } => "nothing was changed; use the newer program, or a backup that this one made".into(),
            StoreError::OtherCore { program, .. } => {
                format!("nothing was changed; start and stop {program} once, which writes its state down for others, then start this one")
            }
            StoreError::Full { .. } => "make room, then start the daemon again; all that was answered is kept".into(),
            StoreError::Stopped { .. } | StoreError::Database { .. } => return None,
        };
        Some(hint)
    }
}

/// What went wrong inside, before it is said of which file.
#[derive(Debug)]
pub(crate) enum Fault {
    Sql(rusqlite::Error),
    Damaged(String),
    Foreign(String),
    Newer {
        found: i64,
        known: i64,
    },
    OtherCore {
        program: String,
        steps: u64,
    },
    /// It is said already.
    Told(StoreError),
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Fault {
        Fault::Sql(error)
    }
}

impl Fault {
    /// The error, of this file.
    pub(crate) fn of(self, path: &Path) -> StoreError {
        let path = path.to_owned();
        match self {
            Fault::Told(error) => error,
            Fault::Damaged(what) => StoreError::Damaged { path, what },
            Fault::Foreign(what) => StoreError::Foreign { path, what },
            Fault::Newer { found, known } => StoreError::Newer { path, found, known },
            Fault::OtherCore { program, steps } => StoreError::OtherCore { path, program, steps },
            Fault::Sql(source) => match source.sqlite_error_code() {
                Some(ErrorCode::DiskFull) => StoreError::Full { path, source },
                Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => StoreError::Damaged { path, what: source.to_string() },
                _ => StoreError::Database { path, source },
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_names_the_folder_of_a_store_and_none_of_a_backup() {
        let hint = |path: &str| StoreError::Damaged { path: path.into(), what: "cut".into() }.hint().expect("there is one");
        assert!(hint("/data/stipend.db").contains("--data /data`"));
        assert!(
            !hint("backup.db").contains("--data") && !hint("/tmp/x/backup.db").contains("--data") && !hint("stipend.db").contains("--data")
        );
    }
}
