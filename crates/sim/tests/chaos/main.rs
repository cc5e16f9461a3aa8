//! Random histories of thousands of events against the laws.
//!
//! A few fixed seeds run each time; `STIPEND_CHAOS_SEEDS=N` runs N more (with `STIPEND_CHAOS_FROM=S` only those, from S on),
//! `STIPEND_CHAOS_SEED=S` only the one, and `STIPEND_CHAOS_LOG=FILE` writes the last log to a file.

mod dice;
mod driver;
mod instead;
mod mutation;
mod population;
mod subject;
mod written;

use dice::Dice;
use driver::{History, Step};
use population::{Naming, OTHER, PLAIN, TWO_POOLS};
use std::collections::BTreeMap;
use std::io::Write;
use stipend_core::Scheduler;
use stipend_core::explain::Names;
use stipend_core::id::UserId;
use stipend_core::quantity::Time;
use stipend_sim::audit::{self, Law};
use stipend_sim::log::{LogError, LogWriter};
use stipend_sim::observer::Observer;
use subject::{Fault, Faulty, Lie, Subject};
use written::Written;

/// Events a history; a build without optimisation tries less in the same time.
const EVENTS: u64 = if cfg!(debug_assertions) { 1500 } else { 3000 };

/// Histories that are always tried.
const FIXED: u64 = if cfg!(debug_assertions) { 12 } else { 30 };

/// Histories that broke a law once, tried each time: the imputed past of a child (134), a start timeout told late (258), a victim of a
/// plan that was made anew (1545), evicted in the instant of its start (2036), a node that came back in the instant it left (2178), a
/// drain over a protection that began late (2617), a victim on a lost node (4553), an eviction that is too dear for the overdue (4852),
/// a claim taken away (4934), a stop signal for a promise that nobody was there to send (1000012), a promise whose
/// end in another pool made room that was liked better (2000007), room before a promise's date for what could not wait for it (20008),
/// a promise that moved after the grace had become longer (30015), notes of a plan that were replayed after its decisions (41051), lapses
/// that the log rounded (1001107, 1001271).
const BROKEN_ONCE: [u64; 16] = [
    134,
    258,
    1545,
    2036,
    2178,
    2617,
    4553,
    4852,
    4934,
    20_008,
    30_015,
    41_051,
    TWO_POOLS + 12,
    TWO_POOLS + 1107,
    TWO_POOLS + 1271,
    2 * TWO_POOLS + 7,
];

fn seeds(fixed: u64) -> Vec<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let more = number("STIPEND_CHAOS_SEEDS").unwrap_or(0);
    match (number("STIPEND_CHAOS_SEED"), number("STIPEND_CHAOS_FROM")) {
        (Some(seed), _) => vec![seed],
        (None, Some(from)) => (from..from + more).collect(),
        // Some of two pools, and some of three.
        (None, None) => {
            (0..fixed + more).chain((1..=2).flat_map(|pools| (0..fixed / 2).map(move |seed| pools * TWO_POOLS + seed))).collect()
        }
    }
}

/// Users' labels that are the same however they are numbered.
struct Labels(Naming);

impl Names for Labels {
    fn user(&self, id: UserId) -> String {
        (0..10).find(|number| self.0.user(*number) == id).map_or_else(|| id.to_string(), |number| format!("user{number}"))
    }
}

fn text<S: Subject>(history: &History<S>, naming: Naming) -> String {
    let labels = Labels(naming);
    let mut writer = LogWriter::new(Vec::new(), &labels);
    for (at, entry) in &history.log {
        writer.entry(*at, entry);
    }
    writer.end(history.log.last().map_or(Time(0), |(at, _)| *at));
    let bytes = writer.finish().expect("a vector takes everything");
    String::from_utf8(bytes).expect("JSON is UTF-8")
}

fn core(seed: u64) -> History<Scheduler> {
    driver::run(seed, EVENTS, PLAIN, Scheduler::new(Time(0)))
}

