//! A lab: teams with more or less to do than they are funded for, large gangs beside short tests, busy weeks and quiet ones.
//!
//! Every stream is a closed loop: it submits the next workload some think time after one ended, so that a queue cannot grow without end.

use super::behaviour::{self, Behaviour, Rule};
use super::families::Families;
use super::lab_file::LabFile;
use super::phases::Phases;
use super::recipe::{Recipe, WorkLengths};
use super::stream::{Owner, Pace, Stream};
use crate::random::{Purpose, Random, cumulative, zipf};
use std::collections::VecDeque;
use std::sync::Arc;
use stipend_core::id::{BudgetId, UserId};
use stipend_core::knobs::Knobs;
use stipend_core::quantity::{Ppm, Span, Time};
use stipend_core::spec::{Gang, Pools, Start, WorkloadKind};

/// A leaf budget of the lab.
#[derive(Clone, Debug)]
pub(crate) struct Team {
    pub(crate) budget: BudgetId,
    /// Its part of the pool.
    pub(crate) claim: f64,
    pub(crate) users: Vec<UserId>,
}

/// A lab, ready to be populated under any seed.
#[derive(Clone, Debug)]
pub(crate) struct Lab {
    pub(crate) file: LabFile,
    pub(crate) pools: Pools,
    pub(crate) teams: Vec<Team>,
    pub(crate) knobs: Knobs,
    pub(crate) capacity_gpus: u32,
    /// Who behaves how.
    pub(crate) behaviours: Vec<Rule>,
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
        let mut large: Vec<(Owner, f64)> = Vec::new();
        let mut extra = Vec::new();
        for (number, (team, &demand)) in self.teams.iter().zip(&demands).enumerate() {
            let behaviour = behaviour::of(&self.behaviours, seed, team.budget, team.users[0]);
            let bursts = behaviour == Behaviour::Burst;
            let phases = if bursts { Phases::weekly(end) } else { Phases::draw(seed, number as u64, self.file.on.0, self.file.off.0, end) };
            let phases = Arc::new(phases);
            let in_large = if may_run_large(team) { large_part * demand } else { 0.0 };
            large.push((builder.owner(team, team.users[0], Some(&phases)), in_large));
            builder.slots(team, Some(&phases), self.medium(), demand - in_large);
            builder.slots(team, Some(&phases), self.unallocated(), demand * self.file.unallocated.value());
            builder.tests(team, &phases);
            match behaviour {
                Behaviour::More | Behaviour::Burst => extra.push((team, Some(phases), self.medium(), demand - in_large)),
                Behaviour::Hoard => extra.push((team, None, self.hoard(), team.claim * f64::from(self.capacity_gpus))),
                _ => {}
            }
        }
        builder.shared_slots(&large, self.large());
        // Last, so that nobody else's random numbers are others than without them.
        for (team, phases, recipe, gpus) in extra {
            builder.slots(team, phases.as_ref(), recipe, gpus);
        }
        builder.streams
    }

    /// Every gang that the lab may submit.
    pub(crate) fn gangs(&self) -> Vec<Gang> {
        let large = (self.file.large.0 > Ppm(0)).then(|| self.large());
        large.into_iter().chain([self.medium()]).flat_map(|recipe| recipe.gangs).collect()
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
    fn large(&self) -> Recipe {
        let sizes = [(16, 8, 45.0), (24, 8, 15.0), (32, 8, 25.0), (48, 8, 5.0), (64, 8, 10.0)];
        let work = WorkLengths { median: Span::hours(43), spread: 0.4, min: Span::days(1), max: Span::days(4) };
        self.recipe(&sizes, work, self.file.large_resume.value())
    }

    /// 1 to 64 GPUs for hours.
    fn medium(&self) -> Recipe {
        let sizes = [(1, 1, 18.0), (1, 2, 12.0), (1, 4, 14.0), (1, 8, 30.0), (2, 8, 14.0), (4, 8, 8.0), (8, 8, 4.0)];
        let work = WorkLengths { median: Span::hours(4), spread: 0.9, min: Span::minutes(16), max: Span::days(3) };
        self.recipe(&sizes, work, self.file.resume.value())
    }

    /// Small work that takes what is idle.
    fn unallocated(&self) -> Recipe {
        let sizes = [(1, 1, 40.0), (1, 2, 20.0), (1, 4, 15.0), (1, 8, 20.0), (2, 8, 5.0)];
        let work = WorkLengths { median: Span::hours(4), spread: 0.9, min: Span::minutes(10), max: Span::days(2) };
        Recipe { min_runtimes: Vec::new(), ..self.recipe(&sizes, work, self.file.resume.value()) }
    }

    /// Nothing, for a month.
    fn hoard(&self) -> Recipe {
        let work = WorkLengths { median: Span::days(30), spread: 0.0, min: Span::days(30), max: Span::days(30) };
        Recipe { min_runtimes: Vec::new(), useful: Ppm(0), ..self.recipe(&[(1, 8, 1.0)], work, 1.0) }
    }

    /// Somebody tries something: 20 seconds to 15 minutes.
    fn test(&self) -> Recipe {
        let sizes = [(1, 1, 48.0), (1, 2, 18.0), (1, 4, 14.0), (1, 8, 20.0)];
        let work = WorkLengths { median: Span::seconds(200), spread: 1.1, min: Span::seconds(20), max: Span::minutes(15) };
        Recipe { end_max: Span::minutes(15), ..self.recipe(&sizes, work, 0.0) }
    }

    fn recipe(&self, sizes: &[(u32, u32, f64)], work: WorkLengths, resume: f64) -> Recipe {
        Recipe {
            pools: self.pools.clone(),
            gangs: sizes.iter().map(|&(members, gpus, _)| Gang::new(members, gpus)).collect(),
            gang_weights: cumulative(sizes.iter().map(|&(_, _, weight)| weight)),
            work,
            min_runtimes: [1, 2, 4, 8].into_iter().map(|h| Span::hours(h).min(self.knobs.min_runtime_max)).collect(),
            min_runtime_max: self.knobs.min_runtime_max,
            end_max: self.knobs.end_max,
            start: self.file.start.map(Start::from),
            kind: WorkloadKind::Batch,
            input: None,
            resume,
            restart: (1.0 - resume) / 2.0,
            time_limit: None,
            priority: 0,
            useful: Ppm::ONE,
            families: Families { fails: self.file.fails.value(), count: self.file.families, oracle: self.file.oracle },
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
    /// As many streams as keep `gpus` outstanding on average. What is no whole number of gangs is made up by pauses.
    fn slots(&mut self, team: &Team, phases: Option<&Arc<Phases>>, recipe: Recipe, gpus: f64) {
        let wanted = gpus / recipe.mean_gpus();
        let by_user = cumulative(zipf(team.users.len(), 0.8));
        let recipe = Arc::new(recipe);
        let count = libm::ceil(wanted);
        for _ in 0..count as usize {
            let mut random = self.random();
            let user = team.users[random.weighted(&by_user)];
            let owner = self.owner(team, user, phases);
            self.push(random, vec![(owner, 1.0)], &recipe, self.pace(count / wanted));
        }
    }

    /// Gangs so large that a team's part is less than one at a time: the streams lie side by side over the teams' parts, and those who share
    /// one take turns. So what is outstanding stays what the lab wants, even under a policy that lets such gangs wait for ever.
    fn shared_slots(&mut self, parts: &[(Owner, f64)], recipe: Recipe) {
        let total: f64 = parts.iter().map(|(_, gpus)| gpus).sum();
        let wanted = total / recipe.mean_gpus();
        let recipe = Arc::new(recipe);
        let count = libm::ceil(wanted);
        for number in 0..count as usize {
            let (from, to) = (total * number as f64 / count, total * (number + 1) as f64 / count);
            let mut at = 0.0;
            let mut owners = Vec::new();
            for (owner, gpus) in parts {
                let overlap = (at + gpus).min(to) - f64::max(at, from);
                if overlap > 0.0 {
                    owners.push((owner.clone(), overlap));
                }
                at += gpus;
            }
            self.push(self.random(), owners, &recipe, self.pace(count / wanted));
        }
    }

    /// One stream of tests for each user.
    fn tests(&mut self, team: &Team, phases: &Arc<Phases>) {
        let recipe = Arc::new(self.lab.test());
        for &user in &team.users {
            let owner = self.owner(team, user, Some(phases));
            let pace = Pace::Closed { think: self.lab.file.debug_think.0, idle: 0.0 };
            self.push(self.random(), vec![(owner, 1.0)], &recipe, pace);
        }
    }

    /// The pace of streams of which there are so many times as many as should be outstanding.
    fn pace(&self, surplus: f64) -> Pace {
        Pace::Closed { think: self.lab.file.think.0, idle: surplus - 1.0 }
    }

    fn random(&self) -> Random {
        Random::new(self.seed, Purpose::Stream, self.streams.len() as u64)
    }

    fn owner(&self, team: &Team, user: UserId, phases: Option<&Arc<Phases>>) -> Owner {
        let behaviour = behaviour::of(&self.lab.behaviours, self.seed, team.budget, user);
        let while_off = if behaviour == Behaviour::Burst { 0.0 } else { self.lab.file.off_submissions.value() };
        Owner { budget: team.budget, user, phases: phases.map(|phases| (phases.clone(), while_off)), behaviour }
    }

    fn push(&mut self, random: Random, owners: Vec<(Owner, f64)>, recipe: &Arc<Recipe>, pace: Pace) {
        let (owners, weights): (Vec<Owner>, Vec<f64>) = owners.into_iter().unzip();
        self.streams.push(Stream {
            random,
            owners,
            turns: cumulative(weights),
            recipe: recipe.clone(),
            pace,
            from: Time(0),
            spread: START_WITHIN,
            until: self.end,
            turn: 0,
            submitted: Time(0),
            outstanding: 0,
            later: VecDeque::new(),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::length::Fraction;

    fn lab(demand: u32) -> Lab {
        let claims = [0.3, 0.25, 0.2, 0.1, 0.08, 0.04, 0.02, 0.01];
        let teams = claims.iter().enumerate().map(|(number, &claim)| Team {
            budget: BudgetId(number as u32 + 1),
            claim,
            users: (0..10).map(|user| UserId(number as u32 * 10 + user)).collect(),
        });
        let file = LabFile { demand: Fraction(Ppm(demand)), ..LabFile::default() };
        Lab {
            file,
            pools: stipend_core::id::PoolId(0).into(),
            teams: teams.collect(),
            knobs: Knobs::default(),
            capacity_gpus: 1024,
            behaviours: Vec::new(),
        }
    }

    #[test]
    fn every_seed_wants_about_the_same_and_shares_it_out_differently() {
        let lab = lab(2_200_000);
        for seed in 0..20 {
            let sum: f64 = lab.demands(seed).iter().sum();
            assert!((sum / 1024.0 / 2.2 - 1.0).abs() < 0.05, "seed {seed}: {sum}");
        }
        assert_ne!(lab.demands(1), lab.demands(2));
    }

    #[test]
    fn large_gangs_are_the_wanted_part_and_belong_to_teams_that_may() {
        let lab = lab(2_200_000);
        let large = lab.large().mean_gpus();
        let streams = lab.streams(1, Time(Span::days(30).0));
        let of_large: Vec<&Stream> = streams.iter().filter(|stream| stream.recipe.mean_gpus() == large).collect();
        let outstanding: f64 = of_large.iter().map(|stream| large / (1.0 + idle(stream))).sum();
        assert!((outstanding / (0.38 * 2.2 * 1024.0) - 1.0).abs() < 0.06, "{outstanding}");
        assert!(of_large.iter().flat_map(|stream| &stream.owners).all(|owner| owner.budget.0 <= 6), "claims below 3.5 % run none");
        assert!(of_large.iter().all(|stream| !stream.owners.is_empty()));
    }

    #[test]
    fn who_has_more_to_do_has_twice_as_much_medium_work_and_nobody_else_has() {
        let outstanding = |what, team| {
            let rule = Rule { team: Some(BudgetId(1)), users: 1.0, what };
            let lab = Lab { behaviours: vec![rule], ..lab(2_200_000) };
            let medium = lab.medium().mean_gpus();
            let of_team = |stream: &&Stream| stream.recipe.mean_gpus() == medium && stream.owners.iter().all(|owner| owner.budget == team);
            let streams = lab.streams(1, Time(Span::days(30).0));
            streams.iter().filter(of_team).map(|stream| medium / (1.0 + idle(stream))).sum::<f64>()
        };
        let [once, twice] = [Behaviour::Honest, Behaviour::More].map(|what| outstanding(what, BudgetId(1)));
        assert!(once > 0.0 && (twice / once - 2.0).abs() < 0.05, "{twice} instead of {once}");
        let [before, after] = [Behaviour::Honest, Behaviour::More].map(|what| outstanding(what, BudgetId(2)));
        assert_eq!(before, after);
    }

    fn idle(stream: &Stream) -> f64 {
        match stream.pace {
            Pace::Closed { idle, .. } => idle,
            Pace::Open { .. } => f64::NAN,
        }
    }
}
