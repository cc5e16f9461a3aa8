//! The auditor: reads an event log and holds it against the laws of the scheduler.
//!
//! It shares no code with the core: it keeps its own books from the log alone, by brute force, in plain integers. So it can say of
//! any log, whoever wrote it, whether the laws were kept. Laws about a single line are checked at that line; laws about what a
//! scheduler must have done (a victim signalled, an idle GPU used, a complete hold started) when the instant is over. Memory grows
//! with what is live and with the part of the ledger that standings can still see, not with the log.

mod closed;
mod credit;
mod doubt;
mod early;
mod findings;
mod gap;
mod holds;
mod idle;
mod ledger;
mod lifecycle;
mod loss;
mod placement;
mod plans;
mod promises;
mod service;
mod sessions;
mod standing;
mod swaps;
#[cfg(test)]
mod tests;
mod world;

pub use findings::{Law, Report, Summary, Violation};

use crate::log::line::{Budgets, EndOfLog, Licence, Line, LogEvent, Node, State, UnholdCause};
use crate::log::{LogError, LogReader};
use credit::Credit;
use findings::Findings;
use gap::Gaps;
use ledger::Ledger;
use promises::Promises;
use service::Service;
use standing::Shares;
use std::collections::{BTreeMap, BTreeSet};
use std::io::BufRead;
use swaps::Swaps;
use world::{Hold, Id, Pool, World};

/// Reads a log line by line and collects violations.
#[derive(Default)]
pub struct Auditor {
    world: World,
    ledger: Ledger,
    shares: Shares,
    service: Service,
    swaps: Swaps,
    promises: Promises,
    credit: Credit,
    gaps: Gaps,
    instant: Instant,
    findings: Findings,
}

/// What happened in the present instant.
#[derive(Default)]
struct Instant {
    at: Option<i64>,
    started: BTreeSet<Id>,
    /// Workloads that a plan of this instant preempts.
    preempted: BTreeSet<Id>,
    /// Victims by claimant.
    planned: BTreeMap<Id, Vec<(Id, Licence)>>,
    /// By claimant, what the victims that must be worth it lose in all, and what they may.
    losses: BTreeMap<Id, (i128, i128)>,
    /// Completions that show that a workload did not begin anew.
    doubts: BTreeSet<Id>,
    opened: BTreeSet<Id>,
    /// Holds that ended in this instant, in their start or otherwise.
    closed: BTreeMap<Id, Hold>,
    /// Claimants of which a line says that their hold ended because they started.
    said_started: BTreeSet<Id>,
    /// Claimants whose hold ended otherwise, with the reason given.
    said_gone: Vec<(Id, UnholdCause)>,
    /// Victims let go, with their claimants.
    spared: Vec<(Id, Id)>,
    /// Nodes that left service, be it that they are back already.
    left: BTreeSet<usize>,
    /// Workloads whose attempt ended, or that are gone.
    ended: BTreeSet<Id>,
    /// Workloads that started on free GPUs in a pool that is not the first of theirs, with its place among them.
    fell_back: Vec<(Id, usize)>,
}

/// Audits a whole log.
pub fn check(log: impl BufRead) -> Result<Report, LogError> {
    check_only(log, &[])
}

/// Audits a whole log for these laws alone, none meaning all: a policy without budgets keeps to some of them only.
pub fn check_only(log: impl BufRead, laws: &[Law]) -> Result<Report, LogError> {
    let mut reader = LogReader::new(log);
    let mut auditor = Auditor::default();
    auditor.findings.only = laws.to_vec();
    while let Some((number, line)) = reader.next_line()? {
        auditor.line(number, &line);
    }
    Ok(auditor.finish())
}

impl Auditor {
    /// Takes the next line of the log.
    pub fn line(&mut self, number: u64, line: &Line) {
        self.move_to(line.t_ms, matches!(line.event, LogEvent::EndOfLog(_)));
        self.findings.move_to(number, line.t_ms);
        self.findings.count().lines += 1;
        match &line.event {
            LogEvent::Policy(policy) => {
                let pool = self.world.pools.find_or_add(&policy.pool, Pool::default);
                self.world.pools.rows[pool].knobs = Some(policy.clone());
                self.excuse_pool(pool);
            }
            LogEvent::Node(node) => self.node(node),
            LogEvent::Budgets(tree) => self.budgets(tree),
            LogEvent::Submitted(submitted) => self.submitted(submitted),
            LogEvent::Refused(_) => {}
            LogEvent::Gap(gap) => self.gap(gap),
            LogEvent::Doubted(doubted) => self.doubted(doubted),
            LogEvent::Eligible(eligible) => self.eligible(eligible),
            LogEvent::Held(held) => self.held(held),
            LogEvent::Started(started) => self.started(started),
            LogEvent::Running(running) => self.running(running),
            LogEvent::Promoted(promoted) => self.promoted(promoted),
            LogEvent::Renewed(renewed) => self.renewed(renewed),
            LogEvent::Input(input) => self.input(input),
            LogEvent::Checkpoint(checkpoint) => self.checkpoint(checkpoint),
            LogEvent::Preempting(preempting) => self.preempting(preempting),
            LogEvent::Stopping(stopping) => self.stopping(stopping),
            LogEvent::Spared(spared) => self.spared(spared),
            LogEvent::Hold(hold) => self.hold(hold),
            LogEvent::Unhold(unhold) => self.unhold(unhold),
            LogEvent::Reserved(reserved) => self.reserved(reserved),
            LogEvent::Unreserved(unreserved) => self.unreserved(unreserved),
            LogEvent::Ended(ended) => self.ended(ended),
            LogEvent::Requeued(requeued) => self.requeued(requeued),
            LogEvent::Charged(charged) => self.charged(charged),
            LogEvent::Refunded(refunded) => self.refunded(refunded),
            LogEvent::Granted(granted) => self.granted(granted),
            LogEvent::Lapsed(lapsed) => self.lapsed(lapsed),
            LogEvent::EndOfLog(end) => self.end_of_log(end),
        }
    }

