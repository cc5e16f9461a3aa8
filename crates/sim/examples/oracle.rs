//! How many of the largest gangs a policy finishes, beside an oracle that has the same GPU time for the same submissions.
//!
//! `cargo run --release -p stipend-sim --example oracle -- SCENARIO SEEDS [KEY=VALUE]…`, with seeds as `11-20`. The oracle is a bound: team
//! by team it may divide the GPUs that the team held at each moment among its largest gangs as it likes, in any parts, moves them for nothing
//! and never restarts. Then the shortest remaining work first finishes the most by any time (L. Schrage, "A proof of the optimality of the
//! shortest remaining processing time discipline", Operations Research 16, 1968; a machine whose speed varies changes nothing in it). It
//! has either what the team's largest gangs held, or all that the team's work with contracts held; GPUs held for a claimant are in neither.
//! For the GPU-hours of finished gangs it chooses anew, those that weigh the most. What it may finish is what was submitted: where people
//! wait for the end of a gang before they submit the next, an oracle that is faster runs out of gangs, so their number is printed, too.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use stipend_core::Scheduler;
use stipend_core::entry::{Class, Entry, Occupancy, Outcome};
use stipend_core::id::{BudgetId, LeaseId, WorkloadId};
use stipend_core::quantity::{GpuMs, Gpus, Time};
use stipend_sim::baseline::easy;
use stipend_sim::engine;
use stipend_sim::job::{Ends, Job};
use stipend_sim::observer::Observer;
use stipend_sim::policy::Policy;
use stipend_sim::scenario::Scenario;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let usage = "oracle SCENARIO FIRST-LAST [KEY=VALUE]…";
    let file = arguments.next().expect(usage);
    let seeds = arguments.next().expect(usage);
    let (first, last) = seeds.split_once('-').expect(usage);
    let seeds = first.parse::<u64>().expect(usage)..=last.parse().expect(usage);
    let overrides: Vec<String> = arguments.collect();
    let scenario = Scenario::load(Path::new(&file), &overrides).unwrap_or_else(|error| panic!("{error}"));
    println!(
        "{:8} {:>5}  {:>5} {:>8} {:>8} {:>8}  {:>10} {:>10} {:>10}  {:>7} {:>7}",
        "", "seed", "gangs", "finished", "oracle", "of all", "GPU-hours", "oracle", "of all", "running", "waiting"
    );
    for (name, budget) in [("budget", true), ("easy", false)] {
        let rows = seeds.clone().map(|seed| {
            let mut policy: Box<dyn Policy> =
                if budget { Box::new(Scheduler::new(Time(0))) } else { Box::new(easy(scenario.rivals.estimate)) };
            let mut watch = Watch { from: scenario.measure_from(), to: scenario.measure_to(), ..Watch::default() };
            engine::run(&scenario, seed, policy.as_mut(), &mut [&mut watch], None);
            let row = watch.row();
            let [n, a, b, hours, hours_a, hours_b] = row;
            let (gangs, running, waiting) = watch.there();
            println!(
                "{name:8} {seed:>5}  {gangs:>5} {n:>8} {a:>8} {b:>8}  {hours:>10.0} {hours_a:>10.0} {hours_b:>10.0}  {running:>7} {waiting:>7}"
            );
            row
        });
        ratios(name, &rows.collect::<Vec<_>>());
    }
}

/// A gang as the oracle sees it.
struct Gang {
    leaf: BudgetId,
    gpus: Gpus,
    submitted: Time,
    work: GpuMs,
    /// Banked before the measured time.
    banked: GpuMs,
    /// Its lease at the start of the measured time: since when it ran, and what was banked by then.
    running: Option<(Time, GpuMs)>,
    over: Option<(Time, Outcome)>,
}

