//! Writes the event log while a run goes on.

use crate::log::convert;
use crate::log::line::{EndOfLog, Lease, Line, LogEvent, VERSION};
use crate::observer::Observer;
use std::collections::BTreeSet;
use std::io::{self, BufWriter, Write};
use stipend_core::entry::Entry;
use stipend_core::explain::Names;
use stipend_core::id::{BudgetId, LeaseId, NodeId, PoolId, UserId, WorkloadId};
use stipend_core::quantity::Time;

/// An observer that writes each entry as a line. An observer cannot fail, so the first error is kept and [`LogWriter::finish`] tells it.
pub struct LogWriter<'a, W: Write> {
    out: BufWriter<W>,
    labels: Labels<'a>,
    line: Vec<u8>,
    running: BTreeSet<LeaseId>,
    first: bool,
    error: Option<io::Error>,
}

/// The shell's labels, with the budgets' paths from the log itself: budgets may be born during a run.
struct Labels<'a> {
    names: &'a dyn Names,
    paths: Vec<Option<String>>,
}

impl<'a, W: Write> LogWriter<'a, W> {
    /// A writer to `out`, which need not be buffered.
    pub fn new(out: W, names: &'a dyn Names) -> LogWriter<'a, W> {
        LogWriter {
            out: BufWriter::with_capacity(1 << 16, out),
            labels: Labels { names, paths: Vec::new() },
            line: Vec::new(),
            running: BTreeSet::new(),
            first: true,
            error: None,
        }
    }

    /// Flushes and gives the output back, or the first error of the run.
    pub fn finish(self) -> io::Result<W> {
        match self.error {
            Some(error) => Err(error),
            None => self.out.into_inner().map_err(io::IntoInnerError::into_error),
        }
    }

    fn write(&mut self, at: Time, event: LogEvent) {
        let v = std::mem::take(&mut self.first).then_some(VERSION);
        self.line.clear();
        let made = serde_json::to_writer(&mut self.line, &Line { v, t_ms: at.0, event }).map_err(io::Error::from);
        self.line.push(b'\n');
        let written = made.and_then(|()| self.out.write_all(&self.line));
        if let (Err(error), None) = (written, &self.error) {
            self.error = Some(error);
        }
    }
}

impl<W: Write> Observer for LogWriter<'_, W> {
    fn entry(&mut self, at: Time, entry: &Entry) {
        match entry {
            Entry::Budgets { budgets, .. } => budgets.iter().for_each(|budget| self.labels.learn(budget.spec.id, &budget.path)),
            Entry::Started { lease, .. } => {
                self.running.insert(*lease);
            }
            Entry::Ended { workload, attempt: Some(attempt), .. } => {
                self.running.remove(&LeaseId { workload: *workload, attempt: *attempt });
            }
            _ => {}
        }
        let event = convert::event(entry, &self.labels);
        self.write(at, event);
    }

    fn end(&mut self, at: Time) {
        let lease = |lease: &LeaseId| Lease { workload: self.labels.workload(lease.workload), attempt: lease.attempt };
        let leases = self.running.iter().map(lease).collect();
        self.write(at, LogEvent::EndOfLog(EndOfLog { leases }));
    }
}

impl Labels<'_> {
    fn learn(&mut self, budget: BudgetId, path: &str) {
        if self.paths.len() <= budget.index() {
            self.paths.resize(budget.index() + 1, None);
        }
        self.paths[budget.index()] = Some(path.to_string());
    }
}

