//! Quantities: newtype integers, so that a GPU is never added to a millisecond.
//!
//! The core has no floating point. Time is milliseconds since an origin that the shell chooses; GPU time is GPUs × milliseconds,
//! exact: 80,000 GPUs for ten years are 2.5 × 10¹⁶, far below the 9.2 × 10¹⁸ of an `i64`.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul, Sub, SubAssign};

/// A point in time: milliseconds since the shell's origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Time(pub i64);

/// A length of time in milliseconds; negative only in between.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Span(pub i64);

/// A number of GPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Gpus(pub u32);

/// GPU time: GPUs × milliseconds, exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct GpuMs(pub i64);

/// Parts per million: a budget's share of its parent, a threshold, a fraction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Ppm(pub u32);

/// A budget's claim on its pool: the product of the shares down its path, in parts per 10⁹, each step rounded down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Claim(pub u64);

/// How much of what it was entitled to a budget has had: parts per million, one fixed-point integer that is compared *and* printed.
/// 1,000,000 is exactly its share; [`Standing::LAST`] is a budget entitled to nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Standing(pub u64);

impl Time {
    /// Before everything.
    pub const MIN: Time = Time(i64::MIN);
    /// After everything.
    pub const MAX: Time = Time(i64::MAX);
}

impl Span {
    /// No time at all.
    pub const ZERO: Span = Span(0);

    /// `s` seconds.
    pub const fn seconds(s: i64) -> Span {
        Span(s * 1000)
    }
    /// `m` minutes.
    pub const fn minutes(m: i64) -> Span {
        Span(m * 60_000)
    }
    /// `h` hours.
    pub const fn hours(h: i64) -> Span {
        Span(h * 3_600_000)
    }
    /// `d` days.
    pub const fn days(d: i64) -> Span {
        Span(d * 86_400_000)
    }
}

impl Gpus {
    /// GPUs held for `span`.
    pub fn over(self, span: Span) -> GpuMs {
        GpuMs(i64::from(self.0) * span.0)
    }
}

impl Ppm {
    /// The whole: 1,000,000 parts.
    pub const ONE: Ppm = Ppm(1_000_000);

    /// This fraction of `value`, rounded down.
    pub fn of(self, value: i64) -> i64 {
        let product = i128::from(value) * i128::from(self.0) / 1_000_000;
        i64::try_from(product).expect("a fraction of an i64 of at most u32::MAX parts per million stays an i64 here")
    }
}

impl Claim {
    /// The whole pool.
    pub const WHOLE: Claim = Claim(1_000_000_000);

    /// The claim of a child with `share` of this claim, rounded down.
    pub fn child(self, share: Ppm) -> Claim {
        Claim(self.0 * u64::from(share.0) / 1_000_000)
    }
}

impl Standing {
    /// Exactly its share: whoever stands below has less than it is owed.
    pub const SHARE: Standing = Standing(1_000_000);
    /// A budget entitled to nothing stands behind all others.
    pub const LAST: Standing = Standing(u64::MAX);
}

impl Add<Span> for Time {
    type Output = Time;
    fn add(self, span: Span) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}
impl Sub<Span> for Time {
    type Output = Time;
    fn sub(self, span: Span) -> Time {
        Time(self.0.saturating_sub(span.0))
    }
}
impl Sub for Time {
    type Output = Span;
    fn sub(self, earlier: Time) -> Span {
        Span(self.0 - earlier.0)
    }
}
impl Add for Span {
    type Output = Span;
    fn add(self, other: Span) -> Span {
        Span(self.0 + other.0)
    }
}
impl Sub for Span {
    type Output = Span;
    fn sub(self, other: Span) -> Span {
        Span(self.0 - other.0)
    }
}
impl Mul<i64> for Span {
    type Output = Span;
    fn mul(self, times: i64) -> Span {
        Span(self.0 * times)
    }
}
impl Add for Gpus {
    type Output = Gpus;
    fn add(self, other: Gpus) -> Gpus {
        Gpus(self.0 + other.0)
    }
}
impl Sub for Gpus {
    type Output = Gpus;
    fn sub(self, other: Gpus) -> Gpus {
        Gpus(self.0 - other.0)
    }
}
impl AddAssign for Gpus {
    fn add_assign(&mut self, other: Gpus) {
        self.0 += other.0;
    }
}
impl SubAssign for Gpus {
    fn sub_assign(&mut self, other: Gpus) {
        self.0 -= other.0;
    }
}
impl Sum for Gpus {
    fn sum<I: Iterator<Item = Gpus>>(iter: I) -> Gpus {
        iter.fold(Gpus(0), Add::add)
    }
}
impl Add for GpuMs {
    type Output = GpuMs;
    fn add(self, other: GpuMs) -> GpuMs {
        GpuMs(self.0 + other.0)
    }
}
impl Sub for GpuMs {
    type Output = GpuMs;
    fn sub(self, other: GpuMs) -> GpuMs {
        GpuMs(self.0 - other.0)
    }
}
impl AddAssign for GpuMs {
    fn add_assign(&mut self, other: GpuMs) {
        self.0 += other.0;
    }
}
impl Sum for GpuMs {
    fn sum<I: Iterator<Item = GpuMs>>(iter: I) -> GpuMs {
        iter.fold(GpuMs(0), Add::add)
    }
}

impl fmt::Display for Span {
    /// `2 d 3 h`, `1 h 40 min`, `12 min 5 s`, `350 ms`: the two largest units.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = self.0.unsigned_abs();
        if self.0 < 0 {
            write!(f, "-")?;
        }
        if ms < 1000 {
            return write!(f, "{ms} ms");
        }
        let seconds = ms / 1000;
        let units = [(86_400, 3600, "d", "h"), (3600, 60, "h", "min"), (60, 1, "min", "s")];
        for (unit, next, name, next_name) in units {
            if seconds >= unit {
                let rest = seconds % unit / next;
                write!(f, "{} {name}", seconds / unit)?;
                return if rest == 0 { Ok(()) } else { write!(f, " {rest} {next_name}") };
            }
        }
        write!(f, "{seconds} s")
    }
}

impl fmt::Display for Standing {
    /// `87.25 %` of what it is entitled to.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Standing::LAST {
            return write!(f, "entitled to nothing");
        }
        write!(f, "{}.{:02} %", self.0 / 10_000, self.0 / 100 % 100)
    }
}
