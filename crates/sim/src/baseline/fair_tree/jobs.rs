//! Waiting and running jobs, with what decides about them.

use super::accounts::Member;
use super::settings::FairTreeSettings;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use stipend_core::id::{BudgetId, WorkloadId};
use stipend_core::quantity::{Ppm, Span, Time};
use stipend_core::spec::Gang;

/// Quality of service, the lowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Qos {
    /// Unallocated work: it takes what is left and counts as no usage (`UsageFactor=0`).
    Scavenger,
    /// Work of an account beyond its share.
    Normal,
    /// Work of an account within its share (`GrpTRES`).
    Share,
    /// At most 15 minutes and 8 GPUs.
    Debug,
}

impl Qos {
    /// Its part of the weight of the QOS.
    pub(super) fn factor(self) -> Ppm {
        match self {
            Qos::Scavenger => Ppm(0),
            Qos::Normal => Ppm(250_000),
            Qos::Share => Ppm(750_000),
            Qos::Debug => Ppm(1_000_000),
        }
    }
}

/// A waiting job.
#[derive(Clone, Copy, Debug)]
pub(super) struct Job {
    pub(super) id: WorkloadId,
    /// Its place in the order of submission.
    pub(super) rank: u32,
    pub(super) leaf: BudgetId,
    pub(super) member: Member,
    /// The number of its shape.
    pub(super) shape: usize,
    pub(super) gang: Gang,
    pub(super) expected: Span,
    /// The QOS that it has whatever its account does; `None`: share or normal.
    pub(super) fixed: Option<Qos>,
    /// Since when it waits, over all its attempts.
    pub(super) eligible: Time,
    pub(super) priority: i64,
}

impl Job {
    /// The order in which jobs are looked at.
    pub(super) fn order(&self) -> (bool, Reverse<i64>, u32) {
        (self.fixed == Some(Qos::Scavenger), Reverse(self.priority), self.rank)
    }

    /// Slurm's multifactor priority: the sum of weight × factor, each factor between 0 and 1 (`priority_multifactor.html`). In millionths.
    pub(super) fn priority(&self, at: Time, settings: &FairTreeSettings, fairshare: Ppm, qos: Qos, pool_gpus: u64) -> i64 {
        let part = |value: i64, of: i64| Ppm((i128::from(value.clamp(0, of)) * 1_000_000 / i128::from(of.max(1))) as u32);
        let age = part((at - self.eligible).0, settings.max_age.0);
        let size = part(i64::from(self.gang.gpus().0), pool_gpus as i64);
        let weighted = [
            (settings.weight_fairshare, fairshare),
            (settings.weight_age, age),
            (settings.weight_size, size),
            (settings.weight_qos, qos.factor()),
        ];
        weighted.into_iter().map(|(weight, factor)| i64::from(weight) * i64::from(factor.0)).sum()
    }
}

/// A job that holds GPUs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub(super) leaf: BudgetId,
    pub(super) member: Member,
    pub(super) gpus: u32,
    pub(super) qos: Qos,
    pub(super) eligible: Time,
    /// Its place in the order of starts.
    pub(super) order: u64,
}

/// All jobs that hold GPUs.
#[derive(Debug, Default)]
pub(super) struct Running {
    rows: BTreeMap<WorkloadId, Held>,
    starts: u64,
    /// GPUs in the share QOS, by account.
    share: BTreeMap<BudgetId, u32>,
    /// GPUs of all jobs, by QOS.
    gpus: [u32; 4],
}

impl Running {
    /// GPUs of an account in the share QOS.
    pub(super) fn in_share(&self, leaf: BudgetId) -> u32 {
        self.share.get(&leaf).copied().unwrap_or(0)
    }

    /// A job starts.
    pub(super) fn start(&mut self, job: &Job, qos: Qos) {
        self.starts += 1;
        let gpus = job.gang.gpus().0;
        self.count(job.leaf, qos, gpus, 1);
        self.gpus[qos as usize] += gpus;
        let held = Held { leaf: job.leaf, member: job.member, gpus, qos, eligible: job.eligible, order: self.starts };
        self.rows.insert(job.id, held);
    }

    /// A job holds nothing any more.
    pub(super) fn end(&mut self, id: WorkloadId) -> Option<Held> {
        let held = self.rows.remove(&id)?;
        self.count(held.leaf, held.qos, held.gpus, -1);
        self.gpus[held.qos as usize] -= held.gpus;
        Some(held)
    }

    /// So many GPUs more or fewer count for an account's share: of jobs that run, and of those for which GPUs are being vacated.
    pub(super) fn count(&mut self, leaf: BudgetId, qos: Qos, gpus: u32, sign: i32) {
        if qos == Qos::Share {
            let share = self.share.entry(leaf).or_default();
            *share = share.saturating_add_signed(sign * gpus as i32);
        }
    }

    /// A job's QOS.
    pub(super) fn qos(&self, id: WorkloadId) -> Option<Qos> {
        self.rows.get(&id).map(|held| held.qos)
    }

    /// GPUs of jobs of QOS up to this one.
    pub(super) fn gpus_up_to(&self, qos: Qos) -> u32 {
        self.gpus[..=qos as usize].iter().sum()
    }

    /// Jobs of QOS up to this one: the lowest first, and of those the youngest.
    pub(super) fn up_to(&self, qos: Qos) -> Vec<WorkloadId> {
        let mut rows: Vec<_> =
            self.rows.iter().filter(|(_, held)| held.qos <= qos).map(|(&id, held)| (held.qos, Reverse(held.order), id)).collect();
        rows.sort_unstable();
        rows.into_iter().map(|(_, _, id)| id).collect()
    }
}
