//! A stream: one place that submits workloads, one after the other (closed loop) or at its own times (open loop).

use super::behaviour::{Behaviour, Jobs};
use super::families::Families;
use super::phases::Phases;
use super::recipe::{Recipe, WorkLengths};
use crate::job::{Input, Job};
use crate::random::{Random, cumulative};
use crate::scenario::file_work::StartText;
use crate::scenario::length::{At, Fraction, GangText, Length};
use serde::Deserialize;
use std::collections::VecDeque;
use std::sync::Arc;
use stipend_core::id::{BudgetId, UserId};
use stipend_core::knobs::Knobs;
use stipend_core::quantity::{Ppm, Span, Time};
use stipend_core::spec::{Gang, Pools, Start, WorkloadKind};
use toml::Spanned;

/// `[[streams]]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StreamFile {
    /// The leaf budget's path.
    pub(crate) budget: Spanned<String>,
    /// Who submits. Default: the budget's own name.
    pub(crate) user: Option<String>,
    /// Closed loop: so many workloads are kept outstanding; each is followed by the next, `think` after its end.
    pub(crate) outstanding: Option<u32>,
    /// Mean time from a workload's end to the next submission, exponentially distributed. Default 1 minute.
    pub(crate) think: Option<Length>,
    /// Open loop: mean time between submissions, exponentially distributed. Instead of `outstanding`.
    pub(crate) every: Option<Length>,
    /// When it begins. Default 0.
    #[serde(default)]
    pub(crate) from: At,
    /// When it submits its last. Default: the end of the measured time.
    pub(crate) until: Option<At>,
    /// The pools that its work accepts, the one it likes best first. Default: all that are counted in GPUs, in their order.
    pub(crate) pools: Option<Spanned<Vec<String>>>,
    /// What each node of its work must have.
    pub(crate) features: Option<Spanned<Vec<String>>>,
    /// What the gangs may be.
    pub(crate) gangs: Spanned<Vec<GangText>>,
    /// How often each, in proportion. Default: equally often.
    #[serde(default)]
    pub(crate) weights: Vec<Fraction>,
    /// The median of the work.
    pub(crate) work: Length,
    /// Standard deviation of the work's logarithm. Default 0: all have the same work.
    #[serde(default)]
    pub(crate) spread: Fraction,
    /// The least work. Default 1 s.
    pub(crate) work_min: Option<Length>,
    /// The most work. Default 30 days.
    pub(crate) work_max: Option<Length>,
    /// Contracts, one of them each time; none is unallocated work.
    #[serde(default)]
    pub(crate) min_runtimes: Vec<Length>,
    /// Whether its work is sessions, used while they run; a user has one at a time. Default false.
    #[serde(default)]
    pub(crate) session: bool,
    /// Whether its work may start before its turn. Default: what can resume may.
    pub(crate) start: Option<StartText>,
    /// The part that can resume. Default 1.
    pub(crate) resume: Option<Fraction>,
    /// The part that restarts; the rest ends: its work is cut to the knob `end_max`. Default 0.
    #[serde(default)]
    pub(crate) restart: Fraction,
    /// The time limit as a multiple of the work. Default: none, but for `end` work, which declares 1.05 to 2.05 times its work.
    pub(crate) time_limit: Option<Fraction>,
    /// Order inside its budget. Default 0.
    #[serde(default)]
    pub(crate) priority: i16,
    /// The part that fails at its end. Default 0.
    #[serde(default)]
    pub(crate) fails: Fraction,
}

/// When a stream submits.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pace {
    /// The next comes after the end of the one before: `think` on average, and `idle` times as long as the one before took from submission
    /// to end. So a stream with `idle` = 1 has a workload outstanding half of the time, however fast the cluster is.
    Closed { think: Span, idle: f64 },
    /// The next comes this long, on average, after the submission of the one before.
    Open { every: Span },
}

/// Who submits to a stream, for which budget.
#[derive(Clone, Debug)]
pub(crate) struct Owner {
    pub(crate) budget: BudgetId,
    pub(crate) user: UserId,
    /// When its team is on and off, and the part of its submissions that it makes nevertheless while off.
    pub(crate) phases: Option<(Arc<Phases>, f64)>,
    /// What becomes of the work that is drawn.
    pub(crate) behaviour: Behaviour,
}

/// One place that submits.
#[derive(Clone, Debug)]
pub(crate) struct Stream {
    pub(crate) random: Random,
    /// Who takes turns, with the running sums of how often each does; mostly one.
    pub(crate) owners: Vec<Owner>,
    pub(crate) turns: Vec<f64>,
    pub(crate) recipe: Arc<Recipe>,
    pub(crate) pace: Pace,
    /// It begins between `from` and `from` + `spread`.
    pub(crate) from: Time,
    pub(crate) spread: Span,
    pub(crate) until: Time,
    /// Whose turn it is.
    pub(crate) turn: usize,
    /// When it submitted last.
    pub(crate) submitted: Time,
    /// How many of the workloads submitted for the last one drawn have not ended.
    pub(crate) outstanding: usize,
    /// What is still to be submitted for it, one after the other.
    pub(crate) later: VecDeque<Job>,
}

