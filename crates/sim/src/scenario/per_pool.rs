//! A value for every pool, or one for each by the pool's name.

use serde::de::{self, Deserialize, Deserializer, IntoDeserializer, MapAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

/// `25`, or `{ h100 = 25, a100 = 10 }`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PerPool<T> {
    /// The same in all of them.
    All(T),
    /// By name; a pool that is not named has none.
    Named(BTreeMap<String, T>),
}

impl<T> PerPool<T> {
    /// What it says for a pool.
    pub(crate) fn of(&self, pool: &str) -> Option<&T> {
        match self {
            PerPool::All(value) => Some(value),
            PerPool::Named(values) => values.get(pool),
        }
    }

    /// The pools that are named.
    pub(crate) fn names(&self) -> impl Iterator<Item = &String> {
        let named = if let PerPool::Named(values) = self { Some(values.keys()) } else { None };
        named.into_iter().flatten()
    }
}

struct PerPoolVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for PerPoolVisitor<T> {
    type Value = PerPool<T>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value, or one for each pool such as { h100 = 25, a100 = 10 }")
    }
    fn visit_i64<E: de::Error>(self, value: i64) -> Result<PerPool<T>, E> {
        T::deserialize(value.into_deserializer()).map(PerPool::All)
    }
    fn visit_f64<E: de::Error>(self, value: f64) -> Result<PerPool<T>, E> {
        T::deserialize(value.into_deserializer()).map(PerPool::All)
    }
    fn visit_str<E: de::Error>(self, value: &str) -> Result<PerPool<T>, E> {
        T::deserialize(value.into_deserializer()).map(PerPool::All)
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<PerPool<T>, A::Error> {
        let mut values = BTreeMap::new();
        while let Some((name, value)) = map.next_entry()? {
            values.insert(name, value);
        }
        Ok(PerPool::Named(values))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for PerPool<T> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<PerPool<T>, D::Error> {
        d.deserialize_any(PerPoolVisitor(PhantomData))
    }
}
