//! What can be wrong with a scenario, said so that a stranger can put it right.

use super::source::Place;
use std::path::PathBuf;

/// Why a scenario cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// A file cannot be read.
    #[error("{}: cannot be read", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Something at a place in the file, or in a `--set`.
    #[error("{place}: {message}")]
    At {
        /// Where.
        place: Box<Place>,
        /// What is wrong, and what would be right.
        message: String,
    },
    /// A `--set` that names nothing known.
    #[error("--set {text}: {message}")]
    Override {
        /// As given.
        text: String,
        /// What is wrong, and what would be right.
        message: String,
    },
    /// The scenario as a whole, or a trace's file.
    #[error("{file}: {message}")]
    File {
        /// Which file.
        file: String,
        /// What is wrong, and what would be right.
        message: String,
    },
}
