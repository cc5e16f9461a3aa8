//! How people use the rules: what they submit instead of what an honest person would, for the same work underneath.

use super::recipe::Recipe;
use crate::job::{Ends, Job};
use crate::random::{Purpose, Random};
use crate::scenario::length::Fraction;
use serde::Deserialize;
use std::collections::VecDeque;
use std::sync::Arc;
use stipend_core::id::{BudgetId, UserId};
use stipend_core::quantity::{Gpus, Ppm, Span, Time};
use stipend_core::spec::{Gang, OnPreempt, Start, WorkloadSpec};
use toml::Spanned;

/// `[[behaviours]]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BehaviourFile {
    /// Whose: the leaf budget's path. Default: all budgets.
    pub(crate) team: Option<Spanned<String>>,
    /// Which part of its users, drawn by the seed. Default 1: all.
    pub(crate) users: Option<Spanned<Fraction>>,
    /// What they do.
    pub(crate) what: Behaviour,
}

/// How somebody uses the rules.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Behaviour {
    /// Declares what the work needs.
    #[default]
    Honest,
    /// Keeps GPUs by jobs that are kept alive: they hold them for four times as long as the work takes, under the longest contract and the
    /// highest priority.
    Squat,
    /// Declares the longest contract and the highest priority for everything.
    Inflate,
    /// Submits each member of a gang by itself.
    Split,
    /// Keeps as many GPUs as its claim under unallocated work that does nothing, beside what it would submit otherwise.
    Hoard,
    /// Declares what the work needs, and has twice as much of it: no gaming, but what asking for more brings, to compare with.
    More,
    /// Submits nothing for a week, then everything at once: a week idle and a week with twice as much, in turn.
    Burst,
    /// Cuts what may run on express nodes by its size into a chain of contracts of 15 minutes.
    Camp,
    /// Says of all work that it cannot go on after a preemption, so that its contract is its time limit.
    EndWork,
    /// Says nothing about its checkpoints.
    HideCheckpoints,
    /// Says of all work that it begins anew after a preemption, so that evicting it looks dear.
    ClaimRestart,
    /// Submits what a node or more could do as gangs of an eighth of a large pool that take less time, to collect promised starts.
    Merge,
    /// Beside each workload submits a gang as large and as long as may be, and cancels it an hour later.
    ClaimAndCancel,
    /// Submits everything without a contract for a week, withdraws at its end what is left, and submits with contracts in the next, in turn.
    FreeThenBurst,
}

/// Who behaves how.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    /// `None`: everybody.
    pub(crate) team: Option<BudgetId>,
    /// The part of the users.
    pub(crate) users: f64,
    pub(crate) what: Behaviour,
}

/// What comes of one workload.
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    /// Submitted at once.
    pub(crate) now: Vec<Job>,
    /// Submitted one after the other, each when the one before has ended.
    pub(crate) later: VecDeque<Job>,
}

/// How much longer than its work takes a squatter holds its GPUs.
const HOLD: i64 = 4;

/// The priority of whoever wants to be ahead of everybody.
const TOP: i16 = 2;

/// The longest contract and the most GPUs of work for express nodes.
const EXPRESS: (Span, Gpus) = (Span::minutes(15), Gpus(8));

/// How long work is submitted without contracts, and then with them.
const WEEK: Span = Span::days(7);

/// The gang that collects promised starts, and for how long one is claimed that is not wanted.
const LARGE: (u32, u32) = (16, 8);
const CLAIMED: Span = Span::hours(1);

/// How a user of a team behaves: by the first rule that is about both. The same user does the same in every run with this seed.
pub(crate) fn of(rules: &[Rule], seed: u64, team: BudgetId, user: UserId) -> Behaviour {
    let drawn = Random::new(seed, Purpose::Behaviour, user.0.into()).unit();
    let rule = rules.iter().find(|rule| rule.team.is_none_or(|of| of == team) && drawn < rule.users);
    rule.map_or(Behaviour::Honest, |rule| rule.what)
}

