//! What the lab does, told as it happens.

use crate::failure::Failure;
use crate::narrative;
use crate::output;
use crate::remote::Daemon;
use crate::table::wrap;
use serde_json::Value;
use std::thread;
use std::time::Instant;

/// What is told of the event log; the rest is in `stipend events`.
const KINDS: &str = "submitted,started,preempting,promoted,checkpoint,ended,requeued,reserved,node,refused";

/// Tells it on stdout until the daemon ends.
pub(super) fn begin(daemon: &Daemon, start: Instant) -> Result<(), Failure> {
    let events = daemon.stream(&format!("/v1/events?follow=true&event={KINDS}"))?;
    thread::spawn(move || {
        for event in events.map_while(Result::ok) {
            let told = serde_json::from_str::<Value>(&event.data).ok().and_then(|line| narrative::tell(&line, false));
            // Nobody may be reading any more.
            let _ = told.map(|told| output::text(&wrap(&format!("{:>4}s  ", start.elapsed().as_secs()), "       ", &told, width())));
        }
    });
    Ok(())
}

/// What comes next, and why.
pub(super) fn act(title: &str, text: &str) -> Result<(), Failure> {
    Ok(output::text(&format!("\n== {title}\n{}\n", wrap("", "", text, width())))?)
}

fn width() -> Option<usize> {
    Some(output::width().unwrap_or(100).min(110))
}
