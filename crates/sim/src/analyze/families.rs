//! Attempts at the same thing: which families lost most, how often they end well, and when they die.

use super::{Cause, Log, Rate, Tally, is_attempt, loss};
use crate::family::{ONLY_NUMBERS, size_class};
use crate::percentile::nearest_rank;
use crate::trace::Row;
use crate::trace::outcome::Outcome;
use serde::Serialize;
use std::collections::HashMap;

/// So many are named.
const NAMED: usize = 12;

/// After so many attempts in a row that led to nothing, the next one is a repeat.
pub(super) const STREAK: u32 = 3;

/// Families of a log.
#[derive(Clone, Debug, Serialize)]
pub struct Families {
    /// Whether jobs have names; if not, a family is what one user ran at one size.
    pub named: bool,
    /// How many there are.
    pub count: u64,
    /// Those that lost most.
    pub worst: Vec<FamilyLoss>,
    /// What followed three attempts in a row that led to nothing.
    pub repeats: Repeats,
}

/// Attempts that began after the last three of their family that had ended by then had all led to nothing.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Repeats {
    /// How many there are, and how many of them led to nothing again.
    pub lost: Rate,
    /// The hours of those.
    pub lost_hours: f64,
}

/// One family.
#[derive(Clone, Debug, Serialize)]
pub struct FamilyLoss {
    /// Whose.
    pub user: String,
    /// What their names have in common; empty where they have none.
    pub stem: String,
    /// One of the names.
    pub example: String,
    /// The least GPUs (or CPUs).
    pub from: u64,
    /// The most.
    pub to: u64,
    /// Attempts that ended, those that were cancelled left aside: how many of them completed.
    pub completed: Rate,
    /// Those that were cancelled.
    pub cancelled: u64,
    /// Hours of all.
    pub hours: f64,
    /// Hours lost.
    pub lost_hours: f64,
    /// What took most of them.
    pub cause: Cause,
    /// When they died; `null` where none did.
    pub died: Option<Death>,
}

/// After how long attempts died, s.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Death {
    /// How many.
    pub count: u64,
    /// One in ten by then.
    pub p10_s: f64,
    /// Half of them.
    pub p50_s: f64,
    /// Nine in ten.
    pub p90_s: f64,
}

/// What a family is found by: user, name, size class.
type Key = (u32, u32, u64);

#[derive(Default)]
struct Sum {
    attempts: u64,
    completed: u64,
    cancelled: u64,
    all: Tally,
    lost: u128,
    causes: [u128; Cause::ALL.len()],
    /// Run times of what died, ms.
    deaths: Vec<i64>,
}

/// All families of a log, those that lost most first.
pub(super) struct Found {
    sums: Vec<(Key, Sum)>,
    repeats: Repeats,
}

impl Found {
    pub(super) fn of(log: &Log<'_>) -> Found {
        let mut index: HashMap<Key, usize> = HashMap::new();
        let mut sums: Vec<(Key, Sum)> = Vec::new();
        let mut places = Vec::new();
        // Without users and names nothing tells what belongs together.
        let tells = log.trace.names_users || log.rows().any(|row| row.name > 0);
        for row in log.rows().filter(|row| tells && is_attempt(row)) {
            let key = (row.user, row.name, size_class(log.size(row)));
            let place = *index.entry(key).or_insert_with(|| {
                sums.push((key, Sum::default()));
                sums.len() - 1
            });
            places.push(place as u32);
            sums[place].1.add(log, row);
        }
        let repeats = if tells { repeats(log, &places, sums.len()) } else { Repeats::default() };
        let names = |key: &Key| (&log.trace.users[key.0 as usize], stem(log, key.1), key.2);
        sums.sort_by(|(a, x), (b, y)| y.lost.cmp(&x.lost).then_with(|| names(a).cmp(&names(b))));
        Found { sums, repeats }
    }

    pub(super) fn repeats(&self) -> Repeats {
        self.repeats
    }

    /// Those that lost most.
    pub(super) fn worst(&self, log: &Log<'_>) -> Vec<FamilyLoss> {
        self.sums.iter().filter(|(_, sum)| sum.lost > 0).take(NAMED).map(|(key, sum)| sum.shown(log, *key)).collect()
    }

