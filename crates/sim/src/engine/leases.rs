//! What becomes of a lease: it runs, reaches its steps, is stopped, ends.

use super::Engine;
use super::agenda::Next;
use super::work::{Lease, Step, Work};
use crate::job::Ends;
use stipend_core::event::{Event, Exit};
use stipend_core::id::LeaseId;
use stipend_core::quantity::{Span, Time};
use stipend_core::spec::OnPreempt;

impl Engine<'_, '_> {
    /// The stop signal: the processes leave within the grace, unless they ignore it.
    pub(super) fn stop(&mut self, at: Time, id: LeaseId, grace: Span) {
        let Some(lease) = self.leases.get_mut(&id.workload).filter(|lease| lease.id == id && !lease.dead) else { return };
        lease.stopping = true;
        let leaves = self.scenario.model.exit_after.map_or(grace, |after| after.min(grace));
        let leaves = self.stuck.get(&id.workload).map_or(leaves, |&lasts| lasts.max(leaves));
        self.agenda.put(at + leaves, Next::Exit(id));
    }

    /// A lease is present, running on living nodes, and no later one of its workload.
    pub(super) fn alive(&mut self, id: LeaseId) -> Option<(&mut Lease, &mut Work)> {
        let lease = self.leases.get_mut(&id.workload).filter(|lease| lease.id == id && !lease.dead)?;
        Some((lease, &mut self.works[id.workload.index()]))
    }

    pub(super) fn lease_runs(&mut self, at: Time, id: LeaseId) {
        let restart_cost = self.scenario.model.restart_cost;
        let Some((lease, work)) = self.alive(id) else { return };
        let first = lease.run(at, work, restart_cost);
        let input = work.input;
        if let Some((every, _)) = input {
            self.agenda.put(at + every, Next::Input(id));
        }
        self.agenda.put(first, Next::Progress(id));
        self.tell(at, Event::LeaseRunning { lease: id });
    }

    /// Somebody uses a session, and will again while it runs, until the user is away for good.
    pub(super) fn session_is_used(&mut self, at: Time, id: LeaseId) {
        let Some((_, work)) = self.alive(id) else { return };
        let Some((every, until)) = work.input.filter(|(_, until)| at <= *until) else { return };
        if at + every <= until {
            self.agenda.put(at + every, Next::Input(id));
        }
        self.tell(at, Event::Input { lease: id });
    }

    pub(super) fn lease_steps(&mut self, at: Time, id: LeaseId) {
        let Some((lease, work)) = self.alive(id) else { return };
        let (step, gained, next) = lease.step(at, work);
        let (gained, ends, stopping) = (work.worked(gained), work.ends, lease.stopping);
        if gained.0 > 0 {
            self.observers.iter_mut().for_each(|observer| observer.banked(at, id, gained));
        }
        match step {
            Step::Checkpoint => {
                self.agenda.put(next, Next::Progress(id));
                self.tell(at, Event::Checkpointed { lease: id });
            }
            Step::Done => match ends {
                Ends::Completed if stopping => self.lease_ends(at, id, Exit::Done),
                Ends::Completed => self.lease_ends(at, id, Exit::Completed),
                Ends::Failed => self.lease_ends(at, id, Exit::Failed),
                Ends::Cancelled => self.tell(at, Event::Cancelled { workload: id.workload }),
            },
        }
    }

    pub(super) fn lease_ends(&mut self, at: Time, id: LeaseId, exit: Exit) {
        let Some(lease) = self.leases.remove(&id.workload) else { return };
        let work = &mut self.works[id.workload.index()];
        let lost = lease.lost(at, work);
        if work.on_preempt == OnPreempt::Resume {
            work.banked = work.banked + lease.banked;
        }
        if lost.0 > 0 {
            self.observers.iter_mut().for_each(|observer| observer.lost(at, id, lease.occupancy, lost));
        }
        self.tell(at, Event::LeaseEnded { lease: id, exit });
    }
}
