//! Owed and delivered in buckets of an hour: the calculation itself, for simulated budgets and for series sampled on a real cluster.

use super::HOUR;
use super::figures::Score;
use super::summary::part;
use stipend_core::quantity::{Claim, GpuMs, Span};

/// GPU time × [`Claim::WHOLE`], so that a claim's part of the capacity stays an integer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fine(pub i128);

impl Fine {
    /// In the finer unit.
    pub(super) fn of(time: GpuMs) -> Fine {
        Fine(i128::from(time.0) * i128::from(Claim::WHOLE.0))
    }
}

/// One hour of one budget; the last hour of a run may be shorter.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hour {
    /// What the budget was owed: of its part of the capacity as much as it asked for.
    pub owed: Fine,
    /// claim × capacity.
    pub entitled: Fine,
    /// What it got.
    pub delivered: GpuMs,
}

impl Hour {
    /// Adds `ms` in which nothing changes: `demand` and `running` GPUs of a budget with this claim on a capacity of so many GPUs.
    pub(super) fn add(&mut self, ms: i64, claim: Claim, capacity: i64, demand: i64, running: i64) {
        let entitled = i128::from(claim.0) * i128::from(capacity);
        self.entitled.0 += entitled * i128::from(ms);
        self.owed.0 += entitled.min(i128::from(demand) * i128::from(Claim::WHOLE.0)) * i128::from(ms);
        self.delivered += GpuMs(running * ms);
    }
}

/// GPUs of one budget at one moment of a real cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// What it is entitled to.
    pub quota: u32,
    /// What its work holds.
    pub running: u32,
    /// What its waiting work asks for.
    pub pending: u32,
}

/// How often owed is taken from samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// At each sample, as the simulator does at each moment: owed = min(quota, running + pending) of then.
    EachSample,
    /// Once an hour, from the hour's sums: what was asked for too much in one minute makes up for another minute of the same hour.
    EachHour,
}

/// The hours of a series of samples, `every` so often (at most an hour).
pub fn of_samples(samples: &[Sample], every: Span, taken: Taken) -> Vec<Hour> {
    let in_hour = usize::try_from(HOUR.0 / every.0.clamp(1, HOUR.0)).expect("few samples an hour");
    let one = |hour: &[Sample]| {
        let mut sum = Hour::default();
        let mut add = |quota: i64, running: i64, pending: i64| sum.add(every.0, Claim::WHOLE, quota, running + pending, running);
        match taken {
            Taken::EachSample => hour.iter().for_each(|sample| add(sample.quota.into(), sample.running.into(), sample.pending.into())),
            Taken::EachHour => {
                let total = |of: fn(&Sample) -> u32| hour.iter().map(|sample| i64::from(of(sample))).sum();
                add(total(|sample| sample.quota), total(|sample| sample.running), total(|sample| sample.pending));
            }
        }
        sum
    };
    samples.chunks(in_hour).map(one).collect()
}

/// What was delivered of what was owed over all these hours, at most all of it; `None` where nothing was owed.
pub fn delivered_of_owed(hours: &[Hour]) -> Option<f64> {
    part(Score::period(hours))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(quota: u32, running: u32, pending: u32) -> Sample {
        Sample { quota, running, pending }
    }

    #[test]
    fn owed_and_delivered_of_a_series_by_the_minute() {
        // An hour in which 8 of 16 GPUs run and 4 wait; then one in which 16 run and 100 wait for half of it, and nothing is wanted in the other.
        let first = vec![sample(16, 8, 4); 60];
        let second = [vec![sample(16, 16, 100); 30], vec![sample(16, 0, 0); 30]].concat();
        let samples = [first, second].concat();
        let hours = of_samples(&samples, Span::minutes(1), Taken::EachSample);
        let gpu_minutes = |time: Fine| time.0 / i128::from(Claim::WHOLE.0) / 60_000;
        let shown: Vec<(i128, i64)> = hours.iter().map(|hour| (gpu_minutes(hour.owed), hour.delivered.0 / 60_000)).collect();
        assert_eq!(shown, [(12 * 60, 8 * 60), (16 * 30, 16 * 30)]);
        assert_eq!(delivered_of_owed(&hours), Some(0.8));
        // By the hour the second one asked for 58 GPUs on average, and was owed its whole quota.
        let hours = of_samples(&samples, Span::minutes(1), Taken::EachHour);
        assert_eq!(hours.iter().map(|hour| gpu_minutes(hour.owed)).collect::<Vec<_>>(), [12 * 60, 16 * 60]);
        assert_eq!(delivered_of_owed(&hours), Some(0.571_429));
    }

    #[test]
    fn nothing_owed_is_no_figure() {
        assert_eq!(delivered_of_owed(&of_samples(&[sample(8, 0, 0)], Span::minutes(1), Taken::EachHour)), None);
    }
}
