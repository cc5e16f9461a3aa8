//! Waiting work, by everything that decides about it: level, team, whether it opts out of preemption, shape.

use super::super::book::Workload;
use super::level::{Asked, Level};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use stipend_core::id::{BudgetId, WorkloadId};
use stipend_core::spec::Gang;

/// What all work of a line has in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) level: Reverse<Level>,
    pub(super) opts_out: bool,
    pub(super) leaf: BudgetId,
    /// The number of its shape.
    pub(super) shape: usize,
}

/// All lines.
#[derive(Debug, Default)]
pub(super) struct Lines {
    shapes: BTreeMap<Gang, usize>,
    gangs: Vec<Gang>,
    /// In the order of submission; no line is empty.
    lines: BTreeMap<Key, BTreeMap<u32, WorkloadId>>,
    /// Lines in which somebody came to wait since the last pass.
    touched: BTreeSet<Key>,
}

impl Lines {
    /// A workload waits.
    pub(super) fn push(&mut self, id: WorkloadId, workload: &Workload, asked: Asked) {
        let gang = workload.spec.gang;
        let shape = *self.shapes.entry(gang).or_insert(self.gangs.len());
        if shape == self.gangs.len() {
            self.gangs.push(gang);
        }
        let key = Key { level: Reverse(asked.level), opts_out: asked.opts_out, leaf: workload.spec.budget, shape };
        self.lines.entry(key).or_default().insert(workload.rank, id);
        self.touched.insert(key);
    }

    /// A workload no longer waits, if it did here.
    pub(super) fn remove(&mut self, workload: &Workload, asked: Asked) {
        let Some(&shape) = self.shapes.get(&workload.spec.gang) else { return };
        let key = Key { level: Reverse(asked.level), opts_out: asked.opts_out, leaf: workload.spec.budget, shape };
        self.take(&key, workload.rank);
    }

    /// Whoever has this rank in the line leaves it.
    pub(super) fn take(&mut self, key: &Key, rank: u32) {
        if let Some(line) = self.lines.get_mut(key) {
            line.remove(&rank);
            if line.is_empty() {
                self.lines.remove(key);
            }
        }
    }

    /// The first of a line.
    pub(super) fn first(&self, key: &Key) -> Option<(u32, WorkloadId)> {
        self.lines.get(key)?.first_key_value().map(|(&rank, &id)| (rank, id))
    }

    /// What a line's work needs.
    pub(super) fn gang(&self, key: &Key) -> &Gang {
        &self.gangs[key.shape]
    }

    /// How many shapes there ever were.
    pub(super) fn shapes(&self) -> usize {
        self.gangs.len()
    }

    /// All lines, or only those in which somebody came to wait since this was asked last.
    pub(super) fn take_turns(&mut self, all: bool) -> Vec<Key> {
        let touched = std::mem::take(&mut self.touched);
        if all { self.lines.keys().copied().collect() } else { touched.into_iter().collect() }
    }
}
