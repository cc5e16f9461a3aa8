//! The text of a scenario with its `--set` overrides: where something stands in it, and what is written there.

use super::error::ScenarioError;
use super::file::ScenarioFile;
use super::overrides;
use crate::harmless::harmless;
use crate::plain::plain;
use serde::Deserialize;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use toml::Spanned;
use toml::de::{DeTable, Deserializer};

/// So much of a line is shown.
const SHOWN: usize = 160;

/// A scenario's text and its overrides. What an override sets has a span beyond the end of the text, which leads back to it.
pub(crate) struct Source<'a> {
    /// The file's name, for messages.
    pub(crate) file: &'a str,
    /// Its text.
    pub(crate) text: &'a str,
    /// `key=value`, in order.
    pub(crate) overrides: &'a [String],
}

/// Where something is written: file and line with the line itself, or an override.
#[derive(Debug)]
pub struct Place {
    file: String,
    line: usize,
    text: String,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line == 0 {
            return write!(f, "--set {}", self.text);
        }
        write!(f, "{}:{}: `{}`", self.file, self.line, self.text)
    }
}

impl Source<'_> {
    /// Reads the file with the overrides in place.
    pub(crate) fn read(&self) -> Result<ScenarioFile, ScenarioError> {
        let documents = overrides::documents(self.overrides);
        let values = overrides::parse(self.overrides, &documents)?;
        let mut document = DeTable::parse(self.text).map_err(|e| self.toml_error(&e))?;
        overrides::insert(document.get_mut(), &values, self.text.len())?;
        ScenarioFile::deserialize(Deserializer::from(document)).map_err(|e| self.toml_error(&e))
    }

    /// An error about what is written at `span`.
    pub(crate) fn error(&self, span: Range<usize>, message: impl Into<String>) -> ScenarioError {
        ScenarioError::At { place: Box::new(self.place(span)), message: message.into() }
    }

    /// A file that is named here: relative to the scenario's folder, or to the current one where an override names it.
    pub(crate) fn path(&self, name: &Spanned<String>, folder: &Path) -> PathBuf {
        let from = if self.is_override(&name.span()) { Path::new("") } else { folder };
        from.join(name.get_ref())
    }

    /// Which override is at `span`, if it is one.
    pub(crate) fn is_override(&self, span: &Range<usize>) -> bool {
        span.start > self.text.len()
    }

    fn place(&self, span: Range<usize>) -> Place {
        if self.is_override(&span) {
            let text = self.overrides.get(span.start - self.text.len() - 1).cloned().unwrap_or_default();
            return Place { file: self.file.into(), line: 0, text: shortened(&text) };
        }
        let mut start = span.start.min(self.text.len());
        while !self.text.is_char_boundary(start) {
            start -= 1;
        }
        let before = &self.text[..start];
        let line_start = before.rfind('\n').map_or(0, |i| i + 1);
        let line_end = self.text[start..].find('\n').map_or(self.text.len(), |i| start + i);
        let line = before.matches('\n').count() + 1;
        Place { file: self.file.into(), line, text: shortened(self.text[line_start..line_end].trim()) }
    }

    pub(crate) fn toml_error(&self, error: &toml::de::Error) -> ScenarioError {
        let message = hint(&plain(error.message()));
        match error.span() {
            Some(span) => self.error(span, message),
            None => ScenarioError::File { file: self.file.into(), message },
        }
    }
}

/// A line of at most [`SHOWN`] characters, none of which moves a terminal's cursor.
fn shortened(line: &str) -> String {
    let mut shown = harmless(&line.chars().take(SHOWN).collect::<String>());
    if line.chars().count() > SHOWN {
        shown.push('…');
    }
    shown
}

/// Adds the nearest known name to "unknown field" and shortens its list of all names.
fn hint(message: &str) -> String {
    let mut quoted = message.split('`').skip(1).step_by(2);
    let Some(unknown) = message.starts_with("unknown ").then(|| quoted.next()).flatten() else {
        return message.to_string();
    };
    let known: Vec<&str> = quoted.collect();
    match overrides::nearest(unknown, &known) {
        Some(name) => format!("{message}; did you mean `{name}`?"),
        None => message.to_string(),
    }
}
