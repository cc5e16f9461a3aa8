//! A well-configured Slurm site: multifactor priority with Fair Tree, backfill, QOS, and preemption by QOS where a scenario asks for it.
//!
//! What it does follows Slurm's documentation, page by page:
//! - **Fair share** (`fair_tree.html`, `priority_multifactor.html`): usage halves every [`half_life`](FairTreeSettings::half_life); users are ranked
//!   by Fair Tree every [`calc_period`](FairTreeSettings::calc_period). The budget tree is the tree of accounts; users of a leaf have equal shares.
//! - **Priority**: weights × factors of fair share, age, size and QOS. A user's first job is ranked at once.
//! - **The main scheduler** (`sched_config.html`) starts jobs in that order, at every event, until the first that cannot start.
//! - **Backfill**, at most every [`backfill_interval`](FairTreeSettings::backfill_interval): see [`backfill`].
//! - **QOS** (`qos.html`, `preempt.html`): unallocated work is *scavenger*; work with a contract is *share* as long as its account's
//!   running share jobs stay within claim × capacity (`GrpTRES`), else *normal*; at most 15 minutes and 8 GPUs are *debug*. A job keeps the QOS
//!   in which it started. Scavenger jobs have a partition of a lower `PriorityTier`, so that all others are looked at first.
//! - **Preemption** ([`preempt`](FairTreeSettings::preempt)): scavenger jobs may be preempted by any other, normal jobs by share and debug jobs
//!   after they ran for [`exempt`](FairTreeSettings::exempt) (`PreemptExemptTime`). `PreemptMode=REQUEUE`, `GraceTime` is the pool's grace, the
//!   youngest goes first (`preempt_youngest_first`). Work that cannot be requeued is never preempted: a site would give it a QOS of its own.
//!
//! Slurm does not reserve preempted GPUs by itself; as it starts nothing of lower priority in the meantime, the effect is the same as that of the
//! hold here.

mod accounts;
mod backfill;
mod jobs;
mod ranking;
#[cfg(test)]
mod reference;
mod search;
mod settings;
#[cfg(test)]
mod tests;
mod usage;

use super::book::{Estimate, Workload};
use super::claims::{Claims, Settled};
use super::common::{Baseline, Desk, GUEST, Queue};
use super::placement::Choice;
use super::victims::{Eviction, Prey};
use crate::policy::Policy;
use accounts::Accounts;
use backfill::Reservations;
use jobs::{Job, Qos, Running};
pub use settings::{FairTreeSettings, PreemptFor};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use stipend_core::entry::{Licence, Occupancy};
use stipend_core::id::{BudgetId, WorkloadId};
use stipend_core::quantity::{Claim, Gpus, Ppm, Span, Time};
use stipend_core::spec::{Gang, OnPreempt};

/// Multifactor priority with Fair Tree, backfill, and preemption by QOS.
pub fn fair_tree(settings: FairTreeSettings, estimate: Estimate) -> impl Policy {
    Baseline::new(move || FairTree::new(settings), estimate)
}

const TOP: &str = "the highest priority, and it fits";
const BACKFILL: &str = "backfill: no reservation is delayed";
const PREEMPTS: &str = "its QOS preempts a lower one";

struct FairTree {
    settings: FairTreeSettings,
    accounts: Accounts,
    /// Waiting jobs in the order in which they are looked at.
    pending: Vec<Job>,
    /// Who came since the last decision.
    arrived: Vec<WorkloadId>,
    /// Jobs whose victims are leaving.
    claiming: BTreeMap<WorkloadId, (Job, Qos)>,
    claims: Claims,
    running: Running,
    /// Since when those wait that lost their GPUs.
    again: BTreeMap<WorkloadId, Time>,
    /// Ends since the last decision.
    ended: Vec<jobs::Held>,
    shapes: BTreeMap<Gang, usize>,
    limits: BTreeMap<BudgetId, u32>,
    limited: (u32, u64),
    next_calc: Time,
    next_backfill: Time,
    /// Something changed since the last backfill.
    changed: bool,
    version: u64,
    reservations: Reservations,
    prey: Prey,
    /// Reserves for everybody at its turn, needed or not.
    #[cfg(test)]
    eager: bool,
}

/// What a pass has found out: valid until something becomes free.
#[derive(Default)]
struct Failed {
    /// By shape, for work of which length there is no room now: this long or longer. Whatever is started or reserved leaves less.
    placing: Vec<Span>,
    /// By shape, whom it may preempt in vain: this QOS or lower.
    preempting: Vec<Option<Qos>>,
}

impl Failed {
    fn new(shapes: usize) -> Failed {
        Failed { placing: vec![Span(i64::MAX); shapes], preempting: vec![None; shapes] }
    }
}

