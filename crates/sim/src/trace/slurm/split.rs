//! A line cut into fields.

use super::column::Column;

/// How a log separates its fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Splitter {
    /// By these bytes, one or several. In a comma- or semicolon-separated log fields may stand in double quotes.
    Delimiter(Vec<u8>),
    /// By columns of a fixed width: from where to where in a line, the last one to its end.
    Widths(Vec<(usize, usize)>),
}

/// The fields of a record, by where they lie in its text.
pub(super) type Fields = Vec<(usize, usize)>;

impl Splitter {
    /// Cuts a text into its fields.
    pub(super) fn split(&self, text: &[u8], fields: &mut Fields) {
        fields.clear();
        match self {
            Splitter::Widths(columns) => {
                let inside = |&(from, to): &(usize, usize)| (from.min(text.len()), to.min(text.len()));
                fields.extend(columns.iter().map(inside));
            }
            Splitter::Delimiter(delimiter) => match delimiter.as_slice() {
                b"," | b";" if memchr::memchr(b'"', text).is_some() => quoted(text, delimiter[0], fields),
                [byte] => {
                    let mut from = 0;
                    for at in memchr::memchr_iter(*byte, text) {
                        fields.push((from, at));
                        from = at + 1;
                    }
                    fields.push((from, text.len()));
                }
                bytes => several(text, bytes, fields),
            },
        }
    }
}

/// Split by a delimiter of several bytes, such as `|#` or `☃`.
fn several(text: &[u8], delimiter: &[u8], fields: &mut Fields) {
    let mut from = 0;
    for at in memchr::memchr_iter(delimiter[0], text) {
        if at >= from && text[at..].starts_with(delimiter) {
            fields.push((from, at));
            from = at + delimiter.len();
        }
    }
    fields.push((from, text.len()));
}

/// Split where fields may be quoted. A quote that is not closed before a delimiter or the end is a character like any other.
fn quoted(text: &[u8], delimiter: u8, fields: &mut Fields) {
    let mut from = 0;
    // The fields of a line with many unclosed quotes are not searched to its end again and again.
    let mut last_quote = memchr::memrchr(b'"', text).unwrap_or(0);
    loop {
        let close = (text.get(from) == Some(&b'"') && last_quote > from).then(|| closing(&text[from + 1..], delimiter)).flatten();
        if let Some(close) = close {
            let end = from + 1 + close;
            fields.push((from + 1, end));
            if end + 1 >= text.len() {
                return;
            }
            from = end + 2;
            continue;
        }
        if text.get(from) == Some(&b'"') {
            last_quote = 0;
        }
        match memchr::memchr(delimiter, &text[from..]) {
            Some(at) => {
                fields.push((from, from + at));
                from += at + 1;
            }
            None => break,
        }
    }
    fields.push((from, text.len()));
}

/// Where a quoted field ends: at a quote before a delimiter or the end; two quotes are one of the text.
fn closing(text: &[u8], delimiter: u8) -> Option<usize> {
    let mut from = 0;
    while let Some(found) = memchr::memchr(b'"', &text[from..]) {
        let at = from + found;
        match text.get(at + 1) {
            Some(b'"') => from = at + 2,
            next if next.is_none_or(|&next| next == delimiter) => return Some(at),
            _ => from = at + 1,
        }
    }
    None
}

/// Brings a record with more fields than columns into line: free text that contains the delimiter, and in a comma-separated log the lists of
/// resources and nodes. `fits` says whether the fields now make sense. Returns whether they do.
pub(super) fn align(text: &[u8], fields: &mut Fields, columns: &[Column], full: usize, fits: impl Fn(&Fields) -> bool) -> bool {
    let lists = columns.iter().any(|column| column.is_list()).then(|| with_lists(text, fields, columns, full));
    for candidate in lists.into_iter().chain([fields.clone()]) {
        if candidate.len() == full && fits(&candidate) {
            *fields = candidate;
            return true;
        }
        let Some(surplus) = candidate.len().checked_sub(full).filter(|&surplus| surplus > 0) else { continue };
        for (number, _) in columns.iter().enumerate().filter(|(_, column)| column.is_free()) {
            let mut tried = candidate.clone();
            tried[number].1 = candidate[number + surplus].1;
            tried.drain(number + 1..=number + surplus);
            if fits(&tried) {
                *fields = tried;
                return true;
            }
        }
    }
    false
}

/// Fields that are parts of one list put together: as long as a bracket is open, or the next part is an entry with a name that the list has not had.
fn with_lists(text: &[u8], fields: &Fields, columns: &[Column], full: usize) -> Fields {
    let mut surplus = fields.len().saturating_sub(full);
    let mut parts = fields.iter().copied().peekable();
    let mut together = Vec::with_capacity(full);
    while let Some((from, mut to)) = parts.next() {
        let column = columns.get(together.len()).copied().unwrap_or(Column::Other);
        while let Some(&(next_from, next_to)) = parts.peek().filter(|_| surplus > 0 && column.is_list()) {
            if !goes_on(&text[from..to], &text[next_from..next_to]) {
                break;
            }
            to = next_to;
            surplus -= 1;
            parts.next();
        }
        together.push((from, to));
    }
    together
}

fn goes_on(list: &[u8], next: &[u8]) -> bool {
    let count = |bracket| memchr::memchr_iter(bracket, list).count();
    let name = |entry: &[u8]| memchr::memchr2(b'=', b':', entry).map(|at| entry[..at].len());
    let is_open = count(b'[') > count(b']') || count(b'(') > count(b')');
    let repeats = |length: usize| {
        list.split(|&byte| byte == b',')
            .any(|entry| entry.len() > length && entry[..length] == next[..length] && b"=:".contains(&entry[length]))
    };
    let is_time = next.first().is_some_and(u8::is_ascii_digit) && memchr::memchr(b'=', next).is_none();
    is_open || (!list.is_empty() && !is_time && name(next).is_some_and(|length| length > 0 && !repeats(length)))
}