impl Behaviour {
    /// Whether it is about a team as a whole.
    pub(crate) fn is_of_teams(self) -> bool {
        matches!(self, Behaviour::Hoard | Behaviour::More | Behaviour::Burst)
    }

    /// What is submitted for this workload. Unallocated work is left as it is, and so are tests by whoever squats.
    pub(crate) fn jobs(self, job: Job, recipe: &Recipe, at: Time) -> Jobs {
        let allocated = job.spec.min_runtime > Span::ZERO;
        match self {
            Behaviour::Squat if allocated && job.work > EXPRESS.0 => Jobs::one(squat(&job, recipe)),
            Behaviour::Inflate if allocated => Jobs::one(inflate(&job, recipe)),
            Behaviour::Split if allocated => split(&job),
            Behaviour::Camp if allocated => camp(job),
            Behaviour::EndWork if allocated && job.work <= recipe.end_max => Jobs::one(end_work(&job, recipe)),
            Behaviour::HideCheckpoints => {
                let spec = WorkloadSpec { checkpoint_every: None, ..(*job.spec).clone() };
                Jobs::one(Job { spec: Arc::new(spec), ..job })
            }
            Behaviour::ClaimRestart if job.spec.on_preempt == OnPreempt::Resume => {
                let spec = WorkloadSpec { on_preempt: OnPreempt::Restart, checkpoint_every: None, ..(*job.spec).clone() };
                Jobs::one(Job { spec: Arc::new(spec), resumes: true, ..job })
            }
            Behaviour::Merge if allocated => Jobs::one(merge(job)),
            Behaviour::ClaimAndCancel if allocated && job.work > EXPRESS.0 => {
                let claim = unwanted(&job, recipe);
                Jobs { now: vec![job, claim], later: VecDeque::new() }
            }
            Behaviour::FreeThenBurst if allocated && at.0 / WEEK.0 % 2 == 0 => Jobs::one(without_contract(&job, at)),
            _ => Jobs::one(job),
        }
    }
}

impl Jobs {
    fn one(job: Job) -> Jobs {
        Jobs { now: vec![job], later: VecDeque::new() }
    }
}

/// The job does its work a part of the time and keeps the GPUs for the rest. It has no limit to end by.
fn squat(job: &Job, recipe: &Recipe) -> Job {
    let spec = WorkloadSpec {
        min_runtime: recipe.min_runtime_max,
        time_limit: None,
        expected_runtime: job.spec.expected_runtime.map(|expected| expected * HOLD),
        on_preempt: can_go_on(job.spec.on_preempt),
        priority: TOP,
        ..(*job.spec).clone()
    };
    // Whoever squats on a session does not use it.
    Job { spec: Arc::new(spec), work: job.work * HOLD, input: None, useful: Ppm(Ppm::ONE.0 / HOLD as u32), ..job.clone() }
}

fn inflate(job: &Job, recipe: &Recipe) -> Job {
    let limit = if job.spec.on_preempt == OnPreempt::End { Some(recipe.end_max) } else { None };
    let min_runtime = limit.unwrap_or(recipe.min_runtime_max);
    let spec = WorkloadSpec { min_runtime, time_limit: limit, priority: TOP, ..(*job.spec).clone() };
    Job { spec: Arc::new(spec), ..job.clone() }
}

/// The members run side by side or one after the other, as there is room; the work is done when all of them are.
fn split(job: &Job) -> Jobs {
    let gang = Gang { members: 1, same_block: false, ..job.spec.gang };
    let one = Job { spec: Arc::new(WorkloadSpec { gang, ..(*job.spec).clone() }), ..job.clone() };
    Jobs { now: vec![one; job.spec.gang.members as usize], later: VecDeque::new() }
}

