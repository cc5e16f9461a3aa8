//! Workloads: submitted, listed, shown, waited for, held, cancelled.

use super::access::Known;
use super::extract::{self, Id, Params, Text};
use super::refusal::{Refusal, Reply};
use super::{Api, TAG_WORKLOADS, stopped};
use crate::service::Who;
use crate::wire::error::{Code, Problem};
use crate::wire::page::Page;
use crate::wire::query::{Cancel, Wait};
use crate::wire::token::Role;
use crate::wire::workload::{Detail, Filter, Submission, Submissions, Submitted, Workload};
use axum::Json;
use axum::extract::State as Shared;
use axum::http::{HeaderMap, StatusCode};
use std::sync::Arc;
use std::time::Duration;
use stipend_sim::explain::Explained;
use tokio::sync::broadcast::error::RecvError;

/// A key for asking again without queueing twice is at most so long.
const KEY_MAX: usize = 128;

/// In one request.
const SUBMISSIONS_MAX: usize = 10_000;

/// A wait is answered after so long at the latest; whoever still waits asks again.
const WAIT_MAX_S: u32 = 50;

/// Queues one workload or a list of them, all or none.
///
/// With an `Idempotency-Key` that the same user used before, nothing is queued: the answer is about what it queued then.
#[utoipa::path(
    post, path = "/v1/workloads", tag = TAG_WORKLOADS, request_body = Submissions,
    params(("Idempotency-Key" = Option<String>, Header, description = "Any text of at most 128 visible ASCII characters")),
    responses((status = 201, body = Submitted), (status = 404, body = Problem), (status = 409, body = Problem), (status = 413, body = Problem), (status = 415, body = Problem)),
)]
pub(super) async fn submit(
    Shared(api): Shared<Arc<Api>>,
    Known(who): Known,
    headers: HeaderMap,
    body: Text,
) -> Reply<(StatusCode, Json<Submitted>)> {
    let key = headers.get("idempotency-key").map(|key| {
        let text = key.to_str().unwrap_or_default();
        let fits = (1..=KEY_MAX).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic());
        fits.then(|| text.to_string()).ok_or_else(|| Refusal::invalid("idempotency-key: expected 1 to 128 visible ASCII characters"))
    });
    let submissions = match body.0.trim_start().starts_with('[') {
        true => extract::parse::<Vec<Submission>>(body.0.as_bytes())?,
        false => vec![extract::parse::<Submission>(body.0.as_bytes())?],
    };
    if !(1..=SUBMISSIONS_MAX).contains(&submissions.len()) {
        return Err(Refusal::invalid(format!("the body: a list of {} workloads; expected 1 to {SUBMISSIONS_MAX}", submissions.len())));
    }
    let submitted = api.handle.submit(who, key.transpose()?, submissions).await?;
    Ok((StatusCode::CREATED, Json(submitted)))
}

/// Lists workloads, newest first.
#[utoipa::path(
    get, path = "/v1/workloads", tag = TAG_WORKLOADS, params(Filter),
    responses((status = 200, body = Page<Workload>)),
)]
pub(super) async fn list(Shared(api): Shared<Arc<Api>>, _: Known, Params(filter): Params<Filter>) -> Reply<Json<Page<Workload>>> {
    let explain = filter.explain;
    let mut page = api.past.read(move |records| records.workloads(&filter)).await?;
    if explain {
        page.items = api.explain_all(page.items).await?;
    }
    Ok(Json(page))
}

/// One workload, with how it was submitted. Only its owner and administrators see the values of its environment.
#[utoipa::path(
    get, path = "/v1/workloads/{id}", tag = TAG_WORKLOADS, params(("id" = u32, Path)),
    responses((status = 200, body = Detail), (status = 404, body = Problem)),
)]
pub(super) async fn show(Shared(api): Shared<Arc<Api>>, Known(who): Known, Id(id): Id<u32>) -> Reply<Json<Detail>> {
    let mut detail = api.detail(id).await?;
    if !sees_environment(&who, &detail.workload) {
        detail.submission.env.values_mut().for_each(|value| *value = "…".into());
    }
    Ok(Json(detail))
}

fn sees_environment(who: &Who, workload: &Workload) -> bool {
    who.role == Role::Admin || who.user == workload.user
}

