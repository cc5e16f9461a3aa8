//! Which form a file has, by what stands at its begin.

use super::builder::Reading;
use super::columns::{self, names};
use super::csv::Fields;
use super::input::Input;
use super::{Builder, Trace, events, openb, slurm, swf};

/// Reads a file in whatever form it has.
pub(super) fn read(input: &mut Input<'_>, reading: Reading) -> Result<Trace, String> {
    let form = Form::detect(input.head().map_err(|error| error.to_string())?, &reading)?;
    let mut builder = Builder::new(form.name(), reading);
    match form {
        Form::Table => columns::read(input, &mut builder)?,
        Form::Openb => openb::read(input, &mut builder)?,
        Form::Swf => swf::read(input, &mut builder)?,
        Form::Events => events::read(input, &mut builder)?,
        Form::SlurmText => slurm::read_text(input, &mut builder)?,
        Form::SlurmJson => slurm::read_json(input, &mut builder)?,
        Form::SlurmNodes => return Err(slurm::describe_nodes(input)?),
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
    /// Our own event log.
    Events,
    /// What Slurm's `sacct` prints.
    SlurmText,
    /// `sacct --json`, or an answer of `slurmrestd`.
    SlurmJson,
    /// A list of nodes: no trace, but something to say about a scenario's nodes.
    SlurmNodes,
}

impl Form {
    /// The form of a file that begins so.
    ///
    /// # Errors
    /// It is something else that people have, and what to do with that.
    fn detect(head: &[u8], reading: &Reading) -> Result<Form, String> {
        let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
        if text.trim_ascii().is_empty() {
            return Err("the file is empty".into());
        }
        if head.get(257..262) == Some(b"ustar") {
            return Err("the file is an archive of files (tar): unpack it, and name one of them".into());
        }
        if let Some((_, what)) = PACKED.iter().find(|(magic, _)| head.starts_with(magic)) {
            return Err(format!("the file is {what}"));
        }
        if events::is_log(head) {
            return Ok(Form::Events);
        }
        if slurm::is_nodes(head) {
            return Ok(Form::SlurmNodes);
        }
        if slurm::is_json(head) {
            return Ok(Form::SlurmJson);
        }
        if slurm::is_text(head, reading.columns.as_deref()) {
            return Ok(Form::SlurmText);
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
        if let Some((_, what)) = OTHERS.iter().find(|(columns, _)| columns.iter().all(|column| names.iter().any(|name| name == column))) {
            return Err((*what).into());
        }
        match other_separator(first) {
            Some(what) => {
                Err(format!("the fields of the header are separated by {what}, those of a CSV by commas: put commas in their place"))
            }
            None => Ok(Form::Table),
        }
    }

    /// What it is called.
    fn name(self) -> &'static str {
        match self {
            Form::Table => "CSV of our own",
            Form::Openb => "Alibaba openb pods",
            Form::Swf => "Standard Workload Format",
            Form::SlurmText => "sacct of Slurm",
            Form::SlurmJson => "JSON of Slurm",
            Form::Events => "event log",
            Form::SlurmNodes => "nodes of Slurm",
        }
    }
}

/// What separates the fields of a header that would be known if it were commas.
fn other_separator(header: &[u8]) -> Option<&'static str> {
    let others: [(u8, &str); 3] = [(b';', "semicolons"), (b'\t', "tabs"), (b'|', "vertical bars")];
    let would_be_known = |(separator, _): &(u8, &str)| {
        let commas: Vec<u8> = header.iter().map(|byte| if byte == separator { b',' } else { *byte }).collect();
        let names = names(&commas, &mut Fields::default());
        header.contains(separator) && (openb::is_header(&names) || columns::is_header(&names))
    };
    others.into_iter().find(would_be_known).map(|(_, what)| what)
}

/// Files that are no text as they are, by their first bytes.
const PACKED: [(&[u8], &str); 7] = [
    (b"\xff\xfe", "UTF-16: make it UTF-8 (`iconv -f UTF-16 -t UTF-8 FILE > NEW`)"),
    (b"\xfe\xff", "UTF-16: make it UTF-8 (`iconv -f UTF-16 -t UTF-8 FILE > NEW`)"),
    (b"BZh", "packed by bzip2: unpack it; gzip and zstd are read as they are"),
    (b"\xfd7zXZ", "packed by xz: unpack it; gzip and zstd are read as they are"),
    (b"PK\x03\x04", "a zip archive or a spreadsheet: unpack it, or save it as a CSV"),
    (b"PAR1", "Parquet: write it as a CSV"),
    (b"SQLite format 3", "a database of SQLite: write the table as a CSV"),
];

/// Files that lie beside traces and are none, by their columns.
const OTHERS: [(&[&str], &str); 2] = [
    (
        &["sn", "cpu_milli", "gpu", "model"],
        "the file is a list of nodes (openb), not of pods: a scenario takes it as its node_list, or as file of a pool",
    ),
    (&["vc", "node num"], "the file is a list of shares: a scenario takes it as shares_file in its [trace]"),
];