#[derive(Default)]
struct Watch {
    from: Time,
    to: Time,
    /// The work of what is announced, and whether it can complete at all.
    announced: BTreeMap<WorkloadId, (GpuMs, bool)>,
    classes: BTreeMap<WorkloadId, (Class, BudgetId, Gpus)>,
    gangs: BTreeMap<WorkloadId, Gang>,
    /// Leases that count as the team's, and whether the largest gangs'.
    counted: BTreeMap<LeaseId, bool>,
    /// By leaf, how the GPUs of its largest gangs and of all its contracts change.
    held: BTreeMap<BudgetId, BTreeMap<Time, [i64; 2]>>,
}

impl Watch {
    fn hold(&mut self, at: Time, lease: LeaseId, sign: i64) {
        let (class, leaf, gpus) = self.classes[&lease.workload];
        let is_largest = class == Class::Largest;
        let change = self.held.entry(leaf).or_default().entry(at).or_default();
        change[0] += if is_largest { sign * i64::from(gpus.0) } else { 0 };
        change[1] += sign * i64::from(gpus.0);
        match sign > 0 {
            true => self.counted.insert(lease, is_largest),
            false => self.counted.remove(&lease),
        };
    }

    /// Finished by the policy and by the oracles, then the same in GPU-hours.
    fn row(&self) -> [f64; 6] {
        let completed =
            |gang: &&Gang| gang.over.is_some_and(|(at, outcome)| outcome == Outcome::Completed && self.from < at && at <= self.to);
        let done = self.gangs.values().filter(completed);
        let (count, work) = done.fold((0, 0), |(count, work), gang| (count + 1, work + gang.work.0));
        let mut oracles = [(0, 0); 2];
        for (leaf, changes) in &self.held {
            let gangs = self.gangs.values().filter(|gang| gang.leaf == *leaf && self.is_there(gang));
            let gangs: Vec<(Time, i64, i64)> = gangs.map(|gang| (gang.submitted.max(self.from), self.left(gang), gang.work.0)).collect();
            for (place, oracle) in oracles.iter_mut().enumerate() {
                let changes: Vec<(Time, i64)> = changes.iter().map(|(at, change)| (*at, change[place])).collect();
                let window = (self.from, self.to);
                *oracle = (oracle.0 + finish(&changes, &gangs, window), oracle.1 + heaviest(&changes, &gangs, window));
            }
        }
        let hours = |work: i64| work as f64 / 3_600_000.0;
        [f64::from(count), f64::from(oracles[0].0), f64::from(oracles[1].0), hours(work), hours(oracles[0].1), hours(oracles[1].1)]
    }

    /// What ended before the measured time, however, is over for everybody.
    fn is_there(&self, gang: &Gang) -> bool {
        gang.submitted < self.to && gang.over.is_none_or(|(at, _)| at > self.from)
    }

    /// The least that a gang can have had left when the measured time began: what its lease ran until then may all have counted.
    fn left(&self, gang: &Gang) -> i64 {
        let running = gang.running.map_or(0, |(at, banked)| banked.0 + gang.gpus.over(self.from - at).0);
        (gang.work.0 - gang.banked.0.max(running)).max(0)
    }

    /// How many gangs the oracle may choose from, and how many of them still ran and still waited under the policy when the time was up.
    fn there(&self) -> (usize, usize, usize) {
        let there = self.gangs.iter().filter(|(_, gang)| self.is_there(gang));
        let open: Vec<&WorkloadId> = there.clone().filter(|(_, gang)| gang.over.is_none()).map(|(id, _)| id).collect();
        let running = open.iter().filter(|id| self.counted.keys().any(|lease| lease.workload == ***id)).count();
        (there.count(), running, open.len() - running)
    }
}

impl Observer for Watch {
    fn job(&mut self, workload: WorkloadId, job: &Job) {
        self.announced.insert(workload, (job.spec.gang.gpus().over(job.work), job.ends == Ends::Completed));
    }

