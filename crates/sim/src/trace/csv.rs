//! Comma-separated records, cut without copying.

use super::input::{Input, Line, RECORD_MAX};
use std::borrow::Cow;
use std::io;

/// The fields of one record: their places in it, kept from record to record.
#[derive(Default)]
pub(super) struct Fields {
    /// Where each field begins and ends.
    places: Vec<(u32, u32)>,
    quoted: bool,
}

/// A record has at most so many fields; what follows is left aside.
const FIELDS_MAX: usize = 4096;

/// The next record; one with an open quote goes on over the end of its line.
pub(super) fn record<'b>(input: &'b mut Input<'_>) -> io::Result<Option<Line<'b>>> {
    let mut open = false;
    input.record(RECORD_MAX, |line| {
        let quotes = if memchr::memchr(b'"', line).is_none() { 0 } else { memchr::memchr_iter(b'"', line).count() };
        open ^= quotes % 2 == 1;
        !open
    })
}

impl Fields {
    /// Cuts a record at its commas, those inside quotes left aside.
    pub(super) fn cut(&mut self, text: &[u8]) {
        self.places.clear();
        self.quoted = memchr::memchr(b'"', text).is_some();
        let (mut begin, mut inside) = (0, false);
        // Fields are short: a plain walk is quicker than a search for each comma.
        for (at, &byte) in (0..).zip(text) {
            match byte {
                b',' if !inside && self.places.len() < FIELDS_MAX => {
                    self.places.push((begin, at));
                    begin = at + 1;
                }
                b'"' => inside = !inside,
                _ => {}
            }
        }
        self.places.push((begin, text.len() as u32));
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// A field of the record that was cut, without its quotes and the blanks around it; empty where there is none.
    pub(super) fn get<'t>(&self, text: &'t [u8], index: usize) -> Cow<'t, [u8]> {
        let Some(&(begin, end)) = self.places.get(index) else { return Cow::Borrowed(b"") };
        let field = text[begin as usize..end as usize].trim_ascii();
        match field {
            [b'"', inner @ .., b'"'] if self.quoted => unquoted(inner),
            _ => Cow::Borrowed(field),
        }
    }
}

/// Two quotes inside quotes are one.
fn unquoted(inner: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memchr(b'"', inner).is_none() {
        return Cow::Borrowed(inner);
    }
    let mut text = Vec::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(at) = memchr::memchr(b'"', rest) {
        text.extend_from_slice(&rest[..=at]);
        rest = rest[at + 1..].strip_prefix(b"\"").unwrap_or(&rest[at + 1..]);
    }
    text.extend_from_slice(rest);
    Cow::Owned(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(text: &str) -> Vec<String> {
        let mut fields = Fields::default();
        fields.cut(text.as_bytes());
        (0..fields.len()).map(|index| String::from_utf8_lossy(&fields.get(text.as_bytes(), index)).into_owned()).collect()
    }

    #[test]
    fn fields_with_and_without_quotes() {
        assert_eq!(fields("a, b ,,c"), ["a", "b", "", "c"]);
        assert_eq!(fields(r#""a,b",c,"say ""x""","#), ["a,b", "c", "say \"x\"", ""]);
        assert_eq!(fields(""), [""]);
        assert_eq!(fields("\"open,b"), ["\"open,b"]);
        assert_eq!(fields(r#""""#), [""]);
    }
}