/// How soon the next workload of a chain follows the one before.
const LINK: Span = Span::seconds(1);

impl Stream {
    /// Its first submission.
    pub(crate) fn first(&mut self) -> Option<Time> {
        let within = (self.spread.0 as f64 * self.random.unit()) as i64;
        let gap = match self.pace {
            Pace::Closed { .. } => 0,
            Pace::Open { every } => self.random.exponential(every.0 as f64) as i64,
        };
        self.allowed(self.from + Span(within + gap))
    }

    /// What it submits now: one workload, unless somebody makes more of it.
    pub(crate) fn draw(&mut self, number: u32, at: Time) -> Vec<Job> {
        if let Some(next) = self.later.pop_front() {
            self.outstanding += 1;
            return vec![next];
        }
        self.submitted = at;
        let owner = &self.owners[self.turn];
        let job = self.recipe.draw(&mut self.random, owner.budget, owner.user, number);
        let Jobs { now, later } = owner.behaviour.jobs(job, &self.recipe, at);
        self.outstanding += now.len();
        self.later.extend(later);
        now
    }

    /// The next submission of an open loop, after one at `at`.
    pub(crate) fn after_submission(&mut self, at: Time) -> Option<Time> {
        match self.pace {
            Pace::Closed { .. } => None,
            Pace::Open { every } => self.after(at, every),
        }
    }

    /// The next submission of a closed loop, after the end of a workload at `at`.
    pub(crate) fn after_end(&mut self, at: Time) -> Option<Time> {
        self.outstanding -= 1;
        match self.pace {
            _ if !self.later.is_empty() => Some(at + LINK),
            Pace::Closed { .. } if self.outstanding > 0 => None,
            Pace::Closed { think, idle } => {
                let pause = ((at - self.submitted).0 as f64 * idle) as i64;
                self.after(at + Span(pause), think)
            }
            Pace::Open { .. } => None,
        }
    }

    fn after(&mut self, at: Time, mean: Span) -> Option<Time> {
        let gap = self.random.exponential(mean.0 as f64) as i64;
        self.allowed(at + Span(gap.max(1000)))
    }

    /// `at`, or when the team whose turn it is is on again and people are back at their keyboards; `None` after the stream's end.
    fn allowed(&mut self, at: Time) -> Option<Time> {
        self.turn = self.random.weighted(&self.turns);
        let Some((phases, while_off)) = &self.owners[self.turn].phases else { return (at < self.until).then_some(at) };
        let waits = self.random.unit() >= *while_off;
        let back = self.random.exponential(Span::minutes(30).0 as f64) as i64;
        let at = match phases.off_until(at) {
            Some(on_again) if waits => on_again + Span(back),
            _ => at,
        };
        (at < self.until).then_some(at)
    }
}

impl StreamFile {
    /// The distribution that this stream describes.
    pub(crate) fn recipe(&self, knobs: &Knobs, pools: Pools, gangs: Vec<Gang>) -> Recipe {
        let weights: Vec<f64> =
            if self.weights.is_empty() { vec![1.0; gangs.len()] } else { self.weights.iter().map(|w| w.value()).collect() };
        Recipe {
            pools,
            gangs,
            gang_weights: cumulative(weights),
            work: WorkLengths {
                median: self.work.0,
                spread: self.spread.value(),
                min: self.work_min.map_or(Span::seconds(1), Span::from),
                max: self.work_max.map_or(Span::days(30), Span::from),
            },
            min_runtimes: self.min_runtimes.iter().map(|&m| m.into()).filter(|&m| m > Span::ZERO).collect(),
            min_runtime_max: knobs.min_runtime_max,
            end_max: knobs.end_max,
            start: self.start.map(Start::from),
            kind: if self.session { WorkloadKind::Session } else { WorkloadKind::Batch },
            input: self.session.then_some(Input::ALWAYS),
            resume: self.resume.map_or(1.0, Fraction::value),
            restart: self.restart.value(),
            time_limit: self.time_limit.map(Fraction::value),
            priority: self.priority,
            useful: Ppm::ONE,
            families: Families { fails: self.fails.value(), ..Families::default() },
        }
    }

    /// Closed or open; `None` if it says neither or both.
    pub(crate) fn pace(&self) -> Option<Pace> {
        match (self.outstanding, self.every) {
            (Some(_), None) => Some(Pace::Closed { think: self.think.map_or(Span::minutes(1), Span::from), idle: 0.0 }),
            (None, Some(every)) if every.0 > Span::ZERO && self.think.is_none() => Some(Pace::Open { every: every.0 }),
            _ => None,
        }
    }
}
