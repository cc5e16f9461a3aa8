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
        print(&self.remote.daemon()?, self.id, &query)?;
        Ok(Answer::Yes)
    }
}

/// Hands the output on as it comes.
pub(super) fn print(daemon: &Daemon, id: Id, query: &Query) -> Result<(), crate::failure::Failure> {
    let mut body = daemon.bytes(&query.of(&format!("/v1/workloads/{}/logs", id.0)))?;
    let mut out = io::stdout().lock();
    let mut some = [0; 16 << 10];
    loop {
        let count = match body.read(&mut some) {
            Ok(0) => return Ok(()),
            Ok(count) => count,
            // It has not written for a while.
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted) => {
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        // Flushed each time: somebody may be watching.
        out.write_all(&some[..count])?;
        out.flush()?;
    }
}
