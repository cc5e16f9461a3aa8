//! The integral of a rate over the lookback, weighted by the kernel, exact in integers.
//!
//! A rate that changes in steps is integrated once (`area`) and twice (`moment`) as time goes on, by two cursors over one list of steps:
//! the head at the present, the tail one lookback behind. With A the area, B the double integral and L the lookback,
//! `∫ rate(s) · (1 − (t − s)/L) ds` over the lookback is `A(t) − (B(t) − B(t − L)) / L` (integration by parts), and the sliding sum is
//! `A(t) − A(t − L)`. Both cost O(1) amortised a step, whatever the length of the lookback.

use crate::knobs::Kernel;
use crate::quantity::{Span, Time};
use std::collections::VecDeque;
use std::hash::{Hash, Hasher};

/// A rate in 10⁻⁹ GPUs: fine enough for a claim's part of one GPU.
pub(crate) type Rate = i64;

/// One GPU as a [`Rate`].
pub(crate) const GPU: Rate = 1_000_000_000;

#[derive(Clone, Copy, Debug, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct Cursor {
    at: Time,
    rate: Rate,
    /// ∫ rate, in rate · ms.
    area: i128,
    /// 2 · ∫∫ rate, in rate · ms².
    moment: i128,
}

impl Cursor {
    fn advance(&mut self, to: Time) {
        let dt = i128::from(to.0 - self.at.0);
        if dt == 0 {
            return;
        }
        let step = i128::from(self.rate) * dt;
        self.moment += (2 * self.area + step) * dt;
        self.area += step;
        self.at = to;
    }

    /// Adds a rate that held from `from` to `to`, clipped to what lies before this cursor.
    fn amend(&mut self, from: Time, to: Time, rate: Rate) {
        if self.at < from {
            return;
        }
        if self.at < to {
            self.rate += rate;
        }
        let length = i128::from(to.min(self.at).0 - from.0);
        let after = i128::from(self.at.0 - to.min(self.at).0);
        self.area += i128::from(rate) * length;
        self.moment += i128::from(rate) * (length * length + 2 * length * after);
    }
}

/// A rate's history over one lookback.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Window {
    lookback: Span,
    /// Steps later than the tail, by time.
    steps: VecDeque<(Time, Rate)>,
    head: Cursor,
    tail: Cursor,
}

impl Window {
    /// A rate that has been `rate` for the whole lookback before `at`.
    pub(crate) fn new(at: Time, lookback: Span, rate: Rate) -> Window {
        let tail = Cursor { at: at - lookback, rate, area: 0, moment: 0 };
        let mut head = tail;
        head.advance(at);
        Window { lookback, steps: VecDeque::new(), head, tail }
    }

    /// The rate now.
    pub(crate) fn rate(&self) -> Rate {
        self.head.rate
    }

    /// Changes the rate from `at` on.
    pub(crate) fn add(&mut self, at: Time, delta: Rate) {
        if delta == 0 {
            return;
        }
        self.head.advance(at);
        self.head.rate += delta;
        match self.steps.back_mut() {
            Some((time, step)) if *time == at => *step += delta,
            _ => self.steps.push_back((at, delta)),
        }
        // Old steps are dropped as new ones come, so that a window that nobody reads stays small.
        self.advance_tail(at - self.lookback);
    }

    /// Adds `rate` to a stretch of the past.
    pub(crate) fn amend(&mut self, from: Time, to: Time, rate: Rate) {
        assert!(from <= to && to <= self.head.at, "only the past is amended");
        self.head.amend(from, to, rate);
        self.tail.amend(from, to, rate);
        for (time, step) in [(from, rate), (to, -rate)] {
            if time > self.tail.at {
                let index = self.steps.partition_point(|(t, _)| *t <= time);
                self.steps.insert(index, (time, step));
            }
        }
    }

    /// The weighted integral at `at`, times 2 · lookback: in rate · ms². Two windows of one lookback may be compared and divided.
    pub(crate) fn weighted(&mut self, at: Time, kernel: Kernel) -> i128 {
        self.head.advance(at);
        self.advance_tail(at - self.lookback);
        self.weigh(kernel)
    }

    /// The same history, each rate times `numerator / denominator`, rounded down.
    pub(crate) fn scaled(&self, numerator: i128, denominator: i128) -> Window {
        let scale = |rate: Rate| (i128::from(rate) * numerator / denominator) as Rate;
        let mut rate = self.tail.rate;
        let mut window = Window::new(self.tail.at + self.lookback, self.lookback, scale(rate));
        window.head = window.tail;
        for (time, step) in &self.steps {
            let before = scale(rate);
            rate += step;
            window.head.advance(*time);
            window.head.rate += scale(rate) - before;
            window.steps.push_back((*time, scale(rate) - before));
        }
        window.head.advance(self.head.at);
        window
    }

    /// The same history for another lookback from `at` on; what lay before the old one then is taken to have been as at its beginning,
    /// whoever read the window when.
    pub(crate) fn with_lookback(&self, at: Time, lookback: Span) -> Window {
        let mut window = self.moved(at);
        if lookback == self.lookback {
            return window;
        }
        let head_at = window.head.at;
        window.lookback = lookback;
        let tail = window.head.at - lookback;
        if tail > window.tail.at {
            window.advance_tail(tail);
        } else {
            let behind = Cursor { at: tail, rate: window.tail.rate, area: 0, moment: 0 };
            window.tail = behind;
            window.head = behind;
            for (time, step) in &window.steps {
                window.head.advance(*time);
                window.head.rate += step;
            }
            window.head.advance(head_at);
        }
        window
    }

