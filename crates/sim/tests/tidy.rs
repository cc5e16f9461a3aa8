//! Style as a test: what a reviewer would otherwise have to look for.

use std::fs;
use std::path::{Path, PathBuf};

/// Files may be longer only if they are listed here, with the reason.
const LONGER: &[(&str, &str)] = &[];

/// Non-blank lines of one source file.
const LINES_MAX: usize = 500;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository is there")
}

/// All files of the repository, by their paths in it; build outputs, hidden folders and what a checkout is only lent are left aside.
fn files() -> Vec<(String, PathBuf)> {
    let root = root();
    let (mut found, mut folders) = (Vec::new(), vec![root.clone()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder").map(|entry| entry.expect("an entry")) {
            let path = entry.path();
            let name = path.strip_prefix(&root).expect("inside").to_string_lossy().replace('\\', "/");
            let aside = name.starts_with("target")
                || name == "shared"
                || name.ends_with("node_modules")
                || (name.starts_with('.') && !name.starts_with(".ci"));
            match entry.file_type() {
                _ if aside => {}
                Ok(kind) if kind.is_dir() => folders.push(path),
                Ok(kind) if kind.is_file() => found.push((name, path)),
                _ => {}
            }
        }
    }
    found.sort();
    found
}

/// The text files among them.
fn texts() -> Vec<(String, String)> {
    let texts = files().into_iter().filter_map(|(name, path)| Some((name, String::from_utf8(fs::read(path).ok()?).ok()?)));
    texts.collect()
}

fn none(found: Vec<String>, what: &str) {
    assert!(found.is_empty(), "{what}:\n{}", found.join("\n"));
}

#[test]
fn the_core_depends_on_nothing_but_serde_where_it_is_asked_for() {
    let manifest = fs::read_to_string(root().join("crates/core/Cargo.toml")).expect("a manifest");
    let tables = toml::from_str::<toml::Table>(&manifest).expect("TOML");
    for (name, table) in &tables {
        if name.ends_with("dependencies") {
            let listed = table.as_table().expect("a table");
            let is_derives =
                |(what, how): (&String, &toml::Value)| what == "serde" && how.get("optional").and_then(toml::Value::as_bool) == Some(true);
            assert!(listed.iter().all(is_derives), "crates/core has {name}: {listed:?}");
        }
        assert!(name != "target", "crates/core has a section {name}, which may hide a dependency");
        if name == "features" {
            let features = table.as_table().expect("a table");
            assert_eq!(features.keys().collect::<Vec<_>>(), ["serde"], "for the daemon's snapshots and journal, and off by default");
        }
    }
}

#[test]
fn no_file_is_too_long() {
    let lines = |text: &str| text.lines().filter(|line| !line.trim().is_empty()).count();
    let sources = texts().into_iter().filter(|(name, _)| name.ends_with(".rs"));
    let long: Vec<String> =
        sources.filter(|(_, text)| lines(text) > LINES_MAX).map(|(name, text)| format!("{name}: {} lines", lines(&text))).collect();
    let listed = |line: &String| LONGER.iter().any(|(name, _)| line.starts_with(&format!("{name}:")));
    for (name, reason) in LONGER {
        assert!(
            long.iter().any(|line| line.starts_with(&format!("{name}:"))),
            "{name} is short enough now: take it out of the list ({reason})"
        );
    }
    none(long.into_iter().filter(|line| !listed(line)).collect(), "longer than 500 lines, blank ones left aside");
}

#[test]
fn every_scenario_describes_itself() {
    let scenarios: Vec<(String, String)> = texts()
        .into_iter()
        .filter(|(name, _)| name.starts_with("scenarios/") && name.ends_with(".toml") && !name.ends_with(".expect.toml"))
        .collect();
    assert!(!scenarios.is_empty(), "there are scenarios");
    for (name, text) in scenarios {
        let table = toml::from_str::<toml::Table>(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let field = |field: &str| table.get(field).and_then(toml::Value::as_str).unwrap_or_default().to_owned();
        let file = name.rsplit('/').next().unwrap_or_default();
        assert!(field("description").len() >= 40, "{name}: a description says what the scenario shows");
        assert_eq!(format!("{}.toml", field("name")), file, "{name}: the name is the file's own");
    }
}

#[test]
fn nothing_is_left_to_do_in_comments() {
    // Put together here, so that this file does not find itself.
    let words = [["TO", "DO"], ["FIX", "ME"], ["XX", "X"]].map(|parts| parts.concat());
    let found = texts().into_iter().flat_map(|(name, text)| {
        let lines = text
            .lines()
            .enumerate()
            .filter(|(_, line)| words.iter().any(|word| line.split(|c: char| !c.is_alphanumeric()).any(|w| w == word)));
        lines.map(|(number, line)| format!("{name}:{}: {}", number + 1, line.trim())).collect::<Vec<_>>()
    });
    none(found.collect(), "notes to be dealt with");
}

#[test]
fn nothing_names_a_path_of_one_machine() {
    let roots = ["work", "root", "home", "Users"].map(|name| format!("/{name}/"));
    let is_path = |line: &str, root: &str| {
        let before = |at: usize| line[..at].chars().next_back();
        line.match_indices(root).any(|(at, _)| before(at).is_none_or(|c| !c.is_alphanumeric() && !"/._-~`]})*".contains(c)))
    };
    let found = texts().into_iter().filter(|(name, _)| name != "Cargo.lock").flat_map(|(name, text)| {
        let lines = text.lines().enumerate().filter(|(_, line)| roots.iter().any(|root| is_path(line, root)));
        lines.map(|(number, line)| format!("{name}:{}: {}", number + 1, line.trim())).collect::<Vec<_>>()
    });
    none(found.collect(), "absolute paths");
}

#[test]
fn links_of_the_pages_lead_somewhere() {
    let root = root();
    let mut found = Vec::new();
    for (name, text) in texts().into_iter().filter(|(name, _)| name.ends_with(".md")) {
        let folder = root.join(&name).parent().expect("it is in a folder").to_owned();
        // What stands after `](`, up to the closing bracket.
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = target.split('#').next().unwrap_or_default();
            let is_elsewhere = target.starts_with("http") || file.is_empty() || target.contains(' ');
            if !is_elsewhere && !folder.join(file).exists() {
                found.push(format!("{name}: {target}"));
            }
        }
    }
    none(found, "links that lead nowhere");
}

#[test]
fn no_line_ends_in_blanks() {
    let found = texts().into_iter().filter(|(name, _)| name.ends_with(".md") || name.ends_with(".rs") || name.ends_with(".toml")).flat_map(
        |(name, text)| {
            let lines = text.lines().enumerate().filter(|(_, line)| line.ends_with([' ', '\t']));
            lines.map(|(number, _)| format!("{name}:{}", number + 1)).collect::<Vec<_>>()
        },
    );
    none(found.collect(), "blanks at a line's end");
}
