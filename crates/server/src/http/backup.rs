//! A copy of the store, made while the daemon runs.

use super::access::Known;
use super::extract::Content;
use super::refusal::{Refusal, Reply};
use super::{Api, TAG_DAEMON};
use crate::wire::backup::{Backup, BackupRequest};
use crate::wire::error::{Code, Problem};
use crate::wire::token::Role;
use axum::Json;
use axum::extract::State;
use std::path::PathBuf;
use std::sync::Arc;

/// Copies the store into a new file on the daemon's machine, for administrators.
#[utoipa::path(
    post, path = "/v1/backup", tag = TAG_DAEMON, request_body = BackupRequest,
    responses((status = 200, body = Backup), (status = 409, body = Problem), (status = 413, body = Problem), (status = 415, body = Problem)),
)]
pub(super) async fn backup(
    State(api): State<Arc<Api>>,
    Known(who): Known,
    Content(BackupRequest { path }): Content<BackupRequest>,
) -> Reply<Json<Backup>> {
    if who.role != Role::Admin {
        return Err(
            Problem::new(Code::Forbidden, format!("{} is no administrator; the store holds everybody's environments", who.user)).into()
        );
    }
    let to = PathBuf::from(&path);
    if !to.is_absolute() || path.contains('\0') {
        return Err(Refusal::invalid(format!("path: `{path}`: expected an absolute path on the daemon's machine, of a new file")));
    }
    let copied = api.past.read(move |records| {
        let failed = |error: String| Problem::new(Code::Conflict, error);
        records.backup(&to).map_err(|error| {
            let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
            failed(format!("{error}{cause}"))
        })?;
        Ok(Backup { bytes: std::fs::metadata(&to).map_or(0, |file| file.len()), path: to.display().to_string() })
    });
    Ok(Json(copied.await?))
}
