//! Stores that are torn, overwritten, mistaken or in use: what is wrong is said, and nothing is changed.

use crate::backups::{copy_as_killed, work, worked};
use crate::dice::Dice;
use crate::lab::Lab;
use std::fs;
use std::path::Path;
use std::process::Command;
use stipend_server::store::{Restored, Store, StoreError, check};

/// All files of a folder with their bytes, but for the lock, which names whoever came last, and an empty log that SQLite may leave.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let files = fs::read_dir(folder).expect("a folder").map(|file| file.expect("a file").path());
    let names = files.map(|path| (path.file_name().expect("a name").to_string_lossy().into_owned(), path));
    let kept = names.filter(|(name, _)| name != "lock" && !name.ends_with("-shm"));
    let read = kept.map(|(name, path)| (name, fs::read(path).expect("its bytes")));
    let mut found: Vec<_> = read.filter(|(name, bytes)| !(name.ends_with("-wal") && bytes.is_empty())).collect();
    found.sort();
    found
}

/// Opening fails and changes nothing; the answer names the file and says what to do.
fn refused(folder: &Path) -> StoreError {
    let before = files(folder);
    let error = Store::open(folder).expect_err("it is refused");
    assert!(files(folder) == before, "something was changed after {error:?}");
    assert!(error.to_string().contains(&*folder.to_string_lossy()) && error.hint().is_some(), "{error}");
    error
}

fn damaged(folder: &Path, what: &str) {
    let error = refused(folder);
    assert!(matches!(&error, StoreError::Damaged { what: found, .. } if found.contains(what)), "{error:?}");
}

/// A store that was used, with its files left as a kill would leave them.
fn killed(turns: u64) -> (tempfile::TempDir, Vec<u64>) {
    let (folder, copy) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let (mut store, mut lab, mut dice) = worked(folder.path(), 60);
    store.snapshot(lab.now, &lab.scheduler).expect("a snapshot");
    let mut digests = vec![lab.scheduler.digest()];
    for _ in 0..turns {
        work(&mut store, &mut lab, &mut dice, 1);
        digests.push(lab.scheduler.digest());
    }
    copy_as_killed(folder.path(), copy.path());
    (copy, digests)
}

fn digest(restored: &Restored) -> u64 {
    restored.scheduler.as_ref().expect("a scheduler").digest()
}

#[test]
fn what_is_no_store_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = folder.path().join("stipend.db");
    fs::write(&database, "hello").expect("written");
    damaged(folder.path(), "it has 5 bytes");
    fs::write(&database, [0xa5; 100_000]).expect("written");
    damaged(folder.path(), "it is no SQLite database");
    fs::remove_file(&database).expect("removed");
    rusqlite::Connection::open(&database).and_then(|conn| conn.execute("CREATE TABLE notes (text)", [])).expect("another's");
    assert!(matches!(refused(folder.path()), StoreError::Foreign { .. }));
}

#[test]
fn what_was_there_and_is_gone_is_missed() {
    let folder = tempfile::tempdir().expect("a folder");
    drop(worked(folder.path(), 3));
    let database = folder.path().join("stipend.db");
    fs::write(&database, "").expect("written");
    damaged(folder.path(), "it is empty, and was not when it was last open");
    fs::remove_file(&database).expect("removed");
    damaged(folder.path(), "it is missing");
}

/// Where no store was, an empty file is a new one; it is no backup of anything, and no other program's.
#[test]
fn what_is_empty_is_called_empty() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["stipend.db", "backup.db"] {
        let file = folder.path().join(name);
        fs::write(&file, "").expect("written");
        let error = check(&file).expect_err("there is nothing in it");
        assert!(matches!(&error, StoreError::Damaged { what, .. } if what == "it is empty"), "{error:?}");
        assert!(error.hint().is_some_and(|hint| hint.contains("backup")), "{error:?}");
    }
    drop(Store::open(folder.path()).expect("a new store"));
}

#[test]
fn a_newer_schema_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    drop(worked(folder.path(), 3));
    let database = folder.path().join("stipend.db");
    rusqlite::Connection::open(&database).and_then(|conn| conn.pragma_update(None, "user_version", 99)).expect("a newer one");
    assert!(matches!(refused(folder.path()), StoreError::Newer { found: 99, .. }));
    assert!(matches!(check(&database), Err(StoreError::Newer { found: 99, .. })));
}

