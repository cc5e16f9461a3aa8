//! Data on stdout, notes on stderr.

use clap::ValueEnum;
use serde::Serialize;
use std::io::{self, Write};

/// How data is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    #[default]
    Table,
    /// For programs.
    Json,
}

/// Prints bytes as they are.
pub(crate) fn bytes(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()
}

/// Prints a text and ends its last line.
pub(crate) fn text(text: &str) -> io::Result<()> {
    bytes(format!("{text}\n").as_bytes())
}

/// Prints a value as indented JSON.
pub(crate) fn json(value: &impl Serialize) -> io::Result<()> {
    text(&serde_json::to_string_pretty(value)?)
}

/// Says something beside the data, on stderr.
pub(crate) fn note(text: &str) {
    // Nothing is left to be done about a closed stderr.
    let _ = writeln!(io::stderr(), "{text}");
}
