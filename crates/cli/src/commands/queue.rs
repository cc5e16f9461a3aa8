//! `stipend queue`.

use super::submit::answer::gang_figures;
use crate::failure::{Answer, Failure, Outcome};
use crate::interrupt;
use crate::moment::{clock, now_ms, short};
use crate::names::{self, Id, word};
use crate::output::{self, Format};
use crate::remote::{Daemon, Query, Remote};
use crate::table::{Column, Table};
use clap::Args;
use std::io::{self, IsTerminal};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;
use stipend_server::wire::workload::{State, Workload};

/// List workloads: those that run, and those that wait.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Queue {
    /// Only this user's
    #[arg(long, short, value_name = "NAME")]
    user: Option<String>,
    /// Only this budget's, and those below it
    #[arg(long, short, value_name = "PATH", add = names::budgets())]
    budget: Option<String>,
    /// Only this pool's
    #[arg(long, value_name = "NAME", add = names::pools())]
    pool: Option<String>,
    /// Only in these states: held, waiting, starting, running, stopping, completed, failed, cancelled, timed_out
    #[arg(long, value_name = "STATE", value_delimiter = ',')]
    state: Vec<String>,
    /// Also those that have ended
    #[arg(long, short)]
    all: bool,
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 1000)]
    limit: usize,
    /// Again every two seconds, until Ctrl-C
    #[arg(long, short, conflicts_with = "format")]
    watch: bool,
    /// How to print them; `json` is a list
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    format: Format,
    #[command(flatten)]
    remote: Remote,
}

const EXAMPLES: &str = "\
Examples:
  stipend queue
  stipend queue --user ann --state waiting
  stipend queue --watch
  stipend queue --budget lab/nlp --all --format json

The contract: how long its protection still lasts, `past` where it is over and
somebody licensed may take the GPUs, `-` where there is none (unallocated); of
waiting work, what it will get. The time: in its present state. The reason: of
what does not run; `stipend explain` and `stipend show` say more.";

/// How often the queue is looked at.
const PAUSE: Duration = Duration::from_secs(2);

/// Back to the upper left corner, and all that is below goes.
const CLEAR: &str = "\u{1b}[H\u{1b}[J";

impl Queue {
    pub(super) fn run(self) -> Outcome {
        let daemon = self.remote.daemon()?;
        if self.watch {
            return self.watch(&daemon);
        }
        let workloads = self.look(&daemon)?;
        match self.format {
            Format::Table if workloads.is_empty() => output::note("no workloads"),
            Format::Table => {
                output::text(&table(&workloads, now_ms()).text(output::width()))?;
                self.notes(&workloads).iter().for_each(|note| output::note(note));
            }
            Format::Json => output::json(&workloads)?,
        }
        Ok(Answer::Yes)
    }

    fn look(&self, daemon: &Daemon) -> Result<Vec<Workload>, Failure> {
        let states = (!self.state.is_empty()).then(|| self.state.join(","));
        let query = Query::default()
            .with("user", self.user.as_deref())
            .with("budget", self.budget.as_deref())
            .with("pool", self.pool.as_deref())
            .with("state", states)
            .with("all", self.all.then_some(true))
            .with("explain", Some(true));
        daemon.list("/v1/workloads", &query, self.limit)
    }

    /// Drawn over and over in one place on a terminal; elsewhere one after the other.
    fn watch(&self, daemon: &Daemon) -> Outcome {
        let interrupts = interrupt::messages()?;
        let clear = if io::stdout().is_terminal() { CLEAR } else { "" };
        loop {
            let workloads = self.look(daemon)?;
            let notes = self.notes(&workloads).join("\n");
            let table = table(&workloads, now_ms()).text(output::width());
            output::text(&format!("{clear}{}  {notes}\n\n{table}\n", clock(now_ms(), now_ms())))?;
            match interrupts.recv_timeout(PAUSE) {
                Err(RecvTimeoutError::Timeout) => {}
                _ => return Ok(Answer::Yes),
            }
        }
    }

    /// What is said beside the table.
    fn notes(&self, workloads: &[Workload]) -> Vec<String> {
        let sums = if workloads.is_empty() { "no workloads".into() } else { sums(workloads) };
        let more = (workloads.len() == self.limit).then(|| format!("there may be more than {}: --limit", self.limit));
        std::iter::once(sums).chain(more).collect()
    }
}

