//! A file as it comes: decompressed by its first bytes, looked at before it is read, and cut into lines without ever being held whole.

use flate2::bufread::MultiGzDecoder;
use std::io::{self, BufRead, BufReader, Read};

/// Room for what was read and not yet given out.
const BUFFER: usize = 256 << 10;

/// A line, or a record of several lines, is at most so long. What is longer is given out cut off, so that one missing quote cannot take in
/// the rest of the file, nor the machine's memory.
pub(crate) const RECORD_MAX: usize = 1 << 20;

/// So much of the file's begin is looked at to tell what it is.
const HEAD: usize = 64 << 10;

/// The bytes of a trace, plain, gzip or zstd, also of several members one behind the other.
pub(crate) struct Input<'a> {
    inner: Box<dyn Read + 'a>,
    buffer: Vec<u8>,
    /// `buffer[start..end]` is still to be given out.
    start: usize,
    end: usize,
    at_end: bool,
    /// The number of the next line.
    line: u64,
    /// What it is compressed by.
    packed: Option<&'static str>,
}

/// A line without its end, or a record of several lines.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line<'b> {
    /// The number of its first line, from 1.
    pub(crate) number: u64,
    /// Its bytes, at most [`RECORD_MAX`].
    pub(crate) text: &'b [u8],
    /// Whether it was longer than that, or the record was not complete within its bound.
    pub(crate) cut: bool,
}

impl<'a> Input<'a> {
    /// Looks at the first bytes and decompresses what is compressed.
    pub(crate) fn open(reader: impl Read + 'a) -> io::Result<Input<'a>> {
        let mut reader = BufReader::with_capacity(64 << 10, reader);
        let mut magic = [0; 4];
        let known = fill(&mut reader, &mut magic)?;
        let whole = BufReader::with_capacity(64 << 10, io::Cursor::new(magic).take(known as u64).chain(reader));
        let (inner, packed): (Box<dyn Read + 'a>, _) = match magic {
            [0x1f, 0x8b, ..] => (Box::new(MultiGzDecoder::new(whole)), Some("gzip")),
            // A frame, or one that is to be skipped before it.
            [0x28, 0xb5, 0x2f, 0xfd] | [0x50..=0x5f, 0x2a, 0x4d, 0x18] => {
                (Box::new(zstd::stream::read::Decoder::with_buffer(whole)?), Some("zstd"))
            }
            _ => (Box::new(whole), None),
        };
        Ok(Input { inner, buffer: vec![0; BUFFER], start: 0, end: 0, at_end: false, line: 1, packed })
    }

    /// The first bytes, to tell what they are; nothing is given out yet.
    pub(crate) fn head(&mut self) -> io::Result<&[u8]> {
        while self.end - self.start < HEAD && !self.at_end {
            self.more()?;
        }
        Ok(&self.buffer[self.start..self.end.min(self.start + HEAD)])
    }

    /// The next line; `None` at the end of the file.
    pub(crate) fn line(&mut self) -> io::Result<Option<Line<'_>>> {
        self.record(RECORD_MAX, |_| true)
    }

    /// The next record: lines are added until `complete`, which is shown each of them without its end, says that it is whole. If it is not
    /// within `max` bytes (at most [`RECORD_MAX`]), its first line is given out alone, marked as cut, and reading goes on with the second.
    pub(crate) fn record(&mut self, max: usize, mut complete: impl FnMut(&[u8]) -> bool) -> io::Result<Option<Line<'_>>> {
        let (max, number) = (max.min(RECORD_MAX), self.line);
        // Offsets from `start`, which moves when the buffer does.
        let (mut lines, mut piece, mut first) = (0, 0, None);
        loop {
            let Some(stop) = self.line_end(piece, max)? else {
                return if lines == 0 { self.cut_line(number).map(Some) } else { Ok(first.map(|end| self.give(number, end, 1, true))) };
            };
            let ended = stop < self.end - self.start;
            if !ended && stop == 0 {
                return Ok(None);
            }
            lines += 1;
            first.get_or_insert(stop);
            let text = &self.buffer[self.start + piece..self.start + stop];
            if complete(text.strip_suffix(b"\r").unwrap_or(text)) {
                return Ok(Some(self.give(number, stop, lines, false)));
            }
            if !ended {
                return Ok(first.map(|end| self.give(number, end, 1, true)));
            }
            piece = stop + 1;
        }
    }

    /// Where the line that begins at `from` (counted from what is next) ends: at its newline, or at the end of the file. `None` if it is
    /// longer than `max`, counted from what is next.
    fn line_end(&mut self, from: usize, max: usize) -> io::Result<Option<usize>> {
        let mut seen = from;
        loop {
            let found = memchr::memchr(b'\n', &self.buffer[self.start + seen..self.end]).map(|at| seen + at);
            let known = self.end - self.start;
            match found {
                Some(at) => return Ok((at <= max).then_some(at)),
                None if known > max => return Ok(None),
                None if self.at_end => return Ok(Some(known)),
                None => seen = known,
            }
            self.more()?;
        }
    }

    /// Gives out what is next up to `stop`, and the newline behind it.
    fn give(&mut self, number: u64, stop: usize, lines: u64, cut: bool) -> Line<'_> {
        let begin = self.start;
        self.start = (begin + stop + 1).min(self.end);
        self.line += lines;
        let text = &self.buffer[begin..begin + stop];
        Line { number, text: text.strip_suffix(b"\r").unwrap_or(text), cut }
    }

    /// The begin of a line that is too long; its rest is passed over.
    fn cut_line(&mut self, number: u64) -> io::Result<Line<'_>> {
        let kept = self.buffer[self.start..self.start + HEAD.min(self.end - self.start)].to_vec();
        loop {
            if let Some(at) = memchr::memchr(b'\n', &self.buffer[self.start..self.end]) {
                self.start += at + 1;
                break;
            }
            self.start = self.end;
            if self.at_end {
                break;
            }
            self.more()?;
        }
        self.line += 1;
        // Shown from a place of its own: `start` is behind the line now.
        let begin = self.end;
        self.buffer.truncate(begin);
        self.buffer.extend_from_slice(&kept);
        Ok(Line { number, text: &self.buffer[begin..], cut: true })
    }

    /// What a decoder cannot go on with, said for people.
    fn damaged(&self, error: io::Error) -> io::Error {
        let Some(packed) = self.packed else { return error };
        let after = memchr::memchr_iter(b'\n', &self.buffer[self.start..self.end]).count() as u64 + self.line - 1;
        let message = format!(
            "what {packed} packed is cut off or damaged after line {after} ({error}): fetch the file again, or unpack what can be read (`{packed} -dc FILE > PART`) and take that"
        );
        io::Error::new(error.kind(), message)
    }

    /// Reads on. What is still to be given out moves to the front; the buffer grows only for a record that is longer than it.
    fn more(&mut self) -> io::Result<()> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.buffer.len() < BUFFER.max(self.end + BUFFER / 2) {
            self.buffer.resize(self.end + BUFFER, 0);
        }
        let read = loop {
            match self.inner.read(&mut self.buffer[self.end..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read.map_err(|error| self.damaged(error))?,
            }
        };
        self.at_end = read == 0;
        self.end += read;
        Ok(())
    }
}

