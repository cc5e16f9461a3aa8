//! Work that accepts several pools: it waits in the first of them that takes it, and starts as a guest in another one that has room for it
//! once everybody who waits there had their turn.

use super::book::Workload;
use super::common::{Baseline, Queue};
use std::collections::{BTreeMap, BTreeSet};
use stipend_core::entry::Entry;
use stipend_core::id::{PoolId, WorkloadId};
use stipend_core::quantity::Time;
use stipend_core::spec::Gang;

/// Equal requests: the same gang, and the same pools in the same order.
type Class = (Gang, Vec<PoolId>);

/// Waiting work that accepts more than one pool, by class and place in the order of submission.
#[derive(Clone, Debug, Default)]
pub(super) struct Guests {
    waiting: BTreeMap<Class, BTreeMap<u32, WorkloadId>>,
    /// Guests that yielded to somebody who has started since: they may wait in their own pool again.
    back: Vec<WorkloadId>,
}

impl Guests {
    pub(super) fn push(&mut self, id: WorkloadId, workload: &Workload) {
        if workload.homes.len() > 1 {
            self.waiting.entry(class(workload)).or_default().insert(workload.rank, id);
        }
    }

    /// It is no guest any more, if it was one: it starts, goes away, or has GPUs that are being vacated for it.
    pub(super) fn remove(&mut self, workload: &Workload) {
        if workload.homes.len() > 1 {
            let class = class(workload);
            let Some(waiting) = self.waiting.get_mut(&class) else { return };
            waiting.remove(&workload.rank);
            if waiting.is_empty() {
                self.waiting.remove(&class);
            }
        }
    }

    /// Somebody who yielded as a guest may wait again, in its own pool.
    pub(super) fn give_back(&mut self, id: WorkloadId) {
        self.back.push(id);
    }

    /// All of these since the last call.
    pub(super) fn take_back(&mut self) -> Vec<WorkloadId> {
        std::mem::take(&mut self.back)
    }

    /// The longest waiting of the classes that have not been tried in vain.
    fn next(&self, tried: &BTreeSet<Class>) -> Option<(WorkloadId, Class)> {
        let open = self.waiting.iter().filter(|(class, _)| !tried.contains(class));
        let firsts = open.filter_map(|(class, waiting)| Some((waiting.first_key_value()?, class)));
        firsts.min().map(|((_, id), class)| (*id, class.clone()))
    }
}

fn class(workload: &Workload) -> Class {
    (workload.spec.gang, workload.homes.iter().map(|(pool, _)| *pool).collect())
}

impl<Q: Queue> Baseline<Q> {
    /// Starts guests, the longest waiting first, each in the first of its other pools that has room.
    pub(super) fn seat_guests(&mut self, at: Time, log: &mut Vec<Entry>) {
        let mut tried = BTreeSet::new();
        while let Some((id, class)) = self.guests.next(&tried) {
            if !class.1[1..].iter().any(|pool| self.seat(at, id, *pool, log)) {
                tried.insert(class);
            }
        }
    }

    fn seat(&mut self, at: Time, id: WorkloadId, pool: PoolId, log: &mut Vec<Entry>) -> bool {
        let home = self.book.get(id).expect("it waits").pool;
        self.book.settle_in(id, pool);
        let (queue, mut desk) = self.desk(at, pool, log);
        let seated = queue.guest(id, &mut desk);
        if seated {
            let workload = self.book.get(id).expect("it has just started");
            self.pools[home.index()].queue.remove(id, workload);
        } else {
            self.book.settle_in(id, home);
        }
        seated
    }
}
