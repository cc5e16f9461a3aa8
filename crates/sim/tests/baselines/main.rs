//! The baselines against a second, brute-force writing of the same rules, and what they do when nodes fail and limits end.

mod driver;
mod events;
mod reference;

use driver::{Job, node};
use reference::Order;
use stipend_core::quantity::{Span, Time};
use stipend_core::spec::{Gang, NodeSpec};
use stipend_sim::baseline::{self, Estimate};

/// SplitMix64: small, and the same everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (x ^ (x >> 31)) % n
    }

    fn between(&mut self, least: u64, most: u64) -> u32 {
        (least + self.below(most - least + 1)) as u32
    }
}

/// A pool of mixed nodes in up to three blocks, and work of all shapes, with times so short that many things happen at one instant.
fn small(seed: u64) -> (Vec<NodeSpec>, Vec<Job>) {
    let mut random = Random(seed);
    let blocks = random.between(1, 3);
    let nodes: Vec<NodeSpec> = (0..random.between(3, 9)).map(|i| node(if random.below(3) == 0 { 4 } else { 8 }, i % blocks)).collect();
    let gang = |random: &mut Random| {
        let size = [1, 1, 2, 3, 4, 4, 8][random.below(7) as usize];
        let room: u32 = nodes.iter().map(|n| n.gpus / size).sum();
        Gang::new(random.between(1, u64::from(room.clamp(1, 6))), size)
    };
    let mut at = 0;
    let mut jobs = Vec::new();
    while jobs.len() < 80 {
        at += i64::from(random.between(0, 3));
        let gang = gang(&mut random);
        let run = i64::from(random.between(1, 30));
        let time_limit = Span::seconds(run + i64::from(random.between(0, 20)));
        let fits = nodes.iter().map(|n| n.gpus / gang.gpus_per_member).sum::<u32>() >= gang.members;
        if fits {
            jobs.push(Job { submit: Time(at * 1000), gang, run: Span::seconds(run), time_limit, team: 1 });
        }
    }
    (nodes, jobs)
}

/// A month in little: 32 nodes of 8, short tests in bursts, hours on some nodes, and a few gangs that need a quarter of the pool and more.
fn month(seed: u64) -> (Vec<NodeSpec>, Vec<Job>) {
    let mut random = Random(seed);
    let nodes = (0..32).map(|i| node(8, i / 8)).collect();
    let jobs = (0..900).map(|_| {
        let (gang, run) = match random.below(100) {
            0..55 => (Gang::new(1, 1 << random.below(4)), random.between(5, 900)),
            55..98 => (Gang::new(1 << random.below(4), 8), random.between(900, 30_000)),
            _ => (Gang::new(random.between(8, 32), 8), random.between(20_000, 80_000)),
        };
        let time_limit = Span::seconds(i64::from(run) * i64::from(random.between(10, 30)) / 10);
        let submit = Time(i64::from(random.between(0, 800_000)) * 1000);
        Job { submit, gang, run: Span::seconds(run.into()), time_limit, team: 1 }
    });
    let mut jobs: Vec<Job> = jobs.collect();
    jobs.sort_by_key(|job| job.submit);
    (nodes, jobs)
}

fn mean_wait_s(jobs: &[Job], starts: &[Option<Time>]) -> i64 {
    let waits = jobs.iter().zip(starts).map(|(job, start)| (start.expect("everything starts") - job.submit).0);
    waits.sum::<i64>() / 1000 / jobs.len() as i64
}

#[test]
fn fifo_starts_everything_when_the_reference_does() {
    for seed in 0..300 {
        let (nodes, jobs) = small(seed);
        let starts = driver::start_times(&mut baseline::fifo(), &nodes, &jobs, 1);
        assert_eq!(starts, reference::start_times(Order::Fifo, &nodes, &jobs), "seed {seed}");
    }
}

#[test]
fn easy_starts_everything_when_the_reference_does() {
    for seed in 0..300 {
        let (nodes, jobs) = small(seed);
        let starts = driver::start_times(&mut baseline::easy(Estimate::default()), &nodes, &jobs, 1);
        assert_eq!(starts, reference::start_times(Order::Easy, &nodes, &jobs), "seed {seed}");
    }
}

#[test]
fn on_a_month_in_little_both_agree_with_the_reference_and_backfill_pays() {
    let (nodes, jobs) = month(7);
    let fifo = driver::start_times(&mut baseline::fifo(), &nodes, &jobs, 1);
    let easy = driver::start_times(&mut baseline::easy(Estimate::default()), &nodes, &jobs, 1);
    assert_eq!(fifo, reference::start_times(Order::Fifo, &nodes, &jobs));
    assert_eq!(easy, reference::start_times(Order::Easy, &nodes, &jobs));
    let (fifo, easy) = (mean_wait_s(&jobs, &fifo), mean_wait_s(&jobs, &easy));
    assert!(easy * 2 < fifo, "mean wait of fifo {fifo} s, of easy {easy} s");
}

#[test]
fn where_placement_cannot_matter_easy_is_the_textbook_s() {
    for seed in 0..5 {
        let (_, mut jobs) = month(seed);
        jobs.iter_mut().for_each(|job| job.gang = Gang::new(job.gang.gpus().0, 1));
        let nodes = vec![node(1, 0); 256];
        let starts = driver::start_times(&mut baseline::easy(Estimate::default()), &nodes, &jobs, 1);
        assert_eq!(starts, reference::easy_by_counts(256, &jobs), "seed {seed}");
    }
}

#[test]
fn in_a_partition_each_team_is_alone_on_its_nodes() {
    let (nodes, mut jobs) = month(11);
    let mut random = Random(11);
    jobs.iter_mut().for_each(|job| job.team = random.between(1, 4));
    let starts = driver::start_times(&mut baseline::partition(), &nodes, &jobs, 4);
    for team in 1..=4 {
        let own = |job: &&Job| job.team == team && job.gang.gpus().0 <= 64;
        let alone: Vec<Job> = jobs.iter().filter(own).cloned().collect();
        let expected = reference::start_times(Order::SkipAhead, &nodes[8 * (team as usize - 1)..][..8], &alone);
        let seen: Vec<Option<Time>> = jobs.iter().zip(&starts).filter(|(job, _)| own(job)).map(|(_, start)| *start).collect();
        assert_eq!(seen, expected, "team {team}");
    }
    let too_large = jobs.iter().zip(&starts).filter(|(job, _)| job.gang.gpus().0 > 64);
    assert!(too_large.clone().count() > 3 && too_large.clone().all(|(_, start)| start.is_none()), "they wait for ever, unrefused");
}
