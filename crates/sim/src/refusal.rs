//! Why something was refused, as a sentence for people. The core says it in types and numbers; here it gets labels and words.

use std::fmt;
use stipend_core::event::Rejection;
use stipend_core::explain::{Names, never_fits};
use stipend_core::id::LeaseId;

/// A rejection, shown as one sentence: what is wrong, and what would be right where that can be said.
pub struct Refusal<'a> {
    /// What the core refused.
    pub rejection: &'a Rejection,
    /// What things are called.
    pub names: &'a dyn Names,
}

impl fmt::Display for Refusal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.names;
        match self.rejection {
            Rejection::PoolUnknown(pool) => write!(f, "there is no pool {}", names.pool(*pool)),
            Rejection::PoolNumber { pool, expected } => {
                write!(f, "pools are numbered without gaps: the next one is {expected}, not {pool}")
            }
            Rejection::Knob { knob, message } => write!(f, "the knob {knob} {message}"),
            Rejection::Request { field, value, expected } => write!(f, "{field} = {value}: expected {expected}"),
            Rejection::GangNeverFits { pool, gang, members_max } => f.write_str(&never_fits(*pool, gang, *members_max, names)),
            Rejection::WorkloadKnown(workload) => {
                write!(f, "the number of {} was used before; every workload has its own", names.workload(*workload))
            }
            Rejection::SessionOpen { workload } => {
                let open = names.workload(*workload);
                write!(f, "its user has a session in this pool already, {open}; a user has one session in each pool at a time")
            }
            Rejection::WorkloadUnknown(workload) => write!(f, "there is no workload {}, or it has ended", names.workload(*workload)),
            Rejection::WorkloadState { workload, message } => write!(f, "{}: {message}", names.workload(*workload)),
            Rejection::NodeUnknown(node) => write!(f, "there is no node {}", names.node(*node)),
            Rejection::NodeKnown(node) => write!(f, "node {} has joined already", names.node(*node)),
            Rejection::NodeState { node, message } => write!(f, "node {}: {message}", names.node(*node)),
            Rejection::LeaseUnknown(lease) => write!(f, "{} holds no GPUs now: the report is late, or came twice", self.lease(*lease)),
            Rejection::LeaseState { lease, message } => write!(f, "{}: {message}", self.lease(*lease)),
            of_budgets => self.budgets(f, of_budgets),
        }
    }
}

impl Refusal<'_> {
    /// What can be wrong with the budget tree, or with a budget as a place for work.
    fn budgets(&self, f: &mut fmt::Formatter<'_>, rejection: &Rejection) -> fmt::Result {
        match rejection {
            Rejection::StaleVersion { based_on, current } => {
                write!(
                    f,
                    "the change was made from version {based_on} of the budget tree, which is at version {current} now; look at it again, then repeat the change"
                )
            }
            Rejection::ParentUnknown { budget, parent } => write!(f, "the budget {budget} names a parent, {parent}, that does not exist"),
            Rejection::Root { message } => write!(f, "the budget tree needs exactly one root: {message}"),
            Rejection::NameTaken { path } => write!(f, "there would be two budgets {path}"),
            Rejection::SharesAbove100 { parent, pool, sum_ppm } => {
                write!(
                    f,
                    "the shares below {parent} would be {} of it in pool {}; they may be at most 100 %",
                    Percent(*sum_ppm),
                    self.names.pool(*pool)
                )
            }
            Rejection::BudgetClosed { path } => write!(f, "{path} is closed: it takes no new work"),
            Rejection::LeafInUse { path } => write!(f, "work is charged to {path}, so it cannot get children"),
            Rejection::BudgetUnknown(budget) => write!(f, "there is no budget {}", self.names.budget(*budget)),
            Rejection::BudgetNotALeaf { path } => write!(f, "work is charged to leaf budgets only, and {path} has children"),
            Rejection::ZeroClaim { path } => {
                write!(f, "{path} is funded with nothing here, so it may run unallocated work only (a min runtime of 0)")
            }
            other => unreachable!("not about budgets: {other:?}"),
        }
    }

    fn lease(&self, lease: LeaseId) -> String {
        format!("{}, attempt {}", self.names.workload(lease.workload), lease.attempt)
    }
}

