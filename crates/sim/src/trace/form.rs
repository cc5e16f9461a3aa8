//! Which form a file has, by what stands at its begin.

use super::builder::Reading;
use super::columns;
use super::input::Input;
use super::{Builder, Trace, slurm};

/// Reads a file in whatever form it has.
pub(super) fn read(input: &mut Input<'_>, reading: Reading) -> Result<Trace, String> {
    let head = input.head().map_err(|error| error.to_string())?;
    let form = Form::detect(head, &reading)?;
    let mut builder = Builder::new(form.name(), reading);
    match form {
        Form::Table => columns::read(input, &mut builder)?,
        Form::SlurmText => slurm::read_text(input, &mut builder)?,
        Form::SlurmJson => slurm::read_json(input, &mut builder)?,
    }
    Ok(builder.finish())
}

/// The forms there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// CSV of ours, of the benchmark's generator or of Philly: what its header says.
    Table,
    /// `sacct` as text.
    SlurmText,
    /// `sacct --json`, or an answer of `slurmrestd`.
    SlurmJson,
}

impl Form {
    /// The form of a file that begins so.
    fn detect(head: &[u8], reading: &Reading) -> Result<Form, String> {
        Ok(match head {
            _ if slurm::is_json(head) => Form::SlurmJson,
            _ if slurm::is_text(head, reading.columns.as_deref()) => Form::SlurmText,
            _ => Form::Table,
        })
    }

    /// What it is called.
    fn name(self) -> &'static str {
        match self {
            Form::Table => "CSV",
            Form::SlurmText => "Slurm sacct",
            Form::SlurmJson => "Slurm JSON",
        }
    }
}
