//! The scheduler through whole scenarios, with a store that is closed, opened, and given snapshots all the time: nothing of it shows.

use crate::dice::Dice;
use std::path::{Path, PathBuf};
use stipend_core::Scheduler;
use stipend_core::entry::Entry;
use stipend_core::event::{Event, Rejection};
use stipend_core::quantity::Time;
use stipend_server::store::{Batch, Step, Store};
use stipend_sim::engine;
use stipend_sim::policy::Policy;
use stipend_sim::scenario::Scenario;

/// A scheduler that lives in a store.
struct Stored<'a> {
    folder: &'a Path,
    store: Option<Store>,
    scheduler: Scheduler,
    batch: Batch,
    dice: Dice,
    log: Vec<String>,
    reopened: u32,
}

impl Stored<'_> {
    fn commit(&mut self) {
        let digest = self.dice.maybe(|_| self.scheduler.digest());
        let batch = std::mem::take(&mut self.batch);
        let store = self.store.as_mut().expect("open");
        store.commit(&Batch { digest, ..batch }).expect("written");
        match self.dice.below(6) {
            0 => store.snapshot(self.scheduler.now(), &self.scheduler).expect("a snapshot"),
            1 => store.snapshot_aside(self.scheduler.now(), &self.scheduler).expect("a snapshot"),
            _ => {}
        }
    }

    fn reopen(&mut self) {
        self.store = None;
        let (store, restored) = Store::open(self.folder).unwrap_or_else(|error| panic!("{error:?}"));
        assert!(restored.warnings.is_empty(), "{:?}", restored.warnings);
        let scheduler = restored.scheduler.expect("a scheduler");
        assert_eq!(scheduler.digest(), self.scheduler.digest());
        (self.store, self.scheduler) = (Some(store), scheduler);
        self.reopened += 1;
    }
}

impl Policy for Stored<'_> {
    fn apply(&mut self, at: Time, event: Event, log: &mut Vec<Entry>) -> Result<(), Rejection> {
        let from = log.len();
        self.scheduler.apply(at, &event, log)?;
        self.log.extend(log[from..].iter().map(|entry| format!("{entry:?}")));
        self.batch.steps.push(Step::Event { at, event });
        Ok(())
    }

    fn decide(&mut self, at: Time, log: &mut Vec<Entry>) {
        let from = log.len();
        let plan = self.scheduler.decide(at, log);
        self.log.extend(log[from..].iter().map(|entry| format!("{entry:?}")));
        self.batch.steps.push(Step::Plan { at, plan });
        if self.dice.once_in(8) {
            self.commit();
            if self.dice.once_in(4) {
                self.reopen();
            }
        }
    }

    fn next_wakeup(&self) -> Option<Time> {
        self.scheduler.next_wakeup()
    }
}

/// The same without a store.
struct Plain {
    scheduler: Scheduler,
    log: Vec<String>,
}

impl Policy for Plain {
    fn apply(&mut self, at: Time, event: Event, log: &mut Vec<Entry>) -> Result<(), Rejection> {
        let from = log.len();
        self.scheduler.apply(at, &event, log)?;
        self.log.extend(log[from..].iter().map(|entry| format!("{entry:?}")));
        Ok(())
    }

    fn decide(&mut self, at: Time, log: &mut Vec<Entry>) {
        let from = log.len();
        self.scheduler.decide(at, log);
        self.log.extend(log[from..].iter().map(|entry| format!("{entry:?}")));
    }

    fn next_wakeup(&self) -> Option<Time> {
        self.scheduler.next_wakeup()
    }
}

fn scenarios() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let files = ["rules", "reports"].into_iter().flat_map(|folder| std::fs::read_dir(root.join(folder)).expect("a folder"));
    let paths = files.map(|file| file.expect("a file").path());
    let mut found: Vec<PathBuf> =
        paths.filter(|path| path.to_string_lossy().ends_with(".toml") && !path.to_string_lossy().ends_with(".expect.toml")).collect();
    found.push(root.join("tiny.toml"));
    found.sort();
    found
}

#[test]
fn scenarios_go_on_alike_through_a_store() {
    let mut reopened = 0;
    for (number, path) in scenarios().iter().enumerate() {
        let scenario = Scenario::load(path, &[]).unwrap_or_else(|error| panic!("{error}"));
        let mut plain = Plain { scheduler: Scheduler::new(Time(0)), log: Vec::new() };
        engine::run(&scenario, 1, &mut plain, &mut [], None);
        let folder = tempfile::tempdir().expect("a folder");
        let (store, _) = Store::open(folder.path()).expect("a new store");
        let mut stored = Stored {
            folder: folder.path(),
            store: Some(store),
            scheduler: Scheduler::new(Time(0)),
            batch: Batch::default(),
            dice: Dice::new(number as u64),
            log: Vec::new(),
            reopened: 0,
        };
        engine::run(&scenario, 1, &mut stored, &mut [], None);
        stored.commit();
        stored.reopen();
        assert!(stored.log == plain.log, "{}: another history", path.display());
        assert_eq!(stored.scheduler.digest(), plain.scheduler.digest(), "{}", path.display());
        reopened += stored.reopened;
    }
    assert!(reopened > 200, "opened again only {reopened} times");
}
