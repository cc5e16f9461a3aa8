//! When a workload may start that no start is promised to.

use serde::{Deserialize, Serialize};
use stipend_core::explain::Names;
use stipend_core::inquiry::FirstStart;

/// When a workload may start: a range, made of what like work waited to hold for eight in ten. It promises nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StartEstimate {
    /// One in ten starts earlier.
    pub from: String,
    /// The same in milliseconds.
    pub from_ms: i64,
    /// One in ten starts later.
    pub to: String,
    /// The same in milliseconds.
    pub to_ms: i64,
    /// How many waits of like work say so; of work that waits already, those that were as long.
    pub like: u32,
    /// How many estimates for work of its class can be judged by now.
    pub given: u32,
    /// How many of them held.
    pub held: u32,
}

impl StartEstimate {
    /// From what the scheduler says.
    pub fn new(start: &FirstStart, names: &dyn Names) -> StartEstimate {
        let FirstStart { from, to, like, record } = *start;
        StartEstimate {
            from: names.time(from),
            from_ms: from.0,
            to: names.time(to),
            to_ms: to.0,
            like,
            given: record.given,
            held: record.held,
        }
    }

    /// A sentence for people, with how much such sentences are worth.
    pub fn text(&self) -> String {
        let record = match self.given {
            0 => "none such could be judged yet".to_string(),
            given => format!("{} % of {given} such estimates held", u64::from(self.held) * 100 / u64::from(given)),
        };
        format!("it starts between {} and {}, as did eight in ten of {} like it; {record}", self.from, self.to, self.like)
    }
}
