//! Points and lengths of time as people read and type them, in their own time zone.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use std::str::FromStr;
use stipend_core::quantity::Span;
use stipend_sim::scenario::parse_length;

/// Milliseconds since 1970, now.
pub(crate) fn now_ms() -> i64 {
    Timestamp::now().as_millisecond()
}

/// A point in time beside another, by the clock on the wall here: the date is left out where it is today's.
pub(crate) fn clock(ms: i64, now_ms: i64) -> String {
    clock_in(ms, now_ms, &TimeZone::system())
}

fn clock_in(ms: i64, now_ms: i64, zone: &TimeZone) -> String {
    let at = |ms: i64| Some(Timestamp::from_millisecond(ms).ok()?.to_zoned(zone.clone()));
    let Some((there, now)) = at(ms).zip(at(now_ms)) else { return format!("{ms} ms") };
    let form = match there.date() == now.date() {
        true => "%H:%M:%S",
        false if there.year() == now.year() => "%b %e %H:%M",
        false => "%Y-%m-%d %H:%M",
    };
    there.strftime(form).to_string()
}

/// A point in time in full, with its zone's distance from UTC.
pub(crate) fn full(ms: i64) -> String {
    let zoned = Timestamp::from_millisecond(ms).map(|at| at.to_zoned(TimeZone::system()));
    zoned.map_or(format!("{ms} ms"), |at: Zoned| at.strftime("%Y-%m-%d %H:%M:%S %:z").to_string())
}

/// The start of a step: a day by its date, an hour by the clock.
pub(crate) fn date(ms: i64, step_ms: i64) -> String {
    // Days are UTC's, as they are counted.
    let (zone, form) = if step_ms < 86_400_000 { (TimeZone::system(), "%b %d %H:%M") } else { (TimeZone::UTC, "%b %d") };
    Timestamp::from_millisecond(ms).map_or(format!("{ms} ms"), |at| at.to_zoned(zone).strftime(form).to_string())
}

/// A length in its largest fitting unit: `85s`, `12m`, `30h`, `5d`.
pub(crate) fn short(ms: i64) -> String {
    let seconds = ms.max(0) / 1000;
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7200 => format!("{}m", seconds / 60),
        7200..172_800 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// A length in words: `1 h 40 min`.
pub(crate) fn long(ms: i64) -> String {
    Span(ms).to_string()
}

/// A point in time as it is typed: a date, a date and a time, or so long from now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Date {
    /// Milliseconds since 1970.
    pub(crate) ms: i64,
}

impl FromStr for Date {
    type Err = String;

    fn from_str(text: &str) -> Result<Date, String> {
        let zone = TimeZone::system();
        date_in(text, now_ms(), &zone).ok_or_else(|| {
            "it is not a point in time such as 2026-12-01, `2026-12-01 09:00` (in your time zone), 2026-12-01T09:00:00Z, or +2d (from now)"
                .to_owned()
        })
    }
}

fn date_in(text: &str, now_ms: i64, zone: &TimeZone) -> Option<Date> {
    if let Some(length) = text.strip_prefix('+') {
        return Some(Date { ms: now_ms + parse_length(length)?.0 });
    }
    // Without a zone of its own it is meant by the clock on the wall here.
    let zoned = text.parse::<Timestamp>().ok();
    let local = || Some(text.parse::<DateTime>().ok()?.to_zoned(zone.clone()).ok()?.timestamp());
    Some(Date { ms: zoned.or_else(local)?.as_millisecond() })
}

/// How far back: `30d`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Length(pub(crate) Span);

impl FromStr for Length {
    type Err = String;

    fn from_str(text: &str) -> Result<Length, String> {
        let expected = "it is not a length of time such as 90s, 15m, 1h30m or 7d (at most 20 years)";
        parse_length(text).map(Length).ok_or_else(|| expected.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: i64 = 1_796_040_000_000;

    #[test]
    fn what_is_today_needs_no_date() {
        let at = |ms: i64| clock_in(ms, NOON, &TimeZone::UTC);
        assert_eq!(at(NOON), "12:00:00");
        assert_eq!(at(NOON - 86_400_000), "Nov 29 12:00");
        assert_eq!(at(NOON - 366 * 86_400_000), "2025-11-29 12:00");
    }

    #[test]
    fn dates_as_typed() {
        let date = |text: &str| date_in(text, NOON, &TimeZone::fixed(jiff::tz::offset(1))).map(|date| date.ms - NOON);
        assert_eq!(date("2026-12-01"), Some(11 * 3_600_000));
        assert_eq!(date("2026-12-01 01:00"), Some(12 * 3_600_000));
        assert_eq!(date("2026-11-30T12:00:01Z"), Some(1000));
        assert_eq!(date("+2d"), Some(2 * 86_400_000));
        assert_eq!([date("soon"), date("+soon"), date("2026-13-01"), date("")], [None; 4]);
    }

    #[test]
    fn lengths_in_one_unit() {
        assert_eq!([0, 119_000, 120_000, 7_200_000, 172_800_000].map(short), ["0s", "119s", "2m", "2h", "2d"]);
    }
}
