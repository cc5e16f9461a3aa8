//! A rate, with how much it can be trusted.

use serde::Serialize;

/// How many of how many, and between what the rate behind it lies (95 %, Wilson's interval).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Rate {
    /// So many.
    pub count: u64,
    /// Of so many.
    pub of: u64,
    /// As a fraction; 0 of none.
    pub rate: f64,
    /// The rate behind it is hardly lower.
    pub low: f64,
    /// Nor higher.
    pub high: f64,
}

impl Rate {
    /// `count` of `of`; at most all.
    pub fn of(count: u64, of: u64) -> Rate {
        if of == 0 {
            return Rate { high: 1.0, ..Rate::default() };
        }
        let (n, p) = (of as f64, count as f64 / of as f64);
        // 1.96²
        let z2 = 3.8416;
        let middle = p + z2 / (2.0 * n);
        let spread = libm::sqrt(z2 * (p * (1.0 - p) + z2 / (4.0 * n)) / n);
        let bound = |value: f64| (value / (1.0 + z2 / n)).clamp(0.0, 1.0);
        Rate { count, of, rate: p, low: bound(middle - spread), high: bound(middle + spread) }
    }
}

#[cfg(test)]
mod tests {
    use super::Rate;

    #[test]
    fn few_cases_say_little() {
        let few = Rate::of(1, 3);
        assert!((few.low - 0.0615).abs() < 0.001 && (few.high - 0.792).abs() < 0.001, "{few:?}");
        let many = Rate::of(1000, 3000);
        assert!(many.high - many.low < 0.04 && many.low < many.rate && many.rate < many.high);
        assert_eq!((Rate::of(0, 0).low, Rate::of(0, 0).high), (0.0, 1.0));
        assert_eq!((Rate::of(5, 5).high, Rate::of(0, 5).low), (1.0, 0.0));
    }
}
