//! The core, which is written down and read back again and again while it runs, in both forms that the daemon's store uses.

use crate::subject::Subject;
use serde::Serialize;
use serde::de::DeserializeOwned;
use stipend_core::entry::Entry;
use stipend_core::event::{Event, Rejection};
use stipend_core::quantity::Time;
use stipend_core::{Plan, Scheduler};

/// A scheduler that is another one after every few steps, and hears of events and plans only what was written down of them.
#[derive(Clone)]
pub(crate) struct Written {
    core: Scheduler,
    steps: u64,
    /// It is written down and read back at every so many steps.
    every: u64,
}

impl Written {
    pub(crate) fn new(at: Time, every: u64) -> Written {
        Written { core: Scheduler::new(at), steps: 0, every }
    }

    fn step(&mut self) {
        self.steps += 1;
        if self.steps.is_multiple_of(self.every) {
            let named = (self.steps / self.every).is_multiple_of(2);
            self.core = if named { by_name(&self.core) } else { in_order(&self.core) };
        }
    }
}

/// As in a journal.
fn in_order<T: Serialize + DeserializeOwned>(value: &T) -> T {
    let bytes = postcard::to_stdvec(value).expect("it can be written");
    postcard::from_bytes(&bytes).expect("it can be read")
}

/// As in a snapshot.
fn by_name<T: Serialize + DeserializeOwned>(value: &T) -> T {
    let bytes = rmp_serde::to_vec_named(value).expect("it can be written");
    rmp_serde::from_slice(&bytes).expect("it can be read")
}

impl Subject for Written {
    type Plan = Plan;
    fn apply(&mut self, at: Time, event: &Event, log: &mut Vec<Entry>) -> Result<(), Rejection> {
        self.step();
        self.core.apply(at, &in_order(event), log)
    }
    fn decide(&mut self, at: Time, log: &mut Vec<Entry>) -> Plan {
        self.step();
        in_order(&self.core.decide(at, log))
    }
    fn plan(&self, at: Time) -> Plan {
        in_order(&self.core.plan(at))
    }
    fn commit(&mut self, plan: &Plan, log: &mut Vec<Entry>) {
        self.step();
        self.core.commit(plan, log);
    }
    fn next_wakeup(&self) -> Option<Time> {
        self.core.next_wakeup()
    }
    fn digest(&self) -> u64 {
        self.core.digest()
    }
}