impl Names for Labels<'_> {
    fn budget(&self, id: BudgetId) -> String {
        match self.paths.get(id.index()) {
            Some(Some(path)) => path.clone(),
            _ => self.names.budget(id),
        }
    }
    fn workload(&self, id: WorkloadId) -> String {
        self.names.workload(id)
    }
    fn node(&self, id: NodeId) -> String {
        self.names.node(id)
    }
    fn pool(&self, id: PoolId) -> String {
        self.names.pool(id)
    }
    fn cpus_per_gpu(&self, pool: PoolId) -> Option<u32> {
        self.names.cpus_per_gpu(pool)
    }
    fn user(&self, id: UserId) -> String {
        self.names.user(id)
    }
    fn time(&self, at: Time) -> String {
        self.names.time(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::LogReader;
    use std::sync::Arc;
    use stipend_core::entry::{BudgetEntry, ChargeKind, GpuSet, Licence, Occupancy, Outcome, Slot};
    use stipend_core::explain::{Ids, Why};
    use stipend_core::quantity::{Claim, GpuMs, Gpus, Ppm};
    use stipend_core::spec::{BudgetSpec, LeafOrder, NodeSpec, NodeState, PoolShare, Severity};

    const LEASE: LeaseId = LeaseId { workload: WorkloadId(7), attempt: 2 };

    fn written(entries: &[Entry]) -> Vec<String> {
        let mut writer = LogWriter::new(Vec::new(), &Ids);
        entries.iter().for_each(|entry| writer.entry(Time(5), entry));
        writer.end(Time(9));
        let text = String::from_utf8(writer.finish().unwrap()).unwrap();
        let mut reader = LogReader::new(text.as_bytes());
        while let Some((number, line)) = reader.next_line().unwrap() {
            let again = serde_json::to_string(&line).unwrap();
            assert_eq!(again, text.lines().nth(number as usize - 1).unwrap(), "what is read is what was written");
        }
        text.lines().map(str::to_string).collect()
    }

    fn tree() -> Entry {
        let pools = vec![PoolShare { share: Ppm(333_333), gpus_max: Some(Gpus(64)), ..PoolShare::default() }];
        let spec = BudgetSpec { id: BudgetId(3), parent: None, name: "a".into(), pools, order: LeafOrder::Fifo, closed: false };
        let budgets = vec![BudgetEntry { spec, path: "lab/\"a\"".into(), claims: vec![Claim(123_456_789)] }];
        Entry::Budgets { version: 2, author: "ann".into(), reason: "more".into(), budgets }
    }

    #[test]
    fn lines_have_the_documented_form() {
        let placement = Arc::from([Slot { node: NodeId(1), gpus: GpuSet(0b1010_0000) }, Slot { node: NodeId(4), gpus: GpuSet(1) }]);
        let node = NodeSpec {
            pool: PoolId(0),
            gpus: 8,
            cpus: 96,
            memory: 1 << 40,
            block: stipend_core::id::BlockId(2),
            features: Default::default(),
            express: true,
        };
        let lines = written(&[
            tree(),
            Entry::Node {
                node: NodeId(1),
                spec: node,
                state: NodeState::Draining(Severity::Sick),
                drain_until: Some(Time(70)),
                reason: "fan".into(),
            },
            Entry::Started {
                lease: LEASE,
                pool: PoolId(0),
                occupancy: Occupancy::Allocated,
                placement,
                licence: Licence::OwnLeaf,
                why: Why::Rule("first come".into()),
            },
            Entry::Running { lease: LEASE, protected_until: None },
            Entry::Preempting {
                lease: LEASE,
                claimant: Some(WorkloadId(8)),
                node: None,
                licence: Licence::Share,
                stop_by: Time(125),
                why: Why::Owner,
            },
            Entry::Unhold { claimant: WorkloadId(8), why: Why::ClaimantGone },
            Entry::Charged {
                workload: WorkloadId(7),
                attempt: 2,
                budget: BudgetId(3),
                pool: PoolId(0),
                kind: ChargeKind::Run,
                from: Time(1),
                to: Time(5),
                gpu_ms: GpuMs(12),
            },
            Entry::Ended {
                workload: WorkloadId(9),
                attempt: None,
                outcome: Outcome::Cancelled,
                lost: GpuMs(0),
                by: stipend_core::entry::By::Owner,
            },
        ]);
        let expected = [
            r#"{"v":1,"t_ms":5,"event":"budgets","version":2,"author":"ann","reason":"more","budgets":[{"id":3,"path":"lab/\"a\"","pool":"p0","share_percent":33.3333,"claim":0.123456789,"gpus_max":64,"unallocated_gpus_max":null,"min_runtime_max_ms":null,"order":"fifo"}]}"#,
            r#"{"t_ms":5,"event":"node","node":"n1","pool":"p0","gpus":8,"cpus":96,"memory_bytes":1099511627776,"block":"k2","features":0,"express":true,"state":"draining","severity":"sick","drain_until_ms":70,"reason":"fan"}"#,
            r#"{"t_ms":5,"event":"started","workload":"w7","attempt":2,"pool":"p0","occupancy":"allocated","placement":{"n1":[5,7],"n4":[0]},"licence":"own_leaf","why":"first come"}"#,
            r#"{"t_ms":5,"event":"running","workload":"w7","attempt":2,"protected_until_ms":null}"#,
            r#"{"t_ms":5,"event":"preempting","workload":"w7","attempt":2,"claimant":"w8","node":null,"licence":"share","stop_by_ms":125,"why":"its owner withdrew it"}"#,
            r#"{"t_ms":5,"event":"unhold","claimant":"w8","cause":"claimant_gone","why":"the claimant went away"}"#,
            r#"{"t_ms":5,"event":"charged","workload":"w7","attempt":2,"budget":"lab/\"a\"","pool":"p0","kind":"run","from_ms":1,"to_ms":5,"gpu_ms":12}"#,
            r#"{"t_ms":5,"event":"ended","workload":"w9","attempt":null,"outcome":"cancelled","lost_gpu_ms":0,"by":"owner"}"#,
            r#"{"t_ms":9,"event":"end_of_log","leases":[{"workload":"w7","attempt":2}]}"#,
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn the_first_error_is_told_at_the_end() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::Error::other("disk full"))
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut writer = LogWriter::new(Full, &Ids);
        (0..2000).for_each(|_| writer.entry(Time(0), &tree()));
        assert_eq!(writer.finish().err().unwrap().to_string(), "disk full");
    }
}