#[test]
fn a_folder_has_one_daemon() {
    let folder = tempfile::tempdir().expect("a folder");
    let (store, _) = Store::open(folder.path()).expect("a store");
    let error = refused(folder.path());
    let pid = i32::try_from(std::process::id()).expect("a pid");
    assert!(matches!(error, StoreError::Locked { pid: Some(found), .. } if found == pid), "{error:?}");
    assert!(error.to_string().ends_with(&format!("is in use by another daemon (process {pid})")), "{error}");
    drop(store);
    Store::open(folder.path()).expect("it is free again");
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    fs::write(&file, "").expect("written");
    assert!(matches!(Store::open(&file.join("data")), Err(StoreError::Folder { .. })), "a file is no folder");
    // Root may write anywhere but to what is mounted to be read.
    let place = folder.path().join("place");
    fs::create_dir(&place).expect("a folder");
    drop(worked(&place, 3));
    let bound = Command::new("mount").arg("--bind").args([&place, &place]).output();
    if !bound.is_ok_and(|output| output.status.success()) {
        return;
    }
    let only = Command::new("mount").args(["-o", "remount,ro,bind"]).arg(&place).status().expect("mount");
    let opened = Store::open(&place);
    let _ = Command::new("umount").arg(&place).status();
    assert!(only.success());
    assert!(matches!(opened, Err(StoreError::Folder { .. })), "{opened:?}");
}

/// The end of the write-ahead log may be torn anywhere: what was whole before it is there.
#[test]
fn a_torn_log_ends_where_it_is_whole() {
    let (folder, digests) = killed(12);
    let log = fs::read(folder.path().join("stipend.db-wal")).expect("a log");
    let mut dice = Dice::new(3);
    let mut seen = std::collections::BTreeSet::new();
    for number in 0..60 {
        let torn = tempfile::tempdir().expect("a folder");
        for file in ["stipend.db", "life"] {
            fs::copy(folder.path().join(file), torn.path().join(file)).expect("copied");
        }
        let length = if number == 0 { log.len() } else { dice.below(log.len() as u64) as usize };
        let mut part = log[..length].to_vec();
        // Garbage may follow, as when a file had grown before its blocks were written.
        part.resize(length + dice.below(3) as usize * 5000, 0);
        fs::write(torn.path().join("stipend.db-wal"), part).expect("written");
        match Store::open(torn.path()) {
            Ok((_, restored)) if restored.scheduler.is_some() => {
                let place = digests.iter().position(|known| *known == digest(&restored));
                // Before the snapshot there were states, too, which are not listed.
                seen.extend(place);
            }
            Ok(_) => {}
            Err(error) => panic!("{length} of {} bytes: {error:?}", log.len()),
        }
    }
    assert!(seen.contains(&(digests.len() - 1)) && seen.len() > 3, "{seen:?}");
}

/// Bytes change anywhere in the file: either they are in nothing that a start reads, or it is said; never is another state taken for the
/// right one.
#[test]
fn a_changed_byte_is_noticed_or_does_not_matter() {
    let (folder, turns) = (tempfile::tempdir().expect("a folder"), 40);
    let (mut store, mut lab, mut dice) = worked(folder.path(), turns);
    store.snapshot(lab.now, &lab.scheduler).expect("a snapshot");
    work(&mut store, &mut lab, &mut dice, 20);
    drop(store);
    let expected = lab.scheduler.digest();
    let whole = fs::read(folder.path().join("stipend.db")).expect("its bytes");
    let (mut noticed, mut open) = (0, 0);
    for _ in 0..150 {
        let changed = tempfile::tempdir().expect("a folder");
        fs::copy(folder.path().join("life"), changed.path().join("life")).expect("copied");
        let mut bytes = whole.clone();
        for _ in 0..=dice.below(20) {
            let place = dice.below(bytes.len() as u64) as usize;
            bytes[place] ^= 1 << dice.below(8);
        }
        fs::write(changed.path().join("stipend.db"), bytes).expect("written");
        let before = files(changed.path());
        match Store::open(changed.path()) {
            Ok((_, restored)) => {
                assert_eq!(digest(&restored), expected);
                open += 1;
            }
            Err(error) => {
                assert!(files(changed.path()) == before, "changed after {error:?}");
                noticed += 1;
            }
        }
    }
    assert!(noticed > 20 && open > 20, "{noticed} noticed, {open} open");
}

