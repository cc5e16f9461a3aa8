//! What every reader pushes its rows into: names become numbers, what cannot be used is counted, and memory stays in proportion.

use super::outcome::Outcome;
use super::stems::Stems;
use super::{BadRow, Counted, Row, Trace};
use crate::harmless::harmless;
use serde::Deserialize;
use std::collections::HashMap;

/// So many unusable rows are kept as examples.
const EXAMPLES: usize = 5;

/// So much of what a file says about itself is kept.
const ABOUT: usize = 8;

/// More rows than this are refused: a compressed file can hold a thousand times its size.
const ROWS_MAX: usize = 20_000_000;

/// A name is at most so many bytes long.
const NAME_MAX: usize = 256;

/// All names together are at most so long.
const NAMES_MAX: usize = 256 << 20;

/// What the scenario says about reading a file that the file does not say itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// How many of a file's processors stand for one GPU, for forms that count processors; at least 1.
    pub procs_per_gpu: u32,
    /// What makes the teams of a Slurm log; of several, a team is their names with `/` between them.
    pub team_from: Vec<TeamFrom>,
    /// Whether jobs without GPUs are kept, for a pool that is counted in CPUs.
    pub cpu_jobs: bool,
    /// Whether jobs of a Slurm log that say neither GPUs nor CPUs are kept, as of one CPU each.
    pub sizeless_jobs: bool,
    /// The columns of a log of `sacct` without a header, by the names that `sacct` has for them, separated by commas.
    pub columns: Option<String>,
}

/// What makes the teams of a Slurm log.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum TeamFrom {
    /// Accounts; partitions in a log without accounts.
    #[default]
    Account,
    /// Users.
    User,
    /// Partitions.
    Partition,
    /// Qualities of service.
    Qos,
}

impl Default for Reading {
    fn default() -> Reading {
        Reading { procs_per_gpu: 1, team_from: vec![TeamFrom::Account], cpu_jobs: false, sizeless_jobs: false, columns: None }
    }
}

/// A trace while it is read.
///
/// A reader makes a [`Row`] of each record, with [`Builder::team`] and its siblings for the names, and pushes it. What is no workload it
/// [skips](Builder::skip) with a reason; what it cannot read is [bad](Builder::bad). Where a rule had to decide (a part of a GPU, …), it
/// [says so](Builder::ruled).
pub(crate) struct Builder {
    pub(crate) reading: Reading,
    trace: Trace,
    teams: Labels,
    users: Labels,
    stems: Stems,
    pools: HashMap<Box<[u8]>, u32>,
    names: usize,
    has_users: bool,
    /// The latest moment of the file, ms as in its rows.
    latest: i64,
    /// What some rows say that still ran when the file was written.
    some_run: bool,
    /// Whether the reader itself counted how long what still runs has run.
    counts_runs: bool,
    /// The first row's arrival, from which all times are counted while the file is read; most files are in order.
    base: i64,
    /// Whether the rows pushed so far are in order of arrival.
    sorted: bool,
    last_arrival: i64,
}

impl Builder {
    /// An empty trace of the form `form`, such as `Philly CSV`.
    pub(crate) fn new(form: &'static str, reading: Reading) -> Builder {
        // The first list of pools is the empty one: any pool.
        let trace = Trace { form, pools: vec![Vec::new()], ..Trace::default() };
        let (teams, users, pools) = (Labels::default(), Labels::default(), HashMap::new());
        Builder {
            reading,
            trace,
            teams,
            users,
            stems: Stems::default(),
            pools,
            names: 0,
            has_users: false,
            latest: i64::MIN,
            some_run: false,
            counts_runs: false,
            base: 0,
            sorted: true,
            last_arrival: i64::MIN,
        }
    }

    /// Names the form more precisely than its first bytes could.
    pub(crate) fn called(&mut self, form: &'static str) {
        self.trace.form = form;
    }

    /// Each team is made of the columns that [`Reading::team_from`] names.
    pub(crate) fn teams_by_column(&mut self) {
        self.trace.teams_by_column = true;
    }

    /// What 0 ms in the rows is in ms since 1970, where the file's times are such; without it they are of no known date.
    pub(crate) fn epoch_ms(&mut self, since_1970: i64) {
        self.trace.epoch_ms = Some(since_1970);
    }