    /// Closes the books.
    pub fn finish(mut self) -> Report {
        if self.instant.at.is_some() {
            self.settle_instant();
        }
        self.check_totals();
        self.findings.report
    }

    /// The present time.
    fn now(&self) -> i64 {
        self.instant.at.unwrap_or(i64::MIN)
    }

    fn move_to(&mut self, at: i64, is_end: bool) {
        let Some(now) = self.instant.at else {
            self.instant.at = Some(at);
            return;
        };
        if at < now {
            self.findings.add(Law::TimeOrder, format!("{at} ms after {now} ms"), "time never runs back");
        }
        // Where a run is cut off, the last instant's facts may be in and its decisions not.
        let is_cut = is_end && at == now;
        if at > now {
            self.settle_instant();
            self.excuse_gap(now, at);
            self.pass(now, at);
            self.instant.at = Some(at);
            self.excuse_after_gap();
            if is_end {
                self.check_last_lapses();
            }
        } else if is_cut {
            self.settle_books();
        }
    }

    /// The instant is over: what must have been done in it, must be done.
    fn settle_instant(&mut self) {
        self.findings.count().instants += 1;
        self.check_signals();
        self.check_holds();
        self.check_losses();
        self.check_doubts();
        self.check_lapses();
        self.check_plans();
        self.check_promises();
        self.check_closed();
        self.settle_books();
        self.check_preference();
        self.check_idle();
        self.check_service();
        self.instant = Instant { at: self.instant.at, ..Instant::default() };
    }

    fn settle_books(&mut self) {
        self.check_requeues();
        self.settle_bills();
        self.shares.note_capacity(&self.world, self.now());
        for id in std::mem::take(&mut self.instant.ended) {
            self.forget_if_gone(id);
        }
    }

    fn node(&mut self, line: &Node) {
        if line.gpus == 0 || line.gpus > 64 {
            self.findings.add(Law::Sequence, format!("node {} with {} GPUs", line.node, line.gpus), "1 to 64");
            return;
        }
        let now = self.now();
        let node = self.world.set_node(line, now);
        if line.state != State::Ready {
            self.instant.left.insert(node);
            self.lose_promised(node);
            self.excuse(std::iter::once(node));
        }
        if self.world.nodes.rows[node].is_failing() {
            let struck: BTreeSet<Id> = self.world.nodes.rows[node].gpus.iter().filter_map(|gpu| gpu.lease).collect();
            struck.into_iter().for_each(|id| self.strike(id));
        }
    }

    fn budgets(&mut self, tree: &Budgets) {
        let mut given: BTreeMap<String, i64> = BTreeMap::new();
        for line in &tree.budgets {
            let budget = self.world.set_budget(line);
            self.shares.note_claim(budget, self.world.budgets.rows[budget].claim, self.now());
            if let Some((parent, _)) = line.path.rsplit_once('/') {
                *given.entry(format!("{parent} in pool {}", line.pool)).or_default() += (line.share_percent * 10_000.0).round() as i64;
            }
        }
        self.world.link_budgets();
        self.ask_anew();
        for (parent, sum) in given.into_iter().filter(|(_, sum)| *sum > 1_000_000) {
            self.findings.add(Law::Sequence, format!("the children of {parent} have {sum} ppm in all"), "at most 1,000,000");
        }
    }

    fn end_of_log(&mut self, end: &EndOfLog) {
        let said: BTreeSet<(&str, u32)> = end.leases.iter().map(|lease| (lease.workload.as_str(), lease.attempt)).collect();
        let live = self.world.workloads.iter().filter_map(|(id, workload)| Some((workload.label.as_str(), self.world.lease(*id)?.attempt)));
        let live: BTreeSet<(&str, u32)> = live.collect();
        if said != live {
            let (more, less) = (said.difference(&live).count(), live.difference(&said).count());
            self.findings.add(
                Law::Sequence,
                format!("{more} leases listed that ended, {less} running ones not listed"),
                "exactly the leases that run",
            );
        }
        self.instant.at = None;
    }

    /// The number of a workload that the log has introduced; anything else is a violation.
    fn known(&mut self, label: &str) -> Option<Id> {
        let id = self.world.id(label);
        if id.is_none() {
            self.findings.add(Law::Sequence, format!("{label} is named"), "a workload that was submitted and has not ended");
        }
        id
    }

    /// The workload of a live lease; anything else is a violation.
    fn leased(&mut self, label: &str, attempt: u32, what: &str) -> Option<Id> {
        let id = self.known(label)?;
        match self.world.lease(id) {
            Some(lease) if lease.attempt == attempt => Some(id),
            other => {
                let live = other.map_or("no lease".into(), |lease| format!("attempt {}", lease.attempt));
                self.findings.add(Law::Sequence, format!("attempt {attempt} of {label} {what}, which has {live}"), "the present attempt");
                None
            }
        }
    }
}