#[test]
fn a_truncated_file_is_damaged() {
    let folder = tempfile::tempdir().expect("a folder");
    drop(worked(folder.path(), 40));
    let database = folder.path().join("stipend.db");
    let whole = fs::read(&database).expect("its bytes");
    for part in [1, 2, 3] {
        fs::write(&database, &whole[..whole.len() * part / 4]).expect("written");
        damaged(folder.path(), "malformed");
        assert!(matches!(check(&database), Err(StoreError::Damaged { .. })));
    }
}

/// What each part of the state is guarded by, seen by changing it where SQLite notices nothing.
#[test]
fn each_guard_is_awake() {
    let change = |sql: &str| {
        let folder = tempfile::tempdir().expect("a folder");
        let (mut store, mut lab, mut dice) = worked(folder.path(), 10);
        store.snapshot(lab.now, &lab.scheduler).expect("a snapshot");
        let mut batch = lab.turn(&mut dice);
        batch.digest = Some(lab.scheduler.digest());
        store.commit(&batch).expect("written");
        drop(store);
        let conn = rusqlite::Connection::open(folder.path().join("stipend.db")).expect("a database");
        conn.execute_batch(sql).expect("changed");
        drop(conn);
        folder
    };
    let folder = change("UPDATE journal SET bytes = CAST(bytes || x'00' AS BLOB) WHERE step = (SELECT max(step) FROM journal)");
    damaged(folder.path(), "checksum");
    let folder = change("UPDATE journal SET digest = digest + 1 WHERE step = (SELECT max(step) FROM journal)");
    damaged(folder.path(), "checksum");
    let folder = change("UPDATE journal SET step = step + 1 WHERE step = (SELECT max(step) FROM journal)");
    damaged(folder.path(), "missing in its journal");
    let folder = change("UPDATE snapshots SET digest = digest + 1; DELETE FROM journal WHERE step < 5");
    damaged(folder.path(), "the digest differs");
    let folder = change("INSERT INTO names (kind, number, name) VALUES (9, 1, 'x')");
    damaged(folder.path(), "a name of unknown kind 9");
    let folder = change("INSERT INTO people (budget, json) VALUES (3, '{')");
    damaged(folder.path(), "the people of budget 3 cannot be read");
}

/// A scheduler that does something else with the steps than it did: nobody goes on from there.
#[test]
fn a_replay_to_another_state_is_noticed() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut store, mut lab, mut dice) = worked(folder.path(), 10);
    let mut batch = lab.turn(&mut dice);
    batch.digest = Some(lab.scheduler.digest() ^ 1);
    store.commit(&batch).expect("written");
    work(&mut store, &mut lab, &mut dice, 3);
    drop(store);
    damaged(folder.path(), "the scheduler is not what it was then");
}

/// With two snapshots one may be bad: the one before it and more steps make the same state.
#[test]
fn a_bad_snapshot_can_be_done_without() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut store, mut lab, mut dice) = worked(folder.path(), 10);
    store.snapshot(lab.now, &lab.scheduler).expect("a snapshot");
    for _ in 0..3 {
        work(&mut store, &mut lab, &mut dice, 5);
        store.snapshot(lab.now, &lab.scheduler).expect("a snapshot");
    }
    work(&mut store, &mut lab, &mut dice, 5);
    drop(store);
    let conn = rusqlite::Connection::open(folder.path().join("stipend.db")).expect("a database");
    let count = |table: &str| conn.query_row(&format!("SELECT count(DISTINCT step) FROM {table}"), [], |row| row.get::<_, i64>(0));
    assert_eq!((count("snapshots"), count("snapshot_parts")), (Ok(2), Ok(2)), "older ones are gone");
    assert_eq!(count("journal"), Ok(10), "and the steps that they hold");
    conn.execute("UPDATE snapshot_parts SET bytes = zeroblob(100) WHERE step = (SELECT max(step) FROM snapshots)", []).expect("changed");
    drop(conn);
    assert!(matches!(check(&folder.path().join("stipend.db")), Err(StoreError::Damaged { .. })));
    let (mut store, restored) = Store::open(folder.path()).expect("the one before");
    assert_eq!((digest(&restored), restored.warnings.len()), (lab.scheduler.digest(), 1));
    let mut lab = Lab::restored(restored);
    store.snapshot(lab.now, &lab.scheduler).expect("a snapshot");
    work(&mut store, &mut lab, &mut dice, 5);
    drop(store);
    let (_, restored) = Store::open(folder.path()).expect("a store");
    assert_eq!((digest(&restored), restored.warnings.len()), (lab.scheduler.digest(), 0));
}
