//! The OpenAPI 3.1 document of the routes, made from their code.

use super::refusal::Reply;
use crate::wire::error::Problem;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use utoipa::openapi::path::Operation;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{Content, Info, License, OpenApi, PathItem, Ref, RefOr, ResponseBuilder};
use utoipa::{PartialSchema, ToSchema};

/// What every route may answer beside what it says itself.
const COMMON: [(&str, &str); 6] = [
    ("400", "The request cannot be read, or a value is not allowed"),
    ("401", "No token, or an unknown one"),
    ("403", "A right is missing"),
    ("408", "The body did not arrive in time"),
    ("429", "Too many requests, or too much waiting; `retry-after` says when to ask again"),
    ("503", "The daemon is starting, stopping, or cannot write; `retry-after` says when to ask again"),
];

/// Routes that need no token.
const OPEN: [&str; 3] = ["/healthz", "/readyz", "/v1/openapi.json"];

/// What the document begins with.
pub(super) fn begin() -> OpenApi {
    let mut info = Info::new("Stipend", env!("CARGO_PKG_VERSION"));
    info.description = Some("The HTTP API of the Stipend daemon. See docs/reference/api.md.".into());
    info.license = Some(License::new("MIT OR Apache-2.0"));
    OpenApi::new(info, utoipa::openapi::Paths::new())
}

/// The document, completed by what all routes share.
pub(super) fn finish(mut api: OpenApi) -> OpenApi {
    let components = api.components.get_or_insert_default();
    components.schemas.insert(Problem::name().into_owned(), Problem::schema());
    let mut schemas = Vec::new();
    Problem::schemas(&mut schemas);
    components.schemas.extend(schemas);
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some("A token; none is needed by the unix socket"));
    components.add_security_scheme("token", SecurityScheme::Http(bearer.build()));
    for (path, item) in &mut api.paths.paths {
        let open = OPEN.contains(&path.as_str());
        for operation in operations(item) {
            complete(operation, open);
        }
    }
    api
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    [&mut item.get, &mut item.post, &mut item.patch, &mut item.delete].into_iter().flatten()
}

fn complete(operation: &mut Operation, open: bool) {
    // Functions of one name stand in several modules.
    let tag = operation.tags.iter().flatten().next().cloned().unwrap_or_default();
    operation.operation_id = operation.operation_id.take().map(|id| format!("{tag}_{id}"));
    let problem = || Content::new(Some(RefOr::Ref(Ref::from_schema_name(Problem::name()))));
    for (status, description) in COMMON {
        let response = ResponseBuilder::new().description(description).content("application/json", problem()).build();
        operation.responses.responses.entry(status.into()).or_insert_with(|| response.into());
    }
    if !open {
        operation.security = Some(vec![utoipa::openapi::security::SecurityRequirement::new::<_, [&str; 0], &str>("token", [])]);
    }
}

/// This document.
#[utoipa::path(get, path = "/v1/openapi.json", tag = super::TAG_DAEMON, responses((status = 200, body = Object)))]
pub(super) async fn document() -> Reply<Response> {
    Ok(([(header::CONTENT_TYPE, "application/json")], super::openapi_json()).into_response())
}
