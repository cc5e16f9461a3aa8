//! What would save most: each with its number, and what to do next.

use super::families::{FamilyLoss, Found, STREAK};
use super::{Cause, CauseLoss, Limits, Log, Owner, Owners, Tally};
use crate::report::{count, duration, shortened};
use crate::trace::outcome::Outcome;
use serde::Serialize;

/// So many are shown.
const SHOWN: usize = 5;

/// So many of them are of one kind.
const OF_A_KIND: usize = 2;

/// Less than this part of all hours is not worth a finding.
const LEAST: f64 = 0.001;

/// So much of a name is shown.
const NAME_MAX: usize = 40;

/// From fewer jobs than this nothing follows for certain.
const FEW: u64 = 10;

/// What was cancelled after running for so long was hardly a slip, ms.
const LONG_MS: i64 = 3_600_000;

/// What a finding is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A family that loses again and again.
    Family,
    /// Attempts after several in a row that led to nothing.
    Repeats,
    /// A team that loses more of its time than the others.
    Budget,
    /// A user who does.
    User,
    /// Jobs that reached their time limit.
    TimedOut,
    /// Jobs that ran out of memory.
    OutOfMemory,
    /// Nodes that failed.
    NodeFailed,
    /// Preemptions.
    Preempted,
    /// Jobs that were requeued.
    Requeued,
    /// Jobs that failed late.
    Failed,
    /// Jobs that were cancelled late.
    Cancelled,
    /// Time limits far above run times.
    Limits,
}

/// One finding.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// What it is about.
    pub kind: Kind,
    /// What it would save at most, in the log's span; `null` where it saves waiting only.
    pub hours: Option<f64>,
    /// From how many jobs.
    pub jobs: u64,
    /// Whether these are so few that it may be chance.
    pub few: bool,
    /// What was found.
    pub what: String,
    /// What to do next.
    pub next: String,
}

/// What findings are made of.
pub(super) struct Sources<'a> {
    pub(super) log: &'a Log<'a>,
    pub(super) lost: &'a [CauseLoss],
    /// Hours of all jobs.
    pub(super) hours: f64,
    pub(super) families: &'a Found,
    pub(super) budgets: &'a Owners,
    pub(super) users: Option<&'a Owners>,
    pub(super) limits: Option<&'a Limits>,
}

impl Sources<'_> {
    /// The findings, the largest first.
    pub(super) fn find(&self) -> Vec<Finding> {
        let mut found: Vec<Finding> = self.families.worst(self.log).iter().filter_map(family).collect();
        found.extend(self.repeats());
        found.extend(self.lost.iter().filter_map(cause));
        let (budget, user) = (owner(Kind::Budget, self.budgets), self.users.and_then(|users| owner(Kind::User, users)));
        // A team of one user is one finding.
        let is_same = budget.as_ref().zip(user.as_ref()).is_some_and(|(budget, user)| budget.hours == user.hours);
        found.extend(budget);
        found.extend(user.filter(|_| !is_same));
        found.extend(self.failed_late());
        found.extend(self.cancelled_late());
        found.retain(|finding| finding.hours.is_some_and(|hours| hours >= LEAST * self.hours));
        found.sort_by(|a, b| b.hours.unwrap_or(0.0).total_cmp(&a.hours.unwrap_or(0.0)));
        let mut shown: Vec<Finding> = Vec::new();
        for finding in found {
            if shown.iter().filter(|other| other.kind == finding.kind).count() < OF_A_KIND {
                shown.push(finding);
            }
        }
        shown.extend(self.limits.and_then(limits));
        shown.truncate(SHOWN);
        shown
    }

    fn repeats(&self) -> Option<Finding> {
        let repeats = self.families.repeats();
        (repeats.lost.count > 0).then(|| {
            let (again, after) = (count(repeats.lost.count), count(repeats.lost.of));
            Finding {
                what: format!(
                    "of {after} attempts that began after the last {STREAK} of their family had led to nothing, {again} led to nothing again"
                ),
                next: "stop after the third: let the next one prove itself in a short run, or order the team's work by `completion`; tell its owner".into(),
                ..finding(Kind::Repeats, repeats.lost_hours, repeats.lost.count)
            }
        })
    }

    /// Jobs that ended so after running for long.
    fn late(&self, outcome: Outcome) -> Tally {
        let mut late = Tally::default();
        for row in self.log.rows().filter(|row| row.outcome == outcome && row.last_ms() >= LONG_MS) {
            late.add(self.log.last_time(row));
        }
        late
    }

    fn failed_late(&self) -> Option<Finding> {
        let late = self.late(Outcome::Failed);
        (late.jobs > 0).then(|| Finding {
            what: format!("{} failed after running for an hour or longer", jobs(late.jobs)),
            next: "let a short run go through all its steps first, saving included; let it checkpoint".into(),
            ..finding(Kind::Failed, late.hours(), late.jobs)
        })
    }

    fn cancelled_late(&self) -> Option<Finding> {
        let late = self.late(Outcome::Cancelled);
        (late.jobs > 0).then(|| Finding {
            what: format!("{} cancelled after running for an hour or longer; many may have done what they were for", were(late.jobs)),
            next: "ask their owners why: early stopping is well, an idle session or a run that went wrong hours ago is not".into(),
            ..finding(Kind::Cancelled, late.hours(), late.jobs)
        })
    }
}

