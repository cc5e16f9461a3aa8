//! What each row of the table means, in a sentence or two for a reader who has never seen it.

/// The explanation of a row, by its label and the label of the row that it stands under (`None` for a row of its own).
pub(crate) fn explained(label: &str, under: Option<&str>) -> Option<&'static str> {
    Some(match (under, label.trim()) {
        (None, "demand / capacity") => {
            "How many GPUs the work with a contract asked for, running and waiting, for each one that there was. \
             Users wait for their work before they submit more, so it differs by policy. Above 1, some of it must wait under any policy."
        }
        (None, "occupancy") => {
            "The part of all GPU time that was given to work. Easy to get, and worth little alone: \
             work that is stopped and restarted all day occupies GPUs too."
        }
        (None, "useful") => "The part of all GPU time that led to a completion or a checkpoint that was used.",
        (None, "lost") => {
            "The part of all GPU time that led to nothing: work since the last checkpoint of a run that was stopped, restarts, grace."
        }
        (None, "owed delivered") => {
            "A team is owed its share, as far as it asked for it. This is the part of all owed GPU time that teams got; what one got beyond does not count."
        }
        (_, "day by day") => "Owed delivered for each day by itself: a good day does not make up for a bad one.",
        (_, "worst team") => "Owed delivered of the team that got the least of what it was owed.",
        (_, "which is") => "The name of that team.",
        (_, "teams >= 95 %") => "How many teams got at least 95 % of what they were owed, of those that were owed anything.",
        (None, "arrears p50/90/max") => {
            "How far teams were behind at the end of each hour, in hours of their own share: half of the time at most, nine tenths of the time, the worst."
        }
        (None, "wait p50/90/99") => {
            "From the moment a workload could start to its first running, of half, nine of ten, 99 of 100 of all work with a contract. \
             Work that never started counts with its wait so far."
        }
        (Some("slowdown p50/90"), "debug") => "Slowdown of work of at most 8 GPUs with a contract of at most 15 minutes.",
        (Some("slowdown p50/90"), "medium") => "Slowdown of work with a contract that is neither debug nor largest.",
        (Some("slowdown p50/90"), "largest") => "Slowdown of gangs of at least an eighth of the pool.",
        (Some("wait p50/90/99"), "debug") => {
            "Waits of work of at most 8 GPUs with a contract of at most 15 minutes: what a person at a keyboard waits."
        }
        (Some("wait p50/90/99"), "medium") => "Waits of work with a contract that is neither debug nor largest.",
        (Some("wait p50/90/99"), "largest") => "Waits of gangs of at least an eighth of the pool.",
        (_, "unallocated") => "Waits of work without a contract: never charged, never protected, run where GPUs would be idle.",
        (_, "requeued") => "From a preemption to running again, of work with a contract.",
        (_, "never started") => "Workloads with a contract that had not started when the run ended.",
        (None, "slowdown p50/90") => {
            "From the moment a workload could start to its completion, as a multiple of its work. \
             It is there because a policy that preempts starts work early and may stop it early."
        }
        (None, "promises/kept") => {
            "Starts that were promised to the largest gangs at the latest, and how many of them came by then. The rest is open, or lost its nodes."
        }
        (Some("promises/kept"), "given p50/90") => "How long they had waited for their promise: half of them at most, nine of ten.",
        (None, "estimates held") => {
            "How many of the estimates held that were given when a workload became eligible: a range of waits, made to hold for eight in ten."
        }
        (None, "preemptions") => "Runs stopped so that others could start, most of them without a contract, or for the repair of a host.",
        (None, "lost GPU-hours") => "The same as the row `lost`, in GPU-hours.",
        (None, "completed") => "Workloads that were done.",
        (None, "wall seconds") => "How long this program took to simulate it.",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::explained;
    use crate::report::rows::ROWS;

    #[test]
    fn every_row_is_explained() {
        let mut under = None;
        for (label, _) in ROWS {
            let own = !label.starts_with(' ');
            under = if own { Some(*label) } else { under };
            assert!(explained(label, under.filter(|_| !own)).is_some(), "{label:?} under {under:?}");
        }
    }
}
