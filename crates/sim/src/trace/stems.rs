//! What the rows' names have in common: kept in place of the names themselves, of which a log has as many as jobs.

use crate::family::stem;
use crate::harmless::harmless;
use std::collections::HashMap;

/// A name counts up to here; commands can be longer than a page.
const NAME_MAX: usize = 1024;

/// So much of the first name of a stem is kept as its example.
const EXAMPLE_MAX: usize = 96;

/// The stems of so many names are remembered, so that they are not worked out again for each row.
const REMEMBERED: usize = 1 << 16;

/// More stems than this are too many to mean anything: what comes later counts as without a name.
const STEMS_MAX: usize = 1 << 20;

/// Stems by number; the first is that of rows without a name.
pub(super) struct Stems {
    numbers: HashMap<Box<str>, u32>,
    recent: HashMap<Box<[u8]>, u32>,
    names: Vec<Name>,
}

/// What some rows' names have in common, and the first of these names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Name {
    /// What [`crate::family::stem`] makes of them; empty where they have none.
    pub stem: String,
    /// The first of them, shortened.
    pub example: String,
}

impl Default for Stems {
    fn default() -> Stems {
        let numbers = HashMap::from([(Box::from(""), 0)]);
        Stems { numbers, recent: HashMap::new(), names: vec![Name::default()] }
    }
}

impl Stems {
    /// The number of the stem of a name or command.
    pub(super) fn number(&mut self, name: &[u8]) -> u32 {
        let name = name[..name.len().min(NAME_MAX)].trim_ascii();
        if name.is_empty() {
            return 0;
        }
        if let Some(&number) = self.recent.get(name) {
            return number;
        }
        let text = harmless(&String::from_utf8_lossy(name));
        let number = self.named(stem(&text), &text);
        if self.recent.len() == REMEMBERED {
            self.recent.clear();
        }
        self.recent.insert(name.into(), number);
        number
    }

    /// The number of a name whose digits tell apart what is different.
    pub(super) fn exact(&mut self, name: &str) -> u32 {
        self.named(name.to_owned(), name)
    }

    fn named(&mut self, stem: String, example: &str) -> u32 {
        if let Some(&number) = self.numbers.get(stem.as_str()) {
            return number;
        }
        if self.names.len() == STEMS_MAX {
            return 0;
        }
        let number = self.names.len() as u32;
        self.numbers.insert(stem.as_str().into(), number);
        self.names.push(Name { stem, example: example.chars().take(EXAMPLE_MAX).collect() });
        number
    }

    /// All of them, by number.
    pub(super) fn finish(self) -> Vec<Name> {
        self.names
    }
}
