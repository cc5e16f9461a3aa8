//! How fast traces are read: `cargo run --release -p stipend-sim --example trace_speed [-- MiB]`.
//!
//! Each form is generated in memory, read on one core, and its speed printed in MB of text a second, the best of three; all in one run. Beside
//! the speed by the clock on the wall stands the one by the time that the core really worked on it, where the system tells (Linux), because
//! a machine that others use too shows the first one too low.

use std::fmt::Write as _;
use std::io::Write as _;
use std::time::Instant;
use stipend_sim::trace::{Reading, Trace};

/// Numbers without a pattern that a branch predictor or a cache would learn.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

fn main() {
    let mib: usize = std::env::args().nth(1).map_or(64, |text| text.parse().expect("a number of MiB"));
    println!("{:<28}{:>10}{:>12}{:>10}{:>14}", "form", "MB", "rows", "MB/s", "MB/s of CPU");
    for (name, header, line) in FORMS {
        let mut dice = Dice(1);
        let (mut text, mut at) = (String::from(header), 0);
        while text.len() < mib << 20 {
            at += dice.below(60);
            line(&mut text, at, &mut dice);
        }
        measure(name, text.len(), text.as_bytes());
        if name.starts_with("SWF") {
            let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
            gz.write_all(text.as_bytes()).expect("memory takes it");
            measure("SWF, gzip", text.len(), &gz.finish().expect("memory takes it"));
            measure("SWF, zstd", text.len(), &zstd::encode_all(text.as_bytes(), 3).expect("memory takes it"));
        }
    }
}

fn measure(name: &str, bytes: usize, file: &[u8]) {
    let (mut wall, mut cpu) = (f64::INFINITY, f64::INFINITY);
    let mut rows = 0;
    for _ in 0..3 {
        let (began, worked) = (Instant::now(), worked_s());
        let trace = Trace::read(file, Reading::default()).expect("a known form");
        wall = wall.min(began.elapsed().as_secs_f64());
        cpu = cpu.min(worked_s() - worked);
        assert_eq!(trace.bad_rows, 0, "{}", trace.notes());
        rows = trace.rows.len();
    }
    let megabytes = bytes as f64 / 1e6;
    let by_cpu = if cpu > 0.0 { format!("{:.0}", megabytes / cpu) } else { "?".into() };
    println!("{name:<28}{megabytes:>10.0}{rows:>12}{:>10.0}{by_cpu:>14}", megabytes / wall);
}

/// Seconds that this thread has worked, from the kernel's own count; 0 where there is none.
fn worked_s() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).map_or(0.0, |ns| ns / 1e9)
}

type Line = fn(&mut String, u64, &mut Dice);

/// Name, header, and one line.
const FORMS: [(&str, &str, Line); 5] = [
    ("ours", "submit_s,work_s,gpus,team,user,min_runtime_s,time_limit_s,on_preempt,priority,fails\n", ours),
    ("bench", "job_id,submit_s,gpus,runtime_s,timelimit_s,min_runtime_s,user,team,class,status,priority\n", bench),
    ("Philly", "timestamp,duration,num_gpus,gpu_time,cluster\n", philly),
    ("openb", "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n", openb),
    ("SWF", "; UnixStartTime: 1588291200\n; MaxProcs: 1024\n", swf),
];

fn write(text: &mut String, line: std::fmt::Arguments<'_>) {
    text.write_fmt(line).expect("a string takes everything");
}

fn ours(text: &mut String, at: u64, dice: &mut Dice) {
    let (work, gpus, team, user) = (1 + dice.below(90_000), 1 << dice.below(6), dice.below(15), dice.below(150));
    write(text, format_args!("{at},{work},{gpus},team-{team},user-{user},3600,{},resume,{},0\n", work * 2, dice.below(3)));
}

fn bench(text: &mut String, at: u64, dice: &mut Dice) {
    let (work, gpus, team, user) = (1 + dice.below(90_000), 1 << dice.below(6), dice.below(15), dice.below(150));
    write(text, format_args!("{},{at},{gpus},{work},{},3600,{user},{team},medium,1,0\n", at / 30, work * 2));
}

fn philly(text: &mut String, at: u64, dice: &mut Dice) {
    let (day, second, work, gpus) = (1 + at / 86_400 % 28, at % 86_400, dice.below(90_000), 1 << dice.below(4));
    let month = 1 + at / 86_400 / 28 % 12;
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    write(
        text,
        format_args!(
            "2017-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02},{work}.0,{gpus},{}.0,{:06x}\n",
            work * gpus,
            0x11_cb48 + dice.below(14) * 7919
        ),
    );
}

fn openb(text: &mut String, at: u64, dice: &mut Dice) {
    let (wait, work, milli) = (dice.below(600), 1 + dice.below(90_000), 100 * (1 + dice.below(10)));
    let spec = ["", "V100M16|V100M32", "G2", "T4|P100"][dice.below(4) as usize];
    let qos = ["LS", "BE", "Burstable"][dice.below(3) as usize];
    let (scheduled, deleted) = (at + wait, at + wait + work);
    write(text, format_args!("openb-pod-{:07},12000,16384,1,{milli},{spec},{qos},Running,{at},{deleted},{scheduled}\n", at / 30));
}

fn swf(text: &mut String, at: u64, dice: &mut Dice) {
    let (wait, work, procs, user) = (dice.below(6000), 1 + dice.below(90_000), 1 << dice.below(6), dice.below(150));
    let (number, limit, group) = (at / 30, work * 2, dice.below(15));
    write(
        text,
        format_args!(
            "{number:>7} {at:>9} {wait:>6} {work:>6} {procs:>4} -1 -1 {procs:>4} {limit:>6} -1 1 {user:>3} {group:>2} -1 1 -1 -1 -1\n"
        ),
    );
}
