//! What a request says, read with refusals that name the place, the value and what would be right.

use super::refusal::{Refusal, Reply};
use crate::wire::error::{Code, Problem};
use axum::body::Body as RawBody;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use http_body_util::BodyExt;
use serde::de::DeserializeOwned;
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

/// The one variable part of the path: a workload, another number, or a name.
pub(super) struct Id<T>(pub T);

/// What a path may name.
pub(super) trait Named: Sized + Send {
    /// How it is named there.
    const FORM: &str;

    fn read(text: &str) -> Option<Self>;
}

impl Named for u32 {
    const FORM: &str = "the number of a workload such as 12 or w12";

    fn read(text: &str) -> Option<u32> {
        text.strip_prefix('w').unwrap_or(text).parse().ok()
    }
}

impl Named for u64 {
    const FORM: &str = "a whole number";

    fn read(text: &str) -> Option<u64> {
        text.parse().ok()
    }
}

impl Named for String {
    const FORM: &str = "a name";

    fn read(text: &str) -> Option<String> {
        Some(text.into())
    }
}

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
        Refusal::invalid(format!("the body: {place}{}", in_words(&error.into_inner().to_string())))
    })?;
    json.end().map_err(|_| Refusal::invalid("the body: more follows after its value; expected one JSON value"))?;
    Ok(value)
}

/// What a reader of JSON says, in words that are not Rust's.
fn in_words(message: &str) -> String {
    let said = stipend_sim::plain::plain(message)
        .replace("a section with fields", "an object with fields")
        .replace("it is a section", "it is an object");
    match said.strip_prefix("unknown variant ") {
        Some(rest) => format!("it is {}", rest.replacen(", expected ", "; expected ", 1)),
        None if said.starts_with("EOF while parsing") => said.replacen("EOF while parsing", "it breaks off inside", 1),
        None => said,
    }
}

/// What a reader of a query says of the value of a field, in words.
fn of_query(uri: &Uri, said: &str) -> String {
    let Some((field, what)) = said.split_once(": ") else { return in_words(said) };
    let expected = match what {
        "invalid digit found in string" | "cannot parse integer from empty string" => "a whole number",
        "number too large to fit in target type" | "number too small to fit in target type" => "a whole number that is not so far from 0",
        "provided string was not `true` or `false`" => "true or false",
        _ => return format!("{field}: {}", in_words(what)),
    };
    let pairs = Query::<Vec<(String, String)>>::try_from_uri(uri).map(|Query(pairs)| pairs).unwrap_or_default();
    let value = pairs.into_iter().find(|(name, _)| name == field).map(|(_, value)| value).unwrap_or_default();
    format!("{field} = {value}: expected {expected}")
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
                Err(Refusal::invalid(format!("the query: {}", of_query(&parts.uri, what))))
            }
        }
    }
}

impl<S: Send + Sync, T: Named> FromRequestParts<S> for Id<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Reply<Id<T>> {
        let read = Path::<String>::from_request_parts(parts, state).await;
        let Path(text) = read.map_err(|rejection| Refusal::invalid(format!("the path: {}", rejection.body_text())))?;
        let value = T::read(&text);
        value.map(Id).ok_or_else(|| Refusal::invalid(format!("the path: `{text}` is not what stands there; expected {}", T::FORM)))
    }
}
