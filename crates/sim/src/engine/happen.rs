//! What happens at an instant, told to the policy as events.

use super::Engine;
use super::agenda::Next;
use crate::scenario::Happening;
use stipend_core::event::{Event, Exit};
use stipend_core::id::{BudgetId, LeaseId, NodeId, PoolId, WorkloadId};
use stipend_core::quantity::{Span, Time};
use stipend_core::spec::{Changeset, Severity};

impl Engine<'_, '_> {
    pub(super) fn happen(&mut self, at: Time, next: Next) {
        match next {
            Next::Stream(stream) => {
                let (jobs, again) = self.population.draw(stream, at);
                if let Some(again) = again {
                    self.agenda.put(again, Next::Stream(stream));
                }
                jobs.into_iter().for_each(|job| self.submit(at, job));
            }
            Next::Listed(number) => self.submit_as(at, WorkloadId(number), self.scenario.listed[number as usize].job.clone()),
            Next::Happening(number) => self.happening(at, number as usize),
            Next::Running(lease) => self.lease_runs(at, lease),
            Next::Progress(lease) => self.lease_steps(at, lease),
            Next::Input(lease) => self.session_is_used(at, lease),
            Next::Exit(lease) => {
                if self.alive(lease).is_some() {
                    self.lease_ends(at, lease, Exit::Failed);
                }
            }
            Next::Fenced(lease) => self.fenced(at, lease),
            Next::Cancel(workload) if self.works[workload.index()].over => {}
            Next::Cancel(workload) => self.tell(at, Event::Cancelled { workload }),
            Next::HostFails(node) => self.host_fails(at, node),
            Next::Repairing(node) => self.repairing(at, node),
            Next::Repaired(node) => self.ready(at, node),
            Next::Back => {
                if let Some(from) = self.away_since.take() {
                    self.tell(at, Event::Gap { from });
                }
            }
        }
    }

    fn happening(&mut self, at: Time, number: usize) {
        match self.scenario.happenings[number].1.clone() {
            Happening::Drain { node, severity, reason, repair } => self.drain(at, node, severity, reason, repair),
            Happening::Lose { node, repair } => self.lose(at, node, repair),
            Happening::Ready { node } => self.ready(at, node),
            Happening::Cancel { workload } => self.tell(at, Event::Cancelled { workload }),
            Happening::Stop { workload, reason } => self.tell(at, Event::Stopped { workload, reason }),
            Happening::Hold { workload, reason } => self.tell(at, Event::Held { workload, why: reason }),
            Happening::Release { workload } => self.tell(at, Event::Released { workload }),
            Happening::Stick { workload, lasts } => {
                self.stuck.insert(workload, lasts);
            }
            Happening::SlowStart { workload, lasts } => {
                self.slow_starts.insert(workload, lasts);
            }
            Happening::Gap { lasts } => {
                self.away_since.get_or_insert(at);
                self.agenda.put(at + lasts, Next::Back);
            }
            Happening::Share { budget, pool, share } => {
                let spec = &mut self.budgets[budget.index()];
                let pools = (0..).map(PoolId).zip(&mut spec.pools).filter(|(id, _)| pool.is_none_or(|pool| pool == *id));
                pools.for_each(|(_, in_pool)| in_pool.share = share);
                self.change_budget(at, budget);
            }
            Happening::Close { budget, closed } => {
                self.budgets[budget.index()].closed = closed;
                self.change_budget(at, budget);
            }
            Happening::Move { budget, to, share } => {
                let spec = &mut self.budgets[budget.index()];
                spec.parent = Some(to);
                spec.pools.iter_mut().for_each(|in_pool| in_pool.share = share);
                self.change_budget(at, budget);
            }
        }
    }

    fn change_budget(&mut self, at: Time, budget: BudgetId) {
        let budgets = vec![self.budgets[budget.index()].clone()];
        let changeset = Changeset { based_on: self.budgets_version, author: "scenario".into(), reason: "a happening".into(), budgets };
        self.tell(at, Event::BudgetsChanged(changeset));
    }

    fn host_fails(&mut self, at: Time, node: NodeId) {
        let Some(failure) = self.hosts.draw(node) else { return };
        self.agenda.put(at + failure.next, Next::HostFails(node));
        if self.hosts.down[node.index()] {
            return;
        }
        match failure.drain {
            Some(severity) => self.drain(at, node, severity, "a failure of the scenario".into(), Some(failure.repair)),
            None => self.lose(at, node, Some(failure.repair)),
        }
    }

    fn drain(&mut self, at: Time, node: NodeId, severity: Severity, reason: String, repair: Option<Span>) {
        self.hosts.down[node.index()] = true;
        self.hosts.repair[node.index()] = repair;
        self.tell(at, Event::NodeDrainRequested { node, severity, reason });
    }

    /// A node is gone without a word. Whatever ran there is dead, and certainly so only when it is fenced; no repair is faster.
    fn lose(&mut self, at: Time, node: NodeId, repair: Option<Span>) {
        self.hosts.down[node.index()] = true;
        self.hosts.repair[node.index()] = None;
        let fenced_at = at + self.scenario.model.fence_after;
        for lease in self.leases.values_mut().filter(|lease| !lease.dead && lease.placement.iter().any(|slot| slot.node == node)) {
            lease.dead = true;
            self.agenda.put(fenced_at, Next::Fenced(lease.id));
        }
        if let Some(repair) = repair {
            self.agenda.put((at + repair).max(fenced_at), Next::Repaired(node));
        }
        self.tell(at, Event::NodeLost { node });
    }

    fn fenced(&mut self, at: Time, id: LeaseId) {
        if self.leases.get(&id.workload).is_some_and(|lease| lease.id == id) {
            self.lease_ends(at, id, Exit::Infrastructure);
        }
    }

    fn repairing(&mut self, at: Time, node: NodeId) {
        let Some(repair) = self.hosts.repair[node.index()].take() else { return };
        self.agenda.put(at + repair, Next::Repaired(node));
        self.tell(at, Event::NodeRepairing { node });
    }

    fn ready(&mut self, at: Time, node: NodeId) {
        self.hosts.down[node.index()] = false;
        self.tell(at, Event::NodeReady { node });
    }
}
