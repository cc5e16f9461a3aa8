//! The budget tree as a spreadsheet: a row for each budget and pool, and what of a sheet differs from the tree.
//!
//! Spreadsheets of some countries write `;` between cells and a comma in numbers: both are read.

use crate::wire::budget::{Budget, BudgetChange, BudgetInPool, PerPool, Tree};
use crate::wire::length::Length;
use std::collections::BTreeMap;
use stipend_core::quantity::Span;
use stipend_sim::scenario::{nearest, parse_length};

const COLUMNS: [&str; 10] =
    ["id", "path", "pool", "share_percent", "gpus_max", "unallocated_gpus_max", "min_runtime_max", "order", "managers", "members"];
const ID: usize = 0;
const PATH: usize = 1;
const POOL: usize = 2;
const SHARE: usize = 3;
const GPUS_MAX: usize = 4;
const UNALLOCATED_GPUS_MAX: usize = 5;
const MIN_RUNTIME_MAX: usize = 6;
const ORDER: usize = 7;
const MANAGERS: usize = 8;
const MEMBERS: usize = 9;

/// The tree as CSV.
pub(super) fn write(tree: &Tree) -> String {
    let mut csv = csv::Writer::from_writer(Vec::new());
    let rows = tree.budgets.iter().flat_map(|budget| budget.pools.iter().map(move |pool| cells(budget, pool)));
    for row in std::iter::once(COLUMNS.map(String::from)).chain(rows) {
        csv.write_record(row).expect("memory takes everything");
    }
    String::from_utf8(csv.into_inner().expect("memory takes everything")).expect("it was made of text")
}

/// A row as it is written: what a sheet's cell is compared with.
fn cells(budget: &Budget, pool: &BudgetInPool) -> [String; COLUMNS.len()] {
    let number = |value: Option<u32>| value.map_or(String::new(), |value| value.to_string());
    [
        budget.id.to_string(),
        budget.path.clone(),
        pool.pool.clone(),
        pool.share_percent.to_string(),
        number(pool.gpus_max),
        number(pool.unallocated_gpus_max),
        pool.min_runtime_max_ms.map_or(String::new(), |ms| Length(Span(ms)).to_string()),
        budget.order.clone(),
        budget.managers.join(" "),
        budget.members.join(" "),
    ]
}

/// What of a sheet differs from the tree.
///
/// # Errors
/// What is wrong with the sheet, with line, column and value.
pub(super) fn read(text: &str, tree: &Tree) -> Result<Vec<BudgetChange>, String> {
    let text = text.trim_start_matches('\u{feff}');
    let first = text.lines().next().unwrap_or_default();
    let delimiter = if first.contains(';') && !first.contains(',') { b';' } else { b',' };
    let mut csv = csv::ReaderBuilder::new().delimiter(delimiter).flexible(true).trim(csv::Trim::All).from_reader(text.as_bytes());
    let places = places(csv.headers().map_err(|error| error.to_string())?)?;
    let mut changes: Vec<BudgetChange> = Vec::new();
    for record in csv.records() {
        let record = record.map_err(|error| error.to_string())?;
        let line = record.position().map_or(0, csv::Position::line);
        if record.iter().all(str::is_empty) {
            continue;
        }
        let row = Row { line, cells: places.map(|place| place.map(|place| record.get(place).unwrap_or_default())) };
        row.change(tree, &mut changes)?;
    }
    changes.retain(|change| *change != BudgetChange { path: change.path.clone(), ..BudgetChange::default() });
    Ok(changes)
}

/// Where each column is; it may be absent.
fn places(headers: &csv::StringRecord) -> Result<[Option<usize>; COLUMNS.len()], String> {
    let mut places = [None; COLUMNS.len()];
    for (place, header) in headers.iter().enumerate().filter(|(_, header)| !header.is_empty()) {
        let name = header.to_lowercase();
        let Some(column) = COLUMNS.iter().position(|column| *column == name) else {
            let near = nearest(&name, &COLUMNS)
                .map_or_else(|| format!("columns are {}", COLUMNS.join(", ")), |near| format!("did you mean {near}?"));
            return Err(format!("line 1: there is no column `{header}`; {near}"));
        };
        if places[column].replace(place).is_some() {
            return Err(format!("line 1: the column {name} is there twice"));
        }
    }
    match places[PATH] {
        Some(_) => Ok(places),
        None => Err("line 1: the column path is missing".into()),
    }
}

struct Row<'s> {
    line: u64,
    /// By column; absent where the sheet has no such column.
    cells: [Option<&'s str>; COLUMNS.len()],
}

