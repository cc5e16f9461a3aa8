//! `stipend logs`.

use crate::failure::{Answer, Outcome};
use crate::names::{self, Id};
use crate::remote::{Daemon, Query, Remote};
use clap::Args;
use std::io::{self, Read, Write};

/// Print the output of a workload.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Logs {
    /// Which, such as w123
    #[arg(value_name = "ID", add = names::all())]
    id: Id,
    /// Go on as it writes more, until it has ended
    #[arg(long, short)]
    follow: bool,
    /// Which member of a gang, from 0
    #[arg(long, short, value_name = "RANK", default_value_t = 0)]
    member: u32,
    /// Which attempt, from 1 [default: the last]
    #[arg(long, value_name = "N")]
    attempt: Option<u32>,
    #[command(flatten)]
    remote: Remote,
}

const EXAMPLES: &str = "\
Examples:
  stipend logs w123
  stipend logs -f w123
  stipend logs w123 --member 3 --attempt 1";

impl Logs {
    pub(super) fn run(self) -> Outcome {
        let query =
            Query::default().with("member", Some(self.member)).with("attempt", self.attempt).with("follow", self.follow.then_some(true));
        print(&self.remote.daemon()?, self.id, &query, None)?;
        Ok(Answer::Yes)
    }
}

/// Hands the output on as it comes; with a prefix line by line, each behind it.
pub(super) fn print(daemon: &Daemon, id: Id, query: &Query, prefix: Option<&str>) -> Result<(), crate::failure::Failure> {
    let mut body = daemon.bytes(&query.of(&format!("/v1/workloads/{}/logs", id.0)))?;
    let mut some = [0; 16 << 10];
    let mut begun = Vec::new();
    loop {
        let count = match body.read(&mut some) {
            Ok(0) => return finish(&begun, prefix),
            Ok(count) => count,
            // It has not written for a while.
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted) => {
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        // Flushed each time: somebody may be watching.
        let mut out = io::stdout().lock();
        match prefix {
            None => out.write_all(&some[..count])?,
            Some(prefix) => lines(prefix, &mut begun, &some[..count], &mut out)?,
        }
        out.flush()?;
    }
}

/// A line is handed on when it is whole, or so long: others write, too.
const LINE_MAX: usize = 64 << 10;

/// Hands on whole lines behind a prefix; what is not whole yet stays in `begun`.
fn lines(prefix: &str, begun: &mut Vec<u8>, more: &[u8], out: &mut impl Write) -> io::Result<()> {
    for part in more.split_inclusive(|byte| *byte == b'\n') {
        begun.extend_from_slice(part);
        let is_whole = part.ends_with(b"\n");
        if is_whole || begun.len() > LINE_MAX {
            out.write_all(prefix.as_bytes())?;
            out.write_all(begun)?;
            out.write_all(if is_whole { b"" } else { b"\n" })?;
            begun.clear();
        }
    }
    Ok(())
}

/// The last line, which has no end.
fn finish(begun: &[u8], prefix: Option<&str>) -> Result<(), crate::failure::Failure> {
    if !begun.is_empty() {
        writeln!(io::stdout(), "{}{}", prefix.unwrap_or_default(), String::from_utf8_lossy(begun))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_whole_behind_their_prefix() {
        let (mut out, mut begun) = (Vec::new(), Vec::new());
        for some in ["one\ntw", "o", "\n\nthr"] {
            lines("[3] ", &mut begun, some.as_bytes(), &mut out).expect("memory");
        }
        assert_eq!((String::from_utf8_lossy(&out).as_ref(), begun.as_slice()), ("[3] one\n[3] two\n[3] \n", &b"thr"[..]));
        lines("[3] ", &mut begun, &[b'x'; LINE_MAX], &mut out).expect("memory");
        assert!(out.ends_with(b"xx\n") && begun.is_empty());
    }
}
