//! Small scenarios with their timelines and reasons: one test a file of `scenarios/reports` and `scenarios/rules`.
//!
//! Beside `NAME.toml` stand `NAME.expect.toml`, what the rules ask for (derived by arithmetic, and checked by name), and
//! `NAME.timeline.txt`, all that was decided and why (read by a person, then kept). `BLESS=1` writes the timelines anew; what a
//! scenario must come to is never blessed.

mod expect;
mod facts;
mod journal;
mod run;
mod timeline;

use libtest_mimic::{Arguments, Trial};
use std::path::{Path, PathBuf};

/// Folders below `scenarios/` with such files.
const FOLDERS: [&str; 2] = ["reports", "rules"];

/// Scenarios told elsewhere that have expectations, but no timeline that anybody would read.
const LONG: [&str; 1] = ["echo.toml"];

fn main() {
    let arguments = Arguments::from_args();
    let scenarios = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let in_folders = FOLDERS.iter().flat_map(|folder| scenario_files(&scenarios.join(folder)));
    let files: Vec<PathBuf> = in_folders.chain(LONG.iter().map(|name| scenarios.join(name))).collect();
    let trials = files.into_iter().map(|path| trial(&scenarios, path)).collect();
    libtest_mimic::run(&arguments, trials).exit();
}

/// A scenario that does not hold yet says so in its expectations, with the reason; it is listed as ignored and never forgotten.
fn trial(scenarios: &Path, path: PathBuf) -> Trial {
    let name = path.strip_prefix(scenarios).unwrap_or(&path).with_extension("").display().to_string();
    let ignored = expect::Expect::load(&path).is_ok_and(|expect| expect.ignored.is_some());
    Trial::test(name, move || run::check(&path).map_err(Into::into)).with_ignored_flag(ignored)
}

fn scenario_files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let paths = entries.map(|entry| entry.expect("the folder can be listed").path());
    let is_scenario = |path: &PathBuf| path.to_str().is_some_and(|p| p.ends_with(".toml") && !p.ends_with(".expect.toml"));
    let mut files: Vec<PathBuf> = paths.filter(is_scenario).collect();
    files.sort();
    files
}
