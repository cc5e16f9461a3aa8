//! `--set key=value`: changes of a scenario without editing its file.

use super::error::ScenarioError;
use super::file::{FailuresFile, ModelFile, PoolFile, ScenarioFile};
use super::knobs::KnobsFile;
use super::rivals::{EstimateFile, FairTreeFile, PriorityFile};
use crate::generate::behaviour::BehaviourFile;
use crate::generate::lab_file::LabFile;
use crate::trace::rules::TraceFile;
use serde::de::{self, Deserialize, Deserializer, Visitor};
use std::borrow::Cow;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// One override, its value parsed as TOML where it is TOML and taken as text otherwise.
pub(crate) struct Override<'a> {
    text: &'a str,
    path: Vec<&'a str>,
    value: DeValue<'a>,
}

/// What TOML makes of each override's value; kept apart because the parsed values borrow from it.
pub(crate) fn documents(texts: &[String]) -> Vec<String> {
    texts.iter().map(|text| format!("v = {}", text.split_once('=').map_or("", |(_, value)| value.trim()))).collect()
}

/// Splits and resolves `key=value` texts; `documents` are theirs.
pub(crate) fn parse<'a>(texts: &'a [String], documents: &'a [String]) -> Result<Vec<Override<'a>>, ScenarioError> {
    texts.iter().zip(documents).map(|(text, document)| parse_one(text, document)).collect()
}

fn parse_one<'a>(text: &'a str, document: &'a str) -> Result<Override<'a>, ScenarioError> {
    let wrong = |message: String| ScenarioError::Override { text: text.into(), message };
    let Some((key, value)) = text.split_once('=').filter(|(key, _)| !key.trim().is_empty()) else {
        return Err(wrong("expected key=value, such as pool.nodes=96 or lookback=1d".into()));
    };
    let path = path_of(key.trim()).map_err(wrong)?;
    // Only a complete TOML value counts as one: `1d` and a file's path are none and stay text.
    let parsed = DeTable::parse(document).ok().filter(|table| table.get_ref().len() == 1).and_then(|table| table.into_inner().remove("v"));
    let value = parsed.map_or(DeValue::String(Cow::Borrowed(value.trim())), Spanned::into_inner);
    Ok(Override { text, path, value })
}

/// The list of behaviours; an override sets a field of each.
const BEHAVIOURS: &str = "behaviours";

/// The sections whose fields may be named without the section, with the names of their fields.
fn sections() -> [(&'static str, &'static [&'static str]); 10] {
    [
        ("policy", field_names::<KnobsFile>()),
        ("pool", field_names::<PoolFile>()),
        ("lab", field_names::<LabFile>()),
        ("model", field_names::<ModelFile>()),
        ("failures", field_names::<FailuresFile>()),
        ("trace", field_names::<TraceFile>()),
        ("rivals.estimate", field_names::<EstimateFile>()),
        ("rivals.priority", field_names::<PriorityFile>()),
        ("rivals.fair_tree", field_names::<FairTreeFile>()),
        (BEHAVIOURS, field_names::<BehaviourFile>()),
    ]
}

/// `pool.nodes` as it is; `nodes` looked up in the sections; `trace` is the trace's file.
fn path_of(key: &str) -> Result<Vec<&str>, String> {
    let top = field_names::<ScenarioFile>();
    if key == "trace" {
        return Ok(vec!["trace", "file"]);
    }
    if let Some(("pools", rest)) = key.split_once('.') {
        return in_pool(rest);
    }
    if let Some((section, field)) = key.rsplit_once('.') {
        let Some((_, fields)) = sections().into_iter().find(|(name, _)| *name == section) else {
            let names: Vec<&str> = sections().iter().map(|(name, _)| *name).collect();
            return Err(unknown(section, "section", &names));
        };
        return if fields.contains(&field) {
            Ok(section.split('.').chain([field]).collect())
        } else {
            Err(unknown(field, &format!("field of [{section}]"), fields))
        };
    }
    if top.contains(&key) {
        return Ok(vec![key]);
    }
    if let Some((section, _)) = sections().into_iter().find(|(_, fields)| fields.contains(&key)) {
        return Ok(section.split('.').chain([key]).collect());
    }
    let all: Vec<&str> = top.iter().copied().chain(sections().into_iter().flat_map(|(_, fields)| fields.iter().copied())).collect();
    Err(unknown(key, "field", &all))
}

/// `pools.h100.nodes` and `pools.h100.lookback`: a field or a knob of the pool of this name.
fn in_pool(key: &str) -> Result<Vec<&str>, String> {
    let Some((pool, field)) = key.split_once('.') else {
        return Err(format!("pools.{key}: name a pool and a field of it, such as pools.h100.nodes"));
    };
    let (fields, knobs) = (field_names::<PoolFile>(), field_names::<KnobsFile>());
    if fields.contains(&field) {
        return Ok(vec!["pools", pool, field]);
    }
    if knobs.contains(&field) {
        return Ok(vec!["pools", pool, "policy", field]);
    }
    let all: Vec<&str> = fields.iter().chain(knobs).copied().collect();
    Err(unknown(field, &format!("field of pool {pool}"), &all))
}

fn unknown(name: &str, kind: &str, known: &[&str]) -> String {
    match nearest(name, known) {
        Some(near) => format!("there is no {kind} `{name}`; did you mean `{near}`?"),
        None => format!("there is no {kind} `{name}`; there are {}", known.join(", ")),
    }
}

/// Puts the overrides into the document; their spans lie beyond `end`, one after the other.
pub(crate) fn insert<'a>(document: &mut DeTable<'a>, overrides: &'a [Override<'a>], end: usize) -> Result<(), ScenarioError> {
    for (number, one) in overrides.iter().enumerate() {
        let at = end + 1 + number..end + 1 + number;
        let (last, parents) = one.path.split_last().expect("a path has at least one part");
        if *parents == [BEHAVIOURS] {
            for behaviour in behaviours(document).map_err(|message| ScenarioError::Override { text: one.text.into(), message })? {
                put(behaviour, last, at.clone(), one);
            }
            continue;
        }
        let mut table = &mut *document;
        let mut name = "";
        for parent in parents {
            // A pool's name was followed with its section.
            if std::mem::take(&mut name) == *parent {
                continue;
            }
            let wrong = |message| ScenarioError::Override { text: one.text.into(), message };
            if *parent == "pools" && !table.contains_key("pools") {
                return Err(wrong("this scenario has one pool; its fields are set by pool.nodes, its knobs by their names".into()));
            }
            let key = Spanned::new(at.clone(), Cow::Borrowed(*parent));
            let entry = table.entry(key).or_insert_with(|| Spanned::new(at.clone(), DeValue::Table(DeTable::new())));
            table = match entry.get_mut() {
                DeValue::Table(inner) => inner,
                DeValue::Array(pools) if *parent == "pools" => {
                    name = one.path[1];
                    named(pools, name).map_err(wrong)?
                }
                _ => return Err(wrong(format!("`{parent}` is no section in this scenario"))),
            };
        }
        put(table, last, at, one);
    }
    Ok(())
}

