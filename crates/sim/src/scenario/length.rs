//! Lengths and points of time, fractions and gangs as a scenario writes them.

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;
use stipend_core::quantity::{Ppm, Span};

/// Longer than this is a slip of the pen: 20 years.
pub(crate) const LENGTH_MAX: Span = Span::days(20 * 365);

/// A length of time: `"90s"`, `"15m"`, `"1h30m"`, `"7d"`; never negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Length(pub Span);

/// A point in time, from the scenario's start: `"0:30"` (h:mm), `"26:00:05"` (h:mm:ss) or a length such as `"2d"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct At(pub Span);

/// A fraction or factor with up to six decimals: `0.25`, `1.1`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Fraction(pub Ppm);

/// A gang as written: `"2x8"` is 2 members of 8 GPUs; `"4"` is one member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GangText {
    /// At least 1.
    pub members: u32,
    /// 1 to 64.
    pub gpus_per_member: u32,
}

impl From<Length> for Span {
    fn from(length: Length) -> Span {
        length.0
    }
}

impl From<Fraction> for Ppm {
    fn from(fraction: Fraction) -> Ppm {
        fraction.0
    }
}

impl Fraction {
    /// As a number between 0 and about 4000.
    pub(crate) fn value(self) -> f64 {
        f64::from(self.0.0) / 1e6
    }
}

/// Reads `1h30m`; `None` if it is no length.
pub fn parse_length(text: &str) -> Option<Span> {
    let mut total: i64 = 0;
    let mut rest = text.trim();
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let letters = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let unit_ms = match &rest[..letters] {
            "ms" => 1,
            "s" => 1000,
            "m" | "min" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            "w" => 7 * 86_400_000,
            _ => return None,
        };
        rest = rest[letters..].trim_start();
        total = total.checked_add((number * f64::from(unit_ms)).round() as i64)?;
    }
    (total <= LENGTH_MAX.0).then_some(Span(total))
}

/// Reads `h:mm`, `h:mm:ss` or a length.
pub(crate) fn parse_at(text: &str) -> Option<Span> {
    if !text.contains(':') {
        return if text == "0" { Some(Span::ZERO) } else { parse_length(text) };
    }
    let parts: Vec<i64> = text.split(':').map(|p| p.parse::<u32>().ok().map(i64::from)).collect::<Option<_>>()?;
    let (hours, minutes, seconds) = match parts[..] {
        [h, m] => (h, m, 0),
        [h, m, s] => (h, m, s),
        _ => return None,
    };
    let at = Span::hours(hours) + Span::minutes(minutes) + Span::seconds(seconds);
    (minutes < 60 && seconds < 60 && at <= LENGTH_MAX).then_some(at)
}

fn parse_gang(text: &str) -> Option<GangText> {
    let (members, gpus) = text.split_once('x').unwrap_or(("1", text));
    let gang = GangText { members: members.trim().parse().ok()?, gpus_per_member: gpus.trim().parse().ok()? };
    // Where a pool is counted in CPUs a member may have many; whether a node has so many is asked later.
    ((1..=100_000).contains(&gang.members) && (1..=4096).contains(&gang.gpus_per_member)).then_some(gang)
}

/// A visitor that makes a `T` from a string with `parse`, and says `expected` where it cannot.
struct FromText<T> {
    parse: fn(&str) -> Option<T>,
    expected: &'static str,
}

impl<T> Visitor<'_> for FromText<T> {
    type Value = T;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }
    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        (self.parse)(text).ok_or_else(|| E::custom(format_args!("\"{text}\" is not {}", self.expected)))
    }
}

impl<'de> Deserialize<'de> for Length {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Length, D::Error> {
        let expected = "a length of time such as \"90s\", \"15m\", \"8h\" or \"7d\" (not negative, at most 20 years)";
        d.deserialize_str(FromText { parse: parse_length, expected }).map(Length)
    }
}

impl<'de> Deserialize<'de> for At {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<At, D::Error> {
        let expected = "a time since the start such as \"0:30\" (hours:minutes), \"1:00:05\" or \"2d\" (not negative, at most 20 years)";
        d.deserialize_str(FromText { parse: parse_at, expected }).map(At)
    }
}

impl<'de> Deserialize<'de> for GangText {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<GangText, D::Error> {
        let expected = "a gang such as \"2x8\" (members x GPUs of each, or CPUs in a pool without GPUs)";
        d.deserialize_str(FromText { parse: parse_gang, expected })
    }
}

struct FractionVisitor;

impl Visitor<'_> for FractionVisitor {
    type Value = Fraction;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number from 0 to 1000 such as 0.25")
    }
    fn visit_f64<E: Error>(self, value: f64) -> Result<Fraction, E> {
        if !(0.0..=1000.0).contains(&value) {
            return Err(E::custom(format_args!("{value} is not a number from 0 to 1000 such as 0.25")));
        }
        Ok(Fraction(Ppm((value * 1e6).round() as u32)))
    }
    fn visit_i64<E: Error>(self, value: i64) -> Result<Fraction, E> {
        self.visit_f64(value as f64)
    }
}

impl<'de> Deserialize<'de> for Fraction {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Fraction, D::Error> {
        d.deserialize_any(FractionVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths() {
        assert_eq!(parse_length("15m"), Some(Span::minutes(15)));
        assert_eq!(parse_length("1h30m"), Some(Span::minutes(90)));
        assert_eq!(parse_length("1.5d"), Some(Span::hours(36)));
        assert_eq!(parse_length("250ms"), Some(Span(250)));
        for wrong in ["", "5", "-5m", "5 parsecs", "m", "99999d", "1e3s"] {
            assert_eq!(parse_length(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn points_in_time() {
        assert_eq!(parse_at("0:30"), Some(Span::minutes(30)));
        assert_eq!(parse_at("26:00:05"), Some(Span::hours(26) + Span::seconds(5)));
        assert_eq!(parse_at("2d"), Some(Span::days(2)));
        assert_eq!(parse_at("0:75"), None);
        assert_eq!(parse_at("-1:00"), None);
    }

    #[test]
    fn gangs() {
        assert_eq!(parse_gang("2x8"), Some(GangText { members: 2, gpus_per_member: 8 }));
        assert_eq!(parse_gang("4"), Some(GangText { members: 1, gpus_per_member: 4 }));
        assert_eq!(parse_gang("0x8"), None);
        assert_eq!(parse_gang("2x4097"), None);
    }
}