/// Parts per million as percent, without needless decimals.
struct Percent(u64);

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decimals = format!("{}.{:04}", self.0 / 10_000, self.0 % 10_000);
        write!(f, "{} %", decimals.trim_end_matches('0').trim_end_matches('.'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::labels::Labels;
    use stipend_core::id::{BudgetId, NodeId, PoolId, WorkloadId};
    use stipend_core::spec::Gang;

    fn text(rejection: &Rejection) -> String {
        let names = Labels { budgets: vec!["lab".into()], workloads: vec!["pretrain".into()], ..Labels::default() };
        Refusal { rejection, names: &names }.to_string()
    }

    #[test]
    fn every_refusal_is_a_sentence() {
        let lease = LeaseId { workload: WorkloadId(0), attempt: 2 };
        let cases = [
            (Rejection::PoolUnknown(PoolId(3)), "there is no pool p3"),
            (Rejection::PoolNumber { pool: PoolId(4), expected: PoolId(1) }, "pools are numbered without gaps: the next one is p1, not p4"),
            (
                Rejection::Knob { knob: "quantum", message: "must be from 0 to 400 days".into() },
                "the knob quantum must be from 0 to 400 days",
            ),
            (
                Rejection::StaleVersion { based_on: 1, current: 2 },
                "the change was made from version 1 of the budget tree, which is at version 2 now; look at it again, then repeat the change",
            ),
            (
                Rejection::ParentUnknown { budget: "olmo".into(), parent: BudgetId(7) },
                "the budget olmo names a parent, b7, that does not exist",
            ),
            (Rejection::BudgetClosed { path: "lab/nlp".into() }, "lab/nlp is closed: it takes no new work"),
            (
                Rejection::Root { message: "no budget is without a parent".into() },
                "the budget tree needs exactly one root: no budget is without a parent",
            ),
            (Rejection::NameTaken { path: "lab/nlp".into() }, "there would be two budgets lab/nlp"),
            (
                Rejection::SharesAbove100 { parent: "lab".into(), pool: PoolId(0), sum_ppm: 1_105_000 },
                "the shares below lab would be 110.5 % of it in pool p0; they may be at most 100 %",
            ),
            (Rejection::LeafInUse { path: "lab/nlp".into() }, "work is charged to lab/nlp, so it cannot get children"),
            (Rejection::BudgetUnknown(BudgetId(9)), "there is no budget b9"),
            (Rejection::BudgetNotALeaf { path: "lab".into() }, "work is charged to leaf budgets only, and lab has children"),
            (
                Rejection::ZeroClaim { path: "lab/guests".into() },
                "lab/guests is funded with nothing here, so it may run unallocated work only (a min runtime of 0)",
            ),
            (Rejection::WorkloadKnown(WorkloadId(0)), "the number of pretrain was used before; every workload has its own"),
            (
                Rejection::SessionOpen { workload: WorkloadId(0) },
                "its user has a session in this pool already, pretrain; a user has one session in each pool at a time",
            ),
            (Rejection::WorkloadUnknown(WorkloadId(5)), "there is no workload w5, or it has ended"),
            (Rejection::WorkloadState { workload: WorkloadId(0), message: "it is not held" }, "pretrain: it is not held"),
            (
                Rejection::Request { field: "members", value: "0".into(), expected: "from 1 to 1,000,000".into() },
                "members = 0: expected from 1 to 1,000,000",
            ),
            (
                Rejection::GangNeverFits { pool: PoolId(0), gang: Gang::new(99, 8), members_max: 16 },
                "a gang of 99 members of 8 GPUs can never fit this pool; what could: 16 members of 8 GPUs",
            ),
            (Rejection::NodeUnknown(NodeId(1)), "there is no node n1"),
            (Rejection::NodeKnown(NodeId(1)), "node n1 has joined already"),
            (Rejection::NodeState { node: NodeId(1), message: "it is lost already" }, "node n1: it is lost already"),
            (Rejection::LeaseUnknown(lease), "pretrain, attempt 2 holds no GPUs now: the report is late, or came twice"),
            (Rejection::LeaseState { lease, message: "it runs already" }, "pretrain, attempt 2: it runs already"),
        ];
        for (rejection, expected) in cases {
            assert_eq!(text(&rejection), expected);
        }
    }
}
