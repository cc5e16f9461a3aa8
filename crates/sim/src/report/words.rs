//! Numbers, dates and names as reports about logs write them.

use super::cell::Unit;
use super::table::wrap;

/// A length of time in the largest fitting unit: `4.5h`.
pub(crate) fn duration(seconds: f64) -> String {
    Unit::Seconds.text(seconds)
}

/// An item of a list, in lines of the report's width.
pub(super) fn item(text: &str) -> String {
    wrap("  ", "    ", text)
}

/// `1 row`, `1,234 rows`
pub(super) fn rows(number: u64) -> String {
    if number == 1 { "1 row".into() } else { format!("{} rows", count(number)) }
}

/// `12,345`
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let parts: Vec<&str> = digits.as_bytes().rchunks(3).rev().map(|part| std::str::from_utf8(part).expect("digits")).collect();
    parts.join(",")
}

/// `2017-09-04 00:00:13`, by the file's own clock.
pub(crate) fn date(unix_ms: i64) -> String {
    let (days, seconds) = (unix_ms.div_euclid(86_400_000), unix_ms.rem_euclid(86_400_000) / 1000);
    let (year, month, day) = crate::trace::civil(days);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// At most so many characters.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    let mut kept: String = text.chars().take(most).collect();
    if text.chars().count() > most {
        kept.pop();
        kept.push('…');
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_dates() {
        assert_eq!((count(0), count(999), count(1_000), count(1_234_567)), ("0".into(), "999".into(), "1,000".into(), "1,234,567".into()));
        assert_eq!(date(1_507_532_515_000), "2017-10-09 07:01:55");
        assert_eq!(date(-1000), "1969-12-31 23:59:59");
    }

    #[test]
    fn names_are_shortened() {
        assert_eq!((shortened("abcdef", 4), shortened("abcd", 4)), ("abc…".into(), "abcd".into()));
    }
}
