//! `stipend sim explain`.

use crate::failure::{Answer, Outcome};
use crate::output::{self, Format};
use crate::progress::Progress;
use crate::simulation::{Moment, Scenario};
use clap::Args;
use std::path::PathBuf;

/// Say why a workload waits, runs or ended, at one moment of a scenario.
///
/// The scenario runs until then under `budget`. For waiting work it says what stops it, the binding limit first, who goes first and by which
/// figures, and what would start it now, as the planner itself finds it. For running work it says until when it is protected and who could
/// take its GPUs; for ended work how it ended, and who took its GPUs by which licence.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Explain {
    /// A scenario's file (TOML), such as scenarios/lab.toml
    scenario: PathBuf,
    /// The moment, since the start: `26:05` (hours and minutes), `3d4h`, `3d`
    #[arg(long, value_name = "TIME")]
    at: Moment,
    /// The workload: a name of the scenario, or a number such as w123
    #[arg(long, value_name = "ID")]
    workload: String,
    /// Set a field of the scenario, such as `pool.nodes=96`; repeat it for more
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// The seed for all that is random [default: the scenario's own]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    seed: Option<u64>,
    /// How to print it; `json` is one object
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    format: Format,
    /// Refuse a trace with broken rows, instead of counting them
    #[arg(long)]
    strict: bool,
}

const EXAMPLES: &str = "\
Examples:
  stipend sim explain scenarios/tiny.toml --at 2:30 --workload finetune
  stipend sim explain scenarios/lab.toml --at 10d --workload w12345
  stipend sim explain scenarios/lab.toml --at 10d --workload w12345 \\
      --set lookback=3d --format json

The event log (`stipend sim run SCENARIO --policy budget --events FILE`) names
every workload and says when it was submitted, started and ended.";

impl Explain {
    pub(super) fn run(self) -> Outcome {
        let scenario = Scenario::load(&self.scenario, &self.set, self.strict)?;
        let progress = Progress::new(scenario.name(), 1);
        let mut part = progress.part();
        let explained =
            scenario.explain(self.seed.unwrap_or(scenario.seed()), self.at, &self.workload, &mut |fraction| part.reach(fraction));
        drop(part);
        drop(progress);
        let explained = explained?;
        output::data(self.format, &explained, || explained.to_string())?;
        Ok(Answer::Yes)
    }
}
