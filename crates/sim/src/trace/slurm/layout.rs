//! What a log's fields mean: found by its header, by the columns that somebody names, or by a known list of columns.

use super::column::{Column, HEADERLESS};
use super::id;
use super::split::{Fields, Splitter};
use super::state::State;
use super::value::{instant, is_nothing};

/// So many lines may stand before a header: warnings of the command, or what a shell prints.
const LINES_BEFORE: usize = 20;

/// The columns of a log and how they are separated.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) splitter: Splitter,
    pub(super) columns: Vec<Column>,
    /// The columns with a job's number, the one to be believed first.
    pub(super) ids: Vec<usize>,
    /// How many fields a record has, with the empty one behind a delimiter at the line's end.
    pub(super) full: usize,
    /// Lines up to the header; 0 if there is none.
    pub(super) before: u64,
    /// The name of the first column that holds a job's number, as the header has it: a header that comes again is passed over by it.
    pub(super) id_name: Vec<u8>,
}

impl Layout {
    /// Finds the layout by the first lines of a log. `named` are the columns of a log without a header, by the names that `sacct` has for them.
    pub(super) fn detect(head: &[u8], named: Option<&str>) -> Result<Layout, String> {
        let Some(names) = named else {
            let unknown = "no header with JobID, and no list of columns that is known: let sacct print its header, or name the columns";
            return Layout::find(head).ok_or(unknown)?.usable();
        };
        let names = names.trim_matches(',');
        let layout = Layout::of_names(names, &lines(head));
        layout.ok_or_else(|| format!("columns = \"{names}\": no delimiter cuts the first line into these"))?.usable()
    }

    /// The layout of a log that has a header, or columns that are known; whether it says enough is another question.
    pub(super) fn find(head: &[u8]) -> Option<Layout> {
        let lines = lines(head);
        Layout::of_header(&lines).or_else(|| HEADERLESS.iter().find_map(|names| Layout::of_names(names, &lines)))
    }

    fn usable(self) -> Result<Layout, String> {
        let has = |wanted: &[Column]| self.columns.iter().any(|column| wanted.contains(column));
        if !has(&[Column::Start, Column::Submit, Column::Eligible, Column::End]) {
            return Err("the log has no column with a time: ask sacct for Submit, Start and End".into());
        }
        if !has(&[Column::End, Column::Elapsed, Column::ElapsedRaw]) {
            return Err("the log has neither End nor Elapsed: ask sacct for Submit, Start, End and Elapsed".into());
        }
        Ok(self)
    }

    /// By a header among the first lines.
    fn of_header(lines: &[&[u8]]) -> Option<Layout> {
        lines.iter().take(LINES_BEFORE).enumerate().find_map(|(number, line)| {
            let splitter = match lines.get(number + 1) {
                Some(dashes) if is_dashes(dashes) => Splitter::Widths(widths(dashes)),
                _ => Splitter::Delimiter(header_delimiter(line)?.to_vec()),
            };
            let mut fields = Fields::new();
            splitter.split(line, &mut fields);
            let names: Vec<&[u8]> = fields.iter().map(|&(from, to)| line[from..to].trim_ascii()).collect();
            let mut layout = Layout::new(splitter, &names);
            layout.before = number as u64 + 1;
            layout.id_name = names[*layout.ids.first()?].to_vec();
            // Other traces have numbers of jobs as well.
            layout.columns.iter().any(|column| column.is_of_slurm()).then_some(layout)
        })
    }

    /// By names given for the columns: the delimiter is what makes sense of the first line.
    fn of_names(names: &str, lines: &[&[u8]]) -> Option<Layout> {
        let names: Vec<&[u8]> = names.split(',').map(|name| name.trim().as_bytes()).collect();
        let line = lines.iter().find(|line| !line.trim_ascii().is_empty())?;
        delimiters(line).into_iter().find_map(|delimiter| {
            let mut layout = Layout::new(Splitter::Delimiter(delimiter), &names);
            let mut fields = Fields::new();
            layout.splitter.split(line, &mut fields);
            layout.full = match fields.len().checked_sub(names.len()) {
                Some(0) => names.len(),
                Some(1) if line[fields[names.len()].0..].is_empty() => names.len() + 1,
                _ => return None,
            };
            layout.fits(line, &fields).then_some(layout)
        })
    }