impl Queue for FairTree {
    fn push(&mut self, id: WorkloadId, _: &Workload, _: &Estimate) {
        if !self.claims.has(id) {
            self.arrived.push(id);
        }
    }

    fn park(&mut self, id: WorkloadId) -> bool {
        self.claims.park(id)
    }

    fn unpark(&mut self, id: WorkloadId) -> bool {
        self.claims.forget(id)
    }

    fn remove(&mut self, id: WorkloadId, _: &Workload) {
        self.arrived.retain(|&arrived| arrived != id);
        self.pending.retain(|job| job.id != id);
    }

    fn ended(&mut self, id: WorkloadId, _: &Workload) {
        if let Some(held) = self.running.end(id) {
            self.again.insert(id, held.eligible);
            self.ended.push(held);
        }
    }

    fn protects(&self, id: WorkloadId, workload: &Workload) -> Option<Span> {
        let contract = workload.limit().map_or(workload.contract, |left| left.min(workload.contract));
        match (self.running.qos(id)?, self.settings.preempt) {
            (Qos::Scavenger, PreemptFor::Scavenger | PreemptFor::Share) => None,
            (Qos::Normal, PreemptFor::Share) if workload.spec.on_preempt != OnPreempt::End => Some(self.settings.exempt.min(contract)),
            _ => Some(contract).filter(|contract| *contract > Span::ZERO),
        }
    }

    fn decide(&mut self, desk: &mut Desk<'_>) {
        self.limit(desk);
        self.account(desk);
        self.settle(desk);
        self.arrive(desk);
        if self.next_calc <= desk.at {
            self.next_calc = desk.at + self.settings.calc_period;
            self.calculate(desk);
        }
        self.changed |= self.version != desk.version();
        self.main_pass(desk);
        if self.changed && self.next_backfill <= desk.at {
            self.next_backfill = desk.at + self.settings.backfill_interval;
            self.changed = false;
            self.backfill_pass(desk);
        }
        self.version = desk.version();
    }

    /// As by the backfill, beside the reservations of its last pass.
    fn guest(&mut self, id: WorkloadId, desk: &mut Desk<'_>) -> bool {
        let (job, is_new) = self.job(desk, id);
        if is_new {
            self.calculate(desk);
        }
        let outlasted = self.reservations.outlasted(desk, job.expected);
        // Others have started since what is open was computed.
        self.reservations.claimed();
        let Some(choice) = self.reservations.place(desk, &job.gang, outlasted) else { return false };
        desk.start(id, &choice, GUEST);
        self.reservations.started(desk, &job.gang, &choice, outlasted);
        let qos = self.qos(&job);
        self.started(desk, &job, qos);
        true
    }

    fn next_wakeup(&self) -> Option<Time> {
        let waits = !self.pending.is_empty();
        let backfill = (waits && self.changed).then_some(self.next_backfill);
        waits.then_some(self.next_calc).into_iter().chain(backfill).min()
    }
}

impl FairTree {
    fn new(settings: FairTreeSettings) -> FairTree {
        FairTree {
            settings,
            accounts: Accounts::default(),
            pending: Vec::new(),
            arrived: Vec::new(),
            claiming: BTreeMap::new(),
            claims: Claims::default(),
            running: Running::default(),
            again: BTreeMap::new(),
            ended: Vec::new(),
            shapes: BTreeMap::new(),
            limits: BTreeMap::new(),
            limited: (0, 0),
            next_calc: Time(0),
            next_backfill: Time(0),
            changed: false,
            version: 0,
            reservations: Reservations::default(),
            prey: Prey::default(),
            #[cfg(test)]
            eager: false,
        }
    }

    /// `GrpTRES` of each account's share QOS, computed anew where budgets or nodes changed.
    fn limit(&mut self, desk: &Desk<'_>) {
        let now = (desk.tree.version(), desk.cluster.gpus());
        if self.limited != now {
            self.limited = now;
            let (whole, part) = (u128::from(Claim::WHOLE.0), u128::from(self.settings.share_max.0));
            let limit = |claim: Claim| u128::from(claim.0) * u128::from(now.1) * part / (whole * u128::from(Ppm::ONE.0));
            self.limits = desk.tree.claims(desk.pool).into_iter().map(|(leaf, claim)| (leaf, limit(claim) as u32)).collect();
        }
    }

    /// Usage of jobs that ended since the last decision; they ended now, as every end is followed by a decision.
    fn account(&mut self, desk: &Desk<'_>) {
        for held in self.ended.drain(..).filter(|held| held.qos != Qos::Scavenger) {
            self.accounts.change(desk.at, self.settings.half_life, held.member, -i64::from(held.gpus));
        }
    }