/// What is wrong with a log: for each law that is broken, its first violation with the lines around it.
fn violations(text: &str) -> Vec<(Law, String)> {
    let report = audit::check(text.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    let mut found: Vec<(Law, String)> = Vec::new();
    for violation in &report.violations {
        if !found.iter().any(|(law, _)| *law == violation.law) {
            let line = violation.line as usize;
            let around = text.lines().skip(line.saturating_sub(25)).take(28).map(|line| line.chars().take(400).collect::<String>());
            found.push((violation.law, format!("{}\n{violation}", around.collect::<Vec<_>>().join("\n"))));
        }
    }
    found
}

#[test]
fn laws_hold_in_random_histories() {
    let mut seen = Default::default();
    let mut broken: BTreeMap<Law, (Vec<u64>, String)> = BTreeMap::new();
    let mut seeds = seeds(FIXED);
    if seeds.len() >= FIXED as usize && !cfg!(debug_assertions) {
        seeds.extend(BROKEN_ONCE);
    }
    for &seed in &seeds {
        let history = core(seed);
        assert!(history.faults.is_empty(), "seed {seed}: {:?}", history.faults.first());
        let text = text(&history, PLAIN);
        if let Ok(path) = std::env::var("STIPEND_CHAOS_LOG") {
            std::fs::write(path, &text).expect("the log can be written");
        }
        for (law, example) in violations(&text) {
            broken.entry(law).or_insert_with(|| (Vec::new(), example)).0.push(seed);
        }
        add(&mut seen, &audit::check(text.as_bytes()).expect("it was read before").summary);
    }
    let _ = writeln!(std::io::stderr(), "{seen}");
    for (law, (seeds, example)) in &broken {
        let _ = writeln!(std::io::stderr(), "{law:?} is broken by seeds {seeds:?}. The first:\n{example}\n");
    }
    assert!(broken.is_empty(), "broken: {:?}", broken.iter().map(|(law, (seeds, _))| (law, seeds)).collect::<Vec<_>>());
    if seeds.len() < FIXED as usize {
        return;
    }
    // A law with nothing to check is not a law kept.
    assert!(seen.preemptions_for_claimants > 0 && seen.standings_compared > 0 && seen.refunds > 0 && seen.holds_started > 0, "{seen}");
    assert!(seen.promises > 0 && seen.starts_early > 0 && seen.promotions > 0 && seen.renewals > 0, "{seen}");
    assert!(seen.gaps > 0 && seen.gap_evictions > 0, "{seen}");
    assert!(seen.losses_compared > 0 && seen.express_checks > 0, "{seen}");
    assert!(seen.idle_checks > 0 && seen.used_checks > 0 && seen.preference_checks > 0 && seen.lapse_checks > 0, "{seen}");
}

fn add(sum: &mut audit::Summary, one: &audit::Summary) {
    sum.lines += one.lines;
    sum.instants += one.instants;
    sum.workloads += one.workloads;
    sum.starts += one.starts;
    sum.starts_unallocated += one.starts_unallocated;
    sum.preemptions += one.preemptions;
    sum.preemptions_for_claimants += one.preemptions_for_claimants;
    sum.standings_compared += one.standings_compared;
    sum.standings_skipped += one.standings_skipped;
    sum.losses_compared += one.losses_compared;
    sum.express_checks += one.express_checks;
    sum.holds += one.holds;
    sum.holds_started += one.holds_started;
    sum.charges += one.charges;
    sum.refunds += one.refunds;
    sum.promises += one.promises;
    sum.starts_early += one.starts_early;
    sum.promotions += one.promotions;
    sum.renewals += one.renewals;
    sum.idle_checks += one.idle_checks;
    sum.service_checks += one.service_checks;
    sum.used_checks += one.used_checks;
    sum.lapse_checks += one.lapse_checks;
    sum.gaps += one.gaps;
    sum.gap_evictions += one.gap_evictions;
    sum.preference_checks += one.preference_checks;
}

#[test]
fn equal_histories_give_equal_bytes() {
    for seed in seeds(4) {
        assert_eq!(text(&core(seed), PLAIN), text(&core(seed), PLAIN), "seed {seed}");
    }
}

#[test]
fn a_journal_replayed_gives_the_same_digest_and_log() {
    for seed in seeds(6) {
        let history = core(seed);
        let replayed = replay(&history.journal, Scheduler::new(Time(0)));
        assert_eq!(replayed.0, history.subject.digest(), "seed {seed}");
        assert_eq!(replayed.1, format!("{:?}", history.log), "seed {seed}");
    }
}

/// What the daemon's store does to a scheduler, its events and its plans changes nothing of what follows.
#[test]
fn what_is_written_down_and_read_back_goes_on_alike() {
    for seed in seeds(6) {
        let plain = core(seed);
        let written = driver::run(seed, EVENTS, PLAIN, Written::new(Time(0), 1 + 7 * (seed % 8)));
        assert!(written.faults.is_empty(), "seed {seed}: {:?}", written.faults.first());
        assert_eq!(text(&plain, PLAIN), text(&written, PLAIN), "seed {seed}");
        assert_eq!(plain.subject.digest(), written.subject.digest(), "seed {seed}");
        // The journal of the one is the journal of the other.
        let replayed = replay(&written.journal, Scheduler::new(Time(0)));
        assert_eq!(replayed, (plain.subject.digest(), format!("{:?}", plain.log)), "seed {seed}");
    }
}

/// The digest and the log after a journal's events and plans.
fn replay<S: Subject>(journal: &[(Time, Step<S::Plan>)], mut subject: S) -> (u64, String) {
    let mut log = Vec::new();
    for (at, step) in journal {
        let mut new = Vec::new();
        match step {
            Step::Event(event) => subject.apply(*at, event, &mut new).expect("it was taken before"),
            Step::Plan(plan) => subject.commit(plan, &mut new),
        }
        log.extend(new.into_iter().map(|entry| (*at, entry)));
    }
    (subject.digest(), format!("{log:?}"))
}

#[test]
fn other_names_change_nothing_but_labels() {
    for seed in seeds(6) {
        let other = driver::run(seed, EVENTS, OTHER, Scheduler::new(Time(0)));
        let renamed = text(&other, OTHER).replace(OTHER.budget, PLAIN.budget);
        assert_eq!(text(&core(seed), PLAIN), renamed, "seed {seed}");
    }
}

#[test]
fn faults_put_in_are_found() {
    let run = |seed: u64, fault: Fault| driver::run(seed, EVENTS, PLAIN, Faulty::new(Time(0), fault));
    for fault in [Fault::RefusalChanges, Fault::PlanDiffers, Fault::CommitForgets] {
        assert!(!run(1, fault).faults.is_empty(), "{fault:?}");
    }
    let same = |a: &History<Faulty>, b: &History<Faulty>| text(a, PLAIN) == text(b, PLAIN);
    assert!(!same(&run(1, Fault::NotDeterministic), &run(1, Fault::NotDeterministic)));
    let other = driver::run(1, EVENTS, OTHER, Faulty::new(Time(0), Fault::LooksAtNames));
    assert!(text(&run(1, Fault::LooksAtNames), PLAIN) != text(&other, OTHER).replace(OTHER.budget, PLAIN.budget));
    let history = run(1, Fault::CommitForgets);
    assert!(replay(&history.journal, Faulty::new(Time(0), Fault::CommitForgets)).1 != format!("{:?}", history.log));
}

#[test]
fn lies_in_the_log_are_found() {
    let lies = [
        Lie::NoCharge,
        Lie::ShortCharge,
        Lie::NoHold,
        Lie::NoSignal,
        Lie::NoRequeue,
        Lie::NoEnd,
        Lie::OtherGpus,
        Lie::LateProtection,
        Lie::WrongAttempt,
        Lie::WrongLicence,
        Lie::NoStart,
        Lie::NoUnreserved,
        Lie::EarlyPromise,
        Lie::NoPromotion,
        Lie::LatePromotion,
        Lie::NoInput,
        Lie::LateRenewal,
        Lie::NoLapse,
        Lie::LongLapse,
    ];
    for lie in lies {
        let found = (0..10).any(|seed| {
            let history = driver::run(seed, EVENTS, PLAIN, Faulty::new(Time(0), Fault::Log(lie)));
            !violations(&text(&history, PLAIN)).is_empty()
        });
        assert!(found, "{lie:?} is told in ten histories and nobody notices");
    }
}

/// A claim about what would start waiting work is kept by the scheduler, in states of many histories.
#[test]
fn what_would_start_waiting_work_does() {
    let mut seen = instead::Seen::default();
    let seeds = seeds(if cfg!(debug_assertions) { 8 } else { FIXED });
    for &seed in &seeds {
        for events in [150, 400, 900] {
            instead::check(seed, events, &mut seen);
        }
    }
    let _ = writeln!(std::io::stderr(), "{seen:?}");
    if seeds.len() >= FIXED as usize {
        assert!(seen.starts > 0 && seen.takes > 0 && seen.thresholds > 0 && seen.takers > 0, "{seen:?}");
        assert!(seen.without > 0 && seen.by_kind.len() >= 7, "{seen:?}");
        assert!(seen.several_pools > 0 && seen.by_kind.contains_key("pools"), "{seen:?}");
    }
}

/// Damaged logs are refused with the line, or audited; nothing panics.
#[test]
fn damaged_logs_get_an_answer() {
    let (mut refused, mut audited) = (0, 0);
    for seed in seeds(8) {
        let whole = text(&driver::run(seed, 300, PLAIN, Scheduler::new(Time(0))), PLAIN);
        let mut dice = Dice::new(seed);
        for number in 0..100 {
            let log = mutation::damaged(&whole, &mut dice);
            let answer = std::panic::catch_unwind(|| audit::check(log.as_slice()));
            let Ok(answer) = answer else {
                let path = std::env::temp_dir().join("stipend-damaged.jsonl");
                std::fs::write(&path, &log).expect("the log can be written");
                panic!("seed {seed}, damage {number}: a panic; the log is in {}", path.display());
            };
            match answer {
                Ok(_) => audited += 1,
                Err(LogError::Io { line, .. } | LogError::Line { line, .. }) => {
                    let lines = log.iter().filter(|byte| **byte == b'\n').count() as u64;
                    assert!((1..=lines + 2).contains(&line), "seed {seed}, damage {number}: line {line} of {lines}");
                    refused += 1;
                }
            }
        }
    }
    assert!(refused > 0 && audited > 0, "{refused} refused, {audited} audited");
}
