//! A trace made ready to be simulated: what never ran is set aside, and the load is multiplied where the scenario says so.

use super::{Counted, Row, Trace};

impl Trace {
    /// Takes out what never ran: nobody knows how long it would have run.
    pub(crate) fn keep_what_ran(&mut self) {
        let before = self.rows.len();
        self.rows.retain(|row| row.work_ms > 0);
        let rows = (before - self.rows.len()) as u64;
        if rows > 0 {
            self.skipped.push(Counted { reason: "never ran, and nobody knows how long it would have", rows, first_line: 0 });
        }
        self.settle();
    }

    /// Submits every row `copies` times. The copies of the whole trace are shifted against each other by equal parts of its span, and what
    /// passes its end comes in at its begin: the load is multiplied, its bursts are spread, and each single copy keeps its order and gaps.
    pub(crate) fn multiply(&mut self, copies: u32) {
        let span = self.rows.last().map_or(0, Row::arrival_ms) + 1;
        let rows = std::mem::take(&mut self.rows);
        for copy in 0..copies {
            // Less than the span, which is at most some hundred years of ms.
            let shift = (i128::from(span) * i128::from(copy) / i128::from(copies)) as i64;
            self.rows.extend(rows.iter().map(|row| {
                let by = (row.arrival_ms() + shift) % span - row.arrival_ms();
                let moved = |ms: i64| ms.saturating_add(by);
                Row {
                    submit_ms: moved(row.submit_ms),
                    eligible_ms: row.eligible_ms.map(moved),
                    start_ms: row.start_ms.map(moved),
                    end_ms: row.end_ms.map(moved),
                    ..*row
                }
            }));
        }
        self.settle();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(arrivals_s: &[i64]) -> Trace {
        let rows = arrivals_s.iter().map(|s| Row { submit_ms: s * 1000, work_ms: 5000, gpus: 1, ..Row::default() });
        Trace { rows: rows.collect(), ..Trace::default() }
    }

    #[test]
    fn copies_are_spread_over_the_span() {
        let mut trace = trace(&[0, 10, 99]);
        trace.multiply(2);
        let arrivals: Vec<i64> = trace.rows.iter().map(|row| row.submit_ms).collect();
        assert_eq!(arrivals, [0, 10_000, 49_499, 49_500, 59_500, 99_000]);
    }

    #[test]
    fn what_never_ran_is_counted() {
        let mut trace = trace(&[0, 10, 99]);
        trace.rows[0].work_ms = 0;
        trace.keep_what_ran();
        assert_eq!((trace.rows.len(), trace.rows[0].submit_ms, trace.skipped[0].rows), (2, 0, 1));
    }
}
