//! Which form a file has, by what stands at its begin.

use super::builder::Reading;
use super::columns::{self, names};
use super::csv::Fields;
use super::input::Input;
use super::{Builder, Trace, openb, swf};

/// Reads a file in whatever form it has.
pub(super) fn read(input: &mut Input<'_>, reading: Reading) -> Result<Trace, String> {
    let form = Form::detect(input.head().map_err(|error| error.to_string())?)?;
    let mut builder = Builder::new(form.name(), reading);
    match form {
        Form::Table => columns::read(input, &mut builder)?,
        Form::Openb => openb::read(input, &mut builder)?,
        Form::Swf => swf::read(input, &mut builder)?,
    }
    Ok(builder.finish())
}

/// The forms there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// CSV of ours, of the benchmark's generator or of Philly: what its header says.
    Table,
    /// Alibaba's pods.
    Openb,
    /// The Standard Workload Format.
    Swf,
}

impl Form {
    /// The form of a file that begins so.
    ///
    /// # Errors
    /// It is something else that people have, and what to do with that.
    fn detect(head: &[u8]) -> Result<Form, String> {
        let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
        if text.trim_ascii().is_empty() {
            return Err("the file is empty".into());
        }
        if head.get(257..262) == Some(b"ustar") {
            return Err("the file is an archive of files (tar): unpack it, and name one of them".into());
        }
        let mut lines = text.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty());
        let comment = lines.clone().next().is_some_and(|line| line.starts_with(b";"));
        let first = lines.find(|line| !line.starts_with(b";")).unwrap_or_default();
        if swf::is_line(first) || (comment && first.is_empty()) {
            return Ok(Form::Swf);
        }
        let names = names(first, &mut Fields::default());
        if openb::is_header(&names) {
            return Ok(Form::Openb);
        }
        match OTHERS.iter().find(|(columns, _)| columns.iter().all(|column| names.iter().any(|name| name == column))) {
            Some((_, what)) => Err((*what).into()),
            None => Ok(Form::Table),
        }
    }

    /// What it is called.
    fn name(self) -> &'static str {
        match self {
            Form::Table => "CSV of our own",
            Form::Openb => "Alibaba openb pods",
            Form::Swf => "Standard Workload Format",
        }
    }
}

/// Files that lie beside traces and are none, by their columns.
const OTHERS: [(&[&str], &str); 2] = [
    (&["sn", "cpu_milli", "gpu", "model"], "the file is a list of nodes (openb), not of pods"),
    (&["vc", "node num"], "the file is a list of shares: a scenario takes it as shares_file in its [trace]"),
];
