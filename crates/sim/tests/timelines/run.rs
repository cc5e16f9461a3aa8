//! Runs one scenario and holds it against its expectations, the auditor's laws, a replay of its journal, and its timeline.

use crate::Case;
use crate::expect::Expect;
use crate::facts::Facts;
use crate::journal::Journalled;
use crate::timeline::Timeline;
use snapbox::Data;
use snapbox::report::{Palette, write_diff};
use std::path::Path;
use stipend_core::event::Event;
use stipend_sim::audit;
use stipend_sim::engine;
use stipend_sim::log::LogWriter;
use stipend_sim::scenario::Scenario;

/// The environment variable that writes timelines instead of comparing them.
const BLESS: &str = "BLESS";

pub(crate) fn check(case: &Case) -> Result<(), String> {
    let scenario = Scenario::load(&case.scenario, &case.overrides).map_err(|error| error.to_string())?;
    let expect = Expect::load(&case.beside)?;
    let mut policy = Journalled::new();
    let (mut facts, mut timeline, mut log) =
        (Facts::default(), Timeline::new(&scenario.labels), LogWriter::new(Vec::new(), &scenario.labels));
    let summary = engine::run(&scenario, scenario.seed, &mut policy, &mut [&mut facts, &mut timeline, &mut log], None);
    policy.compare(summary.end);
    let mut scheduler = policy.live;
    // The last moment something happened may lie before the end: the explanations are of the end.
    scheduler.apply(summary.end, &Event::Tick, &mut Vec::new()).map_err(|rejection| format!("{rejection:?}"))?;
    if expect.unexplained.is_none() {
        timeline.explain(&scheduler);
    }

    let mut wrong = expect.check(&scenario, &facts, &scheduler);
    wrong.extend(
        summary
            .fault_examples
            .iter()
            .map(|(at, rejection)| format!("at {} ms the core refused a report of the engine: {rejection:?}", at.0)),
    );
    let log = log.finish().map_err(|error| error.to_string())?;
    let report = audit::check(log.as_slice()).map_err(|error| error.to_string())?;
    wrong.extend(report.violations.iter().map(|violation| format!("the auditor: {violation}")));
    if !expect.no_timeline
        && let Err(difference) = compare(&case.beside, &timeline.lines)
    {
        wrong.push(difference);
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

/// The timeline is the one that was read and kept.
fn compare(beside: &Path, lines: &[String]) -> Result<(), String> {
    let kept_at = beside.with_extension("timeline.txt");
    let actual = lines.join("\n") + "\n";
    if std::env::var_os(BLESS).is_some() {
        return std::fs::write(&kept_at, actual).map_err(|error| format!("{}: {error}", kept_at.display()));
    }
    let shown = kept_at.display();
    let kept = std::fs::read_to_string(&kept_at).map_err(|error| format!("{shown}: {error}; {BLESS}=1 writes it:\n{actual}"))?;
    if kept == actual {
        return Ok(());
    }
    let mut difference = format!("another timeline than {shown} ({BLESS}=1 keeps this one):\n");
    let (kept, actual) = (Data::text(kept), Data::text(actual));
    write_diff(&mut difference, &kept, &actual, Some(&"kept"), Some(&"now"), Palette::plain()).map_err(|error| error.to_string())?;
    Err(difference)
}
