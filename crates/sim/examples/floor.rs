//! The floor under any simulator's speed: first come, first served on 128 nodes of 8 GPUs, in one plain loop that knows nothing of
//! policies, events, logs, budgets or reasons. Reads a CSV whose first columns are `job_id,submit_s,gpus,runtime_s`, sorted by time.
//!
//! `cargo run --release --example floor -- FILE.csv`

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::process::ExitCode;
use std::time::Instant;

const NODES: usize = 128;
const GPUS: usize = 8;

struct Job {
    submit: u64,
    gpus: usize,
    run: u64,
}

/// One bit set of nodes for each number of free GPUs.
type Levels = [u128; GPUS + 1];

fn main() -> ExitCode {
    let Some(path) = std::env::args().nth(1) else {
        eprintln!("usage: floor FILE.csv");
        return ExitCode::from(2);
    };
    let jobs = match std::fs::read_to_string(&path).map_err(|e| e.to_string()).and_then(|text| read(&text)) {
        Ok(jobs) => jobs,
        Err(message) => {
            eprintln!("{path}: {message}");
            return ExitCode::from(2);
        }
    };
    // The least of five: what is on top of it is the machine's other work.
    let runs = (0..5).map(|_| {
        let begin = Instant::now();
        let wait = total_wait(&jobs);
        (begin.elapsed(), wait)
    });
    let (best, wait) = runs.min().expect("there are five");
    println!("{} jobs, mean wait {:.0} s, {:.4} s", jobs.len(), wait as f64 / jobs.len() as f64, best.as_secs_f64());
    ExitCode::SUCCESS
}

fn read(text: &str) -> Result<Vec<Job>, String> {
    let job = |(row, line): (usize, &str)| {
        let mut fields = line.split(',').skip(1).map(str::parse::<u64>);
        match (fields.next(), fields.next(), fields.next()) {
            (Some(Ok(submit)), Some(Ok(gpus)), Some(Ok(run))) if (1..=(NODES * GPUS) as u64).contains(&gpus) => {
                Ok(Job { submit, gpus: gpus as usize, run })
            }
            _ => Err(format!("line {}: expected job_id,submit_s,gpus,runtime_s with at most {} GPUs", row + 1, NODES * GPUS)),
        }
    };
    let jobs: Vec<Job> = text.lines().enumerate().skip(1).map(job).collect::<Result<_, _>>()?;
    if jobs.is_empty() { Err("no jobs".into()) } else { Ok(jobs) }
}

/// The sum of all waits in seconds.
fn total_wait(jobs: &[Job]) -> u64 {
    let mut free: Levels = [0; GPUS + 1];
    free[GPUS] = u128::MAX;
    let mut ends: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
    let mut nodes: Vec<u128> = vec![0; jobs.len()];
    let (mut now, mut wait) = (0, 0);
    for (number, job) in jobs.iter().enumerate() {
        now = job.submit.max(now);
        loop {
            while ends.peek().is_some_and(|Reverse((end, _))| *end <= now) {
                let Some(Reverse((_, ended))) = ends.pop() else { break };
                shift(&mut free, nodes[ended], jobs[ended].gpus.min(GPUS) as isize);
            }
            if let Some(taken) = choose(&free, job.gpus) {
                shift(&mut free, taken, -(job.gpus.min(GPUS) as isize));
                nodes[number] = taken;
                break;
            }
            now = ends.peek().expect("every job fits on the empty pool").0.0;
        }
        wait += now - job.submit;
        ends.push(Reverse((now + job.run, number)));
    }
    wait
}

/// The fullest node that has room, or as many wholly free ones as are needed.
fn choose(free: &Levels, gpus: usize) -> Option<u128> {
    if gpus <= GPUS {
        let level = free[gpus..].iter().find(|nodes| **nodes != 0)?;
        return Some(level & level.wrapping_neg());
    }
    let needed = gpus.div_ceil(GPUS) as u32;
    if free[GPUS].count_ones() < needed {
        return None;
    }
    let mut rest = free[GPUS];
    (0..needed).for_each(|_| rest &= rest - 1);
    Some(free[GPUS] & !rest)
}

/// Moves nodes to the level that has so many more GPUs free.
fn shift(free: &mut Levels, nodes: u128, gpus: isize) {
    let mut left = nodes;
    while left != 0 {
        let node = left & left.wrapping_neg();
        left &= left - 1;
        let level = free.iter().position(|nodes| nodes & node != 0).expect("every node is at some level");
        free[level] &= !node;
        free[level.checked_add_signed(gpus).expect("no node frees less than nothing")] |= node;
    }
}
