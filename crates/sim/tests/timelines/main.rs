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

/// Scenarios of the product that have expectations too: the file, where its expectations stand, and what is set.
const LONG: [(&str, &str, &[&str]); 2] = [("echo", "echo-fading", &[]), ("echo", "echo-sliding", &["policy.kernel=sliding"])];

/// One test.
struct Case {
    name: String,
    scenario: PathBuf,
    /// The path of what stands beside it, without an extension.
    beside: PathBuf,
    overrides: Vec<String>,
}

fn main() {
    let arguments = Arguments::from_args();
    let scenarios = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let in_folders = FOLDERS.iter().flat_map(|folder| cases(&scenarios, folder));
    let long = LONG.iter().map(|(file, beside, overrides)| Case {
        name: beside.to_string(),
        scenario: scenarios.join(file).with_extension("toml"),
        beside: scenarios.join("rules").join(beside),
        overrides: overrides.iter().map(ToString::to_string).collect(),
    });
    let trials = in_folders.chain(long).map(trial).collect();
    libtest_mimic::run(&arguments, trials).exit();
}

/// A scenario that does not hold yet says so in its expectations, with the reason; it is listed as ignored and never forgotten.
fn trial(case: Case) -> Trial {
    let ignored = expect::Expect::load(&case.beside).is_ok_and(|expect| expect.ignored.is_some());
    Trial::test(case.name.clone(), move || run::check(&case).map_err(Into::into)).with_ignored_flag(ignored)
}

/// A case for each scenario of a folder.
fn cases(scenarios: &Path, folder: &str) -> Vec<Case> {
    let entries = std::fs::read_dir(scenarios.join(folder)).unwrap_or_else(|error| panic!("{folder}: {error}"));
    let names = entries.map(|entry| entry.expect("the folder can be listed").file_name().display().to_string());
    let mut names: Vec<String> =
        names.filter_map(|name| name.strip_suffix(".toml").map(String::from)).filter(|name| !name.ends_with(".expect")).collect();
    names.sort();
    let case = |name: &String| {
        let beside = scenarios.join(folder).join(name);
        Case { name: format!("{folder}/{name}"), scenario: beside.with_extension("toml"), beside, overrides: Vec::new() }
    };
    names.iter().map(case).collect()
}
