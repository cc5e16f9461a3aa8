//! Whether it is believed that work begins anew after a preemption.
//!
//! Who says `restart` is evicted less, as evicting it looks dear, so it pays to say so of work that resumes. What begins anew cannot
//! complete in less time than it was denied: its last attempt does all the work. So a completion in less than half of what its earlier
//! attempts ran on average shows that it did not, and for a lookback the loss of its leaf's `restart` work counts as that of work that
//! resumes and reports nothing. Honest work never shows it, but for chance, for which there is the factor of two.

use crate::entry::{Entry, Outcome};
use crate::id::{BudgetId, WorkloadId};
use crate::quantity::{Span, Time};
use crate::scheduler::Scheduler;
use crate::spec::OnPreempt;
use crate::workload::{Lease, Workload};
use std::collections::BTreeMap;

/// Leaves whose `restart` is not believed.
#[derive(Clone, Debug, Default, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Doubts {
    until: BTreeMap<BudgetId, Time>,
}

impl Doubts {
    /// Whether a lease that begins now says `restart` in vain.
    pub(crate) fn is_doubted(&self, workload: &Workload, now: Time) -> bool {
        let until = self.until.get(&workload.spec.budget);
        workload.spec.on_preempt == OnPreempt::Restart && until.is_some_and(|until| now < *until)
    }
}

/// An attempt is over, which `ran`; its workload's earlier ones are counted already.
pub(crate) fn attempt_ended(s: &mut Scheduler, id: WorkloadId, lease: &Lease, ran: Span, outcome: Outcome, log: &mut Vec<Entry>) {
    let workload = s.workloads.get(id.0).expect("it is live");
    let earlier = i64::from(lease.attempt) - 1;
    let began_anew = workload.ran <= ran * (2 * earlier);
    if workload.spec.on_preempt != OnPreempt::Restart || outcome != Outcome::Completed || began_anew {
        return;
    }
    let budget = workload.spec.budget;
    let until = s.now + s.pools[workload.terms.pool.index()].knobs.lookback;
    s.doubts.until.insert(budget, until);
    let says_so = |other: &Workload| other.spec.budget == budget && other.spec.on_preempt == OnPreempt::Restart;
    let said: Vec<u32> = s.workloads.iter().filter(|(_, other)| says_so(other)).map(|(id, _)| id).collect();
    for lease in said {
        if let Some(lease) = s.workloads.get_mut(lease).and_then(Workload::lease_mut) {
            lease.doubted = true;
        }
    }
    log.push(Entry::Doubted { workload: id, budget, until });
}
