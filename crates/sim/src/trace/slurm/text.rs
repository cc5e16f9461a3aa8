//! `sacct` as text, line by line.

use super::attempt::Record;
use super::collect::Collector;
use super::column::Column;
use super::id::{self, JobId, Named};
use super::layout::Layout;
use super::split::{Fields, align};
use super::state::State;
use super::tres::{Resources, resources};
use super::value::{failed, instant, is_nothing, length, limit, quantity};
use crate::trace::input::{Input, RECORD_MAX};
use crate::trace::number::integer;

/// More fields than columns by so many are no longer free text with the delimiter in it.
const SURPLUS_MAX: usize = 1000;

/// A record goes on over so many lines and bytes at most; what is longer lost its end.
const LINES_MAX: usize = 1000;
const BEGUN_MAX: usize = 256 << 10;

/// Reads a log whose first lines have this layout.
pub(super) fn read(input: &mut Input<'_>, layout: &Layout, out: &mut Collector<'_>) -> Result<(), String> {
    let mut reader = Reader { layout, fields: Fields::new(), begun: Vec::new(), begun_at: 0, lines: 0, has: 0 };
    while let Some(line) = input.line().map_err(|error| error.to_string())? {
        if line.number <= layout.before {
            continue;
        }
        if line.cut {
            out.bad(line.number, || format!("longer than {} KiB", RECORD_MAX >> 10));
            continue;
        }
        let text = if line.number == 1 { line.text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line.text) } else { line.text };
        reader.line(text, line.number, out);
    }
    reader.give_up(out);
    Ok(())
}

/// Puts lines together to records.
struct Reader<'l> {
    layout: &'l Layout,
    fields: Fields,
    /// A record whose end has not come yet, its first line, how many lines it has, and how many fields at least.
    begun: Vec<u8>,
    begun_at: u64,
    lines: usize,
    has: usize,
}

impl Reader<'_> {
    /// One more line: a record, a part of one, or nothing.
    fn line(&mut self, text: &[u8], number: u64, out: &mut Collector<'_>) {
        self.layout.splitter.split(text, &mut self.fields);
        let is_whole = self.fields.len() >= self.layout.full;
        if self.begun.is_empty() {
            if text.trim_ascii().is_empty() {
                // An empty line between records is none.
            } else if is_whole {
                self.record(text, number, out);
            } else {
                (self.begun, self.begun_at, self.lines, self.has) = (text.to_vec(), number, 1, self.fields.len());
            }
            return;
        }
        // Text goes on over several lines, but no record begins inside another.
        if is_whole || (self.fields.len() > 1 && self.begins(text)) {
            self.give_up(out);
            return self.line(text, number, out);
        }
        if self.begun.len() + text.len() > BEGUN_MAX || self.lines == LINES_MAX {
            return self.give_up(out);
        }
        self.begun.push(b'\n');
        self.begun.extend_from_slice(text);
        self.lines += 1;
        self.has += self.fields.len() - 1;
        if self.has >= self.layout.full {
            let whole = std::mem::take(&mut self.begun);
            self.layout.splitter.split(&whole, &mut self.fields);
            // Fewer than line by line if a quoted field holds the delimiter as well as the line's end.
            if self.fields.len() >= self.layout.full {
                self.record(&whole, self.begun_at, out);
            } else {
                (self.begun, self.has) = (whole, self.fields.len());
            }
        }
    }

    /// Whether a line that is no whole record looks like the begin of one.
    fn begins(&self, text: &[u8]) -> bool {
        self.layout.fits(text, &self.fields)
    }

    /// What was begun does not end.
    fn give_up(&mut self, out: &mut Collector<'_>) {
        if !self.begun.is_empty() {
            self.layout.splitter.split(&self.begun, &mut self.fields);
            let (has, full) = (self.fields.len(), self.layout.full);
            out.bad(self.begun_at, || format!("has {has} fields, the header has {full}"));
            self.begun.clear();
        }
    }

    /// One record.
    fn record(&mut self, text: &[u8], number: u64, out: &mut Collector<'_>) {
        let layout = self.layout;
        let has = self.fields.len();
        if has > layout.full {
            let fits = |fields: &Fields| layout.fits(text, fields);
            if has - layout.full > SURPLUS_MAX || !align(text, &mut self.fields, &layout.columns, layout.full, fits) {
                return out.bad(number, || format!("has {has} fields, the header has {}", layout.full));
            }
        }
        match record(layout, text, &self.fields) {
            Ok(record) => out.take(&record, number),
            Err(NoJob::Step) => out.step(number),
            Err(NoJob::Header) => {}
            Err(NoJob::Bad(reason)) => out.bad(number, || reason),
        }
    }
}

/// Why a record is no job.
enum NoJob {
    /// It is a step of one.
    Step,
    /// It is the header, or the line below it.
    Header,
    /// It cannot be read.
    Bad(String),
}

impl From<String> for NoJob {
    fn from(reason: String) -> NoJob {
        NoJob::Bad(reason)
    }
}