impl Read for Input<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(into)?;
        self.consume(read);
        Ok(read)
    }
}

/// For formats that are no lines, such as JSON. Line numbers do not count what is read so.
impl BufRead for Input<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.start == self.end && !self.at_end {
            self.more()?;
        }
        Ok(&self.buffer[self.start..self.end])
    }

    fn consume(&mut self, amount: usize) {
        self.start = (self.start + amount).min(self.end);
    }
}

/// Fills `bytes` as far as there is something.
fn fill(reader: &mut impl Read, bytes: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < bytes.len() {
        match reader.read(&mut bytes[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn lines(bytes: &[u8]) -> Vec<(u64, Vec<u8>, bool)> {
        let mut input = Input::open(bytes).expect("bytes can be read");
        let mut found = Vec::new();
        while let Some(line) = input.line().expect("bytes can be read") {
            found.push((line.number, line.text.to_vec(), line.cut));
        }
        found
    }

    #[test]
    fn lines_end_in_either_way_or_with_the_file() {
        let expected = [(1, b"a".to_vec(), false), (2, b"".to_vec(), false), (3, b"b,c".to_vec(), false)];
        assert_eq!(lines(b"a\n\nb,c"), expected);
        assert_eq!(lines(b"a\r\n\r\nb,c\r\n"), expected);
        assert!(lines(b"").is_empty());
    }

    #[test]
    fn members_of_gzip_and_frames_of_zstd_follow_each_other() {
        let gz = |text: &[u8]| {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(text).and_then(|()| encoder.finish()).expect("memory takes it")
        };
        let zst = |text: &[u8]| zstd::encode_all(text, 1).expect("memory takes it");
        let expected = lines(b"one\ntwo\nthree\n");
        assert_eq!(lines(&[gz(b"one\ntw"), gz(b"o\nthree\n")].concat()), expected);
        assert_eq!(lines(&[zst(b"one\ntw"), zst(b"o\nthree\n")].concat()), expected);
        let cut_off = gz(&b"one\ntwo\n".repeat(100));
        let mut input = Input::open(&cut_off[..cut_off.len() / 2]).expect("its begin is whole");
        assert!(std::iter::repeat_with(|| input.line().map(|line| line.is_some())).any(|line| line.is_err()), "an end that is missing");
    }

    #[test]
    fn a_line_without_end_is_cut_and_costs_itself_only() {
        let text = [b"a\n".to_vec(), vec![b'x'; 3 * RECORD_MAX], b"\nb\n".to_vec()].concat();
        let found = lines(&text);
        let shown: Vec<(u64, usize, bool)> = found.iter().map(|(number, text, cut)| (*number, text.len(), *cut)).collect();
        assert_eq!(shown, [(1, 1, false), (2, HEAD, true), (3, 1, false)]);
    }

    #[test]
    fn a_record_of_several_lines_or_its_first_line_alone() {
        let balanced = |line: &[u8], open: &mut bool| {
            *open ^= line.iter().filter(|&&byte| byte == b'"').count() % 2 == 1;
            !*open
        };
        let mut input = Input::open(b"a,\"1\n2\",b\nc,\"3\nd\n".as_slice()).expect("bytes can be read");
        let mut next = || {
            let mut open = false;
            let line = input.record(1000, |line| balanced(line, &mut open)).expect("bytes can be read");
            line.map(|line| (line.number, String::from_utf8_lossy(line.text).into_owned(), line.cut))
        };
        assert_eq!(next(), Some((1, "a,\"1\n2\",b".into(), false)));
        assert_eq!(next(), Some((3, "c,\"3".into(), true)));
        assert_eq!(next(), Some((4, "d".into(), false)));
        assert_eq!(next(), None);
    }
}
