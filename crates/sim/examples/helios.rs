//! Our calculation of owed and delivered on a real cluster: `cargo run --release -p stipend-sim --example helios -- FILE.tar.gz`.
//!
//! The file is one of S-Lab's Helios artifact: for each virtual cluster a CSV with a row a minute and the columns `total_gpu_num` (its quota),
//! `running_gpu_num` and `pending_gpu_num`. The sums are made by the function that the simulator's metrics use.

use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use stipend_core::quantity::Span;
use stipend_sim::metrics::hours::{Sample, Taken, delivered_of_owed, of_samples};

fn main() {
    let path = std::env::args().nth(1).expect("the first argument is the archive's path");
    let file = File::open(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let mut archive = tar::Archive::new(MultiGzDecoder::new(BufReader::new(file)));
    println!("{:<10}{:>10}{:>18}{:>20}", "cluster", "minutes", "owed by the hour", "owed by the minute");
    for entry in archive.entries().expect("an archive") {
        let entry = entry.expect("a whole archive");
        let name = entry.path().expect("a path").display().to_string();
        if !name.ends_with(".csv") {
            continue;
        }
        let samples = series(entry, &name);
        let of_owed = |taken| {
            let hours = of_samples(&samples, Span::minutes(1), taken);
            delivered_of_owed(&hours).map_or("–".into(), |part| format!("{:.1} %", part * 100.0))
        };
        let cluster = name.split('/').find(|part| part.starts_with("vc")).unwrap_or(&name);
        println!("{cluster:<10}{:>10}{:>18}{:>20}", samples.len(), of_owed(Taken::EachHour), of_owed(Taken::EachSample));
    }
}

/// The samples of one virtual cluster.
fn series(csv: impl Read, name: &str) -> Vec<Sample> {
    let mut lines = BufReader::new(csv).lines().map(|line| line.expect("text"));
    let header = lines.next().unwrap_or_default();
    let column = |wanted: &str| header.split(',').position(|name| name == wanted).unwrap_or_else(|| panic!("{name}: no column {wanted}"));
    let [quota, running, pending] = ["total_gpu_num", "running_gpu_num", "pending_gpu_num"].map(column);
    let row = |line: String| {
        let fields: Vec<&str> = line.split(',').collect();
        let gpus = |at: usize| fields[at].parse().unwrap_or_else(|_| panic!("{name}: `{}` is no number of GPUs", fields[at]));
        Sample { quota: gpus(quota), running: gpus(running), pending: gpus(pending) }
    };
    lines.map(row).collect()
}