    fn entry(&mut self, at: Time, entry: &Entry) {
        match entry {
            Entry::Submitted { workload, spec, class, .. } => {
                let (leaf, gpus) = (spec.budget, spec.gang.gpus());
                self.classes.insert(*workload, (*class, leaf, gpus));
                let (work, can_complete) = self.announced.remove(workload).expect("its job came before");
                let gang = Gang { leaf, gpus, submitted: at, work, banked: GpuMs(0), running: None, over: None };
                (*class == Class::Largest && can_complete).then(|| self.gangs.insert(*workload, gang));
            }
            Entry::Started { lease, occupancy, .. }
                if *occupancy == Occupancy::Allocated || self.classes[&lease.workload].0 == Class::Largest =>
            {
                self.hold(at, *lease, 1);
            }
            Entry::Promoted { lease, .. } if !self.counted.contains_key(lease) => self.hold(at, *lease, 1),
            Entry::Running { lease, .. } => {
                if let Some(gang) = self.gangs.get_mut(&lease.workload).filter(|_| at <= self.from) {
                    gang.running = Some((at, gang.banked));
                }
            }
            Entry::Ended { workload, attempt, outcome, .. } => {
                let lease = attempt.map(|attempt| LeaseId { workload: *workload, attempt });
                if let Some(lease) = lease.filter(|lease| self.counted.contains_key(lease)) {
                    self.hold(at, lease, -1);
                }
                if let Some(gang) = self.gangs.get_mut(workload) {
                    gang.running = gang.running.filter(|_| at > self.from);
                    gang.over = Some((at, *outcome));
                }
            }
            Entry::Requeued { workload } => {
                if let Some(gang) = self.gangs.get_mut(workload) {
                    gang.over = None;
                }
            }
            _ => {}
        }
    }

    fn banked(&mut self, at: Time, lease: LeaseId, gpu_ms: GpuMs) {
        if let Some(gang) = self.gangs.get_mut(&lease.workload).filter(|_| at <= self.from) {
            gang.banked += gpu_ms;
        }
    }
}

/// How many gangs the shortest remaining work first finishes between two times on a machine whose speed changes so; of each gang, when it
/// is there, what is left of it, and all its work.
fn finish(changes: &[(Time, i64)], gangs: &[(Time, i64, i64)], (from, to): (Time, Time)) -> u32 {
    // Speeds by time, and who comes then.
    let mut moments: BTreeMap<Time, (i64, Vec<usize>)> = BTreeMap::new();
    for (at, change) in changes {
        moments.entry((*at).max(from)).or_default().0 += change;
    }
    for (number, (at, ..)) in gangs.iter().enumerate() {
        moments.entry(*at).or_default().1.push(number);
    }
    let (mut now, mut speed, mut done) = (from, 0, 0);
    let mut waiting: BTreeSet<(i64, usize)> = BTreeSet::new();
    moments.retain(|at, _| *at < to);
    for (at, (change, came)) in moments.into_iter().chain([(to, (0, Vec::new()))]) {
        let mut room = speed * (at - now).0;
        while let Some((left, number)) = waiting.pop_first() {
            if left > room {
                waiting.insert((left - room, number));
                break;
            }
            room -= left;
            done += 1;
        }
        (now, speed) = (at, speed + change);
        waiting.extend(came.into_iter().map(|number| (gangs[number].1, number)));
    }
    done
}

