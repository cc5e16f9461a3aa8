//! Lengths of time as people write them.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
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
        s.collect_str(&self.0)
    }
}
