//! How fast a daemon is, as its clients see it: `cargo run --release -p stipend-server --example load -- PATH/TO/stipend [WAITING]`.
//!
//! It starts the program given on a folder of its own with virtual nodes, and measures: submission to started process, submissions a
//! second by clients at once, then requests beside a long queue, memory, and a start with that queue.

#[path = "load/daemon.rs"]
mod daemon;
#[path = "load/http.rs"]
mod http;

use daemon::Daemon;
use http::Connection;
use serde_json::{Value, json};
use std::fs::File;
use std::io::Read;
use std::time::{Duration, Instant};

const LEAVES: u64 = 40;

fn main() {
    let mut args = std::env::args().skip(1);
    let program = args.next().expect("the path of the program `stipend`");
    // The daemon is started in another folder.
    let program = std::path::absolute(program).expect("a path").display().to_string();
    let waiting: u64 = args.next().map_or(100_000, |text| text.parse().expect("how many are to wait"));
    starts(&program);
    let mut daemon = Daemon::start(&program, 1000);
    fill(&daemon);
    for clients in [1, 8, 64] {
        rate(&daemon, clients);
    }
    let before = daemon.cpu();
    let begin = Instant::now();
    let mut connection = daemon.unix();
    let there = count(&mut connection);
    for from in (there..waiting).step_by(1000) {
        let many: Vec<Value> = (from..(from + 1000).min(waiting)).map(request).collect();
        connection.ask("POST", "/v1/workloads", &json!(many).to_string());
    }
    let taken = begin.elapsed().as_secs_f64();
    println!(
        "{} queued by the thousand in {taken:.1} s, {:.1} s CPU; {} MiB",
        waiting.saturating_sub(there),
        daemon.cpu() - before,
        daemon.memory_mib()
    );
    requests(&daemon, waiting);
    for clients in [1, 64] {
        rate(&daemon, clients);
    }
    println!("peak memory {} MiB", daemon.peak_mib());
    let began = daemon.restart();
    println!("killed; started with {waiting} waiting in {began:.2} s, {:.2} s CPU, {} MiB", daemon.cpu(), daemon.memory_mib());
}

/// From before the submission to when the process has done its first thing, on idle GPUs.
fn starts(program: &str) {
    let daemon = Daemon::start(program, 2);
    let path = daemon.path("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&path).status().expect("mkfifo").success());
    let mut fifo = File::options().read(true).write(true).open(&path).expect("a pipe");
    for (name, mut connection) in [("unix socket", daemon.unix()), ("TCP", daemon.tcp())] {
        let (mut times, before) = (Vec::new(), daemon.cpu());
        for _ in 0..300 {
            let body = json!({"budget": "lab/b0", "command": ["/bin/sh", "-c", format!("echo >{}", path.display())]});
            let begin = Instant::now();
            connection.ask("POST", "/v1/workloads", &body.to_string());
            fifo.read_exact(&mut [0]).expect("a byte");
            times.push(begin.elapsed());
            std::thread::sleep(Duration::from_millis(20));
        }
        tell(&format!("submission to started process, {name}"), times);
        println!("    {:.1} ms CPU of the daemon each", (daemon.cpu() - before) * 1000.0 / 300.0);
    }
}

/// All GPUs are taken, by work that is protected.
fn fill(daemon: &Daemon) {
    let mut connection = daemon.unix();
    for _ in 0..100 {
        let body = json!({"budget": "lab/b0", "gpus": 8, "members": 10, "min_runtime": "1d", "command": ["/bin/sleep", "100000"]});
        connection.ask("POST", "/v1/workloads", &body.to_string());
    }
    while connection.ask("GET", "/v1/workloads?state=running&limit=1000", "")["items"].as_array().map(Vec::len) != Some(100) {
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// A submission that waits, of one of a few dozen shapes.
fn request(number: u64) -> Value {
    let gang = [(1, 1), (1, 2), (1, 4), (1, 8), (2, 8), (4, 8)][(number % 6) as usize];
    json!({
        "budget": format!("lab/b{}", number * 7 % LEAVES), "name": format!("train-{number}"), "members": gang.0, "gpus": gang.1,
        "min_runtime": format!("{}m", 30 * (number % 4)), "priority": number % 5, "command": ["/usr/bin/python3", "train.py", "--seed", number.to_string()],
    })
}

/// Submissions a second for five seconds, each answered when it is on disk.
fn rate(daemon: &Daemon, clients: u64) {
    let (begin, before) = (Instant::now(), daemon.cpu());
    let times: Vec<Duration> = std::thread::scope(|scope| {
        let client = |client: u64| {
            let mut connection = daemon.unix();
            move || {
                let mut times = Vec::new();
                while begin.elapsed() < Duration::from_secs(5) {
                    let body = request(client * 1_000_003 + times.len() as u64).to_string();
                    let asked = Instant::now();
                    connection.ask("POST", "/v1/workloads", &body);
                    times.push(asked.elapsed());
                }
                times
            }
        };
        let threads: Vec<_> = (0..clients).map(|number| scope.spawn(client(number))).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
    });
    let (count, seconds, cpu) = (times.len() as f64, begin.elapsed().as_secs_f64(), daemon.cpu() - before);
    println!("{:.0} submissions/s by {clients} at once; {:.2} ms CPU each", count / seconds, cpu * 1000.0 / count);
    tell("    each", times);
}

/// Requests beside the queue, one after the other while somebody submits ten a second.
fn requests(daemon: &Daemon, waiting: u64) {
    let some = |number: u64| 100 + number * 7919 % (waiting - 100);
    let paths: [(&str, &dyn Fn(u64) -> String); 6] = [
        ("a page of the queue", &|_| "/v1/workloads?limit=100".into()),
        ("a page of one budget's", &|number| format!("/v1/workloads?limit=100&budget=lab/b{}", number % LEAVES)),
        ("show", &|number| format!("/v1/workloads/{}", some(number))),
        ("explain", &|number| format!("/v1/workloads/{}/explain", some(number))),
        ("the budget tree", &|_| "/v1/budgets".into()),
        ("pools", &|_| "/v1/pools".into()),
    ];
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut connection = daemon.unix();
            for number in 0.. {
                if done.load(std::sync::atomic::Ordering::Relaxed) {
                    return;
                }
                connection.ask("POST", "/v1/workloads", &request(number).to_string());
                std::thread::sleep(Duration::from_millis(100));
            }
        });
        let mut connection = daemon.unix();
        for (name, path) in paths {
            let before = daemon.cpu();
            let ask = |number| {
                let begin = Instant::now();
                connection.ask("GET", &path(number), "");
                begin.elapsed()
            };
            let times = (0..200).map(ask).collect();
            tell(name, times);
            println!("    {:.1} ms CPU of the daemon each", (daemon.cpu() - before) * 1000.0 / 200.0);
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

fn count(connection: &mut Connection) -> u64 {
    let pools = connection.ask("GET", "/v1/pools", "");
    pools[0]["waiting"].as_u64().unwrap_or(0)
}

fn tell(what: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |permille: usize| times[(times.len() - 1) * permille / 1000].as_secs_f64() * 1000.0;
    println!("{what}: p50 {:.1} ms, p99 {:.1} ms, max {:.1} ms ({})", at(500), at(990), at(1000), times.len());
}
