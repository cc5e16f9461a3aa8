//! Tokens, and who one is.

use super::access::Known;
use super::extract::{Content, Id};
use super::refusal::Reply;
use super::{Api, TAG_TOKENS};
use crate::wire::error::Problem;
use crate::wire::token::{NewToken, Token, TokenRequest, WhoAmI};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use std::sync::Arc;

/// Makes a token, for administrators. Its secret is in this answer and nowhere else.
#[utoipa::path(
    post, path = "/v1/tokens", tag = TAG_TOKENS, request_body = TokenRequest,
    responses((status = 201, body = NewToken), (status = 413, body = Problem), (status = 415, body = Problem)),
)]
pub(super) async fn make(
    State(api): State<Arc<Api>>,
    Known(who): Known,
    Content(request): Content<TokenRequest>,
) -> Reply<(StatusCode, Json<NewToken>)> {
    Ok((StatusCode::CREATED, Json(api.handle.make_token(who, request).await?)))
}

/// All tokens without their secrets, for administrators.
#[utoipa::path(get, path = "/v1/tokens", tag = TAG_TOKENS, responses((status = 200, body = Vec<Token>)))]
pub(super) async fn list(State(api): State<Arc<Api>>, Known(who): Known) -> Reply<Json<Vec<Token>>> {
    Ok(Json(api.handle.tokens(who).await?))
}

/// Takes a token back, for administrators.
#[utoipa::path(
    delete, path = "/v1/tokens/{id}", tag = TAG_TOKENS, params(("id" = u64, Path)),
    responses((status = 200, body = Token), (status = 404, body = Problem)),
)]
pub(super) async fn revoke(State(api): State<Arc<Api>>, Known(who): Known, Id(id): Id<u64>) -> Reply<Json<Token>> {
    Ok(Json(api.handle.revoke_token(who, id).await?))
}

/// Who asks, and which budgets name them.
#[utoipa::path(get, path = "/v1/whoami", tag = TAG_TOKENS, responses((status = 200, body = WhoAmI)))]
pub(super) async fn whoami(State(api): State<Arc<Api>>, Known(who): Known) -> Reply<Json<WhoAmI>> {
    let tree = api.tree().await?;
    let names = |people: &[String]| people.iter().any(|name| *name == who.user || name == "*");
    let manages = tree.budgets.iter().filter(|budget| names(&budget.managers)).map(|budget| budget.path.clone()).collect();
    let member_of = tree.budgets.iter().filter(|budget| names(&budget.members)).map(|budget| budget.path.clone()).collect();
    Ok(Json(WhoAmI { user: who.user, role: who.role, manages, member_of }))
}
