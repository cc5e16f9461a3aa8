//! Numbers and times in bytes, without a detour through text: a trace of a million rows should be read in a fraction of a second.

/// A trace does not reach further than this: 100 years of milliseconds.
const LENGTH_MAX_MS: i64 = 100 * 365 * 86_400_000;

/// A whole number.
pub(super) fn integer(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || digits.len() > 18 {
        return None;
    }
    let mut value: i64 = 0;
    for &digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        value = value * 10 + i64::from(digit - b'0');
    }
    Some(if negative { -value } else { value })
}

/// Seconds with decimals, as milliseconds; not negative, at most 100 years. Decimals after the third are cut off.
pub(super) fn seconds_ms(text: &[u8]) -> Option<i64> {
    i64::try_from(thousandths(text)?).ok().filter(|&ms| ms <= LENGTH_MAX_MS)
}

/// A number with decimals in thousandths; not negative. Decimals after the third are cut off.
pub(super) fn thousandths(text: &[u8]) -> Option<u64> {
    let (whole, decimals) = match text.iter().position(|&b| b == b'.') {
        Some(point) => (&text[..point], &text[point + 1..]),
        None => (text, b"".as_slice()),
    };
    let units = integer(whole).filter(|_| whole[0] != b'-')?;
    if decimals.is_empty() {
        return u64::try_from(units.checked_mul(1000)?).ok();
    }
    let mut part = 0;
    for place in 0..decimals.len().max(3) {
        let digit = decimals.get(place).copied().unwrap_or(b'0');
        if !digit.is_ascii_digit() {
            return None;
        }
        if place < 3 {
            part = part * 10 + i64::from(digit - b'0');
        }
    }
    u64::try_from(units.checked_mul(1000)?.checked_add(part)?).ok()
}

/// `2017-10-09 07:01:55` (or with a `T`) as milliseconds since 1970, the wall clock taken as it is.
pub(super) fn civil_ms(text: &[u8]) -> Option<i64> {
    let text = text.trim_ascii();
    let separators = [(4, b"-".as_slice()), (7, b"-"), (10, b" T"), (13, b":"), (16, b":")];
    if text.len() != 19 || separators.iter().any(|&(at, allowed)| !allowed.contains(&text[at])) {
        return None;
    }
    let part = |from: usize, to: usize, low: i64, high: i64| integer(&text[from..to]).filter(|value| (low..=high).contains(value));
    let (year, month, day) = (part(0, 4, 1900, 2200)?, part(5, 7, 1, 12)?, part(8, 10, 1, 31)?);
    let (hour, minute, second) = (part(11, 13, 0, 23)?, part(14, 16, 0, 59)?, part(17, 19, 0, 60)?);
    if day > days_in_month(year, month) {
        return None;
    }
    Some((days_since_1970(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second) * 1000)
}

fn days_in_month(year: i64, month: i64) -> i64 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days in the Gregorian calendar, counted in years that begin in March so that the leap day comes last.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let in_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    year * 365 + year / 4 - year / 100 + year / 400 + in_year - 719_468
}

/// Year, month and day of a day counted from 1970, the inverse of what [`civil_ms`] reads.
pub(crate) fn civil(days_since_1970: i64) -> (i64, i64, i64) {
    let days = days_since_1970 + 719_468;
    // In 400 years there are 146,097 days; the year begins in March.
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day_of_year - (153 * from_march + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds() {
        assert_eq!(seconds_ms(b"66.0"), Some(66_000));
        assert_eq!(seconds_ms(b"1.2345"), Some(1234));
        assert_eq!(seconds_ms(b"7"), Some(7000));
        for wrong in ["", "-1", "-0", "1e3", "1.x", "nan", "99999999999999"] {
            assert_eq!(seconds_ms(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn wall_clock() {
        assert_eq!(civil_ms(b"1970-01-01 00:00:00"), Some(0));
        assert_eq!(civil_ms(b"2017-10-09 07:01:55"), Some(1_507_532_515_000));
        assert_eq!(civil_ms(b"2016-02-29T00:00:00"), Some(1_456_704_000_000));
        for wrong in ["2017-02-29 00:00:00", "2017-13-01 00:00:00", "2017-10-09", "2017/10/09 07:01:55", "2017-10-09 24:01:55"] {
            assert_eq!(civil_ms(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn days_and_dates_lead_back_to_each_other() {
        for days in (-25_000..80_000).step_by(7) {
            let (year, month, day) = civil(days);
            assert_eq!(days_since_1970(year, month, day), days, "{year}-{month}-{day}");
        }
    }
}
