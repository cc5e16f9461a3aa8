//! Counterfactuals in words.

use super::{Change, Counterfactual, Instead};
use crate::entry::{Licence, Placement};
use crate::explain::Names;
use crate::spec::OnPreempt;

/// So many nodes are named.
const NODES_NAMED: usize = 3;

impl Counterfactual {
    /// One line for people.
    pub fn text(&self, names: &dyn Names) -> String {
        format!("{} it would {}{}", self.change.text(names), self.instead.text(names), self.change.limit_text())
    }
}

impl Change {
    fn text(&self, names: &dyn Names) -> String {
        match self {
            Change::Anew => "submitted anew as it is,".into(),
            Change::MinRuntime { to, .. } => format!("with a min runtime of {to}"),
            Change::TimeLimit { to, .. } => format!("with a time limit of {to}"),
            Change::OnPreempt { to } => {
                let to = match to {
                    OnPreempt::Resume => "resume",
                    OnPreempt::Restart => "restart",
                    OnPreempt::End => "end",
                };
                format!("with on_preempt = {to}")
            }
            Change::AnyBlock => "with its members in any blocks".into(),
            Change::AnyFeatures => "on nodes of any features".into(),
            Change::HostPart => "with no more CPUs and memory than go with its GPUs".into(),
            Change::Members { to: 1 } => "with 1 member".into(),
            Change::Members { to } => format!("with {to} members"),
            Change::GpusPerMember { to: 1 } => "with 1 GPU".into(),
            Change::GpusPerMember { to } => format!("with {to} GPUs"),
            Change::Priority { to } => format!("with priority {to}"),
            Change::Unallocated => "unallocated (min runtime 0, never charged, never protected)".into(),
            Change::Cap { budget, from, to } => format!("with a cap of {} on {} GPUs, instead of {},", names.budget(*budget), to.0, from.0),
        }
    }

    /// The next step, which does not do.
    fn limit_text(&self) -> String {
        match self {
            Change::MinRuntime { fails: Some(fails), .. } | Change::TimeLimit { fails: Some(fails), .. } => {
                format!("; with {fails} it would not")
            }
            Change::Members { to } => format!("; with {} it would not", to + 1),
            Change::GpusPerMember { to } => format!("; with {} it would not", to + 1),
            _ => String::new(),
        }
    }
}

impl Instead {
    /// What it would do.
    pub fn text(&self, names: &dyn Names) -> String {
        match self {
            Instead::Starts { placement, licence: Licence::Free } => format!("start now on {}", nodes(placement, names)),
            Instead::Starts { placement, .. } => format!("start now on {}, on GPUs that it takes", nodes(placement, names)),
            Instead::Takes { placement, leases: 0, .. } => {
                format!("start on {} as soon as the work that is leaving has left", nodes(placement, names))
            }
            Instead::Takes { placement, leases, by, .. } => {
                let (leases, by) = (if *leases == 1 { "1 lease".into() } else { format!("{leases} leases") }, names.time(*by));
                format!("start on {} by {by}, by preempting {leases}", nodes(placement, names))
            }
        }
    }
}

/// The first few nodes of a placement, and how many more there are.
pub fn nodes(placement: &Placement, names: &dyn Names) -> String {
    let named: Vec<String> = placement.iter().take(NODES_NAMED).map(|slot| names.node(slot.node)).collect();
    match placement.len().saturating_sub(NODES_NAMED) {
        0 => named.join(", "),
        more => format!("{} and {more} other nodes", named.join(", ")),
    }
}
