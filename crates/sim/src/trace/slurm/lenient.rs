//! Values of Slurm's JSON, which every version writes in another way.

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;

/// A number: `4`, `4.0`, `"4"`, or an object with `set`, `infinite` and `number`. What is not set, infinite, null or no number is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Number(pub(super) Option<i64>);

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Number, D::Error> {
        deserializer.deserialize_any(NumberVisitor)
    }
}

struct NumberVisitor;

impl<'de> Visitor<'de> for NumberVisitor {
    type Value = Number;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number")
    }

    fn visit_u64<E>(self, number: u64) -> Result<Number, E> {
        Ok(Number(i64::try_from(number).ok()))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Number, E> {
        Ok(Number(Some(number)))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Number, E> {
        Ok(Number((number.abs() < 9e18).then_some(number as i64)))
    }

    fn visit_bool<E>(self, yes: bool) -> Result<Number, E> {
        Ok(Number(Some(i64::from(yes))))
    }

    fn visit_unit<E>(self) -> Result<Number, E> {
        Ok(Number(None))
    }

    fn visit_str<E>(self, text: &str) -> Result<Number, E> {
        Ok(Number(text.trim().parse().ok()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Number, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Number(None))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Number, A::Error> {
        let (mut set, mut infinite, mut number) = (true, false, None);
        while let Some(key) = map.next_key::<Text<'de>>()? {
            match key.0.as_ref() {
                "set" => set = map.next_value::<Number>()?.0 == Some(1),
                "infinite" => infinite = map.next_value::<Number>()?.0 == Some(1),
                "number" => number = map.next_value::<Number>()?.0,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(Number(number.filter(|_| set && !infinite)))
    }
}

/// A text: of a list the first element, of a state with its reason the state; null is an empty one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Text<'a>(pub(super) Cow<'a, str>);

impl Text<'_> {
    /// Its bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Text<'a>, D::Error> {
        deserializer.deserialize_any(TextVisitor)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Owned(text.to_owned())))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Owned(number.to_string())))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Owned(number.to_string())))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Text<'de>, E> {
        Ok(Text::default())
    }

    fn visit_bool<E>(self, _: bool) -> Result<Text<'de>, E> {
        Ok(Text::default())
    }

    fn visit_unit<E>(self) -> Result<Text<'de>, E> {
        Ok(Text::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Text<'de>, A::Error> {
        let first = list.next_element::<Text<'de>>()?.unwrap_or_default();
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(first)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Text<'de>, A::Error> {
        let mut found = Text::default();
        while let Some(key) = map.next_key::<Text<'de>>()? {
            if key.0 == "current" {
                found = map.next_value()?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

/// How long a list is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Length(pub(super) u64);

impl<'de> Deserialize<'de> for Length {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Length, D::Error> {
        let list: Vec<IgnoredAny> = Option::deserialize(deserializer)?.unwrap_or_default();
        Ok(Length(list.len() as u64))
    }
}

/// One kind of resource: `{"type": "gres", "name": "gpu:a100", "count": 4}`.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default)]
pub(super) struct Entry<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) family: Text<'a>,
    #[serde(borrow)]
    pub(super) name: Text<'a>,
    pub(super) count: Number,
}
