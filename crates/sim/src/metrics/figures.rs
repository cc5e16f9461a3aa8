//! From hours to figures: delivered of owed over a period and by day, and arrears.

use super::HOUR;
use super::delivery::{Fine, Hour};
use stipend_core::quantity::Span;

/// The hours of a day.
const DAY: usize = 24;

/// Owed and delivered of one budget over some hours.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sums {
    pub owed: Fine,
    pub delivered: Fine,
}

impl Sums {
    pub(super) fn of(hours: &[Hour]) -> Sums {
        Sums {
            owed: Fine(hours.iter().map(|hour| hour.owed.0).sum()),
            delivered: Fine(hours.iter().map(|hour| Fine::of(hour.delivered).0).sum()),
        }
    }

    /// What was delivered of what was owed, at most all of it.
    fn met(&self) -> i128 {
        self.delivered.0.clamp(0, self.owed.0)
    }
}

/// Σ min(delivered, owed) and Σ owed over some budgets and periods.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Score {
    pub met: i128,
    pub owed: i128,
}

impl Score {
    /// Over the whole period.
    pub(super) fn period(hours: &[Hour]) -> Score {
        let sums = Sums::of(hours);
        Score { met: sums.met(), owed: sums.owed.0 }
    }

    /// Day by day from the first hour on: what one day got too much does not make up for another.
    pub(super) fn daily(hours: &[Hour]) -> Score {
        hours.chunks(DAY).map(Score::period).fold(Score::default(), Score::plus)
    }

    pub(super) fn plus(self, other: Score) -> Score {
        Score { met: self.met + other.met, owed: self.owed + other.owed }
    }
}

/// Arrears at the end of each hour, in milliseconds of the budget's claim in that hour; `None` in an hour without any claim.
/// `last` is how long the last hour was.
pub(super) fn arrears_by_hour(hours: &[Hour], last: Span) -> Vec<Option<i64>> {
    let mut arrears = 0_i128;
    let mut samples = Vec::with_capacity(hours.len());
    for (index, hour) in hours.iter().enumerate() {
        arrears = (arrears + hour.owed.0 - Fine::of(hour.delivered).0).max(0);
        let length = if index + 1 == hours.len() { last } else { HOUR };
        let in_claims = || i64::try_from(arrears * i128::from(length.0) / hour.entitled.0).unwrap_or(i64::MAX);
        samples.push((0 < hour.entitled.0).then(in_claims));
    }
    samples
}

/// The same; hours without any claim are passed over.
pub(super) fn arrears(hours: &[Hour], last: Span) -> Vec<i64> {
    arrears_by_hour(hours, last).into_iter().flatten().collect()
}
