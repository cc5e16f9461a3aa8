//! What the auditor found: which law, where, what was seen and what was expected; and how much was looked at.

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};
use std::fmt;

/// At most this many violations are kept with their words; all are counted.
const KEPT: usize = 200;

/// The laws that a log is held against.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Law {
    /// Time never runs back.
    TimeOrder,
    /// Every line follows from the lines before: known names, attempts that count up by one, no report about what is not so.
    Sequence,
    /// No GPU is leased or held twice.
    GpuTwice,
    /// A gang starts whole, each member on one node.
    Gang,
    /// A start uses nodes that may take it.
    Node,
    /// Express nodes run short contracts and unallocated work only, and no budget's contracts hold more of them than its bound.
    Express,
    /// Caps hold at every start.
    Cap,
    /// A closed budget, or one below it, takes no work and starts none; what waits there is held.
    Closed,
    /// A contract is what was accepted: charged and protected for its length, or neither.
    Contract,
    /// Work that runs before its turn may do so, and is promoted where a start with its contract would be allowed: in place, charged and
    /// protected from then on.
    Promotion,
    /// A user has one session a pool, a small one; its contract is renewed after it is over, where somebody used it since it began and a
    /// start with it would be allowed.
    Session,
    /// Nothing takes a protected lease but a critical drain, a lost node or an administrator.
    Protection,
    /// Every eviction has a licence whose conditions hold.
    Licence,
    /// The standings behind a `share` or `tree` licence, recomputed.
    Standing,
    /// An eviction by `share` or `tree` loses no more than it is worth.
    WorthIt,
    /// Work that says it begins anew is doubted when a completion shows that it did not, for a lookback, and only then.
    Doubt,
    /// Every preemption with a claimant buys the start that it names.
    NamedStart,
    /// No victim starts again before its claimant started or went away.
    ReEntry,
    /// No chain of evictions inside an instant.
    Chain,
    /// No pair swaps twice within one contract.
    Swap,
    /// Victims are signalled in time and have their grace.
    Signal,
    /// No victim that the start does not need.
    Minimal,
    /// Preempted work that can go on waits again.
    Requeue,
    /// The ledger is the leases' GPU time and the holds', exactly.
    Ledger,
    /// A refund cancels a part of a charge, once, for a fault of the infrastructure.
    Refund,
    /// Used is never negative.
    Used,
    /// Lapses are exact, and never take a budget above its floor.
    Credit,
    /// Work of one node starts in the first of its pools that has free GPUs for it.
    Preference,
    /// A promised latest start is kept, unless nodes were lost or the owner changed it; one a leaf, so many a pool, on nodes that clear.
    Promise,
    /// No allocated work starts on reserved nodes that has not certainly left before the date.
    Backfill,
    /// No idle GPU that waiting work of one node could use.
    Idle,
    /// Work of one node, in a leaf below its share, is served in bounded time.
    Service,
    /// After a gap nothing is evicted in its instant, and at most a tenth of a pool in each minute for ten minutes.
    Gap,
}

/// One breach of a law.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// Which law.
    pub law: Law,
    /// The line at which it showed, counted from 1.
    pub line: u64,
    /// That line's time.
    pub t_ms: i64,
    /// What the log says.
    pub seen: String,
    /// What the law asks.
    pub expected: String,
}

/// How much was looked at: a law with nothing to check is not a law kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    pub lines: u64,
    pub instants: u64,
    pub workloads: u64,
    pub starts: u64,
    pub starts_unallocated: u64,
    pub preemptions: u64,
    pub preemptions_for_claimants: u64,
    pub standings_compared: u64,
    pub standings_skipped: u64,
    pub losses_compared: u64,
    pub doubts: u64,
    pub express_checks: u64,
    pub holds: u64,
    pub holds_started: u64,
    pub charges: u64,
    pub refunds: u64,
    pub charged_gpu_ms: i128,
    pub refunded_gpu_ms: i128,
    pub promises: u64,
    pub starts_early: u64,
    pub promotions: u64,
    pub renewals: u64,
    pub idle_checks: u64,
    pub service_checks: u64,
    pub used_checks: u64,
    pub lapse_checks: u64,
    pub gaps: u64,
    pub gap_evictions: u64,
    pub preference_checks: u64,
    pub closed_checks: u64,
}