/// The most work that the gangs can have that are finished between two times on such a machine. Gangs can all be finished if, from each
/// time on, what comes no sooner has room until the end: so from the last that comes to the first, the heaviest choice for each sum of what
/// was left of it.
fn heaviest(changes: &[(Time, i64)], gangs: &[(Time, i64, i64)], (from, to): (Time, Time)) -> i64 {
    let room = |since: Time| changes.iter().map(|(at, change)| change * (to - (*at).max(since)).0.max(0)).sum::<i64>();
    let mut last_first: Vec<&(Time, i64, i64)> = gangs.iter().collect();
    last_first.sort_by_key(|gang| std::cmp::Reverse(gang.0));
    let mut choices = BTreeMap::from([(0, 0)]);
    for (at, left, work) in last_first {
        let room = room((*at).max(from));
        for (sum, weight) in choices.clone() {
            if sum + left <= room {
                let best = choices.entry(sum + left).or_default();
                *best = (weight + work).max(*best);
            }
        }
        // A choice that leaves less room and weighs no more is none.
        let mut best = -1;
        choices.retain(|_, weight| {
            let is_better = *weight > best;
            best = best.max(*weight);
            is_better
        });
    }
    choices.into_values().max().unwrap_or(0)
}

/// What the policy finished of what the oracles would have: mean ± standard error over the seeds.
fn ratios(name: &str, rows: &[[f64; 6]]) {
    let ratio = |a: usize, b: usize| {
        let all: Vec<f64> = rows.iter().filter(|row| row[b] > 0.0).map(|row| 100.0 * row[a] / row[b]).collect();
        if all.is_empty() {
            return "(none could be finished)".into();
        }
        let count = all.len() as f64;
        let mean = all.iter().sum::<f64>() / count;
        let variance = all.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (count - 1.0).max(1.0);
        format!("{mean:.1} ± {:.1} %", (variance / count).sqrt())
    };
    println!(
        "{name}: {} of the gangs that an oracle finishes in the time of the largest, {} in all of the team's",
        ratio(0, 1),
        ratio(0, 2)
    );
    println!("{name}: {} and {} of the GPU-hours", ratio(3, 4), ratio(3, 5));
}

#[cfg(test)]
mod tests {
    use super::*;
    use stipend_sim::random::{Purpose, Random};

    /// Work can be done by the end if, from each time on, what comes no sooner has room until the end.
    fn most(speeds: &[i64], gangs: &[(Time, i64, i64)], value: impl Fn(&(Time, i64, i64)) -> i64) -> i64 {
        let room = |from: i64| speeds[from as usize..].iter().sum::<i64>();
        let has_room = |chosen: &[&(Time, i64, i64)]| {
            let sum = |from: i64| chosen.iter().filter(|gang| gang.0.0 >= from).map(|gang| gang.1).sum::<i64>();
            (0..speeds.len() as i64).all(|from| sum(from) <= room(from))
        };
        let subsets = (0..1u32 << gangs.len())
            .map(|set| gangs.iter().enumerate().filter(|(n, _)| set >> n & 1 == 1).map(|(_, gang)| gang).collect::<Vec<_>>());
        subsets.filter(|chosen| has_room(chosen)).map(|chosen| chosen.into_iter().map(&value).sum()).max().unwrap_or(0)
    }

    #[test]
    fn no_choice_of_gangs_that_has_room_is_larger_or_heavier() {
        let mut finished = 0;
        for seed in 0..300 {
            let mut random = Random::new(seed, Purpose::Stream, 0);
            let mut below = |n: usize| random.below(n) as i64;
            let speeds: Vec<i64> = (0..12).map(|_| below(4)).collect();
            let gangs: Vec<(Time, i64, i64)> = (0..7).map(|_| (Time(below(12)), 1 + below(9), 1 + below(20))).collect();
            let before = |at: usize| if at == 0 { 0 } else { speeds[at - 1] };
            let changes: Vec<(Time, i64)> = (0..12).map(|at| (Time(at as i64), speeds[at] - before(at))).collect();
            let window = (Time(0), Time(12));
            let count = finish(&changes, &gangs, window);
            assert_eq!(i64::from(count), most(&speeds, &gangs, |_| 1), "seed {seed}");
            assert_eq!(heaviest(&changes, &gangs, window), most(&speeds, &gangs, |gang| gang.2), "seed {seed}");
            finished += count;
        }
        assert!(finished > 600, "{finished}");
    }
}
