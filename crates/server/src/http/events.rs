//! The event log: in parts, or followed as server-sent events.

use super::access::Known;
use super::extract::Params;
use super::follow::Follower;
use super::limits::Stream;
use super::refusal::{Refusal, Reply};
use super::{Api, TAG_EVENTS, stopped};
use crate::store::{Line, LineFilter};
use crate::wire::event::EventFilter;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

/// Lines in one answer.
const LIMIT_MAX: u32 = 10_000;

/// Lines looked at for one answer, if few of them are wanted.
const LOOKED_AT_MAX: usize = 50_000;

/// Whoever reads nothing for so long is cut off; they go on from where they were.
pub(super) const SEND_PATIENCE: Duration = Duration::from_secs(60);

/// A comment keeps quiet streams alive.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The event log as JSON lines (`docs/reference/event-log.md`).
///
/// Without `follow`, a part of it; the header `stipend-next` says where the next part begins. With `follow=true` or
/// `accept: text/event-stream`, server-sent events without end, whose `id` is the line's number; `last-event-id` goes on after it.
#[utoipa::path(
    get, path = "/v1/events", tag = TAG_EVENTS, params(EventFilter),
    responses((status = 200, content((String = "application/jsonl"), (String = "text/event-stream")), headers(("stipend-next" = u64)))),
)]
pub(super) async fn events(
    State(api): State<Arc<Api>>,
    Known(who): Known,
    Params(mut filter): Params<EventFilter>,
    headers: HeaderMap,
) -> Reply<Response> {
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    if let Some(last) = text("last-event-id") {
        let last: u64 = last.parse().map_err(|_| Refusal::invalid(format!("last-event-id: `{last}` is not the number of a line")))?;
        filter.from = Some(last.saturating_add(1));
    }
    if filter.limit.is_some_and(|limit| !(1..=LIMIT_MAX).contains(&limit)) {
        return Err(Refusal::invalid(format!("the query: limit: {} is not from 1 to {LIMIT_MAX}", filter.limit.unwrap_or_default())));
    }
    if filter.follow || text(header::ACCEPT.as_str()).is_some_and(|kinds| kinds.contains("text/event-stream")) {
        let stream = api.limits.stream(&who.user)?;
        return follow(api, filter, stream).await;
    }
    part(&api, filter).await
}

/// Whether a line is of the kinds that are wanted.
fn wanted(kinds: Option<&str>, line: &Line) -> bool {
    kinds.is_none_or(|kinds| kinds.split(',').any(|kind| kind == line.event))
}

async fn part(api: &Api, filter: EventFilter) -> Reply<Response> {
    let limit = filter.limit.unwrap_or(1000) as usize;
    let (mut next, mut looked_at, mut found) = (filter.from.unwrap_or(1), 0, 0);
    let mut text = String::new();
    while found < limit && looked_at < LOOKED_AT_MAX {
        let room = (limit - found).clamp(100, 2000);
        let which = LineFilter { from_seq: next, workload: filter.workload, ..LineFilter::default() };
        let lines = api.past.read(move |records| records.lines(&which, room as u32)).await?;
        let last = lines.len() < room;
        looked_at += lines.len();
        for line in lines {
            if found == limit {
                break;
            }
            next = line.seq + 1;
            if wanted(filter.event.as_deref(), &line) {
                found += 1;
                text.push_str(&line.json);
                text.push('\n');
            }
        }
        if last {
            break;
        }
    }
    Ok(([("content-type", "application/jsonl".to_string()), ("stipend-next", next.to_string())], text).into_response())
}

async fn follow(api: Arc<Api>, filter: EventFilter, counted: Stream) -> Reply<Response> {
    let mut follower = Follower::new(api.clone(), filter.from, filter.workload).await?;
    let (to, stream) = mpsc::channel::<Result<Event, Infallible>>(64);
    let mut stop = api.stop.clone();
    tokio::spawn(async move {
        // Counted until whoever reads is gone.
        let _counted = counted;
        loop {
            let line = tokio::select! {
                line = follower.next() => line,
                () = to.closed() => return,
                () = stopped(&mut stop) => return,
            };
            let Ok(Some(line)) = line else { return };
            if !wanted(filter.event.as_deref(), &line) {
                continue;
            }
            let event = Event::default().id(line.seq.to_string()).event(&line.event).data(&line.json);
            if to.send_timeout(Ok(event), SEND_PATIENCE).await.is_err() {
                return;
            }
        }
    });
    Ok(Sse::new(ReceiverStream::new(stream)).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response())
}
