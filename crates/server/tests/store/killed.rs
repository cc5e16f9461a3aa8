//! A writer that is killed at any moment: what it was told is on disk is there, and nothing is half there.

use crate::dice::Dice;
use crate::lab::Lab;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use stipend_server::store::Store;

/// Names the folder for the child.
const FOLDER: &str = "STIPEND_STORE_CHILD";

/// The child: works until it is killed, says before each batch which state comes, and after it that it is on disk.
#[test]
#[ignore = "a part of another test"]
fn child() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let (mut store, restored) = Store::open(Path::new(&folder)).expect("a store");
    let mut out = std::io::stdout();
    let mut say = |text: String| writeln!(out, "{text}").and_then(|()| out.flush()).expect("somebody listens");
    let (mut lab, first) = match restored.scheduler {
        Some(_) => (Lab::restored(restored), None),
        None => {
            let (lab, batch) = Lab::new();
            (lab, Some(batch))
        }
    };
    let mut dice = Dice::new(lab.turns() + 1000);
    let mut batch = first.unwrap_or_else(|| lab.turn(&mut dice));
    loop {
        say(format!("next {} {}", lab.turns(), lab.scheduler.digest()));
        store.commit(&batch).expect("written");
        say(format!("done {}", lab.turns()));
        match dice.below(12) {
            0 => store.snapshot(lab.now, &lab.scheduler).expect("a snapshot"),
            1 => store.snapshot_aside(lab.now, &lab.scheduler).expect("a snapshot"),
            _ => {}
        }
        batch = lab.turn(&mut dice);
    }
}

pub(crate) fn spawn(mut command: Command, folder: &Path) -> Child {
    command.env(FOLDER, folder).stdout(Stdio::piped()).spawn().expect("a child")
}

/// This very program as the child.
pub(crate) fn arguments() -> [&'static str; 4] {
    ["--exact", "killed::child", "--ignored", "--nocapture"]
}

/// What a child said: the states by turn, and the last turn that is on disk.
#[derive(Default)]
pub(crate) struct Said {
    pub(crate) digests: BTreeMap<u64, u64>,
    pub(crate) done: u64,
}

impl Said {
    /// One line of it; whether it says that something is on disk.
    pub(crate) fn hear(&mut self, line: &str) -> bool {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["next", turn, digest] => _ = self.digests.insert(turn.parse().expect("a number"), digest.parse().expect("a number")),
            ["done", turn] => self.done = turn.parse().expect("a number"),
            _ => {}
        }
        words.first() == Some(&"done")
    }

    /// The store holds what was done, perhaps the next, and nothing else.
    pub(crate) fn check(&self, folder: &Path) -> u64 {
        let (store, restored) = Store::open(folder).unwrap_or_else(|error| panic!("{error:?}"));
        assert!(restored.warnings.is_empty(), "{:?}", restored.warnings);
        assert_eq!(restored.epoch, 1, "nothing was restored from a backup");
        let Some(_) = &restored.scheduler else {
            assert_eq!(self.done, 0);
            return 0;
        };
        let lines = store.reader().expect("a reader").lines(&Default::default(), u32::MAX).expect("lines");
        assert_eq!(lines.len() as u64, restored.last_line, "the log has no gap");
        let lab = Lab::restored(restored);
        assert!((self.done..=self.done + 1).contains(&lab.turns()), "{} is there, {} was done", lab.turns(), self.done);
        assert_eq!(self.digests.get(&lab.turns()), Some(&lab.scheduler.digest()), "turn {}", lab.turns());
        lab.turns()
    }
}

#[test]
fn whatever_was_done_is_there_after_a_kill() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut dice = Dice::new(7);
    let mut said = Said::default();
    for _ in 0..40 {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.args(arguments());
        let mut child = spawn(command, folder.path());
        let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
        // Somewhere after so many batches; at times before the first.
        let (mut left, mut line) = (dice.below(30), String::new());
        while left > 0 && out.read_line(&mut line).expect("text") > 0 {
            left -= u64::from(said.hear(&line));
            line.clear();
        }
        std::thread::sleep(Duration::from_micros(dice.below(4000)));
        child.kill().expect("SIGKILL");
        child.wait().expect("it is gone");
        for line in out.lines() {
            said.hear(&line.expect("text"));
        }
        said.done = said.check(folder.path());
    }
    assert!(said.done > 100, "only {} turns in all", said.done);
}
