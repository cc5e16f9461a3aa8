//! What a request says, read with refusals that name the place, the value and what would be right.

use super::refusal::{Refusal, Reply};
use crate::wire::error::{Code, Problem};
use axum::body::Body as RawBody;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use http_body_util::BodyExt;
use serde::de::DeserializeOwned;
use std::str::FromStr;
use std::time::Duration;

/// A body is at most so large. A submission of 1,000 workloads has about 300 KiB.
pub(super) const BODY_MAX: usize = 1 << 20;

/// Of a body that is too large so much is read and thrown away, so that its sender comes to read the refusal.
const DRAIN_MAX: usize = 64 << 20;

/// A body is sent within this time.
const BODY_PATIENCE: Duration = Duration::from_secs(30);

/// A body of JSON.
pub(super) struct Content<T>(pub T);

/// A body as text, of whatever kind.
pub(super) struct Text(pub String);

/// The query.
pub(super) struct Params<T>(pub T);

/// The one variable part of the path: a number, or a name.
pub(super) struct Id<T>(pub T);

impl<S: Sync, T: DeserializeOwned> FromRequest<S> for Content<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, _: &S) -> Reply<Content<T>> {
        let (parts, body) = request.into_parts();
        let bytes = collect(&parts.headers, body).await?;
        let kind = parts.headers.get(header::CONTENT_TYPE).map(|kind| kind.to_str().unwrap_or("?"));
        // A script that says nothing means JSON; one that says something else is told.
        if let Some(kind) = kind.filter(|kind| !kind.starts_with("application/json")) {
            let message = format!("content-type: {kind} is not taken here; expected application/json");
            return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, Code::Invalid, message));
        }
        parse(&bytes).map(Content)
    }
}

impl<S: Sync> FromRequest<S> for Text {
    type Rejection = Refusal;

    async fn from_request(request: Request, _: &S) -> Reply<Text> {
        let (parts, body) = request.into_parts();
        let bytes = collect(&parts.headers, body).await?;
        String::from_utf8(bytes).map(Text).map_err(|e| Refusal::invalid(format!("the body is not UTF-8 text: {}", e.utf8_error())))
    }
}

/// Reads JSON; a fault is named by field, line and column.
pub(super) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Reply<T> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(Refusal::invalid("the body is empty; expected JSON"));
    }
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let read = serde_path_to_error::deserialize(&mut json);
    let value = read.map_err(|error| {
        let field = error.path().to_string();
        let place = if field == "." { String::new() } else { format!("{field}: ") };
        Refusal::invalid(format!("the body: {place}{}", error.into_inner()))
    })?;
    json.end().map_err(|error| Refusal::invalid(format!("the body: after its value: {error}")))?;
    Ok(value)
}

/// The whole body, if it is neither too large nor too slow.
async fn collect(headers: &HeaderMap, body: RawBody) -> Reply<Vec<u8>> {
    let stated = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    let read = tokio::time::timeout(BODY_PATIENCE, read_all(body, stated.is_some_and(|length| length > BODY_MAX)));
    read.await.unwrap_or_else(|_| {
        let message = format!("the body did not arrive within {} s", BODY_PATIENCE.as_secs());
        Err(Refusal::new(StatusCode::REQUEST_TIMEOUT, Code::Invalid, message))
    })
}

async fn read_all(mut body: RawBody, mut too_large: bool) -> Reply<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut length = 0;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| Refusal::invalid(format!("the body broke off: {error}")))?;
        let Ok(data) = frame.into_data() else { continue };
        length += data.len();
        too_large |= length > BODY_MAX;
        if length > DRAIN_MAX {
            break;
        }
        if !too_large {
            bytes.extend_from_slice(&data);
        }
    }
    if too_large {
        let message = format!("the body is larger than {} KiB", BODY_MAX >> 10);
        return Err(Refusal::from(Problem::new(Code::TooLarge, message)).hint("send it in parts"));
    }
    Ok(bytes)
}

impl<S: Sync, T: DeserializeOwned> FromRequestParts<S> for Params<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Reply<Params<T>> {
        match Query::<T>::try_from_uri(&parts.uri) {
            Ok(Query(value)) => Ok(Params(value)),
            Err(rejection) => {
                let said = rejection.body_text();
                let what = said.strip_prefix("Failed to deserialize query string: ").unwrap_or(&said);
                Err(Refusal::invalid(format!("the query: {what}")))
            }
        }
    }
}

impl<S: Send + Sync, T: FromStr + Send> FromRequestParts<S> for Id<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Reply<Id<T>> {
        let read = Path::<String>::from_request_parts(parts, state).await;
        let Path(text) = read.map_err(|rejection| Refusal::invalid(format!("the path: {}", rejection.body_text())))?;
        let value = text.parse().map_err(|_| {
            let kind = std::any::type_name::<T>();
            Refusal::invalid(format!("the path: `{text}` is not a number of this kind (`{kind}`)"))
        })?;
        Ok(Id(value))
    }
}