/// Those that hold GPUs first, then those that wait, then those that have ended.
pub(in crate::commands) fn table(workloads: &[Workload], now_ms: i64) -> Table {
    let mut table = Table::new(&[
        ("id", Column::Figures),
        ("name", Column::Shrinks),
        ("user", Column::Words),
        ("budget", Column::Words),
        ("GPUs", Column::Figures),
        ("state", Column::Words),
        ("time", Column::Figures),
        ("contract", Column::Figures),
        ("why", Column::Below),
    ]);
    let mut sorted: Vec<&Workload> = workloads.iter().collect();
    sorted.sort_by_key(|workload| (order(workload.state), workload.id));
    for workload in sorted {
        table.row([
            Id(workload.id).to_string(),
            workload.name.clone(),
            workload.user.clone(),
            workload.budget.clone(),
            gang_figures(workload),
            word(workload.state),
            short(now_ms - since(workload)),
            contract(workload, now_ms),
            why(workload),
        ]);
    }
    table
}

/// Why it does not run. That it runs needs no reason in a list.
fn why(workload: &Workload) -> String {
    match workload.state {
        State::Starting | State::Running | State::Completed => String::new(),
        _ => workload.why.clone().unwrap_or_default(),
    }
}

fn order(state: State) -> u8 {
    match state {
        State::Stopping | State::Running | State::Starting => 0,
        State::Waiting => 1,
        State::Held => 2,
        State::Completed | State::Failed | State::Cancelled | State::TimedOut => 3,
    }
}

/// Since when it is in its present state, as far as that is known.
fn since(workload: &Workload) -> i64 {
    match order(workload.state) {
        0 => workload.started_ms.unwrap_or(workload.submitted_ms),
        3 => workload.ended_ms.unwrap_or(workload.submitted_ms),
        _ => workload.submitted_ms,
    }
}

/// What is left of its protection, or what it will get.
fn contract(workload: &Workload, now_ms: i64) -> String {
    let runs = order(workload.state) == 0;
    match workload.protected_until_ms {
        Some(until) if runs && until > now_ms => short(until - now_ms),
        Some(_) if runs => "past".into(),
        _ if workload.min_runtime_ms == 0 || (runs && !workload.allocated) => "-".into(),
        _ => short(workload.min_runtime_ms),
    }
}

/// `2 run on 8 GPUs, 1 waits for 4`
pub(in crate::commands) fn sums(workloads: &[Workload]) -> String {
    let of = |kind: u8| {
        let some = workloads.iter().filter(|workload| order(workload.state) == kind);
        some.fold((0, 0), |(count, gpus), workload| (count + 1, gpus + u64::from(workload.members) * u64::from(workload.gpus_per_member)))
    };
    let verb = |count: u64, one: &str, more: &str| format!("{count} {}", if count == 1 { one } else { more });
    let ((running, used), (waiting, asked), (held, _), (ended, _)) = (of(0), of(1), of(2), of(3));
    let parts = [
        (running, format!("{} on {used} GPUs", verb(running, "runs", "run"))),
        (waiting, format!("{} for {asked} GPUs", verb(waiting, "waits", "wait"))),
        (held, verb(held, "is held", "are held")),
        (ended, verb(ended, "has ended", "have ended")),
    ];
    parts.into_iter().filter(|(count, _)| *count > 0).map(|(_, text)| text).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{NOON, running, workload};

    #[test]
    fn a_queue_on_eighty_columns() {
        let past = Workload { protected_until_ms: Some(NOON - 1), ..running(9) };
        let idle = Workload { allocated: false, protected_until_ms: None, ..running(12) };
        let done = Workload { state: State::Completed, ended_ms: Some(NOON - 60_000), why: None, ..running(2) };
        let workloads = [done, workload(11), running(3), past, idle];
        let expected = " id  name   user  budget   GPUs  state      time  contract
──────────────────────────────────────────────────────────
 w3  train  ann   lab/nlp     4  running      5m       20m
 w9  train  ann   lab/nlp     4  running      5m      past
w12  train  ann   lab/nlp     4  running      5m         -
w11  train  ann   lab/nlp     4  waiting     10m         -
      all GPUs are held by work that is protected until 12:30
 w2  train  ann   lab/nlp     4  completed   60s       25m";
        assert_eq!(table(&workloads, NOON).text(Some(78)), expected);
        assert_eq!(sums(&workloads), "3 run on 12 GPUs, 1 waits for 4 GPUs, 1 has ended");
    }
}
