//! What waits for other work: dependencies, and arrays that run a few at a time.

use super::Service;
use super::directory::moment;
use super::live::ARRAY;
use super::losses::LOSSES_MAX;
use crate::wire::workload::{State, Workload};
use stipend_core::event::Event;
use stipend_core::id::WorkloadId;
use stipend_core::quantity::Time;

impl Service {
    /// Lets go on what waited for the work that has ended, or ends it, too.
    pub(super) fn open_gates(&mut self) {
        for id in std::mem::take(&mut self.over) {
            let Some(ended) = self.live.get(id).filter(|live| live.is_over) else { continue };
            let (state, array) = (ended.view.state, ended.view.array);
            for dependent in self.live.take_dependents(id) {
                self.predecessor_ended(dependent, id, state);
            }
            if let Some(array) = array.filter(|array| array.at_most.is_some()) {
                for next in self.live.next_of_array(array.array) {
                    self.tell_quietly(Event::Released { workload: WorkloadId(next) });
                }
            }
        }
    }

    fn predecessor_ended(&mut self, dependent: u32, before: u32, state: State) {
        let Some(live) = self.live.change(dependent) else { return };
        live.view.after.retain(|id| *id != before);
        if state != State::Completed {
            let why = format!("w{before}, which it waited for, did not complete");
            self.tell_quietly(Event::Stopped { workload: WorkloadId(dependent), reason: why });
            return;
        }
        self.release_if_free(dependent);
    }

    /// Lets a held workload go on if nothing holds it any more, and says what still does.
    pub(super) fn release_if_free(&mut self, id: u32) {
        let Some(live) = self.live.change(id).filter(|live| live.view.state == State::Held) else { return };
        let view = &mut live.view;
        view.why = gate(view).or_else(|| view.array.and_then(|array| array.at_most).map(|_| ARRAY.into()));
        let (waits, array) = (view.why.is_some(), view.array);
        let free = match (waits, array) {
            (false, _) => true,
            (true, Some(array)) => self.live.next_of_array(array.array).contains(&id),
            (true, None) => false,
        };
        if free {
            self.tell_quietly(Event::Released { workload: WorkloadId(id) });
        }
    }
}

/// What holds a workload, beside its array.
pub(super) fn gate(view: &Workload) -> Option<String> {
    let (id, losses) = (view.id, view.losses);
    if let Some(user) = &view.held_by {
        return Some(format!("{user} holds it"));
    }
    if losses >= LOSSES_MAX {
        return Some(format!(
            "the infrastructure lost its last {losses} leases within minutes of their start, as when a workload ends its own \
             supervisor: stipend logs w{id} shows how far it came, stipend release w{id} lets it try again"
        ));
    }
    if let Some(at) = view.retry_ms {
        return Some(format!(
            "the infrastructure lost its last {losses} leases soon after their start; it tries again at {}",
            moment(Time(at))
        ));
    }
    let names: Vec<String> = view.after.iter().map(|id| format!("w{id}")).collect();
    (!names.is_empty()).then(|| format!("waits for {}", names.join(", ")))
}