impl Row<'_> {
    /// Adds what differs to the changes of its budget.
    fn change(&self, tree: &Tree, changes: &mut Vec<BudgetChange>) -> Result<(), String> {
        let path = self.cells[PATH].unwrap_or_default();
        let known = self.budget(tree, path)?;
        let name = known.map_or(path, |known| known.path.as_str());
        let index = changes.iter().position(|change| change.path == name).unwrap_or_else(|| {
            changes.push(BudgetChange { path: name.into(), ..BudgetChange::default() });
            changes.len() - 1
        });
        let change = &mut changes[index];
        if name != path {
            change.rename_to = Some(path.into());
        }
        let pool = self.pool(tree)?;
        let before = known.and_then(|known| Some(cells(known, known.pools.iter().find(|other| other.pool == pool)?)));
        let differs = |column: usize| {
            let cell = self.cells[column]?;
            let same = before.as_ref().map_or(cell.is_empty(), |before| before[column] == cell);
            (!same).then_some(cell)
        };
        if let Some(cell) = differs(SHARE) {
            put(&mut change.share, &pool, self.share(cell)?);
        }
        if let Some(cell) = differs(GPUS_MAX) {
            put(&mut change.gpus_max, &pool, self.gpus(GPUS_MAX, cell)?);
        }
        if let Some(cell) = differs(UNALLOCATED_GPUS_MAX) {
            put(&mut change.unallocated_gpus_max, &pool, self.gpus(UNALLOCATED_GPUS_MAX, cell)?);
        }
        if let Some(cell) = differs(MIN_RUNTIME_MAX) {
            put(&mut change.min_runtime_max, &pool, self.length(cell)?);
        }
        self.once(&mut change.order, differs(ORDER).map(String::from), ORDER)?;
        self.once(&mut change.managers, differs(MANAGERS).map(people), MANAGERS)?;
        self.once(&mut change.members, differs(MEMBERS).map(people), MEMBERS)
    }

    /// The budget that a row is about: by its number, or else by its path.
    fn budget<'t>(&self, tree: &'t Tree, path: &str) -> Result<Option<&'t Budget>, String> {
        if path.is_empty() {
            return Err(self.wrong(PATH, "it is empty"));
        }
        let id = self.cells[ID].unwrap_or_default();
        if id.is_empty() {
            return Ok(tree.budgets.iter().find(|budget| budget.path == path));
        }
        let found = tree.budgets.iter().find(|budget| budget.id.to_string() == id);
        found.map(Some).ok_or_else(|| self.wrong(ID, "no budget has this number; leave it empty for a new one"))
    }

    fn pool(&self, tree: &Tree) -> Result<String, String> {
        let pools: Vec<&str> =
            tree.budgets.first().map_or(Vec::new(), |budget| budget.pools.iter().map(|pool| pool.pool.as_str()).collect());
        match (self.cells[POOL].unwrap_or_default(), &pools[..]) {
            ("", [only]) => Ok((*only).into()),
            ("", _) => Err(self.wrong(POOL, &format!("it is empty; pools are {}", pools.join(", ")))),
            // The service knows which there are, even where the tree is empty.
            (pool, _) => Ok(pool.into()),
        }
    }

    fn share(&self, cell: &str) -> Result<f64, String> {
        let digits = cell.trim_end_matches('%').trim_end().replace(',', ".");
        digits.parse().map_err(|_| self.wrong(SHARE, "expected percent of its parent, such as 12.5"))
    }

    fn gpus(&self, column: usize, cell: &str) -> Result<Option<u32>, String> {
        match cell {
            "" | "none" => Ok(None),
            _ => cell.parse().map(Some).map_err(|_| self.wrong(column, "expected a number of GPUs, or nothing for no cap")),
        }
    }

    fn length(&self, cell: &str) -> Result<Option<Length>, String> {
        match cell {
            "" | "none" => Ok(None),
            _ => parse_length(cell)
                .map(|length| Some(Length(length)))
                .ok_or_else(|| self.wrong(MIN_RUNTIME_MAX, "expected a length such as 8h")),
        }
    }

    /// What is said of a budget and not of a pool has to be the same in all its rows.
    fn once<T: PartialEq>(&self, known: &mut Option<T>, said: Option<T>, column: usize) -> Result<(), String> {
        match (&known, said) {
            (_, None) => Ok(()),
            (Some(before), Some(now)) if *before != now => Err(self.wrong(column, "another row of this budget says something else")),
            (_, Some(now)) => {
                *known = Some(now);
                Ok(())
            }
        }
    }

    fn wrong(&self, column: usize, what: &str) -> String {
        format!("line {}: {}: `{}`: {what}", self.line, COLUMNS[column], self.cells[column].unwrap_or_default())
    }
}

fn put<T>(values: &mut Option<PerPool<T>>, pool: &str, value: T) {
    if let PerPool::By(by_pool) = values.get_or_insert_with(|| PerPool::By(BTreeMap::new())) {
        by_pool.insert(pool.into(), value);
    }
}

fn people(cell: &str) -> Vec<String> {
    cell.split([' ', ';', ',']).filter(|name| !name.is_empty()).map(String::from).collect()
}

#[cfg(test)]
mod tests;