/// Every link of the chain begins where the one before ended; that costs nothing, which is more than a real camper gets.
fn camp(job: Job) -> Jobs {
    if job.spec.gang.gpus() > EXPRESS.1 || job.work <= EXPRESS.0 || job.spec.on_preempt == OnPreempt::End {
        return Jobs::one(job);
    }
    let whole = job.work.0 / EXPRESS.0.0;
    let rest = Span(job.work.0 % EXPRESS.0.0);
    let spec = Arc::new(WorkloadSpec { min_runtime: EXPRESS.0, expected_runtime: Some(EXPRESS.0), ..(*job.spec).clone() });
    let link = |work: Span, ends| Job { spec: spec.clone(), work, ends, checkpoint_every: EXPRESS.0, unprotected_every: EXPRESS.0, ..job };
    let lengths = (0..whole).map(|_| EXPRESS.0).chain((rest > Span::ZERO).then_some(rest));
    let mut later: VecDeque<Job> = lengths.map(|work| link(work, Ends::Completed)).collect();
    if let Some(last) = later.back_mut() {
        last.ends = job.ends;
    }
    Jobs { now: later.pop_front().into_iter().collect(), later }
}

fn end_work(job: &Job, recipe: &Recipe) -> Job {
    let limit = job.spec.expected_runtime.unwrap_or(job.work).max(job.work).min(recipe.end_max);
    let (on_preempt, start) = (OnPreempt::End, Start::Guaranteed);
    let spec = WorkloadSpec { min_runtime: limit, time_limit: Some(limit), on_preempt, start, ..(*job.spec).clone() };
    Job { spec: Arc::new(spec), ..job.clone() }
}

/// The same work by more nodes in less time.
fn merge(job: Job) -> Job {
    let Gang { members, gpus_per_member, .. } = job.spec.gang;
    let wider = LARGE.0 / members.max(1);
    if gpus_per_member != LARGE.1 || wider < 2 || job.work < Span::hours(1) * i64::from(wider) {
        return job;
    }
    let shorter = |span: Span| Span(span.0 / i64::from(wider));
    let work = shorter(job.work);
    let spec = WorkloadSpec {
        gang: Gang { members: members * wider, ..job.spec.gang },
        min_runtime: job.spec.min_runtime.min(work).max(Span::hours(1)),
        time_limit: job.spec.time_limit.map(shorter),
        expected_runtime: job.spec.expected_runtime.map(shorter),
        ..(*job.spec).clone()
    };
    Job { spec: Arc::new(spec), work, checkpoint_every: job.checkpoint_every.min(work), ..job }
}

/// A claim that nobody wants to use.
fn unwanted(job: &Job, recipe: &Recipe) -> Job {
    let spec = WorkloadSpec {
        gang: Gang::new(LARGE.0, LARGE.1),
        min_runtime: recipe.min_runtime_max,
        time_limit: None,
        expected_runtime: None,
        on_preempt: OnPreempt::Resume,
        ..(*job.spec).clone()
    };
    Job { spec: Arc::new(spec), work: recipe.min_runtime_max, useful: Ppm(0), cancel_after: Some(CLAIMED), ..job.clone() }
}

/// What is not over at the end of the week is withdrawn.
fn without_contract(job: &Job, at: Time) -> Job {
    let spec =
        WorkloadSpec { min_runtime: Span::ZERO, time_limit: None, on_preempt: can_go_on(job.spec.on_preempt), ..(*job.spec).clone() };
    Job { spec: Arc::new(spec), cancel_after: Some(Span(WEEK.0 - at.0 % WEEK.0)), ..job.clone() }
}

