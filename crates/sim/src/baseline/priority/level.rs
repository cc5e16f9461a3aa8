//! Levels, what people make of them, and what protects a lease.

use super::super::book::Workload;
use stipend_core::entry::Occupancy;
use stipend_core::id::WorkloadId;
use stipend_core::quantity::Ppm;
use stipend_core::spec::OnPreempt;

/// A level of priority, the lowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    /// What may be interrupted at any time; all unallocated work.
    Low,
    /// Nothing special.
    Normal,
    /// Protected, as far as the team's limit goes.
    High,
    /// The same, and ahead of everybody who is only `High`.
    Urgent,
}

/// How `priority` is run, and what people make of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrioritySettings {
    /// The part of the work that says nothing about its priority which people submit as high.
    pub high: Ppm,
    /// The part which they submit as normal; the rest is low.
    pub normal: Ppm,
    /// The part of the high work whose owners say that it must not be preempted.
    pub opt_out: Ppm,
    /// The most GPUs that a team may protect, as a multiple of claim × capacity.
    pub protected_max: Ppm,
    /// Whether anything is preempted at all.
    pub preempt: bool,
}

impl Default for PrioritySettings {
    fn default() -> PrioritySettings {
        PrioritySettings { high: Ppm(700_000), normal: Ppm(200_000), opt_out: Ppm(850_000), protected_max: Ppm(750_000), preempt: true }
    }
}

/// What a workload's owner asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) level: Level,
    /// It must not be preempted, if the team's limit allows.
    pub(super) opts_out: bool,
}

impl PrioritySettings {
    /// What is asked for a workload. Nobody gains by asking for less than high, so most work does; which of it does not is a matter of its
    /// number, so that the same workload asks for the same in every run. What cannot go on after a preemption always opts out of one.
    pub(super) fn asked(&self, id: WorkloadId, workload: &Workload) -> Asked {
        let level = match (workload.occupancy(), workload.spec.priority) {
            (Occupancy::Unallocated, _) => Level::Low,
            (_, 0) => self.habit(id),
            (_, 1) => Level::High,
            (_, 2..) => Level::Urgent,
            (_, -1) => Level::Normal,
            (_, _) => Level::Low,
        };
        let always = workload.spec.on_preempt == OnPreempt::End || workload.spec.priority >= 2;
        let opts_out = level >= Level::High && (always || dice(id, 1) < self.opt_out.0);
        Asked { level, opts_out }
    }

    fn habit(&self, id: WorkloadId) -> Level {
        match dice(id, 0) {
            drawn if drawn < self.high.0 => Level::High,
            drawn if drawn < self.high.0.saturating_add(self.normal.0) => Level::Normal,
            _ => Level::Low,
        }
    }
}

/// A number below a million that depends on nothing but the workload's number and the question (the finalizer of SplitMix64).
fn dice(id: WorkloadId, question: u64) -> u32 {
    let mut x = (u64::from(id.0) << 1 | question).wrapping_add(0x9E37_79B9_7F4A_7C15);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((x ^ (x >> 31)) % 1_000_000) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dice_are_even_and_the_two_questions_have_nothing_to_do_with_each_other() {
        let below = |question, bound| (0..10_000).filter(|&id| dice(WorkloadId(id), question) < bound).count();
        assert!((6_850..7_150).contains(&below(0, 700_000)), "{}", below(0, 700_000));
        assert!((8_400..8_600).contains(&below(1, 850_000)), "{}", below(1, 850_000));
        let both = (0..10_000).filter(|&id| dice(WorkloadId(id), 0) < 700_000 && dice(WorkloadId(id), 1) < 850_000).count();
        assert!((5_800..6_100).contains(&both), "{both}");
    }
}
