//! Which nodes a reservation gets, and when: least lost and least blocked GPU time, then the earliest date.
//!
//! A date is worth looking at where a protection ends or where a lease past its contract banks. At each, the cheapest nodes that are clear
//! by then are counted until the gang fits.

use crate::id::{BlockId, NodeId};
use crate::quantity::{GpuMs, Gpus, Span, Time};
use std::collections::BTreeMap;

/// At most so many dates are looked at, evenly over all: the cost is dates × nodes.
const DATES_MAX: usize = 64;

/// Of blocked GPU time this part counts as lost: others may not begin a contract there, but it is used.
const BLOCKED_PART: i64 = 8;

/// Allocated work on a node that would have to go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stake {
    /// Its GPUs on the node.
    pub gpus: Gpus,
    /// Since when it has banked nothing.
    pub since: Time,
    /// How often it banks; never, if it cannot resume.
    pub every: Option<Span>,
}

/// A node that a reservation may count on.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub node: NodeId,
    pub block: BlockId,
    /// When the last protection on it ends.
    pub clears: Time,
    /// Members that fit on it.
    pub members: u32,
    pub gpus: Gpus,
    pub stakes: Vec<Stake>,
}

impl Stake {
    fn loss(&self, at: Time, restart_cost: Span) -> GpuMs {
        let at_stake = (at - self.since).0.max(0);
        let at_stake = self.every.map_or(at_stake, |every| at_stake % every.0);
        self.gpus.over(Span(at_stake) + restart_cost)
    }
}

impl Candidate {
    /// What its occupants lose if they go at `date`, and a part of what is blocked until then.
    fn cost(&self, date: Time, restart_cost: Span) -> i64 {
        self.loss(date, restart_cost) + self.gpus.over(date - self.clears).0 / BLOCKED_PART
    }

    fn loss(&self, date: Time, restart_cost: Span) -> i64 {
        self.stakes.iter().map(|stake| stake.loss(date, restart_cost).0).sum()
    }

    /// The first time from when it is clear at which a lease on it banks.
    fn banks(&self) -> Time {
        let next = |stake: &Stake| {
            let every = stake.every?;
            let since = (self.clears - stake.since).0.max(0);
            Some(self.clears + Span((every.0 - since % every.0) % every.0))
        };
        self.stakes.iter().filter_map(next).max().unwrap_or(self.clears)
    }
}

/// What a reservation needs.
pub(crate) struct Need {
    pub members: u32,
    pub same_block: bool,
    pub restart_cost: Span,
    /// The most that its evictions may lose.
    pub loss_max: GpuMs,
    /// No date after this.
    pub latest: Time,
}

/// Nodes and a date.
pub(crate) fn choose(candidates: &[Candidate], need: &Need) -> Option<(Time, Vec<NodeId>)> {
    let mut dates: Vec<Time> = candidates.iter().flat_map(|one| [one.clears, one.banks()]).filter(|date| *date <= need.latest).collect();
    dates.sort_unstable();
    dates.dedup();
    let step = dates.len().div_ceil(DATES_MAX).max(1);
    let plans = dates.into_iter().step_by(step).filter_map(|date| at(candidates, need, date));
    let (_, date, nodes) = plans.min()?;
    Some((date, nodes))
}

/// The cheapest nodes that are clear by a date.
fn at(candidates: &[Candidate], need: &Need, date: Time) -> Option<(i64, Time, Vec<NodeId>)> {
    let clear = candidates.iter().filter(|one| one.clears <= date);
    let mut costs: Vec<(i64, &Candidate)> = clear.map(|one| (one.cost(date, need.restart_cost), one)).collect();
    costs.sort_by_key(|(cost, one)| (*cost / i64::from(one.members), one.node));
    let mut blocks: BTreeMap<Option<BlockId>, (u32, i64, i64, Vec<NodeId>)> = BTreeMap::new();
    for (cost, one) in costs {
        let (members, sum, loss, nodes) = blocks.entry(need.same_block.then_some(one.block)).or_default();
        if *members < need.members {
            (*members, *sum, *loss) = (*members + one.members, *sum + cost, *loss + one.loss(date, need.restart_cost));
            nodes.push(one.node);
        }
    }
    let whole = blocks.into_values().filter(|(members, _, loss, _)| *members >= need.members && *loss <= need.loss_max.0);
    let (_, cost, _, mut nodes) = whole.min_by_key(|(_, cost, ..)| *cost)?;
    nodes.sort_unstable();
    Some((cost, date, nodes))
}