    /// Something that the file says about itself and a reader should see, such as its computer and installation.
    pub(crate) fn about(&mut self, text: String) {
        if self.trace.about.len() < ABOUT {
            self.trace.about.push(harmless(&text));
        }
    }

    /// The number of a team (an account).
    pub(crate) fn team(&mut self, name: &[u8]) -> Result<u32, String> {
        number(&mut self.teams, &mut self.names, name)
    }

    /// The number of a user. A reader calls it for every row; or for none, and the trace has one user for each team.
    pub(crate) fn user(&mut self, name: &[u8]) -> Result<u32, String> {
        self.has_users = true;
        number(&mut self.users, &mut self.names, name)
    }

    /// The number of what a name or command has in common with its siblings; 0 of none.
    pub(crate) fn name(&mut self, name: &[u8]) -> u32 {
        self.stems.number(name)
    }

    /// The number of a name whose digits are all that tells it from others.
    pub(crate) fn exact_name(&mut self, name: &str) -> u32 {
        self.stems.exact(name)
    }

    /// How long what still runs has run is in its row already: no more than the file and its limit say.
    pub(crate) fn counts_runs(&mut self) {
        self.counts_runs = true;
    }

    /// What is counted as GPUs are processors.
    pub(crate) fn counts_processors(&mut self) {
        self.trace.counts_processors = true;
    }

