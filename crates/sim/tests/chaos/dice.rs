//! The one source of chance of a history: a portable generator, so that a seed means the same everywhere.

use rand_core::Rng;
use rand_pcg::Pcg64;

pub(crate) struct Dice(Pcg64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Dice {
        Dice(Pcg64::new(u128::from(seed), 0x0a02_bdbf_7bb3_c0a7_ac28_fa16_a64a_bf96))
    }

    /// From 0 up to and without `n`.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.0.next_u64() % n.max(1)
    }

    /// From `low` to `high`, both included.
    pub(crate) fn from(&mut self, low: i64, high: i64) -> i64 {
        low + self.below((high - low + 1).max(1) as u64) as i64
    }

    /// True once in `n` times.
    pub(crate) fn once_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }

    /// A length that is mostly short and sometimes long: about `mean`, at most 8 times that.
    pub(crate) fn around(&mut self, mean: i64) -> i64 {
        match self.below(8) {
            0 => self.from(mean, 8 * mean),
            1..=2 => self.from(mean / 2, 2 * mean),
            _ => self.from(1, mean.max(1)),
        }
    }
}
