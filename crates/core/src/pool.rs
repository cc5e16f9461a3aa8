//! The state of one pool: its knobs, nodes, ledger and queue, and the leases that others may take.

use crate::cluster::{Cluster, Depth};
use crate::entry::Occupancy;
use crate::explain::Blocker;
use crate::id::{BudgetId, NodeId, PoolId, UserId, WorkloadId};
use crate::knobs::Knobs;
use crate::ledger::Ledger;
use crate::quantity::{Gpus, Ppm, Standing, Time};
use crate::queue::{Queue, Size};
use crate::recovery::Recovery;
use crate::reservation::Reservations;
use crate::spec::Gang;
use crate::workload::{Lease, Workload};
use std::collections::{BTreeMap, BTreeSet};

/// Leases of one leaf that run past their contract, and their GPUs.
#[derive(Clone, Debug, Default, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct PastContract {
    pub leases: BTreeSet<WorkloadId>,
    pub gpus: u32,
}

/// One pool.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Pool {
    pub id: PoolId,
    pub knobs: Knobs,
    pub cluster: Cluster,
    pub ledger: Ledger,
    pub queue: Queue,
    pub reservations: Reservations,
    /// Workloads with GPUs held for them.
    pub claims: BTreeSet<WorkloadId>,
    /// By claimant, its victims that have ended: they do not start again before it has.
    pub barred: BTreeMap<WorkloadId, Vec<WorkloadId>>,
    /// Unallocated leases that are not on their way out.
    pub unallocated: BTreeSet<WorkloadId>,
    /// Leases past their contract that are not on their way out, by leaf.
    pub past: BTreeMap<BudgetId, PastContract>,
    pub past_gpus: u32,
    /// Leases on their way out.
    pub leaving: BTreeSet<WorkloadId>,
    /// The session of each user that has one.
    pub sessions: BTreeMap<UserId, WorkloadId>,
    /// Nodes on their way out.
    pub draining: BTreeSet<NodeId>,
    /// When protections end.
    pub protections: BTreeSet<(Time, WorkloadId)>,
    /// When something else about a lease is due.
    pub timers: BTreeSet<(Time, WorkloadId)>,
    /// A gap that is not long over.
    pub recovery: Option<Recovery>,
    /// Counts what could help waiting allocated work: GPUs given back, nodes back in service, changed shares.
    pub reach: u64,
    /// Until then some waiting work counts as tried for which no victims were searched: GPUs that it could have had may become free.
    pub unsearched_until: Time,
    /// Counts GPUs that became free, which is what waiting unallocated work needs.
    pub freed: u64,
    /// Counts leases that became takeable.
    pub takeable: u64,
    /// Something was queued or changed since the last walk.
    pub stirred: bool,
    /// Since the last checkpoint that mattered an eviction was left out for what it would lose.
    pub too_dear: bool,
    /// How often waiting work was gone through.
    pub walks: u64,
    /// When blocked work is tried again even if nothing happens.
    pub retry_at: Time,
}

impl Pool {
    pub(crate) fn new(id: PoolId, at: Time, knobs: Knobs) -> Pool {
        let ledger = Ledger::new(at, &knobs);
        Pool {
            id,
            knobs,
            cluster: Cluster::default(),
            ledger,
            queue: Queue::new(id),
            reservations: Reservations::default(),
            claims: BTreeSet::new(),
            barred: BTreeMap::new(),
            unallocated: BTreeSet::new(),
            past: BTreeMap::new(),
            leaving: BTreeSet::new(),
            sessions: BTreeMap::new(),
            past_gpus: 0,
            draining: BTreeSet::new(),
            protections: BTreeSet::new(),
            timers: BTreeSet::new(),
            recovery: None,
            reach: 0,
            unsearched_until: Time::MIN,
            freed: 0,
            takeable: 0,
            stirred: true,
            too_dear: false,
            walks: 0,
            retry_at: Time::MAX,
        }
    }

    /// Something changed that may let waiting work start.
    pub(crate) fn stir(&mut self) {
        self.reach += 1;
        self.freed += 1;
        self.takeable += 1;
        self.stirred = true;
    }

    /// Waiting work was gone through with everything up to now in sight.
    pub(crate) fn walked(&mut self, retry_at: Time, too_dear: bool) {
        self.stirred = false;
        self.too_dear |= too_dear;
        self.retry_at = retry_at;
        self.walks += 1;
    }

    /// Whether a standing is below its share, with the margin.
    pub(crate) fn is_below_share(&self, standing: Standing) -> bool {
        standing < Standing(u64::from(self.knobs.below_share.0))
    }

    /// What stops a gang for which `reachable` GPUs are all it may have: their number, or how they lie.
    pub(crate) fn out_of_reach(&self, size: Size, reachable: u32, fitting: impl Fn() -> u32) -> Blocker {
        let (needed, reachable) = (Gpus(size.gpus()), Gpus(reachable));
        if reachable < needed {
            return self.in_use(needed, reachable);
        }
        let members_fitting = fitting().min(size.members.saturating_sub(1));
        Blocker::Fragmented { needed_members: size.members, members_fitting, free: reachable }
    }

