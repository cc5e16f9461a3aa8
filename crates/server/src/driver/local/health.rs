//! What the GPUs' own reports say of the health of their node. Rules only: where the numbers come from is in `gpus.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};
use stipend_core::spec::Severity;

/// What a GPU says of itself now; `None` is what it does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sample {
    pub gpu: u32,
    /// It has fallen off the bus.
    pub lost: bool,
    /// Degrees Celsius: now, and where it slows itself down and where it shuts itself off.
    pub temperature: Option<u32>,
    pub slowdown_at: Option<u32>,
    pub shutdown_at: Option<u32>,
    /// Uncorrected memory errors since its driver was loaded.
    pub uncorrected: Option<u64>,
    /// Percent of the time since the last sample in which a kernel ran.
    pub utilization: Option<u32>,
}

/// A reason to take a node out of service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub gpu: u32,
    pub severity: Severity,
    pub reason: String,
}

/// A GPU that is so hot for so long is not cooled as it should be.
const HOT_FOR: Duration = Duration::from_secs(300);

/// What an Xid, the number of an error that NVIDIA's driver reports, says of the node: `None` where a program can cause it.
///
/// Only what is listed drains, so whatever a program does, its node stays. From NVIDIA's catalog of Xids (those whose action is a reset,
/// a restart of the machine or a repair) and the list that NVIDIA's device plugin for Kubernetes leaves to the application:
/// 13, 31, 43, 45, 68, 109.
/// Critical is what makes the GPU useless at once, with everything that runs on it; the rest can wait until contracts end.
pub(super) fn of_xid(xid: u64) -> Option<(Severity, &'static str)> {
    Some(match xid {
        62 => (Severity::Critical, "its microcontroller halted"),
        79 => (Severity::Critical, "it has fallen off the bus"),
        95 => (Severity::Critical, "a memory error that could not be contained"),
        119 => (Severity::Critical, "its system processor does not answer"),
        120 => (Severity::Critical, "its system processor failed"),
        140 => (Severity::Critical, "a memory error that could not be recovered"),
        46 => (Severity::Sick, "it stopped processing and was not recovered"),
        48 => (Severity::Sick, "a double bit memory error"),
        54 => (Severity::Sick, "its auxiliary power is not connected"),
        63 => (Severity::Sick, "a memory row is to be remapped at the next reset"),
        64 => (Severity::Sick, "a memory row could not be remapped"),
        74 => (Severity::Sick, "an error of NVLink"),
        92 => (Severity::Sick, "single bit memory errors at a high rate"),
        94 => (Severity::Sick, "a memory error that was contained"),
        110 => (Severity::Sick, "a fault of its security processor"),
        143 => (Severity::Sick, "it could not be initialised"),
        _ => return None,
    })
}

/// Remembers what was said, so that each fault is said once until the node is repaired.
#[derive(Default)]
pub(super) struct Health {
    said: BTreeSet<(u32, &'static str)>,
    uncorrected: BTreeMap<u32, u64>,
    hot_since: BTreeMap<u32, Instant>,
}

impl Health {
    /// The driver reported an Xid.
    pub(super) fn xid(&mut self, gpu: u32, xid: u64) -> Option<Fault> {
        let (severity, what) = of_xid(xid)?;
        self.say(gpu, what, severity, format!("GPU {gpu}: Xid {xid}, {what}"))
    }

    /// What a sample adds.
    pub(super) fn sample(&mut self, at: Instant, sample: &Sample) -> Vec<Fault> {
        let gpu = sample.gpu;
        let mut found = Vec::new();
        if sample.lost {
            found.extend(self.say(gpu, "lost", Severity::Critical, format!("GPU {gpu} does not answer any more")));
        }
        if let (Some(now), Some(limit)) = (sample.temperature, sample.shutdown_at)
            && now >= limit
        {
            let reason = format!("GPU {gpu} has {now} degrees and shuts itself off at {limit}");
            found.extend(self.say(gpu, "shutdown", Severity::Critical, reason));
        }
        match (sample.temperature, sample.slowdown_at) {
            (Some(now), Some(limit)) if now >= limit => {
                let since = *self.hot_since.entry(gpu).or_insert(at);
                if at.saturating_duration_since(since) >= HOT_FOR {
                    let reason = format!("GPU {gpu} has had {limit} degrees and more for five minutes, and slows itself down");
                    found.extend(self.say(gpu, "hot", Severity::Sick, reason));
                }
            }
            _ => drop(self.hot_since.remove(&gpu)),
        }
        if let Some(now) = sample.uncorrected
            && let Some(before) = self.uncorrected.insert(gpu, now)
            && now > before
        {
            let reason = format!("GPU {gpu}: {} uncorrected memory errors more", now - before);
            found.extend(self.say(gpu, "uncorrected", Severity::Sick, reason));
        }
        found
    }

    /// The node was repaired: what is found from now on is new.
    pub(super) fn repaired(&mut self) {
        *self = Health::default();
    }

    fn say(&mut self, gpu: u32, what: &'static str, severity: Severity, reason: String) -> Option<Fault> {
        self.said.insert((gpu, what)).then_some(Fault { gpu, severity, reason })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_program_can_drain_its_node() {
        let mut health = Health::default();
        for xid in [0, 13, 31, 32, 43, 45, 68, 69, 109, 137, 100_000] {
            assert_eq!(health.xid(0, xid), None, "{xid}");
        }
    }

    #[test]
    fn a_fault_is_said_once_for_each_gpu_until_the_repair() {
        let mut health = Health::default();
        let fault = health.xid(3, 79).expect("a fault");
        assert_eq!((fault.severity, fault.reason.as_str()), (Severity::Critical, "GPU 3: Xid 79, it has fallen off the bus"));
        assert_eq!(health.xid(3, 79), None);
        assert!(health.xid(4, 79).is_some());
        health.repaired();
        assert!(health.xid(3, 79).is_some());
    }

    #[test]
    fn heat_counts_when_it_stays() {
        let mut health = Health::default();
        let begin = Instant::now();
        let hot = Sample { temperature: Some(90), slowdown_at: Some(87), shutdown_at: Some(92), ..Sample::default() };
        let cool = Sample { temperature: Some(60), ..hot };
        assert_eq!(health.sample(begin, &hot), []);
        assert_eq!(health.sample(begin + HOT_FOR / 2, &cool), []);
        assert_eq!(health.sample(begin + HOT_FOR, &hot), []);
        let found = health.sample(begin + HOT_FOR * 2, &hot);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].severity, Severity::Sick);
        assert_eq!(health.sample(begin, &Sample { temperature: Some(93), ..hot })[0].severity, Severity::Critical);
    }

    #[test]
    fn only_new_memory_errors_count() {
        let mut health = Health::default();
        let old = Sample { uncorrected: Some(7), ..Sample::default() };
        assert_eq!(health.sample(Instant::now(), &old), []);
        assert_eq!(health.sample(Instant::now(), &old), []);
        let found = health.sample(Instant::now(), &Sample { uncorrected: Some(9), ..old });
        assert_eq!(found[0].reason, "GPU 0: 2 uncorrected memory errors more");
    }
}
