//! A store is made, written, closed, and opened again.

use stipend_core::Scheduler;
use stipend_core::event::Event;
use stipend_core::id::PoolId;
use stipend_core::knobs::Knobs;
use stipend_core::quantity::Time;
use stipend_server::store::{Batch, Step, Store};

#[test]
fn steps_come_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut store, restored) = Store::open(folder.path()).expect("a new store");
    assert!(restored.scheduler.is_none());
    assert_eq!(restored.epoch, 1);
    let mut scheduler = Scheduler::new(Time(5));
    let event = Event::KnobsSet { pool: PoolId(0), knobs: Box::new(Knobs::default()) };
    scheduler.apply(Time(7), &event, &mut Vec::new()).expect("a pool");
    let plan = scheduler.decide(Time(8), &mut Vec::new());
    let steps = vec![Step::Event { at: Time(7), event }, Step::Plan { at: Time(8), plan }];
    store.commit(&Batch { steps, digest: Some(scheduler.digest()), ..Batch::default() }).expect("written");
    drop(store);
    let (mut store, restored) = Store::open(folder.path()).expect("the same store");
    assert_eq!(restored.epoch, 1);
    assert_eq!(restored.last_written, Some(Time(8)));
    assert_eq!(restored.scheduler.expect("a scheduler").digest(), scheduler.digest());
    store.snapshot(Time(9), &scheduler).expect("a snapshot");
    drop(store);
    let (_, restored) = Store::open(folder.path()).expect("the same store");
    assert_eq!(restored.last_written, Some(Time(9)));
    assert_eq!(restored.scheduler.expect("a scheduler").digest(), scheduler.digest());
}
