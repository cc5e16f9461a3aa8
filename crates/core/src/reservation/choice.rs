//! Which nodes a reservation gets, and when: least lost and least blocked GPU time, then the earliest date.
//!
//! A date is worth looking at where a protection ends or where a lease past its contract banks. At each, the cheapest nodes that are clear
//! by then are counted until the gang fits.

use crate::id::{BlockId, NodeId, WorkloadId};
use crate::quantity::{GpuMs, Gpus, Span, Time};
use std::collections::{BTreeMap, BTreeSet};

/// At most so many dates are looked at, evenly over all: the cost is dates × nodes.
const DATES_MAX: usize = 64;

/// Of blocked GPU time this part counts as lost: others may not begin a contract there, but it is used.
const BLOCKED_PART: i64 = 8;

/// Allocated work on a node that would have to go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stake {
    pub workload: WorkloadId,
    /// Its GPUs on the node.
    pub gpus: Gpus,
    /// All its GPUs: a gang that has to leave one node leaves all.
    pub gang: Gpus,
    /// Since when it has banked nothing.
    pub since: Time,
    /// How often it banks; never, if it cannot resume.
    pub every: Option<Span>,
    /// When it has reached its time limit.
    pub ends: Time,
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
    /// What each of its GPUs loses.
    fn loss(&self, at: Time, restart_cost: Span) -> Span {
        if at >= self.ends {
            return Span::ZERO;
        }
        let at_stake = (at - self.since).0.max(0);
        let at_stake = self.every.map_or(at_stake, |every| at_stake % every.0);
        Span(at_stake) + restart_cost
    }
}

impl Candidate {
    /// What its occupants lose here if they go at `date`, and a part of what is blocked until then.
    fn cost(&self, date: Time, restart_cost: Span) -> i64 {
        let losses = self.stakes.iter().map(|stake| stake.gpus.over(stake.loss(date, restart_cost)).0);
        losses.sum::<i64>() + self.blocked(date)
    }

    fn blocked(&self, date: Time) -> i64 {
        self.gpus.over(date - self.clears).0 / BLOCKED_PART
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

/// Nodes on the way to a gang.
#[derive(Default)]
struct Sum {
    members: u32,
    cost: i64,
    loss: i64,
    /// Who has to go.
    going: BTreeSet<WorkloadId>,
    nodes: Vec<NodeId>,
}

impl Sum {
    /// Counts a node, unless those who have to go for it would lose too much, each what it has on all its nodes.
    fn take(&mut self, one: &Candidate, date: Time, need: &Need) {
        let new = one.stakes.iter().filter(|stake| !self.going.contains(&stake.workload));
        let loss: i64 = new.map(|stake| stake.gang.over(stake.loss(date, need.restart_cost)).0).sum();
        if self.members >= need.members || self.loss + loss > need.loss_max.0 {
            return;
        }
        self.members += one.members;
        self.loss += loss;
        self.cost += loss + one.blocked(date);
        self.going.extend(one.stakes.iter().map(|stake| stake.workload));
        self.nodes.push(one.node);
    }
}

/// Nodes and a date.
pub(crate) fn choose(candidates: &[Candidate], need: &Need) -> Option<(Time, Vec<NodeId>)> {
    let suffices_from = suffice_from(candidates, need.members)?;
    let mut dates: Vec<Time> = candidates.iter().flat_map(|one| [one.clears, one.banks()]).filter(|date| *date <= need.latest).collect();
    dates.sort_unstable();
    dates.dedup();
    let step = dates.len().div_ceil(DATES_MAX).max(1);
    let mut best: Option<(i64, Time, Vec<NodeId>)> = None;
    // Of equally cheap dates the earliest.
    for date in dates.into_iter().step_by(step).filter(|date| *date >= suffices_from) {
        let cost_max = best.as_ref().map_or(i64::MAX, |(cost, ..)| *cost);
        if let Some((cost, nodes)) = at(candidates, need, date, cost_max) {
            best = Some((cost, date, nodes));
        }
    }
    let (_, date, mut nodes) = best?;
    nodes.sort_unstable();
    Some((date, nodes))
}

/// From when on enough nodes are clear, if all of them could be had.
fn suffice_from(candidates: &[Candidate], members: u32) -> Option<Time> {
    let mut clears: Vec<(Time, u32)> = candidates.iter().map(|one| (one.clears, one.members)).collect();
    clears.sort_unstable();
    let mut sum = 0;
    let enough = clears.into_iter().find(|(_, fitting)| {
        sum += fitting;
        sum >= members
    });
    enough.map(|(clears, _)| clears)
}

/// The cheapest nodes that are clear by a date, if they cost less than `cost_max`.
fn at(candidates: &[Candidate], need: &Need, date: Time, cost_max: i64) -> Option<(i64, Vec<NodeId>)> {
    let clear = candidates.iter().filter(|one| one.clears <= date);
    let mut order: Vec<(i64, NodeId, &Candidate)> =
        clear.map(|one| (one.cost(date, need.restart_cost) / i64::from(one.members), one.node, one)).collect();
    order.sort_unstable_by_key(|(cost, node, _)| (*cost, *node));
    let mut blocks: BTreeMap<Option<BlockId>, Sum> = BTreeMap::new();
    for (.., one) in order {
        let sum = blocks.entry(need.same_block.then_some(one.block)).or_default();
        sum.take(one, date, need);
        if !need.same_block && (sum.members >= need.members || sum.cost >= cost_max) {
            break;
        }
    }
    let Sum { cost, nodes, .. } = blocks.into_values().filter(|sum| sum.members >= need.members).min_by_key(|sum| sum.cost)?;
    (cost < cost_max).then_some((cost, nodes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A node with 8 GPUs that are clear, and one occupant that began at 0 and cannot resume.
    fn node(number: u32, workload: u32, gang: u32) -> Candidate {
        let stake = Stake { workload: WorkloadId(workload), gpus: Gpus(8), gang: Gpus(gang), since: Time(0), every: None, ends: Time::MAX };
        Candidate { node: NodeId(number), block: BlockId(0), clears: Time(0), members: 1, gpus: Gpus(8), stakes: vec![stake] }
    }

    fn chosen(candidates: &[Candidate], members: u32, loss_max: GpuMs) -> Option<Vec<NodeId>> {
        let need = Need { members, same_block: false, restart_cost: Span::hours(1), loss_max, latest: Time::MAX };
        choose(candidates, &need).map(|(_, nodes)| nodes)
    }

    #[test]
    fn a_gang_that_has_to_leave_one_node_loses_what_it_has_on_all() {
        // One hour each is lost: 8 GPU-hours by who stands on one node, 64 by who stands on eight.
        let candidates = [node(0, 1, 64), node(1, 2, 8), node(2, 3, 8)];
        let hours = |hours: u32| Gpus(hours).over(Span::hours(1));
        assert_eq!(chosen(&candidates, 2, hours(16)), Some(vec![NodeId(1), NodeId(2)]));
        assert_eq!(chosen(&candidates, 2, hours(15)), None);
        assert_eq!(chosen(&candidates, 3, hours(79)), None);
        assert_eq!(chosen(&candidates, 3, hours(80)), Some(vec![NodeId(0), NodeId(1), NodeId(2)]));
    }

    #[test]
    fn it_loses_it_once() {
        let candidates = [node(0, 1, 16), node(1, 1, 16)];
        assert!(chosen(&candidates, 2, Gpus(16).over(Span::hours(1))).is_some());
    }
}
