//! The daemon's clock: never back, and it knows when it was away.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use stipend_core::quantity::{Span, Time};

/// Ahead of ours by more than this, the machine's clock is believed again.
const DRIFT_MAX: Span = Span::seconds(1);

/// Milliseconds since 1970 that go forward only.
///
/// Between looks it goes on by the monotonic clock. Where the machine's clock is set forward, or the machine slept, it follows; where that
/// is set back, it goes on and is ahead until the machine's clock has caught up.
pub(crate) struct Clock {
    at: Time,
    since: Instant,
}

/// What time it is.
pub(crate) struct Look {
    /// Now.
    pub(crate) now: Time,
    /// How much was left out since the look before, if any: the machine slept, or its clock was set.
    pub(crate) jumped: Span,
}

impl Clock {
    /// A clock that is not behind `last`.
    pub(crate) fn new(last: Option<Time>) -> Clock {
        Clock { at: last.map_or(machine(), |last| last.max(machine())), since: Instant::now() }
    }

    /// Looks at it.
    pub(crate) fn look(&mut self) -> Look {
        self.step(self.since.elapsed(), machine())
    }

    /// What a look would find, if nobody sets the machine's clock.
    pub(crate) fn expected(&self) -> Time {
        self.after(self.since.elapsed())
    }

    fn after(&self, elapsed: Duration) -> Time {
        self.at + Span(i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX / 4))
    }

    fn step(&mut self, elapsed: Duration, machine: Time) -> Look {
        let expected = self.after(elapsed);
        let ahead = machine - expected;
        if ahead > DRIFT_MAX {
            (self.at, self.since) = (machine, Instant::now());
            return Look { now: machine, jumped: ahead };
        }
        Look { now: expected, jumped: Span::ZERO }
    }
}

/// The machine's clock.
pub(crate) fn machine() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time(i64::try_from(since.as_millis()).unwrap_or(i64::MAX / 4))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_on_where_the_machine_is_set_back_and_follows_where_it_is_set_forward() {
        let mut clock = Clock { at: Time(1_000_000), since: Instant::now() };
        assert_eq!(clock.step(Duration::from_secs(5), Time(1_005_000)).now, Time(1_005_000));
        let back = clock.step(Duration::from_secs(6), Time(1_000));
        assert_eq!((back.now, back.jumped), (Time(1_006_000), Span::ZERO));
        assert!(clock.expected() >= Time(1_000_000), "who waits for a date waits by this clock, not by the machine's");
        let forward = clock.step(Duration::from_secs(7), Time(9_000_000));
        assert_eq!((forward.now, forward.jumped), (Time(9_000_000), Span(9_000_000 - 1_007_000)));
    }
}
