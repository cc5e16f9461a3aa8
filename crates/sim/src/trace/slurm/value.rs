//! Times, lengths, limits and exit codes as Slurm writes them.
//!
//! `Err` is a text that is none of the forms known, so that its record can be counted with the value in the message; `Ok(None)` is a value that
//! Slurm itself does not know.

use crate::trace::number::{civil_ms, integer};

/// The accounting database writes "none" and "infinite" as the last two numbers of 32 bits.
const NO_VALUE: i64 = 0xffff_fffe;

/// Longer than this nothing runs: 100 years of milliseconds.
const LENGTH_MAX_MS: i64 = 100 * 365 * 86_400_000;

/// Words for a value that is not there.
const NOTHING: [&[u8]; 11] = [b"", b"unknown", b"none", b"n/a", b"invalid", b"(null)", b"null", b"none assigned", b"\\n", b"nan", b"nat"];

/// Whether the text says that there is no value.
pub(super) fn is_nothing(text: &[u8]) -> bool {
    text.is_empty() || NOTHING.iter().any(|word| text.eq_ignore_ascii_case(word))
}

/// An instant in ms since 1970: `2023-08-31T12:29:47` as the wall clock shows it, with an offset (`+02:00`, `+0200`, `Z`) taken to UTC, or seconds
/// since 1970.
pub(super) fn instant(text: &[u8]) -> Result<Option<i64>, ()> {
    if is_nothing(text) {
        return Ok(None);
    }
    if let Some(seconds) = integer(unfractioned(text)) {
        return Ok(epoch_ms(seconds));
    }
    let (clock, rest) = text.split_at_checked(19).ok_or(())?;
    let local = civil_ms(clock).ok_or(())?;
    let fraction = match rest {
        [b'.', digits @ ..] => 1 + digits.iter().take_while(|digit| digit.is_ascii_digit()).count(),
        _ => 0,
    };
    Ok(Some(local - offset_ms(&rest[fraction..]).ok_or(())?))
}

/// Seconds since 1970 as ms; 0 and the database's "none" are no instant.
pub(super) fn epoch_ms(seconds: i64) -> Option<i64> {
    (seconds > 0 && seconds != NO_VALUE && seconds != NO_VALUE + 1 && seconds < LENGTH_MAX_MS / 1000 * 3).then(|| seconds * 1000)
}

/// A whole number that a program for tables has made a fraction, as it does in columns in which some are missing: `8.0`.
fn unfractioned(text: &[u8]) -> &[u8] {
    text.strip_suffix(b".0").unwrap_or(text)
}

fn offset_ms(text: &[u8]) -> Option<i64> {
    let (sign, digits) = match text {
        [] | [b'Z'] => return Some(0),
        [b'+', digits @ ..] => (1, digits),
        [b'-', digits @ ..] => (-1, digits),
        _ => return None,
    };
    let minutes = match digits {
        [hours @ .., b':', a, b] if hours.len() == 2 => integer(hours)? * 60 + integer(&[*a, *b])?,
        [a, b, c, d] => integer(&[*a, *b])? * 60 + integer(&[*c, *d])?,
        [a, b] => integer(&[*a, *b])? * 60,
        _ => return None,
    };
    Some(sign * minutes * 60_000)
}

/// A length in ms: `7-11:33:12`, `1-05:50`, `1-05`, `30:00`, `01:35.654`, and `7 days 11:33:12` as programs for tables write it; a number alone
/// counts in `unit_ms`.
pub(super) fn length(text: &[u8], unit_ms: i64) -> Result<Option<i64>, ()> {
    if is_nothing(text) {
        return Ok(None);
    }
    parse_length(text, unit_ms).map(|ms| Some(ms.min(LENGTH_MAX_MS))).ok_or(())
}

