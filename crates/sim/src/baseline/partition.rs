//! Each team owns its GPUs: whole nodes by its claim, on which only its own work runs, in the order of submission, skipping what does not
//! fit now.
//!
//! A gang that is larger than its team's part waits for ever. It is not refused: it is demand that this policy cannot serve, and the
//! measures must see it. The same holds for work of a leaf without a claim.

use super::book::{Estimate, Workload};
use super::cluster::Cluster;
use super::common::{Baseline, Desk, GUEST, Queue};
use super::line::Ticket;
use super::shapes::Shapes;
use crate::policy::Policy;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use stipend_core::id::{BudgetId, NodeId, WorkloadId};
use stipend_core::quantity::Claim;

/// A static partition among the leaf budgets.
pub fn partition() -> impl Policy {
    Baseline::new(Partition::default, Estimate::default())
}

/// One leaf budget's waiting work.
#[derive(Default)]
struct Team {
    shapes: Shapes,
    /// Shapes in which somebody came to wait since the last pass.
    touched: BTreeSet<usize>,
    /// Its nodes' group in the cluster; `None` while it owns nothing.
    group: Option<u32>,
    /// What was free in its group after the last pass.
    version: Option<u64>,
}

/// The teams and who owns which node.
#[derive(Default)]
struct Partition {
    teams: BTreeMap<BudgetId, Team>,
    owners: BTreeMap<NodeId, BudgetId>,
    /// The version of the tree and the number of nodes for which the nodes were dealt.
    dealt: (u32, usize),
}

impl Queue for Partition {
    fn push(&mut self, id: WorkloadId, workload: &Workload, estimate: &Estimate) {
        let ticket = Ticket { rank: workload.rank, id, expected: workload.expected(estimate) };
        let team = self.teams.entry(workload.spec.budget).or_default();
        let shape = team.shapes.push(workload.spec.gang, ticket);
        team.touched.insert(shape);
    }

    fn remove(&mut self, _: WorkloadId, workload: &Workload) {
        let team = self.teams.get_mut(&workload.spec.budget).expect("it waits there");
        team.shapes.remove(team.shapes.number(&workload.spec.gang), workload.rank);
    }

    fn decide(&mut self, desk: &mut Desk<'_>) {
        let version = (desk.tree.version(), desk.cluster.count());
        if self.dealt != version {
            self.dealt = version;
            self.deal(&desk.tree.claims(desk.pool), desk.cluster);
        }
        for team in self.teams.values_mut() {
            team.decide(desk);
        }
    }

    fn guest(&mut self, id: WorkloadId, desk: &mut Desk<'_>) -> bool {
        let spec = &desk.book.get(id).expect("it waits").spec;
        let group = self.teams.get(&spec.budget).and_then(|team| team.group);
        let choice = group.and_then(|group| desk.cluster.place(desk.cluster.free(group), &spec.gang));
        choice.map(|choice| desk.start(id, &choice, GUEST)).is_some()
    }
}

impl Team {
    /// Starts what fits, in the order of submission.
    fn decide(&mut self, desk: &mut Desk<'_>) {
        let Some(group) = self.group else { return };
        let touched = std::mem::take(&mut self.touched);
        let mut next: BinaryHeap<Reverse<(u32, usize)>> = if self.version == Some(desk.cluster.free(group).version()) {
            // Nothing became free, so only those who came since can start.
            touched.into_iter().map(|shape| Reverse((0, shape))).collect()
        } else {
            (0..self.shapes.len()).map(|shape| Reverse((0, shape))).collect()
        };
        while let Some(Reverse((rank, shape))) = next.pop() {
            let (gang, line) = self.shapes.line(shape);
            let Some(first) = line.first() else { continue };
            let Some(choice) = desk.cluster.place(desk.cluster.free(group), gang) else { continue };
            if first.rank == rank {
                desk.start(first.id, &choice, "its team's longest waiting that fits on the team's own nodes");
                self.shapes.remove(shape, rank);
            }
            next.push(Reverse((first.rank, shape)));
        }
        self.version = Some(desk.cluster.free(group).version());
    }
}

impl Partition {
    /// Deals the nodes anew. A node stays with its team as long as the team is due that many; what runs on a node that changes hands goes
    /// on, and the new owner waits for its end.
    fn deal(&mut self, claims: &[(BudgetId, Claim)], cluster: &mut Cluster) {
        let nodes: Vec<NodeId> = cluster.nodes().map(|(id, _)| id).collect();
        let mut due: BTreeMap<BudgetId, u64> = largest_remainder(claims, nodes.len() as u64);
        let mut owners = BTreeMap::new();
        let mut spare = Vec::new();
        for node in nodes {
            let owner = self.owners.get(&node).and_then(|owner| Some((*owner, due.get_mut(owner).filter(|left| **left > 0)?)));
            match owner {
                Some((owner, left)) => {
                    *left -= 1;
                    owners.insert(node, owner);
                }
                None => spare.push(node),
            }
        }
        let takers = due.into_iter().flat_map(|(team, left)| (0..left).map(move |_| team));
        owners.extend(spare.into_iter().zip(takers));
        for team in self.teams.values_mut() {
            team.group = None;
            team.version = None;
        }
        for (group, &(team, _)) in claims.iter().enumerate() {
            self.teams.entry(team).or_default().group = Some(group as u32);
        }
        cluster.deal(claims.len(), |node| self.teams[owners.get(&node)?].group);
        self.owners = owners;
    }
}

/// How many of `nodes` each claim is worth: the whole part of claim × nodes, and what that leaves of the sum to the largest remainders.
fn largest_remainder(claims: &[(BudgetId, Claim)], nodes: u64) -> BTreeMap<BudgetId, u64> {
    let whole = Claim::WHOLE.0;
    let sum: u64 = claims.iter().map(|(_, claim)| claim.0).sum();
    let mut due: BTreeMap<BudgetId, u64> = claims.iter().map(|&(team, claim)| (team, claim.0 * nodes / whole)).collect();
    let rounded = (sum * nodes + whole / 2) / whole;
    let missing = rounded.min(nodes).saturating_sub(due.values().sum());
    let mut by_remainder: Vec<(Reverse<u64>, BudgetId)> =
        claims.iter().map(|&(team, claim)| (Reverse(claim.0 * nodes % whole), team)).collect();
    by_remainder.sort_unstable();
    for (_, team) in by_remainder.into_iter().take(missing as usize) {
        *due.entry(team).or_default() += 1;
    }
    due
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_go_by_largest_remainder() {
        let claims = [(BudgetId(1), Claim(500_000_000)), (BudgetId(2), Claim(300_000_000)), (BudgetId(3), Claim(199_999_999))];
        let dealt = |nodes| largest_remainder(&claims, nodes).into_values().collect::<Vec<_>>();
        assert_eq!(dealt(10), [5, 3, 2]);
        assert_eq!(dealt(4), [2, 1, 1]);
        assert_eq!(dealt(128), [64, 38, 26]);
    }
}
