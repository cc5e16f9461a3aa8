//! How the workloads of a stream are drawn: size, work, contract.

use super::families::Families;
use crate::job::{Input, Job, checkpoint_default, start_default, unprotected_default};
use crate::random::Random;
use std::sync::Arc;
use stipend_core::id::{BudgetId, UserId};
use stipend_core::quantity::{Ppm, Span};
use stipend_core::spec::{Gang, OnPreempt, Pools, Start, WorkloadKind, WorkloadSpec};

/// The distribution of the workloads of a stream.
#[derive(Clone, Debug)]
pub(crate) struct Recipe {
    /// The pools that they accept.
    pub(crate) pools: Pools,
    /// What the gangs may be.
    pub(crate) gangs: Vec<Gang>,
    /// Running sums of the gangs' weights.
    pub(crate) gang_weights: Vec<f64>,
    /// How much work.
    pub(crate) work: WorkLengths,
    /// The contracts that `resume` work declares, one of them each time and never more than its work needs; empty is unallocated work.
    pub(crate) min_runtimes: Vec<Span>,
    /// The longest contract of work that is not `end`.
    pub(crate) min_runtime_max: Span,
    /// The longest time limit that `end` work declares.
    pub(crate) end_max: Span,
    /// Whether its work may start before its turn, where that is said.
    pub(crate) start: Option<Start>,
    /// Batch work or sessions, and how these are used.
    pub(crate) kind: WorkloadKind,
    pub(crate) input: Option<Input>,
    /// The part that can resume.
    pub(crate) resume: f64,
    /// The part that restarts; the rest ends.
    pub(crate) restart: f64,
    /// The time limit as a multiple of the work, for work that is not `end`.
    pub(crate) time_limit: Option<f64>,
    /// Its priority inside its budget.
    pub(crate) priority: i16,
    /// The part of its running time in which the work works.
    pub(crate) useful: Ppm,
    /// How it fails.
    pub(crate) families: Families,
}

/// Log-normal lengths between two bounds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WorkLengths {
    pub(crate) median: Span,
    pub(crate) spread: f64,
    pub(crate) min: Span,
    pub(crate) max: Span,
}

/// People declare between 1.05 and 2.05 times what their work takes.
const DECLARED: (f64, f64) = (1.05, 2.05);

impl Recipe {
    /// The mean number of GPUs of a gang.
    pub(crate) fn mean_gpus(&self) -> f64 {
        let total = self.gang_weights.last().copied().unwrap_or(1.0);
        let mut below = 0.0;
        let mut sum = 0.0;
        for (gang, &up_to) in self.gangs.iter().zip(&self.gang_weights) {
            sum += f64::from(gang.gpus().0) * (up_to - below);
            below = up_to;
        }
        sum / total
    }

    /// The next workload. Takes the same number of draws each time, so that one choice does not shift the others.
    pub(crate) fn draw(&self, random: &mut Random, budget: BudgetId, user: UserId, stream: u32) -> Job {
        let gang = self.gangs[random.weighted(&self.gang_weights)];
        let drawn = self.work.draw(random);
        let on_preempt = self.on_preempt(random.unit());
        // Whoever has work that cannot go on cuts it to what may be declared.
        let work = if on_preempt == OnPreempt::End { drawn.min(self.end_max) } else { drawn };
        let choice = random.below(self.min_runtimes.len().max(1));
        let declared = (work.0 as f64 * random.between(DECLARED.0, DECLARED.1)) as i64;
        let (family, ends) = self.families.draw(user, gang, drawn.0.unsigned_abs(), random.unit());
        let whole = round_up(work);
        let limit = round_up(Span(declared)).min(self.end_max).max(whole);
        let min_runtime = match on_preempt {
            _ if self.min_runtimes.is_empty() => Span::ZERO,
            OnPreempt::Resume => self.min_runtimes[choice].min(whole),
            OnPreempt::Restart => whole.min(self.min_runtime_max),
            OnPreempt::End => limit,
        };
        let time_limit = match on_preempt {
            OnPreempt::End => Some(limit),
            _ => self.time_limit.map(|factor| round_up(Span((work.0 as f64 * factor) as i64))),
        };
        // Whoever must state a limit thinks that the work takes about that; others think so without having to state it.
        let expected_runtime = Some(round_up(Span(declared)));
        let checkpoint_every = checkpoint_default(min_runtime);
        let spec = WorkloadSpec {
            budget,
            user,
            family,
            pools: self.pools.clone(),
            gang,
            min_runtime,
            time_limit,
            expected_runtime,
            on_preempt,
            start: self.start.filter(|_| on_preempt != OnPreempt::End).unwrap_or_else(|| start_default(on_preempt, min_runtime)),
            priority: self.priority,
            checkpoint_every: (on_preempt == OnPreempt::Resume).then_some(checkpoint_every),
            kind: self.kind,
        };
        let unprotected_every = unprotected_default(checkpoint_every);
        Job {
            spec: Arc::new(spec),
            work,
            ends,
            checkpoint_every,
            unprotected_every,
            input: self.input,
            stream: Some(stream),
            useful: self.useful,
            resumes: false,
            cancel_after: None,
        }
    }

