//! Workloads from files.
//!
//! Three forms of CSV are read, told apart by their header; the order of the columns is free and further columns are left aside.
//!
//! - *ours*: `submit_s`, `work_s` (seconds, up to three decimals), and `gpus`, or `members` and `gpus_per_member`; optionally `team`, `user`,
//!   `min_runtime_s` (0 is unallocated work), `time_limit_s`, `on_preempt` (`resume`, `restart`, `end`), `priority`, `fails` (0 or 1).
//! - *bench*: `submit_s`, `runtime_s`, `gpus`, `timelimit_s`, `min_runtime_s`, `user`, `team`, `status` (1 completes, anything else fails), `priority`.
//! - *Philly*: `timestamp` (`2017-10-09 07:01:55`, wall clock, taken as it is), `duration` in seconds, `num_gpus`, `cluster` (the team).
//!
//! Rows need not be in order; times count from the earliest row. Equal rows are different workloads. Work of 0 s is taken as 1 s. A row that
//! cannot be read is counted and the first few are kept with their lines, so that nothing is left out in silence.

mod columns;
mod number;
pub(crate) mod rules;

use columns::Columns;
use csv::{ByteRecord, ReaderBuilder};
use std::collections::{BTreeMap, HashMap};
use std::io::Read;
use stipend_core::spec::OnPreempt;

/// One workload of a trace as its file has it; 56 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Submission, ms after the trace's first.
    pub submit_ms: i64,
    /// Work in ms.
    pub work_ms: i64,
    /// Time limit in ms; 0 where the trace has none.
    pub limit_ms: i64,
    /// Contract in ms; negative where the trace has none.
    pub min_runtime_ms: i64,
    /// Members; 0 where the trace has only the sum of the GPUs.
    pub members: u32,
    /// GPUs of each member, or of all.
    pub gpus: u32,
    /// Index into [`Trace::teams`].
    pub team: u32,
    /// Index into [`Trace::users`].
    pub user: u32,
    /// Priority; 0 where the trace has none.
    pub priority: i16,
    /// What happens on preemption; `None` where the trace does not say.
    pub on_preempt: Option<OnPreempt>,
    /// Whether it fails at its end.
    pub fails: bool,
}

/// A row that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadRow {
    /// Its line in the file.
    pub line: u64,
    /// Why.
    pub reason: String,
}

/// A whole trace, by submission; rows of one instant as in the file.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// Its workloads.
    pub rows: Vec<Row>,
    /// The teams' names, in the order of their first rows.
    pub teams: Vec<String>,
    /// The users' names. A trace without users has one for each team, with the team's name.
    pub users: Vec<String>,
    /// How many rows cannot be used.
    pub bad_rows: u64,
    /// The first of them.
    pub bad_examples: Vec<BadRow>,
    /// Why readable rows were left out, and how many.
    pub left_out: Vec<String>,
}

/// So many unusable rows are kept as examples.
const EXAMPLES: usize = 5;

impl Trace {
    /// Reads a trace; an error is one of the header or of the medium, never of a single row.
    pub fn read(input: impl Read) -> Result<Trace, String> {
        let mut reader = ReaderBuilder::new().flexible(true).buffer_capacity(1 << 18).from_reader(input);
        let header = reader.byte_headers().map_err(|e| e.to_string())?.clone();
        let columns = Columns::detect(&header)?;
        // With lines that end in CR LF the reader's count is one behind: it stops between the two.
        let behind = u64::from(reader.position().line() == 1);
        let mut trace = Trace::default();
        let (mut teams, mut users) = (Labels::default(), Labels::default());
        let mut record = ByteRecord::new();
        loop {
            match reader.read_byte_record(&mut record) {
                Ok(false) => break,
                Ok(true) => match columns.row(&record, &mut teams, &mut users) {
                    Ok(row) => trace.rows.push(row),
                    Err(reason) => trace.bad(record.position().map_or(0, csv::Position::line) + behind, reason),
                },
                Err(error) => return Err(error.to_string()),
            }
        }
        trace.teams = teams.names;
        trace.users = if columns.has_users() { users.names } else { trace.teams.clone() };
        trace.settle();
        Ok(trace)
    }

    /// Counts an unusable row.
    pub(crate) fn bad(&mut self, line: u64, reason: String) {
        self.bad_rows += 1;
        if self.bad_examples.len() < EXAMPLES {
            self.bad_examples.push(BadRow { line, reason });
        }
    }

    /// Takes out the rows for which `why` has a reason; each reason is kept once, with how many rows it concerns.
    pub(crate) fn leave_out(&mut self, mut why: impl FnMut(&Row) -> Option<String>) {
        let mut reasons: BTreeMap<String, u64> = BTreeMap::new();
        self.rows.retain(|row| match why(row) {
            Some(reason) => {
                *reasons.entry(reason).or_default() += 1;
                false
            }
            None => true,
        });
        self.bad_rows += reasons.values().sum::<u64>();
        self.left_out.extend(reasons.into_iter().map(|(reason, rows)| format!("{rows} rows: {reason}")));
    }

    /// What could not be used, a line for each example and each reason; empty if all could.
    pub fn notes(&self) -> String {
        let examples = self.bad_examples.iter().map(|bad| format!("\n  line {}: {}", bad.line, bad.reason));
        examples.chain(self.left_out.iter().map(|reason| format!("\n  {reason}"))).collect()
    }

    /// GPU time of each team in ms, or 1 for each.
    pub(crate) fn usage_by_team(&self, equal: bool) -> Vec<u128> {
        let mut usage = vec![u128::from(equal); self.teams.len()];
        for row in self.rows.iter().filter(|_| !equal) {
            usage[row.team as usize] += u128::from(row.gpus) * u128::from(row.members.max(1)) * u128::from(row.work_ms.unsigned_abs());
        }
        usage
    }

    /// In order of submission, from the first.
    fn settle(&mut self) {
        if !self.rows.is_sorted_by_key(|row| row.submit_ms) {
            self.rows.sort_by_key(|row| row.submit_ms);
        }
        let first = self.rows.first().map_or(0, |row| row.submit_ms);
        self.rows.iter_mut().for_each(|row| row.submit_ms -= first);
    }
}

/// Names by number, in the order of their first appearance. Bytes that are no UTF-8 are shown as replacement characters, yet names that differ stay apart.
#[derive(Default)]
struct Labels {
    numbers: HashMap<Box<[u8]>, u32>,
    names: Vec<String>,
}

impl Labels {
    fn number(&mut self, name: &[u8]) -> u32 {
        if let Some(&number) = self.numbers.get(name) {
            return number;
        }
        let number = self.names.len() as u32;
        self.numbers.insert(name.into(), number);
        self.names.push(String::from_utf8_lossy(name).into_owned());
        number
    }
}

#[cfg(test)]
mod tests;
