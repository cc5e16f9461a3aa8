//! Which form a file has, by what stands at its begin.

use super::builder::Reading;
use super::columns;
use super::input::Input;
use super::{Builder, Trace};

/// Reads a file in whatever form it has.
pub(super) fn read(input: &mut Input<'_>, reading: Reading) -> Result<Trace, String> {
    let head = input.head().map_err(|error| error.to_string())?;
    let form = Form::detect(head)?;
    let mut builder = Builder::new(form.name(), reading);
    match form {
        Form::Table => columns::read(input, &mut builder)?,
    }
    Ok(builder.finish())
}

/// The forms there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// CSV of ours, of the benchmark's generator or of Philly: what its header says.
    Table,
}

impl Form {
    /// The form of a file that begins so.
    fn detect(_head: &[u8]) -> Result<Form, String> {
        Ok(Form::Table)
    }

    /// What it is called.
    fn name(self) -> &'static str {
        match self {
            Form::Table => "CSV",
        }
    }
}