/// Withdraws a workload that waits, or stops one that runs.
#[utoipa::path(
    delete, path = "/v1/workloads/{id}", tag = TAG_WORKLOADS, params(("id" = u32, Path), Cancel),
    responses((status = 200, body = Workload), (status = 404, body = Problem), (status = 409, body = Problem)),
)]
pub(super) async fn cancel(
    Shared(api): Shared<Arc<Api>>,
    Known(who): Known,
    Id(id): Id<u32>,
    Params(Cancel { reason }): Params<Cancel>,
) -> Reply<Json<Workload>> {
    if reason.as_ref().is_some_and(|reason| reason.chars().count() > 500) {
        return Err(Refusal::invalid("the query: reason: it has more than 500 characters"));
    }
    Ok(Json(api.handle.cancel(who, id, reason).await?))
}

/// Keeps a waiting workload from starting.
#[utoipa::path(
    post, path = "/v1/workloads/{id}/hold", tag = TAG_WORKLOADS, params(("id" = u32, Path)),
    responses((status = 200, body = Workload), (status = 404, body = Problem), (status = 409, body = Problem)),
)]
pub(super) async fn hold(Shared(api): Shared<Arc<Api>>, Known(who): Known, Id(id): Id<u32>) -> Reply<Json<Workload>> {
    Ok(Json(api.handle.hold(who, id).await?))
}

/// Lets a held workload start again.
#[utoipa::path(
    post, path = "/v1/workloads/{id}/release", tag = TAG_WORKLOADS, params(("id" = u32, Path)),
    responses((status = 200, body = Workload), (status = 404, body = Problem), (status = 409, body = Problem)),
)]
pub(super) async fn release(Shared(api): Shared<Arc<Api>>, Known(who): Known, Id(id): Id<u32>) -> Reply<Json<Workload>> {
    Ok(Json(api.handle.release(who, id).await?))
}

/// Why a workload waits, what would start it, and what happened to it; as `stipend sim explain --format json`.
#[utoipa::path(
    get, path = "/v1/workloads/{id}/explain", tag = TAG_WORKLOADS, params(("id" = u32, Path)),
    responses((status = 200, body = Object), (status = 404, body = Problem)),
)]
pub(super) async fn explain(Shared(api): Shared<Arc<Api>>, _: Known, Id(id): Id<u32>) -> Reply<Json<Explained>> {
    Ok(Json(api.explained(id).await?))
}

/// Answers when the workload has ended, or after `timeout_s` as it is then.
#[utoipa::path(
    get, path = "/v1/workloads/{id}/wait", tag = TAG_WORKLOADS, params(("id" = u32, Path), Wait),
    responses((status = 200, body = Workload), (status = 404, body = Problem)),
)]
pub(super) async fn wait(
    Shared(api): Shared<Arc<Api>>,
    Known(who): Known,
    Id(id): Id<u32>,
    Params(Wait { timeout_s }): Params<Wait>,
) -> Reply<Json<Workload>> {
    let _counted = api.limits.stream(&who.user)?;
    let until = tokio::time::Instant::now() + Duration::from_secs(timeout_s.unwrap_or(WAIT_MAX_S).min(WAIT_MAX_S).into());
    let mut lines = api.handle.follow();
    let mut stop = api.stop.clone();
    loop {
        let workload = api.detail(id).await?.workload;
        if workload.state.is_over() {
            return Ok(Json(workload));
        }
        loop {
            tokio::select! {
                () = tokio::time::sleep_until(until) => return Ok(Json(workload)),
                () = stopped(&mut stop) => return Ok(Json(workload)),
                line = lines.recv() => match line {
                    Ok(line) if line.workload == Some(id) => break,
                    Ok(_) => {}
                    // Some were missed: it may have been among them.
                    Err(RecvError::Lagged(_)) => break,
                    Err(RecvError::Closed) => return Err(Problem::new(Code::Unavailable, "the daemon stops").into()),
                },
            }
        }
    }
}

impl Api {
    /// A workload as the store has it.
    pub(super) async fn detail(&self, id: u32) -> Reply<Detail> {
        let found = self.past.read(move |records| records.workload(id)).await?;
        let row = found.ok_or_else(|| Problem::new(Code::NotFound, format!("there is no workload w{id}")))?;
        Ok(Detail { workload: row.view, submission: row.submission.unwrap_or_default() })
    }
}
