//! Preemption for a claimant: concrete GPUs are chosen, their occupants told to stop, and nobody else gets them until the claimant starts.

use super::common::Desk;
use super::stop::Stop;
use super::victims::Eviction;
use stipend_core::entry::{Entry, Licence, Occupancy, Placement};
use stipend_core::explain::Why;
use stipend_core::id::{LeaseId, NodeId, WorkloadId};
use stipend_core::spec::{Gang, NodeState};

/// GPUs kept for a workload that waits for the last of their occupants to leave.
#[derive(Debug)]
struct Claim {
    id: WorkloadId,
    gang: Gang,
    placement: Placement,
    victims: Vec<LeaseId>,
    /// Victims that wait again: they would slip back in before the claimant.
    parked: Vec<WorkloadId>,
    licence: Licence,
    rule: &'static str,
}

/// All claims of a pool, in the order in which they were made.
#[derive(Debug, Default)]
pub(super) struct Claims {
    list: Vec<Claim>,
}

/// What became of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Settled {
    /// The claimant started.
    Started(WorkloadId),
    /// A node left service: the claimant waits again.
    Lost(WorkloadId),
    /// The claimant was withdrawn.
    Gone(WorkloadId),
    /// A victim, whose own pool this is, may start again.
    Back(WorkloadId),
}

impl Claims {
    /// Tells the victims to stop and keeps the GPUs; the queue forgets the claimant by itself until the claim is settled.
    pub(super) fn make(&mut self, desk: &mut Desk<'_>, id: WorkloadId, eviction: Eviction, licence: Licence, rule: &'static str) {
        let claimant = desk.book.get(id).expect("only waiting work claims");
        let gang = claimant.spec.gang;
        desk.guests.remove(claimant);
        let mut victims = Vec::with_capacity(eviction.victims.len());
        for victim in eviction.victims {
            let workload = desk.book.get(victim).expect("only running work yields");
            let lease = LeaseId { workload: victim, attempt: workload.attempt };
            let grace = match workload.occupancy() {
                Occupancy::Allocated => desk.knobs.grace_allocated,
                Occupancy::Unallocated => desk.knobs.grace_unallocated,
            };
            let why = Why::Rule(rule.into());
            desk.log.push(Entry::Preempting { lease, claimant: Some(id), node: None, licence, stop_by: desk.at, why });
            desk.log.push(Entry::Stopping { lease, grace });
            desk.book.stop(victim, Stop::Claimant(id), desk.at + grace);
            victims.push(lease);
        }
        desk.cluster.hold(&gang, &eviction.placement);
        desk.log.push(Entry::Hold { claimant: id, placement: eviction.placement.clone() });
        self.list.push(Claim { id, gang, placement: eviction.placement, victims, parked: Vec::new(), licence, rule });
    }

    /// Starts the claimants whose victims are gone, and gives up the claims that cannot be kept.
    pub(super) fn settle(&mut self, desk: &mut Desk<'_>) -> Vec<Settled> {
        let mut settled = Vec::new();
        for claim in std::mem::take(&mut self.list) {
            let waits = desk.book.get(claim.id).is_ok_and(|workload| workload.lease().is_none() && !workload.is_held());
            if !waits {
                claim.give_up(desk, Why::ClaimantGone);
                settled.push(Settled::Gone(claim.id));
            } else if let Some(node) = claim.lost_node(desk) {
                claim.give_up(desk, Why::HoldNodeGone { node });
                desk.waits_again(claim.id);
                settled.push(Settled::Lost(claim.id));
            } else if claim.victims.iter().all(|&victim| desk.book.leased(victim).is_err()) {
                claim.give_up(desk, Why::ClaimantStarted);
                desk.start_on(claim.id, &claim.placement, claim.licence, claim.rule);
                settled.push(Settled::Started(claim.id));
            } else {
                self.list.push(claim);
                continue;
            }
            for id in claim.parked {
                if desk.waits_again(id) {
                    settled.push(Settled::Back(id));
                }
            }
        }
        settled
    }

    /// Whether GPUs are being vacated for this workload.
    pub(super) fn has(&self, id: WorkloadId) -> bool {
        self.list.iter().any(|claim| claim.id == id)
    }

    /// A workload waits again: if it yielded to a claimant that has not started yet, it is kept back here until that is settled.
    pub(super) fn park(&mut self, id: WorkloadId) -> bool {
        let claim = self.list.iter_mut().find(|claim| claim.victims.iter().any(|victim| victim.workload == id));
        claim.map(|claim| claim.parked.push(id)).is_some()
    }

    /// Whether it is kept back.
    pub(super) fn is_parked(&self, id: WorkloadId) -> bool {
        self.list.iter().any(|claim| claim.parked.contains(&id))
    }

    /// A workload that may be kept back does not wait any more; whether it was.
    pub(super) fn forget(&mut self, id: WorkloadId) -> bool {
        let Some(claim) = self.list.iter_mut().find(|claim| claim.parked.contains(&id)) else { return false };
        claim.parked.retain(|&parked| parked != id);
        true
    }
}

impl Desk<'_> {
    /// A workload may start again, here and wherever else it accepts; whether this pool's queue is where it waits.
    fn waits_again(&mut self, id: WorkloadId) -> bool {
        let workload = self.book.get(id).expect("it waits again");
        if workload.pool != self.pool {
            self.guests.give_back(id);
            return false;
        }
        self.guests.push(id, workload);
        true
    }
}

impl Claim {
    fn give_up(&self, desk: &mut Desk<'_>, why: Why) {
        desk.cluster.unhold(&self.gang, &self.placement);
        desk.log.push(Entry::Unhold { claimant: self.id, why });
    }

    /// A node of it that is out of service or on its way out.
    fn lost_node(&self, desk: &Desk<'_>) -> Option<NodeId> {
        let gone = |node: &NodeId| desk.cluster.node(*node).is_none_or(|node| node.state != NodeState::Ready);
        self.placement.iter().map(|slot| slot.node).find(gone)
    }
}