    /// Unallocated work has no contract, so none of it is `end` work.
    fn on_preempt(&self, drawn: f64) -> OnPreempt {
        if drawn < self.resume {
            OnPreempt::Resume
        } else if drawn < self.resume + self.restart || self.min_runtimes.is_empty() {
            OnPreempt::Restart
        } else {
            OnPreempt::End
        }
    }
}

impl WorkLengths {
    fn draw(&self, random: &mut Random) -> Span {
        let drawn = Span(random.lognormal(self.median.0 as f64, self.spread).min(1e15) as i64);
        drawn.clamp(self.min, self.max)
    }
}

/// Up to the next whole minute, at least one.
fn round_up(span: Span) -> Span {
    Span((span.0.max(1) + 59_999) / 60_000 * 60_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Purpose, cumulative};

    fn recipe(resume: f64, restart: f64, min_runtimes: &[i64]) -> Recipe {
        Recipe {
            pools: stipend_core::id::PoolId(0).into(),
            gangs: vec![Gang::new(1, 8), Gang::new(2, 8)],
            gang_weights: cumulative([3.0, 1.0]),
            work: WorkLengths { median: Span::hours(10), spread: 1.0, min: Span::minutes(1), max: Span::days(5) },
            min_runtimes: min_runtimes.iter().map(|&h| Span::hours(h)).collect(),
            min_runtime_max: Span::hours(8),
            end_max: Span::hours(24),
            start: None,
            kind: WorkloadKind::Batch,
            input: None,
            resume,
            restart,
            time_limit: None,
            priority: 0,
            useful: Ppm::ONE,
            families: Families::default(),
        }
    }

    fn draws(recipe: &Recipe) -> Vec<Job> {
        let mut random = Random::new(1, Purpose::Stream, 0);
        (0..500).map(|_| recipe.draw(&mut random, BudgetId(0), UserId(0), 0)).collect()
    }

    #[test]
    fn contracts_are_honest() {
        for job in draws(&recipe(0.4, 0.3, &[1, 8])) {
            let (spec, whole) = (&job.spec, round_up(job.work));
            match spec.on_preempt {
                OnPreempt::Resume => {
                    assert!([Span::hours(1), Span::hours(8), whole].contains(&spec.min_runtime) && spec.min_runtime <= whole)
                }
                OnPreempt::Restart => assert_eq!(spec.min_runtime, whole.min(Span::hours(8))),
                OnPreempt::End => {
                    assert_eq!(spec.time_limit, Some(spec.min_runtime));
                    assert!(job.work <= spec.min_runtime && spec.min_runtime <= Span::hours(24));
                }
            }
            let expected = spec.expected_runtime.expect("everybody has an idea");
            assert!(job.work < expected && expected.0 <= job.work.0 * 205 / 100 + 60_000);
            assert!(job.checkpoint_every <= spec.min_runtime, "something is banked in every contract");
        }
    }

    #[test]
    fn unallocated_work_has_no_contract_and_never_just_ends() {
        let jobs = draws(&recipe(0.5, 0.0, &[]));
        assert!(jobs.iter().all(|job| job.spec.min_runtime == Span::ZERO && job.spec.on_preempt != OnPreempt::End));
        assert!(jobs.iter().any(|job| job.spec.on_preempt == OnPreempt::Restart));
    }

    #[test]
    fn the_mean_gang() {
        assert_eq!(recipe(1.0, 0.0, &[1]).mean_gpus(), 10.0);
    }
}
