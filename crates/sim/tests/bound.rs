//! A large gang of a budget that is owed GPUs starts within the bound that `docs/concepts/policy.md` states and argues for, whatever others do.

use rand_core::Rng;
use rand_pcg::Pcg64;
use stipend_core::Scheduler;
use stipend_core::entry::Entry;
use stipend_core::id::WorkloadId;
use stipend_core::knobs::Knobs;
use stipend_core::quantity::{Span, Time};
use stipend_sim::engine;
use stipend_sim::observer::Observer;
use stipend_sim::scenario::Scenario;

/// Random populations.
const CASES: u64 = if cfg!(debug_assertions) { 6 } else { 40 };

/// The longest contract of all work.
const CONTRACT: Span = Span::hours(8);

/// How often gangs are looked at that could have no promise.
const LOOK_EVERY: Span = Span::minutes(15);

/// Each promise before it, and its own: until the last contract there is over, and those who stay on have left.
fn bound(knobs: &Knobs) -> Span {
    let turn = knobs.start_timeout + CONTRACT + knobs.grace_allocated.max(knobs.grace_unallocated);
    LOOK_EVERY + turn * (i64::from(knobs.reservations_max) + 1)
}

struct Dice(Pcg64);

impl Dice {
    fn from(&mut self, low: u64, high: u64) -> u64 {
        low + self.0.next_u64() % (high - low + 1)
    }
}

/// Teams that want more than the pool for all the time, in gangs of up to three nodes that end and go on in every way that their owners
/// may choose among what can resume; and one gang of a team that has waited for nothing so far. Nothing fails.
fn population(seed: u64, policy: &str) -> String {
    let mut dice = Dice(Pcg64::new(u128::from(seed), 0x0a02_bdbf_7bb3_c0a7_ac28_fa16_a64a_bf96));
    let (nodes, owed) = (dice.from(4, 16), dice.from(20, 50));
    let teams = dice.from(1, 4);
    // Of every other population nothing outlives its contract, so that single GPUs become free and are given away again.
    let is_short = seed % 2 == 1;
    let mut text = format!("name = \"t\"\ndescription = \"d\"\nmeasure = \"8d\"\n[pool]\nnodes = {nodes}\n[policy]\n{policy}\n");
    text += &format!("[[budgets]]\npath = \"lab\"\n[[budgets]]\npath = \"lab/owed\"\nshare = {owed}\n");
    (0..teams).for_each(|team| text += &format!("[[budgets]]\npath = \"lab/t{team}\"\nshare = {}\n", (100 - owed) / teams));
    let mut wanted = 2 * nodes * 8 * 8 * 24;
    let mut number = 0;
    while wanted > 0 {
        number += 1;
        let (members, gpus) = if dice.from(0, 2) == 0 { (dice.from(1, 3), 8) } else { (1, dice.from(1, 8)) };
        let hours = dice.from(1, if is_short { 8 } else { 120 });
        let contract = if is_short { hours * 60 } else { dice.from(1, 480) };
        wanted = wanted.saturating_sub(members * gpus * hours);
        text += &format!(
            "[[workloads]]\nname = \"w{number}\"\nat = \"{}m\"\nbudget = \"lab/t{}\"\ngang = \"{members}x{gpus}\"\nmin_runtime = \"{}m\"\nwork = \"{hours}h\"\ncheckpoint_every = \"30m\"\n",
            if dice.from(0, 1) == 0 { 0 } else { dice.from(0, 6 * 1440) },
            dice.from(0, teams - 1),
            contract,
        );
    }
    text += &format!(
        "[[workloads]]\nname = \"gang\"\nat = \"{}m\"\nbudget = \"lab/owed\"\ngang = \"{}x8\"\nmin_runtime = \"8h\"\nwork = \"10h\"\nstart = \"guaranteed\"\n",
        dice.from(4 * 1440, 5 * 1440),
        dice.from(2, nodes)
    );
    text
}

/// When the gang was submitted, and when it started.
struct Wait {
    gang: WorkloadId,
    submitted: Option<Time>,
    started: Option<Time>,
}

impl Observer for Wait {
    fn entry(&mut self, at: Time, entry: &Entry) {
        match entry {
            Entry::Submitted { workload, .. } if *workload == self.gang => self.submitted = Some(at),
            Entry::Started { lease, .. } if lease.workload == self.gang => _ = self.started.get_or_insert(at),
            _ => {}
        }
    }
}

/// How long the gang waits; `None` if it has not started after a week.
fn wait(seed: u64, policy: &str) -> Option<Span> {
    let scenario = Scenario::parse("t.toml", &population(seed, policy), &[]).unwrap_or_else(|error| panic!("{error}"));
    let gang = scenario.labels.workloads.iter().position(|name| name == "gang").expect("it is there");
    let mut wait = Wait { gang: WorkloadId(gang as u32), submitted: None, started: None };
    engine::run(&scenario, seed, &mut Scheduler::new(Time(0)), &mut [&mut wait], None);
    let submitted = wait.submitted.unwrap_or_else(|| panic!("seed {seed}: it is accepted"));
    wait.started.map(|started| started - submitted)
}

#[test]
fn an_owed_gang_of_any_feasible_size_starts_within_the_bound() {
    let bound = bound(&Knobs::default());
    let waits: Vec<Option<Span>> = (0..CASES).map(|seed| wait(seed, "")).collect();
    for (seed, wait) in waits.iter().enumerate() {
        assert!(wait.is_some_and(|wait| wait <= bound), "seed {seed}: {wait:?}, the bound is {bound}");
    }
    // Some have to wait for contracts of others, or nothing was tried.
    assert!(waits.iter().flatten().filter(|wait| **wait > Span::hours(4)).count() > waits.len() / 10, "{waits:?}");
}

/// It is the promise that does it: without, gangs wait for as long as others start before them.
#[test]
fn without_promises_there_is_no_such_bound() {
    let bound = bound(&Knobs::default());
    let late = (0..CASES).filter(|seed| seed % 2 == 1).filter(|seed| wait(*seed, "reservations_max = 0").is_none_or(|wait| wait > bound));
    assert!(late.count() > 0);
}