    /// The number of a list of pools (GPU models, partitions) that a row accepts, in its order of preference; the empty list is any.
    pub(crate) fn pools(&mut self, list: &[u8], separator: u8) -> Result<u32, String> {
        if list.is_empty() {
            return Ok(0);
        }
        if let Some(&number) = self.pools.get(list) {
            return Ok(number);
        }
        room(&mut self.names, list)?;
        let mut names: Vec<String> = Vec::new();
        for part in list.split(|&byte| byte == separator).map(<[u8]>::trim_ascii).filter(|part| !part.is_empty()) {
            let name = harmless(&String::from_utf8_lossy(part));
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let number = self.trace.pools.iter().position(|known| *known == names).unwrap_or_else(|| {
            self.trace.pools.push(names);
            self.trace.pools.len() - 1
        });
        self.pools.insert(list.into(), number as u32);
        Ok(number as u32)
    }

    /// Adds a workload.
    ///
    /// # Errors
    /// There are too many rows; the reader gives up with this message.
    pub(crate) fn push(&mut self, row: Row) -> Result<(), String> {
        if self.trace.rows.len() == ROWS_MAX {
            return Err(format!("more than {ROWS_MAX} rows: cut the file into parts"));
        }
        self.latest = self.latest.max(row.end_ms.or(row.start_ms).unwrap_or(row.submit_ms));
        self.some_run |= row.outcome == Outcome::Running;
        let arrival = row.arrival_ms();
        if self.trace.rows.is_empty() {
            self.base = arrival;
        }
        self.sorted &= self.last_arrival <= arrival;
        self.last_arrival = arrival;
        let user = if self.has_users { row.user } else { row.team };
        self.trace.rows.push(Row { user, ..row.shifted(self.base) });
        Ok(())
    }

    /// A moment of the file that is none of a row's, such as when it was written: what still ran then ran at least until then.
    pub(crate) fn saw_ms(&mut self, at: i64) {
        self.latest = self.latest.max(at);
    }

    /// A row that cannot be read.
    pub(crate) fn bad(&mut self, line: u64, reason: String) {
        self.trace.bad_rows += 1;
        if self.trace.bad_examples.len() < EXAMPLES {
            self.trace.bad_examples.push(BadRow { line, reason: harmless(&reason) });
        }
    }

    /// A row that was read and is no workload of its own, such as a step of a job.
    pub(crate) fn skip(&mut self, line: u64, reason: &'static str) {
        count(&mut self.trace.skipped, line, reason);
    }

    /// Whether a job without GPUs that has so many CPUs is kept; if not, it is skipped.
    pub(crate) fn takes_cpu_job(&mut self, line: u64, cpus: u32) -> bool {
        match (self.reading.cpu_jobs, cpus) {
            (true, 1..) => return true,
            (true, 0) => self.skip(line, "jobs without a GPU that do not say how many CPUs they had"),
            (false, _) => self.skip(line, "jobs without a GPU: a scenario with a pool of CPUs takes them"),
        }
        false
    }

    /// A row of which a part was settled by a rule, such as a fraction of a GPU.
    pub(crate) fn ruled(&mut self, line: u64, rule: &'static str) {
        count(&mut self.trace.ruled, line, rule);
    }

    /// The trace, in order of arrival, its times counted from the first.
    pub(crate) fn finish(self) -> Trace {
        let Builder { mut trace, teams, users, stems, latest, has_users, some_run, counts_runs, base, sorted, .. } = self;
        trace.teams = teams.names;
        trace.names = stems.finish();
        trace.names_users = has_users;
        trace.users = if has_users { users.names } else { trace.teams.clone() };
        if some_run {
            let latest = latest.saturating_sub(base);
            trace.rows.iter_mut().filter(|row| row.outcome == Outcome::Running).for_each(|row| still_running(row, latest, counts_runs));
        }
        // Without a row nothing has a date.
        trace.epoch_ms = trace.epoch_ms.filter(|_| !trace.rows.is_empty()).map(|epoch| epoch.saturating_add(base));
        if !sorted {
            trace.settle();
        }
        trace
    }
}

/// What ran at the end of the file ran at least until then; what was seen to end earlier ended, nobody knows how.
fn still_running(row: &mut Row, latest: i64, counts_runs: bool) {
    // Of several attempts the reader has put the run times together; the time between them is none of it.
    if row.attempts > 1 {
        row.end_ms = None;
        return;
    }
    if row.end_ms.is_some_and(|end| end < latest) {
        row.outcome = Outcome::Unknown;
        return;
    }
    row.end_ms = None;
    if counts_runs {
        return;
    }
    let began = row.start_ms.unwrap_or_else(|| row.arrival_ms());
    row.work_ms = row.work_ms.max(latest.saturating_sub(began)).max(1000);
}

/// Counts a reason; there are few, each a text of the program.
fn count(counted: &mut Vec<Counted>, line: u64, reason: &'static str) {
    match counted.iter_mut().find(|known| known.reason == reason) {
        Some(known) => known.rows += 1,
        None => counted.push(Counted { reason, rows: 1, first_line: line }),
    }
}

fn number(labels: &mut Labels, names: &mut usize, name: &[u8]) -> Result<u32, String> {
    let slot = slot(name);
    let recent = labels.recent[slot];
    if labels.keys.get(recent as usize).is_some_and(|known| **known == *name) {
        return Ok(recent);
    }
    let number = match labels.numbers.get(name) {
        Some(&number) => number,
        None => {
            room(names, name)?;
            labels.add(name)
        }
    };
    labels.recent[slot] = number;
    Ok(number)
}

/// Where the number of a name that was lately asked for may be remembered: a mix of its length and its last bytes.
fn slot(name: &[u8]) -> usize {
    let last = name.iter().rev().take(6).fold(name.len(), |mixed, &byte| mixed.rotate_left(5) ^ usize::from(byte));
    (last ^ (last >> 8) ^ (last >> 16)) & 0xff
}

/// Whether there is room for one more name.
fn room(names: &mut usize, name: &[u8]) -> Result<(), String> {
    if name.len() > NAME_MAX {
        let begin = String::from_utf8_lossy(&name[..32]);
        return Err(format!("the name `{begin}…` has {} bytes; {NAME_MAX} are possible", name.len()));
    }
    *names += name.len() + 64;
    if *names > NAMES_MAX { Err("there is no room for further names".into()) } else { Ok(()) }
}

/// Names by number, in the order of their first appearance. Bytes that are no UTF-8 are shown as replacement characters, yet names that differ stay apart.
struct Labels {
    numbers: HashMap<Box<[u8]>, u32>,
    keys: Vec<Box<[u8]>>,
    names: Vec<String>,
    /// The numbers lately asked for: most rows name one of a few.
    recent: Box<[u32; 256]>,
}

impl Default for Labels {
    fn default() -> Labels {
        Labels { numbers: HashMap::new(), keys: Vec::new(), names: Vec::new(), recent: Box::new([u32::MAX; 256]) }
    }
}

impl Labels {
    fn add(&mut self, name: &[u8]) -> u32 {
        let number = self.names.len() as u32;
        self.numbers.insert(name.into(), number);
        self.keys.push(name.into());
        self.names.push(harmless(&String::from_utf8_lossy(name)));
        number
    }
}
