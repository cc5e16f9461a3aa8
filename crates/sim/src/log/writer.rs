//! Writes the event log while a run goes on.

use crate::log::convert;
use crate::log::line::{EndOfLog, Lease, Line, LogEvent, VERSION};
use crate::observer::Observer;
use std::collections::BTreeSet;
use std::io::{self, BufWriter, Write};
use stipend_core::entry::Entry;
use stipend_core::explain::Names;
use stipend_core::id::{BudgetId, LeaseId, NodeId, UserId, WorkloadId};
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
    fn user(&self, id: UserId) -> String {
        self.names.user(id)
    }
    fn time(&self, at: Time) -> String {
        self.names.time(at)
    }
}
