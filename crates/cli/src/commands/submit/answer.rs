//! What is said about a submission.

use crate::names::Id;
use crate::table::wrap;
use stipend_server::wire::workload::{Submitted, Workload};

/// The numbers, one a line.
pub(crate) fn numbers(submitted: &Submitted) -> String {
    submitted.workloads.iter().map(|workload| Id(workload.id).to_string()).collect::<Vec<_>>().join("\n")
}

/// What was queued, and what will happen.
pub(crate) fn said(submitted: &Submitted, width: Option<usize>) -> String {
    let first = submitted.workloads.first().map(|first| head(first, submitted.workloads.len()));
    let head = first.map(|text| wrap("", "  ", &text, width));
    let notes = submitted.notes.iter().map(|note| wrap("- ", "  ", note, width));
    head.into_iter().chain(notes).collect::<Vec<_>>().join("\n")
}

fn head(first: &Workload, count: usize) -> String {
    let which = match count {
        1 => format!("{} is queued", Id(first.id)),
        count => format!("{} to {}: {count} workloads are queued", Id(first.id), Id(first.id + count as u32 - 1)),
    };
    format!("{which}: {}, {} for {}", first.name, gang(first), first.budget)
}

/// `2x8 GPUs`
pub(crate) fn gang(workload: &Workload) -> String {
    let gpus = if workload.members * workload.gpus_per_member == 1 { "GPU" } else { "GPUs" };
    format!("{} {gpus}", gang_figures(workload))
}

/// `2x8`, or `8` where there is one member.
pub(crate) fn gang_figures(workload: &Workload) -> String {
    match workload.members {
        1 => workload.gpus_per_member.to_string(),
        members => format!("{members}x{}", workload.gpus_per_member),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::workload;

    #[test]
    fn one_workload() {
        let queued = Workload { members: 2, ..workload(7) };
        let notes = vec!["its min runtime of 12 h is clamped to 30 min, by its time limit or a cap".to_owned(), "it starts now".to_owned()];
        let submitted = Submitted { workloads: vec![queued], notes };
        let expected = "w7 is queued: train, 2x4 GPUs for lab/nlp
- its min runtime of 12 h is clamped to 30 min, by its time limit or a
  cap
- it starts now";
        assert_eq!(said(&submitted, Some(70)), expected);
        assert_eq!(numbers(&submitted), "w7");
    }

    #[test]
    fn an_array() {
        let submitted = Submitted { workloads: vec![workload(7), workload(8)], notes: Vec::new() };
        assert_eq!(said(&submitted, None), "w7 to w8: 2 workloads are queued: train, 4 GPUs for lab/nlp");
        assert_eq!(numbers(&submitted), "w7\nw8");
    }
}
