//! Old history goes where it shall; what has not ended, and what the scheduler needs, stays.

use crate::backups::worked;
use crate::dice::Dice;
use crate::invent;
use stipend_server::store::{Batch, Line, LineFilter, Made, Store, WorkloadRow};
use stipend_server::wire::workload::{State, Workload};

/// Ten workloads: the even ones have ended, each a second after the one before; three lines about each, and three about none.
fn history(first_line: u64) -> Batch {
    let mut dice = Dice::new(1);
    let mut batch = Batch::default();
    for id in 0..10 {
        let (state, ended_ms) = if id % 2 == 0 { (State::Completed, Some(i64::from(id) * 1000)) } else { (State::Running, None) };
        let view = Workload { state, ended_ms, ..invent::workload(&mut dice, id) };
        batch.workloads.push(WorkloadRow { view, submission: Some(invent::submission(&mut dice)) });
        batch.keys.push(("ann".into(), format!("k{id}"), Made { first: id, last: id, body: None }));
    }
    for place in 0..33_u64 {
        let workload = (place < 30).then_some((place / 3) as u32);
        let line = Line { seq: first_line + place, t_ms: 0, event: "x".into(), workload, json: "{}".into() };
        batch.lines.push(line);
    }
    batch
}

#[test]
fn what_ended_long_ago_goes_with_its_lines() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut store, lab, _) = worked(folder.path(), 20);
    let digest = lab.scheduler.digest();
    let last = store.reader().expect("a reader").lines(&LineFilter::default(), u32::MAX).expect("lines").len() as u64;
    store.commit(&history(last + 1)).expect("written");
    assert!(!store.prune(5000).expect("pruned"));
    let reader = store.reader().expect("a reader");
    for id in 0..10 {
        let stays = id % 2 == 1 || id > 4;
        assert_eq!(reader.workload(id).expect("read").is_some(), stays, "{id}");
        let lines = reader.lines(&LineFilter { workload: Some(id), ..LineFilter::default() }, 100).expect("lines").len();
        assert_eq!(lines, if stays { 3 } else { 0 }, "{id}");
        // Keys go from the oldest on, up to the first workload that stays.
        assert_eq!(reader.key("ann", &format!("k{id}")).expect("read").is_some(), id > 0, "{id}");
    }
    // Of those about none the last stays.
    let rest = reader.lines(&LineFilter::default(), u32::MAX).expect("lines");
    assert_eq!(rest.len(), 7 * 3 + 1 + rest.iter().filter(|line| line.t_ms >= 5000).count());
    assert_eq!(rest.last().map(|line| line.seq), Some(last + 33));
    drop((reader, store));
    let (_, restored) = Store::open(folder.path()).unwrap_or_else(|error| panic!("{error:?}"));
    assert_eq!((restored.last_line, restored.scheduler.expect("a scheduler").digest()), (last + 33, digest));
}
