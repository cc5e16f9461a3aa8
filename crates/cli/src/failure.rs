//! What went wrong, said for people: the error with its causes, then what to do next.

use anyhow::anyhow;
use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

/// What a command answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Done, or: it is so.
    Yes,
    /// The thing asked about is not so.
    No,
    /// Another program's exit code, handed on.
    Code(u8),
}

impl From<Answer> for ExitCode {
    fn from(answer: Answer) -> ExitCode {
        match answer {
            Answer::Yes => ExitCode::SUCCESS,
            Answer::No => ExitCode::from(1),
            Answer::Code(code) => ExitCode::from(code),
        }
    }
}

/// An error and the next step out of it.
#[derive(Debug)]
pub(crate) struct Failure {
    error: anyhow::Error,
    hint: Option<String>,
}

/// What commands return.
pub(crate) type Outcome = Result<Answer, Failure>;

impl Failure {
    /// A request that cannot be met as it is.
    pub(crate) fn new(message: impl fmt::Display) -> Failure {
        Failure { error: anyhow!("{message}"), hint: None }
    }

    /// Says first what could not be done because of it.
    pub(crate) fn context(mut self, message: String) -> Failure {
        self.error = self.error.context(message);
        self
    }

    /// The next step.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Failure {
        self.hint = Some(hint.into());
        self
    }

    /// Prints it to stderr. Whoever closed our stdout has all they wanted: that is no failure.
    pub(crate) fn report(self) -> ExitCode {
        let broken_pipe = |cause: &(dyn std::error::Error + 'static)| {
            cause.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
        };
        if self.error.chain().any(broken_pipe) {
            return ExitCode::SUCCESS;
        }
        // Nothing is left to be done about a closed stderr.
        let _ = writeln!(io::stderr(), "{self}");
        ExitCode::from(2)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {:#}", self.error)?;
        self.hint.iter().try_for_each(|hint| write!(f, "\nhint: {hint}"))
    }
}

impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Failure {
        Failure { error: error.into(), hint: None }
    }
}
