//! Every refusal is a [`Problem`] as JSON, with its status.

use crate::wire::error::{Code, Problem};
use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

/// A problem with the status that it is sent with.
#[derive(Debug)]
pub(super) struct Refusal {
    status: StatusCode,
    problem: Problem,
    retry_after_s: Option<u32>,
}

/// What a route answers.
pub(super) type Reply<T> = Result<T, Refusal>;

/// After how many seconds one may ask again where nothing better is known.
const RETRY_AFTER_S: u32 = 5;

impl Refusal {
    pub(super) fn new(status: StatusCode, code: Code, message: impl Into<String>) -> Refusal {
        Refusal { status, problem: Problem::new(code, message), retry_after_s: None }
    }

    pub(super) fn invalid(message: impl Into<String>) -> Refusal {
        Problem::new(Code::Invalid, message).into()
    }

    pub(super) fn hint(self, hint: impl Into<String>) -> Refusal {
        Refusal { problem: self.problem.hint(hint), ..self }
    }

    pub(super) fn retry_after(self, seconds: u32) -> Refusal {
        Refusal { retry_after_s: Some(seconds), ..self }
    }

    /// The same with another status of the same kind.
    pub(super) fn with_status(self, status: StatusCode) -> Refusal {
        Refusal { status, ..self }
    }

    pub(super) fn is(&self, code: Code) -> bool {
        self.problem.code == code
    }
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Refusal {
        let status = match problem.code {
            Code::Invalid => StatusCode::BAD_REQUEST,
            Code::Unauthenticated => StatusCode::UNAUTHORIZED,
            Code::Forbidden => StatusCode::FORBIDDEN,
            Code::NotFound => StatusCode::NOT_FOUND,
            Code::Conflict => StatusCode::CONFLICT,
            Code::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Code::TooMany => StatusCode::TOO_MANY_REQUESTS,
            Code::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            Code::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let again = matches!(problem.code, Code::TooMany | Code::Unavailable);
        Refusal { status, problem, retry_after_s: again.then_some(RETRY_AFTER_S) }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(self.problem)).into_response();
        if let Some(seconds) = self.retry_after_s {
            response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
        }
        if self.status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

/// There is no such route.
pub(super) async fn no_route(uri: axum::http::Uri) -> Refusal {
    Refusal::from(Problem::new(Code::NotFound, format!("there is no {}", uri.path()))).hint("GET /v1/openapi.json lists all routes")
}

/// The route is there, the method is not.
pub(super) async fn no_method(method: axum::http::Method, uri: axum::http::Uri) -> Refusal {
    let message = format!("{} does not take {method}", uri.path());
    Refusal::new(StatusCode::METHOD_NOT_ALLOWED, Code::Invalid, message).hint("GET /v1/openapi.json lists all routes with their methods")
}

/// A defect of ours: what it was goes into the daemon's log, not to whoever asked.
pub(super) fn panicked(cause: Box<dyn std::any::Any + Send>) -> Response {
    let said = cause.downcast_ref::<String>().map(String::as_str).or_else(|| cause.downcast_ref::<&str>().copied()).unwrap_or("");
    tracing::error!("a request made the API panic: {said}");
    Refusal::from(Problem::new(Code::Internal, "the daemon failed to answer; this is a defect")).hint("its log says more").into_response()
}