    fn settle(&mut self, desk: &mut Desk<'_>) {
        for settled in self.claims.settle(desk) {
            let (id, claimed) = match settled {
                Settled::Started(id) | Settled::Lost(id) | Settled::Gone(id) => (id, self.claiming.remove(&id)),
                Settled::Back(id) => (id, None),
            };
            let Some((job, qos)) = claimed else {
                self.arrived.push(id);
                continue;
            };
            self.running.count(job.leaf, qos, job.gang.gpus().0, -1);
            match settled {
                Settled::Started(_) => self.started(desk, &job, qos),
                Settled::Lost(_) => self.insert(job),
                Settled::Gone(_) | Settled::Back(_) => {}
            }
        }
    }

    /// Whoever came gets its priority at once.
    fn arrive(&mut self, desk: &Desk<'_>) {
        let mut unknown = false;
        for id in std::mem::take(&mut self.arrived) {
            let (mut job, is_new) = self.job(desk, id);
            unknown |= is_new;
            job.eligible = self.again.remove(&id).unwrap_or(desk.at);
            job.priority = self.priority(desk, &job);
            self.insert(job);
            self.changed = true;
        }
        self.again.retain(|&id, _| self.claims.is_parked(id));
        if unknown {
            self.calculate(desk);
        }
    }

    /// A workload as a job here that is eligible from now on, and whether its user is new.
    fn job(&mut self, desk: &Desk<'_>, id: WorkloadId) -> (Job, bool) {
        let workload = desk.book.get(id).expect("it waits");
        let spec = &workload.spec;
        let (member, is_new) = self.accounts.member(desk.at, spec.budget, spec.user);
        let shapes = self.shapes.len();
        let short = workload.contract <= Span::minutes(15) && spec.gang.gpus() <= Gpus(8);
        let fixed = match workload.occupancy() {
            Occupancy::Unallocated => Some(Qos::Scavenger),
            Occupancy::Allocated => short.then_some(Qos::Debug),
        };
        let job = Job {
            id,
            rank: workload.rank,
            leaf: spec.budget,
            member,
            shape: *self.shapes.entry(spec.gang).or_insert(shapes),
            gang: spec.gang,
            expected: workload.expected(desk.estimate),
            fixed,
            eligible: desk.at,
            priority: 0,
        };
        (job, is_new)
    }

    fn insert(&mut self, job: Job) {
        let place = self.pending.partition_point(|other| other.order() < job.order());
        self.pending.insert(place, job);
    }

    /// Ranks users and jobs.
    fn calculate(&mut self, desk: &Desk<'_>) {
        self.accounts.rank(desk.at, self.settings.half_life, desk.tree, desk.pool);
        let mut pending = std::mem::take(&mut self.pending);
        pending.iter_mut().for_each(|job| job.priority = self.priority(desk, job));
        // Nearly in order already, which this sort makes use of.
        pending.sort_by_key(Job::order);
        self.pending = pending;
        self.changed = true;
    }

    fn priority(&self, desk: &Desk<'_>, job: &Job) -> i64 {
        job.priority(desk.at, &self.settings, self.accounts.factor(job.member), self.qos(job), desk.cluster.gpus())
    }

    /// The QOS in which a job would start now.
    fn qos(&self, job: &Job) -> Qos {
        let limit = self.limits.get(&job.leaf).copied().unwrap_or(0);
        let within = self.running.in_share(job.leaf).saturating_add(job.gang.gpus().0) <= limit;
        job.fixed.unwrap_or(if within { Qos::Share } else { Qos::Normal })
    }

    /// Starts jobs by priority until the first that cannot start.
    fn main_pass(&mut self, desk: &mut Desk<'_>) {
        if !self.changed {
            return;
        }
        let mut done = 0;
        while let Some(&job) = self.pending.get(done) {
            if let Some(choice) = desk.cluster.place(desk.cluster.free(0), &job.gang) {
                desk.start(job.id, &choice, TOP);
                let qos = self.qos(&job);
                self.started(desk, &job, qos);
            } else {
                let Some((eviction, reach)) = self.eviction(desk, &job, &mut Failed::new(self.shapes.len())) else { break };
                self.claim(desk, &job, eviction, reach);
            }
            done += 1;
        }
        self.pending.drain(..done);
    }

