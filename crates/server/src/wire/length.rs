//! Lengths of time as people write them.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use stipend_core::quantity::Span;
use stipend_sim::scenario::parse_length;

/// A length of time: `"90s"`, `"15m"`, `"1h30m"`, `"7d"`; never negative, at most 20 years.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, utoipa::ToSchema)]
#[schema(value_type = String, examples("1h30m"))]
pub struct Length(pub Span);

impl<'de> Deserialize<'de> for Length {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Length, D::Error> {
        let text = String::deserialize(d)?;
        let expected = "a length of time such as \"90s\", \"15m\", \"1h30m\" or \"7d\" (not negative, at most 20 years)";
        parse_length(&text).map(Length).ok_or_else(|| serde::de::Error::custom(format_args!("\"{text}\" is not {expected}")))
    }
}

impl Serialize for Length {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(&format_args!("{self}"))
    }
}

impl fmt::Display for Length {
    /// In the largest unit that is exact, so that reading it gives the same again.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(3_600_000, "h"), (60_000, "m"), (1000, "s")];
        let unit = units.into_iter().find(|(ms, _)| self.0.0 % ms == 0).unwrap_or((1, "ms"));
        write!(f, "{}{}", self.0.0 / unit.0, unit.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        for ms in [0, 1, 999, 1000, 61_000, 60_000, 5_400_000, 86_400_000, 12_345_678] {
            let length = Length(Span(ms));
            let text = serde_json::to_string(&length).unwrap();
            assert_eq!(serde_json::from_str::<Length>(&text).unwrap(), length, "{text}");
        }
        assert!(serde_json::from_str::<Length>("\"soon\"").unwrap_err().to_string().contains("is not a length of time such as"));
    }
}
