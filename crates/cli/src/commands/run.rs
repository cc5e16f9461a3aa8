//! `stipend run`.

use super::submit::request::Request;
use super::submit::{answer, queue};
use super::wait::outcome;
use super::{change, logs};
use crate::failure::{Answer, Failure, Outcome};
use crate::interrupt;
use crate::names::{Id, word};
use crate::output;
use crate::remote::{Daemon, Query, Remote};
use clap::Args;
use std::io::{self, BufRead, IsTerminal};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use stipend_server::wire::workload::{State, Workload};

/// Queue a workload, show its output, and exit with its exit code.
///
/// What happens to it goes to stderr: why it waits, where it starts, that it is preempted and waits again. Ctrl-C asks whether to cancel it;
/// where stdin is no terminal, it cancels.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Run {
    #[command(flatten)]
    request: Request,
    #[command(flatten)]
    remote: Remote,
}

const EXAMPLES: &str = "\
Examples:
  stipend run --budget lab/nlp --gpus 1 -- nvidia-smi
  stipend run -b lab/nlp --gpus 2 --min-runtime 10m -- python test.py

Exit codes: the workload's own: of the first member that failed; 128 and the
number of the signal that ended it, as 137 for SIGKILL (often: out of memory);
124 if it reached its time limit; 130 if you cancelled it; 1 if it has none
(somebody else cancelled it); 2 if it could not be queued.
Of a gang the output of all members is shown, each line behind its rank.";

/// The output of so many members is shown: a user has 32 streams.
const MEMBERS_MAX: u32 = 16;

/// How often the workload is looked at.
const PAUSE: Duration = Duration::from_millis(250);

/// Exit codes as shells and `timeout` have them.
const TIMED_OUT: u8 = 124;
const INTERRUPTED: u8 = 130;

impl Run {
    pub(super) fn run(self) -> Outcome {
        let read = self.request.read()?;
        if read.submission.array.is_some() {
            return Err(Failure::new("an array is many workloads, and run shows one").hint("queue it with stipend submit"));
        }
        read.notes.iter().for_each(|note| output::note(note));
        let daemon = self.remote.daemon()?;
        // Before it is queued: an interrupt must not leave it behind without a word.
        let interrupts = interrupt::messages()?;
        let submitted = queue(&daemon, read.submission, None)?;
        output::note(&answer::said(&submitted, output::note_width()));
        let workload = submitted.workloads.first().ok_or_else(|| Failure::new("the daemon queued nothing"))?;
        let (id, members) = (Id(workload.id), workload.members);
        if members > MEMBERS_MAX {
            output::note(&format!("the output of the first {MEMBERS_MAX} members is shown; of others: stipend logs {id} --member RANK"));
        }
        let shown = (0..members.min(MEMBERS_MAX)).map(|member| Ok(print(self.remote.daemon()?, id, member, members > 1)));
        let printers = shown.collect::<Result<Vec<JoinHandle<()>>, Failure>>()?;
        Watch { daemon, id, told: String::new(), cancelled: false }.run(&interrupts, printers)
    }
}

/// Shows a member's output as it comes, of all attempts. What cannot be shown is said; the workload goes on.
fn print(daemon: Daemon, id: Id, member: u32, is_gang: bool) -> JoinHandle<()> {
    thread::spawn(move || {
        let query = Query::default().with("follow", Some(true)).with("member", Some(member));
        let prefix = is_gang.then(|| format!("[{member}] "));
        if let Err(failure) = logs::print(&daemon, id, &query, prefix.as_deref()) {
            output::note(&failure.to_string());
        }
    })
}

/// Somebody who looks at one workload until it has ended.
struct Watch {
    daemon: Daemon,
    id: Id,
    /// What was said last, so that it is said once.
    told: String,
    cancelled: bool,
}

/// What somebody wants who pressed Ctrl-C.
enum Wish {
    Cancel,
    Leave,
    GoOn,
}

impl Watch {
    fn run(mut self, interrupts: &Receiver<()>, printers: Vec<JoinHandle<()>>) -> Outcome {
        loop {
            let workload = self.daemon.get::<Workload>(&format!("/v1/workloads/{}", self.id.0))?;
            self.look(&workload);
            if workload.state.is_over() {
                // All that it wrote, and then how it ended.
                printers.into_iter().for_each(|printer| drop(printer.join()));
                output::note(&outcome(&workload));
                return Ok(self.code(&workload));
            }
            match interrupts.recv_timeout(PAUSE) {
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => thread::sleep(PAUSE),
                Ok(()) => match self.ask(interrupts) {
                    Wish::GoOn => {}
                    Wish::Cancel => {
                        change::cancel(&self.daemon, self.id, Some("interrupted"))?;
                        self.cancelled = true;
                    }
                    Wish::Leave => {
                        output::note(&format!("{} goes on: stipend logs -f {}", self.id, self.id));
                        return Ok(Answer::Yes);
                    }
                },
            }
        }
    }

    /// Says what is new.
    fn look(&mut self, workload: &Workload) {
        let why = workload.why.as_ref().map_or(String::new(), |why| format!(": {why}"));
        let told = format!("{} is {}{why}", self.id, word(workload.state));
        if told != self.told && !workload.state.is_over() {
            output::note(&stipend_sim::harmless::harmless(&told));
            self.told = told;
        }
    }

    fn ask(&self, interrupts: &Receiver<()>) -> Wish {
        if self.cancelled {
            return Wish::Leave;
        }
        if !io::stdin().is_terminal() {
            return Wish::Cancel;
        }
        output::note(&format!("\ncancel {}? [y]es, [d]etach and let it go on, [n]o:", self.id));
        let (to, lines) = channel();
        thread::spawn(move || read_line(&to));
        loop {
            if interrupts.try_recv().is_ok() {
                return Wish::Cancel;
            }
            match lines.recv_timeout(PAUSE) {
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Wish::Cancel,
                Ok(line) => {
                    return match line.trim().chars().next() {
                        Some('y' | 'Y') => Wish::Cancel,
                        Some('d' | 'D') => Wish::Leave,
                        _ => Wish::GoOn,
                    };
                }
            }
        }
    }

    fn code(&self, workload: &Workload) -> Answer {
        match workload.state {
            State::Completed => Answer::Yes,
            State::TimedOut => Answer::Code(TIMED_OUT),
            State::Cancelled if self.cancelled => Answer::Code(INTERRUPTED),
            _ => {
                let code = workload.exit_code.and_then(|code| u8::try_from(code).ok()).filter(|code| *code != 0);
                Answer::Code(code.unwrap_or(1))
            }
        }
    }
}

/// One line of stdin, if there is one.
fn read_line(to: &Sender<String>) {
    let mut line = String::new();
    if io::stdin().lock().read_line(&mut line).is_ok_and(|count| count > 0) {
        // Nobody listens any more if Ctrl-C was the answer.
        let _ = to.send(line);
    }
}
