//! Waiting work by shape: a shape that does not fit is passed over once, however many wait in it.

use super::line::{Line, Ticket};
use std::collections::BTreeMap;
use stipend_core::spec::Gang;

/// The lines of all shapes, numbered in the order in which they first came.
#[derive(Clone, Debug, Default)]
pub(super) struct Shapes {
    numbers: BTreeMap<Gang, usize>,
    lines: Vec<(Gang, Line)>,
}

impl Shapes {
    /// A workload waits; returns the number of its shape.
    pub(super) fn push(&mut self, gang: Gang, ticket: Ticket) -> usize {
        let number = *self.numbers.entry(gang).or_insert(self.lines.len());
        if number == self.lines.len() {
            self.lines.push((gang, Line::default()));
        }
        self.lines[number].1.push(ticket);
        number
    }

    /// A workload of this shape no longer waits.
    pub(super) fn remove(&mut self, number: usize, rank: u32) {
        self.lines[number].1.remove(rank);
    }

    /// The number of a shape that somebody waits in.
    pub(super) fn number(&self, gang: &Gang) -> usize {
        self.numbers[gang]
    }

    /// A shape and whoever waits in it.
    pub(super) fn line(&self, number: usize) -> &(Gang, Line) {
        &self.lines[number]
    }

    /// How many shapes there ever were.
    pub(super) fn len(&self) -> usize {
        self.lines.len()
    }
}
