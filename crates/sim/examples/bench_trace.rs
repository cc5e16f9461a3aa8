//! Makes the input of `scenarios/bench.toml`: jobs of 30 days for 128 nodes of 8 GPUs, the same bytes on every machine.
//!
//! `cargo run --release --example bench_trace -- N LOAD OUT.csv`: N jobs that together want LOAD times what the cluster has. The mixture is
//! described in docs/benchmarks.md.

use std::fmt::Write;
use std::process::ExitCode;
use stipend_sim::random::{Purpose, Random, cumulative, zipf};

const SEED: u64 = 2026;
const CLUSTER_GPUS: f64 = 1024.0;
const DAYS: usize = 30;
const DAY: f64 = 86_400.0;
const TEAMS: usize = 15;
const USERS: usize = 150;

/// The part of the demand that is in large gangs.
const LARGE: f64 = 0.4;

/// Who is at work, by the hour of a weekday, in proportion.
const HOURS: [f64; 24] =
    [3.0, 2.5, 2.0, 2.0, 2.0, 2.0, 2.5, 3.0, 4.5, 6.5, 8.0, 8.5, 8.0, 8.5, 9.0, 9.0, 8.5, 8.0, 7.0, 6.0, 5.5, 5.0, 4.5, 4.0];

/// A kind of work.
struct Class {
    name: &'static str,
    /// GPUs, and how often each number, in proportion.
    gpus: &'static [(u32, f64)],
    /// The median of the run time in seconds, the spread of its logarithm, and its bounds.
    run: (f64, f64, f64, f64),
    /// Time limits as multiples of the run time.
    limits: &'static [f64],
    /// The least time limit anybody asks for.
    limit_min: u64,
    /// The longest contract: the time limit, up to this.
    contract: u64,
    /// The chance that a submission is a sweep, and the most jobs of one.
    sweep: (f64, usize),
}

const DEBUG: Class = Class {
    name: "debug",
    gpus: &[(1, 48.0), (2, 18.0), (4, 14.0), (8, 20.0)],
    run: (200.0, 1.1, 5.0, 900.0),
    limits: &[1.5, 2.0, 3.0, 4.0],
    limit_min: 300,
    contract: 900,
    sweep: (0.3, 40),
};

const MEDIUM: Class = Class {
    name: "medium",
    gpus: &[(8, 50.0), (16, 22.0), (24, 6.0), (32, 12.0), (48, 3.0), (64, 7.0)],
    run: (4.0 * 3600.0, 0.9, 60.0, f64::INFINITY),
    limits: &[1.1, 1.5, 2.0, 3.0],
    limit_min: 0,
    contract: 8 * 3600,
    sweep: (0.4, 12),
};

const GANGS: Class = Class {
    name: "large",
    gpus: &[(128, 45.0), (192, 15.0), (256, 25.0), (384, 5.0), (512, 10.0)],
    run: (1.8 * DAY, 0.4, DAY, 4.0 * DAY),
    limits: &[1.05, 1.2, 1.5],
    limit_min: 0,
    contract: 8 * 3600,
    sweep: (0.0, 1),
};

struct Job {
    submit: f64,
    gpus: u32,
    run: f64,
    user: usize,
    class: &'static Class,
}

impl Job {
    fn gpu_seconds(&self) -> f64 {
        f64::from(self.gpus) * self.run
    }
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let parsed = match &args[..] {
        [n, load, out] => n.parse::<usize>().ok().zip(load.parse::<f64>().ok().filter(|load| *load > 0.0)).map(|sizes| (sizes, out)),
        _ => None,
    };
    let Some(((n, load), out)) = parsed else {
        eprintln!("usage: bench_trace N LOAD OUT.csv, such as: bench_trace 20000 0.9 bench.csv");
        return ExitCode::from(2);
    };
    let jobs = match jobs(n, load) {
        Ok(jobs) => jobs,
        Err(message) => {
            eprintln!("{message}");
            return ExitCode::from(2);
        }
    };
    if let Err(error) = std::fs::write(out, csv(&jobs)) {
        eprintln!("{out}: {error}");
        return ExitCode::from(2);
    }
    for class in [&DEBUG, &MEDIUM, &GANGS] {
        let of: Vec<&Job> = jobs.iter().filter(|job| job.class.name == class.name).collect();
        let wanted: f64 = of.iter().map(|job| job.gpu_seconds()).sum();
        eprintln!("{:>8} {:>6} jobs want {:.3} times the cluster", class.name, of.len(), wanted / capacity());
    }
    ExitCode::SUCCESS
}

/// All GPU seconds that the cluster has.
fn capacity() -> f64 {
    CLUSTER_GPUS * DAYS as f64 * DAY
}