    /// What keeps the GPUs that are missing from whoever needs so many: their nodes are out of service, or others use them.
    pub(crate) fn in_use(&self, needed: Gpus, reachable: Gpus) -> Blocker {
        let protected_until = self.protections.first().map(|(until, _)| *until);
        self.out_of_service(needed).unwrap_or(Blocker::InUse { needed, reachable, protected_until })
    }

    /// What stops whoever needs more than all GPUs that take new work.
    pub(crate) fn out_of_service(&self, needed: Gpus) -> Option<Blocker> {
        let in_service = self.cluster.ready();
        (in_service < needed).then(|| Blocker::OutOfService { needed, in_service, all: self.cluster.gpus() })
    }

    /// The most express GPUs that one budget's contracts may hold.
    pub(crate) fn express_bound(&self) -> u32 {
        let bound = Ppm(self.knobs.express_budget_max.0).of(i64::from(self.cluster.express_gpus().0)) as u32;
        bound.max(self.knobs.express_gpus_max)
    }

    /// Whether gangs of this size may be promised a start.
    pub(crate) fn may_promise(&self, gang: &Gang) -> bool {
        let least = self.knobs.reservation_gang_min.of(self.cluster.gpus().0.into());
        i64::from(gang.gpus().0) >= least && gang.gpus().0 > self.cluster.largest_node()
    }

    /// A lease's protection ended at `until`: it goes on, still charged, until somebody licensed takes it.
    pub(crate) fn protection_ended(&mut self, id: WorkloadId, workload: &mut Workload, until: Time) {
        self.ledger.commit_running(&workload.terms.charge, workload.terms.charged, until, -1);
        let leaf = workload.spec.budget;
        let gpus = workload.spec.gang.gpus().0;
        let lease = workload.lease_mut().expect("a protected workload holds a lease");
        lease.past_contract = true;
        // One on its way out yields already.
        if lease.stop.is_none() {
            self.cluster.mark(&lease.placement, Some(Depth::PastContract));
        }
        self.takeable += 1;
        self.stirred = true;
        let past = self.past.entry(leaf).or_default();
        past.leases.insert(id);
        past.gpus += gpus;
        self.past_gpus += gpus;
    }

    /// A lease that others may take is listed (`present`), or no longer.
    pub(crate) fn list_takeable(&mut self, id: WorkloadId, workload: &Workload, lease: &Lease, present: bool) {
        let gpus = workload.spec.gang.gpus().0;
        let unallocated = lease.occupancy == Occupancy::Unallocated;
        if present && (unallocated || lease.past_contract) {
            self.cluster.mark(&lease.placement, Some(if unallocated { Depth::Yielding } else { Depth::PastContract }));
        }
        if unallocated {
            list(&mut self.unallocated, id, present);
        } else if lease.past_contract {
            let past = self.past.entry(workload.spec.budget).or_default();
            list(&mut past.leases, id, present);
            past.gpus = if present { past.gpus + gpus } else { past.gpus - gpus };
            self.past_gpus = if present { self.past_gpus + gpus } else { self.past_gpus - gpus };
        }
    }

    /// A lease on its way out is listed (`present`), or no longer.
    pub(crate) fn list_leaving(&mut self, id: WorkloadId, lease: &Lease, present: bool) {
        self.cluster.mark(&lease.placement, if present && !lease.first_right { Some(Depth::Yielding) } else { None });
        let changed = if present { self.leaving.insert(id) } else { self.leaving.remove(&id) };
        assert!(changed, "a lease is listed once");
    }

    /// Sets the timer of a lease to when something about it is due next; protections are kept apart.
    pub(crate) fn set_timer(&mut self, id: WorkloadId, workload: &mut Workload) {
        let Some(lease) = workload.lease() else { return };
        let due = workload.next_due(lease, self.knobs.kill_timeout);
        let old = lease.timer;
        if due == old {
            return;
        }
        self.timers.remove(&(old, id));
        if due < Time::MAX {
            self.timers.insert((due, id));
        }
        workload.lease_mut().expect("just seen").timer = due;
    }

    /// A budget's standing now, without moving any cursor.
    pub(crate) fn clone_ledger_standing(&self, at: Time, budget: BudgetId) -> Standing {
        let mut ledger = self.ledger.clone();
        let index = ledger.index(budget);
        ledger.standing(at, index, true)
    }

    /// Feeds what the pool means at `at`.
    pub(crate) fn hash_at<H: std::hash::Hasher>(&self, at: Time, state: &mut H) {
        use std::hash::Hash;
        (self.id, &self.knobs, &self.reservations, &self.claims, &self.barred, &self.unallocated, &self.past, &self.leaving).hash(state);
        (&self.sessions, &self.draining, &self.protections, &self.timers, &self.recovery).hash(state);
        (self.unsearched_until, self.reach, self.freed, self.takeable, self.stirred, self.too_dear, self.walks, self.retry_at).hash(state);
        for node in self.cluster.iter() {
            node.hash(state);
        }
        self.queue.hash_into(state);
        self.ledger.hash_at(at, state);
    }
}

fn list(set: &mut BTreeSet<WorkloadId>, id: WorkloadId, present: bool) {
    let changed = if present { set.insert(id) } else { set.remove(&id) };
    assert!(changed, "a lease is listed once");
}
