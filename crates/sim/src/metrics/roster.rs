//! The live workloads: a row each, found by workload number without hashing; a million that have ended cost 4 bytes each.

use stipend_core::entry::{Class, Placement};
use stipend_core::id::{BudgetId, PoolId, WorkloadId};
use stipend_core::quantity::{Gpus, Span, Time};

/// Where a workload is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// It may start.
    Waiting,
    /// It may not start for now.
    Held,
    /// It holds GPUs.
    Leased,
    /// Its attempt ended in a way that may be followed by a requeue.
    Over,
}

/// What the metrics keep of a live workload.
#[derive(Clone, Debug)]
pub(super) struct Row {
    /// Since when it could start for the first time.
    pub eligible: Time,
    /// Since when it waits now; when it is over, since when.
    pub waiting_since: Time,
    /// How long it must run undisturbed; zero if the engine did not say so.
    pub work: Span,
    pub placement: Option<Placement>,
    pub budget: BudgetId,
    /// Where its waiting counts.
    pub home: PoolId,
    /// Where it waits, with the GPUs that it is charged for there; empty if that is one pool.
    pub homes: Box<[(PoolId, u32)]>,
    /// Where its demand counts now: at home while it waits, and where it runs.
    pub pool: PoolId,
    /// The GPUs it is charged for there.
    pub charged: u32,
    pub class: Class,
    pub phase: Phase,
    /// All its members ran at once at least once, not counting time before its turn.
    pub ran: bool,
    /// It holds GPUs before its turn: it has a contract and runs without it.
    pub early: bool,
    /// Since when the members of its present lease run.
    pub running: Option<Time>,
    /// Its gang is larger than its leaf's claim.
    pub over_claim: bool,
}

impl Row {
    /// Its demand counts in this pool.
    pub(super) fn settle_in(&mut self, pool: PoolId) {
        if let Some(home) = self.homes.iter().find(|(home, _)| *home == pool) {
            (self.pool, self.charged) = *home;
        }
    }

    /// Whether its contract is above zero, whatever a policy calls its lease.
    pub(super) fn allocated(&self) -> bool {
        self.class != Class::Unallocated
    }
}

/// How many GPUs a placement has.
pub(super) fn gpus(placement: &Placement) -> Gpus {
    Gpus(placement.iter().map(|slot| slot.gpus.0.count_ones()).sum())
}

const NONE: u32 = u32::MAX;

/// All live workloads.
#[derive(Default)]
pub(super) struct Roster {
    /// By workload number: where its row is.
    places: Vec<u32>,
    rows: Vec<Option<Row>>,
    /// Places of rows that are free.
    free: Vec<u32>,
}

impl Roster {
    pub(super) fn insert(&mut self, workload: WorkloadId, row: Row) {
        if self.places.len() <= workload.index() {
            self.places.resize(workload.index() + 1, NONE);
        }
        let place = self.free.pop().unwrap_or_else(|| {
            self.rows.push(None);
            u32::try_from(self.rows.len() - 1).expect("workloads are numbered by u32")
        });
        self.rows[place as usize] = Some(row);
        self.places[workload.index()] = place;
    }

    pub(super) fn get(&self, workload: WorkloadId) -> Option<&Row> {
        let place = *self.places.get(workload.index())?;
        self.rows.get(place as usize)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, workload: WorkloadId) -> Option<&mut Row> {
        let place = *self.places.get(workload.index())?;
        self.rows.get_mut(place as usize)?.as_mut()
    }

    pub(super) fn remove(&mut self, workload: WorkloadId) {
        let place = std::mem::replace(&mut self.places[workload.index()], NONE);
        self.rows[place as usize] = None;
        self.free.push(place);
    }

    /// Empties it.
    pub(super) fn take(&mut self) -> impl Iterator<Item = Row> + use<> {
        std::mem::take(self).rows.into_iter().flatten()
    }
}