/// The jobs by time of submission: large gangs up to their part of the demand, debug work as many as the number asks for, and medium work
/// that makes up the rest of the demand by how long it runs.
fn jobs(n: usize, load: f64) -> Result<Vec<Job>, String> {
    let demand = load * capacity();
    let mut source = Source::new();
    let mut jobs = Vec::new();
    let mut wanted = 0.0;
    while wanted < LARGE * demand {
        source.submission(&GANGS, 1, &mut jobs);
        wanted = jobs.iter().map(Job::gpu_seconds).sum();
    }
    let rest = n.saturating_sub(jobs.len());
    // A few thousand run for hours, however many jobs there are in all.
    let medium = (rest * 45 / 100).min(9000 + n / 100);
    let mut small = Vec::new();
    while small.len() < rest - medium {
        source.submission(&DEBUG, rest - medium - small.len(), &mut small);
    }
    let mut middle: Vec<Job> = Vec::new();
    while middle.len() < medium {
        source.submission(&MEDIUM, medium - middle.len(), &mut middle);
    }
    wanted += small.iter().map(Job::gpu_seconds).sum::<f64>();
    let scale = (demand - wanted) / middle.iter().map(Job::gpu_seconds).sum::<f64>();
    if !scale.is_finite() || scale <= 0.0 {
        return Err(format!("{n} jobs cannot want {load} times the cluster in this mixture: take more jobs for more, fewer for less"));
    }
    middle.iter_mut().for_each(|job| job.run = (job.run * scale).max(MEDIUM.run.2));
    jobs.extend(small);
    jobs.extend(middle);
    jobs.sort_by(|a, b| a.submit.total_cmp(&b.submit));
    Ok(jobs)
}

/// Where submissions come from.
struct Source {
    random: Random,
    /// Running sums of the hours' weights.
    hours: Vec<f64>,
    /// Running sums of the users' weights; users are dealt to the teams in turn.
    users: Vec<f64>,
}

impl Source {
    fn new() -> Source {
        let mut random = Random::new(SEED, Purpose::Stream, 0);
        let weekend = |day: usize| if day % 7 >= 5 { 0.5 } else { 1.0 };
        let hours = cumulative((0..DAYS * 24).map(|hour| HOURS[hour % 24] * weekend(hour / 24) * random.lognormal(1.0, 0.25)));
        // Some teams want much more than others, and so do some users of each.
        let (of_team, of_user) = (zipf(TEAMS, 0.6), zipf(USERS / TEAMS, 0.8));
        let users = cumulative((0..USERS).map(|user| of_team[user % TEAMS] * of_user[user / TEAMS]));
        Source { random, hours, users }
    }

    /// One user submits one job, or a sweep of at most `most`: of equal size, within a minute or so.
    fn submission(&mut self, class: &'static Class, most: usize, into: &mut Vec<Job>) {
        let user = self.random.weighted(&self.users);
        let hour = self.random.weighted(&self.hours);
        let mut submit = (hour as f64 + self.random.unit()) * 3600.0;
        let sizes = cumulative(class.gpus.iter().map(|&(_, weight)| weight));
        let gpus = class.gpus[self.random.weighted(&sizes)].0;
        let sweeps = self.random.unit() < class.sweep.0;
        let count = if sweeps { 2 + self.random.below(class.sweep.1 - 1) } else { 1 };
        let (median, spread, least, longest) = class.run;
        for _ in 0..count.min(most) {
            let run = self.random.lognormal(median, spread).clamp(least, longest);
            into.push(Job { submit, gpus, run, user, class });
            submit = (submit + self.random.exponential(4.0)).min(DAYS as f64 * DAY - 1.0);
        }
    }
}

/// The file. What a job states (its limit, its contract, its priority) and how it ends are drawn here, in its order.
fn csv(jobs: &[Job]) -> String {
    let mut random = Random::new(SEED, Purpose::Row, 0);
    let mut text = String::from("job_id,submit_s,gpus,runtime_s,timelimit_s,min_runtime_s,user,team,class,status,priority\n");
    for (number, job) in jobs.iter().enumerate() {
        let class = job.class;
        let run = (job.run as u64).max(1);
        let factor = class.limits[random.below(class.limits.len())];
        let mut limit = ((run as f64 * factor) as u64).max(run).max(class.limit_min);
        if class.name == DEBUG.name {
            limit = limit.min(DEBUG.contract);
        }
        // 1 completes, 0 fails, 5 is cancelled.
        let status = [1, 0, 5][random.weighted(&[0.72, 0.90, 1.0])];
        let (submit, contract, team) = (job.submit as u64, limit.min(class.contract), job.user % TEAMS + 1);
        let (id, user, priority) = (number + 1, job.user + 1, random.below(3));
        let _ = writeln!(text, "{id},{submit},{},{run},{limit},{contract},{user},{team},{},{status},{priority}", job.gpus, class.name);
    }
    text
}
