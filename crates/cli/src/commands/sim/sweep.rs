//! `stipend sim sweep`.

use super::batch::distinct;
use crate::cores::on_all_cores;
use crate::failure::{Answer, Failure, Outcome};
use crate::output::{self, Format};
use crate::progress::Progress;
use crate::simulation::{self, PolicyName, Scenario};
use anyhow::Context;
use clap::Args;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;
use stipend_sim::metrics::Metrics;
use stipend_sim::report::sweep::{page, picture, table, watched};
use stipend_sim::result::{PolicyResult, RunResult};
use stipend_sim::sweep::{Combination, SweepResult};

/// What the columns of the table mean.
macro_rules! columns {
    () => {
        "\
The table, one row a combination:
  owed, by day       of the GPU time that budgets were owed, the part that they
                     got; where no day makes up for another
  worst team         the same for the team that got the least of it
  arrears            how far teams are behind, in hours of their own share
  occupancy, useful, lost
                     of all GPU time, what was given to work, led to something,
                     led to nothing
  debug, all, largest
                     the wait of nine in ten of the class, or less
  medium x, largest x
                     the slowdown of nine in ten of the medium work, of half of
                     the largest gangs, or less
  never              work that never started

Commas in a value:
  A comma parts values. One that belongs to a value is written `\\,`; inside a
  TOML string, list or table it needs no sign: --set 'trace=a\\,b.csv,c.csv'"
    };
}

macro_rules! examples {
    () => {
        "\
Examples:
  stipend sim sweep scenarios/lab.toml --set lookback=1d,7d,28d
  stipend sim sweep scenarios/lab.toml --set pool.express_nodes=0,2,4,8 \\
      --seed 11,12,13 --picture express.svg
  stipend sim sweep scenarios/lab.toml --set lookback=1d,7d \\
      --set min_runtime_max=2h,8h,24h --report sweep.html
  stipend sim sweep scenarios/tiny.toml --set nodes=2,3,4 --policy budget,easy
  stipend sim sweep scenarios/gaming.toml --watch lab/vision/molmo \\
      --set behaviours.what=honest,squat,inflate --seed 11,12,13"
    };
}

const EXAMPLES: &str = examples!();

/// Run a scenario with every combination of some values of its fields.
///
/// Each `--set` with a list of values sweeps a field; the others set one for all runs. The table has a row for each combination and marks the
/// best of each column. With several seeds a cell shows the median and, below it, the worst.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, after_long_help = concat!(columns!(), "\n\n", examples!()))]
pub(crate) struct Sweep {
    /// A scenario's file (TOML), such as scenarios/lab.toml
    scenario: PathBuf,
    /// Sweep a field over a list of values, or set it to one; repeat it for more fields
    #[arg(long, value_name = "KEY=VALUE,VALUE…", required = true)]
    set: Vec<String>,
    /// A policy to run; repeat it, or separate by commas, for more
    #[arg(long = "policy", value_name = "NAME", value_delimiter = ',', default_value = "budget")]
    policies: Vec<PolicyName>,
    /// A seed for all that is random; with several, repeated or separated by commas, cells show the median and the worst [default: the scenario's own]
    #[arg(long = "seed", value_name = "N", value_delimiter = ',', allow_negative_numbers = true)]
    seeds: Vec<u64>,
    /// Show too what each combination brings this leaf budget, and what it costs the others, beside the first; repeat it for more budgets
    #[arg(long, value_name = "BUDGET", value_delimiter = ',')]
    watch: Vec<String>,
    /// How to print the result; `json` is one object with the whole result of every run
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    format: Format,
    /// Draw a picture (SVG) into this file: lines for one field, heat maps for two or more
    #[arg(long, value_name = "FILE.svg")]
    picture: Option<PathBuf>,
    /// Write one page (HTML) with the picture and the table into this file
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    /// Refuse a trace with broken rows, instead of counting them
    #[arg(long)]
    strict: bool,
}

/// The runs of a sweep: every combination of values, with every seed, under every policy.
struct Runs {
    scenarios: Vec<Scenario>,
    seeds: Vec<u64>,
    policies: Vec<PolicyName>,
}

/// What came of one run.
struct Done {
    capacity_gpus: u32,
    sim_days: f64,
    result: PolicyResult,
    notes: Vec<String>,
}

