//! Output of a member, with a bound: the beginning is kept, and the end; what is between them may go.
//!
//! `member-N.log` is what is written now. When it has grown to a third of the bound it is set aside: the first time as
//! `member-N.first.log`, which stays, and each time after as `member-N.before.log`, over the one before.

use std::fs::{self, File, OpenOptions};
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel};

/// Keeps what is written into the pipe, until nobody holds it any more; then the receiver hangs up.
pub(super) fn keep(path: PathBuf, bytes_max: u64) -> io::Result<(PipeWriter, Receiver<()>)> {
    let (from, into) = io::pipe()?;
    let log = Log { file: open(&path)?, path, written: 0, part_max: (bytes_max / 3).max(1), let_go: 0, lost: 0 };
    let (copying, copied) = channel();
    std::thread::Builder::new().name("output".into()).spawn(move || {
        copy(from, log);
        drop(copying);
    })?;
    Ok((into, copied))
}

struct Log {
    path: PathBuf,
    file: File,
    /// Bytes in `file`.
    written: u64,
    part_max: u64,
    /// Bytes of parts that were written over.
    let_go: u64,
    /// Bytes that could not be written.
    lost: u64,
}

fn open(path: &PathBuf) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}

/// Reads on whatever happens to the log: the workload must never wait for it.
fn copy(mut from: PipeReader, mut log: Log) {
    let mut bytes = vec![0; 64 << 10];
    loop {
        match from.read(&mut bytes) {
            Ok(0) => return,
            Ok(count) => log.write(&bytes[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

impl Log {
    fn write(&mut self, bytes: &[u8]) {
        if self.written >= self.part_max {
            // If that fails (a full disk), the log grows on rather than stop.
            let _ = self.set_aside();
        }
        if self.lost > 0 && writeln!(self.file, "stipend: {} bytes of output could not be written", self.lost).is_ok() {
            self.lost = 0;
        }
        match self.file.write_all(bytes) {
            Ok(()) => self.written += bytes.len() as u64,
            Err(_) => self.lost += bytes.len() as u64,
        }
    }

    fn set_aside(&mut self) -> io::Result<()> {
        let (first, before) = (self.path.with_extension("first.log"), self.path.with_extension("before.log"));
        if first.exists() {
            self.let_go += fs::metadata(&before).map_or(0, |before| before.len());
            fs::rename(&self.path, &before)?;
        } else {
            fs::rename(&self.path, &first)?;
        }
        self.file = open(&self.path)?;
        self.written = 0;
        let name = |path: &PathBuf| path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        writeln!(
            self.file,
            "stipend: so much output is not kept in one file: the beginning is in {}, what came before this in {}, {} bytes between them are gone",
            name(&first),
            name(if before.exists() { &before } else { &first }),
            self.let_go
        )
    }
}
