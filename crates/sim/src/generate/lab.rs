//! A lab: teams with more or less to do than they are funded for, large gangs beside short tests, busy weeks and quiet ones.
//!
//! Every stream is a closed loop: it submits the next workload some think time after one ended, so that a queue cannot grow without end.

use super::phases::Phases;
use super::recipe::{Recipe, WorkLengths};
use super::stream::{Pace, Stream};
use crate::random::{Purpose, Random, cumulative, zipf};
use crate::scenario::length::{Fraction, Length};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use stipend_core::id::{BudgetId, UserId};
use stipend_core::knobs::Knobs;
use stipend_core::quantity::{Ppm, Span, Time};
use stipend_core::spec::Gang;
use toml::Spanned;

/// `[lab]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct LabFile {
    /// Outstanding allocated GPUs of all teams together while they are on, as a multiple of the pool.
    pub(crate) demand: Fraction,
    /// The demand of the most modest team as a multiple of its claim, before all are scaled to `demand`.
    pub(crate) factor_min: Fraction,
    /// The demand of the most demanding team as a multiple of its claim; the others lie between, evenly on a logarithmic scale.
    pub(crate) factor_max: Fraction,
    /// Users, divided evenly among the leaf budgets.
    pub(crate) users: u32,
    /// Mean length of a team's busy phases (exponential).
    pub(crate) on: Length,
    /// Mean length of its quiet phases.
    pub(crate) off: Length,
    /// The part of its submissions that a team makes nevertheless in a quiet phase.
    pub(crate) off_submissions: Fraction,
    /// The part of the outstanding allocated GPUs that is in gangs of 128 to 512.
    pub(crate) large: Fraction,
    /// Only teams with at least this claim run such gangs.
    pub(crate) large_claim_min: Fraction,
    /// Outstanding unallocated GPUs, as a part of the allocated ones.
    pub(crate) unallocated: Fraction,
    /// The part of the medium and unallocated work that can resume; the rest is half `restart`, half `end`.
    pub(crate) resume: Fraction,
    /// The same of the large work.
    pub(crate) large_resume: Fraction,
    /// Mean time from the end of a medium or large workload to the next submission.
    pub(crate) think: Length,
    /// Mean time from the end of a user's test to the next one.
    pub(crate) debug_think: Length,
    /// The part of all work that fails at its end.
    pub(crate) fails: Fraction,
    /// How a team behaves, by its budget's path; `honest` where nothing is said.
    pub(crate) behaviours: Spanned<BTreeMap<String, Behaviour>>,
}

/// How a team uses the rules.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Behaviour {
    /// Declares what it needs.
    #[default]
    Honest,
    /// Declares eight hours and the highest priority for everything that can resume.
    Inflate,
}

impl Default for LabFile {
    fn default() -> LabFile {
        let part = |millionths| Fraction(Ppm(millionths));
        LabFile {
            demand: part(2_200_000),
            factor_min: part(600_000),
            factor_max: part(6_000_000),
            users: 150,
            on: Length(Span::hours(84)),
            off: Length(Span::hours(43)),
            off_submissions: part(200_000),
            large: part(380_000),
            large_claim_min: part(35_000),
            unallocated: part(220_000),
            resume: part(800_000),
            large_resume: part(950_000),
            think: Length(Span::minutes(15)),
            debug_think: Length(Span::minutes(170)),
            fails: part(0),
            behaviours: Spanned::new(0..0, BTreeMap::new()),
        }
    }
}

/// A leaf budget of the lab.
#[derive(Clone, Debug)]
pub(crate) struct Team {
    pub(crate) budget: BudgetId,
    /// Its part of the pool.
    pub(crate) claim: f64,
    pub(crate) users: Vec<UserId>,
    pub(crate) behaviour: Behaviour,
}

/// A lab, ready to be populated under any seed.
#[derive(Clone, Debug)]
pub(crate) struct Lab {
    pub(crate) file: LabFile,
    pub(crate) teams: Vec<Team>,
    pub(crate) knobs: Knobs,
    pub(crate) capacity_gpus: u32,
}

