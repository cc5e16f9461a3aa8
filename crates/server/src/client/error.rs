//! Why the client has no answer.

use crate::wire::error::{Code, Problem};

/// Why a request was not answered as hoped.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The daemon refused it.
    #[error("{}", .problem.message)]
    Problem {
        /// The HTTP status.
        status: u16,
        /// What it said.
        problem: Problem,
    },
    /// It could not be reached, or went away.
    #[error("{message}")]
    Connection {
        /// What failed.
        message: String,
        /// What to do.
        hint: String,
    },
    /// What answered is not a daemon of this version, or the caller's address or path is wrong.
    #[error("{0}")]
    Answer(String),
}

impl Error {
    /// What to do next, if something can be said.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Error::Problem { problem, .. } => problem.hint.as_deref(),
            Error::Connection { hint, .. } => Some(hint),
            Error::Answer(_) => None,
        }
    }

    /// Which kind of refusal it is, if it is one.
    pub fn code(&self) -> Option<Code> {
        match self {
            Error::Problem { problem, .. } => Some(problem.code),
            _ => None,
        }
    }
}
