//! What `submit` and `run` are told about a workload: flags, over a file, over nothing.

use super::file;
use crate::failure::Failure;
use crate::moment::Length;
use crate::names::{self, Id};
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use stipend_server::wire::length::Length as WireLength;
use stipend_server::wire::workload::{Kind, OnPreempt, Start, Submission};

/// A workload, as flags say it.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Request {
    /// The leaf budget that pays, such as lab/nlp/olmo
    #[arg(long, short, value_name = "PATH", add = names::leaves())]
    pub(crate) budget: Option<String>,
    /// GPUs of each member [default: 1]
    #[arg(long, short, value_name = "N")]
    gpus: Option<u32>,
    /// Members, each on one node; all start together or none [default: 1]
    #[arg(long, short, value_name = "N")]
    members: Option<u32>,
    /// The contract: protected for so long once all members run. Without it the work is unallocated: never charged, never protected
    #[arg(long, value_name = "TIME")]
    min_runtime: Option<Length>,
    /// What happens when it is preempted [default: restart]
    #[arg(long, value_enum, value_name = "WHAT")]
    on_preempt: Option<OnPreemptFlag>,
    /// The most running time over all attempts; `end` work must state it
    #[arg(long, value_name = "TIME")]
    time_limit: Option<Length>,
    /// How long it will run, as far as you know
    #[arg(long, value_name = "TIME")]
    expected_runtime: Option<Length>,
    /// Whether it may run unallocated until its turn comes [default: whenever for `resume` work, else guaranteed]
    #[arg(long, value_enum, value_name = "WHEN")]
    start: Option<StartFlag>,
    /// Order inside its leaf budget, higher first [default: 0]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    priority: Option<i16>,
    /// Hold it until these have completed
    #[arg(long, value_name = "ID", value_delimiter = ',', add = names::live())]
    after: Vec<Id>,
    /// Queue it once for each index: 1-10, 0,3,7 or 1-100%5 (at most 5 at once)
    #[arg(long, value_name = "INDICES")]
    array: Option<String>,
    /// Pools it may run in, the best first [default: those in which its budget has a claim]
    #[arg(long, value_name = "NAME", value_delimiter = ',', add = names::pools())]
    pool: Vec<String>,
    /// CPUs of each member [default: the node's part of its GPUs]
    #[arg(long, value_name = "N")]
    cpus: Option<u32>,
    /// Memory of each member in GiB [default: the node's part of its GPUs]
    #[arg(long, value_name = "GIB")]
    memory: Option<u64>,
    /// What each of its nodes must have
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    feature: Vec<String>,
    /// All members behind one switch
    #[arg(long)]
    same_block: bool,
    /// Somebody sits at a keyboard: a session, which may renew its contract while it is used
    #[arg(long)]
    session: bool,
    /// A name for people [default: the program's]
    #[arg(long, short, value_name = "NAME")]
    pub(super) name: Option<String>,
    /// A variable for its environment; without `=` its value here. Repeat it for more
    #[arg(long, short, value_name = "NAME[=VALUE]")]
    env: Vec<String>,
    /// Where it runs [default: the current folder]
    #[arg(long, short = 'D', value_name = "FOLDER")]
    workdir: Option<PathBuf>,
    /// How often it writes checkpoints, where that is known
    #[arg(long, value_name = "TIME")]
    checkpoint_every: Option<Length>,
    /// A shell command that is run when it is preempted, before the stop signal
    #[arg(long, value_name = "COMMAND")]
    checkpoint_cmd: Option<String>,
    /// A shell command that is run before the program from the second attempt on
    #[arg(long, value_name = "COMMAND")]
    restore_cmd: Option<String>,
    /// A file that says all this: a spec (.toml, .yaml) or a batch script with #SBATCH lines; flags count over it
    #[arg(long, short, value_name = "FILE")]
    file: Option<PathBuf>,
    /// The program and its arguments; of a batch script, arguments for it
    #[arg(last = true, value_name = "COMMAND")]
    pub(super) command: Vec<String>,
}

/// What happens when it is preempted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnPreemptFlag {
    /// It goes on from its last checkpoint
    Resume,
    /// It starts again from nothing
    Restart,
    /// It cannot go on: its contract is its time limit
    End,
}

/// Whether work with a contract may run before it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StartFlag {
    /// With its contract or not at all
    Guaranteed,
    /// Unallocated at first, promoted in place when its turn comes
    Whenever,
}

/// A submission, and what should be said about how it was read.
#[derive(Debug, Default)]
pub(crate) struct Read {
    pub(crate) submission: Submission,
    pub(crate) notes: Vec<String>,
}