/// The auditor's answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The first violations, in the order of the log.
    pub violations: Vec<Violation>,
    /// How many there were in all.
    pub found: u64,
    /// How much was checked.
    pub summary: Summary,
}

/// Collects violations while a log is read.
#[derive(Default)]
pub(super) struct Findings {
    pub(super) report: Report,
    /// The laws whose breaches count; none: all of them.
    pub(super) only: Vec<Law>,
    /// When something was not done that somebody should have done, if anybody was there.
    omissions: Vec<i64>,
    line: u64,
    at: i64,
}

/// Laws about what must be done in time.
const OMISSIONS: [Law; 5] = [Law::Signal, Law::NamedStart, Law::Idle, Law::Service, Law::Preference];

impl Findings {
    /// From now on violations show at this line.
    pub(super) fn move_to(&mut self, line: u64, at: i64) {
        self.line = line;
        self.at = at;
    }

    pub(super) fn add(&mut self, law: Law, seen: impl Into<String>, expected: impl Into<String>) {
        if !self.only.is_empty() && !self.only.contains(&law) {
            return;
        }
        self.report.found += 1;
        if OMISSIONS.contains(&law) {
            self.omissions.push(self.at);
        }
        if self.report.violations.len() < KEPT {
            let (line, t_ms) = (self.line, self.at);
            self.report.violations.push(Violation { law, line, t_ms, seen: seen.into(), expected: expected.into() });
        }
    }

    /// Nobody was there since `from`: what was not done until now is forgiven.
    pub(super) fn forgive(&mut self, from: i64) {
        let now = self.at;
        let is_forgiven = |at: i64| from <= at && at < now;
        self.report.found -= self.omissions.iter().filter(|at| is_forgiven(**at)).count() as u64;
        self.omissions.retain(|at| !is_forgiven(*at));
        self.report.violations.retain(|one| !(OMISSIONS.contains(&one.law) && is_forgiven(one.t_ms)));
    }

    pub(super) fn count(&mut self) -> &mut Summary {
        &mut self.report.summary
    }
}

impl Report {
    /// Whether every law was kept.
    pub fn is_clean(&self) -> bool {
        self.found == 0
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, {} ms: {:?}: {}; expected: {}", self.line, self.t_ms, self.law, self.seen, self.expected)
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} lines, {} instants, {} workloads", self.lines, self.instants, self.workloads)?;
        writeln!(
            f,
            "{} starts ({} unallocated, of these {} before their turn), {} promotions, {} renewals",
            self.starts, self.starts_unallocated, self.starts_early, self.promotions, self.renewals
        )?;
        writeln!(f, "{} preemptions ({} for a claimant)", self.preemptions, self.preemptions_for_claimants)?;
        writeln!(f, "{} comparisons of standings recomputed, {} skipped", self.standings_compared, self.standings_skipped)?;
        writeln!(
            f,
            "{} plans whose loss must be worth it, {} doubts, {} placements on express nodes",
            self.losses_compared, self.doubts, self.express_checks
        )?;
        writeln!(f, "{} holds, {} ended in their start; {} promised starts or moves", self.holds, self.holds_started, self.promises)?;
        writeln!(
            f,
            "{} charges ({} GPU-ms), {} refunds ({} GPU-ms)",
            self.charges, self.charged_gpu_ms, self.refunds, self.refunded_gpu_ms
        )?;
        write!(
            f,
            "{} checks for idle GPUs, {} for bounded service, {} for negative usage,\n{} for the order of pools, {} for lapsed credit; {} evictions just after {} gaps",
            self.idle_checks,
            self.service_checks,
            self.used_checks,
            self.preference_checks,
            self.lapse_checks,
            self.gap_evictions,
            self.gaps
        )
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for violation in &self.violations {
            writeln!(f, "{violation}")?;
        }
        if self.found > self.violations.len() as u64 {
            writeln!(f, "and {} more", self.found - self.violations.len() as u64)?;
        }
        write!(f, "{}", self.summary)
    }
}

impl Serialize for Report {
    /// `ok` before all else: whoever wants only the verdict need not count.
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut object = to.serialize_struct("Report", 4)?;
        object.serialize_field("ok", &self.is_clean())?;
        object.serialize_field("found", &self.found)?;
        object.serialize_field("violations", &self.violations)?;
        object.serialize_field("summary", &self.summary)?;
        object.end()
    }
}
