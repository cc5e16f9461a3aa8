//! The daemon is killed at random instants while it is used in every way, and with it sometimes what carries the work, or everything.
//! Afterwards all that was accepted is there once, nothing ran twice, usage is exact, and the auditor finds no fault in the log.
//!
//! `STIPEND_KILLS` says how often (default 25), `STIPEND_SEED` in which order.

mod daemon;
mod dice;
mod full;
mod load;
#[path = "../lab/process.rs"]
mod process;
mod verdict;

use daemon::Daemon;
use dice::Dice;
use load::Load;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;

/// Sends the users home; at once where the daemon will never answer again.
struct End<'a>(&'a AtomicBool, &'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        self.1.store(std::thread::panicking(), Ordering::Relaxed);
    }
}

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| text.parse().expect("a number"))
}

#[test]
fn nothing_is_lost_or_done_twice_however_often_it_is_killed() {
    let (kills, seed) = (number("STIPEND_KILLS", 25), number("STIPEND_SEED", 1));
    println!("STIPEND_KILLS={kills} STIPEND_SEED={seed}");
    let mut daemon = Daemon::start("killed");
    let (load, stop, lost) = (Load::new(&daemon), AtomicBool::new(false), AtomicBool::new(false));
    let mut dice = Dice::new(seed);
    std::thread::scope(|scope| {
        for user in 0..4 {
            let (load, stop, lost, dice) = (&load, &stop, &lost, dice.other());
            scope.spawn(move || load.run(user, dice, (stop, lost)));
        }
        let _end = End(&stop, &lost);
        for kill in 0..kills {
            // Now and then it does not even come to answer before it is killed again.
            if kill % 4 != 0 {
                daemon.until_it_answers();
            }
            sleep(Duration::from_millis(dice.upto(1500)));
            match dice.upto(10) {
                0 => daemon.reboot(),
                1 | 2 => {
                    daemon.kill_supervisors(|_| dice.upto(3) == 0);
                    daemon.kill();
                }
                _ => daemon.kill(),
            }
            daemon.serve();
        }
    });
    daemon.until_it_answers();
    verdict::all_ends(&daemon);
    verdict::accepted_once(&daemon, &load);
    verdict::ran_once(&daemon, &load);
    verdict::audited(&daemon);
    println!("{}", load.summary());
}