fn finding(kind: Kind, hours: f64, jobs: u64) -> Finding {
    Finding { kind, hours: Some(hours), jobs, few: jobs < FEW, what: String::new(), next: String::new() }
}

fn jobs(number: u64) -> String {
    if number == 1 { "1 job".into() } else { format!("{} jobs", count(number)) }
}

fn were(number: u64) -> String {
    format!("{} {}", jobs(number), if number == 1 { "was" } else { "were" })
}

/// A family that lost time at least twice: all but one attempt's part of it.
fn family(family: &FamilyLoss) -> Option<Finding> {
    let died = family.died.filter(|died| died.count > 1)?;
    let name =
        if family.name().is_empty() { "work without a name".to_owned() } else { format!("`{}`", shortened(family.name(), NAME_MAX)) };
    let (lost, of) = (died.count, family.completed.of);
    let next = match family.cause {
        Cause::TimedOut => "give it checkpoints and let it resume, or a limit that it can keep",
        Cause::OutOfMemory => "let one step run at full size first, then ask for what that took",
        Cause::NodeFailed | Cause::Requeued => "let it checkpoint, and look at the nodes that it ran on",
        Cause::Preempted => "let it checkpoint more often than it is preempted",
        Cause::Failed | Cause::Cancelled => "read the end of its last log before it runs again; let it prove itself in a short run",
    };
    Some(Finding {
        what: format!(
            "{}'s {name} ({}): {lost} of {of} attempts led to nothing, mostly {}; half of them died within {}",
            shown(&family.user),
            size(family.from, family.to),
            family.cause.name(),
            duration(died.p50_s),
        ),
        next: next.into(),
        ..finding(Kind::Family, family.lost_hours * (lost - 1) as f64 / lost as f64, lost)
    })
}

fn size(from: u64, to: u64) -> String {
    if from >= to { format!("size {to}") } else { format!("size {from} to {to}") }
}

fn shown(name: &str) -> String {
    if name.is_empty() { "(nobody)".into() } else { shortened(name, NAME_MAX) }
}

fn cause(loss: &CauseLoss) -> Option<Finding> {
    let (kind, what, next) = match loss.cause {
        Cause::TimedOut => (
            Kind::TimedOut,
            "ran into a time limit; what was not saved is lost",
            "let long work checkpoint and resume, so that a limit costs minutes; look for jobs that hang",
        ),
        Cause::OutOfMemory => {
            (Kind::OutOfMemory, "ran out of memory", "let one step run at full size before the long run; raise what they ask for")
        }
        Cause::NodeFailed => (
            Kind::NodeFailed,
            "ended with their node",
            "drain nodes at the first sign (Xid, ECC) and check them before work comes back; let long work checkpoint",
        ),
        Cause::Preempted => {
            (Kind::Preempted, "lost time to preemptions", "let them checkpoint before the grace is over; a contract protects what cannot")
        }
        Cause::Requeued => {
            (Kind::Requeued, "lost earlier attempts when they were requeued", "let them checkpoint; look at why they were requeued")
        }
        // Its parts are families and owners; what was cancelled late is looked at by itself.
        Cause::Failed | Cause::Cancelled => return None,
    };
    Some(Finding { what: format!("{} {what}", jobs(loss.jobs)), next: next.into(), ..finding(kind, loss.hours, loss.jobs) })
}

/// Whoever lost most above what the others lose of their time.
fn owner(kind: Kind, owners: &Owners) -> Option<Finding> {
    let rest = |owner: &Owner| super::part_of(owners.lost_hours - owner.lost_hours, owners.hours - owner.hours);
    let excess = |owner: &Owner| owner.lost_hours - rest(owner) * owner.hours;
    let most = owners.first.iter().filter(|_| owners.count > 1).max_by(|a, b| excess(a).total_cmp(&excess(b)))?;
    let who = if kind == Kind::Budget { "the team" } else { "the user" };
    Some(Finding {
        what: format!(
            "{who} {} loses {:.0} % of its time, the others {:.0} %; at their rate it would be this much less",
            shown(&most.name),
            most.lost_of_hours * 100.0,
            rest(most) * 100.0
        ),
        next: "look at its worst families together with its people".into(),
        ..finding(kind, excess(most), most.completed.of)
    })
}

/// Limits that say nothing cost waiting: nobody can plan around them.
fn limits(limits: &Limits) -> Option<Finding> {
    let loose = limits.under_tenth * 2 >= limits.jobs;
    loose.then(|| Finding {
        hours: None,
        what: format!(
            "{} of {} used less than a tenth of their time limit: nothing can be planned around such limits",
            count(limits.under_tenth),
            jobs(limits.jobs)
        ),
        next: "ask for limits near the run time, or for expected run times: backfill and promised starts get better".into(),
        ..finding(Kind::Limits, 0.0, limits.under_tenth)
    })
}
