//! Backups are whole, are found out to be backups, and can be read by whoever comes.

use crate::dice::Dice;
use crate::lab::Lab;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use stipend_server::store::{Reader, Store, StoreError, check, restore};

/// A store with so many turns of a lab in it.
pub(crate) fn worked(folder: &Path, turns: u64) -> (Store, Lab, Dice) {
    let (mut store, _) = Store::open(folder).unwrap_or_else(|error| panic!("{error:?}"));
    let (mut lab, batch) = Lab::new();
    store.commit(&batch).expect("written");
    let mut dice = Dice::new(turns);
    work(&mut store, &mut lab, &mut dice, turns);
    (store, lab, dice)
}

pub(crate) fn work(store: &mut Store, lab: &mut Lab, dice: &mut Dice, turns: u64) {
    for _ in 0..turns {
        store.commit(&lab.turn(dice)).expect("written");
    }
}

#[test]
fn a_backup_is_what_was_there_and_begins_another_epoch() {
    let (folder, other) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let (mut store, mut lab, mut dice) = worked(folder.path(), 30);
    let digest = lab.scheduler.digest();
    let file = other.path().join("monday.db");
    store.reader().expect("a reader").backup(&file).expect("a backup");
    let again = store.reader().expect("a reader").backup(&file);
    assert!(matches!(again, Err(StoreError::Folder { .. })), "it is there already");
    check(&file).expect("a good one");
    work(&mut store, &mut lab, &mut dice, 10);
    assert!(matches!(restore(folder.path(), &file), Err(StoreError::Locked { .. })), "the daemon works");
    drop(store);
    let kept = restore(folder.path(), &file).expect("restored").expect("there was a store").kept;
    check(&kept).expect("the one before is whole");
    let (store, restored) = Store::open(folder.path()).expect("the backup");
    assert_eq!(restored.epoch, 2);
    assert_eq!(restored.scheduler.expect("a scheduler").digest(), digest);
    drop(store);
    let (_, restored) = Store::open(folder.path()).expect("the backup, later");
    assert_eq!(restored.epoch, 2, "it was restored once");
}

/// A killed daemon leaves its log beside the file, which has nothing to do with a backup that takes the file's place.
#[test]
fn a_backup_put_in_place_by_hand_is_not_mixed_with_what_was_there() {
    let (folder, killed) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let (mut store, mut lab, mut dice) = worked(folder.path(), 20);
    let digest = lab.scheduler.digest();
    let file = killed.path().join("backup");
    store.reader().expect("a reader").backup(&file).expect("a backup");
    work(&mut store, &mut lab, &mut dice, 200);
    copy_as_killed(folder.path(), killed.path());
    drop(store);
    assert!(fs::metadata(killed.path().join("stipend.db-wal")).expect("a log").len() > 100_000);
    fs::copy(&file, killed.path().join("stipend.db")).expect("put in place");
    let (store, restored) = Store::open(killed.path()).unwrap_or_else(|error| panic!("{error:?}"));
    assert_eq!((restored.epoch, restored.scheduler.expect("a scheduler").digest()), (2, digest));
    drop(store);
    check(&killed.path().join("stipend.db")).expect("whole");
}

/// The files of an open store as a kill would leave them.
pub(crate) fn copy_as_killed(from: &Path, to: &Path) {
    for file in ["stipend.db", "stipend.db-wal", "life"] {
        fs::copy(from.join(file), to.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
    }
}

#[test]
fn backups_under_load_are_whole() {
    let (folder, other) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let (mut store, mut lab, mut dice) = worked(folder.path(), 10);
    let (reader, stop) = (Reader::open(folder.path()).expect("a reader"), AtomicBool::new(false));
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut digests = Vec::new();
            while !stop.load(Ordering::Relaxed) {
                digests.push(lab.scheduler.digest());
                work(&mut store, &mut lab, &mut dice, 1);
                if lab.turns() % 20 == 0 {
                    store.snapshot_aside(lab.now, &lab.scheduler).expect("a snapshot");
                }
            }
            digests.push(lab.scheduler.digest());
            digests
        });
        let files: Vec<_> = (0..6).map(|number| other.path().join(format!("backup-{number}"))).collect();
        let made: Vec<_> = files.iter().map(|file| reader.backup(file)).collect();
        stop.store(true, Ordering::Relaxed);
        let digests = writer.join().expect("the writer");
        for (file, made) in files.iter().zip(made) {
            made.unwrap_or_else(|error| panic!("{error:?}"));
            let place = tempfile::tempdir().expect("a folder");
            assert!(restore(place.path(), file).expect("restored").is_none());
            let (_, restored) = Store::open(place.path()).unwrap_or_else(|error| panic!("{error:?}"));
            assert!(digests.contains(&restored.scheduler.expect("a scheduler").digest()), "a state that never was");
        }
    });
}

/// Of another program's store the last snapshot is read, and its steps are not: a clean stop or a backup leaves none.
#[test]
fn another_program_reads_what_was_written_down() {
    let (folder, other) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let by_another = |file: &Path| {
        let conn = rusqlite::Connection::open(file).expect("a database");
        conn.execute("UPDATE programs SET version = '0.0.9', core = 'older' || id WHERE version <> '0.0.9'", []).expect("changed");
    };
    let (mut store, lab, mut dice) = worked(folder.path(), 25);
    let digest = lab.scheduler.digest();
    let file = other.path().join("backup");
    store.reader().expect("a reader").backup(&file).expect("a backup");
    by_another(&file);
    restore(other.path(), &file).expect("restored");
    let (_, restored) = Store::open(other.path()).expect("a backup has a snapshot at its end");
    assert_eq!(restored.scheduler.expect("a scheduler").digest(), digest);

    store.snapshot(lab.now, &lab.scheduler).expect("a snapshot");
    drop(store);
    let database = folder.path().join("stipend.db");
    by_another(&database);
    let (mut store, restored) = Store::open(folder.path()).expect("a clean stop has a snapshot at its end");
    let mut lab = Lab::restored(restored);
    assert_eq!(lab.scheduler.digest(), digest);
    work(&mut store, &mut lab, &mut dice, 5);
    drop(store);
    let (store, restored) = Store::open(folder.path()).expect("own steps after another's snapshot");
    assert_eq!(restored.scheduler.expect("a scheduler").digest(), lab.scheduler.digest());
    drop(store);

    by_another(&database);
    let error = Store::open(folder.path()).expect_err("another's steps");
    assert!(matches!(&error, StoreError::OtherCore { program, .. } if program == "stipend 0.0.9 (core older2)"), "{error:?}");
    assert!(error.to_string().contains("stipend 0.0.9 (core older2)"), "{error}");
}
