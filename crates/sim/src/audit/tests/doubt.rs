use super::script::{HOUR, Script};
use crate::audit::Law;
use crate::log::line::*;

/// Until when a doubt lasts that begins at 12 h: the scripts' lookback is a week.
const UNTIL: i64 = (12 + 7 * 24) * HOUR;

/// `x` of lab/a says that it begins anew. Its first attempt runs for `first` hours and is lost with its node; its
/// second completes at 12 h, and the log says until when it is doubted, if it says so.
fn story(first: i64, said: Option<i64>) -> Vec<Law> {
    let mut s = Script::new(&["n0"]);
    s.submit_as("x", "lab/a", 8, HOUR, |line| line.on_preempt = OnPreempt::Restart).start("x", 1, &[("n0", 0..8)]).running("x", 1, HOUR);
    s.at(first * HOUR).node("n0", |line| (line.state, line.severity) = (State::Lost, None));
    s.ended("x", 1, Outcome::NodeLost).charged("x", 1, "lab/a", ChargeKind::Run, 0, 8).requeued("x").node("n0", |_| {});
    s.start("x", 2, &[("n0", 0..8)]).running("x", 2, (first + 1) * HOUR);
    s.at(12 * HOUR).ended("x", 2, Outcome::Completed);
    if let Some(until_ms) = said {
        s.add(LogEvent::Doubted(Doubted { workload: "x".into(), budget: "lab/a".into(), until_ms }));
    }
    s.charged("x", 2, "lab/a", ChargeKind::Run, first * HOUR, 8).end(13 * HOUR, &[]);
    s.report().violations.iter().map(|violation| violation.law).filter(|law| *law == Law::Doubt).collect()
}

#[test]
fn a_doubt_is_said_when_a_completion_shows_it_for_a_lookback_and_only_then() {
    assert_eq!(story(9, Some(UNTIL)), [], "nine hours, then three");
    assert_eq!(story(8, None), [], "eight hours, then four: half is not less than half");
    assert_eq!(story(9, None), [Law::Doubt], "it is not said");
    assert_eq!(story(8, Some(UNTIL)), [Law::Doubt], "it is not so");
    assert_eq!(story(9, Some(UNTIL + 1)), [Law::Doubt], "for too long");
}