fn put<'a>(table: &mut DeTable<'a>, field: &'a str, at: Range<usize>, one: &Override<'a>) {
    table.remove(field);
    table.insert(Spanned::new(at.clone(), Cow::Borrowed(field)), Spanned::new(at, one.value.clone()));
}

/// The behaviours that the scenario has.
fn behaviours<'d, 'a>(document: &'d mut DeTable<'a>) -> Result<Vec<&'d mut DeTable<'a>>, String> {
    let listed = match document.get_mut(BEHAVIOURS).map(Spanned::get_mut) {
        Some(DeValue::Array(listed)) => listed.iter_mut().filter_map(as_table).collect(),
        _ => Vec::new(),
    };
    if listed.is_empty() { Err("this scenario has no [[behaviours]] to change".into()) } else { Ok(listed) }
}

fn as_table<'d, 'a>(value: &'d mut Spanned<DeValue<'a>>) -> Option<&'d mut DeTable<'a>> {
    if let DeValue::Table(table) = value.get_mut() { Some(table) } else { None }
}

/// The pool of this name.
fn named<'p, 'a>(pools: &'p mut [Spanned<DeValue<'a>>], name: &str) -> Result<&'p mut DeTable<'a>, String> {
    let own = |table: &DeTable<'a>| table.get("name").and_then(|own| own.get_ref().as_str().map(String::from));
    let known: Vec<String> = pools.iter().filter_map(|pool| own(pool.get_ref().as_table()?)).collect();
    let found = pools.iter_mut().filter_map(as_table).find(|table| own(table).as_deref() == Some(name));
    found.ok_or_else(|| {
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        unknown(name, "pool", &known)
    })
}

/// The known name that differs least from `name`, if it is near.
pub fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let limit = (name.len() / 3).max(2);
    known.iter().map(|&k| (distance(name, k), k)).filter(|&(d, _)| d <= limit).min_by_key(|&(d, _)| d).map(|(_, k)| k)
}

/// Levenshtein's distance in bytes.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let substituted = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

/// The names of a struct's fields, from its own `Deserialize`, so that no list is kept by hand.
fn field_names<'de, T: Deserialize<'de>>() -> &'static [&'static str] {
    let mut names: &'static [&'static str] = &[];
    // Always an error: the asker takes the names and stops.
    let _ = T::deserialize(Asker(&mut names));
    names
}

struct Asker<'a>(&'a mut &'static [&'static str]);

impl<'de> Deserializer<'de> for Asker<'_> {
    type Error = de::value::Error;

    fn deserialize_any<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, Self::Error> {
        Err(de::Error::custom("only structs have field names"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        _visitor: V,
    ) -> Result<V::Value, Self::Error> {
        *self.0 = fields;
        Err(de::Error::custom("asked for the names only"))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct newtype_struct seq tuple
        tuple_struct map enum identifier ignored_any
    }
}
