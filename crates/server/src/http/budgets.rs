//! The budget tree: shown, changed, and as a spreadsheet.

use super::access::Known;
use super::extract::{Content, Id, Params, Text};
use super::refusal::{Refusal, Reply};
use super::sheet;
use super::{Api, TAG_BUDGETS};
use crate::service::Who;
use crate::wire::budget::{Changeset, ChangesetRequest, DryRun, SheetImport, Tree};
use crate::wire::error::{Code, Problem};
use crate::wire::page::{Cursor, Page};
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use std::sync::Arc;

/// The tree with its standings. Its version is the `ETag`.
#[utoipa::path(
    get, path = "/v1/budgets", tag = TAG_BUDGETS,
    responses((status = 200, body = Tree, headers(("ETag" = String)))),
)]
pub(super) async fn tree(State(api): State<Arc<Api>>, _: Known) -> Reply<Response> {
    let tree = api.tree().await?;
    Ok(([(header::ETAG, etag(tree.version))], Json(&*tree)).into_response())
}

fn etag(version: u32) -> String {
    format!("\"{version}\"")
}

/// Changes the tree, now or at a date, or says what a change would be.
///
/// `If-Match` with the version that it was made from may stand in for `based_on`.
#[utoipa::path(
    patch, path = "/v1/budgets", tag = TAG_BUDGETS, request_body = ChangesetRequest,
    params(DryRun, ("If-Match" = Option<String>, Header, description = "The ETag of the version that the change was made from")),
    responses((status = 200, body = Changeset), (status = 404, body = Problem), (status = 409, body = Problem), (status = 412, body = Problem), (status = 413, body = Problem), (status = 415, body = Problem)),
)]
pub(super) async fn change(
    State(api): State<Arc<Api>>,
    Known(who): Known,
    Params(DryRun { dry_run }): Params<DryRun>,
    headers: HeaderMap,
    Content(mut request): Content<ChangesetRequest>,
) -> Reply<Json<Changeset>> {
    let matched = if_match(&headers)?;
    let stated = request.based_on;
    request.based_on = match matched {
        Some(Match::Version(version)) if stated != 0 && stated != version => {
            return Err(Refusal::invalid(format!("if-match says version {version}, based_on says {stated}")));
        }
        Some(Match::Version(version)) => version,
        None if stated == 0 => {
            let refusal = Refusal::invalid("based_on: it is missing; expected the version of the tree that the change was made from");
            return Err(refusal.hint("`GET /v1/budgets` says it, as `version` and as its ETag; `if-match: *` takes any version"));
        }
        Some(Match::Any) if stated == 0 => api.handle.tree().await?.version,
        Some(Match::Any) | None => stated,
    };
    apply(&api, who, request, dry_run, matched.is_some()).await
}

async fn apply(api: &Api, who: Who, request: ChangesetRequest, dry_run: bool, matched: bool) -> Reply<Json<Changeset>> {
    let based_on = request.based_on;
    let changed = api.handle.change_budgets(who, request, dry_run).await.map_err(Refusal::from);
    api.changed();
    match changed {
        Ok(changeset) => Ok(Json(changeset)),
        // A precondition that failed has a status of its own.
        Err(refusal) if matched && refusal.is(Code::Conflict) && api.handle.tree().await?.version != based_on => {
            Err(refusal.with_status(StatusCode::PRECONDITION_FAILED))
        }
        Err(refusal) => Err(refusal),
    }
}

/// Of what an `If-Match` lets a change be made.
#[derive(Clone, Copy)]
enum Match {
    Version(u32),
    Any,
}

fn if_match(headers: &HeaderMap) -> Reply<Option<Match>> {
    let Some(value) = headers.get(header::IF_MATCH) else { return Ok(None) };
    let text = value.to_str().unwrap_or_default();
    if text == "*" {
        return Ok(Some(Match::Any));
    }
    let version = text.trim_start_matches("W/").trim_matches('"').parse();
    version
        .map(|version| Some(Match::Version(version)))
        .map_err(|_| Refusal::invalid(format!("if-match: `{text}` is not the ETag of a version, such as \"3\"")))
}

/// All changesets, newest first: applied, waiting for their date, and withdrawn.
#[utoipa::path(
    get, path = "/v1/changesets", tag = TAG_BUDGETS, params(Cursor),
    responses((status = 200, body = Page<Changeset>)),
)]
pub(super) async fn changesets(State(api): State<Arc<Api>>, _: Known, Params(page): Params<Cursor>) -> Reply<Json<Page<Changeset>>> {
    Ok(Json(api.past.read(move |records| records.changesets(&page)).await?))
}

/// Takes back a changeset that waits for its date.
#[utoipa::path(
    delete, path = "/v1/changesets/{id}", tag = TAG_BUDGETS, params(("id" = u64, Path)),
    responses((status = 200, body = Changeset), (status = 404, body = Problem), (status = 409, body = Problem)),
)]
pub(super) async fn withdraw(State(api): State<Arc<Api>>, Known(who): Known, Id(id): Id<u64>) -> Reply<Json<Changeset>> {
    Ok(Json(api.handle.withdraw(who, id).await?))
}

/// The tree as CSV: a row for each budget and pool.
#[utoipa::path(
    get, path = "/v1/budgets/sheet", tag = TAG_BUDGETS,
    responses((status = 200, body = String, content_type = "text/csv", headers(("ETag" = String)))),
)]
pub(super) async fn export(State(api): State<Arc<Api>>, _: Known) -> Reply<Response> {
    let tree = api.tree().await?;
    let headers = [(header::CONTENT_TYPE, "text/csv; charset=utf-8".to_string()), (header::ETAG, etag(tree.version))];
    Ok((headers, sheet::write(&tree)).into_response())
}

/// Changes the tree to what a sheet says, or says what that would change.
///
/// Only cells that differ from the tree are changed; budgets without a row stay as they are. A row whose `id` is known and whose path
/// differs renames or moves the budget.
#[utoipa::path(
    post, path = "/v1/budgets/sheet", tag = TAG_BUDGETS, request_body(content = String, content_type = "text/csv"), params(SheetImport),
    responses((status = 200, body = Changeset), (status = 404, body = Problem), (status = 409, body = Problem), (status = 413, body = Problem)),
)]
pub(super) async fn import(
    State(api): State<Arc<Api>>,
    Known(who): Known,
    Params(SheetImport { based_on, reason, effective_ms, dry_run }): Params<SheetImport>,
    Text(text): Text,
) -> Reply<Json<Changeset>> {
    let tree = api.handle.tree().await?;
    let budgets = sheet::read(&text, &tree).map_err(|message| Refusal::invalid(format!("the sheet: {message}")))?;
    if budgets.is_empty() {
        return Err(Refusal::invalid("the sheet: it says what the tree already is"));
    }
    let request = ChangesetRequest { based_on: based_on.unwrap_or(tree.version), reason, effective_ms, budgets };
    apply(&api, who, request, dry_run, false).await
}
