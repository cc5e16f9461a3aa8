//! Submissions one by one, as fast as some clients can: `load ADDRESS TOKEN BUDGET CLIENTS SUBMISSIONS`.
//!
//! ADDRESS is `unix:PATH` or `http://HOST:PORT`. Prints how many a second and how long the answers took. Each submission has its own
//! connection and its own transaction, as far as others do not share it.

use serde_json::json;
use std::time::{Duration, Instant};
use stipend_server::client::Client;
use stipend_server::wire::workload::Submitted;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, token, budget, clients, count] = &arguments[..] else {
        eprintln!("usage: load ADDRESS TOKEN BUDGET CLIENTS SUBMISSIONS");
        std::process::exit(2);
    };
    let (clients, count): (usize, usize) = (clients.parse().expect("a number of clients"), count.parse().expect("a number of submissions"));
    let client = Client::new(address, Some(token.clone())).expect("an address and a token");
    let submission = json!({"budget": budget, "command": ["/bin/true"], "min_runtime": "5m"});
    let begin = Instant::now();
    let mut times: Vec<Duration> = std::thread::scope(|scope| {
        let some = |_| {
            scope.spawn(|| {
                let one = || {
                    let begin = Instant::now();
                    client.post::<Submitted, _>("/v1/workloads", &submission, &[]).expect("submitted");
                    begin.elapsed()
                };
                (0..count / clients).map(|_| one()).collect::<Vec<_>>()
            })
        };
        let threads: Vec<_> = (0..clients).map(some).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
    });
    let took = begin.elapsed();
    times.sort();
    let at = |part: f64| times[((times.len() - 1) as f64 * part) as usize];
    println!(
        "{:.0} submissions/s, answers p50 {:?}, p99 {:?}, max {:?}",
        times.len() as f64 / took.as_secs_f64(),
        at(0.5),
        at(0.99),
        at(1.0)
    );
}
