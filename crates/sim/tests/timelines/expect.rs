//! `NAME.expect.toml`: what the rules ask of a scenario, whatever else its timeline says.

use crate::facts::{Attempt, Eviction, Facts};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;
use stipend_core::Scheduler;
use stipend_core::entry::{Occupancy, Outcome};
use stipend_core::explain::{Names, PoolExplanation};
use stipend_core::id::WorkloadId;
use stipend_core::quantity::{Span, Time};
use stipend_sim::labels::Labels;
use stipend_sim::scenario::Scenario;

/// The file. Times are written as in the timeline (`26:05`), workloads and budgets by their names.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Expect {
    /// Why it does not hold yet: the scenario is listed as ignored.
    pub(crate) ignored: Option<String>,
    /// Why the explanations at its end are not right yet: they are left out of the timeline.
    pub(crate) unexplained: Option<String>,
    /// The run is too long for a timeline that anybody would read.
    pub(crate) no_timeline: bool,
    /// All evictions, in order: `"8:00 a2 for b1 (share)"`; without a claimant `"8:00 a2 (drain)"`.
    evictions: Option<Vec<String>>,
    /// At most so many evictions.
    max_evictions: Option<usize>,
    /// At most so many evictions of one workload.
    max_evictions_of: BTreeMap<String, usize>,
    /// When they start first.
    started: BTreeMap<String, String>,
    /// When they start first at the latest.
    started_by: BTreeMap<String, String>,
    never_started: Vec<String>,
    /// The order of the first starts of these.
    start_order: Vec<String>,
    /// What the first lease is: `allocated` or `unallocated`.
    occupancy: BTreeMap<String, String>,
    /// When a lease gets its contract where it runs, in whichever attempt.
    promoted: BTreeMap<String, String>,
    /// When sessions get their contract once more.
    renewed: BTreeMap<String, Vec<String>>,
    /// Where the first lease runs: `n0[0-3]`.
    placed: BTreeMap<String, String>,
    /// How long the first lease is protected: `15 min`.
    protected_for: BTreeMap<String, String>,
    /// When and how workloads end for good: `"3:00 completed"`.
    ended: BTreeMap<String, String>,
    /// Part of the reason of a refused submission.
    refused: BTreeMap<String, String>,
    /// Victims that were let go.
    spared: Vec<String>,
    /// Part of what a waiting workload waits for at the end, the binding limit.
    waits_for: BTreeMap<String, String>,
    /// GPU time of budgets.
    gpu_hours: Vec<GpuHours>,
    /// Refunded GPU-hours by workload.
    refunded: BTreeMap<String, f64>,
    /// GPU-hours of credit that lapsed, by budget.
    lapsed: BTreeMap<String, f64>,
    /// No allocated lease that an eviction ended held its GPUs for less than this: `0:30`.
    shortest_turn: Option<String>,
}

/// GPU time that a budget and all below it held.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GpuHours {
    budget: String,
    /// `allocated` (default), in charged GPUs, or `unallocated`.
    #[serde(default = "allocated")]
    occupancy: String,
    /// From when to when; default the whole run.
    from: Option<String>,
    to: Option<String>,
    is: f64,
    #[serde(default)]
    within: f64,
}

fn allocated() -> String {
    "allocated".into()
}

impl Expect {
    /// The expectations beside a scenario; every scenario has some.
    pub(crate) fn load(beside: &Path) -> Result<Expect, String> {
        let path = beside.with_extension("expect.toml");
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        toml::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Everything that is not as it should be.
    pub(crate) fn check(&self, scenario: &Scenario, facts: &Facts, scheduler: &Scheduler) -> Vec<String> {
        let mut check = Check { labels: &scenario.labels, facts, wrong: Vec::new() };
        check.evictions(self);
        check.starts(self);
        check.first_leases(self);
        check.ends(self);
        check.waits(self, scheduler);
        check.gpu_hours(self);
        check.wrong
    }
}

struct Check<'a> {
    labels: &'a Labels,
    facts: &'a Facts,
    wrong: Vec<String>,
}

impl<'a> Check<'a> {
    fn equal(&mut self, what: &str, name: &str, seen: &str, expected: &str) {
        if seen != expected {
            self.wrong.push(format!("{name} {what}: {seen}; expected: {expected}"));
        }
    }

    /// The number of a workload; a name that the scenario does not know is a slip in the expectations.
    fn id(&mut self, name: &str) -> Option<WorkloadId> {
        let found = self.labels.workloads.iter().position(|known| known == name);
        if found.is_none() {
            self.wrong.push(format!("the scenario has no workload {name}"));
        }
        found.map(|number| WorkloadId(number as u32))
    }