/// What holds GPUs without a limit cannot be `end` work.
fn can_go_on(on_preempt: OnPreempt) -> OnPreempt {
    if on_preempt == OnPreempt::End { OnPreempt::Restart } else { on_preempt }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::recipe::WorkLengths;
    use crate::random::cumulative;

    fn recipe() -> Recipe {
        Recipe {
            pools: stipend_core::id::PoolId(0).into(),
            gangs: vec![Gang::new(1, 4), Gang::new(3, 8)],
            gang_weights: cumulative([1.0, 1.0]),
            work: WorkLengths { median: Span::hours(3), spread: 1.0, min: Span::minutes(1), max: Span::days(3) },
            min_runtimes: vec![Span::hours(1)],
            min_runtime_max: Span::hours(8),
            end_max: Span::hours(24),
            start: None,
            kind: stipend_core::spec::WorkloadKind::Batch,
            input: None,
            resume: 0.5,
            restart: 0.3,
            time_limit: None,
            priority: 0,
            useful: Ppm::ONE,
            families: crate::generate::families::Families::default(),
        }
    }

    /// Honest workloads, and what a behaviour makes of each.
    fn both(what: Behaviour) -> Vec<(Job, Jobs)> {
        let recipe = recipe();
        let mut random = Random::new(1, Purpose::Stream, 0);
        let honest = (0..400).map(|_| recipe.draw(&mut random, BudgetId(0), UserId(0), 0));
        honest.map(|job| (job.clone(), what.jobs(job, &recipe, Time(0)))).collect()
    }

    /// GPU time that leads to something.
    fn useful(jobs: &[&Job]) -> u64 {
        jobs.iter().map(|job| job.spec.gang.gpus().over(job.work).0 as u64 / 4 * u64::from(job.useful.0) / 250_000).sum()
    }

    fn all(jobs: &Jobs) -> Vec<&Job> {
        jobs.now.iter().chain(&jobs.later).collect()
    }

    #[test]
    fn the_work_underneath_is_the_same() {
        use Behaviour::*;
        for what in
            [Honest, More, Squat, Inflate, Split, Camp, EndWork, HideCheckpoints, ClaimRestart, Merge, ClaimAndCancel, FreeThenBurst]
        {
            for (honest, jobs) in both(what) {
                let (is, was) = (useful(&all(&jobs)), useful(&[&honest]));
                // What is cut into equal parts may be short of a millisecond in each.
                assert!(was - 16 * 8 <= is && is <= was, "{what:?} of {honest:?}: {is} instead of {was}");
            }
        }
    }

    #[test]
    fn what_a_node_or_more_could_do_becomes_a_gang_of_an_eighth_of_a_large_pool() {
        let merged = both(Behaviour::Merge).into_iter().filter(|(honest, jobs)| jobs.now[0].spec.gang != honest.spec.gang);
        let mut count = 0;
        for (honest, jobs) in merged {
            count += 1;
            let (gang, job) = (jobs.now[0].spec.gang, &jobs.now[0]);
            assert!(gang.gpus_per_member == 8 && 8 < gang.members && gang.members <= 16, "{gang:?} of {honest:?}");
            assert!(Span::hours(1) <= job.work && job.spec.min_runtime <= Span::hours(8));
        }
        assert!(count > 20, "{count}");
    }

    #[test]
    fn a_claim_that_nobody_wants_is_cancelled_and_does_nothing() {
        for (honest, jobs) in both(Behaviour::ClaimAndCancel) {
            assert_eq!(jobs.now[0].spec, honest.spec);
            match jobs.now.get(1) {
                Some(claim) => {
                    assert_eq!((claim.useful, claim.cancel_after), (Ppm(0), Some(Span::hours(1))));
                    assert_eq!((claim.spec.gang.gpus(), claim.spec.min_runtime), (Gpus(128), Span::hours(8)));
                }
                None => assert!(honest.work <= Span::minutes(15), "a test needs no claim"),
            }
        }
    }

    #[test]
    fn who_claims_that_all_begins_anew_goes_on_nevertheless() {
        for (honest, jobs) in both(Behaviour::ClaimRestart) {
            let job = &jobs.now[0];
            assert_ne!(job.spec.on_preempt, OnPreempt::Resume);
            assert_eq!(job.resumes, honest.spec.on_preempt == OnPreempt::Resume);
        }
    }

    #[test]
    fn a_week_without_contracts_and_a_week_with_them() {
        let recipe = recipe();
        let honest = recipe.draw(&mut Random::new(1, Purpose::Stream, 0), BudgetId(0), UserId(0), 0);
        let min_runtime = |days| {
            let jobs = Behaviour::FreeThenBurst.jobs(honest.clone(), &recipe, Time(0) + Span::days(days));
            jobs.now[0].spec.min_runtime
        };
        assert_eq!([0, 6, 14].map(min_runtime), [Span::ZERO; 3]);
        assert_eq!([7, 13, 21].map(min_runtime), [honest.spec.min_runtime; 3]);
    }

    #[test]
    fn a_squatter_holds_gpus_four_times_as_long_and_its_tests_are_honest() {
        for (honest, jobs) in both(Behaviour::Squat) {
            let squat = &jobs.now[0];
            if honest.work <= Span::minutes(15) {
                assert_eq!((squat.work, squat.useful), (honest.work, Ppm::ONE));
            } else {
                assert_eq!((squat.work, squat.useful), (honest.work * 4, Ppm(250_000)));
                let spec = &squat.spec;
                assert_eq!((spec.min_runtime, spec.time_limit, spec.priority), (Span::hours(8), None, 2));
                assert_ne!(spec.on_preempt, OnPreempt::End);
            }
        }
    }

    #[test]
    fn an_inflator_asks_for_the_longest_contract_and_the_highest_priority_whatever_it_needs() {
        for (honest, jobs) in both(Behaviour::Inflate) {
            let spec = &jobs.now[0].spec;
            let longest = if spec.on_preempt == OnPreempt::End { Span::hours(24) } else { Span::hours(8) };
            assert_eq!((spec.min_runtime, spec.priority, jobs.now[0].work), (longest, 2, honest.work));
        }
    }

    #[test]
    fn a_gang_is_split_into_its_members() {
        for (honest, jobs) in both(Behaviour::Split) {
            assert_eq!(jobs.now.len(), honest.spec.gang.members as usize);
            assert!(jobs.now.iter().all(|job| job.spec.gang.members == 1 && job.work == honest.work));
        }
    }

    #[test]
    fn a_camper_s_chain_has_contracts_of_15_minutes() {
        let mut chains = 0;
        for (honest, jobs) in both(Behaviour::Camp) {
            if honest.spec.gang.gpus() > Gpus(8) || honest.spec.on_preempt == OnPreempt::End || honest.work <= Span::minutes(15) {
                assert_eq!((jobs.now[0].work, jobs.later.len()), (honest.work, 0), "too large, or nothing to cut");
                continue;
            }
            chains += 1;
            assert_eq!((jobs.now.len() + jobs.later.len()) as i64, (honest.work.0 + 899_999) / 900_000);
            assert!(all(&jobs).iter().all(|job| job.spec.min_runtime == Span::minutes(15) && job.work <= Span::minutes(15)));
        }
        assert!(chains > 50, "{chains}");
    }

    #[test]
    fn end_work_has_its_limit_as_its_contract() {
        for (honest, jobs) in both(Behaviour::EndWork).into_iter().filter(|(honest, _)| honest.work <= Span::hours(24)) {
            let spec = &jobs.now[0].spec;
            assert_eq!((spec.on_preempt, spec.time_limit), (OnPreempt::End, Some(spec.min_runtime)));
            assert!(honest.work <= spec.min_runtime && spec.min_runtime <= Span::hours(24));
        }
    }

    #[test]
    fn a_part_of_the_users_is_the_same_part_in_every_run_with_a_seed_and_the_first_rule_counts() {
        let rule = |team: Option<u32>, users, what| Rule { team: team.map(BudgetId), users, what };
        let rules = [rule(Some(1), 1.0, Behaviour::Inflate), rule(None, 0.2, Behaviour::Squat)];
        let squatters = |seed| (0..500).filter(|&user| of(&rules, seed, BudgetId(2), UserId(user)) == Behaviour::Squat).collect::<Vec<_>>();
        assert!((70..130).contains(&squatters(1).len()), "{}", squatters(1).len());
        assert_eq!(squatters(1), squatters(1));
        assert_ne!(squatters(1), squatters(2));
        assert!((0..50).all(|user| of(&rules, 1, BudgetId(1), UserId(user)) == Behaviour::Inflate));
    }
}