impl Sweep {
    pub(super) fn run(self) -> Outcome {
        let sweep = simulation::sweep(&self.set)?;
        let combinations = sweep.combinations();
        // All are read before the first is run: what is wrong with the last is known at once.
        let load = |values: &Vec<String>| Scenario::load_with_note(&self.scenario, &sweep.overrides(values), self.strict);
        let (scenarios, notes): (Vec<Scenario>, Vec<Option<String>>) =
            combinations.iter().map(load).collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
        say(notes.into_iter().flatten());
        if let Some(path) = self.watch.iter().find(|path| !scenarios[0].leaves().contains(&path.as_str())) {
            let known = format!("its leaf budgets are {}", scenarios[0].leaves().join(", "));
            return Err(Failure::new(format!("--watch {path}: the scenario has no leaf budget of this name")).hint(known));
        }
        let (picture_target, report_target) = (Target::create(self.picture.as_ref())?, Target::create(self.report.as_ref())?);
        let description = scenarios[0].description().to_owned();
        let seeds = if self.seeds.is_empty() { vec![scenarios[0].seed()] } else { distinct(&self.seeds) };
        let results = Runs { scenarios, seeds, policies: distinct(&self.policies) }.run();
        let combinations = combinations.into_iter().zip(results).map(|(values, results)| Combination { values, results }).collect();
        let result = SweepResult { axes: sweep.axes, combinations };
        if let Some(target) = picture_target {
            target.write(&picture(&result))?;
        }
        if let Some(target) = report_target {
            target.write(&page(&result, &description))?;
        }
        match self.format {
            Format::Table if self.watch.is_empty() => output::text(&table(&result))?,
            Format::Table => output::text(&format!("{}\n\n{}", table(&result), watched(&result, &self.watch)))?,
            Format::Json => output::json(&result)?,
        }
        Ok(Answer::Yes)
    }
}

/// Says each thing once, in the order in which it came first.
fn say(notes: impl Iterator<Item = String>) {
    let mut said = Vec::new();
    for note in notes {
        if !said.contains(&note) {
            output::note(&note);
            said.push(note);
        }
    }
}

/// A file that is written when all is done; that it can be is known before anything is run.
struct Target<'a> {
    path: &'a Path,
    file: File,
}

impl Target<'_> {
    fn create(path: Option<&PathBuf>) -> Result<Option<Target<'_>>, Failure> {
        let create = |path| Ok(Target { path, file: output::create(path)? });
        path.map(|path| create(path.as_path())).transpose()
    }

    fn write(mut self, content: &str) -> Result<(), Failure> {
        self.file.write_all(content.as_bytes()).with_context(|| format!("cannot write {}", self.path.display()))?;
        output::note(&format!("written: {}", self.path.display()));
        Ok(())
    }
}

impl Runs {
    /// The results of each combination: one a seed, each with all policies.
    fn run(&self) -> Vec<Vec<RunResult>> {
        let count = self.scenarios.len() * self.seeds.len() * self.policies.len();
        let progress = Progress::new(self.scenarios[0].name(), count);
        let mut done = on_all_cores(count, |index| self.one(index, &progress));
        drop(progress);
        say(done.iter_mut().flat_map(|done| std::mem::take(&mut done.notes)));
        let mut done = done.into_iter();
        let mut of = |scenario: &Scenario| {
            let of_seed = |&seed: &u64| {
                let done: Vec<Done> = done.by_ref().take(self.policies.len()).collect();
                let (capacity_gpus, sim_days) = (done[0].capacity_gpus, done[0].sim_days);
                let policies = done.into_iter().map(|done| done.result).collect();
                RunResult { scenario: scenario.name().to_owned(), seed, capacity_gpus, sim_days, policies }
            };
            self.seeds.iter().map(of_seed).collect()
        };
        self.scenarios.iter().map(&mut of).collect()
    }

    /// Combination by combination, seed by seed, policy by policy.
    fn one(&self, index: usize, progress: &Progress) -> Done {
        let (rest, policy) = (index / self.policies.len(), self.policies[index % self.policies.len()]);
        let (scenario, seed) = (&self.scenarios[rest / self.seeds.len()], self.seeds[rest % self.seeds.len()]);
        let mut metrics = Metrics::new(scenario.window(policy));
        let mut part = progress.part();
        let began = Instant::now();
        let notes = scenario.run(seed, policy, &mut [&mut metrics], &mut |fraction| part.reach(fraction));
        let result = metrics.result(policy.as_str(), began.elapsed());
        Done { capacity_gpus: metrics.capacity().0, sim_days: metrics.measured_days(), result, notes }
    }
}
