//! Usage that halves with time: what every user of every account has used, the older the less.
//!
//! GPU time used at time s counts 2^(−(t − s) / half-life) at time t. While `g` GPUs run the sum obeys u' = g − u · ln 2 / h, which is solved
//! exactly from change to change, so that it does not depend on how often anybody looks.

use stipend_core::quantity::{Span, Time};

/// One user's usage of one account.
#[derive(Clone, Copy, Debug)]
pub(super) struct Usage {
    /// Decayed GPU milliseconds at `at`.
    sum: f64,
    at: Time,
    /// GPUs that count now.
    gpus: u32,
}

impl Usage {
    /// Nothing was used yet.
    pub(super) fn none(at: Time) -> Usage {
        Usage { sum: 0.0, at, gpus: 0 }
    }

    /// Brings the sum up to `at` and returns it, in GPU milliseconds.
    pub(super) fn settle(&mut self, at: Time, half_life: Span) -> f64 {
        let passed = (at - self.at).0 as f64;
        let gpus = f64::from(self.gpus);
        self.at = at;
        self.sum = if half_life == Span::ZERO {
            self.sum + gpus * passed
        } else {
            let half_life = half_life.0 as f64;
            let left = libm::exp2(-passed / half_life);
            let of_now = -libm::expm1(-passed / half_life * std::f64::consts::LN_2) * half_life / std::f64::consts::LN_2;
            self.sum * left + gpus * of_now
        };
        self.sum
    }

    /// From `at` on so many more GPUs count, or so many fewer.
    pub(super) fn change(&mut self, at: Time, half_life: Span, gpus: i64) {
        self.settle(at, half_life);
        self.gpus = self.gpus.saturating_add_signed(gpus as i32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hours(hours: i64) -> Time {
        Time(Span::hours(hours).0)
    }

    #[test]
    fn usage_halves_with_every_half_life_and_tends_to_a_bound() {
        let half_life = Span::hours(24);
        let mut usage = Usage::none(hours(0));
        usage.change(hours(0), half_life, 8);
        let bound = 8.0 * half_life.0 as f64 / std::f64::consts::LN_2;
        assert!((usage.settle(hours(24), half_life) / bound - 0.5).abs() < 1e-12, "half of what it tends to");
        assert!((usage.settle(hours(48), half_life) / bound - 0.75).abs() < 1e-12);
        usage.change(hours(48), half_life, -8);
        assert!((usage.settle(hours(72), half_life) / bound - 0.375).abs() < 1e-12, "then it halves");
        assert!((usage.settle(hours(72 + 240), half_life) / bound - 0.375 / 1024.0).abs() < 1e-12);
    }

    #[test]
    fn it_does_not_matter_how_often_anybody_looks() {
        let half_life = Span::days(7);
        let (mut often, mut once) = (Usage::none(hours(0)), Usage::none(hours(0)));
        for usage in [&mut often, &mut once] {
            usage.change(hours(3), half_life, 5);
        }
        for minute in (180..60 * 500).step_by(5) {
            often.settle(Time(Span::minutes(minute).0), half_life);
        }
        let (often, once) = (often.settle(hours(500), half_life), once.settle(hours(500), half_life));
        assert!((often / once - 1.0).abs() < 1e-9, "{often} and {once}");
    }

    #[test]
    fn without_a_half_life_everything_counts_for_ever() {
        let mut usage = Usage::none(hours(0));
        usage.change(hours(0), Span::ZERO, 3);
        usage.change(hours(2), Span::ZERO, -3);
        assert_eq!(usage.settle(hours(2000), Span::ZERO), 3.0 * Span::hours(2).0 as f64);
    }
}
