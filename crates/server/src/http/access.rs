//! Who asks: a token says so, or the kernel for whoever comes by the unix socket.
//!
//! Rights that hang on the budget tree are the service's to judge, on its own state; here it is only found out who somebody is.

use super::Api;
use super::refusal::{Refusal, Reply};
use crate::service::Who;
use crate::wire::error::{Code, Problem};
use crate::wire::token::Role;
use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use nix::unistd::{Uid, User};
use std::sync::Arc;

/// The account at the other end of a unix socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Peer(pub Who);

/// Somebody who is known.
#[derive(Clone)]
pub(super) struct Known(pub Who);

/// A local account by its number: whoever the daemon runs as, and root, may do everything; others what the tree says of their account's name.
pub(super) fn local_account(uid: u32) -> Peer {
    let role = if uid == 0 || Uid::effective().as_raw() == uid { Role::Admin } else { Role::User };
    Peer(Who { user: account(Uid::from_raw(uid)), role })
}

/// What a local account is called here: its name, or `uid-1000` where it has none.
pub(crate) fn account(uid: Uid) -> String {
    User::from_uid(uid).ok().flatten().map_or_else(|| format!("uid-{uid}"), |user| user.name)
}

/// Finds out who asks, and refuses whoever asks too often. Whether somebody unknown may ask is for the route to say.
pub(super) async fn identify(State(api): State<Arc<Api>>, mut request: Request, next: Next) -> Response {
    let peer = request.extensions().get::<Peer>().map(|peer| peer.0.clone());
    let who = match bearer(request.headers(), &api) {
        Ok(who) => who.or(peer),
        Err(refusal) => {
            return match api.limits.request("") {
                Ok(()) => refusal.into_response(),
                Err(refusal) => refusal.into_response(),
            };
        }
    };
    // Whoever floods the daemon does not make it look dead.
    let user = who.as_ref().map_or("", |who| &who.user);
    let allowed = if request.uri().path() == "/healthz" { Ok(()) } else { api.limits.request(user) };
    if let Err(refusal) = allowed {
        return refusal.into_response();
    }
    if let Some(who) = who {
        request.extensions_mut().insert(Known(who));
    }
    next.run(request).await
}

/// Who bears the token of this request, if it has one.
fn bearer(headers: &HeaderMap, api: &Api) -> Reply<Option<Who>> {
    let Some(value) = headers.get(header::AUTHORIZATION) else { return Ok(None) };
    let unknown = |message: &str| Refusal::from(Problem::new(Code::Unauthenticated, message));
    let token = value.to_str().ok().and_then(|value| {
        let (scheme, token) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
    });
    let token = token.ok_or_else(|| unknown("authorization: it is not of the form `Bearer TOKEN`"))?;
    match api.handle.authenticate(token) {
        Some(who) => Ok(Some(who)),
        None => Err(unknown("this token is unknown or was taken back").hint("an administrator makes a new one: stipend token create USER")),
    }
}

impl<S: Sync> FromRequestParts<S> for Known {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Reply<Known> {
        parts.extensions.get::<Known>().cloned().ok_or_else(|| {
            Refusal::from(Problem::new(Code::Unauthenticated, "a token is needed: `Authorization: Bearer TOKEN`"))
                .hint("an administrator makes one: stipend token create USER; the daemon's own machine needs none by its unix socket")
        })
    }
}