    fn new(splitter: Splitter, names: &[&[u8]]) -> Layout {
        let mut columns: Vec<Column> = Vec::with_capacity(names.len());
        for name in names {
            let column = Column::named(name);
            // A column that is there twice counts once.
            columns.push(match columns.contains(&column) {
                true if column.is_free() => Column::Free,
                true => Column::Other,
                false => column,
            });
        }
        let ids = [Column::JobId, Column::JobIdRaw].iter().filter_map(|id| columns.iter().position(|column| column == id)).collect();
        Layout { splitter, full: names.len(), columns, ids, before: 0, id_name: Vec::new() }
    }

    /// Whether these fields could be a record: those of the job's number, the state and the times say something that can be read. What lies behind
    /// the last field counts as well.
    pub(super) fn fits(&self, text: &[u8], fields: &Fields) -> bool {
        let mut ids = 0;
        for (column, &(from, to)) in self.columns.iter().zip(fields) {
            let field = text[from..to].trim_ascii();
            let is_right = match column {
                Column::JobId | Column::JobIdRaw => {
                    ids += 1;
                    id::read(field).is_some()
                }
                Column::State => State::read(field).is_some() || is_nothing(field),
                Column::Submit | Column::Eligible | Column::Start | Column::End => instant(field).is_ok(),
                _ => true,
            };
            if !is_right {
                return false;
            }
        }
        ids > 0
    }
}

/// The first lines, without their ends and the mark that some programs put before the first.
fn lines(head: &[u8]) -> Vec<&[u8]> {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    head.split(|&byte| byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line)).collect()
}

/// The delimiter of a header: what stands between its first name and the second. It may stand before the first, too, which is then a column without
/// a name, such as the numbers that programs for tables put before each row.
pub(super) fn header_delimiter(line: &[u8]) -> Option<&[u8]> {
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || *byte == b'%';
    let before = line.iter().position(is_name)?;
    let (unnamed, line) = line.split_at(before);
    let from = line.iter().position(|byte| !is_name(byte))?;
    let to = from + line[from..].iter().position(is_name)?;
    let between = &line[from..to];
    // Quoted names: `"JobID","State"`.
    let between = between.strip_prefix(b"\"").unwrap_or(between);
    let between = between.strip_suffix(b"\"").unwrap_or(between);
    let unnamed = unnamed.strip_suffix(b"\"").unwrap_or(unnamed);
    let is_cut = unnamed.is_empty() || unnamed == between || unnamed == [b"\"\"", between].concat();
    (is_cut && !between.is_empty() && !between.iter().all(|&byte| byte == b' ')).then_some(between)
}

/// What could delimit the fields of a line without a header: each run of characters that no number, name or time contains, whole and shortened.
fn delimiters(line: &[u8]) -> Vec<Vec<u8>> {
    let is_text = |byte: &u8| byte.is_ascii_alphanumeric() || b"_.:-/=+[]%() @*".contains(byte);
    let mut found: Vec<Vec<u8>> = Vec::new();
    let mut rest = line;
    while let Some(from) = rest.iter().position(|byte| !is_text(byte)).filter(|_| found.len() < 32) {
        let run = rest[from..].iter().take_while(|byte| !is_text(byte)).count();
        let delimiter = &rest[from..from + run];
        // A run of two delimiters has an empty field in between. A delimiter may be one character of several bytes.
        for length in [1, 2, 3, 4].into_iter().filter(|&length| length <= run) {
            let part = delimiter[..length].to_vec();
            if std::str::from_utf8(&part).is_ok() && !found.contains(&part) {
                found.push(part);
            }
        }
        rest = &rest[from + run..];
    }
    found
}

/// Whether a line is the one under the header of a table: dashes and blanks.
pub(super) fn is_dashes(line: &[u8]) -> bool {
    line.starts_with(b"--") && line.iter().all(|byte| b"- ".contains(byte))
}

/// The columns of a table by the dashes under its header; the last one goes to the line's end.
pub(super) fn widths(dashes: &[u8]) -> Vec<(usize, usize)> {
    let mut columns = Vec::new();
    let mut from = 0;
    for word in dashes.split(|&byte| byte == b' ') {
        if !word.is_empty() {
            columns.push((from, from + word.len()));
        }
        from += word.len() + 1;
    }
    if let Some(last) = columns.last_mut() {
        last.1 = usize::MAX;
    }
    columns
}
