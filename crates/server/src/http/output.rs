//! What workloads wrote: read from the driver's files, or followed as it grows.

mod parts;

use super::access::Known;
use super::events::SEND_PATIENCE;
use super::extract::{Id, Params};
use super::limits::Stream;
use super::refusal::Reply;
use super::{Api, TAG_WORKLOADS, stopped};
use crate::service::Who;
use crate::wire::error::{Code, Problem};
use crate::wire::query::Output;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use parts::Parts;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

/// How often a file that is followed is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// After so many looks it is asked how the workload is.
const LOOKS_PER_QUESTION: u32 = 5;

type Chunks = mpsc::Sender<io::Result<Bytes>>;

/// The output of one member: its standard output and error, as it wrote them.
///
/// For its owner, the managers of its budget and above, and administrators. With `follow` the answer ends when the workload has; a new
/// attempt is announced by a line `--- attempt 2 ---`.
#[utoipa::path(
    get, path = "/v1/workloads/{id}/logs", tag = TAG_WORKLOADS, params(("id" = u32, Path), Output),
    responses((status = 200, body = String, content_type = "text/plain"), (status = 404, body = Problem), (status = 409, body = Problem)),
)]
pub(super) async fn logs(
    State(api): State<Arc<Api>>,
    Known(who): Known,
    Id(id): Id<u32>,
    Params(output): Params<Output>,
) -> Reply<Response> {
    let counted = api.limits.stream(&who.user)?;
    let (to, body) = mpsc::channel(4);
    let headers = [(header::CONTENT_TYPE, "text/plain; charset=utf-8"), (header::X_CONTENT_TYPE_OPTIONS, "nosniff")];
    let workload = api.detail(id).await?.workload;
    let attempt = output.attempt.unwrap_or_else(|| if output.follow { workload.attempts.max(1) } else { workload.attempts });
    if attempt > workload.attempts && !output.follow {
        return Err(Problem::new(Code::Conflict, format!("w{id} has not had an attempt {}, so it has no output", attempt.max(1))).into());
    }
    if output.member >= workload.members {
        return Err(
            Problem::new(Code::NotFound, format!("w{id} has {} members; the last is {}", workload.members, workload.members - 1)).into()
        );
    }
    // Rights come first: nobody waits for output that they may not read.
    match api.handle.output(who.clone(), id, Some(attempt.max(1)), output.member).await {
        Err(problem) if !(problem.code == Code::NotFound && output.follow) => return Err(problem.into()),
        _ => {}
    }
    let tail =
        Tail { api, who, id, member: output.member, attempt: attempt.max(1), parts: None, offset: output.offset, to, _counted: counted };
    tokio::spawn(tail.run(output.follow));
    Ok((headers, Body::from_stream(ReceiverStream::new(body))).into_response())
}

/// The end of a file, or of one after the other.
struct Tail {
    api: Arc<Api>,
    who: Who,
    id: u32,
    member: u32,
    attempt: u32,
    parts: Option<Parts>,
    offset: u64,
    to: Chunks,
    _counted: Stream,
}

/// Nobody reads, or nothing more can be read.
struct Over;

impl Tail {
    async fn run(mut self, follow: bool) {
        let mut stop = self.api.stop.clone();
        tokio::select! {
            _ = async { if follow { self.follow().await } else { self.copy().await } } => {}
            () = stopped(&mut stop) => {}
        }
    }

    async fn follow(&mut self) -> Result<(), Over> {
        let mut looks = 0;
        loop {
            // First how the workload is, then what it wrote: so nothing of an end is missed.
            let asked = looks % LOOKS_PER_QUESTION == 0;
            let workload = if asked { Some(self.api.detail(self.id).await.map_err(|_| Over)?.workload) } else { None };
            looks += 1;
            self.copy().await?;
            match workload {
                Some(workload) if workload.attempts > self.attempt => {
                    self.attempt += 1;
                    (self.offset, self.parts, looks) = (0, None, 0);
                    self.send(format!("--- attempt {} ---\n", self.attempt).into()).await?;
                    continue;
                }
                Some(workload) if workload.state.is_over() => return Ok(()),
                _ => {}
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK_EVERY) => {}
                () = self.to.closed() => return Err(Over),
            }
        }
    }

    /// Copies what there is.
    async fn copy(&mut self) -> Result<(), Over> {
        if self.parts.is_none() {
            let path = self.api.handle.output(self.who.clone(), self.id, Some(self.attempt), self.member).await;
            // It is made when the program starts.
            let Ok(path) = path else { return Ok(()) };
            self.parts = Some(Parts::new(path, self.offset));
        }
        while let Some(mut parts) = self.parts.take() {
            let read = tokio::task::spawn_blocking(move || {
                let read = parts.read();
                (parts, read)
            });
            let (parts, read) = read.await.map_err(|_| Over)?;
            // Files that were moved before they were opened are looked for again.
            self.parts = Some(parts).filter(|parts| parts.found());
            match read {
                Ok(bytes) if bytes.is_empty() => return Ok(()),
                Ok(bytes) => self.send(bytes).await?,
                Err(error) => {
                    tracing::warn!("the output of w{} cannot be read: {error}", self.id);
                    let _ = self.to.send(Err(error)).await;
                    return Err(Over);
                }
            }
        }
        Ok(())
    }

    async fn send(&self, bytes: Bytes) -> Result<(), Over> {
        self.to.send_timeout(Ok(bytes), SEND_PATIENCE).await.map_err(|_| Over)
    }
}
