//! What is said when a request is not done.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A refusal or a failure. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// Which kind, for programs.
    pub code: Code,
    /// What is wrong, with the field, the value and what would be right, for people.
    pub message: String,
    /// What to do next, if something can be said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// Kinds of problems.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    /// The request cannot be read, or a value is not allowed (400, 405, 408, 415).
    Invalid,
    /// No valid token (401).
    Unauthenticated,
    /// A right is missing; the message says which (403).
    Forbidden,
    /// There is no such thing (404).
    NotFound,
    /// The thing is not in a state where this can be done, or changed meanwhile (409, 412).
    Conflict,
    /// Too large (413, 414).
    TooLarge,
    /// Too many requests, or too much waiting (429).
    TooMany,
    /// The daemon is starting, stopping, or cannot write (503).
    Unavailable,
    /// A defect of the daemon (500).
    Internal,
}

impl Problem {
    /// A problem without a hint.
    pub fn new(code: Code, message: impl Into<String>) -> Problem {
        Problem { code, message: message.into(), hint: None }
    }

    /// The same with a hint.
    pub fn hint(self, hint: impl Into<String>) -> Problem {
        Problem { hint: Some(hint.into()), ..self }
    }
}