fn parse_length(text: &[u8], unit_ms: i64) -> Option<i64> {
    let parted = [b"-".as_slice(), b" days "].into_iter().find_map(|mark| Some((memchr::memmem::find(text, mark)?, mark.len())));
    let (days, clock) = match parted {
        Some((at, length)) => (Some(count(&text[..at])?), &text[at + length..]),
        None => (None, text),
    };
    let (clock, ms) = match memchr::memchr(b'.', clock) {
        Some(point) => (&clock[..point], fraction_ms(&clock[point + 1..])?),
        None => (clock, 0),
    };
    let mut parts = [0i64; 3];
    let mut number = 0;
    for part in clock.split(|&byte| byte == b':') {
        *parts.get_mut(number)? = count(part)?;
        number += 1;
    }
    let [a, b, c] = parts;
    let seconds = match (days, number) {
        // After days the clock begins with hours, else it ends with seconds.
        (Some(days), _) => days.checked_mul(86_400)?.checked_add(a * 3600 + b * 60 + c)?,
        (None, 3) => a * 3600 + b * 60 + c,
        (None, 2) => a * 60 + b,
        (None, _) => return a.checked_mul(unit_ms),
    };
    seconds.checked_mul(1000)?.checked_add(ms)
}

/// A time limit in ms; 0 is none, which is also what `UNLIMITED` and `Partition_Limit` come to. A number alone counts minutes.
pub(super) fn limit(text: &[u8]) -> Result<i64, ()> {
    let none = [b"unlimited".as_slice(), b"partition_limit", b"infinite"];
    if none.iter().any(|word| text.eq_ignore_ascii_case(word)) {
        return Ok(0);
    }
    match integer(unfractioned(text)) {
        Some(minutes) => Ok(limit_minutes(minutes)),
        None => Ok(length(text, 60_000)?.unwrap_or(0)),
    }
}

/// A time limit of so many minutes in ms; 0 where the number stands for none.
pub(super) fn limit_minutes(minutes: i64) -> i64 {
    if minutes <= 0 || minutes >= NO_VALUE { 0 } else { (minutes * 60_000).min(LENGTH_MAX_MS) }
}

/// Whether an exit code says that the job failed: `0:9`, `137`, or the database's wait status 35072 (137, that is signal 9).
pub(super) fn failed(text: &[u8]) -> Result<Option<bool>, ()> {
    if is_nothing(text) {
        return Ok(None);
    }
    let mut parts = text.split(|&byte| byte == b':').map(integer);
    let (code, signal) = (parts.next().flatten().ok_or(())?, parts.next().unwrap_or(Some(0)).ok_or(())?);
    Ok(Some(code != 0 || signal != 0))
}

/// A number of nodes, CPUs or GPUs; `2K` is how `--units` may shorten it.
pub(super) fn quantity(text: &[u8]) -> Result<Option<u32>, ()> {
    if is_nothing(text) {
        return Ok(None);
    }
    let (digits, unit) = match text {
        [digits @ .., b'K' | b'k'] => (digits, 1024.0),
        [digits @ .., b'M' | b'm'] => (digits, 1024.0 * 1024.0),
        digits => (digits, 1.0),
    };
    match integer(unfractioned(digits)).filter(|&number| number >= 0) {
        Some(NO_VALUE..=0xffff_ffff) => Ok(None),
        Some(number) => scaled(number as f64 * unit),
        // With a unit the number may have decimals: `20.50K` CPUs.
        None if unit > 1.0 && digits.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.') => {
            scaled(std::str::from_utf8(digits).ok().and_then(|text| text.parse::<f64>().ok()).ok_or(())? * unit)
        }
        None => Err(()),
    }
}

fn scaled(number: f64) -> Result<Option<u32>, ()> {
    if number <= f64::from(u32::MAX) { Ok(Some(number as u32)) } else { Err(()) }
}

fn count(digits: &[u8]) -> Option<i64> {
    integer(digits).filter(|&number| digits[0] != b'-' && number < 1_000_000_000_000)
}

fn fraction_ms(digits: &[u8]) -> Option<i64> {
    let ms: Option<i64> = (0..3).try_fold(0, |ms, place| {
        let digit = digits.get(place).copied().unwrap_or(b'0');
        digit.is_ascii_digit().then(|| ms * 10 + i64::from(digit - b'0'))
    });
    ms.filter(|_| digits.iter().all(u8::is_ascii_digit))
}
