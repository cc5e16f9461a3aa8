//! Data on stdout, notes on stderr.

use anyhow::{Context, bail};
use clap::ValueEnum;
use serde::Serialize;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// How data is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    #[default]
    Table,
    /// For programs.
    Json,
}

/// How wide lines may be: as `COLUMNS` says, as the terminal is, or without a limit where stdout is none.
pub(crate) fn width() -> Option<usize> {
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok()).filter(|columns| *columns > 0);
    columns.or_else(|| terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0)))
}

/// The same for what is said beside the data, at most 100.
pub(crate) fn note_width() -> Option<usize> {
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok()).filter(|columns| *columns > 0);
    let width = columns.or_else(|| terminal_size::terminal_size_of(io::stderr()).map(|(width, _)| usize::from(width.0)));
    width.map(|width: usize| width.min(100))
}

/// Prints bytes as they are.
pub(crate) fn bytes(bytes: &[u8]) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).context("cannot write to stdout")
}

/// Makes a file for what is written beside the data.
pub(crate) fn create(path: &Path) -> anyhow::Result<File> {
    if path.as_os_str() == "-" {
        bail!("cannot write -: stdout has the data; name a file, or /dev/stdout");
    }
    File::create(path).with_context(|| format!("cannot write {}", path.display()))
}

/// Prints a text and ends its last line.
pub(crate) fn text(text: &str) -> anyhow::Result<()> {
    bytes(format!("{text}\n").as_bytes())
}

/// Prints a value as indented JSON.
pub(crate) fn json(value: &impl Serialize) -> anyhow::Result<()> {
    text(&serde_json::to_string_pretty(value)?)
}

/// Prints a value in the form that was asked for; `table` makes it a text for people.
pub(crate) fn data(format: Format, value: &impl Serialize, table: impl FnOnce() -> String) -> anyhow::Result<()> {
    match format {
        Format::Table => text(&table()),
        Format::Json => json(value),
    }
}

/// Says something beside the data, on stderr.
pub(crate) fn note(text: &str) {
    // Nothing is left to be done about a closed stderr.
    let _ = writeln!(io::stderr(), "{text}");
}
