//! Sentences kept once: a template without its numbers, and the numbers.
//!
//! The reasons of a month are a hundred thousand sentences that differ in their figures only. The sentence itself is the core's; here it is
//! taken apart and put together again to the letter.

use std::collections::BTreeMap;

/// Where a template has a number. Labels do not contain it; were it in one, that one would lose it.
const HOLE: char = '\u{1}';

/// Digit runs up to this length are numbers; longer ones stay in the template.
const DIGITS_MAX: usize = 9;

/// A sentence: its template, and where its numbers begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reason {
    pub template: u32,
    first: u32,
}

/// All sentences of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Reasons {
    by_text: BTreeMap<String, u32>,
    templates: Vec<String>,
    /// How many holes a template has.
    holes: Vec<u32>,
    /// value × 4 + the zeros before it: `05` is 5 with one zero.
    numbers: Vec<u64>,
}

impl Reasons {
    /// Takes a sentence in.
    pub(super) fn add(&mut self, text: &str) -> Reason {
        let first = u32::try_from(self.numbers.len()).expect("the numbers of a run's reasons are counted by u32");
        let mut template = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
            let length = rest[at..].bytes().take_while(u8::is_ascii_digit).count();
            template.extend(rest[..at].chars().filter(|c| *c != HOLE));
            self.digits(&rest[at..at + length], &mut template);
            rest = &rest[at + length..];
        }
        template.extend(rest.chars().filter(|c| *c != HOLE));
        let next = self.templates.len() as u32;
        let template = *self.by_text.entry(template).or_insert_with_key(|template| {
            self.templates.push(template.clone());
            self.holes.push(template.chars().filter(|c| *c == HOLE).count() as u32);
            next
        });
        Reason { template, first }
    }

    fn digits(&mut self, digits: &str, template: &mut String) {
        let zeros = digits.bytes().take_while(|digit| *digit == b'0').count().min(digits.len() - 1);
        match digits.parse::<u64>() {
            Ok(value) if digits.len() <= DIGITS_MAX && zeros < 4 => {
                self.numbers.push(value * 4 + zeros as u64);
                template.push(HOLE);
            }
            _ => template.push_str(digits),
        }
    }

    /// The numbers of a sentence, in order.
    pub(super) fn numbers(&self, reason: Reason) -> &[u64] {
        let first = reason.first as usize;
        &self.numbers[first..first + self.holes[reason.template as usize] as usize]
    }

    /// All templates, by number.
    pub(super) fn templates(&self) -> &[String] {
        &self.templates
    }
}

#[cfg(test)]
mod tests {
    use super::{HOLE, Reasons};

    /// As the page does it.
    fn text(reasons: &Reasons, reason: super::Reason) -> String {
        let mut numbers = reasons.numbers(reason).iter();
        let parts = reasons.templates()[reason.template as usize].chars().map(|c| match c {
            HOLE => numbers.next().map(|n| format!("{}{}", "0".repeat((n % 4) as usize), n / 4)).expect("one a hole"),
            c => c.to_string(),
        });
        parts.collect()
    }

    #[test]
    fn sentences_come_out_as_they_went_in() {
        let mut reasons = Reasons::default();
        let sentences = [
            "below its share (lab 98.03 % > lab/a2 0.00 %), on free GPUs",
            "below its share (lab 7.50 % > lab/a2 123.07 %), on free GPUs",
            "",
            "yields to w000012345678 at 26:05",
            "0000007",
        ];
        let added: Vec<_> = sentences.iter().map(|sentence| reasons.add(sentence)).collect();
        assert_eq!(added[0].template, added[1].template);
        for (sentence, reason) in sentences.iter().zip(added) {
            assert_eq!(text(&reasons, reason), *sentence);
        }
    }
}
