//! Random numbers that are the same on every machine: PCG streams, and distributions on `libm` instead of the platform's mathematics.

use rand_core::Rng;
use rand_pcg::Pcg64;

/// What a random stream is for. Each thing draws from its own, so that one more draw here changes nothing there.
#[derive(Clone, Copy, Debug)]
pub enum Purpose {
    /// How the demand factors of a lab's teams are shuffled.
    Factors = 1,
    /// When a team is on and off.
    Phases = 2,
    /// The workloads of one stream.
    Stream = 3,
    /// The failures of one node.
    Host = 4,
    /// Contracts of a trace's rows.
    Row = 5,
    /// Who behaves otherwise.
    Behaviour = 6,
}

/// One stream of random numbers.
#[derive(Clone, Debug)]
pub struct Random(Pcg64);

impl Random {
    /// The stream for the `number`th thing of this purpose under `seed`.
    pub fn new(seed: u64, purpose: Purpose, number: u64) -> Random {
        let key = mix(mix(seed).wrapping_add(purpose as u64)).wrapping_add(number);
        let state = u128::from(mix(key)) << 64 | u128::from(mix(key ^ 0x5851_f42d_4c95_7f2d));
        Random(Pcg64::new(state, u128::from(mix(key.rotate_left(32)))))
    }

    /// Evenly from 0 (included) to 1 (not included).
    pub fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Evenly from `low` to `high`.
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// A whole number below `n`, which is at least 1.
    pub fn below(&mut self, n: usize) -> usize {
        ((self.unit() * n as f64) as usize).min(n - 1)
    }

    /// Exponentially distributed with this mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * libm::log(1.0 - self.unit())
    }

    /// Log-normally distributed: `spread` is the standard deviation of the logarithm.
    pub fn lognormal(&mut self, median: f64, spread: f64) -> f64 {
        median * libm::exp(spread * self.normal())
    }

    /// An index, with probability in proportion to its weight; `cumulative` holds the running sums of the weights.
    pub fn weighted(&mut self, cumulative: &[f64]) -> usize {
        let total = cumulative.last().copied().unwrap_or(0.0);
        let drawn = self.unit() * total;
        cumulative.partition_point(|&sum| sum <= drawn).min(cumulative.len().saturating_sub(1))
    }

    /// Puts `items` in random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }

    /// The Box–Muller transform; its second value is thrown away so that each draw takes the same two numbers.
    fn normal(&mut self) -> f64 {
        let (u, v) = (1.0 - self.unit(), self.unit());
        libm::sqrt(-2.0 * libm::log(u)) * libm::cos(core::f64::consts::TAU * v)
    }
}

/// The running sums of `weights`.
pub fn cumulative(weights: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let sums = weights.into_iter().scan(0.0, |sum, weight| {
        *sum += weight;
        Some(*sum)
    });
    sums.collect()
}

/// Zipf weights: the `i`th of `n` has 1 / (i + 1)^exponent.
pub fn zipf(n: usize, exponent: f64) -> Vec<f64> {
    (0..n).map(|i| libm::pow(1.0 / (i + 1) as f64, exponent)).collect()
}

/// The finaliser of SplitMix64: spreads neighbouring numbers over all 64 bits.
pub fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(mut draw: impl FnMut() -> f64) -> f64 {
        (0..20_000).map(|_| draw()).sum::<f64>() / 20_000.0
    }

    #[test]
    fn streams_are_fixed_and_differ() {
        let first = |seed, number| Random::new(seed, Purpose::Stream, number).0.next_u64();
        assert_eq!(first(1, 0), first(1, 0));
        assert_ne!(first(1, 0), first(1, 1));
        assert_ne!(first(1, 0), first(2, 0));
        // The very bytes: a change here changes every published figure.
        assert_eq!(first(1, 0), FIRST);
    }

    #[test]
    fn distributions_have_their_means() {
        let mut random = Random::new(7, Purpose::Stream, 0);
        assert!((mean(|| random.exponential(3.0)) - 3.0).abs() < 0.1);
        assert!((mean(|| random.lognormal(1.0, 0.5)) - libm::exp(0.125)).abs() < 0.03);
        let sums = cumulative([1.0, 0.0, 3.0]);
        let mut counts = [0; 3];
        for _ in 0..4000 {
            counts[random.weighted(&sums)] += 1;
        }
        assert!((900..1100).contains(&counts[0]) && counts[1] == 0, "{counts:?}");
    }

    #[test]
    fn a_shuffle_keeps_every_item() {
        let mut items: Vec<u32> = (0..50).collect();
        Random::new(3, Purpose::Factors, 0).shuffle(&mut items);
        assert_ne!(items, (0..50).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..50).collect::<Vec<_>>());
    }

    const FIRST: u64 = 16_562_780_467_571_178_649;
}
