//! What became of ended work, and what that says of work that waits: how likely it is to complete, how long it may run, how sure that is.
//!
//! Each outcome is counted four times: for its family (work that is alike, as the shell tells it), its user, its budget, and all. A level
//! with few outcomes of its own leans on the next one: a Dirichlet prior of [`PRIOR`] outcomes spread as that level's are (partial pooling,
//! as in Gelman et al., *Bayesian Data Analysis*, chapter 5). Outcomes are counted by the run time at which they came, so that what is
//! said of work that has run for a while counts only those that came later: the survivors' odds.

use crate::id::{BudgetId, FamilyId, UserId};
use crate::quantity::{Ppm, Span};
use crate::spec::WorkloadSpec;
use std::collections::BTreeMap;

/// Run times are told apart by powers of two of a minute: from below 2 min to above a year.
const BUCKETS: usize = 20;

/// One outcome, as it is counted: halved again and again it fades without a jump.
const ONE: u32 = 1 << 8;

/// A level's outcomes are halved when they are more than this: the past fades, and what is new counts.
const KEPT: u32 = 64 * ONE;

/// So many outcomes of the next level a level starts with.
const PRIOR: u64 = 4;

/// At most so many families are remembered; the one that was silent longest is forgotten. A few hundred bytes each.
const FAMILIES_MAX: usize = 1 << 16;

/// The outcomes of one level, by run time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct Tally {
    completed: [u16; BUCKETS],
    failed: [u16; BUCKETS],
    /// How many there ever were.
    seen: u32,
}

impl Tally {
    fn add(&mut self, bucket: usize, completed: bool) {
        let Tally { completed: good, failed: bad, seen } = self;
        let side = if completed { &mut *good } else { &mut *bad };
        side[bucket] += ONE as u16;
        *seen = seen.saturating_add(1);
        let all = || good.iter().chain(bad.iter());
        if all().map(|count| u32::from(*count)).sum::<u32>() > KEPT {
            good.iter_mut().chain(bad).for_each(|count| *count /= 2);
        }
    }
}

/// Outcomes by run time as parts of one, in 2⁻³²: `[completed, failed]` of each bucket.
type Spread = [[u64; 2]; BUCKETS];

/// How many outcomes a spread stands for, in 1/[`ONE`].
struct Belief {
    spread: Spread,
    weight: u64,
}

impl Belief {
    /// Either end, at the times at which work ends: nothing is known of which.
    fn even(all: &Tally) -> Belief {
        let at = |bucket: usize| u64::from(all.completed[bucket]) + u64::from(all.failed[bucket]);
        let weight: u64 = (0..BUCKETS).map(at).sum();
        let mut spread = [[0; 2]; BUCKETS];
        for (bucket, sides) in spread.iter_mut().enumerate() {
            let part = (WHOLE * at(bucket)).checked_div(weight).unwrap_or(WHOLE / BUCKETS as u64);
            *sides = [part / 2; 2];
        }
        Belief { spread, weight: 0 }
    }

    /// What a level's own outcomes make of what is believed of the one above it.
    fn told(&self, tally: Option<&Tally>) -> Belief {
        let own = |bucket: usize| tally.map_or([0; 2], |tally| [tally.completed[bucket].into(), tally.failed[bucket].into()]);
        let prior = PRIOR * u64::from(ONE);
        let weight = prior + (0..BUCKETS).flat_map(own).sum::<u64>();
        let mut spread = self.spread;
        for (bucket, sides) in spread.iter_mut().enumerate() {
            for (part, own) in sides.iter_mut().zip(own(bucket)) {
                *part = (*part * prior + own * WHOLE) / weight;
            }
        }
        Belief { spread, weight }
    }
}

const WHOLE: u64 = 1 << 32;

/// What the past says of one workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Estimate {
    /// How many outcomes of its family there were; 0 for a newcomer, of whom its user, its budget and all others tell.
    pub outcomes: u32,
    /// How likely it is to complete, from 0 to 1.
    pub completes: Ppm,
    /// The same, less one standard error: who is little known is trusted less.
    pub completes_at_least: Ppm,
    /// Of the time that such work runs, the part that leads to a completion; by the lower bound.
    pub useful: Ppm,
    /// Half of such work ends, either way, before it has run so long in all.
    pub runtime_p50: Span,
    /// And nine in ten.
    pub runtime_p90: Span,
}