/// All streams begin within this time.
const START_WITHIN: Span = Span::hours(24);

impl Lab {
    /// The lab's streams under a seed, until `end`.
    pub(crate) fn streams(&self, seed: u64, end: Time) -> Vec<Stream> {
        let demands = self.demands(seed);
        let total: f64 = demands.iter().sum();
        let may_run_large = |team: &Team| team.claim >= self.file.large_claim_min.value();
        let in_large: f64 = self.teams.iter().zip(&demands).filter(|(team, _)| may_run_large(team)).map(|(_, demand)| demand).sum();
        let large_part = (self.file.large.value() * total / in_large.max(1.0)).min(1.0);

        let mut builder = Builder { lab: self, seed, end, streams: Vec::new() };
        for (number, (team, &demand)) in self.teams.iter().zip(&demands).enumerate() {
            let phases = Arc::new(Phases::draw(seed, number as u64, self.file.on.0, self.file.off.0, end));
            let large = if may_run_large(team) { large_part * demand } else { 0.0 };
            builder.slots(team, &phases, self.large(team), large);
            builder.slots(team, &phases, self.medium(team), demand - large);
            builder.slots(team, &phases, self.unallocated(), demand * self.file.unallocated.value());
            builder.tests(team, &phases);
        }
        builder.streams
    }

    /// Every gang that the lab may submit.
    pub(crate) fn gangs(&self) -> Vec<Gang> {
        let large = self.teams.iter().take(usize::from(self.file.large.0 > Ppm(0))).map(|team| self.large(team));
        let medium = self.teams.iter().take(1).map(|team| self.medium(team));
        large.chain(medium).flat_map(|recipe| recipe.gangs).collect()
    }

    /// Each team's outstanding GPUs: factors in random order, so that no size of team is always the greedy one; of all orders the first
    /// whose sum is within 5 % of the wanted demand, so that a seed changes who wants much and not how much is wanted.
    fn demands(&self, seed: u64) -> Vec<f64> {
        let n = self.teams.len();
        let (low, high) = (self.file.factor_min.value(), self.file.factor_max.value());
        let mut factors: Vec<f64> = (0..n).map(|i| low * libm::pow(high / low, i as f64 / (n.max(2) - 1) as f64)).collect();
        let scale = self.file.demand.value() * n as f64 / factors.iter().sum::<f64>();
        factors.iter_mut().for_each(|factor| *factor *= scale);
        let mut random = Random::new(seed, Purpose::Factors, 0);
        for _ in 0..1000 {
            random.shuffle(&mut factors);
            let sum: f64 = factors.iter().zip(&self.teams).map(|(factor, team)| factor * team.claim).sum();
            if (sum / self.file.demand.value() - 1.0).abs() < 0.05 {
                break;
            }
        }
        let capacity = f64::from(self.capacity_gpus);
        factors.iter().zip(&self.teams).map(|(factor, team)| factor * team.claim * capacity).collect()
    }

    /// Gangs of 128 to 512 GPUs for one to four days.
    fn large(&self, team: &Team) -> Recipe {
        let sizes = [(16, 8, 45.0), (24, 8, 15.0), (32, 8, 25.0), (48, 8, 5.0), (64, 8, 10.0)];
        let work = WorkLengths { median: Span::hours(43), spread: 0.4, min: Span::days(1), max: Span::days(4) };
        self.recipe(team, &sizes, work, self.file.large_resume.value())
    }

    /// 1 to 64 GPUs for hours.
    fn medium(&self, team: &Team) -> Recipe {
        let sizes = [(1, 1, 18.0), (1, 2, 12.0), (1, 4, 14.0), (1, 8, 30.0), (2, 8, 14.0), (4, 8, 8.0), (8, 8, 4.0)];
        let work = WorkLengths { median: Span::hours(4), spread: 0.9, min: Span::minutes(16), max: Span::days(3) };
        self.recipe(team, &sizes, work, self.file.resume.value())
    }

