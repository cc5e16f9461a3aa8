//! The commands: a noun, then a verb.

mod analyze;
mod backup;
mod budget;
mod change;
mod completions;
mod demo;
mod events;
mod explain;
mod inside;
mod logs;
mod man;
mod node;
mod pool;
mod queue;
mod reading;
mod run;
mod serve;
mod show;
mod sim;
mod submit;
mod token;
mod usage;
mod wait;
mod whatif;

pub(crate) use completions::VARIABLE as COMPLETIONS;

use crate::failure::Outcome;
use clap::{Parser, Subcommand};

/// Budget scheduling for shared GPU clusters.
///
/// Managers fund a tree of programs, projects and people with shares of GPU time; the scheduler delivers those shares, keeps every GPU busy,
/// and can always say why.
#[derive(Debug, Parser)]
#[command(name = "stipend", version, max_term_width = 80, arg_required_else_help = true, after_help = EXAMPLES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  stipend demo
  stipend serve
  stipend submit --budget lab/nlp --gpus 4 --min-runtime 30m -- python train.py
  stipend queue
  stipend explain w12
  stipend analyze sacct.txt
  stipend sim run scenarios/lab.toml

Exit codes: 0 done, 1 the thing asked about is not so, 2 the request was wrong.";

#[derive(Debug, Subcommand)]
enum Command {
    Serve(serve::Serve),
    Demo(demo::Demo),
    Submit(submit::Submit),
    Run(run::Run),
    Queue(queue::Queue),
    Show(show::Show),
    Explain(explain::Explain),
    Logs(logs::Logs),
    Wait(wait::Wait),
    Cancel(change::Cancel),
    Hold(change::Hold),
    Release(change::Release),
    #[command(subcommand)]
    Budget(budget::BudgetCommand),
    #[command(subcommand)]
    Node(node::NodeCommand),
    #[command(subcommand)]
    Pool(pool::PoolCommand),
    Events(events::Events),
    #[command(subcommand)]
    Token(token::TokenCommand),
    Usage(usage::UsageCommand),
    Analyze(analyze::Analyze),
    Whatif(whatif::WhatIfCommand),
    Backup(backup::Backup),
    #[command(subcommand)]
    Store(backup::StoreCommand),
    Checkpoint(inside::Checkpoint),
    Done(inside::Done),
    Input(inside::Input),
    #[command(subcommand)]
    Sim(sim::Sim),
    Completions(completions::Completions),
    Man(man::Man),
    #[command(hide = true)]
    Supervise(inside::Supervise),
}

impl Cli {
    /// Does what was asked.
    pub(crate) fn run(self) -> Outcome {
        match self.command {
            Command::Serve(serve) => serve.run(),
            Command::Demo(demo) => demo.run(),
            Command::Submit(submit) => submit.run(),
            Command::Run(run) => run.run(),
            Command::Queue(queue) => queue.run(),
            Command::Show(show) => show.run(),
            Command::Explain(explain) => explain.run(),
            Command::Logs(logs) => logs.run(),
            Command::Wait(wait) => wait.run(),
            Command::Cancel(cancel) => cancel.run(),
            Command::Hold(hold) => hold.run(),
            Command::Release(release) => release.run(),
            Command::Budget(budget) => budget.run(),
            Command::Node(node) => node.run(),
            Command::Pool(pool) => pool.run(),
            Command::Events(events) => events.run(),
            Command::Token(token) => token.run(),
            Command::Usage(usage) => usage.run(),
            Command::Analyze(analyze) => analyze.run(),
            Command::Whatif(whatif) => whatif.run(),
            Command::Backup(backup) => backup.run(),
            Command::Store(store) => store.run(),
            Command::Checkpoint(checkpoint) => checkpoint.run(),
            Command::Done(done) => done.run(),
            Command::Input(input) => input.run(),
            Command::Supervise(supervise) => supervise.run(),
            Command::Sim(sim) => sim.run(),
            Command::Completions(completions) => completions.run(),
            Command::Man(man) => man.run(),
        }
    }
}
