//! The workloads that have not ended, as lists show them, and how the scheduler's entries change that.

use crate::config::RunAs;
use crate::driver::Launch;
use crate::record::Program;
use crate::wire::workload::{State, Submission, Workload};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use stipend_core::id::{LeaseId, WorkloadId};

/// A workload that has not ended.
pub(crate) struct Live {
    pub(crate) view: Workload,
    /// As submitted; read from the store when it is needed after a restart.
    pub(crate) submission: Option<Arc<Submission>>,
    /// Of the present attempt, so that it can be commanded again.
    pub(crate) launch: Option<Box<Launch>>,
    /// The last attempt's end was told and nothing says yet that it goes on.
    pub(crate) is_over: bool,
    /// The attempt that a plan told to leave, and why is in the view.
    pub(crate) leaving: Option<u32>,
    /// Who cancels it.
    pub(crate) cancelled_by: Option<String>,
}

impl Live {
    pub(crate) fn new(view: Workload, submission: Option<Arc<Submission>>) -> Live {
        Live { view, submission, launch: None, is_over: false, leaving: None, cancelled_by: None }
    }

    /// Its present attempt.
    pub(crate) fn lease(&self) -> LeaseId {
        LeaseId { workload: WorkloadId(self.view.id), attempt: self.view.attempts }
    }
}

/// All of them, with the indexes that the gates need.
#[derive(Default)]
pub(crate) struct LiveTable {
    by_id: BTreeMap<u32, Live>,
    /// Who waits for whom.
    dependents: BTreeMap<u32, BTreeSet<u32>>,
    /// The elements of arrays that run a few at a time.
    arrays: BTreeMap<u32, BTreeSet<u32>>,
    /// How many of each user.
    of_users: BTreeMap<String, usize>,
    /// Changed since the last turn.
    changed: BTreeSet<u32>,
}

impl LiveTable {
    pub(crate) fn insert(&mut self, live: Live) {
        let id = live.view.id;
        for before in &live.view.after {
            self.dependents.entry(*before).or_default().insert(id);
        }
        if let Some(array) = live.view.array.filter(|array| array.at_most.is_some()) {
            self.arrays.entry(array.array).or_default().insert(id);
        }
        *self.of_users.entry(live.view.user.clone()).or_default() += 1;
        self.changed.insert(id);
        self.by_id.insert(id, live);
    }

    /// As it was restored: nothing changed.
    pub(crate) fn restore(&mut self, view: Workload) {
        let id = view.id;
        self.insert(Live::new(view, None));
        self.changed.remove(&id);
    }

    pub(crate) fn get(&self, id: u32) -> Option<&Live> {
        self.by_id.get(&id)
    }

    /// To change it: its row is written with this turn.
    pub(crate) fn change(&mut self, id: u32) -> Option<&mut Live> {
        let live = self.by_id.get_mut(&id)?;
        self.changed.insert(id);
        Some(live)
    }

    /// Budgets have other paths now.
    pub(crate) fn move_budgets(&mut self, moved: &BTreeMap<&String, &String>) {
        for (id, live) in &mut self.by_id {
            if let Some(to) = moved.get(&live.view.budget) {
                live.view.budget = (*to).clone();
                self.changed.insert(*id);
            }
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Live> {
        self.by_id.values()
    }

    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(crate) fn of_user(&self, user: &str) -> usize {
        self.of_users.get(user).copied().unwrap_or(0)
    }

    /// What changed since the last call; what is over leaves the table.
    pub(crate) fn take_changed(&mut self) -> Vec<Workload> {
        let changed = std::mem::take(&mut self.changed);
        changed.into_iter().filter_map(|id| Some(self.leave_if_over(self.by_id.get(&id)?.view.clone()))).collect()
    }

    fn leave_if_over(&mut self, view: Workload) -> Workload {
        if !view.state.is_over() {
            return view;
        }
        self.by_id.remove(&view.id);
        if let Some(count) = self.of_users.get_mut(&view.user) {
            *count -= 1;
            if *count == 0 {
                self.of_users.remove(&view.user);
            }
        }
        if let Some(elements) = view.array.and_then(|array| self.arrays.get_mut(&array.array)) {
            elements.remove(&view.id);
        }
        view
    }

    /// Who waits for this one; asked once, when it has ended.
    pub(crate) fn take_dependents(&mut self, id: u32) -> BTreeSet<u32> {
        self.dependents.remove(&id).unwrap_or_default()
    }

    /// The elements of an array that may go on now: the first ones that wait for their array, as many as are missing.
    pub(crate) fn next_of_array(&self, array: u32) -> Vec<u32> {
        let Some(elements) = self.arrays.get(&array) else { return Vec::new() };
        let views = || elements.iter().map(|id| &self.by_id[id].view).filter(|view| !view.state.is_over());
        let at_most = views().find_map(|view| view.array?.at_most).unwrap_or(u32::MAX) as usize;
        let going = views().filter(|view| !waits_for_array(view)).count();
        views().filter(|view| waits_for_array(view)).take(at_most.saturating_sub(going)).map(|view| view.id).collect()
    }
}

/// What is said of an element that waits for others of its array.
pub(crate) const ARRAY: &str = "others of its array go first";

fn waits_for_array(view: &Workload) -> bool {
    view.state == State::Held && view.after.is_empty() && view.held_by.is_none() && view.why.as_deref() == Some(ARRAY)
}

/// What a submission says to run.
pub(crate) fn program(submission: &Submission, view: &Workload, run_as: RunAs) -> Program {
    let mut env = submission.env.clone();
    if let Some(array) = view.array {
        env.insert("STIPEND_ARRAY".into(), array.array.to_string());
        env.insert("STIPEND_ARRAY_INDEX".into(), array.index.to_string());
    }
    Program {
        name: view.name.clone(),
        command: submission.command.clone(),
        workdir: submission.workdir.clone().unwrap_or_else(|| "/".into()),
        env,
        checkpoint_command: submission.checkpoint_command.clone(),
        restore_command: submission.restore_command.clone(),
        run_as: (run_as == RunAs::Submitter).then(|| view.user.clone()),
    }
}