    /// Looks at jobs by priority: starts what delays no reservation, and reserves nodes for the first that cannot start. Most reservations
    /// need never be made: only when somebody fits beside those that were made must it leave the next one its nodes too.
    fn backfill_pass(&mut self, desk: &mut Desk<'_>) {
        self.reservations.clear();
        let mut failed = Failed::new(self.shapes.len());
        let mut gone = BTreeSet::new();
        // Jobs that cannot start and for which no nodes are reserved yet, by their place in the queue.
        let mut blocked = VecDeque::new();
        for number in 0..self.pending.len().min(self.settings.backfill_jobs as usize) {
            if let Some((choice, outlasted)) = self.place(desk, number, &mut failed, &mut blocked) {
                let job = self.pending[number];
                desk.start(job.id, &choice, BACKFILL);
                self.reservations.started(desk, &job.gang, &choice, outlasted);
                let qos = self.qos(&job);
                self.started(desk, &job, qos);
                gone.insert(job.id);
                continue;
            }
            if self.settings.preempt != PreemptFor::Nobody {
                let job = self.pending[number];
                if let Some((eviction, reach)) = self.eviction(desk, &job, &mut failed) {
                    while self.reserve_next(desk, &mut blocked) {}
                    self.claim(desk, &job, eviction, reach);
                    self.reservations.claimed();
                    gone.insert(job.id);
                    continue;
                }
            }
            blocked.push_back(number);
            #[cfg(test)]
            while self.eager && self.reserve_next(desk, &mut blocked) {}
        }
        // Tests look at all of them.
        #[cfg(test)]
        while self.reserve_next(desk, &mut blocked) {}
        if !gone.is_empty() {
            self.pending.retain(|job| !gone.contains(&job.id));
        }
    }

    /// Nodes on which a job may start beside all reservations of those before it, and how many of these it outlasts.
    fn place(&mut self, desk: &Desk<'_>, number: usize, failed: &mut Failed, blocked: &mut VecDeque<usize>) -> Option<(Choice, usize)> {
        let Job { shape, gang, expected, .. } = self.pending[number];
        while expected < failed.placing[shape] {
            let outlasted = self.reservations.outlasted(desk, expected);
            match self.reservations.place(desk, &gang, outlasted) {
                None => failed.placing[shape] = expected,
                Some(choice) if !self.reserve_next(desk, blocked) => return Some((choice, outlasted)),
                Some(_) => {}
            }
        }
        None
    }

    /// Reserves nodes for the next that is blocked, if there may be more reservations.
    fn reserve_next(&mut self, desk: &Desk<'_>, blocked: &mut VecDeque<usize>) -> bool {
        let horizon = desk.at + self.settings.backfill_window;
        while self.reservations.count() < self.settings.backfill_reservations as usize
            && let Some(number) = blocked.pop_front()
        {
            if self.reservations.reserve(desk, &self.pending[number], horizon).is_some() {
                return true;
            }
        }
        false
    }

    /// The GPUs of lower QOS to take for a job, if that makes room for all of it, and of which QOS.
    fn eviction(&mut self, desk: &Desk<'_>, job: &Job, failed: &mut Failed) -> Option<(Eviction, Qos)> {
        let qos = self.qos(job);
        let reach = match (self.settings.preempt, qos) {
            (PreemptFor::Nobody, _) | (_, Qos::Scavenger) => return None,
            (PreemptFor::Share, Qos::Share | Qos::Debug) => Qos::Normal,
            _ => Qos::Scavenger,
        };
        let within = desk.cluster.free(0).members_at_most(1) + self.running.gpus_up_to(reach);
        if failed.preempting[job.shape] >= Some(reach) || within < job.gang.gpus().0 {
            return None;
        }
        let may_stop = |id: &WorkloadId| {
            let workload = desk.book.get(*id).expect("it has a lease");
            let lease = workload.lease().expect("it has a lease");
            let exempt = if workload.occupancy() == Occupancy::Allocated { self.settings.exempt } else { Span::ZERO };
            let ran = lease.running.is_some_and(|since| since + exempt <= desk.at) || exempt == Span::ZERO;
            lease.may_yield(desk.at)
                && ran
                && (workload.spec.on_preempt != OnPreempt::End || workload.occupancy() == Occupancy::Unallocated)
        };
        self.prey.gather(desk, self.running.up_to(reach).into_iter().filter(may_stop));
        let eviction = if self.prey.may_fit(&job.gang) { self.prey.evict(desk, &job.gang) } else { None };
        let eviction = eviction.filter(|eviction| !eviction.victims.is_empty());
        if eviction.is_none() {
            failed.preempting[job.shape] = Some(reach);
        }
        eviction.map(|eviction| (eviction, reach))
    }

    /// Takes them.
    fn claim(&mut self, desk: &mut Desk<'_>, job: &Job, eviction: Eviction, reach: Qos) {
        let licence = if reach == Qos::Scavenger { Licence::Unallocated } else { Licence::Share };
        self.claims.make(desk, job.id, eviction, licence, PREEMPTS);
        let qos = self.qos(job);
        self.running.count(job.leaf, qos, job.gang.gpus().0, 1);
        self.claiming.insert(job.id, (*job, qos));
    }

    fn started(&mut self, desk: &Desk<'_>, job: &Job, qos: Qos) {
        self.running.start(job, qos);
        if qos != Qos::Scavenger {
            self.accounts.change(desk.at, self.settings.half_life, job.member, i64::from(job.gang.gpus().0));
        }
    }
}