    /// Small work that takes what is idle.
    fn unallocated(&self) -> Recipe {
        let sizes = [(1, 1, 40.0), (1, 2, 20.0), (1, 4, 15.0), (1, 8, 20.0), (2, 8, 5.0)];
        let work = WorkLengths { median: Span::hours(4), spread: 0.9, min: Span::minutes(10), max: Span::days(2) };
        Recipe { min_runtimes: Vec::new(), priority: 0, ..self.recipe(&self.teams[0], &sizes, work, self.file.resume.value()) }
    }

    /// Somebody tries something: 20 seconds to 15 minutes.
    fn test(&self, team: &Team) -> Recipe {
        let sizes = [(1, 1, 48.0), (1, 2, 18.0), (1, 4, 14.0), (1, 8, 20.0)];
        let work = WorkLengths { median: Span::seconds(200), spread: 1.1, min: Span::seconds(20), max: Span::minutes(15) };
        Recipe { end_max: Span::minutes(15), ..self.recipe(team, &sizes, work, 0.0) }
    }

    fn recipe(&self, team: &Team, sizes: &[(u32, u32, f64)], work: WorkLengths, resume: f64) -> Recipe {
        let (hours, priority): (&[i64], i16) = match team.behaviour {
            Behaviour::Honest => (&[1, 2, 4, 8], 0),
            Behaviour::Inflate => (&[8], 2),
        };
        Recipe {
            gangs: sizes.iter().map(|&(members, gpus, _)| Gang::new(members, gpus)).collect(),
            gang_weights: cumulative(sizes.iter().map(|&(_, _, weight)| weight)),
            work,
            min_runtimes: hours.iter().map(|&h| Span::hours(h).min(self.knobs.min_runtime_max)).collect(),
            min_runtime_max: self.knobs.min_runtime_max,
            end_max: self.knobs.end_max,
            resume,
            restart: (1.0 - resume) / 2.0,
            time_limit: None,
            priority,
            fails: self.file.fails.value(),
        }
    }
}

/// Collects the streams; each gets the random numbers of its position.
struct Builder<'a> {
    lab: &'a Lab,
    seed: u64,
    end: Time,
    streams: Vec<Stream>,
}

impl Builder<'_> {
    /// As many streams as keep `gpus` outstanding. What is no whole number of gangs is made up by longer pauses.
    fn slots(&mut self, team: &Team, phases: &Arc<Phases>, recipe: Recipe, gpus: f64) {
        let wanted = gpus / recipe.mean_gpus();
        let count = libm::ceil(wanted).max(0.0);
        let pause = recipe.work.mean().0 as f64 * (count / wanted - 1.0);
        let pause = if wanted > 0.0 { Span(pause as i64) } else { Span::ZERO };
        let think = self.lab.file.think.0 + pause;
        let recipe = Arc::new(recipe);
        let by_user = cumulative(zipf(team.users.len(), 0.8));
        for _ in 0..count as usize {
            let mut random = self.random();
            let user = team.users[random.weighted(&by_user)];
            self.push(random, team.budget, user, &recipe, think, phases);
        }
    }

    /// One stream of tests for each user.
    fn tests(&mut self, team: &Team, phases: &Arc<Phases>) {
        let recipe = Arc::new(self.lab.test(team));
        for &user in &team.users {
            let random = self.random();
            self.push(random, team.budget, user, &recipe, self.lab.file.debug_think.0, phases);
        }
    }

    fn random(&self) -> Random {
        Random::new(self.seed, Purpose::Stream, self.streams.len() as u64)
    }

    fn push(&mut self, random: Random, budget: BudgetId, user: UserId, recipe: &Arc<Recipe>, think: Span, phases: &Arc<Phases>) {
        self.streams.push(Stream {
            random,
            budget,
            user,
            recipe: recipe.clone(),
            pace: Pace::Closed { think },
            phases: Some((phases.clone(), self.lab.file.off_submissions.value())),
            from: Time(0),
            spread: START_WITHIN,
            until: self.end,
        });
    }
}
