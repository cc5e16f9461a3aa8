//! Nodes and pools.

use super::access::Known;
use super::extract::{Content, Id};
use super::refusal::Reply;
use super::{Api, TAG_NODES};
use crate::wire::error::Problem;
use crate::wire::node::{DrainRequest, Node, Pool};
use axum::Json;
use axum::extract::State;
use std::sync::Arc;

/// All nodes.
#[utoipa::path(get, path = "/v1/nodes", tag = TAG_NODES, responses((status = 200, body = Vec<Node>)))]
pub(super) async fn list(State(api): State<Arc<Api>>, _: Known) -> Reply<Json<Arc<Vec<Node>>>> {
    Ok(Json(api.nodes().await?))
}

/// All pools.
#[utoipa::path(get, path = "/v1/pools", tag = TAG_NODES, responses((status = 200, body = Vec<Pool>)))]
pub(super) async fn pools(State(api): State<Arc<Api>>, _: Known) -> Reply<Json<Arc<Vec<Pool>>>> {
    Ok(Json(api.pools().await?))
}

/// Takes a node out of service.
#[utoipa::path(
    post, path = "/v1/nodes/{name}/drain", tag = TAG_NODES, params(("name" = String, Path)), request_body = DrainRequest,
    responses((status = 200, body = Node), (status = 404, body = Problem), (status = 409, body = Problem), (status = 413, body = Problem), (status = 415, body = Problem)),
)]
pub(super) async fn drain(
    State(api): State<Arc<Api>>,
    Known(who): Known,
    Id(name): Id<String>,
    Content(request): Content<DrainRequest>,
) -> Reply<Json<Node>> {
    let drained = api.handle.drain(who, name, request).await;
    api.changed();
    Ok(Json(drained?))
}

/// Takes a node back into service.
#[utoipa::path(
    post, path = "/v1/nodes/{name}/resume", tag = TAG_NODES, params(("name" = String, Path)),
    responses((status = 200, body = Node), (status = 404, body = Problem), (status = 409, body = Problem)),
)]
pub(super) async fn resume(State(api): State<Arc<Api>>, Known(who): Known, Id(name): Id<String>) -> Reply<Json<Node>> {
    let resumed = api.handle.resume(who, name).await;
    api.changed();
    Ok(Json(resumed?))
}
