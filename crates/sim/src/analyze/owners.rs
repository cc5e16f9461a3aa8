//! Who lost how much: teams (accounts, budgets) and users.

use super::{Log, Rate, Tally, is_attempt, loss, part_of};
use crate::trace::Row;
use crate::trace::outcome::Outcome;
use serde::Serialize;

/// So many are named.
const NAMED: usize = 10;

/// Those that lost most, first.
#[derive(Clone, Debug, Serialize)]
pub struct Owners {
    /// How many there are.
    pub count: u64,
    /// Those that lost most.
    pub first: Vec<Owner>,
    /// The hours of all.
    pub hours: f64,
    /// What all lost.
    pub lost_hours: f64,
}

/// One team or user.
#[derive(Clone, Debug, Serialize)]
pub struct Owner {
    /// Its name.
    pub name: String,
    /// Jobs, those that never ran included.
    pub jobs: u64,
    /// Of those that ran and ended, how many completed.
    pub completed: Rate,
    /// Hours.
    pub hours: f64,
    /// Hours lost, but for cancellation.
    pub lost_hours: f64,
    /// Of its hours.
    pub lost_of_hours: f64,
    /// Hours of what was cancelled while it ran.
    pub cancelled_hours: f64,
}

#[derive(Clone, Copy, Default)]
struct Sum {
    all: Tally,
    ended: u64,
    completed: u64,
    lost: u128,
    cancelled: u128,
}

/// By the number that `of` gives each job.
pub(super) fn of(log: &Log<'_>, names: &[String], of: impl Fn(&Row) -> u32) -> Owners {
    let mut sums = vec![Sum::default(); names.len()];
    for row in log.rows() {
        let (sum, time) = (&mut sums[of(row) as usize], log.time(row));
        sum.all.add(time);
        sum.ended += u64::from(is_attempt(row));
        sum.completed += u64::from(is_attempt(row) && row.outcome == Outcome::Completed);
        sum.lost += loss::lost(log, row);
        if row.outcome == Outcome::Cancelled {
            sum.cancelled += log.last_time(row);
        }
    }
    let mut order: Vec<usize> = (0..names.len()).filter(|&index| sums[index].all.jobs > 0).collect();
    order.sort_by(|&a, &b| sums[b].lost.cmp(&sums[a].lost).then(sums[b].all.ms.cmp(&sums[a].all.ms)).then(names[a].cmp(&names[b])));
    let hours = |ms: u128| Tally { jobs: 0, ms }.hours();
    let owner = |&index: &usize| {
        let sum = sums[index];
        Owner {
            name: names[index].clone(),
            jobs: sum.all.jobs,
            completed: Rate::of(sum.completed, sum.ended),
            hours: sum.all.hours(),
            lost_hours: hours(sum.lost),
            lost_of_hours: part_of(hours(sum.lost), sum.all.hours()),
            cancelled_hours: hours(sum.cancelled),
        }
    };
    Owners {
        count: order.len() as u64,
        first: order.iter().take(NAMED).map(owner).collect(),
        hours: hours(sums.iter().map(|sum| sum.all.ms).sum()),
        lost_hours: hours(sums.iter().map(|sum| sum.lost).sum()),
    }
}
