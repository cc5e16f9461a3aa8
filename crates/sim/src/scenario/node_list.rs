//! A list of nodes in a CSV file: a site's own inventory, or the one that belongs to a trace.
//!
//! The header names the columns, in any order. One row is one node, or `count` of them. Needed are GPUs or CPUs; columns that mean nothing
//! here are passed over.

use super::error::ScenarioError;
use csv::StringRecord;
use std::path::{Path, PathBuf};

/// One row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NodeRow {
    /// The node's name; empty if the list has none.
    pub(crate) name: String,
    pub(crate) count: u32,
    /// Its pool's name; `None` if the list does not say.
    pub(crate) pool: Option<String>,
    pub(crate) gpus: u32,
    pub(crate) cpus: u32,
    pub(crate) memory: u64,
    /// Its block's name; `None` if the list does not say.
    pub(crate) block: Option<String>,
    pub(crate) features: Vec<String>,
    pub(crate) express: bool,
}

/// What a column may be called, and how much one unit of it is of the unit used here: (name, multiplied by, divided by).
type Names = &'static [(&'static str, u64, u64)];

const NAME: Names = &[("name", 1, 1), ("node", 1, 1), ("sn", 1, 1)];
const COUNT: Names = &[("count", 1, 1), ("nodes", 1, 1)];
const POOL: Names = &[("pool", 1, 1), ("model", 1, 1), ("gpu_model", 1, 1)];
const GPUS: Names = &[("gpus", 1, 1), ("gpu", 1, 1)];
const CPUS: Names = &[("cpus", 1, 1), ("cpu", 1, 1), ("cpu_milli", 1, 1000)];
const MEMORY: Names = &[("memory_gib", 1 << 30, 1), ("memory_mib", 1 << 20, 1), ("memory_bytes", 1, 1)];
const BLOCK: Names = &[("block", 1, 1)];
const FEATURES: Names = &[("features", 1, 1)];
const EXPRESS: Names = &[("express", 1, 1)];

/// Reads a list.
pub(crate) fn read(path: &Path) -> Result<Vec<NodeRow>, ScenarioError> {
    let unreadable = |source| ScenarioError::Unreadable { path: PathBuf::from(path), source };
    let input = std::fs::File::open(path).map_err(unreadable)?;
    let wrong = |message: String| ScenarioError::File { file: path.display().to_string(), message };
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(input);
    let header = reader.headers().map_err(|error| wrong(error.to_string()))?.clone();
    let list = List { header: &header };
    if list.find(GPUS).is_none() && list.find(CPUS).is_none() {
        return Err(wrong(format!("the columns are {}; one of gpus, gpu, cpus, cpu or cpu_milli is needed", shown(&header))));
    }
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| wrong(error.to_string()))?;
        let line = record.position().map_or(0, csv::Position::line);
        rows.push(list.row(&record).map_err(|message| wrong(format!("line {line}: {message}")))?);
    }
    if rows.is_empty() {
        return Err(wrong("it lists no nodes".into()));
    }
    Ok(rows)
}

fn shown(header: &StringRecord) -> String {
    header.iter().collect::<Vec<_>>().join(", ")
}

struct List<'a> {
    header: &'a StringRecord,
}

impl List<'_> {
    /// Where a column stands, and what its unit is.
    fn find(&self, names: Names) -> Option<(usize, &'static str, u64, u64)> {
        let place = |name: &str| self.header.iter().position(|column| column.eq_ignore_ascii_case(name));
        names.iter().find_map(|(name, times, divided)| Some((place(name)?, *name, *times, *divided)))
    }

    fn text<'r>(&self, record: &'r StringRecord, names: Names) -> Option<&'r str> {
        self.find(names).and_then(|(place, ..)| record.get(place)).filter(|text| !text.is_empty())
    }

    /// A whole number, in the unit used here, rounded down.
    fn number(&self, record: &StringRecord, names: Names, unsaid: u64) -> Result<u64, String> {
        let Some((place, name, times, divided)) = self.find(names) else { return Ok(unsaid) };
        let Some(text) = record.get(place).filter(|text| !text.is_empty()) else { return Ok(unsaid) };
        let number = text.parse::<u64>().ok().and_then(|number| number.checked_mul(times));
        number.map(|number| number / divided).ok_or_else(|| format!("{name} = {text}: expected a whole number that is not negative"))
    }

    fn small(&self, record: &StringRecord, names: Names, unsaid: u32) -> Result<u32, String> {
        let number = self.number(record, names, unsaid.into())?;
        u32::try_from(number).map_err(|_| format!("{} = {number}: expected at most {}", names[0].0, u32::MAX))
    }

    fn row(&self, record: &StringRecord) -> Result<NodeRow, String> {
        let express = match self.text(record, EXPRESS) {
            None | Some("false" | "0") => false,
            Some("true" | "1") => true,
            Some(other) => return Err(format!("express = {other}: expected true or false")),
        };
        let features = self.text(record, FEATURES).unwrap_or_default();
        let row = NodeRow {
            name: self.text(record, NAME).unwrap_or_default().into(),
            count: self.small(record, COUNT, 1)?,
            pool: self.text(record, POOL).map(String::from),
            gpus: self.small(record, GPUS, 0)?,
            cpus: self.small(record, CPUS, 0)?,
            memory: self.number(record, MEMORY, 0)?,
            block: self.text(record, BLOCK).map(String::from),
            features: features.split([' ', '|', ';']).filter(|name| !name.is_empty()).map(String::from).collect(),
            express,
        };
        match (row.gpus, row.cpus) {
            (0, 0) => Err("gpus = 0: a node has GPUs, or CPUs where its pool has no GPUs".into()),
            (65.., _) => Err(format!("gpus = {}: a node has at most 64 GPUs", row.gpus)),
            _ => Ok(row),
        }
    }
}
