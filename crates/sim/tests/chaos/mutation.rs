//! Damaged logs: whatever is done to a log, reading it ends in an answer.

use crate::dice::Dice;

/// Numbers at which arithmetic breaks, and words that mean nothing.
const VALUES: [&str; 22] = [
    "0",
    "1",
    "-1",
    "7",
    "64",
    "65",
    "1000000",
    "4294967295",
    "4294967296",
    "2147483648",
    "-2147483648",
    "3999999999999",
    "-3999999999999",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551615",
    "1e400",
    "0.5",
    "null",
    "true",
    "\"x\"",
    "[]",
];

/// The log after one kind of damage, maybe several times.
pub(crate) fn damaged(log: &str, dice: &mut Dice) -> Vec<u8> {
    let kind = dice.below(10);
    if kind < 3 {
        return damaged_bytes(log, dice, kind);
    }
    let mut lines: Vec<String> = log.lines().map(str::to_string).collect();
    for _ in 0..dice.from(1, 4) {
        let (at, other) = (dice.below(lines.len() as u64) as usize, dice.below(lines.len() as u64) as usize);
        match kind {
            3 => _ = lines.remove(at),
            4 => lines.insert(at, lines[other].clone()),
            5 => lines.swap(at, other),
            6 => lines[at] = other_workload(&lines[at], dice),
            _ => lines[at] = other_value(&lines[at], dice),
        }
    }
    (lines.join("\n") + "\n").into_bytes()
}

/// Cut off, a byte gone, a byte changed.
fn damaged_bytes(log: &str, dice: &mut Dice, kind: u64) -> Vec<u8> {
    let mut bytes = log.as_bytes().to_vec();
    let at = dice.below(bytes.len() as u64) as usize;
    match kind {
        0 => bytes.truncate(at),
        1 => _ = bytes.remove(at),
        _ => bytes[at] = dice.below(256) as u8,
    }
    bytes
}

/// One value of a line becomes another.
fn other_value(line: &str, dice: &mut Dice) -> String {
    let colons: Vec<usize> = line.match_indices(':').map(|(at, _)| at + 1).collect();
    let from = *dice.pick(&colons);
    let to = line[from..].find([',', '}', ']']).map_or(line.len(), |length| from + length);
    format!("{}{}{}", &line[..from], dice.pick(&VALUES), &line[to..])
}

/// One workload's line becomes another's.
fn other_workload(line: &str, dice: &mut Dice) -> String {
    let places: Vec<usize> = line.match_indices("\"w").map(|(at, _)| at + 2).filter(|at| line.as_bytes()[*at].is_ascii_digit()).collect();
    if places.is_empty() {
        return line.to_string();
    }
    let from = *dice.pick(&places);
    let to = line[from..].find('"').map_or(line.len(), |length| from + length);
    format!("{}{}{}", &line[..from], dice.below(40), &line[to..])
}
