//! What the fuzzer and the mutations of `crates/sim/tests/trace_mutations.rs` do with a file: read it in every way, look through it and print
//! what is in it. Whatever the bytes, nothing panics, takes memory out of proportion or breaks a bound.

use stipend_sim::analyze::Analysis;
use stipend_sim::report::analysis::{analysis, page};
use stipend_sim::report::trace::overview;
use stipend_sim::trace::overview::Overview;
use stipend_sim::trace::{Reading, TeamFrom, Trace};

/// Reads a file as a scenario of GPUs, one with pools of CPUs and one that names columns would.
pub(crate) fn look(file: &[u8]) {
    check(file, Reading { procs_per_gpu: 2, ..Reading::default() });
    let team_from = vec![TeamFrom::Partition, TeamFrom::Account];
    check(file, Reading { cpu_jobs: true, sizeless_jobs: true, team_from, ..Reading::default() });
    let columns = Some("JobID,State,Submit,Start,End,AllocTRES,User".into());
    check(file, Reading { columns, team_from: vec![TeamFrom::User], ..Reading::default() });
}

/// Reads a file; whatever comes of it is held against the bounds.
fn check(file: &[u8], reading: Reading) {
    let cpu_jobs = reading.cpu_jobs;
    let Ok(trace) = Trace::read(file, reading) else { return };
    // The shortest row has some bytes, and a name at most those that stand in the file.
    assert!(trace.rows.len() <= file.len() / 4 + 1 && trace.teams.len() <= file.len() && trace.users.len() <= file.len());
    assert!(trace.bad_rows <= file.len() as u64 + 1 && trace.bad_examples.len() <= 5);
    assert!(trace.rows.is_sorted_by_key(|row| row.arrival_ms()));
    for row in &trace.rows {
        let asks = row.gpus > 0 || (cpu_jobs && row.cpus > 0);
        assert!(asks && row.work_ms >= 0 && row.arrival_ms() >= 0, "{row:?}");
        assert!(
            (row.team as usize) < trace.teams.len() && (row.user as usize) < trace.users.len() && (row.pools as usize) < trace.pools.len()
        );
    }
    let found = Overview::of(&trace);
    assert_eq!(found.jobs, trace.rows.len() as u64);
    screen(&overview("file", &found));
    let found = Analysis::of(&trace);
    assert!(found.lost_hours <= found.hours * (1.0 + 1e-9) && found.findings.len() <= 5);
    screen(&analysis("file", &found));
    assert!(!page("file", &found).contains("NaN"));
}

/// What is printed moves no cursor and fits.
fn screen(shown: &str) {
    let widest = shown.lines().map(|line| line.chars().count()).max();
    assert!(shown.chars().all(|c| c == '\n' || !c.is_control()), "{shown:?}");
    assert!(widest <= Some(80), "{shown}");
}
