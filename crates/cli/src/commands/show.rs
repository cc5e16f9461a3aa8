//! `stipend show`.

use super::submit::answer::gang;
use crate::failure::{Answer, Outcome};
use crate::moment::{clock, full, long, now_ms};
use crate::names::{self, Id, word};
use crate::output::{self, Format};
use crate::remote::Remote;
use crate::table::wrap;
use clap::Args;
use stipend_server::wire::workload::{Kind, State, Workload};

/// Show all that is known of a workload.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Show {
    /// Which, such as w123
    #[arg(value_name = "ID", add = names::all())]
    id: Id,
    /// How to print it; `json` is one object
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    format: Format,
    #[command(flatten)]
    remote: Remote,
}

const EXAMPLES: &str = "\
Examples:
  stipend show w123
  stipend show 123 --format json";

/// The width of the words at the left.
const MARGIN: usize = 10;

impl Show {
    pub(super) fn run(self) -> Outcome {
        let workload = self.remote.daemon()?.get::<Workload>(&format!("/v1/workloads/{}", self.id.0))?;
        output::data(self.format, &workload, || page(&workload, now_ms(), output::width()))?;
        Ok(Answer::Yes)
    }
}

fn page(workload: &Workload, now_ms: i64, width: Option<usize>) -> String {
    let lines = [
        ("workload", Some(format!("{}, {}", Id(workload.id), workload.name))),
        ("state", Some(state(workload))),
        ("why", workload.why.clone()),
        ("for", Some(format!("{}, submitted by {} at {}", workload.budget, workload.user, full(workload.submitted_ms)))),
        ("array", workload.array.map(|array| format!("index {} of the array {}", array.index, Id(array.array)))),
        ("asks for", Some(format!("{} in {}, priority {}", gang(workload), workload.pool, workload.priority))),
        ("contract", Some(contract(workload))),
        ("on", placement(workload)),
        ("guarded", guarded(workload, now_ms)),
        ("started", workload.started_ms.map(|at| started(workload, at))),
        ("ended", workload.ended_ms.map(full)),
    ];
    let said = lines.into_iter().filter_map(|(word, text)| Some(wrap(&format!("{word:MARGIN$}"), &" ".repeat(MARGIN), &text?, width)));
    said.collect::<Vec<_>>().join("\n")
}

fn state(workload: &Workload) -> String {
    let code = workload.exit_code.map_or(String::new(), |code| format!(", exit code {code}"));
    let kind = if workload.kind == Kind::Session { ", a session" } else { "" };
    format!("{}{code}{kind}", word(workload.state).replace('_', " "))
}

fn contract(workload: &Workload) -> String {
    let contract = match workload.min_runtime_ms {
        0 => "none: it is unallocated".to_owned(),
        length => format!("{} once all members run", long(length)),
    };
    let limit = workload.time_limit_ms.map_or(String::new(), |limit| format!("; at most {} over all attempts", long(limit)));
    format!("{contract}{limit}; on preemption: {}", word(workload.on_preempt))
}

fn placement(workload: &Workload) -> Option<String> {
    let nodes = workload.placement.iter().map(|(node, gpus)| {
        let gpus: Vec<String> = gpus.iter().map(u8::to_string).collect();
        format!("{node} (GPU {})", gpus.join(", "))
    });
    (!workload.placement.is_empty()).then(|| nodes.collect::<Vec<_>>().join(", "))
}

fn guarded(workload: &Workload, now_ms: i64) -> Option<String> {
    if !matches!(workload.state, State::Starting | State::Running | State::Stopping) {
        return None;
    }
    Some(match workload.protected_until_ms {
        Some(until) if until > now_ms => format!("until {}, for {} more", clock(until, now_ms), long(until - now_ms)),
        Some(until) => format!("no more, since {}: it goes on until somebody licensed takes its GPUs", clock(until, now_ms)),
        None if workload.allocated => "while it starts, and for its contract from when all members run".into(),
        None => "never: waiting allocated work may take its GPUs at any time".into(),
    })
}

fn started(workload: &Workload, at: i64) -> String {
    let preempted = match workload.preemptions {
        0 => String::new(),
        1 => ", preempted once".into(),
        times => format!(", preempted {times} times"),
    };
    let charged = if workload.allocated { "allocated" } else { "unallocated" };
    format!("{}, attempt {}, {charged}{preempted}", full(at), workload.attempts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{NOON, running, workload};
    use std::collections::BTreeMap;

    /// Without what depends on the time zone.
    fn lines(workload: &Workload, words: &[&str]) -> Vec<String> {
        let page = page(workload, NOON, Some(78));
        page.lines().filter(|line| words.iter().any(|word| line.starts_with(word))).map(str::to_owned).collect()
    }

    #[test]
    fn a_workload_that_runs() {
        let mut session = running(3);
        session.kind = Kind::Session;
        session.placement = BTreeMap::from([("gpu-1".into(), vec![0, 3]), ("gpu-2".into(), vec![1])]);
        let expected = [
            "workload  w3, train",
            "state     running, a session",
            "why       lab/nlp stands lowest",
            "asks for  4 GPUs in gpu, priority 0",
            "contract  25 min once all members run; on preemption: resume",
            "on        gpu-1 (GPU 0, 3), gpu-2 (GPU 1)",
        ];
        assert_eq!(lines(&session, &["workload", "state ", "why", "asks", "contract", "on "]), expected);
        assert!(lines(&session, &["guarded"])[0].ends_with(", for 20 min more"));
    }

    #[test]
    fn a_workload_that_has_ended() {
        let failed = Workload { state: State::TimedOut, exit_code: Some(3), time_limit_ms: Some(60_000), ..workload(4) };
        assert_eq!(lines(&failed, &["state", "guarded"]), ["state     timed out, exit code 3"]);
        assert_eq!(lines(&failed, &["contract"]), ["contract  none: it is unallocated; at most 1 min over all attempts; on"]);
    }
}
