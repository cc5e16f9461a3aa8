//! When a team is on, and when it is off.

use crate::random::{Purpose, Random};
use stipend_core::quantity::{Span, Time};

/// Alternating phases, drawn once for the whole run so that no policy moves them.
#[derive(Clone, Debug)]
pub(crate) struct Phases {
    /// When the state changes, ascending.
    changes: Vec<Time>,
    /// The state before the first change.
    starts_on: bool,
}

impl Phases {
    /// Phases of these mean lengths, exponentially distributed, until `end`.
    pub(crate) fn draw(seed: u64, team: u64, on: Span, off: Span, end: Time) -> Phases {
        let mut random = Random::new(seed, Purpose::Phases, team);
        let starts_on = random.unit() < on.0 as f64 / (on.0 + off.0).max(1) as f64;
        let mut changes = Vec::new();
        let (mut at, mut is_on) = (0.0, starts_on);
        while at < end.0 as f64 {
            at += random.exponential(if is_on { on.0 } else { off.0 } as f64).max(60_000.0);
            changes.push(Time(at as i64));
            is_on = !is_on;
        }
        Phases { changes, starts_on }
    }

    /// A week off and a week on, in turn, until `end`.
    pub(crate) fn weekly(end: Time) -> Phases {
        let weeks = end.0 / Span::days(7).0 + 1;
        Phases { changes: (1..=weeks).map(|week| Time(Span::days(7 * week).0)).collect(), starts_on: false }
    }

    /// `None` while the team is on at `at`, else when it is on again.
    pub(crate) fn off_until(&self, at: Time) -> Option<Time> {
        let passed = self.changes.partition_point(|&change| change <= at);
        let is_on = self.starts_on == passed.is_multiple_of(2);
        if is_on { None } else { self.changes.get(passed).copied().or(Some(Time::MAX)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weeks_off_and_on() {
        let phases = Phases::weekly(Time(Span::days(37).0));
        let day = |day: i64| Time(Span::days(day).0);
        assert_eq!([0, 6, 14, 20].map(|d| phases.off_until(day(d))), [Some(day(7)), Some(day(7)), Some(day(21)), Some(day(21))]);
        assert!([7, 13, 21, 27].into_iter().all(|d| phases.off_until(day(d)).is_none()));
    }

    #[test]
    fn phases_alternate_and_have_their_lengths() {
        let end = Time(Span::days(2000).0);
        let phases = Phases::draw(1, 0, Span::days(3), Span::days(1), end);
        let hours = 2000 * 24;
        let on = (0..hours).filter(|&h| phases.off_until(Time(Span::hours(h).0)).is_none()).count();
        assert!((0.70..0.80).contains(&(on as f64 / hours as f64)), "{on} of {hours}");
        let at = Time(phases.changes[0].0 - 1);
        assert_eq!(phases.off_until(at).is_none(), phases.starts_on);
    }
}
