//! Whether the daemon lives, and whether it can decide and write.

use super::refusal::Reply;
use super::{Api, TAG_DAEMON};
use crate::wire::error::{Code, Problem};
use axum::extract::State;
use std::sync::Arc;
use std::time::Duration;

/// The service answers within this time, or is not ready.
const PATIENCE: Duration = Duration::from_secs(5);

/// The process lives and answers.
#[utoipa::path(get, path = "/healthz", tag = TAG_DAEMON, responses((status = 200, body = String, content_type = "text/plain")))]
pub(super) async fn alive() -> &'static str {
    "ok\n"
}

/// The service takes requests: its last turn was written to disk, and its store can be read.
#[utoipa::path(get, path = "/readyz", tag = TAG_DAEMON, responses((status = 200, body = String, content_type = "text/plain")))]
pub(super) async fn ready(State(api): State<Arc<Api>>) -> Reply<&'static str> {
    let asked = async {
        api.pools().await?;
        api.past.read(|records| records.lines(&crate::store::LineFilter::default(), 1)).await
    };
    match tokio::time::timeout(PATIENCE, asked).await {
        Ok(answer) => answer.map(|_| "ready\n"),
        Err(_) => Err(Problem::new(Code::Unavailable, format!("the service did not answer within {} s", PATIENCE.as_secs())).into()),
    }
}