    fn moved(&self, at: Time) -> Window {
        let mut window = self.clone();
        window.head.advance(at);
        window.advance_tail(at - window.lookback);
        window
    }

    fn advance_tail(&mut self, to: Time) {
        while let Some((time, step)) = self.steps.front().copied()
            && time <= to
        {
            self.tail.advance(time);
            self.tail.rate += step;
            self.steps.pop_front();
        }
        self.tail.advance(to);
    }

    fn weigh(&self, kernel: Kernel) -> i128 {
        let twice = 2 * i128::from(self.lookback.0);
        match kernel {
            Kernel::Fading => twice * self.head.area - (self.head.moment - self.tail.moment),
            Kernel::Sliding => twice * (self.head.area - self.tail.area),
        }
    }

    /// Feeds what the window means at `at`, however far its cursors have been moved.
    pub(crate) fn hash_at<H: Hasher>(&self, at: Time, state: &mut H) {
        let window = self.moved(at);
        window.steps.hash(state);
        window.tail.rate.hash(state);
        window.weigh(Kernel::Fading).hash(state);
        window.weigh(Kernel::Sliding).hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOKBACK: Span = Span(50);

    /// The weighted integral of a rate given millisecond by millisecond, times 2 · lookback.
    fn brute_force(rate: &dyn Fn(i64) -> i128, at: i64, kernel: Kernel) -> i128 {
        let lookback = LOOKBACK.0;
        (at - lookback..at)
            .map(|ms| match kernel {
                // Over the millisecond [ms, ms + 1) the line's mean weight, times 2 · lookback, is an integer.
                Kernel::Fading => rate(ms) * i128::from(2 * (ms - (at - lookback)) + 1),
                Kernel::Sliding => rate(ms) * i128::from(2 * lookback),
            })
            .sum()
    }

    /// A small generator of our own: SplitMix64.
    fn random(state: &mut u64, below: u64) -> i64 {
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = *state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % below) as i64
    }

    #[test]
    fn equals_brute_force_on_random_histories_with_amendments() {
        for seed in 0..200 {
            let mut state = seed;
            let mut rates = vec![0i128; 600];
            let mut window = Window::new(Time(0), LOOKBACK, 0);
            let mut now = 0;
            while now < 400 {
                now += random(&mut state, 30);
                if random(&mut state, 4) == 0 {
                    let from = (now - random(&mut state, 90)).max(0);
                    let to = from + random(&mut state, (now - from) as u64 + 1);
                    window.add(Time(now), 0);
                    window.weighted(Time(now), Kernel::Fading);
                    window.amend(Time(from), Time(to), 7);
                    (from..to).for_each(|ms| rates[ms as usize] += 7);
                } else {
                    let delta = random(&mut state, 20) - 10;
                    window.add(Time(now), delta);
                    (now..600).for_each(|ms| rates[ms as usize] += i128::from(delta));
                }
                let rate = |ms: i64| if ms < 0 { 0 } else { rates[ms as usize] };
                for kernel in [Kernel::Fading, Kernel::Sliding] {
                    assert_eq!(window.weighted(Time(now), kernel), brute_force(&rate, now, kernel), "seed {seed} at {now} {kernel:?}");
                }
            }
        }
    }

    #[test]
    fn a_rate_that_was_always_there_fills_the_whole_lookback() {
        let mut window = Window::new(Time(0), LOOKBACK, 3);
        assert_eq!(window.weighted(Time(0), Kernel::Sliding), 3 * 50 * 100);
        assert_eq!(window.weighted(Time(0), Kernel::Fading), 3 * 50 * 50);
        assert_eq!(window.weighted(Time(1234), Kernel::Fading), 3 * 50 * 50);
    }

    #[test]
    fn scaled_history_keeps_its_form() {
        let mut window = Window::new(Time(0), LOOKBACK, 10);
        window.add(Time(20), 30);
        let mut half = window.scaled(1, 2);
        assert_eq!(half.rate(), 20);
        assert_eq!(half.weighted(Time(40), Kernel::Fading) * 2, window.weighted(Time(40), Kernel::Fading));
    }

    #[test]
    fn another_lookback_sees_what_is_known() {
        let mut window = Window::new(Time(0), Span(100), 0);
        window.add(Time(10), 5);
        window.add(Time(60), -5);
        let mut shorter = window.with_lookback(Time(60), Span(20));
        assert_eq!(shorter.weighted(Time(70), Kernel::Sliding), 5 * 10 * 40);
        let mut longer = window.with_lookback(Time(60), Span(400));
        assert_eq!(longer.weighted(Time(70), Kernel::Sliding), 5 * 50 * 800);
    }

    #[test]
    fn another_lookback_sees_the_same_whoever_read_the_window_when() {
        let mut window = Window::new(Time(0), Span(100), 0);
        window.add(Time(10), 5);
        window.add(Time(60), -5);
        for lookback in [20, 400] {
            let mut read = window.clone();
            read.weighted(Time(130), Kernel::Fading);
            let mut longer = [&window, &read].map(|one| one.with_lookback(Time(130), Span(lookback)));
            let [a, b] = longer.each_mut().map(|one| one.weighted(Time(140), Kernel::Fading));
            assert_eq!(a, b, "{lookback}");
        }
    }
}