/// Whose outcomes they are: from the closest kin to the widest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kin {
    /// Work that is alike; `None` where the shell cannot tell.
    pub family: Option<FamilyId>,
    /// Who submits it.
    pub user: UserId,
    /// What it is charged to.
    pub budget: BudgetId,
}

impl From<&WorkloadSpec> for Kin {
    fn from(spec: &WorkloadSpec) -> Kin {
        Kin { family: spec.family, user: spec.user, budget: spec.budget }
    }
}

/// The outcomes of ended work: bounded memory, an outcome or an estimate in O(log families).
#[derive(Clone, Debug, Default, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Records {
    /// Each with the number of its latest outcome.
    families: BTreeMap<FamilyId, (u64, Tally)>,
    /// The families by their latest outcome.
    latest: BTreeMap<u64, FamilyId>,
    users: BTreeMap<UserId, Tally>,
    budgets: BTreeMap<BudgetId, Tally>,
    all: Tally,
    outcomes: u64,
}

impl Records {
    /// Work ended after it had run for `ran` over all attempts: it completed, or it failed or reached its limit. What its owner, a node or
    /// another's claim ended says nothing of it and is not told.
    pub fn ended(&mut self, kin: Kin, ran: Span, completed: bool) {
        let bucket = bucket(ran);
        self.outcomes += 1;
        if let Some(family) = kin.family {
            let (latest, tally) = self.families.entry(family).or_default();
            self.latest.remove(&std::mem::replace(latest, self.outcomes));
            tally.add(bucket, completed);
            self.latest.insert(self.outcomes, family);
            if self.families.len() > FAMILIES_MAX
                && let Some((_, oldest)) = self.latest.pop_first()
            {
                self.families.remove(&oldest);
            }
        }
        self.users.entry(kin.user).or_default().add(bucket, completed);
        self.budgets.entry(kin.budget).or_default().add(bucket, completed);
        self.all.add(bucket, completed);
    }

    /// What is to be expected of work that has run for `ran` already; of what ended until now, nothing else.
    pub fn estimate(&self, kin: Kin, ran: Span) -> Estimate {
        let family = kin.family.and_then(|family| self.families.get(&family)).map(|(_, tally)| tally);
        let belief = Belief::even(&self.all).told(Some(&self.all)).told(self.budgets.get(&kin.budget)).told(self.users.get(&kin.user));
        let belief = if kin.family.is_some() { belief.told(family) } else { belief };
        let from = bucket(ran);
        let sum = |side: usize, worth: fn(usize) -> u64| -> u64 {
            (from..BUCKETS).map(|bucket| belief.spread[bucket][side] * worth(bucket)).sum()
        };
        let count = |_: usize| 1;
        // Of what has run longer than anything before nothing is known.
        let (good, bad) = (sum(0, count).max(1), sum(1, count).max(1));
        let completes = good * MILLION / (good + bad);
        let outcomes = belief.weight * (good + bad) / WHOLE / u64::from(ONE);
        let error = (completes * (MILLION - completes) / (outcomes + 1)).isqrt();
        let at_least = completes.saturating_sub(error);
        // Mean run times of either end, in half minutes.
        let (good_time, bad_time) = (sum(0, middle) / good, sum(1, middle) / bad);
        let (led, lost) = (at_least * good_time, (MILLION - at_least) * bad_time);
        let quantile = |percent: u64| {
            let needed = (good + bad) / 100 * percent;
            let mut passed = 0;
            let ends = (from..BUCKETS).find(|bucket| {
                passed += belief.spread[*bucket].iter().sum::<u64>();
                passed >= needed
            });
            Span::minutes(2 << ends.unwrap_or(BUCKETS - 1))
        };
        Estimate {
            outcomes: family.map_or(0, |tally| tally.seen),
            completes: Ppm(completes as u32),
            completes_at_least: Ppm(at_least as u32),
            useful: Ppm((led * MILLION / (led + lost).max(1)) as u32),
            runtime_p50: quantile(50),
            runtime_p90: quantile(90),
        }
    }
}

const MILLION: u64 = 1_000_000;

/// Bucket `k` holds run times from 2ᵏ min to 2ᵏ⁺¹ min, the first all below that.
fn bucket(ran: Span) -> usize {
    let minutes = u64::try_from(ran.0 / 60_000).unwrap_or(0).max(1);
    (minutes.ilog2() as usize).min(BUCKETS - 1)
}

/// The middle of a bucket, in half minutes.
fn middle(bucket: usize) -> u64 {
    3 << bucket
}

#[cfg(test)]
mod tests;