/// What the fields of a record say one by one.
#[derive(Default)]
struct Said<'t> {
    record: Record<'t>,
    array: Option<i64>,
    task: Option<u32>,
    het: Option<i64>,
    offset: Option<u32>,
    /// Of AllocTRES, AllocGRES, ReqTRES, ReqGRES.
    lists: [Resources<'t>; 4],
}

/// What a record says.
fn record<'t>(layout: &Layout, text: &'t [u8], fields: &Fields) -> Result<Record<'t>, NoJob> {
    let field_of = |column: usize| fields.get(column).map_or(b"".as_slice(), |&(from, to)| text[from..to].trim_ascii());
    let own = layout.ids.iter().map(|&column| field_of(column)).find(|field| !field.is_empty());
    let own = own.ok_or_else(|| NoJob::Bad("has no job's number".into()))?;
    let (id, tasks) = match id::read(own) {
        Some(Named::Step) => return Err(NoJob::Step),
        Some(Named::Job(id)) => (id, false),
        Some(Named::Tasks(id)) => (id, true),
        None if own.eq_ignore_ascii_case(&layout.id_name) || own.starts_with(b"---") => return Err(NoJob::Header),
        None => return Err(NoJob::Bad(wrong("job's number", own))),
    };
    let mut said = Said::default();
    for (column, &(from, to)) in layout.columns.iter().zip(fields) {
        said.field(*column, text[from..to].trim_ascii())?;
    }
    let Said { mut record, array, task, het, offset, lists: [alloc_tres, alloc_gres, req_tres, req_gres] } = said;
    record.without_nodes |= record.nodes == Some(0);
    let nodes = record.nodes.unwrap_or(alloc_tres.nodes.max(req_tres.nodes));
    record.resources(&[alloc_tres, alloc_gres.on(nodes), req_tres, req_gres.on(nodes)]);
    // The database has the numbers of arrays and of heterogeneous jobs in columns of their own.
    record.id = match (het, array) {
        (Some(het), _) => JobId { job: het.unsigned_abs(), task: None, component: offset },
        (None, Some(array)) => JobId { job: array.unsigned_abs(), task, component: None },
        (None, None) => id,
    };
    record.tasks = tasks;
    Ok(record)
}

impl<'t> Said<'t> {
    /// One field.
    fn field(&mut self, column: Column, field: &'t [u8]) -> Result<(), String> {
        let record = &mut self.record;
        match column {
            Column::Other | Column::Free | Column::JobId | Column::JobIdRaw => {}
            Column::ArrayJob => self.array = integer(field).filter(|&job| job > 0),
            Column::ArrayTask => self.task = quantity(field).ok().flatten(),
            Column::HetJob => self.het = integer(field).filter(|&job| job > 0),
            Column::HetOffset => self.offset = quantity(field).ok().flatten(),
            Column::Name => record.name = field,
            Column::Line => record.submit_line = field,
            Column::Cluster => record.cluster = field,
            Column::Account => record.account = field,
            Column::User => record.user = field,
            Column::Partition => record.partition = field,
            Column::Qos => record.qos = field,
            Column::State if is_nothing(field) => {}
            Column::State => record.state = Some(State::read(field).ok_or_else(|| wrong("state", field))?),
            Column::Submit => record.submit = time(field, "time of submission")?,
            Column::Eligible => record.eligible = time(field, "time")?,
            Column::Start => record.start = time(field, "time of a start")?,
            Column::End => record.end = time(field, "time of an end")?,
            Column::ElapsedRaw | Column::Elapsed => {
                let elapsed = length(field, 1000).map_err(|()| wrong("length of time", field))?;
                record.elapsed = record.elapsed.or(elapsed);
            }
            Column::Limit => record.limit = record.limit.max(limit(field).map_err(|()| wrong("time limit", field))?),
            Column::Nodes => record.nodes = quantity(field).map_err(|()| wrong("number of nodes", field))?,
            Column::Cpus => record.cpus = quantity(field).map_err(|()| wrong("number of CPUs", field))?,
            Column::NodeList => record.without_nodes |= is_nothing(field),
            Column::AllocTres => {
                self.lists[0] = list(field)?;
                record.without_nodes |= field.is_empty();
            }
            Column::AllocGres => self.lists[1] = list(field)?,
            Column::ReqTres => self.lists[2] = list(field)?,
            Column::ReqGres => self.lists[3] = list(field)?,
            Column::ExitCode => record.exit_failed = failed(field).map_err(|()| wrong("exit code", field))?,
        }
        Ok(())
    }
}

fn list(field: &[u8]) -> Result<Resources<'_>, String> {
    resources(field).map_err(|()| wrong("list of resources", field))
}

fn time(field: &[u8], what: &str) -> Result<Option<i64>, String> {
    instant(field).map_err(|()| wrong(what, field))
}

/// What is wrong with a field, with the begin of it.
fn wrong(what: &str, field: &[u8]) -> String {
    let shown = &field[..field.len().min(60)];
    let more = if shown.len() < field.len() { "..." } else { "" };
    format!("`{}{more}` is no {what}", String::from_utf8_lossy(shown))
}
