//! After a gap: evictions go slowly, so that a clock that jumped, or a scheduler that was away, does not turn over a whole pool at once.

use crate::quantity::{Gpus, Span, Time};

/// In so many minutes a tenth a minute is the whole pool: a limit that lasts longer protects nobody.
const LASTS: Span = Span::minutes(10);

/// The evictions of one pool since a gap.
#[derive(Clone, Debug, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Recovery {
    /// When the gap was over.
    since: Time,
    /// Which minute since then, and the GPUs evicted in it.
    minute: i64,
    evicted: u32,
}

impl Recovery {
    pub(crate) fn new(since: Time) -> Recovery {
        Recovery { since, minute: 0, evicted: 0 }
    }

    pub(crate) fn is_over(&self, now: Time) -> bool {
        now >= self.since + LASTS
    }

    fn minute_of(&self, now: Time) -> i64 {
        (now - self.since).0 / Span::minutes(1).0
    }

    /// GPUs of a claimant's victims.
    pub(crate) fn evicted(&mut self, now: Time, gpus: Gpus) {
        let minute = self.minute_of(now);
        self.evicted = gpus.0 + if minute == self.minute { self.evicted } else { 0 };
        self.minute = minute;
    }

    /// Whether so many GPUs may be evicted now from a pool of `of`: none in the gap's own instant, a tenth in each minute. If not, when it
    /// is to be tried again.
    pub(crate) fn check(&self, now: Time, gpus: Gpus, of: Gpus) -> Result<(), Time> {
        if gpus == Gpus(0) || self.is_over(now) {
            return Ok(());
        }
        if now == self.since {
            return Err(now + Span::seconds(1));
        }
        let minute = self.minute_of(now);
        let evicted = if minute == self.minute { self.evicted } else { 0 };
        if (evicted + gpus.0) * 10 <= of.0 { Ok(()) } else { Err(self.next_minute(now)) }
    }

    /// When more may be evicted.
    pub(crate) fn next_minute(&self, now: Time) -> Time {
        self.since + Span::minutes(self.minute_of(now) + 1)
    }
}