impl Request {
    /// The whole of it: what the file says, and over it what the flags say.
    pub(crate) fn read(mut self) -> Result<Read, Failure> {
        let mut read = match self.file.take() {
            Some(file) => file::read(&file, std::mem::take(&mut self.command))?,
            None => Read::default(),
        };
        let folder = std::env::current_dir()?;
        self.lay_over(&mut read.submission)?;
        let submission = &mut read.submission;
        // What is relative is meant from here, where it is typed.
        let workdir = folder.join(submission.workdir.as_deref().unwrap_or(""));
        let workdir = workdir.to_str().ok_or_else(|| Failure::new("--workdir: the folder's name is not UTF-8"))?;
        submission.workdir = Some(workdir.trim_end_matches('/').to_owned()).filter(|path| !path.is_empty()).or(Some("/".into()));
        if submission.budget.is_empty() {
            return Err(
                Failure::new("no budget is named").hint("name the one that pays: --budget lab/nlp/olmo; `stipend budget tree` shows them")
            );
        }
        if submission.command.is_empty() {
            return Err(Failure::new("there is nothing to run").hint("the program comes last, behind two dashes: -- python train.py"));
        }
        Ok(read)
    }

    /// What a script of flags says, into a submission that is read already.
    pub(super) fn lay_over(self, to: &mut Submission) -> Result<(), Failure> {
        self.lay_contract(to);
        let Request { budget, gpus, members, after, array, pool, cpus, memory, feature, name, workdir, command, .. } = self;
        if let Some(budget) = budget {
            to.budget = budget;
        }
        over(&mut to.gpus, gpus);
        over(&mut to.members, members);
        over(&mut to.cpus, cpus);
        over(&mut to.memory_gib, memory);
        over(&mut to.array, array);
        over(&mut to.name, name);
        over_list(&mut to.after, after.into_iter().map(|id| id.0).collect());
        over_list(&mut to.pools, pool);
        over_list(&mut to.features, feature);
        over_list(&mut to.command, command);
        over_list(&mut to.checkpoint_command, shell(self.checkpoint_cmd));
        over_list(&mut to.restore_command, shell(self.restore_cmd));
        to.same_block |= self.same_block;
        if let Some(workdir) = workdir {
            let text = workdir.into_os_string().into_string();
            to.workdir = Some(text.map_err(|_| Failure::new("--workdir: the folder's name is not UTF-8"))?);
        }
        for variable in self.env {
            let (name, value) = variable_of(&variable)?;
            to.env.insert(name, value);
        }
        Ok(())
    }

    fn lay_contract(&self, to: &mut Submission) {
        let wire = |length: Option<Length>| length.map(|length| WireLength(length.0));
        if let Some(length) = wire(self.min_runtime) {
            to.min_runtime = length;
        }
        over(&mut to.time_limit, wire(self.time_limit));
        over(&mut to.expected_runtime, wire(self.expected_runtime));
        over(&mut to.checkpoint_every, wire(self.checkpoint_every));
        if let Some(what) = self.on_preempt {
            to.on_preempt = match what {
                OnPreemptFlag::Resume => OnPreempt::Resume,
                OnPreemptFlag::Restart => OnPreempt::Restart,
                OnPreemptFlag::End => OnPreempt::End,
            };
        }
        let start = self.start.map(|when| match when {
            StartFlag::Guaranteed => Start::Guaranteed,
            StartFlag::Whenever => Start::Whenever,
        });
        over(&mut to.start, start);
        to.priority = self.priority.unwrap_or(to.priority);
        if self.session {
            to.kind = Kind::Session;
        }
    }
}

fn over<T>(to: &mut Option<T>, value: Option<T>) {
    if value.is_some() {
        *to = value;
    }
}

fn over_list<T>(to: &mut Vec<T>, values: Vec<T>) {
    if !values.is_empty() {
        *to = values;
    }
}

fn shell(command: Option<String>) -> Vec<String> {
    command.map_or(Vec::new(), |command| vec!["/bin/sh".into(), "-c".into(), command])
}

/// `NAME=VALUE`, or `NAME` with its value here.
fn variable_of(text: &str) -> Result<(String, String), Failure> {
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, value.to_owned()),
        None => {
            let missing =
                || Failure::new(format!("--env {text}: there is no variable of this name here")).hint("give its value: --env NAME=VALUE");
            (text, std::env::var(text).map_err(|_| missing())?)
        }
    };
    if name.is_empty() {
        return Err(Failure::new(format!("--env {text}: the variable has no name")).hint("it is written --env NAME=VALUE"));
    }
    Ok((name.to_owned(), value))
}
