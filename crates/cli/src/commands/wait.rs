//! `stipend wait`.

use crate::failure::{Answer, Failure, Outcome};
use crate::names::{self, Id, word};
use crate::output::{self, Format};
use crate::remote::{Daemon, Remote};
use clap::Args;
use stipend_server::wire::workload::{State, Workload};

/// Wait until workloads have ended. Exits with 1 if one of them did not complete.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Wait {
    /// Which, such as w123
    #[arg(value_name = "ID", required = true, add = names::live())]
    ids: Vec<Id>,
    /// How to print what became of them; `json` is a list
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    format: Format,
    #[command(flatten)]
    remote: Remote,
}

const EXAMPLES: &str = "\
Examples:
  stipend wait w123 w124
  stipend wait $(stipend submit -b lab/nlp -- ./prepare.sh) && echo done";

impl Wait {
    pub(super) fn run(self) -> Outcome {
        let daemon = self.remote.daemon()?;
        let mut ended = Vec::new();
        for id in &self.ids {
            let workload = until_ended(&daemon, *id)?;
            if self.format == Format::Table {
                output::text(&outcome(&workload))?;
            }
            ended.push(workload);
        }
        if self.format == Format::Json {
            output::json(&ended)?;
        }
        let completed = ended.iter().all(|workload| workload.state == State::Completed);
        Ok(if completed { Answer::Yes } else { Answer::No })
    }
}

/// `w123 failed, exit code 3`
pub(super) fn outcome(workload: &Workload) -> String {
    let code = workload.exit_code.filter(|_| workload.state != State::Completed);
    let code = code.map_or(String::new(), |code| format!(", exit code {code}"));
    format!("{} {}{code}", Id(workload.id), word(workload.state).replace('_', " "))
}

/// The workload when it has ended. The daemon answers late or again, so nothing is asked in between.
fn until_ended(daemon: &Daemon, id: Id) -> Result<Workload, Failure> {
    loop {
        let workload = daemon.get::<Workload>(&format!("/v1/workloads/{}/wait", id.0))?;
        if workload.state.is_over() {
            return Ok(workload);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::workload;

    #[test]
    fn outcomes() {
        let ended = |state: State, exit_code: Option<i32>| outcome(&Workload { state, exit_code, ..workload(4) });
        assert_eq!(ended(State::Completed, Some(0)), "w4 completed");
        assert_eq!(ended(State::Failed, Some(3)), "w4 failed, exit code 3");
        assert_eq!(ended(State::TimedOut, None), "w4 timed out");
    }
}