    pub(super) fn shown(&self, log: &Log<'_>) -> Families {
        let named = log.rows().any(|row| row.name > 0);
        Families { named, count: self.sums.len() as u64, worst: self.worst(log), repeats: self.repeats }
    }
}

impl FamilyLoss {
    /// What to call it: what its names have in common, or one of them; empty where it has none.
    pub fn name(&self) -> &str {
        if self.stem == ONLY_NUMBERS { &self.example } else { &self.stem }
    }
}

impl Sum {
    fn add(&mut self, log: &Log<'_>, row: &Row) {
        self.all.add(log.time(row));
        self.cancelled += u64::from(row.outcome == Outcome::Cancelled);
        self.attempts += u64::from(row.outcome != Outcome::Cancelled);
        self.completed += u64::from(row.outcome == Outcome::Completed);
        for (cause, ms) in loss::losses(log, row).filter(|(cause, _)| *cause != Cause::Cancelled) {
            self.lost += ms;
            self.causes[cause as usize] += ms;
        }
        if is_lost(row) {
            self.deaths.push(row.work_ms);
        }
    }

    fn shown(&self, log: &Log<'_>, (user, name, to): Key) -> FamilyLoss {
        let mut deaths = self.deaths.clone();
        deaths.sort_unstable();
        let at = |percent| Some(nearest_rank(&deaths, percent)? as f64 / 1000.0);
        let died =
            at(50).map(|p50_s| Death { count: deaths.len() as u64, p10_s: at(10).unwrap_or(p50_s), p50_s, p90_s: at(90).unwrap_or(p50_s) });
        let most = Cause::ALL.into_iter().max_by_key(|cause| (self.causes[*cause as usize], std::cmp::Reverse(*cause)));
        FamilyLoss {
            user: log.trace.users[user as usize].clone(),
            stem: stem(log, name).into(),
            example: log.trace.names.get(name as usize).map_or_else(String::new, |name| name.example.clone()),
            from: if to == 0 { 0 } else { to / 2 + 1 },
            to,
            completed: Rate::of(self.completed, self.attempts),
            cancelled: self.cancelled,
            hours: self.all.hours(),
            lost_hours: Tally { jobs: 0, ms: self.lost }.hours(),
            cause: most.unwrap_or(Cause::Failed),
            died,
        }
    }
}

fn stem<'t>(log: &Log<'t>, name: u32) -> &'t str {
    log.trace.names.get(name as usize).map_or("", |name| &name.stem)
}

/// Whether it led to nothing, and nobody meant it to end.
fn is_lost(row: &Row) -> bool {
    Cause::of(row).is_some_and(|cause| cause != Cause::Cancelled)
}

/// Walks through time: ends tell, starts ask. Nothing is known before it happened. `places` are the families of the attempts.
fn repeats(log: &Log<'_>, places: &[u32], families: usize) -> Repeats {
    let attempts: Vec<&Row> = log.rows().filter(|row| is_attempt(row)).collect();
    let start = |row: &Row| row.start_ms.unwrap_or_else(|| row.arrival_ms());
    let mut moments: Vec<(i64, bool, u32)> = Vec::with_capacity(2 * attempts.len());
    for (number, row) in attempts.iter().enumerate() {
        let begin = start(row);
        let end = row.end_ms.unwrap_or_else(|| begin.saturating_add(row.work_ms)).max(begin);
        moments.push((begin, true, number as u32));
        moments.push((end, false, number as u32));
    }
    // Of one instant ends come first: what began then could know.
    moments.sort_unstable();
    let mut streaks = vec![0u32; families];
    let (mut after, mut again, mut ms) = (0, 0, 0);
    for (_, begins, number) in moments {
        let (row, streak) = (attempts[number as usize], &mut streaks[places[number as usize] as usize]);
        match (begins, row.outcome) {
            (true, Outcome::Cancelled) => {}
            (true, _) if *streak >= STREAK => {
                after += 1;
                again += u64::from(is_lost(row));
                ms += if is_lost(row) { loss::lost(log, row) } else { 0 };
            }
            (true, _) => {}
            (false, Outcome::Completed) => *streak = 0,
            (false, _) => *streak += u32::from(is_lost(row)),
        }
    }
    Repeats { lost: Rate::of(again, after), lost_hours: Tally { jobs: 0, ms }.hours() }
}
