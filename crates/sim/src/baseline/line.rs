//! Waiting work of one shape in the order of submission, in which the first that is done soon enough is found in O(log n).

use stipend_core::id::WorkloadId;
use stipend_core::quantity::Span;

/// One waiting workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticket {
    /// Its place in the order of submission.
    pub(super) rank: u32,
    pub(super) id: WorkloadId,
    /// How long it is expected to run at most.
    pub(super) expected: Span,
}

/// Nobody waits at this place.
const GONE: Span = Span(i64::MAX);

/// A segment tree over everybody who ever waited here: a place is never given up, so whoever is requeued finds the old one again.
#[derive(Clone, Debug, Default)]
pub(super) struct Line {
    places: Vec<(u32, WorkloadId)>,
    /// The leaves are the places, each with its workload's expected run; above each pair stands the lesser, the root at index 1.
    least: Vec<Span>,
}

impl Line {
    /// A workload waits. Whoever comes for the first time comes last.
    pub(super) fn push(&mut self, ticket: Ticket) {
        if self.places.last().is_none_or(|&(last, _)| last < ticket.rank) {
            self.places.push((ticket.rank, ticket.id));
            if self.places.len() * 2 > self.least.len() {
                self.grow();
            }
        }
        self.set(ticket.rank, ticket.expected.min(Span(GONE.0 - 1)));
    }

    /// A workload no longer waits.
    pub(super) fn remove(&mut self, rank: u32) {
        self.set(rank, GONE);
    }

    /// The first that is expected to run for at most `longest`.
    pub(super) fn first_within(&self, longest: Span) -> Option<Ticket> {
        let longest = longest.min(Span(GONE.0 - 1));
        if self.least.get(1).is_none_or(|&least| least > longest) {
            return None;
        }
        let half = self.least.len() / 2;
        let mut at = 1;
        while at < half {
            at *= 2;
            if self.least[at] > longest {
                at += 1;
            }
        }
        let (rank, id) = self.places[at - half];
        Some(Ticket { rank, id, expected: self.least[at] })
    }

    /// The first of all.
    pub(super) fn first(&self) -> Option<Ticket> {
        self.first_within(GONE)
    }

    fn set(&mut self, rank: u32, expected: Span) {
        let place = self.places.binary_search_by_key(&rank, |&(rank, _)| rank).expect("it waits or waited here");
        let mut at = self.least.len() / 2 + place;
        self.least[at] = expected;
        while at > 1 {
            at /= 2;
            let lesser = self.least[at * 2].min(self.least[at * 2 + 1]);
            if self.least[at] == lesser {
                break;
            }
            self.least[at] = lesser;
        }
    }

    /// Doubles the space.
    fn grow(&mut self) {
        let half = self.places.len().next_power_of_two();
        let mut least = vec![GONE; half * 2];
        let before = self.least.len() / 2;
        least[half..half + before].copy_from_slice(&self.least[before..]);
        for at in (1..half).rev() {
            least[at] = least[at * 2].min(least[at * 2 + 1]);
        }
        self.least = least;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_that_is_short_enough_is_found_and_the_requeued_keep_their_place() {
        let mut line = Line::default();
        let ticket = |rank, minutes| Ticket { rank, id: WorkloadId(rank + 100), expected: Span::minutes(minutes) };
        for (rank, minutes) in [(3, 50), (4, 10), (9, 30), (10, 5), (11, 60)] {
            line.push(ticket(rank, minutes));
        }
        assert_eq!(line.first(), Some(ticket(3, 50)));
        assert_eq!(line.first_within(Span::minutes(30)), Some(ticket(4, 10)));
        assert_eq!(line.first_within(Span::minutes(9)), Some(ticket(10, 5)));
        assert_eq!(line.first_within(Span::minutes(4)), None);
        line.remove(4);
        assert_eq!(line.first_within(Span::minutes(30)), Some(ticket(9, 30)));
        line.push(ticket(4, 20));
        assert_eq!(line.first_within(Span::minutes(30)), Some(ticket(4, 20)));
    }
}