    fn first(&mut self, name: &str) -> Option<&'a Attempt> {
        let (id, facts) = (self.id(name)?, self.facts);
        facts.attempts_of(id).next()
    }

    fn at(&self, time: Option<Time>) -> String {
        time.map_or("never".into(), |at| self.labels.time(at))
    }

    fn eviction(&self, eviction: &Eviction) -> String {
        let claimant = eviction.claimant.map(|id| format!(" for {}", self.labels.workload(id))).unwrap_or_default();
        let licence = format!("{:?}", eviction.licence).to_lowercase();
        format!("{} {}{claimant} ({licence})", self.labels.time(eviction.at), self.labels.workload(eviction.victim))
    }

    fn evictions(&mut self, expect: &Expect) {
        let seen: Vec<String> = self.facts.evictions.iter().map(|eviction| self.eviction(eviction)).collect();
        if let Some(expected) = expect.evictions.as_ref().filter(|expected| **expected != seen) {
            self.wrong.push(format!("evictions: {seen:?}; expected: {expected:?}"));
        }
        if let Some(most) = expect.max_evictions.filter(|most| seen.len() > *most) {
            self.wrong.push(format!("{} evictions; expected at most {most}", seen.len()));
        }
        for (name, most) in &expect.max_evictions_of {
            let Some(id) = self.id(name) else { continue };
            let of = self.facts.evictions.iter().filter(|eviction| eviction.victim == id).count();
            if of > *most {
                self.wrong.push(format!("{name} is evicted {of} times; expected at most {most}"));
            }
        }
        let spared: Vec<String> = self.facts.spared.iter().map(|id| self.labels.workload(*id)).collect();
        if spared != expect.spared {
            self.wrong.push(format!("spared: {spared:?}; expected: {:?}", expect.spared));
        }
        let Some(shortest) = expect.shortest_turn.as_deref().map(time) else { return };
        let evicted = self.facts.attempts.iter().filter(|attempt| attempt.occupancy == Occupancy::Allocated);
        for attempt in evicted {
            if let Some((end, Outcome::Preempted)) = attempt.end
                && end - attempt.from < shortest - Time(0)
            {
                self.wrong.push(format!("{} was evicted after {}", self.labels.workload(attempt.workload), end - attempt.from));
            }
        }
    }

    fn starts(&mut self, expect: &Expect) {
        for (name, expected) in &expect.started {
            let seen = self.first(name).map(|attempt| attempt.from);
            self.equal("starts first at", name, &self.at(seen), expected);
        }
        for (name, latest) in &expect.started_by {
            let seen = self.first(name).map(|attempt| attempt.from);
            if seen.is_none_or(|at| at > time(latest)) {
                self.wrong.push(format!("{name} starts first at {}; expected: at the latest {latest}", self.at(seen)));
            }
        }
        for name in &expect.never_started {
            let seen = self.first(name).map(|attempt| attempt.from);
            self.equal("starts first at", name, &self.at(seen), "never");
        }
        let mut order: Vec<(usize, &String)> = Vec::new();
        for name in &expect.start_order {
            let Some(id) = self.id(name) else { continue };
            match self.facts.attempts.iter().position(|attempt| attempt.workload == id) {
                Some(position) => order.push((position, name)),
                None => self.wrong.push(format!("{name} never starts")),
            }
        }
        order.sort();
        let seen: Vec<&String> = order.into_iter().map(|(_, name)| name).collect();
        if seen.len() == expect.start_order.len() && !seen.iter().copied().eq(&expect.start_order) {
            self.wrong.push(format!("start order: {seen:?}; expected: {:?}", expect.start_order));
        }
    }

    fn first_leases(&mut self, expect: &Expect) {
        for (name, expected) in &expect.occupancy {
            let seen = self.first(name).map_or("none".into(), |attempt| format!("{:?}", attempt.occupancy).to_lowercase());
            self.equal("has a lease that is", name, &seen, expected);
        }
        for (name, expected) in &expect.placed {
            let seen = self.first(name).map_or("nowhere", |attempt| &attempt.placement);
            self.equal("runs on", name, seen, expected);
        }
        for (name, expected) in &expect.renewed {
            let Some(id) = self.id(name) else { continue };
            let seen: Vec<String> = self.facts.renewed.get(&id).into_iter().flatten().map(|at| self.labels.time(*at)).collect();
            self.equal("is renewed at", name, &seen.join(", "), &expected.join(", "));
        }
        for (name, expected) in &expect.promoted {
            let Some(id) = self.id(name) else { continue };
            let seen = self.facts.attempts_of(id).find_map(|attempt| attempt.promoted);
            let seen = seen.map_or("never".into(), |at| self.labels.time(at));
            self.equal("is promoted at", name, &seen, expected);
        }
        for (name, expected) in &expect.protected_for {
            let seen = self.first(name).and_then(|attempt| attempt.protected_for).unwrap_or(Span::ZERO).to_string();
            self.equal("is protected for", name, &seen, expected);
        }
    }

    fn ends(&mut self, expect: &Expect) {
        for (name, expected) in &expect.ended {
            let Some(id) = self.id(name) else { continue };
            let end = self.facts.ends.get(&id);
            let seen =
                end.map_or("never".into(), |(at, outcome)| format!("{} {}", self.labels.time(*at), format!("{outcome:?}").to_lowercase()));
            self.equal("ends", name, &seen, expected);
        }
        let refused: Vec<String> = self.facts.refused.keys().map(|id| self.labels.workload(*id)).collect();
        for name in refused.iter().filter(|name| !expect.refused.contains_key(*name)) {
            self.wrong.push(format!("{name} is refused"));
        }
        for (name, reason) in &expect.refused {
            let Some(id) = self.id(name) else { continue };
            let seen = self.facts.refused.get(&id).map_or("accepted", String::as_str);
            if !seen.contains(reason.as_str()) {
                self.wrong.push(format!("{name}: {seen}; expected a refusal with: {reason}"));
            }
        }
    }

    fn waits(&mut self, expect: &Expect, scheduler: &Scheduler) {
        for (name, expected) in &expect.waits_for {
            let Some(id) = self.id(name) else { continue };
            let pools = scheduler.explain(id).map(|explanation| explanation.pools).unwrap_or_default();
            let first = |there: &PoolExplanation| Some((there.pool, there.blockers.first()?.text(there.pool, self.labels)));
            let seen = match &pools.iter().filter_map(first).collect::<Vec<_>>()[..] {
                [] => "nothing".into(),
                [(_, only)] => only.clone(),
                several => {
                    several.iter().map(|(pool, why)| format!("in {}: {why}", self.labels.pool(*pool))).collect::<Vec<_>>().join("; ")
                }
            };
            if !seen.contains(expected.as_str()) {
                self.wrong.push(format!("{name} waits for: {seen}; expected: {expected}"));
            }
        }
    }

    fn gpu_hours(&mut self, expect: &Expect) {
        for (name, expected) in &expect.refunded {
            let Some(id) = self.id(name) else { continue };
            let seen = self.facts.refunded.get(&id).copied().unwrap_or_default() as f64 / 3_600_000.0;
            self.close(&format!("{name} is refunded"), seen, *expected, 0.001);
        }
        for (budget, expected) in &expect.lapsed {
            let of = self.facts.lapsed.iter().filter(|(id, _)| self.labels.budget(**id) == *budget);
            let seen = of.map(|(_, gpu_ms)| *gpu_ms).sum::<i64>() as f64 / 3_600_000.0;
            self.close(&format!("credit of {budget} lapses"), seen, *expected, 0.001);
        }
        for expected in &expect.gpu_hours {
            let from = expected.from.as_deref().map_or(Time(0), time);
            let to = expected.to.as_deref().map_or(self.facts.end, time);
            let is_below = |path: &str| {
                path == expected.budget || path.strip_prefix(expected.budget.as_str()).is_some_and(|rest| rest.starts_with('/'))
            };
            let attempts = self.facts.attempts.iter().filter(|attempt| is_below(&self.labels.budget(attempt.budget)));
            let is_allocated = expected.occupancy == "allocated";
            let held = attempts.map(|attempt| {
                let end = attempt.end.map_or(to, |(at, _)| at.min(to));
                // Before it is promoted a lease is unallocated.
                let (start, end) = match (attempt.occupancy, attempt.promoted, is_allocated) {
                    (_, Some(promoted), true) => (promoted, end),
                    (_, Some(promoted), false) => (attempt.from, end.min(promoted)),
                    (occupancy, None, is_allocated) if (occupancy == Occupancy::Allocated) == is_allocated => (attempt.from, end),
                    _ => return 0,
                };
                let gpus = if is_allocated { attempt.charged } else { attempt.gpus };
                gpus.over((end - start.max(from)).max(Span::ZERO)).0
            });
            let seen = held.sum::<i64>() as f64 / 3_600_000.0;
            let what = format!(
                "{} GPU-hours of {} from {} to {}",
                expected.occupancy,
                expected.budget,
                self.labels.time(from),
                self.labels.time(to)
            );
            self.close(&what, seen, expected.is, expected.within + 0.001);
        }
    }

    fn close(&mut self, what: &str, seen: f64, expected: f64, within: f64) {
        if (seen - expected).abs() > within {
            self.wrong.push(format!("{what}: {seen:.3}; expected: {expected} ± {within}"));
        }
    }
}

/// Reads `26:05` or `0:00:30`; anything else is a slip in the expectations.
fn time(text: &str) -> Time {
    let parts: Vec<i64> = text.split(':').map(|part| part.parse().unwrap_or_else(|_| panic!("{text} is no time such as 26:05"))).collect();
    match parts[..] {
        [hours, minutes] => Time(0) + Span::hours(hours) + Span::minutes(minutes),
        [hours, minutes, seconds] => Time(0) + Span::hours(hours) + Span::minutes(minutes) + Span::seconds(seconds),
        _ => panic!("{text} is no time such as 26:05"),
    }
}
