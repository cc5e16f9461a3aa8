//! The status of a lease: one JSON line for each thing that happened to it, appended by its supervisor, read by the daemon.
//!
//! It is the only truth about a lease. Whoever missed a hint, or was not there, reads it again.

use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};
use stipend_core::event::Exit;
use stipend_core::quantity::Time;

/// One line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Line {
    /// When: milliseconds since 1970.
    pub at: i64,
    /// What.
    #[serde(flatten)]
    pub what: What,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(super) enum What {
    /// The supervisor has the lock and is about to start members. After this line no other supervisor ever starts any.
    Begin { epoch: u64, boot: String, pid: i32, start: u64 },
    /// A process group of a member: its first process, and when that started, in ticks since the boot.
    Group { member: u32, pid: i32, start: u64 },
    /// A member runs.
    MemberRunning { member: u32, node: String },
    /// All members run.
    Running,
    /// The workload banked its progress.
    Checkpoint,
    /// Somebody used the session.
    Input,
    /// The workload said that it is done.
    Done,
    /// It is being stopped; every process is killed at `deadline`, in milliseconds since 1970.
    Stopping { deadline: i64 },
    /// No process of it is left.
    Ended { exit: Exit, code: Option<i32>, signal: Option<i32> },
}

/// The time now.
pub(super) fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
    Time(i64::try_from(since).unwrap_or(i64::MAX))
}

/// Appends lines.
pub(super) struct Writer {
    file: File,
    /// A line may have been written in part (a full disk): the next one starts afresh.
    torn: bool,
}

impl Writer {
    pub(super) fn open(path: &Path) -> io::Result<Writer> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        // The one before may have died in the middle of a line.
        let torn = file.metadata()?.len() > 0;
        Ok(Writer { file, torn })
    }

    /// Appends one line.
    pub(super) fn write(&mut self, at: Time, what: What) -> io::Result<()> {
        let mut bytes = if self.torn { vec![b'\n'] } else { Vec::new() };
        serde_json::to_writer(&mut bytes, &Line { at: at.0, what })?;
        bytes.push(b'\n');
        self.torn = true;
        self.file.write_all(&bytes)?;
        self.torn = false;
        Ok(())
    }

    /// Returns when all lines are on disk.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

/// The lines from `offset` on, which moves behind them. A line that is not whole yet is left for the next time.
pub(super) fn read(path: &Path, offset: &mut u64) -> io::Result<Vec<Line>> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    file.seek(SeekFrom::Start(*offset))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let whole = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    *offset += whole as u64;
    // What a full disk tore is no line; whatever it would have said was written again.
    let lines = bytes[..whole].split(|&byte| byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
    Ok(lines.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_line_hides_no_other() {
        let folder = std::env::temp_dir().join(format!("stipend-status-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("status");
        let _ = std::fs::remove_file(&path);
        Writer::open(&path).expect("a file").write(Time(1), What::Running).expect("written");
        OpenOptions::new().append(true).open(&path).expect("a file").write_all(b"{\"at\":2,\"ev").expect("written");
        let mut offset = 0;
        assert_eq!(read(&path, &mut offset).expect("read"), [Line { at: 1, what: What::Running }]);
        assert_eq!(read(&path, &mut offset).expect("read"), []);
        let end = What::Ended { exit: Exit::Failed, code: Some(3), signal: None };
        Writer::open(&path).expect("a file").write(Time(3), end.clone()).expect("written");
        assert_eq!(read(&path, &mut offset).expect("read"), [Line { at: 3, what: end }]);
        std::fs::remove_dir_all(&folder).expect("removed");
    }
}
