//! The jobs of a JSON document cut out one by one, so that neither the document nor more than one job is ever held, and a job that cannot be
//! read costs nothing but itself.
//!
//! Looked for are the objects in the list `jobs` (or `nodes`) of an outermost object, in an outermost list, and outermost objects without
//! such a list, one behind the other (`jq -c '.jobs[]'`).

use std::io::{self, BufRead};

/// One object is at most so long; a job with its ten thousands of steps stays below.
pub(super) const OBJECT_MAX: usize = 64 << 20;

/// Whether a file that begins so is JSON.
pub(super) fn is_json(head: &[u8]) -> bool {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
    matches!(head, [b'{', ..] | [b'[', ..]) && head[1..].trim_ascii_start().first().is_none_or(|byte| b"\"{[]}".contains(byte))
}

/// An object cut out.
pub(super) struct Cut<'c> {
    /// Its number in the file, from 1.
    pub(super) number: u64,
    /// Its text; incomplete if it is too long, or the file ends in it.
    pub(super) text: &'c [u8],
    pub(super) whole: bool,
}

/// Where the scanner stands.
struct Scanner<'n> {
    /// The list that is looked for.
    list: &'n [u8],
    depth: u32,
    /// Objects at this depth are cut out; 0 where none is looked for.
    cut_at: u32,
    in_string: bool,
    escaped: bool,
    /// Whether bytes are kept.
    keeps: bool,
    kept: Vec<u8>,
    too_long: bool,
    /// The last string at depth 1: the key before a list.
    key: Vec<u8>,
    number: u64,
}

/// Hands each object of the lists called `list` to `take`.
pub(super) fn objects(input: &mut impl BufRead, list: &str, mut take: impl FnMut(Cut<'_>)) -> io::Result<()> {
    let mut scanner = Scanner {
        list: list.as_bytes(),
        depth: 0,
        cut_at: 1,
        in_string: false,
        escaped: false,
        keeps: false,
        kept: Vec::new(),
        too_long: false,
        key: Vec::new(),
        number: 0,
    };
    loop {
        let bytes = match input.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            bytes => bytes?,
        };
        if bytes.is_empty() {
            break;
        }
        let length = bytes.len();
        scanner.scan(bytes, &mut take);
        input.consume(length);
    }
    if scanner.keeps && scanner.cut_at > 0 && scanner.depth >= scanner.cut_at {
        scanner.give(false, &mut take);
    }
    Ok(())
}

impl Scanner<'_> {
    fn scan(&mut self, bytes: &[u8], take: &mut impl FnMut(Cut<'_>)) {
        // What is kept begins here.
        let mut from = 0;
        let mut at = 0;
        while at < bytes.len() {
            if self.in_string {
                at += self.string(&bytes[at..]);
                continue;
            }
            let byte = bytes[at];
            match byte {
                b'"' => {
                    self.in_string = true;
                    if self.depth == 1 {
                        self.key.clear();
                    }
                }
                b'{' | b'[' => {
                    self.depth = self.depth.saturating_add(1);
                    if byte == b'[' && (self.depth == 1 || (self.depth == 2 && self.key == self.list && self.cut_at == 1)) {
                        // The objects of this list it is, not the one around it.
                        self.number -= u64::from(self.keeps);
                        (self.cut_at, self.keeps, self.too_long) = (self.depth + 1, false, false);
                        self.kept.clear();
                    } else if byte == b'{' && self.depth == self.cut_at {
                        (self.keeps, self.too_long, from) = (true, false, at);
                        self.kept.clear();
                        self.number += 1;
                    }
                }
                b'}' | b']' => {
                    if self.keeps && self.depth == self.cut_at {
                        self.keep(&bytes[from..=at]);
                        self.give(!self.too_long, take);
                    } else if byte == b']' && self.depth + 1 == self.cut_at {
                        // What follows the list in the outermost object is none of it.
                        self.cut_at = if self.depth == 1 { 1 } else { 0 };
                    }
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        self.cut_at = 1;
                    }
                }
                _ => {}
            }
            at += 1;
        }
        if self.keeps {
            self.keep(&bytes[from..]);
        }
    }

    /// Goes on in a string; returns how many bytes belong to it.
    fn string(&mut self, bytes: &[u8]) -> usize {
        let mut at = 0;
        if self.escaped {
            self.escaped = false;
            at = 1;
        }
        let end = loop {
            match memchr::memchr2(b'"', b'\\', &bytes[at..]) {
                None => break bytes.len(),
                Some(found) if bytes[at + found] == b'"' => {
                    self.in_string = false;
                    break at + found + 1;
                }
                Some(found) if at + found + 1 == bytes.len() => {
                    self.escaped = true;
                    break bytes.len();
                }
                Some(found) => at += found + 2,
            }
        };
        if self.depth == 1 && self.key.len() <= self.list.len() {
            let text = bytes[..end].strip_suffix(b"\"").filter(|_| !self.in_string).unwrap_or(&bytes[..end]);
            self.key.extend_from_slice(&text[..text.len().min(self.list.len() + 1)]);
        }
        end
    }

    fn keep(&mut self, bytes: &[u8]) {
        self.too_long |= self.kept.len() + bytes.len() > OBJECT_MAX;
        if !self.too_long {
            self.kept.extend_from_slice(bytes);
        }
    }

    fn give(&mut self, whole: bool, take: &mut impl FnMut(Cut<'_>)) {
        take(Cut { number: self.number, text: &self.kept, whole });
        self.keeps = false;
        self.kept.clear();
    }
}
