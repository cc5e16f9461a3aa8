//! What a change would bring.

use super::access::Known;
use super::extract::Content;
use super::refusal::Reply;
use super::{Api, TAG_BUDGETS};
use crate::whatif::whatif;
use crate::wire::error::Problem;
use crate::wire::whatif::{WhatIf, WhatIfRequest};
use axum::Json;
use axum::extract::State;
use std::sync::Arc;

/// What a change of budgets would bring: the live queue projected forward, and the last days replayed, as things are and with the change.
/// Nothing is touched.
#[utoipa::path(
    post, path = "/v1/whatif", tag = TAG_BUDGETS, request_body = WhatIfRequest,
    responses(
        (status = 200, body = WhatIf), (status = 404, body = Problem), (status = 409, body = Problem), (status = 413, body = Problem),
        (status = 415, body = Problem),
    ),
)]
pub(super) async fn ask(State(api): State<Arc<Api>>, Known(who): Known, Content(request): Content<WhatIfRequest>) -> Reply<Json<WhatIf>> {
    let fork = api.handle.fork(who, request).await?;
    Ok(Json(api.past.read(move |reader| whatif(fork, reader)).await?))
}
