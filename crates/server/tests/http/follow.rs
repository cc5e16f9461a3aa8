//! The event log, in parts and followed.

use crate::daemon::Daemon;
use serde_json::{Value, json};
use stipend_server::client::Event;

#[test]
fn the_log_is_read_in_parts_and_followed_from_anywhere() {
    let daemon = Daemon::start();
    let ada = daemon.as_user("ada", "user");
    let live = ada.stream("/v1/events?follow=true&event=submitted,ended").unwrap();
    let first = daemon.submit(&ada, "lab/nlp", "true", json!({}));
    daemon.wait(first.id);
    let second = daemon.submit(&ada, "lab/nlp", "true", json!({}));
    daemon.wait(second.id);
    let events: Vec<Event> = live.take(4).map(|event| event.unwrap()).collect();
    let kinds: Vec<&str> = events.iter().map(|event| event.event.as_str()).collect();
    assert_eq!(kinds, ["submitted", "ended", "submitted", "ended"]);
    // From anywhere: what the store has, then what comes.
    let from = events[1].id.unwrap();
    let again = ada.stream(&format!("/v1/events?follow=true&from={from}&event=submitted,ended")).unwrap();
    assert_eq!(again.take(3).map(|event| event.unwrap()).collect::<Vec<_>>(), events[1..]);
    let one = ada.stream(&format!("/v1/events?follow=true&from=1&workload={}&event=submitted,ended", second.id)).unwrap();
    assert_eq!(one.take(2).map(|event| event.unwrap()).collect::<Vec<_>>(), events[2..]);
    // In parts.
    let (mut lines, mut next) = (Vec::new(), 1);
    loop {
        let part = daemon.ask("GET", &format!("/v1/events?from={next}&limit=7"), &[], "");
        lines.extend(part.body.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()));
        let after: u64 = part.header("stipend-next").unwrap().parse().unwrap();
        if after == next {
            break;
        }
        next = after;
    }
    assert_eq!(lines[0]["v"], 1);
    let of_second = lines.iter().filter(|line| line["workload"] == format!("w{}", second.id)).count();
    let part = ada.text(&format!("/v1/events?workload={}", second.id)).unwrap();
    assert_eq!(part.lines().count(), of_second);
    // A browser that lost its connection says where it was.
    let resumed = daemon.ask("GET", "/v1/events?event=ended", &[("last-event-id", &from.to_string())], "");
    assert_eq!(resumed.body.lines().count(), 1);
}
