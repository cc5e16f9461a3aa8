//! How long work waited for its first start, and what that says of work that waits now: an estimate is a range, and how often such ranges
//! held is counted.
//!
//! A range is made of what like work waited, and of nothing else: the middle eight tenths. It knows neither what will be submitted nor
//! which hosts will fail, and does not pretend to. A promise is another thing: that is a [reservation](crate::reservation).

use crate::entry::Class;
use crate::id::BudgetId;
use crate::quantity::{Ppm, Span, Time};
use crate::spec::{Pools, WorkloadSpec};
use crate::workload::Workload;
use std::collections::BTreeMap;

/// Waits are told apart by halves of powers of two of a second, from below one second to above two months.
const BUCKETS: usize = 48;

/// A history's waits are halved when they are more than this: the past fades, and what is new counts.
const KEPT: u32 = 256;

/// Of fewer waits no range is made.
const LEAST: u32 = 10;

/// Below a range lies one in so many, and above it one in so many.
const TAIL: u32 = 10;

/// Work that waits alike: of one leaf (`None`: of all), class and size, for the same pools.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct Kind {
    leaf: Option<BudgetId>,
    class: Class,
    /// The power of two that is not below its GPUs.
    size: u32,
    pools: Pools,
}

impl Kind {
    fn of(spec: &WorkloadSpec, class: Class) -> Kind {
        Kind { leaf: Some(spec.budget), class, size: spec.gang.gpus().0.next_power_of_two(), pools: spec.pools.clone() }
    }

    fn of_all_leaves(&self) -> Kind {
        Kind { leaf: None, ..self.clone() }
    }
}

/// How often something waited how long.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct History {
    counts: Vec<u16>,
}

impl History {
    fn add(&mut self, wait: Span) {
        self.counts[bucket(wait)] += 1;
        if self.counts.iter().map(|count| u32::from(*count)).sum::<u32>() > KEPT {
            self.counts.iter_mut().for_each(|count| *count /= 2);
        }
    }

    /// The middle eight tenths of the waits that were not over after `waited`.
    fn range(&self, waited: Span) -> Option<WaitEstimate> {
        let first = bucket(waited);
        let like = self.counts[first..].iter().map(|count| u32::from(*count)).sum::<u32>();
        if like < LEAST {
            return None;
        }
        let (mut sum, mut from, mut to) = (0, None, None);
        for (place, count) in self.counts.iter().enumerate().skip(first) {
            sum += u32::from(*count);
            from = from.or((sum > like / TAIL).then_some(place));
            to = to.or((like - sum <= like / TAIL).then_some(place));
        }
        Some(WaitEstimate { from: begins(from?).max(waited), to: begins(to? + 1), like })
    }
}

impl Default for History {
    fn default() -> History {
        History { counts: vec![0; BUCKETS] }
    }
}

/// How long work like this waits for its first start, counted from when it became eligible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct WaitEstimate {
    /// One in ten waited less.
    pub from: Span,
    /// One in ten waited longer.
    pub to: Span,
    /// How many waits the range is made of; older ones count less.
    pub like: u32,
}

impl WaitEstimate {
    /// Whether a wait was as it said.
    pub fn holds(&self, wait: Span) -> bool {
        self.from <= wait && wait <= self.to
    }
}

/// How often estimates held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Record {
    /// Those whose work started, or was given up after it had waited longer.
    pub given: u32,
    /// Those that held.
    pub held: u32,
}

impl Record {
    /// The part that held; `None` before there is one.
    pub fn part(&self) -> Option<Ppm> {
        Some(Ppm((u64::from(self.held) * u64::from(Ppm::ONE.0)).checked_div(self.given.into())? as u32))
    }
}

/// First waits, and how good the estimates were that were made of them.
#[derive(Clone, Debug, Default, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Waits {
    histories: BTreeMap<Kind, History>,
    records: BTreeMap<Class, Record>,
}

impl Waits {
    /// How long work of this kind waits that has waited for so long: as its own leaf's did, or as that of all leaves while there is too
    /// little of that.
    pub(crate) fn estimate(&self, spec: &WorkloadSpec, class: Class, waited: Span) -> Option<WaitEstimate> {
        let kind = Kind::of(spec, class);
        let range = |kind: &Kind| self.histories.get(kind)?.range(waited);
        range(&kind).or_else(|| range(&kind.of_all_leaves()))
    }

    /// A workload runs for the first time.
    pub(crate) fn first_ran(&mut self, workload: &Workload, at: Time) {
        let wait = at - workload.eligible;
        let kind = Kind::of(&workload.spec, workload.class);
        self.histories.entry(kind.of_all_leaves()).or_default().add(wait);
        self.histories.entry(kind).or_default().add(wait);
        if let Some(estimate) = workload.estimate {
            self.judge(workload.class, estimate.holds(wait));
        }
    }

    /// A workload that never ran is given up: if it waited longer than was said, that was wrong.
    pub(crate) fn given_up(&mut self, workload: &Workload, at: Time) {
        if workload.estimate.is_some_and(|estimate| at - workload.eligible > estimate.to) {
            self.judge(workload.class, false);
        }
    }

    fn judge(&mut self, class: Class, held: bool) {
        let record = self.records.entry(class).or_default();
        record.given = record.given.saturating_add(1);
        record.held = record.held.saturating_add(held.into());
    }

    /// How often estimates of a class held.
    pub(crate) fn record(&self, class: Class) -> Record {
        self.records.get(&class).copied().unwrap_or_default()
    }
}

/// In which bucket a wait is.
fn bucket(wait: Span) -> usize {
    (0..BUCKETS).rev().find(|place| begins(*place) <= wait).unwrap_or(0)
}

/// Where a bucket begins: at 0, 1, 1.5, 2, 3, 4, 6, … seconds. The last has no end that could be told, and ends where the next would begin.
fn begins(place: usize) -> Span {
    let Some(half) = place.checked_sub(1) else { return Span::ZERO };
    let whole = 1_000i64 << (half / 2);
    Span(if half % 2 == 0 { whole } else { whole + whole / 2 })
}

#[cfg(test)]
mod tests;
