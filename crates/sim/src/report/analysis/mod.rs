//! What became of a log's jobs, for people: one screen of 80 columns, or a page.

mod page;
mod picture;
mod text;
mod whatif;

use crate::analyze::Analysis;
use crate::analyze::whatif::WhatIf;

/// The analysis of `file` as a page with pictures, complete in itself.
pub fn page(file: &str, found: &Analysis) -> String {
    page::page(file, found)
}

/// The whole analysis of `file`, as text.
pub fn analysis(file: &str, found: &Analysis) -> String {
    text::text(file, found)
}

/// What replays of `file` say, as text; there is at least one.
pub fn what_if(file: &str, found: &Analysis, replayed: &WhatIf) -> String {
    format!("{}\n\n{}", text::head(file, found), whatif::text(replayed))
}
