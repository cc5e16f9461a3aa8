//! What a change would bring, before anybody makes it.

use super::access::Known;
use super::extract::Content;
use super::refusal::{Refusal, Reply};
use super::{Api, TAG_BUDGETS};
use crate::wire::error::{Code, Problem};
use crate::wire::whatif::{WhatIf, WhatIfRequest};
use axum::Json;
use axum::extract::State;
use std::sync::Arc;

/// Says what a change of the tree would have brought in the last days, and would bring to the queue. Touches nothing.
///
/// It takes seconds to minutes; one at a time is worked out.
#[utoipa::path(
    post, path = "/v1/whatif", tag = TAG_BUDGETS, request_body = WhatIfRequest,
    responses((status = 200, body = WhatIf), (status = 404, body = Problem), (status = 409, body = Problem), (status = 413, body = Problem), (status = 415, body = Problem)),
)]
pub(super) async fn whatif(
    State(api): State<Arc<Api>>,
    Known(who): Known,
    Content(request): Content<WhatIfRequest>,
) -> Reply<Json<WhatIf>> {
    let turn = api.whatif.clone().try_acquire_owned();
    let turn = turn.map_err(|_| {
        let busy = Problem::new(Code::TooMany, "another what-if is being worked out");
        Refusal::from(busy).hint("one at a time, so that the daemon stays quick").retry_after(20)
    })?;
    let fork = api.handle.fork(who, request).await?;
    let answer = api.past.read(move |records| {
        // Kept until it is worked out, whether or not somebody still waits for it.
        let _turn = turn;
        crate::whatif::whatif(fork, records)
    });
    Ok(Json(answer.await?))
}
